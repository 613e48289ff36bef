package com.endpoint.sapwood.engine;

import android.content.Context;
import android.content.Intent;
import android.content.IntentFilter;
import android.os.BatteryManager;
import android.os.Build;
import android.os.PowerManager;

/** How warm the device is, as far as the platform tells apps. */
public final class ThermalMonitor {
  /** One look at the sensors. */
  public static final class Reading {
    /** Of the battery, in degrees Celsius; null where there is none. */
    public final Double celsius;

    /** One of PowerManager.THERMAL_STATUS_*; THERMAL_STATUS_NONE before Android 10. */
    public final int status;

    public Reading(Double celsius, int status) {
      this.celsius = celsius;
      this.status = status;
    }
  }

  private final Context context;

  public ThermalMonitor(Context context) {
    this.context = context.getApplicationContext();
  }

  public Reading read() {
    return new Reading(batteryCelsius(), status());
  }

  private Double batteryCelsius() {
    // Sticky: returns the latest broadcast at once, and registers nothing.
    Intent battery =
        context.registerReceiver(null, new IntentFilter(Intent.ACTION_BATTERY_CHANGED));
    int tenths =
        battery == null
            ? Integer.MIN_VALUE
            : battery.getIntExtra(BatteryManager.EXTRA_TEMPERATURE, Integer.MIN_VALUE);
    return tenths == Integer.MIN_VALUE ? null : tenths / 10.0;
  }

  private int status() {
    if (Build.VERSION.SDK_INT < Build.VERSION_CODES.Q) {
      return 0;
    }
    PowerManager power = (PowerManager) context.getSystemService(Context.POWER_SERVICE);
    return power.getCurrentThermalStatus();
  }
}
