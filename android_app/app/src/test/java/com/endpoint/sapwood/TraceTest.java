package com.endpoint.sapwood;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Activity;
import android.content.Intent;
import android.net.Uri;
import android.view.MenuItem;
import android.widget.Toolbar;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.android.controller.ActivityController;
import org.robolectric.shadows.ShadowActivity;
import org.robolectric.shadows.ShadowToast;

/** The button that records a trace, over the real engine process. */
@RunWith(RobolectricTestRunner.class)
public class TraceTest {
  private static final Uri PLACE = Uri.parse("content://" + FakeDocuments.AUTHORITY + "/place");

  @Rule public final AppRule app = new AppRule();

  private static TraceRecorder recorder() {
    return AppRule.application().trace();
  }

  private static MenuItem button(ChatActivity chat) {
    Toolbar toolbar = chat.findViewById(R.id.toolbar);
    return toolbar.getMenu().findItem(R.id.menu_trace);
  }

  private static void press(ChatActivity chat) {
    Toolbar toolbar = chat.findViewById(R.id.toolbar);
    assertTrue(toolbar.getMenu().performIdentifierAction(R.id.menu_trace, 0));
  }

  private static void waitFor(TraceRecorder.State state) throws InterruptedException {
    Waiting.until(state.name(), () -> recorder().state() == state);
  }

  /** Records in the middle of an answer, and waits for the question where to keep it. */
  private static ShadowActivity.IntentForResult record(ChatActivity chat) throws Exception {
    AppRule.application().settings().setLength(128);
    AppRule.session().send("Why are leaves green?");
    Waiting.until("text", () -> AppRule.session().messages().get(1).text.length() > 0);
    assertEquals(chat.getString(R.string.trace_record), button(chat).getTitle());
    press(chat);
    assertEquals(chat.getString(R.string.trace_stop), button(chat).getTitle());
    assertEquals(chat.getString(R.string.trace_recording), ShadowToast.getTextOfLatestToast());
    Waiting.until("the end of the answer", () -> !AppRule.session().isAnswering());
    press(chat);
    waitFor(TraceRecorder.State.ASKED);
    return shadowOf(chat).getNextStartedActivityForResult();
  }

  private static File[] leftOver() {
    return new File(AppRule.application().getCacheDir(), "traces").listFiles();
  }

  @Test
  public void aTraceIsRecordedWhileAnsweringAndKeptWhereAPersonWants() throws Exception {
    ChatActivity chat = app.openChat().get();
    ShadowActivity.IntentForResult asked = record(chat);
    assertEquals(Intent.ACTION_CREATE_DOCUMENT, asked.intent.getAction());
    String name = asked.intent.getStringExtra(Intent.EXTRA_TITLE);
    assertTrue(name, name.matches("sapwood-\\d{8}-\\d{6}\\.perfetto-trace"));
    ByteArrayOutputStream kept = new ByteArrayOutputStream();
    shadowOf(chat.getContentResolver()).registerOutputStream(PLACE, kept);
    Intent picked = new Intent().setData(PLACE);
    shadowOf(chat).receiveResult(asked.intent, Activity.RESULT_OK, picked);
    waitFor(TraceRecorder.State.IDLE);
    String held = new String(kept.toByteArray(), StandardCharsets.ISO_8859_1);
    assertTrue(held.contains("Target_Verify"));
    assertFalse(held.contains("leaves"));
    String said = ShadowToast.getTextOfLatestToast();
    assertTrue(said, said.matches(".*\\d\\d.*"));
    assertEquals(0, leftOver().length);
    assertEquals(chat.getString(R.string.trace_record), button(chat).getTitle());
  }

  @Test
  public void aPersonWhoPicksNoPlaceWantsNoTrace() throws Exception {
    ChatActivity chat = app.openChat().get();
    ShadowActivity.IntentForResult asked = record(chat);
    shadowOf(chat).receiveResult(asked.intent, Activity.RESULT_CANCELED, null);
    assertEquals(TraceRecorder.State.IDLE, recorder().state());
    assertEquals(0, leftOver().length);
  }

  @Test
  public void aPlaceThatCannotBeWrittenToIsSaid() throws Exception {
    ChatActivity chat = app.openChat().get();
    ShadowActivity.IntentForResult asked = record(chat);
    OutputStream full =
        new OutputStream() {
          @Override
          public void write(int one) throws IOException {
            throw new IOException("no space left");
          }
        };
    shadowOf(chat.getContentResolver()).registerOutputStream(PLACE, full);
    Intent picked = new Intent().setData(PLACE);
    shadowOf(chat).receiveResult(asked.intent, Activity.RESULT_OK, picked);
    waitFor(TraceRecorder.State.IDLE);
    String why = chat.getString(R.string.trace_not_written);
    assertEquals(chat.getString(R.string.trace_failed, why), ShadowToast.getTextOfLatestToast());
  }

  @Test
  public void aRecordingOutlivesTheScreenAndAnEngineThatIsKilled() throws Exception {
    ActivityController<ChatActivity> controller = app.openChat();
    press(controller.get());
    int killed = AppRule.session().model().processId;
    String[] command = {"kill", "-9", String.valueOf(killed)};
    assertEquals(0, new ProcessBuilder(command).start().waitFor());
    Waiting.until(
        "another engine",
        () -> AppRule.session().model() != null && AppRule.session().model().processId != killed);
    controller.recreate();
    ChatActivity chat = controller.get();
    assertEquals(chat.getString(R.string.trace_stop), button(chat).getTitle());
    press(chat);
    waitFor(TraceRecorder.State.ASKED);
    assertTrue(leftOver()[0].length() > 0);
    recorder().discard();
  }

  @Test
  public void withoutAModelThereIsNothingToRecord() {
    ChatActivity chat = app.open(ChatActivity.class);
    press(chat);
    assertEquals(TraceRecorder.State.IDLE, recorder().state());
    String why = chat.getString(R.string.problem_not_loaded);
    assertEquals(chat.getString(R.string.trace_failed, why), ShadowToast.getTextOfLatestToast());
  }
}
