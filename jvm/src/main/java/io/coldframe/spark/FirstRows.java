package io.coldframe.spark;

import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;

/** How many rows of a scan are requested, and in which order. */
final class FirstRows {
  static final FirstRows ALL = new FirstRows("", "");

  /** The part of a request to the native library. */
  final String request;
  /** The text for {@code EXPLAIN}. */
  final String shown;

  private FirstRows(String request, String shown) {
    this.request = request;
    this.shown = shown;
  }

  /** The first rows in any order. */
  static FirstRows limit(int rows) {
    return new FirstRows(",\"limit\":" + rows, " [pushed limit: " + rows + "]");
  }

  /**
   * The first rows in an order. Only the order's first column is used, since the other columns only decide
   * between equal values. Spark sorts the rows.
   */
  static FirstRows top(SortOrder[] orders, int rows) {
    return new FirstRows("", " [pushed top: " + rows + " by " + orders[0] + "]");
  }

  /** The part of a request for an order; null if the order does not begin with a column. */
  static String request(SortOrder[] orders, int rows) {
    SortOrder first = orders[0];
    boolean isColumn =
        first.expression() instanceof NamedReference && ((NamedReference) first.expression()).fieldNames().length == 1;
    if (!isColumn || ((NamedReference) first.expression()).fieldNames()[0].equals(FileMetadata.NAME)) {
      return null;
    }
    return ",\"top\":{\"name\":" + Json.text(((NamedReference) first.expression()).fieldNames()[0])
        + ",\"descending\":" + (first.direction() == SortDirection.DESCENDING)
        + ",\"nulls_first\":" + (first.nullOrdering() == NullOrdering.NULLS_FIRST)
        + ",\"rows\":" + rows + "}";
  }
}
