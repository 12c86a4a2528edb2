package io.coldframe.spark;

import java.lang.management.ManagementFactory;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.sources.SchemaRelationProvider;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Tuple2;

/** {@code spark.read.format("coldframe")}: the format of the files is detected from their bytes. */
public class ColdframeSource
    implements TableProvider, DataSourceRegister, RelationProvider, SchemaRelationProvider, CreatableRelationProvider {
  /** Spark's option with the columns of {@code partitionBy}. */
  private static final String PARTITIONS = "__partition_columns";

  /** The table whose columns Spark has asked for, and these columns. */
  private OpenTable inferred;

  private StructType inferredSchema;

  /** The jar's version, which any session can ask for: {@code SELECT java_method('io.coldframe.spark.ColdframeSource', 'version')}. */
  public static String version() {
    return NativeLibrary.version();
  }

  /**
   * The process id, and how many tables, readers and batches the native library has open in this process; it
   * can be called in the same way.
   */
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
    inferredSchema = inferred.schema();
    return inferredSchema;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    NativeLibrary.checkSpark();
    Map<String, String> options = lower(properties);
    if (inferred != null && schema.equals(inferredSchema)) {
      return new ColdframeTable(inferred, schema, options);
    }
    SparkErrors.check(schema);
    return new ColdframeTable(options, schema, partitioning);
  }

  /** Opens a table made by {@code CREATE TABLE .. USING coldframe}, in Spark 3's catalog. */
  @Override
  public BaseRelation createRelation(
      SQLContext context, scala.collection.immutable.Map<String, String> parameters) {
    return createRelation(context, parameters, null);
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, scala.collection.immutable.Map<String, String> parameters, StructType schema) {
    NativeLibrary.checkSpark();
    return new ColdframeRelation(context, options(parameters), schema);
  }

  /** {@code df.write.format("coldframe").save(..)}, in all modes. */
  @Override
  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map<String, String> parameters, Dataset<Row> data) {
    Map<String, String> options = options(parameters);
    String json = options.remove(PARTITIONS);
    List<String> partitions = json == null ? Collections.emptyList() : Places.list(json);
    Writes.save(options, mode, partitions, path -> true, data);
    return new BaseRelation() {
      @Override
      public SQLContext sqlContext() {
        return context;
      }

      @Override
      public StructType schema() {
        return data.schema();
      }
    };
  }

  /** Overrides a method of Spark 4: the native library judges the types. */
  public boolean supportsDataType(DataType type) {
    return true;
  }

  private static Map<String, String> options(scala.collection.immutable.Map<String, String> parameters) {
    Map<String, String> options = new HashMap<>();
    for (scala.collection.Iterator<Tuple2<String, String>> all = parameters.iterator(); all.hasNext(); ) {
      Tuple2<String, String> parameter = all.next();
      options.put(parameter._1(), parameter._2());
    }
    return lower(options);
  }

  /** Options with lower-case names. The native library ignores other properties that a catalog adds. */
  static Map<String, String> lower(Map<String, String> mixed) {
    Map<String, String> options = new HashMap<>();
    mixed.forEach((name, value) -> options.put(name.toLowerCase(Locale.ROOT), value));
    return options;
  }
}
