package io.coldframe.spark;

import java.util.function.LongConsumer;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * One request to a table. Equal requests to the same table are equal, so that Spark reads once for both
 * requests.
 */
final class ColdframeBatch implements Batch {
  private final OpenTable table;
  private final StructType required;
  private final int metadata;
  private final String request;
  private final DataType[] keys;
  private InputPartition[] planned;
  private final LongConsumer pruned;

  /**
   * {@code keys}: the types of the partition columns, if the request asks for tasks of one partition each. {@code pruned} receives
   * the number of units that have no task. {@code metadata}: the index of the metadata of files among the columns, or -1.
   */
  ColdframeBatch(
      OpenTable table, StructType required, int metadata, String request, DataType[] keys, LongConsumer pruned) {
    this.metadata = metadata;
    this.keys = keys;
    this.pruned = pruned;
    this.table = table;
    this.required = required;
    this.request = request;
  }

  @Override
  public synchronized InputPartition[] planInputPartitions() {
    if (planned == null) {
      byte[] plan = table.plan(request);
      planned = Planned.partitions(plan, keys);
      pruned.accept(Planned.pruned(plan));
    }
    return planned;
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new ColdframeReaderFactory(required, metadata);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ColdframeBatch
        && ((ColdframeBatch) other).table == table
        && ((ColdframeBatch) other).request.equals(request)
        && ((ColdframeBatch) other).required.equals(required);
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(table) * 31 + request.hashCode();
  }
}
