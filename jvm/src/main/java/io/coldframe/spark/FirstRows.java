package io.coldframe.spark;

import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;

/** How many rows a use of a table asks for, and in which order. */
final class FirstRows {
  static final FirstRows ALL = new FirstRows("", "");

  /** For the native library, behind the other parts of a request. */
  final String request;
  /** For {@code EXPLAIN}. */
  final String shown;

  private FirstRows(String request, String shown) {
    this.request = request;
    this.shown = shown;
  }

  /** Any rows. */
  static FirstRows limit(int rows) {
    return new FirstRows(",\"limit\":" + rows, " [pushed limit: " + rows + "]");
  }

  /** The first in an order, of which only the first column counts: others settle ties. Spark sorts them. */
  static FirstRows top(SortOrder[] orders, int rows) {
    return new FirstRows("", " [pushed top: " + rows + " by " + orders[0] + "]");
  }

  /** What is asked of the native library for an order; null where it begins with no column. */
  static String question(SortOrder[] orders, int rows) {
    SortOrder first = orders[0];
    boolean isColumn =
        first.expression() instanceof NamedReference && ((NamedReference) first.expression()).fieldNames().length == 1;
    if (!isColumn) {
      return null;
    }
    return ",\"top\":{\"name\":" + Json.text(((NamedReference) first.expression()).fieldNames()[0])
        + ",\"descending\":" + (first.direction() == SortDirection.DESCENDING)
        + ",\"nulls_first\":" + (first.nullOrdering() == NullOrdering.NULLS_FIRST)
        + ",\"rows\":" + rows + "}";
  }
}
