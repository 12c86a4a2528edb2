package io.coldframe.spark;

import io.coldframe.UnsupportedError;
import java.util.TimeZone;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Makes readers in executors. */
final class ColdframeReaderFactory implements PartitionReaderFactory {
  private static final long serialVersionUID = 1L;

  private final StructType schema;
  /** The index of the metadata of files among the columns; -1 without them. */
  private final int metadata;
  /** The driver's time zone, with which the query was planned; null without timestamps. */
  private final String zone;

  ColdframeReaderFactory(StructType schema, int metadata) {
    zone = schema.json().contains("\"timestamp\"") ? TimeZone.getDefault().getID() : null;
    this.schema = schema;
    this.metadata = metadata;
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedError("row by row: the connector hands out columnar batches");
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    String own = TimeZone.getDefault().getID();
    if (zone != null && !zone.equals(own)) {
      throw new UnsupportedError("timestamps where the JVM of the driver is in the time zone " + zone + " and that of an executor in " + own
          + ": give both the same -Duser.timezone (spark.driver.extraJavaOptions, spark.executor.extraJavaOptions)");
    }
    return new ColdframeReader(((ColdframePartition) partition).task, schema, metadata);
  }
}
