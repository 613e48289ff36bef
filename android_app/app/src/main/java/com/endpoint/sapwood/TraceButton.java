package com.endpoint.sapwood;

import android.app.Activity;
import android.content.ActivityNotFoundException;
import android.content.Intent;
import android.net.Uri;
import android.view.MenuItem;
import android.widget.Toast;
import com.endpoint.sapwood.engine.EngineException;

/** The button in a toolbar that begins and ends a recording, and asks where to keep it. */
final class TraceButton implements TraceRecorder.Observer {
  static final int PICK_PLACE = 1;

  private final Activity activity;
  private final MenuItem button;
  private final TraceRecorder recorder;

  TraceButton(Activity activity, MenuItem button, TraceRecorder recorder) {
    this.activity = activity;
    this.button = button;
    this.recorder = recorder;
  }

  void start() {
    recorder.observe(this);
    onTraceChanged();
  }

  void stop() {
    recorder.forget(this);
  }

  void press() {
    recorder.toggle();
    if (recorder.state() == TraceRecorder.State.RECORDING) {
      say(activity.getString(R.string.trace_recording));
    }
  }

  @Override
  public void onTraceChanged() {
    boolean recording = recorder.state() == TraceRecorder.State.RECORDING;
    button.setIcon(recording ? R.drawable.ic_recording : R.drawable.ic_record);
    button.setTitle(recording ? R.string.trace_stop : R.string.trace_record);
    if (recorder.state() == TraceRecorder.State.WRITTEN) {
      askForPlace();
    }
  }

  private void askForPlace() {
    Intent intent = new Intent(Intent.ACTION_CREATE_DOCUMENT);
    intent.addCategory(Intent.CATEGORY_OPENABLE);
    intent.setType("application/octet-stream");
    intent.putExtra(Intent.EXTRA_TITLE, recorder.ask());
    try {
      activity.startActivityForResult(intent, PICK_PLACE);
    } catch (ActivityNotFoundException e) { // a device without the system's file picker
      recorder.discard();
      onTraceFailed(null);
    }
  }

  /** What was picked, or that nothing was. */
  void onResult(int result, Intent data) {
    Uri place = data == null ? null : data.getData();
    if (recorder.state() != TraceRecorder.State.ASKED) {
      return; // the app was ended meanwhile, and the trace with it
    }
    if (result == Activity.RESULT_OK && place != null) {
      recorder.keepAt(activity.getContentResolver(), place);
    } else {
      recorder.discard();
    }
  }

  @Override
  public void onTraceKept(int events) {
    say(activity.getResources().getQuantityString(R.plurals.trace_kept, events, events));
  }

  @Override
  public void onTraceFailed(EngineException problem) {
    String why =
        problem == null
            ? activity.getString(R.string.trace_not_written)
            : Words.of(activity, problem);
    say(activity.getString(R.string.trace_failed, why));
  }

  private void say(String text) {
    Toast.makeText(activity, text, Toast.LENGTH_LONG).show();
  }
}
