package io.coldframe.spark;

import io.coldframe.SchemaError;
import java.time.Instant;
import java.time.ZoneId;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;

/** The options of Spark's own sources of files that depend on the session: its settings and its time zone. */
final class FileOptions {
  private static final List<String> SELECTING =
      Collections.unmodifiableList(
          Arrays.asList("pathglobfilter", "recursivefilelookup", "modifiedafter", "modifiedbefore"));

  private static final List<String> SWITCHES =
      Collections.unmodifiableList(
          Arrays.asList("recursiveFileLookup", "ignoreMissingFiles", "ignoreCorruptFiles", "mergeSchema"));

  private FileOptions() {}

  /** Whether options select some of the files. */
  static boolean areSelecting(Map<String, String> options) {
    return SELECTING.stream().anyMatch(options::containsKey);
  }

  /** The options, with the session's settings where there is no option, and with times as instants. */
  static Map<String, String> of(Map<String, String> given) {
    Map<String, String> options = new HashMap<>(given);
    for (String name : SWITCHES) {
      String value = options.get(name.toLowerCase(Locale.ROOT));
      if (value != null && !value.equalsIgnoreCase("true") && !value.equalsIgnoreCase("false")) {
        throw new IllegalArgumentException("option " + name + ": expected true or false, found '" + value + "'");
      }
    }
    SQLConf session = SQLConf.get();
    if (session.ignoreMissingFiles()) {
      options.putIfAbsent("ignoremissingfiles", "true");
    }
    if (session.ignoreCorruptFiles() && !options.containsKey("mode")) {
      options.putIfAbsent("ignorecorruptfiles", "true");
    }
    // The option `timezone` is that of the files, not of these times.
    String zone = session.sessionLocalTimeZone();
    for (String name : new String[] {"modifiedAfter", "modifiedBefore"}) {
      options.computeIfPresent(name.toLowerCase(Locale.ROOT), (key, text) -> instant(name, text, zone));
    }
    return options;
  }

  private static String instant(String name, String text, String zone) {
    ZoneId id = DateTimeUtils.getZoneId(zone);
    Option<Object> micros = DateTimeUtils.stringToTimestamp(UTF8String.fromString(text), id);
    if (micros.isEmpty()) {
      String message = "option " + name + ": expected a time such as 2024-01-31T00:00:00, found '" + text + "'";
      throw SparkErrors.noTime(name, text, new SchemaError(message));
    }
    long time = (Long) micros.get();
    long second = Math.floorDiv(time, 1_000_000L);
    return Instant.ofEpochSecond(second, Math.floorMod(time, 1_000_000L) * 1000).toString();
  }
}
