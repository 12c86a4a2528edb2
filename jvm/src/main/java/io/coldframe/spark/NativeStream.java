package io.coldframe.spark;

/** The calls of the native library for streams of new files, with the conventions of {@link Native}. Log entries are lines of JSON. */
final class NativeStream {
  private NativeStream() {}

  /** Opens a stream: {@code {"options": {..}, "session": {..}, "schema": ..}}. */
  static native long open(byte[] request);

  /** Adds entries of the log; returns the number of the newest entry. */
  static native long recall(long stream, byte[] entries);

  /** The next entry, with all new files, or as many as the options allow; null if there is no new file. */
  static native byte[] fresh(long stream, boolean unlimited);

  /** All entries so far. */
  static native byte[] all(long stream);

  /** Limits the stream to the files that exist now. */
  static native void freeze(long stream);

  /** The tasks for the entries after {@code from} up to {@code to}: see {@link Planned}. */
  static native byte[] plan(long stream, long from, long to, byte[] request);

  static native void close(long stream);
}
