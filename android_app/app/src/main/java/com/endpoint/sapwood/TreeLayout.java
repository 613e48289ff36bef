package com.endpoint.sapwood;

import com.endpoint.sapwood.engine.TreeSnapshot;
import java.util.ArrayList;
import java.util.List;

/**
 * Where a draft tree's nodes go: columns by depth, one row for each leaf, a parent in the middle of
 * its children. Of siblings the accepted one comes first, so that the accepted path is straight.
 */
final class TreeLayout {
  /** Of each node: its column, 0 for the root's children. */
  final int[] column;

  /** Of each node: its row, possibly between two leaves' rows. */
  final float[] row;

  final int columns;
  final int rows;

  /** The row of the text that the tree hangs on. */
  final float rootRow;

  private final List<List<Integer>> children = new ArrayList<>();
  private int nextRow;

  TreeLayout(TreeSnapshot tree) {
    int count = tree.nodes.size();
    column = new int[count];
    row = new float[count];
    for (int i = 0; i <= count; i++) {
      children.add(new ArrayList<Integer>());
    }
    int deepest = 0;
    for (int i = 0; i < count; i++) {
      TreeSnapshot.Node node = tree.nodes.get(i);
      column[i] = node.depth - 1;
      deepest = Math.max(deepest, node.depth);
      List<Integer> siblings = children.get(node.parent + 1); // the root's are the first
      siblings.add(node.accepted ? 0 : siblings.size(), i);
    }
    rootRow = place(TreeSnapshot.ROOT);
    columns = deepest;
    rows = Math.max(nextRow, 1);
  }

  /** Gives rows to a node and all below it. Trees are at most 256 deep. */
  private float place(int node) {
    List<Integer> below = children.get(node + 1);
    float mine;
    if (below.isEmpty()) {
      mine = nextRow++;
    } else {
      float first = place(below.get(0));
      float last = first;
      for (int i = 1; i < below.size(); i++) {
        last = place(below.get(i));
      }
      mine = (first + last) / 2;
    }
    if (node != TreeSnapshot.ROOT) {
      row[node] = mine;
    }
    return mine;
  }
}
