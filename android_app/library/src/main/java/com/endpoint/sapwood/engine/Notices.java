package com.endpoint.sapwood.engine;

import java.io.File;
import java.util.concurrent.Executor;

/** Tells listeners what happened, on their executor, in order. */
final class Notices {
  private final Executor callbacks;
  private final Engine.Listener listener;

  Notices(Executor callbacks, Engine.Listener listener) {
    this.callbacks = callbacks;
    this.listener = listener;
  }

  void state(final Engine.State state, final ModelInfo model, final EngineException reason) {
    callbacks.execute(
        new Runnable() {
          @Override
          public void run() {
            listener.onStateChanged(state, model, reason);
          }
        });
  }

  void reading(final Request request) {
    final int promptTokens = request.unreadTokens;
    callbacks.execute(
        new Runnable() {
          @Override
          public void run() {
            request.listener.onReading(promptTokens);
          }
        });
  }

  void text(final Request request, final String text) {
    callbacks.execute(
        new Runnable() {
          @Override
          public void run() {
            request.listener.onText(text);
          }
        });
  }

  void stats(final Request request) {
    final Stats stats = request.stats;
    callbacks.execute(
        new Runnable() {
          @Override
          public void run() {
            request.listener.onStats(stats);
          }
        });
  }

  void tree(final Request request, final TreeSnapshot tree) {
    callbacks.execute(
        new Runnable() {
          @Override
          public void run() {
            request.listener.onTree(tree);
          }
        });
  }

  void done(final Request request, final Engine.StopReason reason) {
    final Stats stats = request.stats;
    callbacks.execute(
        new Runnable() {
          @Override
          public void run() {
            request.listener.onDone(reason, stats);
          }
        });
  }

  void failed(final Request request, final EngineException reason) {
    callbacks.execute(
        new Runnable() {
          @Override
          public void run() {
            request.listener.onFailed(reason);
          }
        });
  }

  void saved(
      final Engine.RecordingListener heard, final File file, final int events, final long lost) {
    callbacks.execute(
        new Runnable() {
          @Override
          public void run() {
            heard.onSaved(file, events, lost);
          }
        });
  }

  void notSaved(final Engine.RecordingListener heard, final EngineException reason) {
    callbacks.execute(
        new Runnable() {
          @Override
          public void run() {
            heard.onFailed(reason);
          }
        });
  }
}
