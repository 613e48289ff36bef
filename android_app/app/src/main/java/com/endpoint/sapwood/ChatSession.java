package com.endpoint.sapwood;

import android.content.Context;
import android.os.Handler;
import android.os.Looper;
import com.endpoint.sapwood.bundle.BundleStore;
import com.endpoint.sapwood.engine.DeviceReadings;
import com.endpoint.sapwood.engine.Engine;
import com.endpoint.sapwood.engine.EngineException;
import com.endpoint.sapwood.engine.GenerateOptions;
import com.endpoint.sapwood.engine.Message;
import com.endpoint.sapwood.engine.ModelInfo;
import com.endpoint.sapwood.engine.ModelOptions;
import com.endpoint.sapwood.engine.Stats;
import com.endpoint.sapwood.engine.TreeSnapshot;
import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Executor;

/** The conversation and the engine that answers it. Outlives activities; main thread only. */
public final class ChatSession implements Engine.Listener, Models.Observer {
  /** Hears what changed. */
  public interface Observer {
    /** Messages came or went, or the engine's state changed. */
    void onSessionChanged();

    /** The latest answer grew. */
    void onAnswerGrew();

    /** Statistics or tree are new. */
    void onMetricsChanged();
  }

  private static final int SNAPSHOT_MILLISECONDS = 200;
  private static final long LARGEST_SEED = 1L << 53;

  private final Context context;
  private final Settings settings;
  private final Models models;
  private final Handler main = new Handler(Looper.getMainLooper());
  private final List<Observer> observers = new ArrayList<>();
  private final Conversation conversation = new Conversation();
  private final Random seeds = new Random();

  private Engine engine;
  private Settings.Host engineHost;
  private String loadedWith = ""; // what the load that was asked for depends on
  private Engine.State state = Engine.State.EMPTY;
  private ModelInfo model;
  private EngineException problem;
  private ChatMessage answering;
  private Engine.Answer answer;
  private Stats stats;
  private TreeSnapshot tree;

  ChatSession(Context context, Settings settings, Models models) {
    this.context = context;
    this.settings = settings;
    this.models = models;
    models.observe(this);
  }

  public void observe(Observer observer) {
    observers.add(observer);
  }

  public void forget(Observer observer) {
    observers.remove(observer);
  }

  public List<ChatMessage> messages() {
    return conversation.messages();
  }

  public Engine.State state() {
    return state;
  }

  /** null unless a model is loaded. */
  public ModelInfo model() {
    return model;
  }

  /** Why the engine restarts or does not work; else null. */
  public EngineException problem() {
    return problem;
  }

  /** Of the latest answer that had any; null before. */
  public Stats stats() {
    return stats;
  }

  /** Of the latest step that was drawn; null before. */
  public TreeSnapshot tree() {
    return tree;
  }

  public boolean isAnswering() {
    return answering != null;
  }

  // ---- what a person does ----

  public void send(String question) {
    if (answering == null && !question.trim().isEmpty()) {
      begin(conversation.ask(question.trim()));
    }
  }

  public void tryAgain() {
    ChatMessage failed = answering == null ? conversation.again() : null;
    if (failed != null) {
      begin(failed);
    }
  }

  public void stop() {
    if (answer != null) {
      answer.cancel();
    }
  }

  public void startAnew() {
    stop();
    answering = null; // what still comes of the old answer goes nowhere
    answer = null;
    stats = null;
    tree = null;
    conversation.clear();
    changed();
  }

  /** Loads the chosen model with the chosen settings, unless that is what is loaded already. */
  public void applySettings() {
    File bundle = models.chosen();
    String wanted = describeLoad(bundle);
    if (wanted.equals(loadedWith)) {
      return;
    }
    loadedWith = wanted;
    if (bundle == null) {
      closeEngine();
      state = Engine.State.EMPTY;
      changed();
      return;
    }
    if (engine != null && engineHost != settings.host()) {
      closeEngine();
    }
    if (engine == null) {
      engineHost = settings.host();
      engine = Hosts.start(context, engineHost, mainExecutor(), this);
    }
    ModelOptions options = new ModelOptions(bundle);
    options.draft = BundleStore.draftOf(bundle);
    options.threads = settings.threads();
    options.maxTreeNodes = settings.budget();
    options.verifyChecksums = false; // every file was checked when it was imported
    engine.load(options);
  }

