package com.endpoint.sapwood.engine;

import java.io.File;
import java.util.concurrent.Executor;

/**
 * An engine in a process of its own: a crash or a hang in it costs one message, never the app.
 *
 * <p>Android lets an app run programs that were installed with it only: `executable` is
 * libsapwood_engine.so in {@link android.content.pm.ApplicationInfo#nativeLibraryDir}, unpacked
 * there because the manifest says `extractNativeLibs="true"`.
 */
public final class ProcessEngine extends FramedEngine {
  /** The name of the executable in the native library folder. */
  public static final String EXECUTABLE = "libsapwood_engine.so";

  public ProcessEngine(File executable, Executor callbacks, Listener listener) {
    this(executable, new Deadlines(), callbacks, listener);
  }

  ProcessEngine(File executable, Deadlines deadlines, Executor callbacks, Listener listener) {
    super(new ProcessTransport.Starter(executable), deadlines, callbacks, listener);
  }
}
