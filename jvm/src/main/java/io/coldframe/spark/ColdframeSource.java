package io.coldframe.spark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
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
  /** What stands before the options of a table in what Spark's catalog says of it. */
  private static final String OPTION = "option.";

  private static final List<String> OF_CATALOG =
      Arrays.asList(
          "location", "provider", "owner", "comment", "external", "is_managed_location", "collation", "table_type");

  /** The table whose columns Spark has asked for, and what it was told. */
  private OpenTable inferred;

  private StructType told;

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
    NativeLibrary.demandSpark();
    inferred = new OpenTable(ofTable(options.asCaseSensitiveMap()), null);
    told = inferred.schema();
    return told;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    NativeLibrary.demandSpark();
    Map<String, String> options = ofTable(properties);
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
    NativeLibrary.demandSpark();
    Map<String, String> given = new HashMap<>();
    for (scala.collection.Iterator<Tuple2<String, String>> all = parameters.iterator(); all.hasNext(); ) {
      Tuple2<String, String> one = all.next();
      given.put(one._1(), one._2());
    }
    return new ColdframeRelation(context, ofTable(given), schema);
  }

  static Map<String, String> lower(Map<String, String> given) {
    Map<String, String> options = new HashMap<>();
    given.forEach((name, value) -> options.put(name.toLowerCase(Locale.ROOT), value));
    return options;
  }

  /** The options of a table: what Spark's catalog says of it beside them is left out. */
  static Map<String, String> ofTable(Map<String, String> given) {
    Map<String, String> options = new HashMap<>();
    lower(given)
        .forEach(
            (name, value) ->
                options.putIfAbsent(name.startsWith(OPTION) ? name.substring(OPTION.length()) : name, value));
    String location = options.get("location");
    if (location != null && !options.containsKey("paths")) {
      options.putIfAbsent("path", location);
    }
    options.keySet().removeAll(OF_CATALOG);
    return options;
  }
}
