package io.coldframe.spark;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.types.StructType;

/** A file of a task. The native library encodes its rows; Hadoop's file system stores its bytes. */
final class WrittenFile extends OutputWriter {
  private static final int BATCH_ROWS = 8192;
  private static final int BATCH_BYTES = 1 << 20;

  private final String path;
  private final RowBytes rows;
  private final OutputStream out;
  private long file;
  /** Whether an error has made the file incomplete. Spark closes it all the same, and then deletes it. */
  private boolean isBroken;

  WrittenFile(String path, StructType schema, byte[] request, TaskAttemptContext context) {
    this.path = path;
    rows = new RowBytes(schema);
    NativeLibrary.load();
    file = NativeFile.begin(request);
    try {
      Path place = new Path(path);
      out = place.getFileSystem(context.getConfiguration()).create(place, false);
    } catch (IOException e) {
      NativeFile.close(file);
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public String path() {
    return path;
  }

  @Override
  public void write(InternalRow row) {
    rows.add(row);
    if (rows.count() >= BATCH_ROWS || rows.size() >= BATCH_BYTES) {
      flush(false);
    }
  }

  /** Encodes the rows so far, and stores what that makes. */
  private void flush(boolean isLast) {
    isBroken = true;
    int count = rows.count();
    NativeFile.add(file, rows.take(), count);
    if (isLast) {
      NativeFile.finish(file);
    }
    try {
      for (byte[] piece = NativeFile.piece(file); piece.length > 0; piece = NativeFile.piece(file)) {
        out.write(piece);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    isBroken = false;
  }

  @Override
  public void close() {
    if (file == 0) {
      return;
    }
    try {
      if (!isBroken) {
        flush(true);
      }
    } finally {
      NativeFile.close(file);
      file = 0;
      closeOutput();
    }
  }

  private void closeOutput() {
    try {
      out.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
