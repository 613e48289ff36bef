package com.endpoint.sapwood.engine;

import org.json.JSONObject;

/** One look at a device's sensors; null where it has none, or does not say. */
public final class DeviceReadings {
  /** Of the battery, in degrees Celsius. */
  public final Double celsius;

  /** One of PowerManager.THERMAL_STATUS_*; null before Android 10. */
  public final Integer thermalStatus;

  /** What the battery gives, in amperes, of either sign; null while it is charged. */
  public final Double batteryAmperes;

  public final Double batteryVolts;

  /** Share of the device's memory that is taken, 0 to 1. */
  public final Double memoryUsed;

  public DeviceReadings(
      Double celsius,
      Integer thermalStatus,
      Double batteryAmperes,
      Double batteryVolts,
      Double memoryUsed) {
    this.celsius = celsius;
    this.thermalStatus = thermalStatus;
    this.batteryAmperes = batteryAmperes;
    this.batteryVolts = batteryVolts;
    this.memoryUsed = memoryUsed;
  }

  JSONObject toJson() {
    return Json.object(
        "celsius", celsius,
        "thermal_status", thermalStatus,
        "battery_amperes", batteryAmperes,
        "battery_volts", batteryVolts,
        "memory_used", memoryUsed);
  }
}
