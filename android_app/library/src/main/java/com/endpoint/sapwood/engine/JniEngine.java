package com.endpoint.sapwood.engine;

import java.io.File;
import java.util.concurrent.Executor;

/**
 * An engine inside this process, on threads of its own. The same protocol and the same behaviour as
 * {@link ProcessEngine}, with one difference: what crashes here takes the app with it. One that
 * hangs is left to itself and replaced.
 */
public final class JniEngine extends FramedEngine {
  /** The name of the library in the native library folder. */
  public static final String LIBRARY = "libsapwood_jni.so";

  public JniEngine(File library, Executor callbacks, Listener listener) {
    this(library, new Deadlines(), callbacks, listener);
  }

  JniEngine(File library, Deadlines deadlines, Executor callbacks, Listener listener) {
    super(new JniTransport.Starter(library), deadlines, callbacks, listener);
  }
}
