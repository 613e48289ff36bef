package com.endpoint.sapwood;

import com.endpoint.sapwood.engine.EngineException;
import com.endpoint.sapwood.engine.Message.Role;
import com.endpoint.sapwood.engine.Stats;

/** One message as it is shown. */
final class ChatMessage {
  /** How far an answer is; a question is DONE. */
  enum Status {
    WAITING,
    STREAMING,
    DONE,
    STOPPED,
    CUT,
    CONTEXT_FULL,
    FAILED
  }

  final Role role;
  final StringBuilder text = new StringBuilder();
  Status status;
  Stats stats;
  EngineException problem;

  ChatMessage(Role role, String text, Status status) {
    this.role = role;
    this.text.append(text);
    this.status = status;
  }

  boolean isAnswer() {
    return role == Role.ASSISTANT;
  }

  boolean isRunning() {
    return status == Status.WAITING || status == Status.STREAMING;
  }
}
