package io.coldframe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;

/** The columns, filters, limit and aggregates of one scan. Spark makes a new builder for each scan. */
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
  /** The aggregates as JSON; null if the scan returns rows. */
  private String aggregates;

  ColdframeScanBuilder(OpenTable table, StructType schema, Map<String, String> options) {
    this.table = table;
    this.options = options;
    this.schema = schema;
    this.required = schema;
  }

  /**
   * Takes predicates, and returns those that Spark has to evaluate. Spark plans runtime filters (dynamic partition pruning,
   * bloom filters) from the side of a join that has a selective filter in the plan. So the filters of a table that is
   * small enough for that are returned, too, although they are evaluated here.
   */
  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    Predicate[] remaining = take(predicates);
    List<Predicate> selective = Arrays.stream(taken).filter(Filters::isSelective).collect(Collectors.toList());
    if (selective.isEmpty() || !scan().isSmall()) {
      return remaining;
    }
    List<Predicate> seen = new ArrayList<>(Arrays.asList(remaining));
    seen.addAll(selective);
    return seen.toArray(new Predicate[0]);
  }

  /** Takes predicates, and returns the others. */
  Predicate[] take(Predicate[] predicates) {
    List<String> json = new ArrayList<>();
    for (Predicate predicate : predicates) {
      json.add(Filters.json(predicate));
    }
    boolean[] takes = table.takes(json);
    List<Predicate> evaluated = new ArrayList<>();
    List<Predicate> remaining = new ArrayList<>();
    for (int at = 0; at < predicates.length; at++) {
      if (takes[at] && !Collations.concern(predicates[at], schema)) {
        evaluated.add(predicates[at]);
        filters.add(json.get(at));
      } else {
        remaining.add(predicates[at]);
      }
    }
    taken = evaluated.toArray(new Predicate[0]);
    return remaining.toArray(new Predicate[0]);
  }

  @Override
  public Predicate[] pushedPredicates() {
    return taken;
  }

  @Override
  public void pruneColumns(StructType schema) {
    required = schema;
  }

  /** Each task stops at the limit; Spark applies the limit to all of them together ({@link #isPartiallyPushed}). */
  @Override
  public boolean pushLimit(int rows) {
    first = FirstRows.limit(rows);
    return true;
  }

  /**
   * The order is pushed down in part: the library skips rows that are not among the first rows according to
   * metadata, and Spark sorts the rows that remain.
   */
  @Override
  public boolean pushTopN(SortOrder[] orders, int rows) {
    String top = Collations.concern(orders[0].expression(), schema) ? null : FirstRows.request(orders, rows);
    String filter = top == null || aggregates != null ? null : table.top(scan().request(top));
    if (filter == null) {
      return false;
    }
    filters.add(filter);
    first = FirstRows.top(orders, rows);
    return true;
  }

  /**
   * Applies to limits and to top N. Both interfaces have a default method of this name, so this class must
   * override it.
   */
  @Override
  public boolean isPartiallyPushed() {
    return true;
  }

  /** Aggregates without groups only: each task has partial results, and Spark merges them. */
  @Override
  public boolean pushAggregation(Aggregation aggregation) {
    if (aggregation.groupByExpressions().length > 0) {
      return false;
    }
    for (AggregateFunc function : aggregation.aggregateExpressions()) {
      if (!(function instanceof Count) && Collations.concern(function, schema)) {
        return false;
      }
    }
    String functions = Aggregates.json(aggregation.aggregateExpressions());
    StructType results = table.aggregates(functions);
    if (results == null) {
      return false;
    }
    aggregates = functions;
    required = results;
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
