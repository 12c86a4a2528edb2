package io.coldframe.spark;

import io.coldframe.UnsupportedError;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Differences between the running Spark and the one that the jar is compiled against. */
final class SparkVersion {
  private SparkVersion() {}

  /** Whether Spark is of this or a later release. */
  static boolean isAtLeast(int major, int minor) {
    String[] parts = org.apache.spark.package$.MODULE$.SPARK_VERSION().split("[^0-9]+");
    int running = Integer.parseInt(parts[0]);
    return running > major || (running == major && Integer.parseInt(parts[1]) >= minor);
  }

  /**
   * Fails for timestamps without a zone on Spark 3.3: that release accepts the name of the type, but throws a
   * MatchError when the type is used.
   */
  static void checkTypes(StructType schema) {
    if (isAtLeast(3, 4)) {
      return;
    }
    for (StructField field : schema.fields()) {
      if (field.dataType().json().contains("\"timestamp_ntz\"")) {
        throw new UnsupportedError(
            "a timestamp without time zone before Spark 3.4 (column " + field.name()
                + "): list the other columns in the option columns");
      }
    }
  }
}
