package io.coldframe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.internal.SQLConf;

/** Which writes of a transactional table count: a metastore knows, its directories do not. */
final class ValidWrites {
  /** Says it in the metastore's place, in the form of Hive's {@code hive.txn.tables.valid.writeids}, with {@code $} between tables. */
  static final String SETTING = "spark.coldframe.hive.validWriteIds";

  private static final int ABORTED = 2;

  private final long highest;
  private final List<Long> open = new ArrayList<>();
  private final List<Long> aborted = new ArrayList<>();

  private ValidWrites(Object highest) throws HiveScans.FallbackToSpark {
    this.highest = number(highest);
  }

  /** In Hive's form, {@code table:highest:lowest open:open,..:aborted,..}; {@code client} is Spark's for the metastore. */
  static String of(String table, Object client) throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    for (String one : SQLConf.get().getConfString(SETTING, "").split("\\$")) {
      if (one.substring(0, Math.max(0, one.indexOf(':'))).trim().equalsIgnoreCase(table)) {
        return one.trim();
      }
    }
    if (Reflected.call(client, "getConf", "hive.metastore.uris", "").toString().trim().isEmpty()) {
      throw new HiveScans.FallbackToSpark("Spark has no metastore service to ask which writes count: say it in " + SETTING);
    }
    try (MetastoreCalls calls = new MetastoreCalls(Reflected.call(client, "conf"))) {
      return asked(table, calls);
    } catch (ReflectiveOperationException e) {
      throw new HiveScans.FallbackToSpark("the metastore does not say which writes count (" + e.getMessage() + "): say it in " + SETTING);
    }
  }

  private static String asked(String table, MetastoreCalls calls) throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    Map<Integer, Object> answer = calls.call("get_open_txns_info", Collections.emptyList());
    Map<?, ?> found = answer == null ? Collections.emptyMap() : (Map<?, ?>) answer.get(0);
    ValidWrites transactions = new ValidWrites(found.get(1));
    for (Object each : (List<?>) found.get(2)) {
      Map<?, ?> one = (Map<?, ?>) each;
      boolean isAborted = Integer.valueOf(ABORTED).equals(one.get(2));
      (isAborted ? transactions.aborted : transactions.open).add(number(one.get(1)));
    }
    List<Object> request = Arrays.asList(Collections.singletonList(table), transactions.text());
    answer = calls.call("get_valid_write_ids", request);
    if (answer == null) {
      // Before Hive 3, directories have the numbers of transactions.
      return table + ":" + transactions.text();
    }
    List<?> tables = (List<?>) ((Map<?, ?>) answer.get(0)).get(1);
    if (tables.size() != 1) {
      throw new HiveScans.FallbackToSpark("the metastore does not say which writes count: say it in " + SETTING);
    }
    Map<?, ?> of = (Map<?, ?>) tables.get(0);
    ValidWrites writes = new ValidWrites(of.get(2));
    byte[] bits = of.get(5) instanceof byte[] ? (byte[]) of.get(5) : new byte[0];
    List<?> invalid = (List<?>) of.get(3);
    for (int at = 0; at < invalid.size(); at++) {
      boolean isAborted = at / 8 < bits.length && (bits[at / 8] >> at % 8 & 1) != 0;
      (isAborted ? writes.aborted : writes.open).add(number(invalid.get(at)));
    }
    return table + ":" + writes.text();
  }

  private static long number(Object said) throws HiveScans.FallbackToSpark {
    if (!(said instanceof Long)) {
      throw new HiveScans.FallbackToSpark("the metastore does not say which writes count: say it in " + SETTING);
    }
    return (Long) said;
  }

  private String text() {
    long least = open.isEmpty() ? Long.MAX_VALUE : Collections.min(open);
    return highest + ":" + least + ":" + joined(open) + ":" + joined(aborted);
  }

  private static String joined(List<Long> numbers) {
    return numbers.stream().map(String::valueOf).collect(Collectors.joining(","));
  }
}
