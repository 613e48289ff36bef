package com.endpoint.sapwood;

import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.os.Looper;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** Lets the main thread do its work until something real, on another thread, has happened. */
final class Waiting {
  private static final long MOST_SECONDS = 60; // on a busy machine; usually it is milliseconds

  private Waiting() {}

  static void until(String what, BooleanSupplier happened) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(MOST_SECONDS);
    while (!happened.getAsBoolean() && System.nanoTime() < end) {
      shadowOf(Looper.getMainLooper()).idleFor(5, TimeUnit.MILLISECONDS);
      Thread.sleep(5);
    }
    assertTrue("waited in vain for " + what, happened.getAsBoolean());
  }
}
