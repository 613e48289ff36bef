package com.endpoint.sapwood.engine;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.json.JSONException;
import org.json.JSONObject;

/** One frame of docs/engine-protocol.md: length, type, and a JSON object. */
final class Frame {
  static final int VERSION = 1;

  // To the engine.
  static final int HELLO = 1;
  static final int LOAD = 2;
  static final int GENERATE = 3;
  static final int CANCEL = 4;
  static final int PING = 5;
  static final int THERMAL = 6;
  static final int SHUTDOWN = 7;
  static final int TRACE = 8;

  // From the engine.
  static final int HELLO_BACK = 129;
  static final int LOADED = 130;
  static final int TEXT = 131;
  static final int TREE = 132;
  static final int STATS = 133;
  static final int DONE = 134;
  static final int PONG = 135;
  static final int ERROR = 136;
  static final int READING = 137;
  static final int TRACED = 138;

  static final int HEADER_BYTES = 5;
  static final int MOST_BYTES_FROM_ENGINE = 1 << 20;
  static final int MOST_BYTES_TO_ENGINE = 16 << 20;

  final int type;
  final JSONObject body;

  Frame(int type, JSONObject body) {
    this.type = type;
    this.body = body;
  }

  /** The frame's bytes; null if its payload is longer than the protocol allows. */
  byte[] toBytes() {
    byte[] payload = body.toString().getBytes(StandardCharsets.UTF_8);
    if (payload.length > MOST_BYTES_TO_ENGINE) {
      return null;
    }
    byte[] bytes = new byte[HEADER_BYTES + payload.length];
    for (int i = 0; i < 4; i++) {
      bytes[i] = (byte) (payload.length >>> (8 * i));
    }
    bytes[4] = (byte) type;
    System.arraycopy(payload, 0, bytes, HEADER_BYTES, payload.length);
    return bytes;
  }

  /**
   * Waits for the next frame.
   *
   * @return null at the end of the stream between two frames
   * @throws EOFException in the middle of a frame
   * @throws IOException if what comes is not this protocol, or the stream breaks
   */
  static Frame read(InputStream in) throws IOException {
    byte[] header = new byte[HEADER_BYTES];
    int first = in.read();
    if (first < 0) {
      return null;
    }
    header[0] = (byte) first;
    fill(in, header, 1);
    long length = 0;
    for (int i = 0; i < 4; i++) {
      length |= (header[i] & 0xFFL) << (8 * i);
    }
    if (length > MOST_BYTES_FROM_ENGINE) {
      throw new IOException("a frame of " + length + " bytes");
    }
    byte[] payload = new byte[(int) length];
    fill(in, payload, 0);
    try {
      String text = new String(payload, StandardCharsets.UTF_8);
      return new Frame(header[4] & 0xFF, new JSONObject(text));
    } catch (JSONException e) {
      throw new IOException("a frame that is not a JSON object");
    }
  }

  private static void fill(InputStream in, byte[] bytes, int from) throws IOException {
    for (int have = from; have < bytes.length; ) {
      int count = in.read(bytes, have, bytes.length - have);
      if (count < 0) {
        throw new EOFException("the stream ended inside a frame");
      }
      have += count;
    }
  }
}
