package io.coldframe.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Collections;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The rows of a reader's batches. A row is valid until {@link #next} is called again. */
final class BatchRows implements Iterator<InternalRow> {
  private final PartitionReader<ColumnarBatch> reader;
  private Iterator<InternalRow> rows = Collections.emptyIterator();
  private boolean ended;

  BatchRows(PartitionReader<ColumnarBatch> reader) {
    this.reader = reader;
  }

  @Override
  public boolean hasNext() {
    try {
      while (!rows.hasNext() && !ended) {
        if (reader.next()) {
          rows = reader.get().rowIterator();
        } else {
          ended = true;
          reader.close();
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return rows.hasNext();
  }

  @Override
  public InternalRow next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    return rows.next();
  }
}
