package com.endpoint.sapwood.engine;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.json.JSONObject;

/**
 * An engine's end of the pipes, played by a test: it greets, loads and answers pings by itself
 * unless told not to, and leaves everything else to the test.
 */
final class FakeEngine implements Transport {
  /** Starts engines and hands each to the test. */
  static final class Starter implements Transport.Factory {
    final BlockingQueue<FakeEngine> started = new LinkedBlockingQueue<>();
    final AtomicInteger starts = new AtomicInteger();
    volatile boolean greets = true;
    volatile boolean loads = true;
    volatile boolean pongs = true;
    volatile boolean refuses;

    @Override
    public Transport start() throws IOException {
      starts.incrementAndGet();
      if (refuses) {
        throw new IOException("no such program");
      }
      FakeEngine engine = new FakeEngine(this);
      started.add(engine);
      return engine;
    }

    FakeEngine next() throws InterruptedException {
      FakeEngine engine = started.poll(10, TimeUnit.SECONDS);
      if (engine == null) {
        throw new AssertionError("no engine was started");
      }
      return engine;
    }
  }

  private final Starter starter;
  private final PipedInputStream fromClient = new PipedInputStream(1 << 16);
  private final PipedOutputStream clientOutput = new PipedOutputStream(fromClient);
  private final PipedInputStream clientInput = new PipedInputStream(1 << 20);
  private final PipedOutputStream toClient = new PipedOutputStream(clientInput);
  private final BlockingQueue<Frame> requests = new LinkedBlockingQueue<>();
  volatile long idleMilliseconds;
  volatile boolean destroyed;

  private FakeEngine(Starter starter) throws IOException {
    this.starter = starter;
    Thread thread = new Thread(this::serve, "fake-engine");
    thread.setDaemon(true);
    thread.start();
  }

  private void serve() {
    try {
      // The frames to an engine are read as those from one: none here is longer than those may be.
      for (Frame frame = Frame.read(fromClient); frame != null; frame = Frame.read(fromClient)) {
        long id = frame.body.optLong("id");
        if (frame.type == Frame.HELLO && starter.greets) {
          send(Frame.HELLO_BACK, "protocol", 1, "kernels", "fake", "pid", 1);
        } else if (frame.type == Frame.LOAD && starter.loads) {
          send(Frame.LOADED, "id", id, "name", "Fake", "chat", true, "context_length", 64);
        } else if (frame.type == Frame.PING && starter.pongs) {
          send(Frame.PONG, "id", id, "working", id, "idle_milliseconds", idleMilliseconds);
        } else if (frame.type != Frame.HELLO && frame.type != Frame.PING) {
          requests.add(frame);
        }
      }
    } catch (IOException e) {
      // The client has hung up.
    }
  }

  /** The next request that is left to the test; it has this type. */
  JSONObject take(int type) throws InterruptedException {
    Frame frame = requests.poll(10, TimeUnit.SECONDS);
    if (frame == null || frame.type != type) {
      throw new AssertionError("expected a frame of type " + type + ", got " + frame);
    }
    return frame.body;
  }

  void send(int type, Object... namesAndValues) throws IOException {
    write(new Frame(type, Json.object(namesAndValues)).toBytes());
  }

  synchronized void write(byte[] bytes) throws IOException {
    toClient.write(bytes);
    toClient.flush();
  }

  /** Ends as a process does that is killed. */
  void die() throws IOException {
    toClient.close();
  }

  @Override
  public InputStream input() {
    return clientInput;
  }

  @Override
  public OutputStream output() {
    return clientOutput;
  }

  @Override
  public void destroy() {
    destroyed = true;
    try {
      toClient.close();
      fromClient.close();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Override
  public String epitaph() {
    return "the engine ended with status 137";
  }
}
