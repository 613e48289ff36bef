package com.endpoint.sapwood.engine;

import java.util.List;

/** One answer that was asked for, on its way; used on the engine's thread only. */
final class Request {
  final List<Message> conversation;
  final GenerateOptions options;
  final Engine.AnswerListener listener;

  /** 0 until it was sent. */
  long id;

  boolean cancelled;
  int ticksSinceCancel;
  Stats stats;

  /** Of the prompt, while the cache is being filled with it: a stretch without a step. */
  int unreadTokens;

  Request(List<Message> conversation, GenerateOptions options, Engine.AnswerListener listener) {
    this.conversation = conversation;
    this.options = options;
    this.listener = listener;
  }
}
