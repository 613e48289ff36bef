package com.endpoint.sapwood.engine;

import org.json.JSONObject;

/** Whether an engine that owes us something is alive, tick by tick. */
final class Heartbeat {
  private final Deadlines deadlines;
  private long ping; // the ping that is not answered yet, or 0
  private int missed;
  private long idleMilliseconds;

  Heartbeat(Deadlines deadlines) {
    this.deadlines = deadlines;
  }

  void reset() {
    ping = 0;
    missed = 0;
    idleMilliseconds = 0;
  }

  boolean wantsPing() {
    return ping == 0;
  }

  long nextPing(long id) {
    ping = id;
    missed = 0;
    return id;
  }

  void pong(JSONObject body) {
    if (body.optLong("id") == ping) {
      ping = 0;
      missed = 0;
      idleMilliseconds = body.isNull("working") ? 0 : body.optLong("idle_milliseconds");
    }
  }

  /** Another tick without the engine's greeting; says what is wrong if that was too many. */
  String tickBeforeHello() {
    return ++missed > deadlines.helloTicks ? "it did not answer the greeting" : null;
  }

  /** Another tick; says what is wrong, or null. */
  String tick(long mostIdleMilliseconds) {
    if (ping != 0 && ++missed > deadlines.pongTicks) {
      return "it did not answer a ping";
    }
    return idleMilliseconds > mostIdleMilliseconds
        ? "it has not got anywhere for " + idleMilliseconds + " ms"
        : null;
  }
}
