package io.coldframe.spark;

import io.coldframe.UnsupportedError;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/** Files as a table. It holds no state of a query; each query has a scan of its own. */
final class ColdframeTable implements SupportsRead, SupportsWrite, SupportsMetadataColumns {
  private static final String PYTHON = "coldframe_python";

  private final Map<String, String> options;
  private final StructType schema;
  private final Transform[] partitioning;
  private final Map<String, String> properties;
  /** Whether this connector writes, and not the Python source. */
  private Boolean isWritten;

  private OpenTable open;

  ColdframeTable(OpenTable open, StructType schema, Map<String, String> options) {
    this(open, schema, options, new Transform[0]);
  }

  private ColdframeTable(OpenTable open, StructType schema, Map<String, String> given, Transform[] partitioning) {
    Map<String, String> options = options(given);
    properties = properties(given);
    this.open = open;
    this.partitioning = partitioning;
    // As in Spark's own sources of files: files may have nulls, whatever the user's schema says.
    this.schema = schema.asNullable();
    this.options = options;
  }

  /** The options among the options and properties of a table of the catalog: others, of TBLPROPERTIES, are no options of its files. */
  static Map<String, String> options(Map<String, String> given) {
    Map<String, String> options = ColdframeSource.lower(given);
    Set<String> kept = new HashSet<>(Arrays.asList("path", TableCatalog.PROP_LOCATION, TableCatalog.PROP_PROVIDER));
    for (String name : options.keySet()) {
      if (name.startsWith(TableCatalog.OPTION_PREFIX)) {
        kept.add(name);
        kept.add(name.substring(TableCatalog.OPTION_PREFIX.length()));
      }
    }
    if (isOfCatalog(options)) {
      options.keySet().retainAll(kept);
    }
    return options;
  }

  /** Whether options are those of a table in the session's catalog: Spark adds the table's properties. */
  static boolean isOfCatalog(Map<String, String> options) {
    return options.containsKey(TableCatalog.PROP_PROVIDER);
  }

  /** The properties among the options. Each option of the table is there twice: also with a prefix, which Spark expects here. */
  private static Map<String, String> properties(Map<String, String> given) {
    Map<String, String> own = new HashMap<>(isOfCatalog(given) ? given : Collections.emptyMap());
    own.keySet().removeIf(name -> name.equals("path") || given.containsKey(TableCatalog.OPTION_PREFIX + name));
    return Collections.unmodifiableMap(own);
  }

  /** A table with the user's columns. It is opened at the first read, since the target of a write need not exist yet. */
  ColdframeTable(Map<String, String> options, StructType schema, Transform[] partitioning) {
    this(null, schema, options, partitioning);
  }

  private synchronized boolean isWritten() {
    if (isWritten == null) {
      isWritten = Writes.isByHadoop(options);
    }
    return isWritten;
  }

  @Override
  public String name() {
    // The name does not contain the path, which may be a URL with a password. The scan shows the path without
    // the password.
    return "coldframe";
  }

  @Override
  @Deprecated
  public StructType schema() {
    return schema;
  }

  /** For {@code SHOW CREATE TABLE} and {@code DESCRIBE EXTENDED}. */
  @Override
  public Map<String, String> properties() {
    return properties;
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return FileMetadata.columns(schema);
  }

  @Override
  public Set<TableCapability> capabilities() {
    // Without BATCH_WRITE, save() goes to ColdframeSource.createRelation, which has all modes and partitionBy.
    return Collections.unmodifiableSet(
        isWritten()
            ? EnumSet.of(
                TableCapability.BATCH_READ,
                TableCapability.MICRO_BATCH_READ,
                TableCapability.V1_BATCH_WRITE,
                TableCapability.OVERWRITE_BY_FILTER,
                TableCapability.TRUNCATE)
            : EnumSet.of(
                TableCapability.BATCH_READ,
                TableCapability.MICRO_BATCH_READ,
                TableCapability.BATCH_WRITE,
                TableCapability.TRUNCATE));
  }

  /** The Python source knows no partitions. */
  @Override
  public Transform[] partitioning() {
    return isWritten() ? partitioning : new Transform[0];
  }

  @Override
  public synchronized ScanBuilder newScanBuilder(CaseInsensitiveStringMap scan) {
    // The options of one read. Spark has already added the options of the table.
    Map<String, String> all = new HashMap<>(options);
    all.putAll(ColdframeSource.lower(scan.asCaseSensitiveMap()));
    boolean same = all.equals(options);
    OpenTable opened = same && open != null ? open : new OpenTable(all, schema);
    if (same) {
      open = opened;
    }
    return new ColdframeScanBuilder(opened, schema, all);
  }

  /** SQL writes through this connector. Stores that Hadoop lacks are written by the Python source. */
  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    if (isWritten()) {
      Map<String, String> all = new HashMap<>(options);
      all.putAll(ColdframeSource.lower(info.options().asCaseSensitiveMap()));
      return new TableWrite(all, TableWrite.columns(partitioning));
    }
    Table table = pythonSource().getTable(info.schema(), new Transform[0], Places.forWriting(options));
    return ((SupportsWrite) table).newWriteBuilder(info);
  }

  private static TableProvider pythonSource() {
    Option<TableProvider> source;
    try {
      source = DataSource.lookupDataSourceV2(PYTHON, SQLConf.get());
    } catch (Exception e) {
      // Scala declares no checked exceptions, so javac rejects a catch of this class.
      if (!(e instanceof ClassNotFoundException)) {
        throw e;
      }
      source = Option.empty();
    }
    if (source.isEmpty()) {
      throw new UnsupportedError(
          "writing without the Python source: it needs Spark 4.1 or later, and the package in the driver's Python");
    }
    return source.get();
  }
}
