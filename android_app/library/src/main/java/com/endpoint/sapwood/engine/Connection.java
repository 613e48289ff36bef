package com.endpoint.sapwood.engine;

import java.io.IOException;
import org.json.JSONObject;

/** The way to the engine that is running, if one is. On the loop only. */
final class Connection {
  /** Hears from the engine that is running; called on the loop. */
  interface Sink {
    void onFrame(Frame frame);

    void onEnd(String why);
  }

  private static final long LAST_WORDS_MILLISECONDS = 500;

  private final Transport.Factory factory;
  private final Loop loop;
  private final Sink sink;
  private Channel channel;
  private JSONObject hello; // what the engine greeted with
  private long nextId = 1;

  Connection(Transport.Factory factory, Loop loop, Sink sink) {
    this.factory = factory;
    this.loop = loop;
    this.sink = sink;
  }

  boolean isOpen() {
    return channel != null;
  }

  /** null until the engine has greeted. */
  JSONObject hello() {
    return hello;
  }

  void setHello(JSONObject greeting) {
    hello = greeting;
  }

  /** Starts an engine and greets it. */
  void open() throws IOException {
    hello = null;
    channel = new Channel(factory.start(), new Posting());
    channel.open();
    send(Frame.HELLO, Json.object("protocol", Frame.VERSION));
  }

  /** A number for a request. */
  long nextId() {
    return nextId++;
  }

  /** Returns whether the protocol allows so long a frame. */
  boolean send(int type, JSONObject body) {
    byte[] bytes = new Frame(type, body).toBytes();
    if (bytes == null) {
      return false;
    }
    channel.send(bytes);
    return true;
  }

  /** Ends the engine at once. */
  void drop() {
    if (channel != null) {
      channel.destroy();
      channel = null;
      hello = null;
    }
  }

  /** Asks the engine to end, then ends the loop. */
  void close() {
    if (channel == null) {
      loop.end();
      return;
    }
    send(Frame.SHUTDOWN, Json.object());
    channel.finish();
    final Channel last = channel;
    channel = null;
    hello = null;
    loop.later(
        new Runnable() {
          @Override
          public void run() {
            last.destroy();
            loop.end();
          }
        },
        LAST_WORDS_MILLISECONDS);
  }

  /** From the channel's threads to the loop; what a former engine said last goes nowhere. */
  private final class Posting implements Channel.Sink {
    @Override
    public void onFrame(final Channel from, final Frame frame) {
      loop.post(
          new Runnable() {
            @Override
            public void run() {
              if (from == channel) {
                sink.onFrame(frame);
              }
            }
          });
    }

    @Override
    public void onEnd(final Channel from, final String why) {
      loop.post(
          new Runnable() {
            @Override
            public void run() {
              if (from == channel) {
                sink.onEnd(why);
              }
            }
          });
    }
  }
}
