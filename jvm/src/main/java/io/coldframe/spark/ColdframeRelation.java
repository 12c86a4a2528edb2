package io.coldframe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.PrunedFilteredScan;
import org.apache.spark.sql.types.StructType;

/**
 * A table of the session's catalog in Spark 3. Spark reads it through version 1 of its data source
 * interfaces, which has only columns and filters, and rows instead of batches. Spark 4 reads the same table
 * as a {@link ColdframeTable}.
 */
final class ColdframeRelation extends BaseRelation implements PrunedFilteredScan {
  private final SQLContext context;
  private final OpenTable table;
  private final StructType schema;
  private final Map<String, String> options;

  /** {@code user}: the columns of the CREATE TABLE statement, or null. */
  ColdframeRelation(SQLContext context, Map<String, String> options, StructType user) {
    this.context = context;
    this.options = options;
    if (user != null) {
      SparkErrors.check(user);
    }
    StructType columns = user == null ? null : user.asNullable(); // as in ColdframeTable
    table = new OpenTable(options, columns);
    schema = columns != null ? columns : table.schema();
  }

  @Override
  public SQLContext sqlContext() {
    return context;
  }

  @Override
  public StructType schema() {
    return schema;
  }

  @Override
  public long sizeInBytes() {
    OptionalLong known = builder().build().estimateStatistics().sizeInBytes();
    return known.isPresent() ? known.getAsLong() : super.sizeInBytes();
  }

  /** Rows are Spark's internal rows, which need no conversion. */
  @Override
  public boolean needConversion() {
    return false;
  }

  private ColdframeScanBuilder builder() {
    return new ColdframeScanBuilder(table, schema, options);
  }

  private static Predicate[] predicates(Filter[] filters) {
    return Arrays.stream(filters).map(Filter::toV2).toArray(Predicate[]::new);
  }

  @Override
  public Filter[] unhandledFilters(Filter[] filters) {
    List<Predicate> remaining = Arrays.asList(builder().take(predicates(filters)));
    return Arrays.stream(filters).filter(filter -> remaining.contains(filter.toV2())).toArray(Filter[]::new);
  }

  @Override
  public RDD<Row> buildScan(String[] columns, Filter[] filters) {
    ColdframeScanBuilder builder = builder();
    builder.take(predicates(filters));
    StructType required = new StructType();
    for (String column : columns) {
      required = required.add(schema.apply(column));
    }
    builder.pruneColumns(required);
    Batch batch = builder.build().toBatch();
    List<InputPartition> tasks = new ArrayList<>(Arrays.asList(batch.planInputPartitions()));
    PartitionReaderFactory factory = batch.createReaderFactory();
    return rows(JavaSparkContext.fromSparkContext(context.sparkContext()), tasks, factory);
  }

  /**
   * The rows of all tasks, with a Spark task for each of them. The cast is safe: see {@link #needConversion}.
   */
  @SuppressWarnings("unchecked")
  private static RDD<Row> rows(JavaSparkContext spark, List<InputPartition> tasks, PartitionReaderFactory factory) {
    RDD<InternalRow> rows =
        spark
            .parallelize(tasks, Math.max(1, tasks.size()))
            .flatMap(task -> (Iterator<InternalRow>) new BatchRows(factory.createColumnarReader(task)))
            .rdd();
    return (RDD<Row>) (RDD<?>) rows;
  }
}
