package com.endpoint.sapwood.engine;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.json.JSONObject;

/**
 * The client of docs/engine-protocol.md over anything that can be started anew. Everything below
 * happens on one thread, `loop`; the fields belong to it.
 */
class FramedEngine implements Engine {
  private static final long[] RESTART_DELAYS = {0, 250, 1000};

  private final Transport.Factory factory;
  private final Deadlines deadlines;
  private final Heartbeat heartbeat;
  private final Notices notices;
  private final ScheduledThreadPoolExecutor loop;

  private State state = State.EMPTY;
  private Channel channel;
  private JSONObject hello; // what the engine greeted with; null until it has
  private ModelOptions wanted; // what should be loaded
  private ModelInfo model; // what is loaded
  private Double celsius;
  private Request request; // the answer that is being given or waits for a model
  private Request next; // waits for the end of an answer that was cancelled
  private long nextId = 1;
  private long loadId;
  private int failures; // engines that died since the last thing that went well
  private ScheduledFuture<?> ticks;

  FramedEngine(
      Transport.Factory factory, Deadlines deadlines, Executor callbacks, Listener listener) {
    this.factory = factory;
    this.deadlines = deadlines;
    this.heartbeat = new Heartbeat(deadlines);
    this.notices = new Notices(callbacks, listener);
    loop =
        new ScheduledThreadPoolExecutor(
            1,
            new ThreadFactory() {
              @Override
              public Thread newThread(Runnable work) {
                Thread thread = new Thread(work, "sapwood-engine");
                thread.setDaemon(true);
                return thread;
              }
            });
  }

  // ---- what callers ask for ----

  @Override
  public void load(final ModelOptions options) {
    post(
        new Runnable() {
          @Override
          public void run() {
            failures = 0;
            wanted = options;
            model = null;
            // An engine refuses a load while it works; a new one is quicker than to wait for it.
            if (channel != null && (loadId != 0 || isAnswering())) {
              dropChannel();
            }
            if (request != null && request.id != 0) {
              finish(StopReason.CANCELLED);
            }
            enter(State.LOADING, null);
            if (channel == null) {
              connect();
            } else if (hello != null) {
              sendLoad();
            }
          }
        });
  }

  @Override
  public Answer generate(
      List<Message> conversation, GenerateOptions options, AnswerListener listener) {
    final Request asked = new Request(new ArrayList<>(conversation), options, listener);
    post(
        new Runnable() {
          @Override
          public void run() {
            accept(asked);
          }
        });
    return new Answer() {
      @Override
      public void cancel() {
        post(
            new Runnable() {
              @Override
              public void run() {
                cancelRequest(asked);
              }
            });
      }
    };
  }

  @Override
  public void setTemperature(final Double now) {
    post(
        new Runnable() {
          @Override
          public void run() {
            celsius = now;
            if (hello != null) {
              sendTemperature();
            }
          }
        });
  }

  @Override
  public void close() {
    post(
        new Runnable() {
          @Override
          public void run() {
            wanted = null;
            finish(StopReason.CANCELLED);
            finish(StopReason.CANCELLED); // the one that waited for it
            if (channel != null) {
              send(Frame.SHUTDOWN, Json.object());
              channel.finish();
              final Channel last = channel;
              channel = null;
              loop.schedule(
                  new Runnable() {
                    @Override
                    public void run() {
                      last.destroy();
                      loop.shutdown();
                    }
                  },
                  500,
                  TimeUnit.MILLISECONDS);
            } else {
              loop.shutdown();
            }
            watch();
          }
        });
  }

  private void post(Runnable work) {
    try {
      loop.execute(work);
    } catch (RejectedExecutionException e) {
      // Closed: there is nobody left to tell.
    }
  }

  // ---- requests ----

  private void accept(Request asked) {
    if (wanted == null) {
      notices.failed(
          asked, new EngineException(EngineException.Code.NOT_LOADED, "no bundle was loaded"));
      return;
    }
    if (request != null) {
      if (request.cancelled && next == null) {
        next = asked;
      } else {
        notices.failed(
            asked, new EngineException(EngineException.Code.BUSY, "an answer is running"));
      }
      return;
    }
    request = asked;
    if (state == State.READY) {
      sendRequest();
    } else if (state == State.FAILED) {
      failures = 0;
      enter(State.LOADING, null);
      if (channel == null) {
        connect();
      } else {
        sendLoad();
      }
    }
  }

