package io.coldframe.spark;

import org.apache.spark.sql.connector.read.InputPartition;

/** What one task reads, as the native library has planned it. */
final class ColdframePartition implements InputPartition {
  private static final long serialVersionUID = 1L;

  final byte[] task;

  ColdframePartition(byte[] task) {
    this.task = task;
  }
}
