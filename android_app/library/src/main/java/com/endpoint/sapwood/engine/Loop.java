package com.endpoint.sapwood.engine;

import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/** One thread that does what it is given in order, now, later or again and again. */
final class Loop {
  private final ScheduledThreadPoolExecutor executor =
      new ScheduledThreadPoolExecutor(
          1,
          new ThreadFactory() {
            @Override
            public Thread newThread(Runnable work) {
              Thread thread = new Thread(work, "sapwood-engine");
              thread.setDaemon(true);
              return thread;
            }
          });

  /** Does nothing once the loop has ended: there is nobody left to tell. */
  void post(Runnable work) {
    try {
      executor.execute(work);
    } catch (RejectedExecutionException e) {
      // Ended.
    }
  }

  void later(Runnable work, long milliseconds) {
    executor.schedule(work, milliseconds, TimeUnit.MILLISECONDS);
  }

  Future<?> repeat(Runnable work, long milliseconds) {
    return executor.scheduleWithFixedDelay(
        work, milliseconds, milliseconds, TimeUnit.MILLISECONDS);
  }

  void end() {
    executor.shutdown();
  }
}
