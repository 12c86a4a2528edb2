package io.coldframe.spark;

import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table of RCFiles as a Hive metastore defines it, for one query: those of its partitions that the query's filter leaves, and the
 * files that are there now.
 */
final class HiveTable implements SupportsRead {
  /** Values of these types are the same by Hive's SerDe in Spark and here. Timestamps: see {@link #demandTypes}. */
  private static final List<String> TYPES =
      Arrays.asList(
          "tinyint", "smallint", "int", "bigint", "boolean", "float", "double", "string", "binary", "date", "decimal",
          "timestamp", "array", "map", "struct");

  /** What a metastore calls the partition of null. */
  private static final String NULL = "__HIVE_DEFAULT_PARTITION__";

  private final TableIdentifier name;
  private final StructType schema;
  private final OpenTable open;

  /** {@code condition}: the filter above it, or null. */
  HiveTable(SparkSession session, HiveTableRelation relation, Expression condition)
      throws HiveScans.Left, ReflectiveOperationException {
    name = relation.tableMeta().identifier();
    StructType columns = new StructType();
    for (Object each : Reflected.all(relation, "output")) {
      AttributeReference attribute = (AttributeReference) each;
      columns = columns.add(attribute.name(), attribute.dataType(), attribute.nullable());
    }
    schema = columns;
    open = open(session, new HivePartitions(session, relation, condition));
  }

  @Override
  public String name() {
    return name.unquotedString();
  }

  @Override
  @Deprecated
  public StructType schema() {
    return schema;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Collections.unmodifiableSet(EnumSet.of(TableCapability.BATCH_READ));
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap scan) {
    return new ColdframeScanBuilder(open, schema, Collections.emptyMap());
  }

  private OpenTable open(SparkSession session, HivePartitions partitions)
      throws HiveScans.Left, ReflectiveOperationException {
    Object catalog = Reflected.call(Reflected.call(session, "sharedState"), "externalCatalog");
    Object client = Reflected.call(Reflected.call(Reflected.call(catalog, "unwrapped"), "client"), "msClient");
    String database = name.database().getOrElse(() -> "default");
    Object table = Reflected.call(client, "getTable", database, name.table());
    Object storage = Reflected.call(table, "getSd");
    List<?> keys = (List<?>) Reflected.call(table, "getPartitionKeys");
    Map<String, String> options = options(table, storage);
    String columns = columns(storage);
    options.put("schema", columns);
    options.put("path", Reflected.text(storage, "getLocation")); // what it is called in plans
    StringBuilder folders = new StringBuilder("[");
    if (keys.isEmpty()) {
      folders.append(folder(storage, keys, Collections.emptyList()));
    } else {
      for (Object partition : partitions.of(client, database, name.table())) {
        Object own = Reflected.call(partition, "getSd");
        demandSame("SerDe", options, options(partition, own));
        demandSame("columns", columns, columns(own));
        List<?> values = (List<?>) Reflected.call(partition, "getValues");
        folders.append(folders.length() > 1 ? "," : "").append(folder(own, keys, values));
      }
    }
    // Now: what cannot be opened is left to Spark.
    return new OpenTable(options, schema, folders.append("]").toString()).opened();
  }

  private static void demandSame(String what, Object ofTable, Object ofPartition) throws HiveScans.Left {
    Map<?, ?> both = ofTable instanceof Map ? withoutSchema((Map<?, ?>) ofTable) : null;
    if (!(both != null ? both : ofTable).equals(ofPartition)) {
      throw new HiveScans.Left("a partition with other " + what + " than the table");
    }
  }

  private static Map<?, ?> withoutSchema(Map<?, ?> options) {
    Map<Object, Object> others = new HashMap<>(options);
    others.keySet().removeAll(Arrays.asList("schema", "path"));
    return others;
  }

  /** How the files of a table or of a partition are read. */
  private static Map<String, String> options(Object of, Object storage)
      throws HiveScans.Left, ReflectiveOperationException {
    String format = Reflected.text(storage, "getInputFormat");
    if (!"org.apache.hadoop.hive.ql.io.RCFileInputFormat".equals(format)) {
      throw new HiveScans.Left("files of " + format);
    }
    Object info = Reflected.call(storage, "getSerdeInfo");
    Map<String, String> options = new HashMap<>();
    options.put("format", "rcfile");
    options.put("serde", Reflected.text(info, "getSerializationLib"));
    options.put("hive_version", "2.3"); // whose SerDes all of these Sparks have
    properties(options, Reflected.call(of, "getParameters"), true);
    properties(options, Reflected.call(info, "getParameters"), false);
    return options;
  }

  /** Properties of a SerDe; a table's own count where they are of the SerDe, too. */
  private static void properties(Map<String, String> options, Object given, boolean ofTable) {
    Map<?, ?> properties = given == null ? Collections.emptyMap() : (Map<?, ?>) given;
    properties.forEach(
        (name, value) -> {
          boolean isOfSerde = name.toString().startsWith("serialization.") || name.toString().endsWith(".delim");
          // Hive 2 knows this one by a misspelt name alone, colelction.delim.
          boolean isKnown = !name.equals("collection.delim");
          if (isKnown && (!ofTable || isOfSerde)) {
            options.put("serde_properties." + name, value.toString());
          }
        });
  }

  /** Columns in Hive's language. */
  private static String columns(Object storage) throws HiveScans.Left, ReflectiveOperationException {
    List<String> columns = new ArrayList<>();
    for (Object column : (List<?>) Reflected.call(storage, "getCols")) {
      String type = Reflected.text(column, "getType");
      demandTypes(Reflected.text(column, "getName"), type);
      columns.add("`" + Reflected.text(column, "getName").replace("`", "``") + "` " + type);
    }
    return String.join(", ", columns);
  }

  /**
   * Spark makes an instant of Hive's wall clock time, by the time zone of its JVM. In one that changes its clocks, not every time is
   * one instant.
   */
  private static void demandTypes(String column, String type) throws HiveScans.Left {
    String bare = type.replaceAll("[A-Za-z0-9_]+:", "");
    for (String word : bare.split("[^A-Za-z_]+")) {
      if (!word.isEmpty() && !TYPES.contains(word)) {
        throw new HiveScans.Left("column " + column + " is " + type);
      }
    }
    if (bare.contains("timestamp") && !ZoneId.systemDefault().normalized().equals(ZoneOffset.UTC)) {
      throw new HiveScans.Left("column " + column + " has timestamps, and the JVM's time zone is not UTC");
    }
  }

  /** A folder and the values of its partition, for the native library. */
  private static String folder(Object storage, List<?> keys, List<?> values)
      throws HiveScans.Left, ReflectiveOperationException {
    List<String> pairs = new ArrayList<>();
    for (int at = 0; at < keys.size(); at++) {
      String type = Reflected.text(keys.get(at), "getType");
      if (!Arrays.asList("string", "tinyint", "smallint", "int", "bigint", "date").contains(type)) {
        throw new HiveScans.Left("a partition column of " + type);
      }
      String value = values.get(at).toString();
      if (value.equals(NULL)) {
        throw new HiveScans.Left("a partition of null, of which Spark's reader makes the text " + NULL);
      }
      pairs.add(Reflected.text(keys.get(at), "getName"));
      pairs.add(value);
    }
    return "{\"path\":" + Json.text(Reflected.text(storage, "getLocation")) + ",\"values\":" + Json.texts(pairs) + "}";
  }
}
