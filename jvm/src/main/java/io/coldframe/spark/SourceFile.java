package io.coldframe.spark;

import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.Path;

/** The file that rows come from, and the part of it that a task reads: see {@link Native#newFile}. */
final class SourceFile {
  /** The file's bytes; -1 if unknown. */
  final long size;

  /** Milliseconds since 1970; -1 if unknown. */
  final long modified;

  /** The URL in which Spark shows a file: {@code file:///data/a%20b.orc}. */
  final String url;

  /** The first byte of the part; 0 if unknown. */
  final long start;
  /** The bytes of the part; -1 if unknown, as in Spark. */
  final long length;

  SourceFile(byte[] known) {
    String[] parts = new String(known, StandardCharsets.UTF_8).split("\0", -1);
    Path path = parts[0].startsWith("/") ? new Path("file", "", parts[0]) : new Path(parts[0]);
    url = path.toUri().toString();
    size = number(parts[1], -1);
    modified = number(parts[2], -1);
    start = number(parts[3], 0);
    length = number(parts[4], start - 1) - start;
  }

  private static long number(String text, long unknown) {
    return text.isEmpty() ? unknown : Long.parseLong(text);
  }
}
