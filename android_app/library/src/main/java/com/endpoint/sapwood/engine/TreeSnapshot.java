package com.endpoint.sapwood.engine;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.json.JSONArray;
import org.json.JSONObject;

/** The draft tree of one step, parents before their children. */
public final class TreeSnapshot {
  /** The parent of a node that hangs on the text itself. */
  public static final int ROOT = -1;

  /** One guessed token. */
  public static final class Node {
    public final String text;

    /** Its place in {@link TreeSnapshot#nodes}, or {@link #ROOT}. */
    public final int parent;

    /** 1 for what follows the text itself. */
    public final int depth;

    /** How probable it was thought to be that the model says the same down to here. */
    public final double pathAcceptance;

    /** Whether the model said the same. */
    public final boolean accepted;

    public Node(String text, int parent, int depth, double pathAcceptance, boolean accepted) {
      this.text = text;
      this.parent = parent;
      this.depth = depth;
      this.pathAcceptance = pathAcceptance;
      this.accepted = accepted;
    }
  }

  public final long step;
  public final List<Node> nodes;

  public TreeSnapshot(long step, List<Node> nodes) {
    this.step = step;
    this.nodes = Collections.unmodifiableList(new ArrayList<>(nodes));
  }

  /** Of a `tree` frame; a node whose parent does not come before it ends the tree there. */
  static TreeSnapshot of(JSONObject json) {
    List<Node> nodes = new ArrayList<>();
    JSONArray array = json.optJSONArray("nodes");
    for (int i = 0; array != null && i < array.length(); i++) {
      JSONObject node = array.optJSONObject(i);
      int parent = node == null ? i : node.optInt("parent", ROOT);
      if (parent < ROOT || parent >= i) {
        break;
      }
      int depth = parent == ROOT ? 1 : nodes.get(parent).depth + 1;
      nodes.add(
          new Node(
              node.optString("text"),
              parent,
              depth,
              node.optDouble("path_acceptance", 0),
              node.optBoolean("accepted")));
    }
    return new TreeSnapshot(json.optLong("step"), nodes);
  }

  /** How many nodes the model agreed with. */
  public int acceptedCount() {
    int count = 0;
    for (Node node : nodes) {
      count += node.accepted ? 1 : 0;
    }
    return count;
  }
}
