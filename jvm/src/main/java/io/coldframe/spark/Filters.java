package io.coldframe.spark;

import java.util.Arrays;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.StructType;

/** Spark's predicates as JSON. The native library interprets the filters and decides which of them it evaluates. */
final class Filters {
  /** A predicate that is nested deeper is evaluated by Spark. */
  private static final int MAX_DEPTH = 50;

  private Filters() {}

  /** Whether Spark takes a filter for selective, as in its {@code PredicateHelper.isLikelySelective}. */
  static boolean isSelective(Predicate predicate) {
    switch (predicate.name()) {
      case "AND":
      case "OR":
      case "NOT":
        boolean isAny = Arrays.stream(predicate.children()).anyMatch(Filters::isSelectivePart);
        boolean isAll = Arrays.stream(predicate.children()).allMatch(Filters::isSelectivePart);
        return predicate.name().equals("OR") ? isAll : isAny;
      case "IS_NULL":
      case "IS_NOT_NULL":
      case "BOOLEAN_EXPRESSION":
      case "ALWAYS_TRUE":
      case "ALWAYS_FALSE":
        return false;
      default:
        return true;
    }
  }

  private static boolean isSelectivePart(Expression part) {
    return part instanceof Predicate && isSelective((Predicate) part);
  }

  static String json(Predicate predicate) {
    StringBuilder out = new StringBuilder();
    write(predicate, out, 0);
    return out.toString();
  }

  /** A name as Spark parses it. */
  static String quoted(String name) {
    return "`" + name.replace("`", "``") + "`";
  }

  /** A runtime filter: the values that a column has on the other side of a join; null if they have no JSON form. */
  static String json(In filter, StructType schema) {
    String name = filter.attribute();
    if (name.startsWith("`")) {
      name = name.substring(1, name.length() - 1).replace("``", "`");
    }
    if (!Arrays.asList(schema.fieldNames()).contains(name)) {
      return null;
    }
    String type = schema.apply(name).dataType().json();
    StringBuilder out = new StringBuilder("{\"op\":\"IN\",\"args\":[{\"name\":[").append(Json.text(name)).append("]}");
    for (Object value : filter.values()) {
      String text = text(value);
      if (text == null && value != null) {
        return null;
      }
      out.append(",{\"type\":").append(type).append(",\"value\":").append(Json.text(text)).append('}');
    }
    return out.append("]}").toString();
  }

  private static String text(Object value) {
    if (value instanceof java.sql.Date) {
      return String.valueOf(((java.sql.Date) value).toLocalDate().toEpochDay());
    }
    if (value instanceof java.time.LocalDate) {
      return String.valueOf(((java.time.LocalDate) value).toEpochDay());
    }
    if (value instanceof java.math.BigDecimal) {
      return ((java.math.BigDecimal) value).toPlainString();
    }
    boolean plain = value instanceof String || value instanceof Number || value instanceof Boolean;
    return plain ? value.toString() : null;
  }

  private static void write(Expression of, StringBuilder out, int depth) {
    if (of instanceof NamedReference) {
      out.append("{\"name\":").append(Json.texts(Arrays.asList(((NamedReference) of).fieldNames()))).append('}');
    } else if (of instanceof Literal) {
      Literal<?> literal = (Literal<?>) of;
      String type = literal.dataType().json();
      out.append("{\"type\":").append(type).append(",\"value\":").append(Json.text(value(literal))).append('}');
    } else if (of instanceof Predicate && depth < MAX_DEPTH) {
      out.append("{\"op\":").append(Json.text(((Predicate) of).name())).append(",\"args\":[");
      Expression[] children = of.children();
      for (int at = 0; at < children.length; at++) {
        out.append(at > 0 ? "," : "");
        write(children[at], out, depth + 1);
      }
      out.append("]}");
    } else {
      out.append("{\"op\":\"other\",\"args\":[]}");
    }
  }

  /** A value as text: numbers as Java prints them, bytes as hex digits. */
  private static String value(Literal<?> literal) {
    Object value = literal.value();
    if (value == null || !(literal.dataType() instanceof BinaryType)) {
      return value == null ? null : value.toString();
    }
    StringBuilder out = new StringBuilder();
    for (byte each : (byte[]) value) {
      out.append(String.format("%02x", each));
    }
    return out.toString();
  }
}
