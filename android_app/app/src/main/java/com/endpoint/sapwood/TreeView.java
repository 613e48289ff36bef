package com.endpoint.sapwood;

import android.content.Context;
import android.graphics.Canvas;
import android.graphics.Paint;
import android.graphics.Path;
import android.util.AttributeSet;
import android.util.TypedValue;
import android.view.View;
import com.endpoint.sapwood.engine.TreeSnapshot;

/** Draws a step's draft tree, from the text at the left; what the model agreed with is bright. */
public final class TreeView extends View {
  private static final int WIDEST_COLUMN_DP = 104;
  private static final int WIDEST_ROW_DP = 30;
  private static final float SMALLEST_TEXT_SP = 8;
  private static final float LARGEST_TEXT_SP = 13;

  private final Paint lines = new Paint(Paint.ANTI_ALIAS_FLAG);
  private final Paint fills = new Paint(Paint.ANTI_ALIAS_FLAG);
  private final Paint texts = new Paint(Paint.ANTI_ALIAS_FLAG);
  private final Path curve = new Path();
  private final float density;
  private final int accepted;
  private final int onAccepted;
  private final int guess;
  private final int faint;

  private TreeSnapshot tree;
  private TreeLayout layout;
  private float columnWidth;
  private float rowHeight;
  private float top;

  public TreeView(Context context, AttributeSet attributes) {
    super(context, attributes);
    density = getResources().getDisplayMetrics().density;
    accepted = context.getColor(R.color.accepted);
    onAccepted = context.getColor(R.color.on_accepted);
    guess = context.getColor(R.color.guess);
    faint = context.getColor(R.color.text_faint);
    lines.setStyle(Paint.Style.STROKE);
    lines.setStrokeCap(Paint.Cap.ROUND);
    show(null);
  }

  /** @param tree null: none has been grown yet */
  public void show(TreeSnapshot tree) {
    this.tree = tree;
    layout = tree == null ? null : new TreeLayout(tree);
    setContentDescription(describe());
    invalidate();
  }

  private String describe() {
    if (tree == null) {
      return getResources().getString(R.string.tree_waiting);
    }
    if (tree.nodes.isEmpty()) {
      return getResources().getString(R.string.tree_empty);
    }
    StringBuilder right = new StringBuilder();
    for (TreeSnapshot.Node node : tree.nodes) {
      right.append(node.accepted ? node.text : "");
    }
    int count = tree.nodes.size();
    return getResources()
        .getQuantityString(
            R.plurals.tree_said, count, tree.step, count, tree.acceptedCount(), right.toString());
  }

  @Override
  protected void onDraw(Canvas canvas) {
    super.onDraw(canvas);
    if (tree == null || tree.nodes.isEmpty()) {
      drawNote(canvas, String.valueOf(getContentDescription()));
      return;
    }
    measureCells();
    for (int pass = 0; pass < 2; pass++) { // bright over faint
      for (int i = 0; i < tree.nodes.size(); i++) {
        if (tree.nodes.get(i).accepted == (pass == 1)) {
          drawEdge(canvas, i);
        }
      }
    }
    fills.setColor(tree.acceptedCount() > 0 ? accepted : guess);
    canvas.drawCircle(rootX(), y(layout.rootRow), 4 * density, fills);
    for (int i = 0; i < tree.nodes.size(); i++) {
      drawNode(canvas, i);
    }
  }

  private void drawNote(Canvas canvas, String note) {
    texts.setColor(faint);
    texts.setTextAlign(Paint.Align.CENTER);
    texts.setTextSize(sp(LARGEST_TEXT_SP));
    float widest = texts.measureText(note);
    float room = getWidth() - 16 * density;
    if (widest > room) {
      texts.setTextSize(sp(LARGEST_TEXT_SP) * room / widest);
    }
    canvas.drawText(note, getWidth() / 2f, getHeight() / 2f, texts);
  }

  private void measureCells() {
    float room = getWidth() - rootX() - 4 * density;
    columnWidth = Math.min(room / layout.columns, WIDEST_COLUMN_DP * density);
    rowHeight = Math.min((float) getHeight() / layout.rows, WIDEST_ROW_DP * density);
    top = (getHeight() - rowHeight * layout.rows) / 2;
  }

  private float rootX() {
    return 8 * density;
  }

  /** Where a node's box begins. */
  private float left(int node) {
    float gap = Math.min(18 * density, columnWidth * 0.22f);
    return rootX() + layout.column[node] * columnWidth + gap;
  }

  private float right(int node) {
    return rootX() + (layout.column[node] + 1) * columnWidth;
  }

  private float y(float row) {
    return top + (row + 0.5f) * rowHeight;
  }

  private void drawEdge(Canvas canvas, int node) {
    TreeSnapshot.Node here = tree.nodes.get(node);
    boolean fromText = here.parent == TreeSnapshot.ROOT;
    float fromX = fromText ? rootX() : right(here.parent);
    float fromY = y(fromText ? layout.rootRow : layout.row[here.parent]);
    float toX = left(node);
    float toY = y(layout.row[node]);
    float middle = (fromX + toX) / 2;
    curve.reset();
    curve.moveTo(fromX, fromY);
    curve.cubicTo(middle, fromY, middle, toY, toX, toY);
    lines.setColor(here.accepted ? accepted : guess);
    lines.setStrokeWidth((here.accepted ? 3 : 1.2f) * density);
    canvas.drawPath(curve, lines);
  }

  private void drawNode(Canvas canvas, int node) {
    TreeSnapshot.Node here = tree.nodes.get(node);
    float left = left(node);
    float right = right(node);
    float y = y(layout.row[node]);
    float half = Math.min(rowHeight * 0.42f, 13 * density);
    float size = Math.min(half * 1.25f, sp(LARGEST_TEXT_SP));
    boolean written = size >= SMALLEST_TEXT_SP * density && right - left >= 14 * density;
    if (!written) {
      fills.setColor(here.accepted ? accepted : guess);
      canvas.drawCircle(left, y, Math.max(half, 2 * density) * 0.6f, fills);
      lines.setColor(here.accepted ? accepted : guess);
      lines.setStrokeWidth((here.accepted ? 3 : 1.2f) * density);
      canvas.drawLine(left, y, right, y, lines);
      return;
    }
    if (here.accepted) {
      fills.setColor(accepted);
      canvas.drawRoundRect(left, y - half, right, y + half, half, half, fills);
    } else {
      lines.setColor(guess);
      lines.setStrokeWidth(1.2f * density);
      canvas.drawRoundRect(left, y - half, right, y + half, half, half, lines);
    }
    texts.setTextSize(size);
    texts.setTextAlign(Paint.Align.CENTER);
    texts.setColor(here.accepted ? onAccepted : faint);
    String label = visible(here.text);
    int fits = texts.breakText(label, true, right - left - half * 0.8f, null);
    boolean whole = fits == label.length();
    String shown = whole ? label : label.substring(0, Math.max(fits - 1, 0)) + "…";
    float baseline = y - (texts.ascent() + texts.descent()) / 2;
    canvas.drawText(shown, (left + right) / 2, baseline, texts);
  }

  /** A token as one can see it: spaces at its ends go, line breaks are shown. */
  static String visible(String token) {
    String plain = token.replace("\n", "↵").replace('\t', ' ').trim();
    return plain.isEmpty() ? "␣" : plain;
  }

  private float sp(float size) {
    return TypedValue.applyDimension(
        TypedValue.COMPLEX_UNIT_SP, size, getResources().getDisplayMetrics());
  }
}
