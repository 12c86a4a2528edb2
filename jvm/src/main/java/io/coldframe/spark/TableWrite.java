package io.coldframe.spark;

import io.coldframe.UnsupportedError;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.SupportsOverwrite;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.AlwaysTrue;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.InsertableRelation;

/** {@code INSERT INTO} and {@code INSERT OVERWRITE} of a table, also of one partition. */
final class TableWrite implements SupportsOverwrite {
  private final Map<String, String> options;
  private final List<String> partitions;
  private SaveMode mode = SaveMode.Append;
  /** The partition that is overwritten, by names of columns; empty for all partitions. */
  private final Map<String, Object> values = new HashMap<>();

  TableWrite(Map<String, String> options, List<String> partitions) {
    this.options = options;
    this.partitions = partitions;
  }

  /** The columns by which a table is partitioned. */
  static List<String> columns(Transform[] partitioning) {
    List<String> columns = new ArrayList<>();
    for (Transform each : partitioning) {
      if (!each.name().equals("identity") || each.references()[0].fieldNames().length != 1) {
        throw new UnsupportedError("a table partitioned by " + each.describe() + ": only by columns");
      }
      columns.add(each.references()[0].fieldNames()[0]);
    }
    return columns;
  }

  /** Overrides a method of Spark 3.4 and later. */
  public boolean canOverwrite(Filter[] filters) {
    for (Filter filter : filters) {
      boolean isKey = name(filter) != null && partitions.stream().anyMatch(name(filter)::equalsIgnoreCase);
      if (!isKey && !(filter instanceof AlwaysTrue)) {
        return false;
      }
    }
    return true;
  }

  private static String name(Filter filter) {
    return filter instanceof EqualTo
        ? ((EqualTo) filter).attribute()
        : filter instanceof EqualNullSafe ? ((EqualNullSafe) filter).attribute() : null;
  }

  @Override
  public WriteBuilder overwrite(Filter[] filters) {
    mode = SaveMode.Overwrite;
    for (Filter filter : filters) {
      if (name(filter) != null) {
        Object value = filter instanceof EqualTo ? ((EqualTo) filter).value() : ((EqualNullSafe) filter).value();
        values.put(name(filter), value);
      }
    }
    return this;
  }

  @Override
  public WriteBuilder truncate() {
    mode = SaveMode.Overwrite;
    return this;
  }

  @Override
  public Write build() {
    Map<String, String> all = new HashMap<>(options);
    // The statement's own mode has already decided which partitions are replaced.
    all.put("partitionoverwritemode", "static");
    InsertableRelation relation =
        (data, overwrite) -> Writes.save(all, overwrite ? SaveMode.Overwrite : mode, partitions, this::isReplaced, data);
    return (V1Write) () -> relation;
  }

  /** Whether a file, by its path below the table, is of a partition that is overwritten. */
  private boolean isReplaced(String path) {
    for (Map.Entry<String, Object> wanted : values.entrySet()) {
      boolean isOf = false;
      for (String folder : path.split("/")) {
        int at = folder.indexOf('=');
        String name = at < 0 ? "" : ExternalCatalogUtils.unescapePathName(folder.substring(0, at));
        isOf |= name.equalsIgnoreCase(wanted.getKey()) && isValue(folder.substring(at + 1), wanted.getValue());
      }
      if (!isOf) {
        return false;
      }
    }
    return true;
  }

  private static boolean isValue(String folder, Object value) {
    String text = ExternalCatalogUtils.unescapePathName(folder);
    if (value == null) {
      return text.equals(ExternalCatalogUtils.DEFAULT_PARTITION_NAME());
    }
    if (value instanceof Number) {
      try {
        return new java.math.BigDecimal(text).compareTo(new java.math.BigDecimal(value.toString())) == 0;
      } catch (NumberFormatException e) {
        return false;
      }
    }
    return text.equals(value.toString());
  }
}
