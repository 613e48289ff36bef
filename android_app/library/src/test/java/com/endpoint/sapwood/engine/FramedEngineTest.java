package com.endpoint.sapwood.engine;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.json.JSONArray;
import org.json.JSONObject;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

/** The client of the protocol, against an engine whose every misbehaviour is at hand. */
@RunWith(RobolectricTestRunner.class)
public class FramedEngineTest {
  private static final List<Message> QUESTION =
      Collections.singletonList(new Message(Message.Role.USER, "Why?"));

  private final FakeEngine.Starter starter = new FakeEngine.Starter();
  private final Log log = new Log();
  private Engine engine;
  private FakeEngine fake;

  @Before
  public void startAnEngine() {
    engine = new FramedEngine(starter, new Deadlines(20), Runnable::run, log);
  }

  @After
  public void endIt() {
    engine.close();
  }

  private void becomeReady() throws Exception {
    engine.load(new ModelOptions(new File("bundle")));
    fake = starter.next();
    log.expect("LOADING", "READY");
  }

  private long ask() throws Exception {
    engine.generate(QUESTION, new GenerateOptions(), log);
    long id = fake.take(Frame.GENERATE).getLong("id");
    log.expect("ANSWERING");
    return id;
  }

  @Test
  public void anAnswerIsStreamedInOrder() throws Exception {
    becomeReady();
    long id = ask();
    fake.send(Frame.READING, "id", id, "prompt_tokens", 7);
    fake.send(Frame.TEXT, "id", id, "text", "Because");
    JSONArray nodes = new JSONArray();
    nodes.put(Json.object("text", " it", "parent", -1, "depth", 1, "accepted", true));
    nodes.put(Json.object("text", " is", "parent", 0, "depth", 2, "accepted", false));
    nodes.put(Json.object("text", " lost", "parent", 9, "depth", 3, "accepted", true));
    fake.send(Frame.TREE, "id", id, "step", 1, "nodes", nodes);
    fake.send(Frame.STATS, "id", id, "emitted_tokens", 2);
    fake.send(200, "id", id, "what", "a type of a later version");
    fake.send(Frame.TEXT, "id", id + 1, "text", "of nobody");
    fake.send(Frame.DONE, "id", id, "stop_reason", "eos");
    log.expect("reading 7", "text Because", "tree 2 1", "stats 2", "done EOS", "READY");
  }

  @Test
  public void theWholeConversationIsSentEveryTime() throws Exception {
    becomeReady();
    List<Message> conversation =
        Arrays.asList(
            new Message(Message.Role.USER, "One \ud83c"), // half of a character
            new Message(Message.Role.ASSISTANT, "Two"),
            new Message(Message.Role.USER, "Three"));
    engine.generate(conversation, new GenerateOptions(), log);
    JSONObject request = fake.take(Frame.GENERATE);
    JSONArray messages = request.getJSONArray("messages");
    assertEquals(3, messages.length());
    assertEquals("One \ufffd", messages.getJSONObject(0).getString("content"));
    assertEquals("assistant", messages.getJSONObject(1).getString("role"));
    assertEquals("dynamic", request.getString("mode"));
  }

  @Test
  public void aRequestWaitsForTheBundle() throws Exception {
    starter.loads = false;
    engine.load(new ModelOptions(new File("bundle")));
    fake = starter.next();
    long loadId = fake.take(Frame.LOAD).getLong("id");
    engine.generate(QUESTION, new GenerateOptions(), log);
    fake.send(Frame.LOADED, "id", loadId, "chat", false);
    log.expect("LOADING", "READY", "ANSWERING");
    assertEquals("Why?", fake.take(Frame.GENERATE).getString("prompt"));
  }

  @Test
  public void aSecondRequestIsRefusedWhileOneRuns() throws Exception {
    becomeReady();
    long id = ask();
    engine.generate(QUESTION, new GenerateOptions(), log);
    log.expect("failed BUSY");
    fake.send(Frame.DONE, "id", id, "stop_reason", "length");
    log.expect("done LENGTH", "READY");
  }

  @Test
  public void aCancelledAnswerEndsAndTheNextOneFollowsIt() throws Exception {
    becomeReady();
    Engine.Answer answer = engine.generate(QUESTION, new GenerateOptions(), log);
    long id = fake.take(Frame.GENERATE).getLong("id");
    log.expect("ANSWERING");
    answer.cancel();
    assertEquals(id, fake.take(Frame.CANCEL).getLong("id"));
    engine.generate(QUESTION, new GenerateOptions(), log); // before the first has ended
    fake.send(Frame.DONE, "id", id, "stop_reason", "cancelled");
    log.expect("done CANCELLED", "READY", "ANSWERING");
    assertTrue(fake.take(Frame.GENERATE).getLong("id") > id);
  }

