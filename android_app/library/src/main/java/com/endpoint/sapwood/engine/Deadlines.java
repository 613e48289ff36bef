package com.endpoint.sapwood.engine;

/**
 * How long an engine may be silent. Counted in ticks of our own clock, not in time: a frozen app
 * that wakes up must not take the time it slept for the engine's silence.
 */
final class Deadlines {
  final int tickMilliseconds;

  /** Without an answer to our greeting: what was started is no engine. */
  int helloTicks = 40;

  /** Without an answer to a ping, which is given by a thread that computes nothing. */
  int pongTicks = 12;

  /** Without the end of an answer that was cancelled. */
  int cancelTicks = 8;

  /** Without a step while answering, as the engine itself says. */
  long idleMilliseconds = 10_000;

  /** More of it for each token of a prompt that is being read: no phone is so slow. */
  long millisecondsPerPromptToken = 200;

  /** The same while a bundle is read: a large one takes its time. */
  long loadIdleMilliseconds = 120_000;

  /** How many engines in a row may die without having done anything. */
  int mostFailures = 3;

  Deadlines(int tickMilliseconds) {
    this.tickMilliseconds = tickMilliseconds;
  }

  Deadlines() {
    this(250);
  }
}
