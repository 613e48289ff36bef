package com.endpoint.sapwood.engine;

import org.json.JSONObject;

/** How an answer is going, or went. */
public final class Stats {
  public final int promptTokens;
  public final int reusedPromptTokens;
  public final int emittedTokens;
  public final long steps;
  public final long draftedTokens;
  public final long acceptedTokens;

  /** Emitted tokens a step: 1 without speculation. */
  public final double meanAcceptedLength;

  /** KV slots beyond the text that a step held on average: the size of its tree. */
  public final double meanDraftSlots;

  public final double prefillSeconds;
  public final double decodeSeconds;
  public final double firstTokenSeconds;
  public final double tokensPerSecond;

  /** "cool", "warm", "hot" or "critical". */
  public final String heat;

  Stats(JSONObject json) {
    promptTokens = json.optInt("prompt_tokens");
    reusedPromptTokens = json.optInt("reused_prompt_tokens");
    emittedTokens = json.optInt("emitted_tokens");
    steps = json.optLong("steps");
    draftedTokens = json.optLong("drafted_tokens");
    acceptedTokens = json.optLong("accepted_tokens");
    meanAcceptedLength = json.optDouble("mean_accepted_length", 0);
    meanDraftSlots = json.optDouble("mean_draft_slots", 0);
    prefillSeconds = json.optDouble("prefill_seconds", 0);
    decodeSeconds = json.optDouble("decode_seconds", 0);
    firstTokenSeconds = json.optDouble("first_token_seconds", 0);
    tokensPerSecond = json.optDouble("tokens_per_second", 0);
    heat = json.optString("heat", "cool");
  }
}
