package com.endpoint.sapwood.engine;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertTrue;

import com.endpoint.sapwood.engine.GenerateOptions.Mode;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.ParameterizedRobolectricTestRunner;
import org.robolectric.ParameterizedRobolectricTestRunner.Parameters;

/** This machine's build of the engine: as a process, and as a library. */
@RunWith(ParameterizedRobolectricTestRunner.class)
public class RealEngineTest {
  private static final List<Message> QUESTION =
      Collections.singletonList(new Message(Message.Role.USER, "Why are leaves green?"));

  private static String firstHostSaid; // with the same bundle both hosts say the same

  /** One answer as it comes. */
  private static final class Heard implements Engine.AnswerListener {
    final StringBuilder text = new StringBuilder();
    final BlockingQueue<String> pieces = new LinkedBlockingQueue<>();
    final BlockingQueue<String> end = new LinkedBlockingQueue<>();
    volatile Stats stats;
    volatile int largestTree;

    @Override
    public void onReading(int promptTokens) {}

    @Override
    public void onText(String piece) {
      text.append(piece);
      pieces.add(piece);
    }

    @Override
    public void onStats(Stats now) {}

    @Override
    public void onTree(TreeSnapshot now) {
      largestTree = Math.max(largestTree, now.nodes.size());
    }

    @Override
    public void onDone(Engine.StopReason reason, Stats last) {
      stats = last;
      end.add(reason.name());
    }

    @Override
    public void onFailed(EngineException reason) {
      end.add(reason.code().name());
    }

    void waitForText() throws InterruptedException {
      assertTrue("no text came", pieces.poll(60, TimeUnit.SECONDS) != null);
    }

    String waitForEnd() throws InterruptedException {
      return String.valueOf(end.poll(60, TimeUnit.SECONDS));
    }
  }

  private final boolean asProcess;
  private final BlockingQueue<Object> states = new LinkedBlockingQueue<>();
  private Engine engine;
  private volatile ModelInfo model;

  public RealEngineTest(String host) {
    asProcess = host.equals("process");
  }

  @Parameters(name = "{0}")
  public static List<Object[]> hosts() {
    return Arrays.asList(new Object[] {"process"}, new Object[] {"library"});
  }

  @Before
  public void load() throws Exception {
    Engine.Listener listener =
        (state, loaded, reason) -> {
          model = loaded;
          states.add(state == Engine.State.FAILED ? reason.code() : state);
        };
    File folder = TestFiles.nativeLibraries();
    engine =
        asProcess
            ? new ProcessEngine(
                new File(folder, ProcessEngine.EXECUTABLE), Runnable::run, listener)
            : new JniEngine(new File(folder, JniEngine.LIBRARY), Runnable::run, listener);
    engine.load(options(TestFiles.bundle()));
    waitFor(Engine.State.READY);
  }

  @After
  public void close() {
    engine.close();
  }

  private static ModelOptions options(File bundle) {
    ModelOptions options = new ModelOptions(bundle);
    options.threads = 1;
    options.verifyChecksums = false;
    return options;
  }

  private void waitFor(Object wanted) throws InterruptedException {
    for (Object state = null; !wanted.equals(state); ) {
      state = states.poll(60, TimeUnit.SECONDS);
      assertTrue("waited in vain for " + wanted, state != null);
    }
  }

  private Heard ask(Mode mode, int tokens) {
    GenerateOptions options = new GenerateOptions();
    options.mode = mode;
    options.maxNewTokens = tokens;
    options.snapshotMilliseconds = 1;
    Heard heard = new Heard();
    engine.generate(QUESTION, options, heard);
    return heard;
  }

  @Test
  public void everyModeSaysTheSame() throws Exception {
    String plain = null;
    for (Mode mode : Mode.values()) {
      Heard heard = ask(mode, 24);
      assertEquals("LENGTH", heard.waitForEnd());
      plain = plain == null ? heard.text.toString() : plain;
      assertEquals(mode.toString(), plain, heard.text.toString());
      assertEquals(24, heard.stats.emittedTokens);
      assertTrue(mode.toString(), mode == Mode.PLAIN || heard.largestTree > 0);
      waitFor(Engine.State.READY);
    }
    assertFalse(plain.trim().isEmpty());
    firstHostSaid = firstHostSaid == null ? plain : firstHostSaid;
    assertEquals("the process and the library", firstHostSaid, plain);
  }

