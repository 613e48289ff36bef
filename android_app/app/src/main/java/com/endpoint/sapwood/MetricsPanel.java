package com.endpoint.sapwood;

import android.app.Activity;
import android.content.res.Resources;
import android.view.View;
import com.endpoint.sapwood.engine.DeviceReadings;
import com.endpoint.sapwood.engine.Stats;
import com.endpoint.sapwood.engine.TreeSnapshot;

/** The strip of numbers and the tree over it. */
final class MetricsPanel {
  private final Resources resources;
  private final TreeView tree;
  private final MetricStrip strip;
  private final int speed;
  private final int accepted;
  private final int size;
  private final int heat;

  MetricsPanel(Activity activity) {
    resources = activity.getResources();
    tree = activity.findViewById(R.id.tree);
    strip = activity.findViewById(R.id.strip);
    speed = strip.add(R.string.tokens_per_second);
    accepted = strip.add(R.string.tokens_per_step);
    size = strip.add(R.string.tree_size);
    heat = strip.add(R.string.temperature_label);
  }

  void setTreeShown(boolean shown) {
    tree.setVisibility(shown ? View.VISIBLE : View.GONE);
  }

  /** Either may be null: nothing has been measured, or drawn, yet. */
  void show(Stats stats, TreeSnapshot latest) {
    tree.show(latest);
    if (stats == null || stats.steps == 0) {
      strip.clear(speed);
      strip.clear(accepted);
      strip.clear(size);
      return;
    }
    set(speed, R.string.one_decimal, R.string.tokens_per_second_said, stats.tokensPerSecond);
    set(accepted, R.string.two_decimals, R.string.tokens_per_step_said, stats.meanAcceptedLength);
    set(size, R.string.one_decimal, R.string.tree_size_said, stats.meanDraftSlots);
  }

  void showHeat(DeviceReadings readings) {
    if (readings.celsius == null) {
      strip.clear(heat);
      return;
    }
    String said =
        resources.getString(
            R.string.temperature_said,
            resources.getString(R.string.one_decimal, readings.celsius),
            Words.heat(resources, readings.thermalStatus));
    strip.set(heat, resources.getString(R.string.degrees, readings.celsius), said);
  }

  private void set(int place, int format, int sentence, double number) {
    String value = resources.getString(format, number);
    strip.set(place, value, resources.getString(sentence, value));
  }
}
