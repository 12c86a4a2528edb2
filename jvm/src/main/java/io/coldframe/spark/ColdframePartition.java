package io.coldframe.spark;

import org.apache.spark.sql.connector.read.InputPartition;

/** What one task reads, as planned by the native library. */
class ColdframePartition implements InputPartition {
  private static final long serialVersionUID = 1L;

  final byte[] task;
  /** Not sent to executors, since only the driver uses the hosts. */
  private final transient String[] hosts;

  ColdframePartition(byte[] task, String[] hosts) {
    this.task = task;
    this.hosts = hosts;
  }

  @Override
  public String[] preferredLocations() {
    return hosts == null ? new String[0] : hosts;
  }
}
