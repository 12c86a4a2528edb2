package io.coldframe.spark;

import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Map;

/** Writes JSON for the native library. Spark's JSON library is not used, because its version differs between Spark releases. */
final class Json {
  private Json() {}

  static String text(String value) {
    if (value == null) {
      return "null";
    }
    StringBuilder out = new StringBuilder(value.length() + 2).append('"');
    for (int at = 0; at < value.length(); at++) {
      char c = value.charAt(at);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < ' ' || Character.isSurrogate(c)) {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    return out.append('"').toString();
  }

  static String texts(Collection<String> values) {
    StringBuilder out = new StringBuilder("[");
    for (String value : values) {
      out.append(out.length() > 1 ? "," : "").append(text(value));
    }
    return out.append(']').toString();
  }

  static String object(Map<String, String> texts) {
    StringBuilder out = new StringBuilder("{");
    for (Map.Entry<String, String> entry : texts.entrySet()) {
      out.append(out.length() > 1 ? "," : "").append(text(entry.getKey())).append(':').append(text(entry.getValue()));
    }
    return out.append('}').toString();
  }

  static byte[] bytes(String json) {
    return json.getBytes(StandardCharsets.UTF_8);
  }
}
