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

/** Which partitions of a table a query reads: those that its filter leaves, as the metastore and Spark find them out. */
final class HivePartitions {
  /** How many the metastore is asked for at a time. */
  private static final int AT_ONCE = 1000;

  /** What Spark knows of them; null for all partitions. */
  private final List<Object> left;

  private final List<String> keys = new ArrayList<>();

  HivePartitions(SparkSession session, HiveRead read, Expression condition) throws ReflectiveOperationException {
    Set<Object> ids = new HashSet<>();
    for (Attribute key : read.keys()) {
      keys.add(key.name());
      ids.add(key.exprId());
    }
    List<Expression> filters = new ArrayList<>();
    if (condition != null && !ids.isEmpty()) {
      addOfKeys(condition, ids, filters);
    }
    left = filters.isEmpty() ? null : left(session, read.table(), filters);
  }

  private static List<Object> left(SparkSession session, TableIdentifier table, List<Expression> filters)
      throws ReflectiveOperationException {
    scala.collection.immutable.List<Object> all = List$.MODULE$.empty();
    for (Expression filter : filters) {
      all = all.$colon$colon(filter);
    }
    Object catalog = Reflected.call(Reflected.call(session, "sessionState"), "catalog");
    return Reflected.all(Reflected.call(catalog, "listPartitionsByFilter", table, all));
  }

  /** Adds the parts of a conjunction that are of keys alone. */
  private static void addOfKeys(Expression part, Set<Object> ids, List<Expression> into)
      throws ReflectiveOperationException {
    if (part instanceof And) {
      addOfKeys(((And) part).left(), ids, into);
      addOfKeys(((And) part).right(), ids, into);
    } else if (part.deterministic() && !SubqueryExpression.hasSubquery(part) && isOfKeys(part, ids)) {
      into.add(part);
    }
  }

  private static boolean isOfKeys(Expression part, Set<Object> ids) throws ReflectiveOperationException {
    if (part instanceof Attribute && !ids.contains(((Attribute) part).exprId())) {
      return false;
    }
    for (Object child : Reflected.all(part, "children")) {
      if (!isOfKeys((Expression) child, ids)) {
        return false;
      }
    }
    return true;
  }

  /** They as the metastore has them. */
  List<Object> of(Object client, String database, String table) throws ReflectiveOperationException {
    if (left == null) {
      return new ArrayList<>((List<?>) Reflected.call(client, "listPartitions", database, table, (short) -1));
    }
    List<Object> found = new ArrayList<>();
    for (int from = 0; from < left.size(); from += AT_ONCE) {
      List<String> names = new ArrayList<>();
      for (Object each : left.subList(from, Math.min(left.size(), from + AT_ONCE))) {
        names.add(name((CatalogTablePartition) each));
      }
      found.addAll((List<?>) Reflected.call(client, "getPartitionsByNames", database, table, names));
    }
    if (found.size() != left.size()) {
      throw new IllegalStateException("partitions came or went while the query was planned");
    }
    return found;
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
