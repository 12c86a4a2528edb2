package reference;

import java.io.IOException;
import java.math.BigDecimal;
import java.util.Base64;
import java.util.List;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.Decimal64ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.UnionColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.TypeDescription;

/**
 * A value as JSON: numbers and booleans as such (NaN and the infinities as text), binary as base64, a decimal as text, a
 * date as a day number, a timestamp as [seconds, nanoseconds] of its wall clock or instant since 1970, a map as a list of
 * pairs, a union as {@code {"tag": .., "value": ..}}.
 */
final class Json {
    private Json() {}

    static void row(Appendable out, VectorizedRowBatch batch, TypeDescription schema, int row) throws IOException {
        List<String> names = schema.getFieldNames();
        String comma = "{";
        for (int n = 0; n < batch.cols.length; n++) {
            out.append(comma);
            text(out, names.get(n));
            out.append(": ");
            value(out, batch.cols[n], schema.getChildren().get(n), row);
            comma = ", ";
        }
        out.append(names.isEmpty() ? "{}" : "}");
    }

    static void text(Appendable out, String text) throws IOException {
        out.append('"');
        for (int n = 0; n < text.length(); n++) {
            char c = text.charAt(n);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    private static void value(Appendable out, ColumnVector vector, TypeDescription type, int at) throws IOException {
        int row = vector.isRepeating ? 0 : at;
        if (!vector.noNulls && vector.isNull[row]) {
            out.append("null");
            return;
        }
        switch (type.getCategory()) {
            case BOOLEAN -> out.append(((LongColumnVector) vector).vector[row] == 0 ? "false" : "true");
            case BYTE, SHORT, INT, LONG, DATE -> out.append(Long.toString(((LongColumnVector) vector).vector[row]));
            case FLOAT, DOUBLE -> number(out, ((DoubleColumnVector) vector).vector[row]);
            case STRING, CHAR, VARCHAR -> text(out, ((BytesColumnVector) vector).toString(row));
            case BINARY -> binary(out, (BytesColumnVector) vector, row);
            case DECIMAL -> text(out, decimal(vector, row).toPlainString());
            case TIMESTAMP, TIMESTAMP_INSTANT -> timestamp(out, (TimestampColumnVector) vector, row);
            case LIST -> list(out, (ListColumnVector) vector, type, row);
            case MAP -> map(out, (MapColumnVector) vector, type, row);
            case STRUCT -> struct(out, (StructColumnVector) vector, type, row);
            case UNION -> {
                UnionColumnVector union = (UnionColumnVector) vector;
                int tag = union.tags[row];
                out.append("{\"tag\": ").append(Integer.toString(tag)).append(", \"value\": ");
                value(out, union.fields[tag], type.getChildren().get(tag), row);
                out.append('}');
            }
            default -> throw new IOException("no JSON for " + type);
        }
    }

    private static void number(Appendable out, double value) throws IOException {
        if (Double.isFinite(value)) {
            out.append(Double.toString(value));
        } else {
            text(out, Double.toString(value));
        }
    }

    private static void binary(Appendable out, BytesColumnVector vector, int row) throws IOException {
        int start = vector.start[row];
        byte[] bytes = java.util.Arrays.copyOfRange(vector.vector[row], start, start + vector.length[row]);
        text(out, Base64.getEncoder().encodeToString(bytes));
    }

    private static BigDecimal decimal(ColumnVector vector, int row) {
        if (vector instanceof Decimal64ColumnVector small) {
            return BigDecimal.valueOf(small.vector[row], small.scale);
        }
        return ((DecimalColumnVector) vector).vector[row].getHiveDecimal().bigDecimalValue();
    }

    private static void timestamp(Appendable out, TimestampColumnVector vector, int row) throws IOException {
        long second = Math.floorDiv(vector.time[row], 1000L);
        out.append("[" + second + ", " + vector.nanos[row] + "]");
    }

    private static void list(Appendable out, ListColumnVector list, TypeDescription type, int row) throws IOException {
        out.append('[');
        for (long n = 0; n < list.lengths[row]; n++) {
            out.append(n == 0 ? "" : ", ");
            value(out, list.child, type.getChildren().get(0), (int) (list.offsets[row] + n));
        }
        out.append(']');
    }

    private static void map(Appendable out, MapColumnVector map, TypeDescription type, int row) throws IOException {
        out.append('[');
        for (long n = 0; n < map.lengths[row]; n++) {
            int at = (int) (map.offsets[row] + n);
            out.append(n == 0 ? "[" : ", [");
            value(out, map.keys, type.getChildren().get(0), at);
            out.append(", ");
            value(out, map.values, type.getChildren().get(1), at);
            out.append(']');
        }
        out.append(']');
    }

    private static void struct(Appendable out, StructColumnVector struct, TypeDescription type, int row)
            throws IOException {
        List<String> names = type.getFieldNames();
        String comma = "{";
        for (int n = 0; n < struct.fields.length; n++) {
            out.append(comma);
            text(out, names.get(n));
            out.append(": ");
            value(out, struct.fields[n], type.getChildren().get(n), row);
            comma = ", ";
        }
        out.append(names.isEmpty() ? "{}" : "}");
    }
}
