package com.endpoint.sapwood.engine;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/** One end of a socket pair; sapwood_serve of sapwood.h has the other, on a thread of its own. */
final class JniTransport implements Transport {
  /** Loads the library and starts engines in it. */
  static final class Starter implements Factory {
    private final String library;

    Starter(File library) {
      this.library = library.getAbsolutePath();
    }

    @Override
    public Transport start() throws IOException {
      try {
        System.load(library); // nothing happens the second time
      } catch (UnsatisfiedLinkError e) { // not there, or not for this device
        throw new IOException(e.getMessage());
      }
      int socket = serve();
      if (socket < 0) {
        throw new IOException("no thread or socket for the engine");
      }
      return new JniTransport(socket);
    }
  }

  private final int socket;
  private int users = 2; // reader and writer; the socket is closed when both have gone

  private final InputStream input =
      new InputStream() {
        @Override
        public int read() throws IOException {
          byte[] one = new byte[1];
          return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
        }

        @Override
        public int read(byte[] bytes, int from, int count) throws IOException {
          int got = receive(socket, bytes, from, count);
          if (got < 0) {
            throw new IOException("the engine's socket broke");
          }
          return got == 0 && count > 0 ? -1 : got;
        }
      };

  private final OutputStream output =
      new OutputStream() {
        private boolean closed;

        @Override
        public void write(int one) throws IOException {
          write(new byte[] {(byte) one}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int from, int count) throws IOException {
          if (!send(socket, bytes, from, count)) {
            throw new IOException("the engine's socket broke");
          }
        }

        @Override
        public void close() {
          if (!closed) {
            closed = true;
            shutDown(socket, true);
            leave();
          }
        }
      };

  private JniTransport(int socket) {
    this.socket = socket;
  }

  @Override
  public InputStream input() {
    return input;
  }

  @Override
  public OutputStream output() {
    return output;
  }

  /** Ends both directions: whoever waits on either side wakes up, and the engine ends by itself. */
  @Override
  public synchronized void destroy() {
    if (users > 0) {
      shutDown(socket, false);
    }
  }

  @Override
  public String epitaph() {
    leave();
    return "the engine in this process ended";
  }

  private synchronized void leave() {
    if (--users == 0) {
      close(socket);
    }
  }

  /** Starts an engine; returns our end of its socket, or -1. */
  private static native int serve();

  /** Returns how many bytes came, 0 at the end, -1 on an error. */
  private static native int receive(int socket, byte[] bytes, int from, int count);

  /** Sends all of them; false on an error. */
  private static native boolean send(int socket, byte[] bytes, int from, int count);

  private static native void shutDown(int socket, boolean onlyWriting);

  private static native void close(int socket);
}
