package io.coldframe.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeFiltering;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** One scan of a table: its columns, filters and limit. */
final class ColdframeScan
    implements Scan, SupportsReportStatistics, SupportsReportPartitioning, SupportsRuntimeFiltering {
  /**
   * Maximum number of values of a runtime filter: sending a longer list to the tasks takes more time than it
   * saves.
   */
  private static final int MAX_VALUES = 10_000;

  private final OpenTable table;
  private final Map<String, String> options;
  private final StructType required;
  /** The required columns that the library reads. */
  private final StructType stored;
  /** The index of the metadata of files among the required columns, or -1. */
  private final int metadata;
  private final Predicate[] taken;
  private final FirstRows first;
  private final String aggregates;
  private final List<String> filters;
  private final StructType schema;
  private boolean isStream;
  /**
   * Number of units that have no task in the last plan. The last plan is the plan that runs, even if there
   * was a runtime filter.
   */
  private volatile long pruned;
  /** Filters from the other side of a join, received while the query runs. */
  private List<String> runtime = new ArrayList<>();
  /** Partition columns that have one value in each task; empty before Spark asks for the partitioning. */
  private List<StructField> keys = new ArrayList<>();

  ColdframeScan(
      OpenTable table,
      StructType schema,
      Map<String, String> options,
      StructType required,
      List<String> filters,
      Predicate[] taken,
      FirstRows first,
      String aggregates) {
    this.table = table;
    this.options = options;
    this.required = required;
    metadata = aggregates == null ? FileMetadata.index(required, schema) : -1;
    stored = FileMetadata.without(required, metadata);
    this.taken = taken;
    this.first = first;
    this.aggregates = aggregates;
    this.filters = filters;
    this.schema = schema;
  }

  private String request(List<String> more, boolean columns) {
    List<String> all = new ArrayList<>(filters);
    all.addAll(more);
    return "{\"columns\":" + columns + ",\"schema\":" + table.json(stored) + ",\"filters\":" + Json.texts(all)
        + first.request + (keys.isEmpty() ? "" : ",\"by_partition\":true") + ",\"aggregates\":" + aggregates + "}";
  }

  /** The request with another part appended, which begins with a comma. */
  String request(String more) {
    String plain = request(new ArrayList<>(), false);
    return plain.substring(0, plain.length() - 1) + more + "}";
  }

  @Override
  public StructType readSchema() {
    return required;
  }

  /** The text for {@code EXPLAIN}. */
  @Override
  public String description() {
    List<String> filters = new ArrayList<>();
    for (Predicate predicate : taken) {
      filters.add(predicate.toString());
    }
    String columns = String.join(", ", required.fieldNames());
    return "coldframe "
        + (isStream ? "stream" : table.name())
        + (aggregates == null ? " [columns: " : " [pushed aggregates: ")
        + columns
        + "] [pushed filters: "
        + String.join(", ", filters) + "]"
        + (options.containsKey("filter") ? " [filter: " + options.get("filter") + "]" : "")
        + first.shown;
  }

  /** Does not open the table, since a stream may begin without any file. */
  @Override
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    isStream = true;
    return new ColdframeStream(table.opening(schema), required, metadata, request(new ArrayList<>(), false), checkpoint);
  }

  @Override
  public synchronized Batch toBatch() {
    DataType[] types = keys.stream().map(StructField::dataType).toArray(DataType[]::new);
    return new ColdframeBatch(table, required, metadata, request(runtime, false), types, units -> pruned = units);
  }

  /** Partitioning by the partition columns that the query reads: joins and groups by these columns need no shuffle. */
  @Override
  public synchronized Partitioning outputPartitioning() {
    boolean isWanted = SQLConf.get().v2BucketingEnabled() && aggregates == null && !isStream;
    long[] partitioning = isWanted ? table.partitioning(request(new ArrayList<>(), false)) : new long[0];
    keys = new ArrayList<>();
    if (partitioning.length < 2) {
      return new UnknownPartitioning(0);
    }
    for (int at = 1; at < partitioning.length; at++) {
      keys.add(stored.fields()[(int) partitioning[at]]);
    }
    if (keys.stream().anyMatch(Collations::isIn)) {
      keys = new ArrayList<>();
      return new UnknownPartitioning(0);
    }
    Expression[] columns =
        keys.stream().map(key -> Expressions.identity(Filters.quoted(key.name()))).toArray(Expression[]::new);
    return new KeyGroupedPartitioning(columns, (int) partitioning[0]);
  }

  /** Columns that the query reads and that the library compares as Spark does. */
  @Override
  public NamedReference[] filterAttributes() {
    List<String> names = new ArrayList<>();
    List<String> tests = new ArrayList<>();
    for (StructField field : aggregates == null ? stored.fields() : new StructField[0]) {
      if (!Collations.isIn(field)) {
        names.add(field.name());
        tests.add(Filters.json(new In(field.name(), new Object[1]), schema));
      }
    }
    names.retainAll(taken(names, tests));
    return names.stream().map(name -> Expressions.column(Filters.quoted(name))).toArray(NamedReference[]::new);
  }

  /** Replaces the runtime filters. Filters may be left out, because the join filters the rows again. */
  @Override
  public synchronized void filter(Filter[] filters) {
    List<String> accepted = new ArrayList<>();
    for (Filter filter : filters) {
      boolean isSmall = filter instanceof In && ((In) filter).values().length <= MAX_VALUES;
      String json = isSmall ? Filters.json((In) filter, schema) : null;
      if (json != null) {
        accepted.add(json);
      }
    }
    runtime = taken(accepted, accepted);
  }

  /** The items whose filter the library evaluates. */
  private List<String> taken(List<String> items, List<String> filters) {
    boolean[] takes = table.takes(filters);
    List<String> taken = new ArrayList<>();
    for (int at = 0; at < takes.length; at++) {
      if (takes[at]) {
        taken.add(items.get(at));
      }
    }
    return taken;
  }

  /** Whether Spark would broadcast this side of a join, and then filter the other side with its rows. */
  boolean isSmall() {
    long limit = SQLConf.get().autoBroadcastJoinThreshold();
    long bytes = limit < 0 ? -1 : table.statistics(request(new ArrayList<>(), false))[0];
    return bytes >= 0 && bytes <= limit;
  }

  /** Opens files only if Spark's cost-based optimizer is on. */
  @Override
  public Statistics estimateStatistics() {
    boolean byCost = SQLConf.get().cboEnabled() || SQLConf.get().planStatsEnabled();
    boolean isUnknown = aggregates != null || isStream;
    long[] known = isUnknown ? new long[] {-1, -1} : table.statistics(request(new ArrayList<>(), byCost));
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        return known[0] < 0 ? OptionalLong.empty() : OptionalLong.of(known[0]);
      }

      @Override
      public OptionalLong numRows() {
        return known[1] < 0 ? OptionalLong.empty() : OptionalLong.of(known[1]);
      }

      /** Overrides a method of Spark 3.4 and later. */
      public Map<NamedReference, Object> columnStats() {
        return ColumnStatistics.of(stored, known, 2);
      }
    };
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return Metrics.all();
  }

  /** The number of units that planning has pruned. Overrides a method of Spark 3.4 and later. */
  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[] {Metrics.pruned(pruned)};
  }
}
