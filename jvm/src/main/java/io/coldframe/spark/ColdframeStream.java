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
 * New files, batch by batch. Which file is in which batch stands in a log beside Spark's own, and is written before Spark hears of
 * the batch: {@code stream.rs} says how. The limits of a batch are options, which the native library reads.
 */
final class ColdframeStream implements MicroBatchStream, SupportsTriggerAvailableNow {
  private static final Pattern OFFSET = Pattern.compile("\\s*\\{\\s*\"entry\"\\s*:\\s*(-?[0-9]{1,18})\\s*\\}\\s*");

  /** An entry of the log: all up to it have been read. */
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
  private final String request;
  private long stream;
  private long last = -1;

  /** {@code opening}: the options and columns of the table; {@code request}: what is read of it. */
  ColdframeStream(String opening, StructType required, String request, String checkpoint) {
    NativeLibrary.load();
    this.required = required;
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
    Matcher found = OFFSET.matcher(json);
    if (!found.matches()) {
      throw new ColdframeError("the checkpoint is of another source: its offset is " + json);
    }
    return new Entry(Long.parseLong(found.group(1)));
  }

  @Override
  public void prepareForTriggerAvailableNow() {
    NativeStream.freeze(stream);
  }

  /** The limits are options, and what Spark gives back is this; or all, in the trigger that runs once. */
  @Override
  public ReadLimit getDefaultReadLimit() {
    return new ReadLimit() {};
  }

  @Override
  public synchronized Offset latestOffset(Offset start, ReadLimit limit) {
    if (last > ((Entry) start).number) {
      return new Entry(last); // what was written before the driver ended, and Spark did not hear of
    }
    byte[] entry = NativeStream.fresh(stream, limit instanceof ReadAllAvailable);
    if (entry != null) {
      log.write(last + 1, entry);
      last = NativeStream.recall(stream, entry);
      if (StreamLog.isDue(last)) {
        log.writeAll(last, NativeStream.all(stream));
      }
    }
    return last < 0 ? null : new Entry(last); // null: there is nothing to make a batch of yet
  }

  @Override
  public Offset latestOffset() {
    throw new UnsupportedOperationException("latestOffset(start, limit) takes its place");
  }

  @Override
  public InputPartition[] planInputPartitions(Offset from, Offset to) {
    byte[] tasks = NativeStream.plan(stream, ((Entry) from).number, ((Entry) to).number, Json.bytes(request));
    return Planned.partitions(tasks, new DataType[0]);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new ColdframeReaderFactory(required);
  }

  @Override
  public void commit(Offset end) {
    // The log keeps what was read: it says what is not new.
  }

  /** What a query's progress calls the source. */
  @Override
  public String toString() {
    return "coldframe [columns: " + String.join(", ", required.fieldNames()) + "]";
  }

  @Override
  public synchronized void stop() {
    NativeStream.close(stream);
  }
}
