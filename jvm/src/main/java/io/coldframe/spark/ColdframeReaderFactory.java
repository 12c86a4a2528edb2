package io.coldframe.spark;

import io.coldframe.UnsupportedError;
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

  ColdframeReaderFactory(StructType schema, int metadata) {
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
    return new ColdframeReader(((ColdframePartition) partition).task, schema, metadata);
  }
}
