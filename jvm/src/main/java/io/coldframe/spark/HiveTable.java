package io.coldframe.spark;

import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table of RCFiles or ORC files, or a transactional table, as a Hive metastore defines it, for one query: the partitions that pass the
 * query's filter, and the files that exist now.
 */
final class HiveTable implements SupportsRead {
  /** Types whose values are the same in Spark through Hive's SerDe and in coldframe. Timestamps: see {@link #checkTypes}. */
  private static final List<String> TYPES =
      Arrays.asList(
          "tinyint", "smallint", "int", "bigint", "boolean", "float", "double", "string", "binary", "date", "decimal",
          "timestamp", "array", "map", "struct");

  /** Hive's input format of ORC files. */
  static final String ORC_FILES = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat";

  /** The metastore's name for the partition of null. */
  private static final String NULL = "__HIVE_DEFAULT_PARTITION__";

  private static final String SERDE_PROPERTIES = "serde_properties.";

  /** The properties of tables that mean something to a SerDe: as {@code of_serde} in properties.rs. */
  private static final Pattern OF_SERDES =
      Pattern.compile("(serialization|hive\\.serialization|hive\\.lazysimple)\\..*|.*\\.delim|timestamp\\.formats");

  private static final String BY_POSITION = "orc.force.positional.evolution";

  private final HiveRead read;
  private final StructType schema;
  private final OpenTable open;

