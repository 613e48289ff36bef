package com.endpoint.sapwood.engine;

import java.io.File;
import org.json.JSONObject;

/** The trace that is being recorded or saved, if one is. On the loop only. */
final class Recording {
  private static final int EVENTS = 1 << 18; // a step makes about ten: some minutes of an answer

  private final Connection connection;
  private final Notices notices;
  private Engine.RecordingListener listener; // null: nothing is being recorded
  private File file; // into which it is being written
  private long id; // of the latest request

  Recording(Connection connection, Notices notices) {
    this.connection = connection;
    this.notices = notices;
  }

  boolean isSaving() {
    return file != null;
  }

  void start(Engine.RecordingListener heard, boolean loaded) {
    fail(new EngineException(EngineException.Code.CANCELLED, "another recording was begun"));
    listener = heard;
    if (loaded) {
      record();
    }
  }

  /** Records in what is loaded now. */
  void record() {
    if (listener != null && !isSaving()) {
      id = connection.nextId();
      connection.send(Frame.TRACE, Json.object("id", id, "events", EVENTS));
    }
  }

  void save(File target, boolean loaded) {
    if (listener == null || isSaving()) {
      return;
    }
    if (!loaded) {
      fail(new EngineException(EngineException.Code.NOT_LOADED, "no bundle is loaded"));
      return;
    }
    file = target;
    id = connection.nextId();
    connection.send(Frame.TRACE, Json.object("id", id, "file", target.getPath()));
  }

  boolean owns(long requestId) {
    return listener != null && requestId == id;
  }

  void handleTraced(JSONObject body) {
    if (owns(body.optLong("id")) && isSaving()) {
      notices.saved(listener, file, body.optInt("events"), body.optLong("lost"));
      forget();
    }
  }

  void fail(EngineException reason) {
    if (listener != null) {
      notices.notSaved(listener, reason);
      forget();
    }
  }

  private void forget() {
    listener = null;
    file = null;
  }
}
