package io.coldframe.spark;

/** The calls of the native library that encode a file. {@link Native} explains handles, requests and failures. */
final class NativeFile {
  private NativeFile() {}

  /** Checks a request, {@code {"options": {..}, "schema": ..}}; returns the ending of the names of its files as UTF-8. */
  static native byte[] check(byte[] request);

  /** Begins a file. */
  static native long begin(byte[] request);

  /** Adds rows in the form of {@link RowBytes}. */
  static native void add(long file, byte[] rows, int count);

  /** Completes the file; {@link #piece} then returns its last bytes. */
  static native void finish(long file);

  /** The next bytes of the file, about a megabyte at most; none if there are no more for now. */
  static native byte[] piece(long file);

  static native void close(long file);
}
