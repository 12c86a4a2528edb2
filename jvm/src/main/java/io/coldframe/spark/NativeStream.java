package io.coldframe.spark;

/** What the native library does for streams of new files, in the manner of {@link Native}. Entries are lines of JSON. */
final class NativeStream {
  private NativeStream() {}

  /** Opens a stream: {@code {"options": {..}, "schema": ..}}. */
  static native long open(byte[] request);

  /** Takes in entries of the log; the number of the newest. */
  static native long recall(long stream, byte[] entries);

  /** The next entry, with all new files or as many as the options allow; null where there is no new file. */
  static native byte[] fresh(long stream, boolean unlimited);

  /** All entries so far. */
  static native byte[] all(long stream);

  /** What lies there now is all that is read. */
  static native void freeze(long stream);

  /** The tasks that read the files of the entries behind one, up to another, each behind its length in 4 bytes. */
  static native byte[] plan(long stream, long from, long to, byte[] request);

  static native void close(long stream);
}
