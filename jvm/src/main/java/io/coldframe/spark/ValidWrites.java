package io.coldframe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.internal.SQLConf;

/**
 * The valid write ids of a transactional table. Only the metastore knows them; the directories do not state
 * them.
 */
final class ValidWrites {
  /**
   * The setting that replaces the metastore's answer. The setting has the form of Hive's {@code
   * hive.txn.tables.valid.writeids}, with {@code $} between tables.
   */
  static final String SETTING = "spark.coldframe.hive.validWriteIds";

  private static final int ABORTED = 2;

  private final long highest;
  private final List<Long> open = new ArrayList<>();
  private final List<Long> aborted = new ArrayList<>();

  private ValidWrites(Object highest) throws HiveScans.FallbackToSpark {
    this.highest = number(highest);
  }

  /**
   * The write ids of a table in Hive's form, {@code table:highest:lowest open:open,..:aborted,..}; {@code
   * client} is Spark's client of the metastore.
   */
  static String of(String table, Object client) throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    for (String entry : SQLConf.get().getConfString(SETTING, "").split("\\$")) {
      if (entry.substring(0, Math.max(0, entry.indexOf(':'))).trim().equalsIgnoreCase(table)) {
        return entry.trim();
      }
    }
    if (Reflected.call(client, "getConf", "hive.metastore.uris", "").toString().trim().isEmpty()) {
      throw new HiveScans.FallbackToSpark("Spark has no metastore service that lists the valid writes: set " + SETTING);
    }
    try (MetastoreCalls calls = new MetastoreCalls(Reflected.call(client, "conf"))) {
      return fromMetastore(table, calls);
    } catch (ReflectiveOperationException e) {
      throw new HiveScans.FallbackToSpark("the metastore does not list the valid writes (" + e.getMessage() + "): set " + SETTING);
    }
  }

  private static String fromMetastore(String table, MetastoreCalls calls) throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    Map<Integer, Object> answer = calls.call("get_open_txns_info", Collections.emptyList());
    Map<?, ?> info = answer == null ? Collections.emptyMap() : (Map<?, ?>) answer.get(0);
    ValidWrites transactions = new ValidWrites(info.get(1));
    for (Object each : (List<?>) info.get(2)) {
      Map<?, ?> transaction = (Map<?, ?>) each;
      boolean isAborted = Integer.valueOf(ABORTED).equals(transaction.get(2));
      (isAborted ? transactions.aborted : transactions.open).add(number(transaction.get(1)));
    }
    List<Object> request = Arrays.asList(Collections.singletonList(table), transactions.text());
    answer = calls.call("get_valid_write_ids", request);
    if (answer == null) {
      // Before Hive 3, directories are numbered by transaction.
      return table + ":" + transactions.text();
    }
    List<?> tables = (List<?>) ((Map<?, ?>) answer.get(0)).get(1);
    if (tables.size() != 1) {
      throw new HiveScans.FallbackToSpark("the metastore does not list the valid writes: set " + SETTING);
    }
    Map<?, ?> ids = (Map<?, ?>) tables.get(0);
    ValidWrites writes = new ValidWrites(ids.get(2));
    byte[] bits = ids.get(5) instanceof byte[] ? (byte[]) ids.get(5) : new byte[0];
    List<?> invalid = (List<?>) ids.get(3);
    for (int at = 0; at < invalid.size(); at++) {
      boolean isAborted = at / 8 < bits.length && (bits[at / 8] >> at % 8 & 1) != 0;
      (isAborted ? writes.aborted : writes.open).add(number(invalid.get(at)));
    }
    return table + ":" + writes.text();
  }

  private static long number(Object value) throws HiveScans.FallbackToSpark {
    if (!(value instanceof Long)) {
      throw new HiveScans.FallbackToSpark("the metastore does not list the valid writes: set " + SETTING);
    }
    return (Long) value;
  }

  private String text() {
    long lowest = open.isEmpty() ? Long.MAX_VALUE : Collections.min(open);
    return highest + ":" + lowest + ":" + joined(open) + ":" + joined(aborted);
  }

  private static String joined(List<Long> numbers) {
    return numbers.stream().map(String::valueOf).collect(Collectors.joining(","));
  }
}
