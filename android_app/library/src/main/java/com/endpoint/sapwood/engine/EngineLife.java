package com.endpoint.sapwood.engine;

import java.io.File;
import java.io.IOException;
import org.json.JSONObject;

/**
 * What an engine is doing, from the first load to its end, through every engine that had to be
 * started anew on the way. On the loop only.
 */
final class EngineLife implements Connection.Sink, Watchdog.Watched {
  private static final long[] RESTART_DELAYS = {0, 250, 1000};

  private final Deadlines deadlines;
  private final Loop loop;
  private final Notices notices;
  private final Connection connection;
  private final Answers answers;
  private final Recording recording;
  private final Watchdog watchdog;

  private Engine.State state = Engine.State.EMPTY;
  private ModelOptions wanted; // what should be loaded
  private ModelInfo model; // what is loaded
  private DeviceReadings readings; // the latest; null: none were given
  private long loadId;
  private int failures; // engines that died since the last thing that went well

  EngineLife(Transport.Factory factory, Deadlines deadlines, Loop loop, Notices notices) {
    this.deadlines = deadlines;
    this.loop = loop;
    this.notices = notices;
    connection = new Connection(factory, loop, this);
    answers = new Answers(connection, notices);
    recording = new Recording(connection, notices);
    watchdog = new Watchdog(deadlines, loop, connection, answers, this);
  }

  // ---- what callers ask for ----

  void load(ModelOptions options) {
    failures = 0;
    wanted = options;
    model = null;
    // An engine refuses a load while it works; a new one is quicker than to wait for it.
    if (connection.isOpen() && (isLoading() || answers.isAnswering())) {
      dropConnection();
    }
    if (answers.isAnswering()) {
      answers.finish(Engine.StopReason.CANCELLED);
    }
    beginLoading();
  }

  void ask(Request asked) {
    if (wanted == null) {
      notices.failed(
          asked, new EngineException(EngineException.Code.NOT_LOADED, "no bundle was loaded"));
    } else if (answers.accept(asked)) {
      if (state == Engine.State.READY) {
        sendRequest();
      } else if (state == Engine.State.FAILED) {
        failures = 0;
        beginLoading();
      }
    }
  }

  void cancel(Request asked) {
    answers.cancel(asked);
  }

  void observe(DeviceReadings now) {
    readings = now;
    if (connection.hello() != null) {
      sendReadings();
    }
  }

  void startRecording(Engine.RecordingListener listener) {
    recording.start(listener, model != null);
  }

  void saveRecording(File file) {
    recording.save(file, model != null);
    watchdog.update();
  }

  void close() {
    wanted = null;
    model = null;
    answers.finish(Engine.StopReason.CANCELLED);
    answers.finish(Engine.StopReason.CANCELLED); // the one that waited for it
    recording.fail(new EngineException(EngineException.Code.CANCELLED, "the engine was closed"));
    connection.close();
    watchdog.update();
  }

  // ---- from engine to engine ----

  private void beginLoading() {
    enter(Engine.State.LOADING, null);
    if (!connection.isOpen()) {
      connect();
    } else if (connection.hello() != null) {
      sendLoad();
    }
  }

  private void connect() {
    loadId = 0;
    watchdog.heartbeat().reset();
    try {
      connection.open();
    } catch (IOException e) {
      lost(new EngineException(EngineException.Code.NOT_STARTED, e.getMessage()));
      return;
    }
    watchdog.update();
  }

  private void dropConnection() {
    connection.drop();
    loadId = 0;
  }

  /** The engine died, hung or never came: at most one message is lost, and another is started. */
  private void lost(EngineException reason) {
    dropConnection();
    model = null;
    failures++;
    if (answers.isAnswering()) {
      answers.fail(reason);
    }
    if (recording.isSaving()) {
      recording.fail(reason);
    }
    if (wanted == null || failures > deadlines.mostFailures) {
      giveUp(reason);
      return;
    }
    enter(Engine.State.RESTARTING, reason);
    loop.later(
        new Runnable() {
          @Override
          public void run() {
            if (!connection.isOpen() && wanted != null && state == Engine.State.RESTARTING) {
              connect();
            }
          }
        },
        RESTART_DELAYS[Math.min(failures, RESTART_DELAYS.length) - 1]);
  }

  private void giveUp(EngineException reason) {
    enter(Engine.State.FAILED, reason);
    recording.fail(reason);
    while (!answers.isEmpty()) { // and the one that waited for it
      answers.fail(reason);
    }
  }

  private void becomeReady() {
    enter(Engine.State.READY, null);
    if (!answers.isEmpty()) {
      sendRequest();
    }
  }

  private void enter(Engine.State next, EngineException reason) {
    state = next;
    notices.state(next, model, reason);
    watchdog.update();
  }

  // ---- frames ----

  private void sendLoad() {
    loadId = connection.nextId();
    connection.send(Frame.LOAD, Json.with(wanted.toJson(), "id", loadId));
  }

  private void sendRequest() {
    if (answers.send(model)) {
      enter(Engine.State.ANSWERING, null);
    }
  }

  private void sendReadings() {
    connection.send(Frame.THERMAL, readings.toJson());
  }

  @Override
  public void onEnd(String why) {
    lost(new EngineException(EngineException.Code.CRASHED, why));
  }

  @Override
  public void onFrame(Frame frame) {
    JSONObject body = frame.body;
    switch (frame.type) {
      case Frame.HELLO_BACK:
        connection.setHello(body);
        if (readings != null) {
          sendReadings();
        }
        if (wanted != null) {
          sendLoad();
        }
        break;
      case Frame.LOADED:
        if (isLoading() && body.optLong("id") == loadId) {
          loadId = 0;
          model = new ModelInfo(connection.hello(), body);
          recording.record();
          becomeReady();
        }
        break;
      case Frame.PONG:
        watchdog.heartbeat().pong(body);
        break;
      case Frame.TRACED:
        recording.handleTraced(body);
        watchdog.update();
        break;
      case Frame.ERROR:
        handleError(body);
        break;
      default:
        if (answers.isAnswering(body.optLong("id")) && answers.handle(frame)) {
          failures = 0;
          becomeReady();
        }
    }
  }

  private void handleError(JSONObject body) {
    EngineException reason =
        new EngineException(
            EngineException.codeOf(body.optString("code")), body.optString("message"));
    long id = body.optLong("id");
    if (body.optBoolean("fatal")) {
      lost(reason);
    } else if (isLoading() && id == loadId) {
      loadId = 0;
      giveUp(reason);
    } else if (answers.isAnswering(id)) {
      answers.fail(reason);
      becomeReady();
    } else if (recording.owns(id)) {
      recording.fail(reason);
      watchdog.update();
    }
  }

  // ---- the watchdog ----

  @Override
  public boolean owesSomething() {
    boolean owes =
        connection.hello() == null
            || isLoading()
            || answers.isAnswering()
            || recording.isSaving();
    return connection.isOpen() && owes;
  }

  @Override
  public boolean isLoading() {
    return loadId != 0;
  }

  @Override
  public void onHung(String complaint) {
    lost(new EngineException(EngineException.Code.HUNG, complaint));
  }
}
