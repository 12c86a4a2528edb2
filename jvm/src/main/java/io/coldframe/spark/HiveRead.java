package io.coldframe.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/** A plan node that reads a table of a Hive metastore, through Hive's classes or through Spark's own reader. */
final class HiveRead {
  private final CatalogTable table;
  private final LogicalPlan node;

  private HiveRead(CatalogTable table, LogicalPlan node) {
    this.table = table;
    this.node = node;
  }

  /** The setting that makes this connector read tables of ORC files, too. */
  static final String ORC = "spark.coldframe.hive.orc";

  /**
   * Null for other nodes. Nodes with Spark's own reader are replaced if the table is transactional, which that reader
   * ignores, or if it has ORC files and the setting {@link #ORC} is on.
   */
  static HiveRead of(LogicalPlan node) {
    if (node instanceof HiveTableRelation) {
      return new HiveRead(((HiveTableRelation) node).tableMeta(), node);
    }
    if (node instanceof LogicalRelation) {
      Option<CatalogTable> table = ((LogicalRelation) node).catalogTable();
      if (table.isDefined() && isOfHive(table.get())) {
        HiveRead read = new HiveRead(table.get(), node);
        return read.isTransactional() || (isOrcAsked() && read.isOrc()) ? read : null;
      }
    }
    return null;
  }

  private static boolean isOfHive(CatalogTable table) {
    return table.provider().isDefined() && table.provider().get().equalsIgnoreCase("hive");
  }

  static boolean isOrcAsked() {
    String setting = SQLConf.get().getConfString(ORC, "off");
    return setting.equalsIgnoreCase("on") || setting.equalsIgnoreCase("true");
  }

  private boolean isOrc() {
    Option<String> format = table.storage().inputFormat();
    return format.isDefined() && format.get().equals(HiveTable.ORC_FILES);
  }

  /** Whether Spark has replaced Hive's classes by its own reader. */
  boolean isBySpark() {
    return node instanceof LogicalRelation;
  }

  TableIdentifier table() {
    return table.identifier();
  }

  /** The table's name in the metastore, {@code database.table}. */
  String name() {
    return table().database().getOrElse(() -> "default") + "." + table().table();
  }

  /** Whether a plan puts files into a transactional table, or removes them, with any of Spark's commands. */
  static boolean isWriteToTransactional(SparkSession session, LogicalPlan plan) throws ReflectiveOperationException {
    Object table = written(session, plan);
    if (table instanceof CatalogTable && new HiveRead((CatalogTable) table, plan).isTransactional()) {
      return true;
    }
    // FROM .. INSERT .. INSERT .. has a command for each INSERT.
    for (Object child : Reflected.all(plan, "children")) {
      if (isWriteToTransactional(session, (LogicalPlan) child)) {
        return true;
      }
    }
    return false;
  }

  /** The table whose files a command writes or removes; null for other nodes. */
  private static Object written(SparkSession session, LogicalPlan node) throws ReflectiveOperationException {
    switch (node.getClass().getSimpleName()) {
      case "InsertIntoHiveTable":
        return Reflected.call(node, "table");
      case "InsertIntoHadoopFsRelationCommand":
        Option<?> known = (Option<?>) Reflected.call(node, "catalogTable");
        return known.isDefined() ? known.get() : null;
      case "LoadDataCommand":
        return tableOf(session, Reflected.call(node, "table"));
      case "TruncateTableCommand":
        return tableOf(session, Reflected.call(node, "tableName"));
      default:
        return null;
    }
  }

  private static Object tableOf(SparkSession session, Object identifier) throws ReflectiveOperationException {
    Object catalog = Reflected.call(Reflected.call(session, "sessionState"), "catalog");
    return Reflected.call(catalog, "getTableMetadata", identifier);
  }

  boolean isTransactional() {
    Option<String> property = table.properties().get("transactional");
    return property.isDefined() && property.get().equalsIgnoreCase("true");
  }

  /** The attributes that the rest of the plan refers to. */
  List<Object> output() throws ReflectiveOperationException {
    return Reflected.all(node, "output");
  }

  /** The attributes of the partition columns, in the metastore's order. */
  List<Attribute> keys() throws ReflectiveOperationException {
    List<Attribute> keys = new ArrayList<>();
    for (Object name : Reflected.all(table, "partitionColumnNames")) {
      for (Object each : output()) {
        if (((Attribute) each).name().toLowerCase(Locale.ROOT).equals(name.toString().toLowerCase(Locale.ROOT))) {
          keys.add((Attribute) each);
        }
      }
    }
    return keys;
  }

  /** Whether the plan asks for metadata columns, such as file names, in addition to the table's columns. */
  boolean hasMetadataColumns() throws ReflectiveOperationException {
    return output().size() > table.schema().size();
  }
}
