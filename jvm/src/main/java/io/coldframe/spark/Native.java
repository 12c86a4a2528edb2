package io.coldframe.spark;

/**
 * The calls of the native library. Requests are JSON; tasks are bytes that only the library interprets; tables, readers and batches
 * are handles, and using a closed handle is an error. A failure throws one of the exceptions of {@code io.coldframe}. Call
 * {@link NativeLibrary#load} before the first call.
 */
final class Native {
  private Native() {}

  /**
   * The version of the calls below and of the bytes that are exchanged. The version must be raised here and
   * in the library whenever the calls or the bytes change.
   */
  static final int CALLS = 4;

  /** The library's {@link #CALLS}. */
  static native int calls();

  /** The library's version, as UTF-8. */
  static native byte[] version();

  /** Opens a table: {@code {"options": {..}, "session": {..}, "schema": ..}}. */
  static native long open(byte[] request);

  /** The table's name in plans, as UTF-8. */
  static native byte[] name(long table);

  /** Warnings about a table, as UTF-8, each followed by a zero byte. */
  static native byte[] notices(long table);

  /** A table's columns, as Spark's JSON. */
  static native byte[] schema(long table);

  /** For each filter of a JSON list, 1 if the library evaluates it exactly, otherwise 0. */
  static native byte[] takes(long table, byte[] filters);

  /**
   * The columns of the results of a JSON list of aggregates, as Spark's JSON; null if Spark has to compute
   * one of them.
   */
  static native byte[] aggregates(long table, byte[] functions);

  /**
   * The estimated bytes and rows of a request's result, -1 if unknown. If the request asks for column
   * statistics and they are known, five numbers for each column follow: see {@link ColumnStatistics}.
   */
  static native long[] statistics(long table, byte[] request);

  /**
   * The number of partitions, then the positions of the partition columns among the columns of the request, if
   * each task can read one partition only. Empty if that would make too many tasks, or if nothing is known.
   */
  static native long[] partitioning(long table, byte[] request);

  /**
   * For a request with {@code top}: a filter, as JSON, that the first rows in the order pass; null if all
   * rows would pass.
   */
  static native byte[] top(long table, byte[] request);

  /** The tasks that answer a request: {@link Planned} reads them. */
  static native byte[] plan(long table, byte[] request);

  static native void closeTable(long table);

  /** Opens a reader of a task. */
  static native long read(byte[] task);

  /** The next batch: its handle, rows, bytes, and the addresses of its columns' values; null at the end. */
  static native long[] next(long reader);

  /**
   * The file of the newest batch as UTF-8, null if it is that of the batch before: its path, bytes, modification time in
   * milliseconds, and where the split starts and ends in it. They are separated by zero bytes; what is unknown is empty.
   */
  static native byte[] newFile(long reader);

  /** Frees a batch's memory. */
  static native void release(long batch);

  /** A reader's counters, in the order of {@link Metrics#all}. */
  static native long[] counts(long reader);

  static native void closeReader(long reader);

  /** The numbers of open tables, readers and batches. */
  static native long[] held();
}
