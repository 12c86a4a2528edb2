package io.coldframe.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeFiltering;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.types.StructType;

/** One use of a table: its columns, its filters, its limit. */
final class ColdframeScan implements Scan, SupportsReportStatistics, SupportsRuntimeFiltering {
  private final OpenTable table;
  private final Map<String, String> options;
  private final StructType required;
  private final Predicate[] taken;
  private final long limit;
  private final boolean count;
  private final List<String> filters;
  private final StructType schema;
  private boolean isStream;
  /** What a join's other side has told of partitions, while the query runs. */
  private List<String> runtime = new ArrayList<>();

  ColdframeScan(
      OpenTable table,
      StructType schema,
      Map<String, String> options,
      StructType required,
      List<String> filters,
      Predicate[] taken,
      long limit,
      boolean count) {
    this.table = table;
    this.options = options;
    this.required = required;
    this.taken = taken;
    this.limit = limit;
    this.count = count;
    this.filters = filters;
    this.schema = schema;
  }

  private String request(List<String> more) {
    List<String> all = new ArrayList<>(filters);
    all.addAll(more);
    return "{\"schema\":" + table.json(required) + ",\"filters\":" + Json.texts(all)
        + (limit < 0 ? "" : ",\"limit\":" + limit) + ",\"count\":" + count + "}";
  }

  @Override
  public StructType readSchema() {
    return required;
  }

  /** What {@code EXPLAIN} says of it. */
  @Override
  public String description() {
    List<String> filters = new ArrayList<>();
    for (Predicate predicate : taken) {
      filters.add(predicate.toString());
    }
    List<String> columns = new ArrayList<>(java.util.Arrays.asList(required.fieldNames()));
    return "coldframe "
        + (isStream ? "stream" : table.name())
        + " [columns: " + String.join(", ", columns) + "] [pushed filters: " + String.join(", ", filters) + "]"
        + (options.containsKey("filter") ? " [filter: " + options.get("filter") + "]" : "")
        + (limit < 0 ? "" : " [pushed limit: " + limit + "]")
        + (count ? " [pushed aggregate: count(*)]" : "");
  }

  /** A stream needs no file before there is one: neither this nor what Spark asks before opens the table. */
  @Override
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    isStream = true;
    return new ColdframeStream(table.opening(schema), required, request(new ArrayList<>()), checkpoint);
  }

  @Override
  public synchronized Batch toBatch() {
    return new ColdframeBatch(table, required, request(runtime));
  }

  /** Partitions alone, of those that the query reads: what else a join tells is not worth a plan of its own. */
  @Override
  public NamedReference[] filterAttributes() {
    List<String> kept = new ArrayList<>(table.partitions());
    kept.retainAll(java.util.Arrays.asList(required.fieldNames()));
    return kept.stream().map(Expressions::column).toArray(NamedReference[]::new);
  }

  /** Those of this run, in place of those of the one before. */
  @Override
  public synchronized void filter(Filter[] told) {
    List<String> said = new ArrayList<>();
    for (Filter filter : told) {
      String json = filter instanceof In ? Filters.json((In) filter, schema) : null;
      if (json != null) {
        said.add(json);
      }
    }
    boolean[] takes = table.takes(said);
    List<String> taken = new ArrayList<>();
    for (int at = 0; at < takes.length; at++) {
      if (takes[at]) {
        taken.add(said.get(at));
      }
    }
    runtime = taken;
  }

  @Override
  public Statistics estimateStatistics() {
    long[] known = count || isStream ? new long[] {-1, -1} : table.statistics(request(new ArrayList<>()));
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        return known[0] < 0 ? OptionalLong.empty() : OptionalLong.of(known[0]);
      }

      @Override
      public OptionalLong numRows() {
        return known[1] < 0 ? OptionalLong.empty() : OptionalLong.of(known[1]);
      }
    };
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return new CustomMetric[] {
      new Metrics.RowsDecoded(), new Metrics.RowsLost(), new Metrics.DamagedPlaces(), new Metrics.Splits()
    };
  }
}
