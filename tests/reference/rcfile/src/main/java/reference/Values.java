package reference;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorConverters;
import org.apache.hadoop.hive.serde2.objectinspector.StandardUnionObjectInspector.StandardUnion;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.PrimitiveObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.PrimitiveObjectInspectorUtils;
import org.apache.hadoop.hive.serde2.typeinfo.ListTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.MapTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.StructTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.hive.serde2.typeinfo.UnionTypeInfo;

/** Plain values as Hive's standard Java objects; values that are not numbers, booleans or bytes may be given
 * as text.
 */
final class Values {
    /** The value of a union: the number of its branch, and the value itself. */
    record Branch(int tag, Object value) {}

    private Values() {}

    static List<Object> row(List<?> plain, List<TypeInfo> types) {
        List<Object> row = new ArrayList<>(types.size());
        for (int n = 0; n < types.size(); n++) {
            row.add(value(plain.get(n), types.get(n)));
        }
        return row;
    }

    private static Object value(Object plain, TypeInfo type) {
        if (plain == null) {
            return null;
        }
        return switch (type.getCategory()) {
            case LIST -> list((List<?>) plain, ((ListTypeInfo) type).getListElementTypeInfo());
            case MAP -> map((Map<?, ?>) plain, (MapTypeInfo) type);
            case STRUCT -> row((List<?>) plain, ((StructTypeInfo) type).getAllStructFieldTypeInfos());
            case UNION -> union((Branch) plain, (UnionTypeInfo) type);
            default -> plain instanceof String text ? parsed(text, type) : plain;
        };
    }

    private static List<Object> list(List<?> plain, TypeInfo element) {
        List<Object> list = new ArrayList<>(plain.size());
        for (Object item : plain) {
            list.add(value(item, element));
        }
        return list;
    }

    private static Map<Object, Object> map(Map<?, ?> plain, MapTypeInfo type) {
        Map<Object, Object> map = new LinkedHashMap<>();
        plain.forEach((key, item) ->
                map.put(value(key, type.getMapKeyTypeInfo()), value(item, type.getMapValueTypeInfo())));
        return map;
    }

    private static StandardUnion union(Branch plain, UnionTypeInfo type) {
        TypeInfo branch = type.getAllUnionObjectTypeInfos().get(plain.tag());
        return new StandardUnion((byte) plain.tag(), value(plain.value(), branch));
    }

    private static Object parsed(String text, TypeInfo type) {
        if (type.getTypeName().equals("timestamp")) { // Hive 2's converter drops what is below a millisecond
            return PrimitiveObjectInspectorUtils.getTimestamp(
                    text, PrimitiveObjectInspectorFactory.javaStringObjectInspector);
        }
        return ObjectInspectorConverters.getConverter(
                        PrimitiveObjectInspectorFactory.javaStringObjectInspector,
                        TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(type))
                .convert(text);
    }
}
