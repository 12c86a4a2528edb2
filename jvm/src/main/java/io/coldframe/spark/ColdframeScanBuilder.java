package io.coldframe.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;

/** What one use of a table asks for. Spark makes a new one for each use. */
final class ColdframeScanBuilder
    implements SupportsPushDownRequiredColumns,
        SupportsPushDownV2Filters,
        SupportsPushDownLimit,
        SupportsPushDownTopN,
        SupportsPushDownAggregates {
  private final OpenTable table;
  private final Map<String, String> options;
  private final StructType schema;
  private StructType required;
  private Predicate[] taken = {};
  private final List<String> filters = new ArrayList<>();
  private FirstRows first = FirstRows.ALL;
  /** As JSON; null where rows are asked for. */
  private String aggregates;

  ColdframeScanBuilder(OpenTable table, StructType schema, Map<String, String> options) {
    this.table = table;
    this.options = options;
    this.schema = schema;
    this.required = schema;
  }

  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    List<String> said = new ArrayList<>();
    for (Predicate predicate : predicates) {
      said.add(Filters.json(predicate));
    }
    boolean[] takes = table.takes(said);
    List<Predicate> evaluated = new ArrayList<>();
    List<Predicate> left = new ArrayList<>();
    for (int at = 0; at < predicates.length; at++) {
      if (takes[at]) {
        evaluated.add(predicates[at]);
        filters.add(said.get(at));
      } else {
        left.add(predicates[at]);
      }
    }
    taken = evaluated.toArray(new Predicate[0]);
    return left.toArray(new Predicate[0]);
  }

  @Override
  public Predicate[] pushedPredicates() {
    return taken;
  }

  @Override
  public void pruneColumns(StructType schema) {
    required = schema;
  }

  /** Each task stops at the limit; Spark, whose default is that a limit is pushed in part, stops at that of all of them. */
  @Override
  public boolean pushLimit(int rows) {
    first = FirstRows.limit(rows);
    return true;
  }

  /** In part: metadata may show which rows are none of the first, and Spark, which sorts the others, never sees them. */
  @Override
  public boolean pushTopN(SortOrder[] orders, int rows) {
    String asked = FirstRows.question(orders, rows);
    String filter = asked == null || aggregates != null ? null : table.top(scan().request(asked));
    if (filter == null) {
      return false;
    }
    filters.add(filter);
    first = FirstRows.top(orders, rows);
    return true;
  }

  /** Of limits and of orders: both interfaces have a method of this name, each with a body of its own. */
  @Override
  public boolean isPartiallyPushed() {
    return true;
  }

  /** Of all rows: each task has answers of its own, and Spark merges them. */
  @Override
  public boolean pushAggregation(Aggregation aggregation) {
    if (aggregation.groupByExpressions().length > 0) {
      return false;
    }
    String asked = Aggregates.json(aggregation.aggregateExpressions());
    StructType answers = table.aggregates(asked);
    if (answers == null) {
      return false;
    }
    aggregates = asked;
    required = answers;
    return true;
  }

  @Override
  public ColdframeScan build() {
    return scan();
  }

  private ColdframeScan scan() {
    return new ColdframeScan(table, schema, options, required, filters, taken, first, aggregates);
  }
}
