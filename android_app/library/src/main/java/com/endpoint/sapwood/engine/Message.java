package com.endpoint.sapwood.engine;

import java.util.Locale;

/** One message of a conversation. */
public final class Message {
  /** Who speaks. */
  public enum Role {
    SYSTEM,
    USER,
    ASSISTANT;

    String protocolName() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  public final Role role;
  public final String text;

  public Message(Role role, String text) {
    this.role = role;
    this.text = text;
  }
}
