package com.endpoint.sapwood.engine;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/** One running engine: where to write to it, where to read from it, and how to end it. */
interface Transport {
  /** Starts engines. */
  interface Factory {
    /** @throws IOException if none can be started; the message says why */
    Transport start() throws IOException;
  }

  InputStream input();

  OutputStream output();

  /** Ends it at once, whatever it is doing; nothing happens if it has ended. */
  void destroy();

  /** How it ended, in one line: called once its input has ended. */
  String epitaph();
}
