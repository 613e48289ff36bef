package com.endpoint.sapwood;

import android.content.Context;
import com.endpoint.sapwood.engine.Engine;
import com.endpoint.sapwood.engine.JniEngine;
import com.endpoint.sapwood.engine.ProcessEngine;
import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;

/** Where the engine can run in this build of the app. */
final class Hosts {
  private Hosts() {}

  /** Those whose files were installed with the app; the first is the best. */
  static List<Settings.Host> available(Context context) {
    List<Settings.Host> hosts = new ArrayList<>();
    for (Settings.Host host : Settings.Host.values()) {
      if (file(context, host).isFile()) {
        hosts.add(host);
      }
    }
    return hosts;
  }

  static Engine start(
      Context context, Settings.Host host, Executor callbacks, Engine.Listener listener) {
    if (host == Settings.Host.LIBRARY && available(context).contains(host)) {
      return new JniEngine(file(context, host), callbacks, listener);
    }
    return new ProcessEngine(file(context, Settings.Host.PROCESS), callbacks, listener);
  }

  private static File file(Context context, Settings.Host host) {
    String name = host == Settings.Host.PROCESS ? ProcessEngine.EXECUTABLE : JniEngine.LIBRARY;
    return new File(context.getApplicationInfo().nativeLibraryDir, name);
  }
}
