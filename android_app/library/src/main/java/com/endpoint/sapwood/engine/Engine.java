package com.endpoint.sapwood.engine;

import java.io.File;
import java.util.List;

/**
 * A language model that answers conversations: over a process of its own ({@link ProcessEngine}) or
 * inside this one ({@link JniEngine}). Both speak docs/engine-protocol.md.
 *
 * <pre>
 * Engine engine = new ProcessEngine(executable, callbacks, listener);
 * engine.load(options);                                 // listener: LOADING, then READY
 * Answer answer = engine.generate(messages, settings, answerListener);
 * answer.cancel();                                      // onDone(CANCELLED) within 100 ms
 * engine.close();
 * </pre>
 *
 * <p>The engine keeps no conversation: every call brings all messages, and what the cache already
 * holds of them is not computed again. So an engine that was started anew goes on where the last
 * one stopped. All methods return at once and may be called from any thread; whatever happens is
 * told to the listeners, in order, on the executor that was given to the constructor.
 */
public interface Engine extends AutoCloseable {
  /** What an engine is doing. */
  enum State {
    /** Nothing is loaded, and nothing was asked for. */
    EMPTY,
    /** A bundle is being opened. */
    LOADING,
    /** Waits for a conversation. */
    READY,
    /** Answers. */
    ANSWERING,
    /** Died or hung, and is being started again. The bundle is loaded again by itself. */
    RESTARTING,
    /** Gave up: the bundle is broken, or no engine stays alive. A new load tries again. */
    FAILED
  }

  /** Hears what becomes of the engine. */
  interface Listener {
    /**
     * @param model what is loaded; null unless READY or ANSWERING
     * @param reason why, in RESTARTING and FAILED; else null
     */
    void onStateChanged(State state, ModelInfo model, EngineException reason);
  }

  /** Hears one answer. The last call is exactly one of onDone and onFailed. */
  interface AnswerListener {
    /** The conversation is this long; what the cache does not hold of it is being read. */
    void onReading(int promptTokens);

    /** What comes next of the answer: whole characters. */
    void onText(String text);

    void onStats(Stats stats);

    /** The latest step's draft, if snapshots were asked for. */
    void onTree(TreeSnapshot tree);

    /** @param stats null if it was cancelled before it began */
    void onDone(StopReason reason, Stats stats);

    void onFailed(EngineException reason);
  }

  /** Hears what becomes of a recording: exactly one of these, once. */
  interface RecordingListener {
    /**
     * @param events how many the file holds
     * @param lost how many more there were, for which there was no room
     */
    void onSaved(File file, int events, long lost);

    /** There is no file, and nothing is being recorded any more. */
    void onFailed(EngineException reason);
  }

  /** An answer that is being given. */
  interface Answer {
    /** Ends it. Nothing happens if it has ended. */
    void cancel();
  }

  /** Why an answer ended. */
  enum StopReason {
    EOS,
    LENGTH,
    CONTEXT,
    STOP,
    CANCELLED
  }

  /** Opens a bundle; what is being answered is cancelled, and what was loaded is gone. */
  void load(ModelOptions options);

  /**
   * Answers the whole conversation. While a bundle is being loaded or the engine is restarting, the
   * request waits for it; while another answer is being given it fails with BUSY.
   */
  Answer generate(List<Message> conversation, GenerateOptions options, AnswerListener listener);

  /** Tells the engine what the device says of itself: it guesses less on one that is hot. */
  void observe(DeviceReadings readings);

  /**
   * Records from here on what the engine does and when, never what is said; the latest events are
   * kept. It goes on in a bundle that is loaded meanwhile and in an engine that replaces one that
   * died, without what was recorded before that.
   */
  void startRecording(RecordingListener listener);

  /** Ends the recording and writes it into a file that ui.perfetto.dev opens. */
  void saveRecording(File file);

  /** Ends the engine. An answer that is being given ends with CANCELLED. */
  @Override
  void close();
}
