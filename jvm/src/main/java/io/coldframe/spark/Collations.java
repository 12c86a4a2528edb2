package io.coldframe.spark;

import java.util.Arrays;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Columns with a collation (Spark 4), by which texts with other bytes may be equal. The library compares bytes, so Spark
 * evaluates whatever compares such a column.
 */
final class Collations {
  private Collations() {}

  /** Whether an expression refers to a column with a collation, or to a column whose values have one. */
  static boolean concern(Expression expression, StructType schema) {
    return Arrays.stream(expression.references()).anyMatch(column -> concern(column, schema));
  }

  private static boolean concern(NamedReference column, StructType schema) {
    String name = column.fieldNames()[0];
    return Arrays.stream(schema.fields()).anyMatch(field -> field.name().equalsIgnoreCase(name) && isIn(field));
  }

  /** Whether a column, or a value in it, has a collation. */
  static boolean isIn(StructField field) {
    return field.dataType().catalogString().contains(" collate ");
  }
}
