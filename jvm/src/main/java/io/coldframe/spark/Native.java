package io.coldframe.spark;

/**
 * What the native library does. Requests are JSON, tasks are bytes that only the library reads; tables, readers and batches
 * are numbers, and a number that was closed is an error. A failure is one of the exceptions of {@code io.coldframe}. Whoever
 * makes the first call loads the library before: {@link NativeLibrary#load}.
 */
final class Native {
  private Native() {}

  /** The version of the calls below, and of the bytes that both sides exchange. Raise it here and in the library when one of them changes. */
  static final int CALLS = 2;

  /** The library's {@link #CALLS}. */
  static native int calls();

  /** The library's version, as UTF-8. */
  static native byte[] version();

  /** Opens a table: {@code {"options": {..}, "schema": ..}}. */
  static native long open(byte[] request);

  /** What a table is called in plans, as UTF-8. */
  static native byte[] name(long table);

  /** What a user of a table should hear of though it is no error, as UTF-8, each with a zero byte behind it. */
  static native byte[] notices(long table);

  /** A table's columns, as Spark's JSON. */
  static native byte[] schema(long table);

  /** For each of a JSON list of filters, 1 where the library evaluates it exactly. */
  static native byte[] takes(long table, byte[] filters);

  /** The columns of the answer to a JSON list of aggregates, as Spark's JSON; null where one of them is Spark's to compute. */
  static native byte[] aggregates(long table, byte[] asked);

  /**
   * Bytes and rows of a request's answer, about; -1 where that is not known. Behind them, where the request asks for that and it is
   * known, five numbers for each column: see {@link ColumnStatistics}.
   */
  static native long[] statistics(long table, byte[] request);

  /**
   * Where each task can be of one partition only: the number of partitions, then the places of their columns among those of the
   * request. Empty where that is not worth its tasks, or nothing is known.
   */
  static native long[] partitioning(long table, byte[] request);

  /** A filter that keeps the first rows in the order that a request has as {@code top}, as JSON; null where it would keep all. */
  static native byte[] top(long table, byte[] request);

  /** The tasks that answer a request: {@link Planned} reads them. */
  static native byte[] plan(long table, byte[] request);

  static native void closeTable(long table);

  /** Begins to read a task. */
  static native long read(byte[] task);

  /** The next batch: its number, rows, bytes, and where its columns' values stand; null at the end. */
  static native long[] next(long reader);

  /** Gives a batch's memory back. */
  static native void release(long batch);

  /** What a reader has done, in the order of {@link Metrics#all}. */
  static native long[] counts(long reader);

  static native void closeReader(long reader);

  /** How many tables, readers and batches there are. */
  static native long[] held();
}
