package com.endpoint.sapwood.engine;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.robolectric.Shadows.shadowOf;

import android.app.ActivityManager;
import android.app.Application;
import android.content.Context;
import android.content.Intent;
import android.os.BatteryManager;
import android.os.PowerManager;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;

/** What the platform's sensors become. */
@RunWith(RobolectricTestRunner.class)
public class DeviceMonitorTest {
  private final Application application = RuntimeEnvironment.getApplication();
  private final DeviceMonitor monitor = new DeviceMonitor(application);

  private void setBattery(int status) {
    Intent battery =
        new Intent(Intent.ACTION_BATTERY_CHANGED)
            .putExtra(BatteryManager.EXTRA_TEMPERATURE, 312)
            .putExtra(BatteryManager.EXTRA_VOLTAGE, 3850)
            .putExtra(BatteryManager.EXTRA_STATUS, status);
    application.sendStickyBroadcast(battery);
    BatteryManager manager =
        (BatteryManager) application.getSystemService(Context.BATTERY_SERVICE);
    shadowOf(manager).setLongProperty(BatteryManager.BATTERY_PROPERTY_CURRENT_NOW, -900_000);
  }

  @Test
  public void aBatteryThatIsUsedSaysWhatItGives() {
    setBattery(BatteryManager.BATTERY_STATUS_DISCHARGING);
    DeviceReadings readings = monitor.read();
    assertEquals(31.2, readings.celsius, 1e-9);
    assertEquals(-0.9, readings.batteryAmperes, 1e-9);
    assertEquals(3.85, readings.batteryVolts, 1e-9);
  }

  @Test
  public void aCurrentThatChargesIsNoHeat() {
    setBattery(BatteryManager.BATTERY_STATUS_CHARGING);
    assertNull(monitor.read().batteryAmperes);
  }

  @Test
  public void thePlatformsOwnWordAndItsMemoryAreRead() {
    PowerManager power = (PowerManager) application.getSystemService(Context.POWER_SERVICE);
    shadowOf(power).setCurrentThermalStatus(PowerManager.THERMAL_STATUS_SEVERE);
    ActivityManager.MemoryInfo memory = new ActivityManager.MemoryInfo();
    memory.totalMem = 8_000;
    memory.availMem = 2_000;
    shadowOf((ActivityManager) application.getSystemService(Context.ACTIVITY_SERVICE))
        .setMemoryInfo(memory);
    DeviceReadings readings = monitor.read();
    assertEquals(PowerManager.THERMAL_STATUS_SEVERE, (int) readings.thermalStatus);
    assertEquals(0.75, readings.memoryUsed, 1e-9);
  }

  @Test
  public void whatADeviceDoesNotSayIsLeftOut() {
    DeviceReadings readings = monitor.read();
    assertNull(readings.celsius);
    assertNull(readings.batteryAmperes);
    assertNull(readings.batteryVolts);
  }
}
