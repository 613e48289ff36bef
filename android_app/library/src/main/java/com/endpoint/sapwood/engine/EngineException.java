package com.endpoint.sapwood.engine;

import java.util.Locale;

/** Why the engine could not do what it was asked to. The message is one English line of detail. */
public final class EngineException extends Exception {
  private static final long serialVersionUID = 1;

  /** What went wrong: the protocol's error codes, and what happens to processes. */
  public enum Code {
    INVALID_ARGUMENT,
    NOT_FOUND,
    CORRUPT,
    UNSUPPORTED,
    EXHAUSTED,
    CANCELLED,
    INTERNAL,
    BUSY,
    NOT_LOADED,
    PROTOCOL,
    VERSION,
    /** The process could not be started. */
    NOT_STARTED,
    /** The process ended by itself. */
    CRASHED,
    /** The process stopped to answer and was ended. */
    HUNG
  }

  private final Code code;

  public EngineException(Code code, String message) {
    super(message);
    this.code = code;
  }

  public Code code() {
    return code;
  }

  /** The code of a name in the protocol; INTERNAL for one that is not known. */
  static Code codeOf(String name) {
    for (Code code : Code.values()) {
      if (code.name().toLowerCase(Locale.ROOT).equals(name)) {
        return code;
      }
    }
    return Code.INTERNAL;
  }
}
