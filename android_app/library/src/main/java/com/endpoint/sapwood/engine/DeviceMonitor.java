package com.endpoint.sapwood.engine;

import android.app.ActivityManager;
import android.content.Context;
import android.content.Intent;
import android.content.IntentFilter;
import android.os.BatteryManager;
import android.os.Build;
import android.os.PowerManager;

/** How warm and how busy the device is, as far as the platform tells apps. */
public final class DeviceMonitor {
  private final Context context;

  public DeviceMonitor(Context context) {
    this.context = context.getApplicationContext();
  }

  public DeviceReadings read() {
    // Sticky: returns the latest broadcast at once, and registers nothing.
    Intent battery =
        context.registerReceiver(null, new IntentFilter(Intent.ACTION_BATTERY_CHANGED));
    return new DeviceReadings(
        parts(battery, BatteryManager.EXTRA_TEMPERATURE, 10),
        thermalStatus(),
        isDischarging(battery) ? amperes() : null,
        parts(battery, BatteryManager.EXTRA_VOLTAGE, 1000),
        memoryUsed());
  }

  /** A number of the battery that comes as so many parts of a whole. */
  private static Double parts(Intent battery, String name, double whole) {
    int none = Integer.MIN_VALUE;
    int value = battery == null ? none : battery.getIntExtra(name, none);
    return value == none ? null : value / whole;
  }

  private static boolean isDischarging(Intent battery) {
    int status = battery == null ? 0 : battery.getIntExtra(BatteryManager.EXTRA_STATUS, 0);
    return status == BatteryManager.BATTERY_STATUS_DISCHARGING;
  }

  /** Devices do not agree on the sign; a few give milliamperes, which then count as nothing. */
  private Double amperes() {
    BatteryManager manager = (BatteryManager) context.getSystemService(Context.BATTERY_SERVICE);
    long micro = manager.getLongProperty(BatteryManager.BATTERY_PROPERTY_CURRENT_NOW);
    return micro == Long.MIN_VALUE ? null : micro / 1e6;
  }

  private Integer thermalStatus() {
    if (Build.VERSION.SDK_INT < Build.VERSION_CODES.Q) {
      return null;
    }
    PowerManager power = (PowerManager) context.getSystemService(Context.POWER_SERVICE);
    return power.getCurrentThermalStatus();
  }

  private Double memoryUsed() {
    ActivityManager manager = (ActivityManager) context.getSystemService(Context.ACTIVITY_SERVICE);
    ActivityManager.MemoryInfo info = new ActivityManager.MemoryInfo();
    manager.getMemoryInfo(info);
    return info.totalMem <= 0 ? null : 1 - (double) info.availMem / info.totalMem;
  }
}
