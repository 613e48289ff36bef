package com.endpoint.sapwood.engine;

import java.util.List;
import java.util.Locale;
import org.json.JSONArray;
import org.json.JSONObject;

/** How to answer. Read when it is given to {@link Engine#generate}. */
public final class GenerateOptions {
  /** How the engine drafts. The text is the same in every mode. */
  public enum Mode {
    /** One token a step. */
    PLAIN,
    /** A line of guesses. */
    CHAIN,
    /** A tree of fixed shape. */
    FIXED,
    /** A tree as large as it pays here and now. */
    DYNAMIC;

    public String protocolName() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  public Mode mode = Mode.DYNAMIC;
  public int maxNewTokens = 512;

  /** 0: always the likeliest token. */
  public double temperature;

  /** What is drawn at a temperature above 0 depends on it and on nothing else: 0 to 2^53 - 1. */
  public long seed;

  /** How far apart tree snapshots are at least; 0: none are made. */
  public int snapshotMilliseconds;

  JSONObject toJson(List<Message> conversation, boolean chat) {
    JSONObject json =
        Json.object(
            "mode", mode.protocolName(),
            "max_new_tokens", maxNewTokens,
            "temperature", temperature,
            "seed", seed,
            "snapshot_milliseconds", snapshotMilliseconds);
    if (!chat) {
      String last = conversation.get(conversation.size() - 1).text;
      return Json.with(json, "prompt", Json.wellFormed(last));
    }
    JSONArray messages = new JSONArray();
    for (Message message : conversation) {
      messages.put(
          Json.object(
              "role", message.role.protocolName(), "content", Json.wellFormed(message.text)));
    }
    return Json.with(json, "messages", messages);
  }
}
