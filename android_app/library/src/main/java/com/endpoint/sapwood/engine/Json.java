package com.endpoint.sapwood.engine;

import org.json.JSONException;
import org.json.JSONObject;

/** Building JSON whose names and values are known to be good. */
final class Json {
  private Json() {}

  /** object("name", value, "name", value, ...). */
  static JSONObject object(Object... namesAndValues) {
    JSONObject json = new JSONObject();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      with(json, (String) namesAndValues[i], namesAndValues[i + 1]);
    }
    return json;
  }

  /** Puts the value into the object and returns the object. null becomes JSON's null. */
  static JSONObject with(JSONObject json, String name, Object value) {
    try {
      return json.put(name, value == null ? JSONObject.NULL : value);
    } catch (JSONException e) {
      throw new IllegalArgumentException(name + ": not a finite number", e);
    }
  }

  /** The text with every surrogate that stands alone replaced by U+FFFD. */
  static String wellFormed(String text) {
    StringBuilder out = new StringBuilder(text.length());
    for (int i = 0; i < text.length(); ) {
      int point = text.codePointAt(i);
      boolean lone = point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE;
      out.appendCodePoint(lone ? 0xFFFD : point);
      i += Character.charCount(point);
    }
    return out.toString();
  }
}