  private void sendRequest() {
    long id = nextId++;
    JSONObject body = request.options.toJson(request.conversation, model.chat);
    if (!send(Frame.GENERATE, Json.with(body, "id", id))) {
      EngineException tooLong =
          new EngineException(
              EngineException.Code.INVALID_ARGUMENT,
              "the conversation is longer than the protocol allows (16 MiB)");
      notices.failed(takeRequest(), tooLong);
      return;
    }
    request.id = id;
    enter(State.ANSWERING, null);
  }

  private void cancelRequest(Request asked) {
    if (asked == next) {
      next = null;
      notices.done(asked, StopReason.CANCELLED);
      return;
    }
    if (asked != request || asked.cancelled) {
      return;
    }
    asked.cancelled = true;
    if (asked.id == 0) {
      finish(StopReason.CANCELLED);
    } else {
      send(Frame.CANCEL, Json.object("id", asked.id));
    }
  }

  private boolean isAnswering() {
    return request != null && request.id != 0;
  }

  /** The request that has ended; the one that waited for it takes its place. */
  private Request takeRequest() {
    Request ended = request;
    request = next;
    next = null;
    return ended;
  }

  private void finish(StopReason reason) {
    if (request != null) {
      notices.done(takeRequest(), reason);
    }
  }

  private void fail(EngineException reason) {
    if (request != null) {
      notices.failed(takeRequest(), reason);
    }
  }

  private void becomeReady() {
    enter(State.READY, null);
    if (request != null) {
      sendRequest();
    }
  }

  // ---- the engine's life ----

  private void connect() {
    hello = null;
    loadId = 0;
    heartbeat.reset();
    try {
      channel =
          new Channel(
              factory.start(),
              new Channel.Sink() {
                @Override
                public void onFrame(final Channel from, final Frame frame) {
                  post(
                      new Runnable() {
                        @Override
                        public void run() {
                          if (from == channel) {
                            handle(frame);
                          }
                        }
                      });
                }

                @Override
                public void onEnd(final Channel from, final String why) {
                  post(
                      new Runnable() {
                        @Override
                        public void run() {
                          if (from == channel) {
                            lost(new EngineException(EngineException.Code.CRASHED, why));
                          }
                        }
                      });
                }
              });
    } catch (IOException e) {
      lost(new EngineException(EngineException.Code.NOT_STARTED, e.getMessage()));
      return;
    }
    channel.open();
    send(Frame.HELLO, Json.object("protocol", Frame.VERSION));
    watch();
  }

  private void dropChannel() {
    channel.destroy();
    channel = null;
    hello = null;
    loadId = 0;
  }

  /** The engine died, hung or never came: at most one message is lost, and another is started. */
  private void lost(EngineException reason) {
    if (channel != null) {
      dropChannel();
    }
    model = null;
    failures++;
    if (isAnswering()) {
      if (request.cancelled) {
        finish(StopReason.CANCELLED);
      } else {
        fail(reason);
      }
    }
    boolean retry = wanted != null && failures <= deadlines.mostFailures;
    if (!retry) {
      giveUp(reason);
      return;
    }
    enter(State.RESTARTING, reason);
    int attempt = Math.min(failures, RESTART_DELAYS.length) - 1;
    loop.schedule(
        new Runnable() {
          @Override
          public void run() {
            if (channel == null && wanted != null && state == State.RESTARTING) {
              connect();
            }
          }
        },
        RESTART_DELAYS[attempt],
        TimeUnit.MILLISECONDS);
  }

  private void giveUp(EngineException reason) {
    enter(State.FAILED, reason);
    while (request != null) { // and the one that waited for it
      fail(reason);
    }
  }

  private void enter(State next, EngineException reason) {
    state = next;
    notices.state(next, model, reason);
    watch();
  }

  // ---- frames ----

  private boolean send(int type, JSONObject body) {
    byte[] bytes = new Frame(type, body).toBytes();
    if (bytes == null) {
      return false;
    }
    channel.send(bytes);
    return true;
  }

