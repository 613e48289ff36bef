package com.endpoint.sapwood.engine;

import java.util.concurrent.Future;

/**
 * Notices an engine that hangs. Ticks run while it owes us something, and only then: an idle phone
 * is left asleep. On the loop only.
 */
final class Watchdog {
  /** What is watched. */
  interface Watched {
    boolean owesSomething();

    boolean isLoading();

    void onHung(String complaint);
  }

  private final Deadlines deadlines;
  private final Loop loop;
  private final Connection connection;
  private final Answers answers;
  private final Watched watched;
  private final Heartbeat heartbeat;
  private Future<?> ticks;

  Watchdog(
      Deadlines deadlines, Loop loop, Connection connection, Answers answers, Watched watched) {
    this.deadlines = deadlines;
    this.loop = loop;
    this.connection = connection;
    this.answers = answers;
    this.watched = watched;
    heartbeat = new Heartbeat(deadlines);
  }

  Heartbeat heartbeat() {
    return heartbeat;
  }

  /** Begins or ends ticking, as what is owed demands. */
  void update() {
    boolean owed = watched.owesSomething();
    if (owed && ticks == null) {
      heartbeat.reset();
      ticks =
          loop.repeat(
              new Runnable() {
                @Override
                public void run() {
                  tick();
                }
              },
              deadlines.tickMilliseconds);
    } else if (!owed && ticks != null) {
      ticks.cancel(false);
      ticks = null;
    }
  }

  private void tick() {
    update();
    if (ticks == null) {
      return;
    }
    boolean greeted = connection.hello() != null;
    String complaint = greeted ? heartbeat.tick(mostIdleMilliseconds()) : heartbeat.tickBeforeHello();
    if (complaint == null && greeted && answers.isCancelLate(deadlines.cancelTicks)) {
      complaint = "it did not end a cancelled answer";
    }
    if (complaint != null) {
      watched.onHung(complaint);
    } else if (greeted && heartbeat.wantsPing()) {
      long ping = heartbeat.nextPing(connection.nextId());
      connection.send(Frame.PING, Json.object("id", ping));
    }
  }

  private long mostIdleMilliseconds() {
    return watched.isLoading()
        ? deadlines.loadIdleMilliseconds
        : deadlines.idleMilliseconds
            + answers.unreadTokens() * deadlines.millisecondsPerPromptToken;
  }
}