  @Test
  public void anAnswerComesInPiecesAndCanBeCancelled() throws Exception {
    GenerateOptions options = new GenerateOptions();
    options.mode = Mode.PLAIN;
    options.maxNewTokens = 1500;
    Heard heard = new Heard();
    List<Message> question =
        Collections.singletonList(
            new Message(Message.Role.USER, "Write a very long story about a forest."));
    Engine.Answer answer = engine.generate(question, options, heard);
    heard.waitForText();
    heard.waitForText();
    long began = System.nanoTime();
    answer.cancel();
    assertEquals("CANCELLED", heard.waitForEnd());
    double milliseconds = (System.nanoTime() - began) / 1e6;
    System.out.printf("cancelled in %.1f ms (%s)%n", milliseconds, asProcess ? "process" : "library");
    int length = heard.text.length();
    assertEquals("LENGTH", ask(Mode.DYNAMIC, 4).waitForEnd());
    assertEquals("nothing comes after the end", length, heard.text.length());
  }

  @Test
  public void whatItDoesIsRecordedAndNotWhatItSays() throws Exception {
    Log log = new Log();
    File file = File.createTempFile("trace", null);
    engine.startRecording(log);
    assertEquals("LENGTH", ask(Mode.DYNAMIC, 24).waitForEnd());
    engine.saveRecording(file);
    String saved = log.next();
    assertTrue(saved, saved.matches("saved trace.*\\d\\d 0")); // dozens, and none lost
    byte[] bytes = Files.readAllBytes(file.toPath());
    String held = new String(bytes, StandardCharsets.ISO_8859_1);
    assertTrue(held.contains("Target_Verify"));
    assertFalse(held.contains("leaves"));
    assertTrue(file.delete());
  }

  @Test
  public void aDeviceThatIsHotGuessesNothingAndSaysTheSame() throws Exception {
    Heard cool = ask(Mode.FIXED, 24);
    assertEquals("LENGTH", cool.waitForEnd());
    assertEquals("cool", cool.stats.heat);
    engine.observe(new DeviceReadings(30.0, 4, null, null, null)); // THERMAL_STATUS_CRITICAL
    Heard hot = ask(Mode.FIXED, 24);
    assertEquals("LENGTH", hot.waitForEnd());
    assertEquals("critical", hot.stats.heat);
    assertEquals(0, hot.stats.draftedTokens);
    assertEquals(cool.text.toString(), hot.text.toString());
  }

  @Test
  public void aFolderThatIsNoBundleIsRefusedAndTheNextOneLoaded() throws Exception {
    engine.load(options(new File(TestFiles.bundle(), "no-such-folder")));
    waitFor(EngineException.Code.NOT_FOUND);
    engine.load(options(TestFiles.bundle()));
    waitFor(Engine.State.READY);
    assertEquals("LENGTH", ask(Mode.DYNAMIC, 4).waitForEnd());
  }

  @Test
  public void aPromptOfTenMegabytesIsRefusedInOneLine() throws Exception {
    char[] letters = new char[10 << 20];
    Arrays.fill(letters, 'a');
    Heard heard = new Heard();
    Message message = new Message(Message.Role.USER, new String(letters));
    engine.generate(Collections.singletonList(message), new GenerateOptions(), heard);
    assertEquals("INVALID_ARGUMENT", heard.waitForEnd());
    assertEquals("LENGTH", ask(Mode.DYNAMIC, 4).waitForEnd());
  }

  @Test
  public void aProcessThatIsKilledIsReplacedByOneThatSaysTheSame() throws Exception {
    if (!asProcess) {
      return; // what kills the library kills the tests
    }
    Heard whole = ask(Mode.DYNAMIC, 48);
    assertEquals("LENGTH", whole.waitForEnd());
    waitFor(Engine.State.READY);
    int killed = model.processId;
    Heard heard = ask(Mode.DYNAMIC, 1500);
    heard.waitForText();
    signal("KILL", killed);
    assertEquals("CRASHED", heard.waitForEnd());
    waitFor(Engine.State.READY);
    assertNotEquals(killed, model.processId);
    Heard again = ask(Mode.DYNAMIC, 48);
    assertEquals("LENGTH", again.waitForEnd());
    assertEquals(whole.text.toString(), again.text.toString());
  }

  @Test
  public void aProcessThatHangsIsReplaced() throws Exception {
    if (!asProcess) {
      return;
    }
    Heard heard = ask(Mode.PLAIN, 1500);
    heard.waitForText();
    signal("STOP", model.processId);
    assertEquals("HUNG", heard.waitForEnd());
    waitFor(Engine.State.READY);
    assertEquals("LENGTH", ask(Mode.DYNAMIC, 4).waitForEnd());
  }

  private static void signal(String name, int process) throws Exception {
    String[] command = {"kill", "-" + name, String.valueOf(process)};
    assertEquals(0, new ProcessBuilder(command).start().waitFor());
  }
}
