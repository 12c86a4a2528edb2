package io.coldframe.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;

/** A task whose rows all have the same partition values. */
final class KeyedPartition extends ColdframePartition implements HasPartitionKey {
  private static final long serialVersionUID = 1L;

  private final InternalRow key;

  KeyedPartition(byte[] task, String[] hosts, InternalRow key) {
    super(task, hosts);
    this.key = key;
  }

  @Override
  public InternalRow partitionKey() {
    return key;
  }
}