  @Test
  public void aCrashCostsOneMessageAndTheBundleIsLoadedAgain() throws Exception {
    becomeReady();
    long id = ask();
    fake.send(Frame.TEXT, "id", id, "text", "Be");
    fake.die();
    log.expect("text Be", "failed CRASHED", "RESTARTING CRASHED");
    fake = starter.next();
    log.expect("READY");
    id = ask();
    fake.send(Frame.DONE, "id", id, "stop_reason", "eos");
    log.expect("done EOS", "READY");
  }

  @Test
  public void aCrashInTheMiddleOfAFrameIsACrash() throws Exception {
    becomeReady();
    ask();
    byte[] frame = new Frame(Frame.TEXT, Json.object("id", 2, "text", "Because")).toBytes();
    fake.write(Arrays.copyOf(frame, frame.length - 3));
    fake.die();
    log.expect("failed CRASHED", "RESTARTING CRASHED", "READY");
  }

  @Test
  public void garbageFromTheEngineEndsItAndAnotherIsStarted() throws Exception {
    becomeReady();
    ask();
    byte[] garbage = new byte[64];
    Arrays.fill(garbage, (byte) 0xEE);
    fake.write(garbage);
    log.expect("failed CRASHED", "RESTARTING CRASHED", "READY");
    assertTrue(fake.destroyed);
  }

  @Test
  public void anEngineThatAnswersNoPingIsReplaced() throws Exception {
    becomeReady();
    starter.pongs = false;
    ask();
    log.expect("failed HUNG", "RESTARTING HUNG");
    assertTrue(fake.destroyed);
    starter.pongs = true;
    log.expect("READY");
  }

  @Test
  public void aComputationThatGetsNowhereIsReplaced() throws Exception {
    becomeReady();
    fake.idleMilliseconds = 60_000;
    ask();
    log.expect("failed HUNG", "RESTARTING HUNG", "READY");
  }

  @Test
  public void aLongPromptIsGivenTimeUntilItIsRead() throws Exception {
    becomeReady();
    long id = ask();
    fake.send(Frame.READING, "id", id, "prompt_tokens", 1000);
    log.expect("reading 1000");
    fake.idleMilliseconds = 60_000;
    Thread.sleep(300); // many ticks
    log.expectNothing();
    fake.send(Frame.TEXT, "id", id, "text", "Now");
    log.expect("text Now", "failed HUNG", "RESTARTING HUNG", "READY");
  }

  @Test
  public void anAnswerThatIsNotCancelledInTimeIsEndedByForce() throws Exception {
    becomeReady();
    Engine.Answer answer = engine.generate(QUESTION, new GenerateOptions(), log);
    log.expect("ANSWERING");
    answer.cancel();
    log.expect("done CANCELLED", "RESTARTING HUNG", "READY");
  }

  @Test
  public void anEngineThatNeverGreetsIsGivenUpAfterAFewTries() throws Exception {
    starter.greets = false;
    engine.load(new ModelOptions(new File("bundle")));
    log.expect("LOADING", "RESTARTING HUNG", "RESTARTING HUNG", "RESTARTING HUNG", "FAILED HUNG");
    assertEquals(4, starter.starts.get());
    starter.greets = true;
    engine.generate(QUESTION, new GenerateOptions(), log); // a person tries again
    log.expect("LOADING", "READY", "ANSWERING");
  }

  @Test
  public void aProgramThatCannotBeStartedIsGivenUpAndSaysSo() throws Exception {
    starter.refuses = true;
    engine.load(new ModelOptions(new File("bundle")));
    engine.generate(QUESTION, new GenerateOptions(), log);
    log.skipTo("FAILED NOT_STARTED");
    log.expect("failed NOT_STARTED");
  }

  @Test
  public void aBrokenBundleIsNotTriedAgain() throws Exception {
    starter.loads = false;
    engine.load(new ModelOptions(new File("bundle")));
    fake = starter.next();
    long id = fake.take(Frame.LOAD).getLong("id");
    fake.send(
        Frame.ERROR, "id", id, "code", "corrupt", "message", "weights: too short", "fatal", false);
    log.expect("LOADING", "FAILED CORRUPT");
    log.expectNothing();
    assertEquals(1, starter.starts.get());
  }

  @Test
  public void anEngineOfAnotherVersionIsNotUsed() throws Exception {
    starter.greets = false;
    engine.load(new ModelOptions(new File("bundle")));
    log.expect("LOADING");
    for (int i = 0; i < 4; i++) {
      starter
          .next()
          .send(Frame.ERROR, "id", null, "code", "version", "message", "speaks 2", "fatal", true);
      log.expect(i < 3 ? "RESTARTING VERSION" : "FAILED VERSION");
    }
  }

