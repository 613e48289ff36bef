package com.endpoint.sapwood.engine;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Frames to and from one running engine, a thread for each direction: an engine that does not read
 * must not stop the one who waits for its heartbeat.
 */
final class Channel {
  /** Hears what comes; called on the channel's own thread. */
  interface Sink {
    void onFrame(Channel channel, Frame frame);

    /** The last call. */
    void onEnd(Channel channel, String why);
  }

  private static final byte[] CLOSE = new byte[0];

  private final Transport transport;
  private final Sink sink;
  private final BlockingQueue<byte[]> outgoing = new LinkedBlockingQueue<>();

  Channel(Transport transport, Sink sink) {
    this.transport = transport;
    this.sink = sink;
  }

  void open() {
    thread("sapwood-read", new Runnable() {
      @Override
      public void run() {
        readAll();
      }
    });
    thread("sapwood-write", new Runnable() {
      @Override
      public void run() {
        writeAll();
      }
    });
  }

  /** Queues the bytes of a frame. */
  void send(byte[] frame) {
    outgoing.add(frame);
  }

  /** Closes the engine's input once everything queued is written, which ends it. */
  void finish() {
    outgoing.add(CLOSE);
  }

  void destroy() {
    outgoing.add(CLOSE); // lets the writer go where nothing is left to write to
    transport.destroy();
  }

  private static void thread(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }

  private void readAll() {
    String why;
    try {
      InputStream in = new BufferedInputStream(transport.input(), 1 << 16);
      for (Frame frame = Frame.read(in); frame != null; frame = Frame.read(in)) {
        sink.onFrame(this, frame);
      }
      why = transport.epitaph();
    } catch (IOException e) {
      // A process that was killed ends in the middle of a frame; how it ended says more than that.
      transport.destroy();
      why = e.getMessage() + "; " + transport.epitaph();
    }
    outgoing.add(CLOSE);
    sink.onEnd(this, why);
  }

  private void writeAll() {
    try (OutputStream out = transport.output()) {
      for (byte[] frame = outgoing.take(); frame != CLOSE; frame = outgoing.take()) {
        out.write(frame);
        out.flush();
      }
    } catch (IOException e) {
      // The engine has gone; the reader notices and says how.
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
