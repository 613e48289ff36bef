package com.endpoint.sapwood.engine;

import java.io.File;
import org.json.JSONObject;

/** Which bundle to load and how. Read when it is given to {@link Engine#load}. */
public final class ModelOptions {
  /** The bundle's folder. */
  public final File bundle;

  /** A draft that was trained for it: a folder, or null. */
  public File draft;

  /** 0: as many as there are cores, at most 4. */
  public int threads;

  /** The most guesses that are verified in a step, 1 to 256. */
  public int maxTreeNodes = 31;

  /** Prompt and answer together, in tokens; 0: what the bundle proposes. */
  public int contextLength;

  /** Whether to read the whole bundle and compare it with its checksums. */
  public boolean verifyChecksums = true;

  public ModelOptions(File bundle) {
    this.bundle = bundle;
  }

  JSONObject toJson() {
    JSONObject json =
        Json.object(
            "bundle", bundle.getPath(),
            "threads", threads,
            "max_tree_nodes", maxTreeNodes,
            "context_length", contextLength,
            "verify_checksums", verifyChecksums);
    return draft == null ? json : Json.with(json, "draft", draft.getPath());
  }
}
