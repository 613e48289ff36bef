package com.endpoint.sapwood;

import android.app.Application;
import android.content.Context;

/** Holds what outlives an activity: the conversation, an import and a recording. */
public final class SapwoodApplication extends Application {
  private Settings settings;
  private Models models;
  private ChatSession session;
  private TraceRecorder trace;

  public static SapwoodApplication of(Context context) {
    return (SapwoodApplication) context.getApplicationContext();
  }

  public Settings settings() {
    if (settings == null) {
      settings = new Settings(this);
    }
    return settings;
  }

  public Models models() {
    if (models == null) {
      models = new Models(this, settings());
    }
    return models;
  }

  public ChatSession session() {
    if (session == null) {
      session = new ChatSession(this, settings(), models());
    }
    return session;
  }

  public TraceRecorder trace() {
    if (trace == null) {
      trace = new TraceRecorder(this, session());
    }
    return trace;
  }
}
