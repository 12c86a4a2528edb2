package io.coldframe.spark;

import org.apache.spark.TaskContext;
import org.apache.spark.rdd.InputFileBlockHolder;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;

/**
 * The batches of one task. The memory of a batch is freed when Spark asks for the next batch or closes the
 * batch. It is freed at the latest when the task ends, in whatever way.
 */
final class ColdframeReader implements PartitionReader<ColumnarBatch> {
  private final StructField[] fields;
  private final TaskMemory memory;
  private long reader;
  private NativeBatch current;
  private ColumnarBatch batch;
  private final int metadata;
  private SourceFile file;
  private long[] counts = new long[Metrics.all().length];

  /** {@code metadata}: the index of the metadata of files among the columns, -1 without them. */
  ColdframeReader(byte[] task, StructType schema, int metadata) {
    fields = schema.fields();
    this.metadata = metadata;
    TaskContext context = TaskContext.get();
    memory = TaskMemory.of(context);
    NativeLibrary.load();
    reader = Native.read(task);
    if (context != null) {
      context.addTaskCompletionListener((TaskCompletionListener) ended -> close());
    }
  }

  @Override
  public synchronized boolean next() {
    releaseBatch();
    long[] layout = reader == 0 ? null : Native.next(reader);
    if (layout == null) {
      return false;
    }
    tellFile();
    NativeBatch next = new NativeBatch(layout[0], layout[2], fields.length - (metadata < 0 ? 0 : 1), memory);
    ColumnVector[] columns = new ColumnVector[fields.length];
    NativeVector.Cursor cursor = new NativeVector.Cursor(layout, 3);
    for (int at = 0; at < columns.length; at++) {
      columns[at] =
          at == metadata
              ? FileMetadata.vector((StructType) fields[at].dataType(), file, (int) layout[1])
              : new NativeVector(fields[at].dataType(), cursor, next);
    }
    current = next;
    if (memory != null) {
      memory.acquire(layout[2]);
    }
    batch = new ColumnarBatch(columns, (int) layout[1]);
    return true;
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  @Override
  public synchronized CustomTaskMetric[] currentMetricsValues() {
    if (reader != 0) {
      counts = Native.counts(reader);
    }
    return Metrics.of(counts);
  }

  @Override
  public synchronized void close() {
    releaseBatch();
    if (reader != 0) {
      counts = Native.counts(reader);
      Native.closeReader(reader);
      reader = 0;
      InputFileBlockHolder.unset();
    }
  }

  /** Tells Spark the file of the next rows, for {@code input_file_name()}. */
  private void tellFile() {
    byte[] known = Native.newFile(reader);
    if (known != null) {
      file = new SourceFile(known);
      InputFileBlockHolder.set(file.url, file.start, file.length);
    }
  }

  private void releaseBatch() {
    if (current != null) {
      current.release();
      current = null;
      batch = null;
    }
  }
}
