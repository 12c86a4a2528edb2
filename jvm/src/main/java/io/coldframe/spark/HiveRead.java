package io.coldframe.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/** Where a plan reads a table of a Hive metastore: by Hive's classes, or by a reader that Spark has put in their place. */
final class HiveRead {
  private final CatalogTable table;
  private final LogicalPlan node;

  private HiveRead(CatalogTable table, LogicalPlan node) {
    this.table = table;
    this.node = node;
  }

  /** The setting that has tables of ORC files read by this connector, too. */
  static final String ORC = "spark.coldframe.hive.orc";

  /**
   * Null where a node is something else. Of Spark's own readers, those of transactional tables count, since these know nothing of it,
   * and those of ORC files where that is asked for.
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

  /** Whether Spark has put its own reader in the place of Hive's. */
  boolean isBySpark() {
    return node instanceof LogicalRelation;
  }

  TableIdentifier table() {
    return table.identifier();
  }

  /** As the metastore has it, {@code database.table}. */
  String name() {
    return table().database().getOrElse(() -> "default") + "." + table().table();
  }

  /** Whether a node writes to a transactional table, by whichever of Spark's commands. */
  static boolean isWriteToTransactional(LogicalPlan node) throws ReflectiveOperationException {
    String name = node.getClass().getSimpleName();
    Object table = null;
    if (name.equals("InsertIntoHiveTable")) {
      table = Reflected.call(node, "table");
    } else if (name.equals("InsertIntoHadoopFsRelationCommand")) {
      Option<?> known = (Option<?>) Reflected.call(node, "catalogTable");
      table = known.isDefined() ? known.get() : null;
    }
    return table instanceof CatalogTable && new HiveRead((CatalogTable) table, node).isTransactional();
  }

  boolean isTransactional() {
    Option<String> said = table.properties().get("transactional");
    return said.isDefined() && said.get().equalsIgnoreCase("true");
  }

  /** The attributes that the rest of the plan refers to. */
  List<Object> output() throws ReflectiveOperationException {
    return Reflected.all(node, "output");
  }

  /** Those of the partitions, in the metastore's order. */
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

  /** Whether the plan asks for more than the table's columns, as for the names of files. */
  boolean hasMore() throws ReflectiveOperationException {
    return output().size() > table.schema().size();
  }
}
