package io.coldframe.spark;

import java.lang.reflect.Proxy;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Column statistics from the native library, in the form of Spark's interface of that name, which exists
 * since Spark 3.4. There are five numbers for each column: the number of nulls, the number of distinct
 * values, 1 if the next two are known, the minimum, the maximum.
 */
final class ColumnStatistics {
  private static final String INTERFACE = "org.apache.spark.sql.connector.read.colstats.ColumnStatistics";
  private static final int NUMBERS = 5;

  private ColumnStatistics() {}

  static Map<NamedReference, Object> of(StructType columns, long[] known, int from) {
    Map<NamedReference, Object> all = new HashMap<>();
    StructField[] fields = columns.fields();
    if (known.length < from + fields.length * NUMBERS) {
      return Collections.emptyMap();
    }
    for (int at = 0; at < fields.length; at++) {
      all.put(Expressions.column(Filters.quoted(fields[at].name())), of(fields[at].dataType(), known, from + at * NUMBERS));
    }
    return all;
  }

  private static Object of(DataType type, long[] known, int at) {
    Map<String, Object> values = new HashMap<>();
    values.put("nullCount", known[at] < 0 ? OptionalLong.empty() : OptionalLong.of(known[at]));
    values.put("distinctCount", known[at + 1] < 0 ? OptionalLong.empty() : OptionalLong.of(known[at + 1]));
    // Spark's estimates know no bounds of timestamp_ntz: they fail with a MatchError.
    boolean hasBounds = known[at + 2] != 0 && !type.typeName().equals("timestamp_ntz");
    values.put("min", hasBounds ? Optional.of(Planned.number(known[at + 3], type)) : Optional.empty());
    values.put("max", hasBounds ? Optional.of(Planned.number(known[at + 4], type)) : Optional.empty());
    values.put("avgLen", OptionalLong.empty());
    values.put("maxLen", OptionalLong.empty());
    values.put("histogram", Optional.empty());
    ClassLoader loader = ColumnStatistics.class.getClassLoader();
    try {
      Class<?>[] all = {Class.forName(INTERFACE, false, loader)};
      return Proxy.newProxyInstance(
          loader,
          all,
          (proxy, method, arguments) ->
              method.getDeclaringClass() == Object.class
                  ? method.invoke(values, arguments)
                  : values.get(method.getName()));
    } catch (ClassNotFoundException e) {
      throw new IllegalStateException(e); // only a Spark with this interface calls this
    }
  }
}