  private void sendLoad() {
    loadId = nextId++;
    send(Frame.LOAD, Json.with(wanted.toJson(), "id", loadId));
  }

  private void sendTemperature() {
    send(Frame.THERMAL, Json.object("celsius", celsius));
  }

  private void handle(Frame frame) {
    JSONObject body = frame.body;
    switch (frame.type) {
      case Frame.HELLO_BACK:
        hello = body;
        if (celsius != null) {
          sendTemperature();
        }
        if (wanted != null) {
          sendLoad();
        }
        break;
      case Frame.LOADED:
        if (body.optLong("id") == loadId) {
          loadId = 0;
          model = new ModelInfo(hello, body);
          becomeReady();
        }
        break;
      case Frame.PONG:
        heartbeat.pong(body);
        break;
      case Frame.ERROR:
        handleError(body);
        break;
      default:
        if (request != null && request.id != 0 && body.optLong("id") == request.id) {
          handleAnswer(frame);
        }
    }
  }

  private void handleAnswer(Frame frame) {
    JSONObject body = frame.body;
    switch (frame.type) {
      case Frame.READING:
        request.unreadTokens = body.optInt("prompt_tokens");
        notices.reading(request);
        break;
      case Frame.TEXT:
        request.unreadTokens = 0;
        notices.text(request, body.optString("text"));
        break;
      case Frame.STATS:
        request.unreadTokens = 0;
        request.stats = new Stats(body);
        notices.stats(request);
        break;
      case Frame.TREE:
        notices.tree(request, TreeSnapshot.of(body));
        break;
      case Frame.DONE:
        failures = 0;
        request.stats = new Stats(body);
        finish(stopReason(body.optString("stop_reason")));
        becomeReady();
        break;
      default: // a later version's: to be skipped
    }
  }

  private static StopReason stopReason(String name) {
    try {
      return StopReason.valueOf(name.toUpperCase(Locale.ROOT));
    } catch (IllegalArgumentException e) {
      return StopReason.EOS;
    }
  }

  private void handleError(JSONObject body) {
    EngineException reason =
        new EngineException(
            EngineException.codeOf(body.optString("code")), body.optString("message"));
    long id = body.optLong("id");
    if (body.optBoolean("fatal")) {
      lost(reason);
    } else if (loadId != 0 && id == loadId) {
      loadId = 0;
      giveUp(reason);
    } else if (isAnswering() && id == request.id) {
      if (request.cancelled) {
        finish(StopReason.CANCELLED);
      } else {
        fail(reason);
      }
      becomeReady();
    }
  }

  // ---- the watchdog ----

  /** Ticks run while the engine owes us something, and only then: an idle phone is left asleep. */
  private void watch() {
    boolean owed = channel != null && (hello == null || loadId != 0 || isAnswering());
    if (owed && ticks == null) {
      heartbeat.reset();
      int period = deadlines.tickMilliseconds;
      ticks =
          loop.scheduleWithFixedDelay(
              new Runnable() {
                @Override
                public void run() {
                  tick();
                }
              },
              period,
              period,
              TimeUnit.MILLISECONDS);
    } else if (!owed && ticks != null) {
      ticks.cancel(false);
      ticks = null;
    }
  }

  private long mostIdleMilliseconds() {
    if (loadId != 0) {
      return deadlines.loadIdleMilliseconds;
    }
    int unread = isAnswering() ? request.unreadTokens : 0;
    return deadlines.idleMilliseconds + unread * deadlines.millisecondsPerPromptToken;
  }

  private void tick() {
    watch();
    if (ticks == null) {
      return;
    }
    String complaint;
    if (hello == null) {
      complaint = heartbeat.tickBeforeHello();
    } else {
      complaint = heartbeat.tick(mostIdleMilliseconds());
      if (complaint == null && isAnswering() && request.cancelled) {
        boolean late = ++request.ticksSinceCancel > deadlines.cancelTicks;
        complaint = late ? "it did not end a cancelled answer" : null;
      }
    }
    if (complaint != null) {
      lost(new EngineException(EngineException.Code.HUNG, complaint));
    } else if (hello != null && heartbeat.wantsPing()) {
      send(Frame.PING, Json.object("id", heartbeat.nextPing(nextId++)));
    }
  }
}
