package com.endpoint.sapwood;

import android.content.ContentResolver;
import android.content.Context;
import android.net.Uri;
import android.os.Handler;
import android.os.Looper;
import com.endpoint.sapwood.engine.Engine;
import com.endpoint.sapwood.engine.EngineException;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Locale;

/**
 * A trace from the button that begins it to the place where a person keeps it. Outlives activities;
 * main thread only.
 */
public final class TraceRecorder implements Engine.RecordingListener {
  /** How far a trace is. */
  public enum State {
    IDLE,
    RECORDING,
    /** The engine writes it. */
    WRITING,
    /** Written; where it shall be kept has not been asked yet. */
    WRITTEN,
    /** That is being asked. */
    ASKED
  }

  /** Hears what becomes of it. */
  public interface Observer {
    void onTraceChanged();

    void onTraceKept(int events);

    /** @param problem null: the place that was chosen cannot be written to */
    void onTraceFailed(EngineException problem);
  }

  private static final String SUFFIX = ".perfetto-trace";

  private final File folder;
  private final ChatSession session;
  private final Handler main = new Handler(Looper.getMainLooper());
  private final List<Observer> observers = new ArrayList<>();
  private State state = State.IDLE;
  private File written;
  private int events;

  TraceRecorder(Context context, ChatSession session) {
    folder = new File(context.getCacheDir(), "traces");
    this.session = session;
  }

  public void observe(Observer observer) {
    observers.add(observer);
  }

  public void forget(Observer observer) {
    observers.remove(observer);
  }

  public State state() {
    return state;
  }

  /** Begins a recording, or ends the one that runs. */
  public void toggle() {
    Engine engine = session.engine();
    if (state == State.IDLE && engine == null) {
      failed(new EngineException(EngineException.Code.NOT_LOADED, ""));
    } else if (state == State.IDLE) {
      enter(State.RECORDING);
      engine.startRecording(this);
    } else if (state == State.RECORDING) {
      enter(State.WRITING);
      folder.mkdirs();
      engine.saveRecording(new File(folder, "latest" + SUFFIX));
    }
  }

  /** What the file may be called, for the one who is asked where to keep it. */
  public String ask() {
    enter(State.ASKED);
    String now = new SimpleDateFormat("yyyyMMdd-HHmmss", Locale.ROOT).format(new Date());
    return "sapwood-" + now + SUFFIX;
  }

  /** Copies it, in the background, to where a person wants it. */
  public void keepAt(final ContentResolver resolver, final Uri place) {
    final File source = written;
    new Thread("sapwood-trace") {
      @Override
      public void run() {
        final boolean copied = copy(source, resolver, place);
        main.post(
            new Runnable() {
              @Override
              public void run() {
                end(copied);
              }
            });
      }
    }.start();
  }

  /** Nobody wants it. */
  public void discard() {
    written.delete();
    enter(State.IDLE);
  }

  private static boolean copy(File source, ContentResolver resolver, Uri place) {
    try (OutputStream out = resolver.openOutputStream(place)) {
      if (out == null) {
        return false;
      }
      Files.copy(source.toPath(), out);
      return true;
    } catch (IOException | SecurityException e) { // the disk is full, or the place has gone
      return false;
    }
  }

  private void end(boolean copied) {
    discard();
    for (Observer observer : new ArrayList<>(observers)) {
      if (copied) {
        observer.onTraceKept(events);
      } else {
        observer.onTraceFailed(null);
      }
    }
  }

  @Override
  public void onSaved(File file, int count, long lost) {
    written = file;
    events = count;
    enter(State.WRITTEN);
  }

  @Override
  public void onFailed(EngineException reason) {
    enter(State.IDLE);
    failed(reason);
  }

  private void failed(EngineException reason) {
    for (Observer observer : new ArrayList<>(observers)) {
      observer.onTraceFailed(reason);
    }
  }

  private void enter(State next) {
    state = next;
    for (Observer observer : new ArrayList<>(observers)) {
      observer.onTraceChanged();
    }
  }
}