  @Test
  public void anErrorOfOneAnswerLeavesTheEngineReady() throws Exception {
    becomeReady();
    long id = ask();
    fake.send(Frame.ERROR, "id", id, "code", "invalid_argument", "message", "too long");
    log.expect("failed INVALID_ARGUMENT", "READY");
    ask();
  }

  @Test
  public void aNewLoadReplacesAnEngineThatIsAnswering() throws Exception {
    becomeReady();
    ask();
    FakeEngine old = fake;
    engine.load(new ModelOptions(new File("other")));
    log.expect("done CANCELLED", "LOADING", "READY");
    assertTrue(old.destroyed);
  }

  @Test
  public void aConversationLongerThanAFrameIsRefusedHere() throws Exception {
    becomeReady();
    char[] letters = new char[Frame.MOST_BYTES_TO_ENGINE];
    Arrays.fill(letters, 'a');
    Message message = new Message(Message.Role.USER, new String(letters));
    engine.generate(Collections.singletonList(message), new GenerateOptions(), log);
    log.expect("failed INVALID_ARGUMENT");
    ask();
  }

  @Test
  public void whatTheDeviceSaysIsToldToEveryNewEngine() throws Exception {
    engine.observe(new DeviceReadings(41.5, 2, -0.9, 3.8, null));
    starter.loads = false;
    engine.load(new ModelOptions(new File("bundle")));
    for (int i = 0; i < 2; i++) {
      fake = starter.next();
      JSONObject told = fake.take(Frame.THERMAL);
      assertEquals(41.5, told.getDouble("celsius"), 0);
      assertEquals(2, told.getInt("thermal_status"));
      assertEquals(-0.9, told.getDouble("battery_amperes"), 0);
      assertEquals(3.8, told.getDouble("battery_volts"), 0);
      assertTrue(told.isNull("memory_used"));
      fake.die();
    }
  }

  @Test
  public void aRecordingIsSavedAndTheNextOneBegins() throws Exception {
    becomeReady();
    for (int i = 0; i < 2; i++) {
      engine.startRecording(log);
      JSONObject request = fake.take(Frame.TRACE);
      assertTrue(request.getInt("events") > 0);
      fake.send(Frame.TRACED, "id", request.getLong("id"), "events", 0, "lost", 0);
      engine.saveRecording(new File("folder/some"));
      request = fake.take(Frame.TRACE);
      assertEquals("folder/some", request.getString("file"));
      fake.send(Frame.TRACED, "id", request.getLong("id"), "events", 7, "lost", 2);
      log.expect("saved some 7 2");
    }
    engine.saveRecording(new File("folder/other")); // nothing is being recorded
    log.expectNothing();
  }

  @Test
  public void aRecordingThatCannotBeWrittenSaysWhy() throws Exception {
    becomeReady();
    engine.startRecording(log);
    fake.take(Frame.TRACE);
    engine.saveRecording(new File("some"));
    long id = fake.take(Frame.TRACE).getLong("id");
    fake.send(Frame.ERROR, "id", id, "code", "invalid_argument", "message", "the disk is full");
    log.expect("failed INVALID_ARGUMENT");
    ask(); // nothing else is the matter
  }

  @Test
  public void aRecordingGoesOnInTheEngineThatReplacesALostOne() throws Exception {
    engine.startRecording(log); // and waits for a bundle
    becomeReady();
    fake.take(Frame.TRACE);
    fake.die();
    log.expect("RESTARTING CRASHED", "READY");
    fake = starter.next();
    fake.take(Frame.TRACE);
    engine.saveRecording(new File("some"));
    fake.take(Frame.TRACE);
    fake.die(); // in the middle of it
    log.expect("failed CRASHED", "RESTARTING CRASHED", "READY");
    assertEquals(3, starter.starts.get());
    starter.next();
    engine.startRecording(log); // nothing is left of the former one
    log.expectNothing();
  }

  @Test
  public void anEngineThatHangsWhileItWritesARecordingIsReplaced() throws Exception {
    becomeReady();
    starter.pongs = false;
    engine.startRecording(log);
    engine.saveRecording(new File("some"));
    log.expect("failed HUNG", "RESTARTING HUNG");
  }

  @Test
  public void closingEndsARecordingToo() throws Exception {
    becomeReady();
    engine.startRecording(log);
    engine.close();
    log.expect("failed CANCELLED");
    engine.observe(new DeviceReadings(20.0, 0, null, null, null)); // to nobody
    engine.startRecording(log);
    engine.saveRecording(new File("some"));
    log.expect("failed NOT_LOADED");
  }

  @Test
  public void closingEndsTheAnswerAndTheEngine() throws Exception {
    becomeReady();
    ask();
    engine.close();
    log.expect("done CANCELLED");
    fake.take(Frame.SHUTDOWN);
    log.expectNothing();
  }
}
