package com.endpoint.sapwood.engine;

import java.util.Locale;
import org.json.JSONObject;

/**
 * The answers that were asked for: the one that is being given or waits for a model, and the one
 * that waits for the end of an answer that was cancelled. On the loop only.
 */
final class Answers {
  private final Connection connection;
  private final Notices notices;
  private Request request;
  private Request next;

  Answers(Connection connection, Notices notices) {
    this.connection = connection;
    this.notices = notices;
  }

  boolean isEmpty() {
    return request == null;
  }

  /** Whether the engine owes one. */
  boolean isAnswering() {
    return request != null && request.id != 0;
  }

  boolean isAnswering(long id) {
    return isAnswering() && request.id == id;
  }

  /** Of a prompt that is being read; 0 once an answer comes. */
  int unreadTokens() {
    return isAnswering() ? request.unreadTokens : 0;
  }

  /** Another tick; whether an answer that was cancelled should have ended by now. */
  boolean isCancelLate(int mostTicks) {
    return isAnswering() && request.cancelled && ++request.ticksSinceCancel > mostTicks;
  }

  /** Returns whether it is the one to be sent now; else it waits, or was refused. */
  boolean accept(Request asked) {
    if (request == null) {
      request = asked;
      return true;
    }
    if (request.cancelled && next == null) {
      next = asked;
    } else {
      notices.failed(
          asked, new EngineException(EngineException.Code.BUSY, "an answer is running"));
    }
    return false;
  }

  /** Asks the engine; returns false where the conversation is too long, which ends it. */
  boolean send(ModelInfo model) {
    long id = connection.nextId();
    JSONObject body = request.options.toJson(request.conversation, model.chat);
    if (connection.send(Frame.GENERATE, Json.with(body, "id", id))) {
      request.id = id;
      return true;
    }
    fail(
        new EngineException(
            EngineException.Code.INVALID_ARGUMENT,
            "the conversation is longer than the protocol allows (16 MiB)"));
    return false;
  }

  void cancel(Request asked) {
    if (asked == next) {
      next = null;
      notices.done(asked, Engine.StopReason.CANCELLED);
    } else if (asked == request && !asked.cancelled) {
      asked.cancelled = true;
      if (asked.id == 0) {
        finish(Engine.StopReason.CANCELLED);
      } else {
        connection.send(Frame.CANCEL, Json.object("id", asked.id));
      }
    }
  }

  /** The one that waited takes its place. */
  void finish(Engine.StopReason reason) {
    if (request != null) {
      notices.done(take(), reason);
    }
  }

  /** The same; one that was cancelled ends as that. */
  void fail(EngineException reason) {
    if (request != null && request.cancelled) {
      finish(Engine.StopReason.CANCELLED);
    } else if (request != null) {
      notices.failed(take(), reason);
    }
  }

  private Request take() {
    Request ended = request;
    request = next;
    next = null;
    return ended;
  }

  /** A frame of the answer that is being given; returns whether it was its last. */
  boolean handle(Frame frame) {
    JSONObject body = frame.body;
    switch (frame.type) {
      case Frame.READING:
        request.unreadTokens = body.optInt("prompt_tokens");
        notices.reading(request);
        return false;
      case Frame.TEXT:
        request.unreadTokens = 0;
        notices.text(request, body.optString("text"));
        return false;
      case Frame.STATS:
        request.unreadTokens = 0;
        request.stats = new Stats(body);
        notices.stats(request);
        return false;
      case Frame.TREE:
        notices.tree(request, TreeSnapshot.of(body));
        return false;
      case Frame.DONE:
        request.stats = new Stats(body);
        finish(stopReason(body.optString("stop_reason")));
        return true;
      default: // a later version's: to be skipped
        return false;
    }
  }

  private static Engine.StopReason stopReason(String name) {
    try {
      return Engine.StopReason.valueOf(name.toUpperCase(Locale.ROOT));
    } catch (IllegalArgumentException e) {
      return Engine.StopReason.EOS;
    }
  }
}
