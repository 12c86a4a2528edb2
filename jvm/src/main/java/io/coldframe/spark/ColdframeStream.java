package io.coldframe.spark;

import io.coldframe.ColdframeError;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Streams new files batch by batch. In addition to Spark's log, a log of this class records which files are
 * in which batch; an entry is written before Spark gets the batch ({@code stream.rs} has the details). The
 * limits of a batch are options, which the native library reads.
 */
final class ColdframeStream implements MicroBatchStream, SupportsTriggerAvailableNow {
  private static final Pattern OFFSET = Pattern.compile("\\s*\\{\\s*\"entry\"\\s*:\\s*(-?[0-9]{1,18})\\s*\\}\\s*");

  /** A log entry as an offset: all entries up to it have been read. */
  private static final class Entry extends Offset {
    private final long number;

    Entry(long number) {
      this.number = number;
    }

    @Override
    public String json() {
      return "{\"entry\":" + number + "}";
    }
  }

  private final StreamLog log;
  private final StructType required;
  private final int metadata;
  private final String request;
  private long stream;
  private long last = -1;

  /**
   * {@code opening}: the options and columns of the table; {@code request}: the columns and filters; {@code metadata}: the index of
   * the metadata of files among the columns, or -1.
   */
  ColdframeStream(String opening, StructType required, int metadata, String request, String checkpoint) {
    NativeLibrary.load();
    this.required = required;
    this.metadata = metadata;
    this.request = request;
    stream = NativeStream.open(Json.bytes(opening));
    try {
      log = new StreamLog(checkpoint);
      for (byte[] entries : log.read()) {
        last = NativeStream.recall(stream, entries);
      }
    } catch (RuntimeException e) {
      stop();
      throw e;
    }
  }

  @Override
  public Offset initialOffset() {
    return new Entry(-1);
  }

  @Override
  public Offset deserializeOffset(String json) {
    Matcher matcher = OFFSET.matcher(json);
    if (!matcher.matches()) {
      throw new ColdframeError("the checkpoint belongs to another source: its offset is " + json);
    }
    return new Entry(Long.parseLong(matcher.group(1)));
  }

  @Override
  public void prepareForTriggerAvailableNow() {
    NativeStream.freeze(stream);
  }

  /**
   * This is a placeholder, since the limits are options. Spark passes it back, or passes {@link
   * ReadAllAvailable} for a trigger that runs once.
   */
  @Override
  public ReadLimit getDefaultReadLimit() {
    return new ReadLimit() {};
  }

  @Override
  public synchronized Offset latestOffset(Offset start, ReadLimit limit) {
    if (last > ((Entry) start).number) {
      return new Entry(last); // these entries were written by a driver that ended before Spark got them
    }
    byte[] entry = NativeStream.fresh(stream, limit instanceof ReadAllAvailable);
    if (entry != null) {
      log.write(last + 1, entry);
      last = NativeStream.recall(stream, entry);
      if (StreamLog.hasSnapshot(last)) {
        log.writeSnapshot(last, NativeStream.all(stream));
      }
    }
    return last < 0 ? null : new Entry(last); // null means that there is no file yet
  }

  @Override
  public Offset latestOffset() {
    throw new UnsupportedOperationException("use latestOffset(start, limit)");
  }

  @Override
  public InputPartition[] planInputPartitions(Offset from, Offset to) {
    byte[] tasks = NativeStream.plan(stream, ((Entry) from).number, ((Entry) to).number, Json.bytes(request));
    return Planned.partitions(tasks, new DataType[0]);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new ColdframeReaderFactory(required, metadata);
  }

  @Override
  public void commit(Offset end) {
    // There is nothing to do: the log still needs the files that were read, to recognise new files.
  }

  /** The source's name in a query's progress. */
  @Override
  public String toString() {
    return "coldframe [columns: " + String.join(", ", required.fieldNames()) + "]";
  }

  @Override
  public synchronized void stop() {
    NativeStream.close(stream);
  }
}
