package io.coldframe.spark;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import scala.collection.immutable.List$;

/** The partitions of a table that pass a query's filter, which the metastore and Spark evaluate. */
final class HivePartitions {
  /** Number of partitions in a request to the metastore. */
  private static final int PER_REQUEST = 1000;

  /** Spark's entries for the partitions that pass; null for all partitions. */
  private final List<Object> passing;

  private final List<String> keys = new ArrayList<>();

  HivePartitions(SparkSession session, HiveRead read, Expression condition) throws ReflectiveOperationException {
    Set<Object> ids = new HashSet<>();
    for (Attribute key : read.keys()) {
      keys.add(key.name());
      ids.add(key.exprId());
    }
    List<Expression> filters = new ArrayList<>();
    if (condition != null && !ids.isEmpty()) {
      addKeyFilters(condition, ids, filters);
    }
    passing = filters.isEmpty() ? null : passing(session, read.table(), filters);
  }

  private static List<Object> passing(SparkSession session, TableIdentifier table, List<Expression> filters)
      throws ReflectiveOperationException {
    scala.collection.immutable.List<Object> all = List$.MODULE$.empty();
    for (Expression filter : filters) {
      all = all.$colon$colon(filter);
    }
    Object catalog = Reflected.call(Reflected.call(session, "sessionState"), "catalog");
    return Reflected.all(Reflected.call(catalog, "listPartitionsByFilter", table, all));
  }

  /** Adds the parts of a conjunction that refer to partition keys only. */
  private static void addKeyFilters(Expression part, Set<Object> ids, List<Expression> into)
      throws ReflectiveOperationException {
    if (part instanceof And) {
      addKeyFilters(((And) part).left(), ids, into);
      addKeyFilters(((And) part).right(), ids, into);
    } else if (part.deterministic() && !SubqueryExpression.hasSubquery(part) && usesOnlyKeys(part, ids)) {
      into.add(part);
    }
  }

  private static boolean usesOnlyKeys(Expression part, Set<Object> ids) throws ReflectiveOperationException {
    if (part instanceof Attribute && !ids.contains(((Attribute) part).exprId())) {
      return false;
    }
    for (Object child : Reflected.all(part, "children")) {
      if (!usesOnlyKeys((Expression) child, ids)) {
        return false;
      }
    }
    return true;
  }

  /** The metastore's objects for these partitions. */
  List<Object> of(Object client, String database, String table) throws ReflectiveOperationException {
    if (passing == null) {
      return new ArrayList<>((List<?>) Reflected.call(client, "listPartitions", database, table, (short) -1));
    }
    List<Object> partitions = new ArrayList<>();
    for (int from = 0; from < passing.size(); from += PER_REQUEST) {
      List<String> names = new ArrayList<>();
      for (Object each : passing.subList(from, Math.min(passing.size(), from + PER_REQUEST))) {
        names.add(name((CatalogTablePartition) each));
      }
      partitions.addAll((List<?>) Reflected.call(client, "getPartitionsByNames", database, table, names));
    }
    if (partitions.size() != passing.size()) {
      throw new IllegalStateException("partitions were added or dropped while the query was planned: run it again");
    }
    return partitions;
  }

  private String name(CatalogTablePartition partition) {
    List<String> pairs = new ArrayList<>();
    for (String key : keys) {
      String value = partition.spec().apply(key);
      pairs.add(ExternalCatalogUtils.escapePathName(key) + "=" + ExternalCatalogUtils.escapePathName(value));
    }
    return String.join("/", pairs);
  }
}