  /** For the benchmark, which shares the engine; null if nothing is ready. */
  Engine engineIfReady() {
    return state == Engine.State.READY && answering == null ? engine : null;
  }

  /** null before a model is there. */
  Engine engine() {
    return engine;
  }

  public void observe(DeviceReadings readings) {
    if (engine != null) {
      engine.observe(readings);
    }
  }

  private void begin(ChatMessage next) {
    answering = next;
    stats = null;
    tree = null;
    if (engine == null) {
      next.problem = new EngineException(EngineException.Code.NOT_LOADED, "");
      end(ChatMessage.Status.FAILED);
      return;
    }
    GenerateOptions options = new GenerateOptions();
    options.mode = settings.mode();
    options.temperature = settings.temperature();
    options.maxNewTokens = settings.length();
    options.seed = Math.floorMod(seeds.nextLong(), LARGEST_SEED);
    options.snapshotMilliseconds = SNAPSHOT_MILLISECONDS;
    List<Message> told = conversation.forEngine();
    answer = engine.generate(told, options, new Current(next));
    changed();
  }

  private String describeLoad(File bundle) {
    return bundle == null
        ? "none"
        : bundle.getPath()
            + "|" + bundle.lastModified()
            + "|" + settings.host()
            + "|" + settings.threads()
            + "|" + settings.budget();
  }

  private void closeEngine() {
    if (engine != null) {
      engine.close();
      engine = null;
      model = null;
    }
  }

  private Executor mainExecutor() {
    return new Executor() {
      @Override
      public void execute(Runnable work) {
        main.post(work);
      }
    };
  }

  // ---- what happens ----

  @Override
  public void onModelsChanged() {
    if (!models.isImporting()) {
      applySettings();
    }
    changed();
  }

  @Override
  public void onStateChanged(Engine.State next, ModelInfo loaded, EngineException reason) {
    state = next;
    model = loaded;
    problem = reason;
    changed();
  }

  private void end(ChatMessage.Status status) {
    answering.status = status;
    answering = null;
    answer = null;
    changed();
    metricsChanged();
  }

  private void changed() {
    for (Observer observer : new ArrayList<>(observers)) {
      observer.onSessionChanged();
    }
  }

  private void metricsChanged() {
    for (Observer observer : new ArrayList<>(observers)) {
      observer.onMetricsChanged();
    }
  }

  /** Hears the answer that is shown; what still comes of a former one goes nowhere. */
  private final class Current implements Engine.AnswerListener {
    private final ChatMessage mine;

    Current(ChatMessage mine) {
      this.mine = mine;
    }

    @Override
    public void onReading(int promptTokens) {}

    @Override
    public void onText(String text) {
      if (answering != mine) {
        return;
      }
      boolean first = mine.status == ChatMessage.Status.WAITING;
      mine.status = ChatMessage.Status.STREAMING;
      mine.text.append(text);
      for (Observer observer : new ArrayList<>(observers)) {
        if (first) {
          observer.onSessionChanged();
        } else {
          observer.onAnswerGrew();
        }
      }
    }

    @Override
    public void onStats(Stats now) {
      if (answering == mine) {
        stats = now;
        metricsChanged();
      }
    }

    @Override
    public void onTree(TreeSnapshot now) {
      if (answering == mine) {
        tree = now;
        metricsChanged();
      }
    }

    @Override
    public void onDone(Engine.StopReason reason, Stats last) {
      if (answering == mine) {
        mine.stats = last;
        stats = last == null ? stats : last;
        end(statusOf(reason));
      }
    }

    @Override
    public void onFailed(EngineException reason) {
      if (answering == mine) {
        mine.problem = reason;
        end(ChatMessage.Status.FAILED);
      }
    }
  }

  private static ChatMessage.Status statusOf(Engine.StopReason reason) {
    switch (reason) {
      case CANCELLED:
        return ChatMessage.Status.STOPPED;
      case LENGTH:
        return ChatMessage.Status.CUT;
      case CONTEXT:
        return ChatMessage.Status.CONTEXT_FULL;
      default:
        return ChatMessage.Status.DONE;
    }
  }
}
