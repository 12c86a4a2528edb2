package io.coldframe.spark;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.unsafe.types.UTF8String;

/** A task planned by the native library, with data that only the driver needs. {@code planned.rs} defines the bytes. */
final class Planned {
  /** Bytes of a file that a task reads. */
  static final class Range {
    final String path;
    final long start;
    final long end;

    Range(String path, long start, long end) {
      this.path = path;
      this.start = start;
      this.end = end;
    }
  }

  final byte[] task;
  /** The values of the task's partition; null if a task may read several partitions. */
  final InternalRow key;

  /** The ranges that the task reads, if the store knows the hosts of its blocks. */
  final List<Range> ranges = new ArrayList<>();

  private Planned(ByteBuffer from, DataType[] keys) {
    task = bytes(from);
    Object[] values = new Object[from.getInt()];
    for (int at = 0; at < values.length; at++) {
      values[at] = value(from, keys[at]);
    }
    key = values.length == 0 ? null : new GenericInternalRow(values);
    for (int left = from.getInt(); left > 0; left--) {
      ranges.add(new Range(text(from), from.getLong(), from.getLong()));
    }
  }

  /** A plan without tasks. */
  static byte[] nothing() {
    return new byte[Long.BYTES + Integer.BYTES];
  }

  /** The number of units that have no task in a plan, because metadata rule them out. */
  static long pruned(byte[] planned) {
    return ByteBuffer.wrap(planned).getLong();
  }

  /** The tasks of a plan for Spark. {@code keys}: the types of the columns that tasks are partitioned by. */
  static InputPartition[] partitions(byte[] planned, DataType[] keys) {
    ByteBuffer all = ByteBuffer.wrap(planned);
    all.getLong(); // the number of pruned units, see pruned
    Map<String, String> settings = new HashMap<>();
    for (int left = all.getInt(); left > 0; left--) {
      settings.put(text(all), text(all));
    }
    List<Planned> tasks = new ArrayList<>();
    while (all.hasRemaining()) {
      tasks.add(new Planned(all, keys));
    }
    BlockHosts hosts = BlockHosts.of(tasks, settings);
    return tasks.stream().map(task -> task.partition(hosts.of(task))).toArray(InputPartition[]::new);
  }

  private ColdframePartition partition(String[] hosts) {
    return key == null ? new ColdframePartition(task, hosts) : new KeyedPartition(task, hosts, key);
  }

  private static byte[] bytes(ByteBuffer from) {
    byte[] bytes = new byte[from.getInt()];
    from.get(bytes);
    return bytes;
  }

  private static String text(ByteBuffer from) {
    return new String(bytes(from), StandardCharsets.UTF_8);
  }

  /** A value in the form of Spark's rows. */
  private static Object value(ByteBuffer from, DataType type) {
    switch (from.get()) {
      case 0:
        return null;
      case 1:
        return number(from.getLong(), type);
      default:
        return UTF8String.fromBytes(bytes(from));
    }
  }

  /** A number, boolean or date in the form of Spark's rows. */
  static Object number(long value, DataType type) {
    if (type instanceof BooleanType) {
      return value != 0;
    }
    if (type instanceof LongType) {
      return value;
    }
    if (type instanceof ByteType) {
      return (byte) value;
    }
    return type instanceof ShortType ? (Object) (short) value : (Object) (int) value;
  }
}
