package com.endpoint.sapwood.engine;

import static org.junit.Assert.assertEquals;

import java.io.File;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Everything that an engine tells its listeners, in order, a line each. */
final class Log implements Engine.Listener, Engine.AnswerListener, Engine.RecordingListener {
  private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

  /** The next things that happen are these. */
  void expect(String... expected) throws InterruptedException {
    for (String line : expected) {
      assertEquals(line, lines.poll(20, TimeUnit.SECONDS));
    }
  }

  /** Waits for a line and returns how many came before it. */
  int skipTo(String expected) throws InterruptedException {
    int skipped = 0;
    for (String line = next(); !line.equals(expected); line = next()) {
      skipped++;
    }
    return skipped;
  }

  String next() throws InterruptedException {
    String line = lines.poll(20, TimeUnit.SECONDS);
    return line == null ? "nothing" : line;
  }

  void expectNothing() throws InterruptedException {
    assertEquals(null, lines.poll(100, TimeUnit.MILLISECONDS));
  }

  @Override
  public void onStateChanged(Engine.State state, ModelInfo model, EngineException reason) {
    lines.add(state + (reason == null ? "" : " " + reason.code()));
  }

  @Override
  public void onReading(int promptTokens) {
    lines.add("reading " + promptTokens);
  }

  @Override
  public void onText(String text) {
    lines.add("text " + text);
  }

  @Override
  public void onStats(Stats stats) {
    lines.add("stats " + stats.emittedTokens);
  }

  @Override
  public void onTree(TreeSnapshot tree) {
    lines.add("tree " + tree.nodes.size() + " " + tree.acceptedCount());
  }

  @Override
  public void onDone(Engine.StopReason reason, Stats stats) {
    lines.add("done " + reason);
  }

  @Override
  public void onSaved(File file, int events, long lost) {
    lines.add("saved " + file.getName() + " " + events + " " + lost);
  }

  @Override
  public void onFailed(EngineException reason) {
    lines.add("failed " + reason.code());
  }
}
