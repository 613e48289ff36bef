package com.endpoint.sapwood;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import com.endpoint.sapwood.engine.TreeSnapshot;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

@RunWith(RobolectricTestRunner.class)
public class TreeLayoutTest {
  private final List<TreeSnapshot.Node> nodes = new ArrayList<>();

  private void add(int parent, boolean accepted) {
    int depth = parent == TreeSnapshot.ROOT ? 1 : nodes.get(parent).depth + 1;
    nodes.add(new TreeSnapshot.Node("x", parent, depth, 0.5, accepted));
  }

  private TreeLayout layout() {
    return new TreeLayout(new TreeSnapshot(1, nodes));
  }

  @Test
  public void aParentStandsBetweenItsChildren() {
    add(-1, false);
    add(0, false);
    add(0, false);
    add(-1, false);
    TreeLayout layout = layout();
    assertArrayEquals(new float[] {0.5f, 0, 1, 2}, layout.row, 0);
    assertArrayEquals(new int[] {0, 1, 1, 0}, layout.column);
    assertEquals(3, layout.rows);
    assertEquals(2, layout.columns);
    assertEquals(1.25f, layout.rootRow, 0);
  }

  @Test
  public void theAcceptedSiblingComesFirst() {
    add(-1, false);
    add(-1, true);
    assertArrayEquals(new float[] {1, 0}, layout().row, 0);
  }

  @Test
  public void anEmptyTreeHasRoomForItsRoot() {
    assertEquals(1, layout().rows);
    assertEquals(0, layout().columns);
  }

  @Test
  public void noTwoNodesEverShareAPlace() {
    Random random = new Random(7);
    for (int round = 0; round < 200; round++) {
      nodes.clear();
      int count = 1 + random.nextInt(64);
      for (int i = 0; i < count; i++) {
        add(random.nextInt(i + 1) - 1, random.nextInt(4) == 0);
      }
      TreeLayout layout = layout();
      for (int i = 0; i < count; i++) {
        assertTrue(layout.row[i] >= 0 && layout.row[i] < layout.rows);
        for (int j = 0; j < i; j++) {
          boolean same = layout.column[i] == layout.column[j] && layout.row[i] == layout.row[j];
          assertTrue(i + " and " + j + " of " + count, !same);
        }
      }
    }
  }
}
