package reference;

import java.io.IOException;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.common.type.HiveChar;
import org.apache.hadoop.hive.serde2.objectinspector.ListObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.MapObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.PrimitiveObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.StructField;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.UnionObjectInspector;

/**
 * A value of Hive as JSON: numbers and booleans as such (NaN and the infinities as text), binary as base64, a map as a
 * list of pairs, a union as {@code {"tag": .., "value": ..}}, all else as Hive's text for it; a char keeps its blanks.
 */
final class Json {
    private Json() {}

    static void append(Appendable out, Object value, ObjectInspector inspector) throws IOException {
        if (value == null) {
            out.append("null");
            return;
        }
        switch (inspector.getCategory()) {
            case LIST -> list(out, value, (ListObjectInspector) inspector);
            case MAP -> map(out, value, (MapObjectInspector) inspector);
            case STRUCT -> struct(out, value, (StructObjectInspector) inspector);
            case UNION -> union(out, value, (UnionObjectInspector) inspector);
            default -> primitive(out, value, (PrimitiveObjectInspector) inspector);
        }
    }

    static void append(Appendable out, String text) throws IOException {
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

    /** Appends strings, numbers, booleans, and lists and maps of these. */
    static void appendPlain(Appendable out, Object plain) throws IOException {
        if (plain instanceof Map<?, ?> map) {
            String comma = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(comma);
                append(out, entry.getKey().toString());
                out.append(": ");
                appendPlain(out, entry.getValue());
                comma = ", ";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (plain instanceof List<?> list) {
            String comma = "[";
            for (Object item : list) {
                out.append(comma);
                appendPlain(out, item);
                comma = ", ";
            }
            out.append(list.isEmpty() ? "[]" : "]");
        } else if (plain instanceof String text) {
            append(out, text);
        } else {
            out.append(String.valueOf(plain));
        }
    }

    private static void primitive(Appendable out, Object value, PrimitiveObjectInspector inspector) throws IOException {
        Object plain = inspector.getPrimitiveJavaObject(value);
        if (plain == null) { // a lazy value that does not parse as its type
            out.append("null");
            return;
        }
        switch (inspector.getPrimitiveCategory()) {
            case BOOLEAN, BYTE, SHORT, INT, LONG -> out.append(plain.toString());
            case FLOAT, DOUBLE -> {
                if (Double.isFinite(((Number) plain).doubleValue())) {
                    out.append(plain.toString());
                } else {
                    append(out, plain.toString());
                }
            }
            case BINARY -> append(out, Base64.getEncoder().encodeToString((byte[]) plain));
            case CHAR -> append(out, ((HiveChar) plain).getPaddedValue());
            default -> append(out, plain.toString());
        }
    }

    private static void list(Appendable out, Object value, ListObjectInspector inspector) throws IOException {
        List<?> items = inspector.getList(value);
        if (items == null) {
            out.append("null");
            return;
        }
        String comma = "[";
        for (Object item : items) {
            out.append(comma);
            append(out, item, inspector.getListElementObjectInspector());
            comma = ", ";
        }
        out.append(items.isEmpty() ? "[]" : "]");
    }

    private static void map(Appendable out, Object value, MapObjectInspector inspector) throws IOException {
        Map<?, ?> map = inspector.getMap(value);
        if (map == null) {
            out.append("null");
            return;
        }
        String comma = "[";
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            out.append(comma).append('[');
            append(out, entry.getKey(), inspector.getMapKeyObjectInspector());
            out.append(", ");
            append(out, entry.getValue(), inspector.getMapValueObjectInspector());
            out.append(']');
            comma = ", ";
        }
        out.append(map.isEmpty() ? "[]" : "]");
    }

    private static void struct(Appendable out, Object value, StructObjectInspector inspector) throws IOException {
        String comma = "{";
        for (StructField field : inspector.getAllStructFieldRefs()) {
            out.append(comma);
            append(out, field.getFieldName());
            out.append(": ");
            append(out, inspector.getStructFieldData(value, field), field.getFieldObjectInspector());
            comma = ", ";
        }
        out.append('}');
    }

    private static void union(Appendable out, Object value, UnionObjectInspector inspector) throws IOException {
        byte tag = inspector.getTag(value);
        out.append("{\"tag\": ").append(Byte.toString(tag)).append(", \"value\": ");
        append(out, inspector.getField(value), inspector.getObjectInspectors().get(tag));
        out.append('}');
    }
}
