package io.coldframe.spark;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** The metrics of a scan in Spark's web page. Spark instantiates each one by its class name. */
final class Metrics {
  private Metrics() {}

  /** The metrics in the order of {@link Native#counts}. */
  static CustomMetric[] all() {
    return new CustomMetric[] {
      new RowsPassed(), new RowsLost(), new DamagedPlaces(), new Splits(), new Units(), new UnitsPruned(), new RowsDecoded(), new Bytes()
    };
  }

  /** The values of a task. */
  static CustomTaskMetric[] of(long[] counts) {
    CustomMetric[] metrics = all();
    CustomTaskMetric[] values = new CustomTaskMetric[metrics.length];
    for (int at = 0; at < metrics.length; at++) {
      values[at] = value(metrics[at], counts[at]);
    }
    return values;
  }

  /** The number of units that the driver pruned; Spark adds it to the numbers of the tasks. */
  static CustomTaskMetric pruned(long units) {
    return value(new UnitsPruned(), units);
  }

  private static CustomTaskMetric value(CustomMetric of, long value) {
    String name = of.name();
    return new CustomTaskMetric() {
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

  /** A number that Spark adds up over the tasks. */
  private abstract static class Sum extends CustomSumMetric {
    private final String name;
    private final String description;

    Sum(String name, String description) {
      this.name = name;
      this.description = description;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public String description() {
      return description;
    }
  }

  /** Rows that pass the pushed filters. */
  public static final class RowsPassed extends Sum {
    public RowsPassed() {
      super("coldframeRows", "rows that pass the pushed filters");
    }
  }

  /** Rows lost to damage. */
  public static final class RowsLost extends Sum {
    public RowsLost() {
      super("coldframeRowsLost", "rows lost to damage");
    }
  }

  /** Places with damage. */
  public static final class DamagedPlaces extends Sum {
    public DamagedPlaces() {
      super("coldframeDamaged", "damaged places");
    }
  }

  /** Splits that were read. */
  public static final class Splits extends Sum {
    public Splits() {
      super("coldframeSplits", "splits read");
    }
  }

  /** Units that were decoded: stripes, row groups, runs of blocks. */
  public static final class Units extends Sum {
    public Units() {
      super("coldframeUnits", "units read (stripes, row groups)");
    }
  }

  /** Units skipped because their statistics exclude them. */
  public static final class UnitsPruned extends Sum {
    public UnitsPruned() {
      super("coldframeUnitsPruned", "units pruned by statistics");
    }
  }

  /** Rows that were decoded. */
  public static final class RowsDecoded extends Sum {
    public RowsDecoded() {
      super("coldframeRowsDecoded", "rows decoded");
    }
  }

  /** Bytes read from files. */
  public static final class Bytes extends Sum {
    public Bytes() {
      super("coldframeBytes", "bytes read");
    }
  }
}
