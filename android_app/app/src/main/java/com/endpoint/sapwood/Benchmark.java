package com.endpoint.sapwood;

import com.endpoint.sapwood.engine.Engine;
import com.endpoint.sapwood.engine.EngineException;
import com.endpoint.sapwood.engine.GenerateOptions;
import com.endpoint.sapwood.engine.Message;
import com.endpoint.sapwood.engine.Stats;
import com.endpoint.sapwood.engine.TreeSnapshot;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Asks the same questions in every mode, greedily and in turn, so that a device that warms up or
 * slows down does so for all of them.
 */
final class Benchmark {
  /** Hears how it goes. */
  interface Observer {
    void onProgress();

    /** @param problem null if all questions were answered */
    void onEnd(EngineException problem);
  }

  /** One mode's answers. */
  static final class Result {
    final GenerateOptions.Mode mode;
    final List<String> texts = new ArrayList<>();
    private final List<Double> speeds = new ArrayList<>();
    private long emitted;
    private long steps;

    Result(GenerateOptions.Mode mode) {
      this.mode = mode;
    }

    /** The median over the questions. */
    double tokensPerSecond() {
      List<Double> sorted = new ArrayList<>(speeds);
      Collections.sort(sorted);
      int middle = sorted.size() / 2;
      return sorted.size() % 2 == 1
          ? sorted.get(middle)
          : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }

    double tokensPerStep() {
      return (double) emitted / Math.max(steps, 1);
    }

    boolean isEmpty() {
      return speeds.isEmpty();
    }
  }

  private static final int TOKENS = 64;

  private final Engine engine;
  private final String[] prompts;
  private final Observer observer;
  private final List<Result> results = new ArrayList<>();
  private int done;
  private boolean stopped;
  private Engine.Answer answer;

  Benchmark(Engine engine, String[] prompts, Observer observer) {
    this.engine = engine;
    this.prompts = prompts;
    this.observer = observer;
    for (GenerateOptions.Mode mode : GenerateOptions.Mode.values()) {
      results.add(new Result(mode));
    }
  }

  List<Result> results() {
    return results;
  }

  /** How many answers there will be. */
  int total() {
    return prompts.length * results.size();
  }

  int done() {
    return done;
  }

  /** Whether a mode said word for word what plain decoding said, as far as both have got. */
  boolean isSameText(Result result) {
    List<String> plain = results.get(GenerateOptions.Mode.PLAIN.ordinal()).texts;
    for (int i = 0; i < result.texts.size(); i++) {
      if (!plain.get(i).equals(result.texts.get(i))) {
        return false;
      }
    }
    return true;
  }

  void start() {
    observer.onProgress();
    askNext();
  }

  void stop() {
    stopped = true;
    if (answer != null) {
      answer.cancel();
    }
  }

  private void askNext() {
    final Result result = results.get(done % results.size());
    Message question =
        new Message(Message.Role.USER, prompts[done / results.size()]);
    GenerateOptions options = new GenerateOptions();
    options.mode = result.mode;
    options.maxNewTokens = TOKENS;
    final StringBuilder text = new StringBuilder();
    answer =
        engine.generate(
            Collections.singletonList(question),
            options,
            new Engine.AnswerListener() {
              @Override
              public void onReading(int promptTokens) {}

              @Override
              public void onText(String piece) {
                text.append(piece);
              }

              @Override
              public void onStats(Stats stats) {}

              @Override
              public void onTree(TreeSnapshot tree) {}

              @Override
              public void onDone(Engine.StopReason reason, Stats stats) {
                if (!stopped && reason != Engine.StopReason.CANCELLED) {
                  take(result, text.toString(), stats);
                }
              }

              @Override
              public void onFailed(EngineException reason) {
                if (!stopped) {
                  observer.onEnd(reason);
                }
              }
            });
  }

  private void take(Result result, String text, Stats stats) {
    result.texts.add(text);
    result.speeds.add(stats.tokensPerSecond);
    result.emitted += stats.emittedTokens;
    result.steps += stats.steps;
    done++;
    observer.onProgress();
    if (done < total()) {
      askNext();
    } else {
      observer.onEnd(null);
    }
  }
}
