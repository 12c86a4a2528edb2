package io.coldframe.spark;

import io.coldframe.UnsupportedError;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What the Spark that runs this has, and the one that it is compiled against has not, or the reverse. */
final class SparkVersion {
  private SparkVersion() {}

  /** Whether it is of a release or a later one. */
  static boolean isAtLeast(int major, int minor) {
    String[] parts = org.apache.spark.package$.MODULE$.SPARK_VERSION().split("[^0-9]+");
    int found = Integer.parseInt(parts[0]);
    return found > major || (found == major && Integer.parseInt(parts[1]) >= minor);
  }

  /** Spark 3.3 knows the type of times without a zone by name, and fails at their first use with a MatchError. */
  static void checkTypes(StructType schema) {
    if (isAtLeast(3, 4)) {
      return;
    }
    for (StructField field : schema.fields()) {
      if (field.dataType().json().contains("\"timestamp_ntz\"")) {
        throw new UnsupportedError(
            "a timestamp without time zone before Spark 3.4, such as column " + field.name()
                + ": name the others in the option columns");
      }
    }
  }
}