  /** {@code condition}: the filter above the table, or null. {@code writes}: the valid write ids of each table of the query. */
  HiveTable(SparkSession session, HiveRead read, Expression condition, Map<String, String> writes)
      throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    this.read = read;
    StructType columns = new StructType();
    for (Object each : read.output()) {
      AttributeReference attribute = (AttributeReference) each;
      columns = columns.add(attribute.name(), attribute.dataType(), attribute.nullable());
    }
    schema = columns;
    open = open(session, condition, writes);
  }

  @Override
  public String name() {
    return read.table().unquotedString();
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

  private OpenTable open(SparkSession session, Expression condition, Map<String, String> writes)
      throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    Object catalog = Reflected.call(Reflected.call(session, "sharedState"), "externalCatalog");
    Object client = Reflected.call(Reflected.call(catalog, "unwrapped"), "client");
    Object calls = Reflected.call(client, "msClient");
    String database = read.table().database().getOrElse(() -> "default");
    String name = read.table().table();
    Object table = Reflected.call(calls, "getTable", database, name);
    Object storage = Reflected.call(table, "getSd");
    List<?> keys = (List<?>) Reflected.call(table, "getPartitionKeys");
    Map<String, String> options = options(table, storage);
    String columns = columns(storage);
    options.put("schema", isPlainOrc(options) ? withBytes(columns) : columns);
    if (options.get("format").equals("orc")) {
      checkOrc(session, storage);
    }
    if (read.isTransactional()) {
      if (!writes.containsKey(read.name())) {
        // The write ids are requested before partitions and directories are listed, so that later writes have
        // higher ids.
        writes.put(read.name(), ValidWrites.of(read.name(), client));
      }
      options.put("acid_valid_write_ids", writes.get(read.name()));
    }
    options.put("path", Reflected.text(storage, "getLocation")); // the table's name in plans
    List<String> folders = new ArrayList<>();
    if (keys.isEmpty()) {
      folders.add(folder(storage, keys, Collections.emptyList()));
    } else {
      HivePartitions partitions = new HivePartitions(session, read, condition);
      for (Object partition : partitions.of(calls, database, name)) {
        Object own = Reflected.call(partition, "getSd");
        Map<String, String> ownOptions = ofPartition(options, partition, own);
        if (read.isTransactional()) {
          checkFirst(names(storage), names(own));
        } else {
          checkSame("SerDe", options, ownOptions);
          // Spark's own reader reads all partitions with the columns of the table.
          checkSame("columns", columns, read.isBySpark() ? columns : columns(own));
        }
        folders.add(folder(own, keys, (List<?>) Reflected.call(partition, "getValues")));
      }
    }
    if (folders.isEmpty()) {
      throw new HiveScans.NoRows();
    }
    // The table is opened now: if it cannot be opened, Spark can still read it.
    return new OpenTable(options, schema, "[" + String.join(",", folders) + "]").opened();
  }

  private static void checkSame(String what, Object ofTable, Object ofPartition) throws HiveScans.FallbackToSpark {
    Map<?, ?> both = ofTable instanceof Map ? withoutSchema((Map<?, ?>) ofTable) : null;
    if (!(both != null ? both : ofTable).equals(ofPartition)) {
      throw new HiveScans.FallbackToSpark("a partition with other " + what + " than the table");
    }
  }

  /**
   * Checks that the partition's columns are the first columns of the table, since Hive matches columns by
   * position.
   */
  private static void checkFirst(List<String> ofTable, List<String> ofPartition) throws HiveScans.FallbackToSpark {
    if (ofPartition.size() > ofTable.size() || !ofTable.subList(0, ofPartition.size()).equals(ofPartition)) {
      throw new HiveScans.FallbackToSpark("a partition with other columns than the table");
    }
  }

  /** The names of the columns in the files. */
  private static List<String> names(Object storage) throws ReflectiveOperationException {
    List<String> names = new ArrayList<>();
    for (Object column : (List<?>) Reflected.call(storage, "getCols")) {
      names.add(Reflected.text(column, "getName").toLowerCase(Locale.ROOT));
    }
    return names;
  }

  /**
   * Leaves the table to Spark if settings make Spark's or Hive's reader match the columns of ORC files in
   * another way.
   */
  private void checkOrc(SparkSession session, Object storage) throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    checkByName(Reflected.call(Reflected.call(storage, "getSerdeInfo"), "getParameters"));
    Object hadoop = Reflected.call(Reflected.call(session, "sessionState"), "newHadoopConf");
    checkByName(Collections.singletonMap(BY_POSITION, ((Configuration) hadoop).get(BY_POSITION)));
    List<String> names = new ArrayList<>();
    for (StructField field : schema.fields()) {
      names.add(field.name().toLowerCase(Locale.ROOT));
    }
    List<String> known = names(storage);
    if (known.size() > names.size() || !known.equals(names.subList(0, known.size()))) {
      throw new HiveScans.FallbackToSpark("Spark's catalog and the metastore have different columns");
    }
    if (!read.isBySpark() || read.isTransactional()) {
      return;
    }
    if (SQLConf.get().caseSensitiveAnalysis()) {
      throw new HiveScans.FallbackToSpark("columns are matched by case (spark.sql.caseSensitive)");
    }
    if (SQLConf.get().ignoreCorruptFiles() || SQLConf.get().ignoreMissingFiles()) {
      throw new HiveScans.FallbackToSpark("files may be left out (spark.sql.files.ignoreCorruptFiles, ignoreMissingFiles)");
    }
    if (!SQLConf.get().getConfString("spark.sql.orc.impl", "native").equals("native")) {
      throw new HiveScans.FallbackToSpark("Spark uses its Hive reader (spark.sql.orc.impl)");
    }
  }

  private static void checkByName(Object parameters) throws HiveScans.FallbackToSpark {
    if (parameters != null && "true".equalsIgnoreCase(String.valueOf(((Map<?, ?>) parameters).get(BY_POSITION)))) {
      throw new HiveScans.FallbackToSpark("columns are matched by position (" + BY_POSITION + ")");
    }
  }

  private static Map<?, ?> withoutSchema(Map<?, ?> options) {
    Map<Object, Object> others = new HashMap<>(options);
    others.keySet().removeAll(Arrays.asList("schema", "path"));
    return others;
  }

  /** The options that read the files of a table or partition. */
  private Map<String, String> options(Object of, Object storage)
      throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    String format = Reflected.text(storage, "getInputFormat");
    if (read.isTransactional()) {
      return ofTransactional(of, format);
    }
    if (ORC_FILES.equals(format) && HiveRead.isOrcAsked()) {
      return ofOrc(of);
    }
    if (!"org.apache.hadoop.hive.ql.io.RCFileInputFormat".equals(format)) {
      throw new HiveScans.FallbackToSpark("files of " + format);
    }
    Object info = Reflected.call(storage, "getSerdeInfo");
    Map<String, String> options = new HashMap<>();
    options.put("format", "rcfile");
    options.put("serde", Reflected.text(info, "getSerializationLib"));
    options.put(SERDE_PROPERTIES + "coldframe.text", "bytes"); // as in Spark's reader, texts that are not UTF-8 stay as they are
    options.put("hive_version", "2.3"); // the version of the SerDes in all supported releases of Spark
    // As in Hive's MetaStoreUtils.getSchema: properties of the table replace those of its SerDe.
    properties(options, Reflected.call(info, "getParameters"), false);
    properties(options, Reflected.call(of, "getParameters"), true);
    return options;
  }

  /** A partition's options: Spark initialises the SerDe with the table's properties, which the partition's own replace. */
  private Map<String, String> ofPartition(Map<String, String> ofTable, Object partition, Object storage)
      throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    Map<String, String> all = options(partition, storage);
    ofTable.forEach(
        (name, value) -> {
          if (name.startsWith(SERDE_PROPERTIES)) {
            all.putIfAbsent(name, value);
          }
        });
    return all;
  }

  private static Map<String, String> ofTransactional(Object of, String format)
      throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    if (!ORC_FILES.equals(format)) {
      throw new HiveScans.FallbackToSpark("files of " + format + "; only ORC is supported");
    }
    Map<String, String> options = ofOrc(of);
    options.put("acid", "true");
    return options;
  }

  private static Map<String, String> ofOrc(Object of) throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    checkByName(Reflected.call(of, "getParameters"));
    Map<String, String> options = new HashMap<>();
    options.put("format", "orc");
    options.put("schema_of", "hive_exact");
    options.put("timestamp_unit", "us");
    return options;
  }

  /** Adds SerDe properties. Of a table's own properties, only properties that SerDes use are added. */
  private static void properties(Map<String, String> options, Object given, boolean ofTable) {
    Map<?, ?> properties = given == null ? Collections.emptyMap() : (Map<?, ?>) given;
    properties.forEach(
        (name, value) -> {
          boolean isOfSerde = OF_SERDES.matcher(name.toString()).matches();
          // Hive 2 only knows the misspelt name colelction.delim.
          boolean isKnown = !name.equals("collection.delim");
          if (isKnown && value != null && (!ofTable || isOfSerde)) {
            options.put(SERDE_PROPERTIES + name, value.toString());
          }
        });
  }

  private boolean isPlainOrc(Map<String, String> options) {
    return options.get("format").equals("orc") && !read.isTransactional();
  }

  /** The columns with texts as bytes, which Spark's reader passes on as they are. Names are quoted, or end with a colon. */
  private static String withBytes(String columns) {
    StringBuilder out = new StringBuilder();
    String[] parts = columns.split("`", -1);
    for (int at = 0; at < parts.length; at++) {
      out.append(at == 0 ? "" : "`").append(at % 2 == 1 ? parts[at] : parts[at].replaceAll("\\bstring\\b(?!\\s*:)", "binary"));
    }
    return out.toString();
  }

  /** The columns as a Hive column list. */
  private String columns(Object storage) throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    List<String> columns = new ArrayList<>();
    for (Object column : (List<?>) Reflected.call(storage, "getCols")) {
      String type = Reflected.text(column, "getType");
      checkTypes(Reflected.text(column, "getName"), type, ORC_FILES.equals(Reflected.text(storage, "getInputFormat")));
      columns.add("`" + Reflected.text(column, "getName").replace("`", "``") + "` " + type);
    }
    return String.join(", ", columns);
  }

  /**
   * Leaves the table to Spark if it reads a type differently. Spark's readers of RCFiles convert local timestamps to
   * instants with the JVM's time zone, and the library does so for ORC files only.
   */
  private void checkTypes(String column, String type, boolean isOrc) throws HiveScans.FallbackToSpark {
    String bare = type.replaceAll("[A-Za-z0-9_]+:", "");
    for (String word : bare.split("[^A-Za-z_]+")) {
      // ORC files store the lengths of char and varchar, and Spark pads their values.
      boolean isKnown = TYPES.contains(word) || (read.isTransactional() && word.endsWith("char"));
      if (!word.isEmpty() && !isKnown) {
        throw new HiveScans.FallbackToSpark("column " + column + " is " + type);
      }
    }
    if (!isOrc && bare.contains("timestamp") && !ZoneId.systemDefault().normalized().equals(ZoneOffset.UTC)) {
      throw new HiveScans.FallbackToSpark("column " + column + " has timestamps, and the JVM's time zone is not UTC");
    }
  }

  /** A folder and its partition values, as JSON for the native library. */
  private String folder(Object storage, List<?> keys, List<?> values)
      throws HiveScans.FallbackToSpark, ReflectiveOperationException {
    List<String> pairs = new ArrayList<>();
    for (int at = 0; at < keys.size(); at++) {
      String type = Reflected.text(keys.get(at), "getType");
      if (!Arrays.asList("string", "tinyint", "smallint", "int", "bigint", "date").contains(type)) {
        throw new HiveScans.FallbackToSpark("a partition column of " + type);
      }
      String value = values.get(at).toString();
      if (value.equals(NULL) && !read.isTransactional()) {
        throw new HiveScans.FallbackToSpark("a partition of null, which Spark's reader returns as the text " + NULL);
      }
      pairs.add(Reflected.text(keys.get(at), "getName"));
      pairs.add(value);
    }
    String path = Json.text(Reflected.text(storage, "getLocation"));
    return "{\"path\":" + path + ",\"values\":" + Json.texts(pairs) + ",\"whole\":" + read.isTransactional() + "}";
  }
}
