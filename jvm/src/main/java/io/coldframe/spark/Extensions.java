package io.coldframe.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.Function1;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** {@code spark.sql.extensions = io.coldframe.spark.Extensions}: tables of a Hive metastore are read by this connector. */
public class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    Function1<SparkSession, Rule<LogicalPlan>> rule = HiveScans::new;
    // When this rule is applied, filters are directly above their tables, and Spark has already replaced
    // cached plans.
    extensions.injectPreCBORule(rule);
    return BoxedUnit.UNIT;
  }
}
