package io.coldframe.spark;

import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.sources.SchemaRelationProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Tuple2;

/** {@code spark.read.format("coldframe")}: the format of the files is found in their bytes. */
public class ColdframeSource
    implements TableProvider, DataSourceRegister, RelationProvider, SchemaRelationProvider {
  /** The table whose columns Spark has asked for, and what it was told. */
  private OpenTable inferred;

  private StructType told;

  /** The jar's version, which any session can ask for: {@code SELECT java_method('io.coldframe.spark.ColdframeSource', 'version')}. */
  public static String version() {
    return NativeLibrary.version();
  }

  /** What the native library holds in this JVM, and which one it is; asked in the same way. */
  public static String held() {
    NativeLibrary.load();
    long[] held = Native.held();
    String process = ManagementFactory.getRuntimeMXBean().getName();
    return process + ": " + held[0] + " tables, " + held[1] + " readers, " + held[2] + " batches";
  }

  @Override
  public String shortName() {
    return "coldframe";
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    NativeLibrary.checkSpark();
    inferred = new OpenTable(lower(options.asCaseSensitiveMap()), null);
    told = inferred.schema();
    return told;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    NativeLibrary.checkSpark();
    Map<String, String> options = lower(properties);
    if (inferred != null && schema.equals(told)) {
      return new ColdframeTable(inferred, schema, options);
    }
    return new ColdframeTable(options, schema);
  }

  /** What a statement {@code CREATE TABLE .. USING coldframe} has made, where the catalog is Spark 3's. */
  @Override
  public BaseRelation createRelation(
      SQLContext context, scala.collection.immutable.Map<String, String> parameters) {
    return createRelation(context, parameters, null);
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, scala.collection.immutable.Map<String, String> parameters, StructType schema) {
    NativeLibrary.checkSpark();
    Map<String, String> given = new HashMap<>();
    for (scala.collection.Iterator<Tuple2<String, String>> all = parameters.iterator(); all.hasNext(); ) {
      Tuple2<String, String> one = all.next();
      given.put(one._1(), one._2());
    }
    return new ColdframeRelation(context, lower(given), schema);
  }

  /** Options, whose names are the same in any case. What else a catalog says of a table, the native library leaves out. */
  static Map<String, String> lower(Map<String, String> given) {
    Map<String, String> options = new HashMap<>();
    given.forEach((name, value) -> options.put(name.toLowerCase(Locale.ROOT), value));
    return options;
  }
}
