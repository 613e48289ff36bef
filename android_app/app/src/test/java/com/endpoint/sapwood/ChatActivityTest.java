package com.endpoint.sapwood;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.view.View;
import android.widget.EditText;
import android.widget.ListView;
import android.widget.TextView;
import com.endpoint.sapwood.engine.Engine;
import com.endpoint.sapwood.engine.GenerateOptions.Mode;
import com.endpoint.sapwood.engine.TreeSnapshot;
import java.util.Set;
import java.util.TreeSet;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ActivityController;

/** The real screen over the real engine process. */
@RunWith(RobolectricTestRunner.class)
public class ChatActivityTest {
  private static final String LONG = "Write a very long story about an old forest.";

  @Rule public final AppRule app = new AppRule();

  private static void say(ChatActivity chat, String question) {
    ((EditText) chat.findViewById(R.id.message)).setText(question);
    chat.findViewById(R.id.send).performClick();
  }

  private static ChatMessage last() {
    return AppRule.session().messages().get(AppRule.session().messages().size() - 1);
  }

  private static void waitForAnswer() throws InterruptedException {
    Waiting.until("the end of the answer", () -> !AppRule.session().isAnswering());
  }

  private static void waitForText() throws InterruptedException {
    Waiting.until("some text", () -> last().text.length() > 20);
  }

  private static String shown(ChatActivity chat, int id) {
    return ((TextView) chat.findViewById(id)).getText().toString();
  }

  private static int hits() {
    TreeSnapshot tree = AppRule.session().tree();
    return tree == null ? 0 : tree.acceptedCount();
  }

  /** The text of a row as it stands on the screen. */
  private static TextView row(ChatActivity chat, int position, int id) {
    ListView list = chat.findViewById(R.id.messages);
    AppRule.idle();
    return list.getChildAt(position - list.getFirstVisiblePosition()).findViewById(id);
  }

  /** Notes how long the answer was whenever it had grown, and the largest tree. */
  private static final class Lengths implements ChatSession.Observer {
    private final Set<Integer> lengths;
    private int largestTree; // the last step's may be empty

    Lengths(Set<Integer> lengths) {
      this.lengths = lengths;
    }

    @Override
    public void onSessionChanged() {}

    @Override
    public void onAnswerGrew() {
      lengths.add(last().text.length());
    }

    @Override
    public void onMetricsChanged() {
      TreeSnapshot tree = AppRule.session().tree();
      largestTree = Math.max(largestTree, tree == null ? 0 : tree.nodes.size());
    }
  }

  @Test
  public void anAnswerStreamsOntoTheScreen() throws Exception {
    RuntimeEnvironment.setQualifiers(AppRule.PHONE);
    ChatActivity chat = app.openChat().get();
    assertEquals(View.VISIBLE, chat.findViewById(R.id.welcome).getVisibility());
    AppRule.application().settings().setLength(128);
    Set<Integer> lengths = new TreeSet<>();
    Lengths observer = new Lengths(lengths);
    AppRule.session().observe(observer);
    say(chat, "Why are leaves green?");
    waitForText();
    assertEquals(View.GONE, chat.findViewById(R.id.welcome).getVisibility());
    assertEquals("", shown(chat, R.id.message));
    Waiting.until(
        "a guess that came true, or the end",
        () -> (last().text.length() > 300 && hits() > 0) || !AppRule.session().isAnswering());
    Pictures.take(chat, "answering");
    waitForAnswer();
    assertTrue("came in pieces: " + lengths, lengths.size() > 3);
    assertEquals(last().text.toString(), row(chat, 1, R.id.item_text).getText().toString());
    assertTrue(AppRule.session().stats().meanAcceptedLength >= 1);
    assertTrue(observer.largestTree > 0);
    MetricStrip strip = chat.findViewById(R.id.strip);
    String heat = strip.getChildAt(3).getContentDescription().toString();
    assertTrue(heat, heat.contains("31.2"));
  }

  @Test
  public void theModeChangesNothingInTheText() throws Exception {
    ChatActivity chat = app.openChat().get();
    AppRule.application().settings().setLength(64);
    say(chat, "Why are leaves green?");
    waitForAnswer();
    String dynamic = last().text.toString();
    AppRule.session().startAnew();
    AppRule.application().settings().setMode(Mode.PLAIN);
    say(chat, "Why are leaves green?");
    waitForAnswer();
    assertEquals(dynamic, last().text.toString());
  }

