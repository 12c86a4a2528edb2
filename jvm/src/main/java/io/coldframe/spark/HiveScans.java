package io.coldframe.spark;

import io.coldframe.ColdframeError;
import io.coldframe.UnsupportedError;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.List$;
import scala.runtime.AbstractPartialFunction;

/**
 * Replaces Spark's reader by this connector for tables of a Hive metastore, if both return the same rows. Tables left to Spark are
 * logged at debug level, with the reason. Spark never reads transactional tables itself, since it would read their
 * files as plain files.
 */
final class HiveScans extends Rule<LogicalPlan> {
  /** The setting that turns this rule off. */
  static final String SETTING = "spark.coldframe.hive";

  private static final Logger LOG = LoggerFactory.getLogger(HiveScans.class);

  private final SparkSession session;

  HiveScans(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    String setting = SQLConf.get().getConfString(SETTING, "on");
    if (setting.equalsIgnoreCase("off") || setting.equalsIgnoreCase("false")) {
      return plan;
    }
    checkNoWrite(plan);
    Set<LogicalPlan> left = Collections.newSetFromMap(new IdentityHashMap<>());
    Map<String, String> writes = new HashMap<>();
    return plan.transformDown(
        new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
          @Override
          public boolean isDefinedAt(LogicalPlan node) {
            return HiveRead.of(node instanceof Filter ? ((Filter) node).child() : node) != null;
          }

          @Override
          public <A extends LogicalPlan, B> B applyOrElse(A node, Function1<A, B> otherwise) {
            LogicalPlan scan = isDefinedAt(node) ? replacement(node, plan, left, writes) : null;
            @SuppressWarnings("unchecked")
            B made = (B) scan;
            return scan == null ? otherwise.apply(node) : made;
          }
        });
  }

  /** Refuses a write to a transactional table: Hive would read Spark's plain files as old rows, or not at all. */
  private void checkNoWrite(LogicalPlan plan) {
    try {
      if (!HiveRead.isWriteToTransactional(session, plan)) {
        return;
      }
    } catch (ReflectiveOperationException e) {
      LOG.debug("cannot find out whether {} writes to a transactional table", plan.nodeName(), e);
      return;
    }
    throw new UnsupportedError(
        "writing to a transactional table of Hive, or removing its files: Spark does not write transactions");
  }

  /**
   * The scan of this connector that replaces a scan of Spark, together with the filter above it, if any; null
   * if Spark's scan stays. A scan that was left to Spark with its filter is not tried again without the
   * filter. {@code writes}: the valid write ids of each table of the plan.
   */
  private LogicalPlan replacement(
      LogicalPlan node, LogicalPlan plan, Set<LogicalPlan> left, Map<String, String> writes) {
    Expression condition = node instanceof Filter ? ((Filter) node).condition() : null;
    LogicalPlan scan = condition == null ? node : ((Filter) node).child();
    HiveRead read = HiveRead.of(scan);
    String name = read.name();
    if (condition == null && left.contains(scan)) {
      return null;
    }
    try {
      if (read.hasMetadataColumns() || usesFileNames(plan)) {
        throw new FallbackToSpark("the query asks for the names of files (input_file_name)");
      }
      LogicalPlan made = relation(new HiveTable(session, read, condition, writes), read);
      LOG.debug("{} is read by coldframe", name);
      return condition == null ? made : new Filter(condition, made);
    } catch (FallbackToSpark | ReflectiveOperationException | RuntimeException e) {
      left.add(scan);
      if (read.isTransactional() && !(e instanceof NoRows)) {
        throw refusal(name, e);
      }
      // Whatever the error is, Spark can still run the query.
      LOG.debug("{} is left to Spark: {}", name, e.getMessage());
      return null;
    }
  }

  /** The error for a transactional table that is not read. */
  private static RuntimeException refusal(String table, Exception reason) {
    if (reason instanceof ColdframeError && !(reason instanceof UnsupportedError)) {
      return (ColdframeError) reason;
    }
    RuntimeException refusal =
        new UnsupportedError(
            "the transactional table " + table + ": " + reason.getMessage() + ". With " + SETTING
                + " = off Spark reads all files of its directories, including deleted rows");
    refusal.initCause(reason);
    return refusal;
  }

  /** Whether a plan uses the file name of a row (input_file_name), which only Spark's own readers provide. */
  private static boolean usesFileNames(TreeNode<?> node) throws ReflectiveOperationException {
    if (node.getClass().getSimpleName().startsWith("InputFile")) {
      return true;
    }
    List<Object> below = new ArrayList<>(Reflected.all(node, "children"));
    if (node instanceof LogicalPlan) {
      below.addAll(Reflected.all(node, "expressions"));
    }
    for (Object each : below) {
      if (usesFileNames((TreeNode<?>) each)) {
        return true;
      }
    }
    return false;
  }

  /** A relation of the table, with the attributes that the rest of the plan refers to. */
  private static LogicalPlan relation(Table table, HiveRead replaced) throws ReflectiveOperationException {
    scala.collection.immutable.List<Object> output = List$.MODULE$.empty();
    List<Object> attributes = replaced.output();
    for (int at = attributes.size() - 1; at >= 0; at--) {
      output = output.$colon$colon(attributes.get(at));
    }
    Option<Object> none = Option.empty();
    CaseInsensitiveStringMap options = CaseInsensitiveStringMap.empty();
    java.lang.reflect.Constructor<?> constructor = DataSourceV2Relation.class.getConstructors()[0];
    // Spark 4.1 added another Option: the table version for time travel.
    Object[] arguments = {table, output, none, none, options, none};
    return (LogicalPlan) constructor.newInstance(java.util.Arrays.copyOf(arguments, constructor.getParameterCount()));
  }

  /** The reason why a table is left to Spark. */
  static class FallbackToSpark extends Exception {
    private static final long serialVersionUID = 1L;

    FallbackToSpark(String reason) {
      super(reason);
    }
  }

  /** No partition passes the filter, so Spark may read the table, since it reads no rows. */
  static final class NoRows extends FallbackToSpark {
    private static final long serialVersionUID = 1L;

    NoRows() {
      super("no partition passes the filter");
    }
  }
}
