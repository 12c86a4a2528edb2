package io.coldframe.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What Spark's page says of a scan. Spark makes each of these by its class's name. */
final class Metrics {
  private Metrics() {}

  /** Of a task, in the order of {@link Native#counts}. */
  static CustomTaskMetric[] of(long[] counts) {
    String[] names = {RowsDecoded.NAME, RowsLost.NAME, DamagedPlaces.NAME, Splits.NAME};
    CustomTaskMetric[] all = new CustomTaskMetric[names.length];
    for (int at = 0; at < names.length; at++) {
      String name = names[at];
      long value = counts[at];
      all[at] =
          new CustomTaskMetric() {
            @Override
            public String name() {
              return name;
            }

            @Override
            public long value() {
              return value;
            }
          };
    }
    return all;
  }

  /** Rows that came out of the files' filters. */
  public static final class RowsDecoded extends CustomSumMetric {
    static final String NAME = "coldframeRows";

    @Override
    public String name() {
      return NAME;
    }

    @Override
    public String description() {
      return "rows that pass the pushed filters";
    }
  }

  /** Rows that damage has cost. */
  public static final class RowsLost extends CustomSumMetric {
    static final String NAME = "coldframeRowsLost";

    @Override
    public String name() {
      return NAME;
    }

    @Override
    public String description() {
      return "rows lost to damage";
    }
  }

  /** Damaged places. */
  public static final class DamagedPlaces extends CustomSumMetric {
    static final String NAME = "coldframeDamaged";

    @Override
    public String name() {
      return NAME;
    }

    @Override
    public String description() {
      return "damaged places";
    }
  }

  /** Splits that were read. */
  public static final class Splits extends CustomSumMetric {
    static final String NAME = "coldframeSplits";

    @Override
    public String name() {
      return NAME;
    }

    @Override
    public String description() {
      return "splits read";
    }
  }
}
