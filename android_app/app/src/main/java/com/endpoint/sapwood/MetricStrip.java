package com.endpoint.sapwood;

import android.content.Context;
import android.util.AttributeSet;
import android.view.LayoutInflater;
import android.view.View;
import android.widget.GridLayout;
import android.widget.TextView;

/** Numbers side by side, each over its label; in two columns where the text is large. */
public final class MetricStrip extends GridLayout {
  private static final float LARGE_TEXT = 1.4f;
  private static final int SIDE_BY_SIDE = 4;

  public MetricStrip(Context context, AttributeSet attributes) {
    super(context, attributes);
    boolean large = getResources().getConfiguration().fontScale >= LARGE_TEXT;
    setColumnCount(large ? 2 : SIDE_BY_SIDE);
  }

  /** Adds a number; returns its place. */
  public int add(int label) {
    View cell = LayoutInflater.from(getContext()).inflate(R.layout.metric, this, false);
    ((TextView) cell.findViewById(R.id.metric_label)).setText(label);
    LayoutParams place = new LayoutParams(spec(UNDEFINED), spec(UNDEFINED, FILL, 1));
    place.width = 0;
    addView(cell, place);
    return getChildCount() - 1;
  }

  /** @param said the number with its unit, for those who hear it */
  public void set(int place, String value, String said) {
    View cell = getChildAt(place);
    ((TextView) cell.findViewById(R.id.metric_value)).setText(value);
    cell.setContentDescription(said);
  }

  /** Shows that there is no number. */
  public void clear(int place) {
    View cell = getChildAt(place);
    ((TextView) cell.findViewById(R.id.metric_value)).setText(R.string.no_value);
    cell.setContentDescription(null);
  }
}