  @Test
  public void stopEndsTheAnswerAndKeepsWhatWasSaid() throws Exception {
    ChatActivity chat = app.openChat().get();
    AppRule.application().settings().setLength(1536);
    say(chat, LONG);
    waitForText();
    View send = chat.findViewById(R.id.send);
    assertEquals(chat.getString(R.string.stop), send.getContentDescription());
    send.performClick();
    waitForAnswer();
    assertEquals(ChatMessage.Status.STOPPED, last().status);
    assertEquals(chat.getString(R.string.answer_stopped), row(chat, 1, R.id.item_note).getText());
    assertEquals(chat.getString(R.string.send), send.getContentDescription());
    AppRule.application().settings().setLength(64);
    say(chat, "And now in one sentence.");
    waitForAnswer();
    assertEquals(4, AppRule.session().messages().size());
    assertNotEquals(ChatMessage.Status.FAILED, last().status);
  }

  @Test
  public void anEngineThatIsKilledCostsOneMessageAndTryAgainBringsIt() throws Exception {
    RuntimeEnvironment.setQualifiers(AppRule.PHONE);
    ChatActivity chat = app.openChat().get();
    AppRule.application().settings().setLength(64);
    say(chat, "Name three trees.");
    waitForAnswer();
    String first = last().text.toString();
    AppRule.application().settings().setLength(1536);
    int killed = AppRule.session().model().processId;
    say(chat, LONG);
    waitForText();
    String[] command = {"kill", "-9", String.valueOf(killed)};
    assertEquals(0, new ProcessBuilder(command).start().waitFor());
    waitForAnswer();
    assertEquals(ChatMessage.Status.FAILED, last().status);
    assertFalse(chat.isFinishing());
    assertEquals(first, AppRule.session().messages().get(1).text.toString());
    Pictures.take(chat, "crash");
    Waiting.until("another engine", () -> AppRule.session().state() == Engine.State.READY);
    assertNotEquals(killed, AppRule.session().model().processId);
    assertEquals(View.GONE, chat.findViewById(R.id.banner).getVisibility());

    AppRule.application().settings().setLength(64);
    View retry = row(chat, 3, R.id.item_retry);
    assertEquals(View.VISIBLE, retry.getVisibility());
    retry.performClick();
    waitForAnswer();
    assertEquals(4, AppRule.session().messages().size());
    assertEquals(ChatMessage.Status.CUT, last().status);
  }

  @Test
  public void rotatingInMidAnswerLosesNothing() throws Exception {
    ActivityController<ChatActivity> controller = app.openChat();
    ChatActivity upright = controller.get();
    AppRule.application().settings().setLength(256);
    say(upright, LONG);
    waitForText();
    ((EditText) upright.findViewById(R.id.message)).setText("half a thought");
    RuntimeEnvironment.setQualifiers("+w851dp-h393dp-land");
    controller.recreate();
    ChatActivity lying = controller.get();
    assertNotEquals(upright, lying);
    assertEquals("half a thought", shown(lying, R.id.message));
    assertTrue(AppRule.session().isAnswering());
    int before = last().text.length();
    Waiting.until("more text", () -> last().text.length() > before);
    waitForAnswer();
    assertEquals(ChatMessage.Status.CUT, last().status);
    AppRule.idle();
    assertEquals(last().text.toString(), row(lying, 1, R.id.item_text).getText().toString());
    Pictures.take(lying, "landscape");
  }

  @Test
  public void aNewConversationForgetsTheOldOneEvenWhileItIsAnswered() throws Exception {
    ChatActivity chat = app.openChat().get();
    AppRule.application().settings().setLength(1536);
    say(chat, LONG);
    waitForText();
    AppRule.session().startAnew();
    assertEquals(0, AppRule.session().messages().size());
    AppRule.application().settings().setLength(64);
    say(chat, "Name three trees.");
    waitForAnswer();
    assertEquals(2, AppRule.session().messages().size());
    assertNotEquals(ChatMessage.Status.FAILED, last().status);
    assertNotEquals(ChatMessage.Status.STOPPED, last().status);
  }

  @Test
  public void withoutAModelTheAppAsksForOne() {
    ChatActivity chat = app.open(ChatActivity.class);
    assertEquals(View.VISIBLE, chat.findViewById(R.id.banner).getVisibility());
    assertEquals(chat.getString(R.string.banner_no_model), shown(chat, R.id.banner_text));
    say(chat, "Is anyone there?");
    assertEquals(ChatMessage.Status.FAILED, last().status);
    chat.findViewById(R.id.banner_action).performClick();
    assertNotNull(shadowOf(chat).getNextStartedActivity());
  }
}
