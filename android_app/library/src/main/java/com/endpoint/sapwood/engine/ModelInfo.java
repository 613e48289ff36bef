package com.endpoint.sapwood.engine;

import org.json.JSONObject;

/** What the engine has loaded. */
public final class ModelInfo {
  public final String name;
  public final String kernels;
  public final String drafter;
  public final int threads;

  /** Prompt and answer together, in tokens. */
  public final int contextLength;

  /** Whether the bundle has a chat template; without one the last message alone is continued. */
  public final boolean chat;

  public final double loadSeconds;

  /** The engine's process; this one's own for {@link JniEngine}. */
  public final int processId;

  ModelInfo(JSONObject hello, JSONObject loaded) {
    name = loaded.optString("name");
    kernels = hello.optString("kernels");
    processId = hello.optInt("pid");
    drafter = loaded.optString("drafter");
    threads = loaded.optInt("threads");
    contextLength = loaded.optInt("context_length");
    chat = loaded.optBoolean("chat");
    loadSeconds = loaded.optDouble("load_seconds");
  }
}
