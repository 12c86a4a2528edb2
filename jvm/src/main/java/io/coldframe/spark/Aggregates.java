package io.coldframe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;

/** Spark's aggregates as JSON. The native library decides which aggregates it computes. */
final class Aggregates {
  private static final String OTHER = "{\"op\":\"other\"}";

  private Aggregates() {}

  static String json(AggregateFunc[] functions) {
    List<String> all = new ArrayList<>();
    for (AggregateFunc function : functions) {
      all.add(json(function));
    }
    return "[" + String.join(",", all) + "]";
  }

  private static String json(AggregateFunc function) {
    if (function instanceof CountStar) {
      return "{\"op\":\"COUNT\"}";
    }
    if (function instanceof Min) {
      return json("MIN", ((Min) function).column());
    }
    if (function instanceof Max) {
      return json("MAX", ((Max) function).column());
    }
    boolean counts = function instanceof Count && !((Count) function).isDistinct();
    return counts ? json("COUNT", ((Count) function).column()) : OTHER;
  }

  private static String json(String name, Expression of) {
    if (!(of instanceof NamedReference)) {
      return OTHER;
    }
    return "{\"op\":\"" + name + "\",\"name\":" + Json.texts(Arrays.asList(((NamedReference) of).fieldNames())) + "}";
  }
}
