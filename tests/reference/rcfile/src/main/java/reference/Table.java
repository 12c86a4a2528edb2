package reference;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.SerDeException;
import org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe;
import org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;

/**
 * What Hive's metastore would know of a file's table.
 *
 * @param schema the columns as a DDL list, {@code id bigint, tags array<string>}
 * @param serde {@code text} for ColumnarSerDe, {@code binary} for LazyBinaryColumnarSerDe
 * @param properties SerDe properties under Hive's names
 */
record Table(String schema, String serde, Map<String, String> properties) {
    Table(String schema, String serde) {
        this(schema, serde, Map.of());
    }

    List<String> names() {
        return List.copyOf(columns().keySet());
    }

    List<TypeInfo> types() {
        return columns().values().stream().map(TypeInfoUtils::getTypeInfoFromTypeString).toList();
    }

    AbstractSerDe serDe(Configuration conf) throws SerDeException {
        Properties table = new Properties();
        table.setProperty("columns", String.join(",", names()));
        table.setProperty("columns.types", String.join(":", columns().values()));
        table.putAll(properties);
        AbstractSerDe serDe =
                switch (serde) {
                    case "text" -> new ColumnarSerDe();
                    case "binary" -> new LazyBinaryColumnarSerDe();
                    default -> throw new IllegalArgumentException("serde is text or binary, not " + serde);
                };
        serDe.initialize(conf, table, null);
        return serDe;
    }

    /** The inspector of rows held as lists of Hive's standard Java objects. */
    StructObjectInspector javaInspector() {
        List<ObjectInspector> fields = new ArrayList<>();
        for (TypeInfo type : types()) {
            fields.add(TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(type));
        }
        return ObjectInspectorFactory.getStandardStructObjectInspector(names(), fields);
    }

    /** Name and type of each column: the list is split at the commas outside of all brackets. */
    private Map<String, String> columns() {
        Map<String, String> columns = new LinkedHashMap<>();
        int depth = 0;
        int start = 0;
        for (int at = 0; at <= schema.length(); at++) {
            char c = at < schema.length() ? schema.charAt(at) : ',';
            depth += "(<".indexOf(c) >= 0 ? 1 : ")>".indexOf(c) >= 0 ? -1 : 0;
            if (c == ',' && depth == 0) {
                String[] column = schema.substring(start, at).strip().split("\\s+", 2);
                columns.put(column[0].replace("`", ""), type(column[1]));
                start = at + 1;
            }
        }
        return columns;
    }

    /** Hive's type strings contain no blanks, except within the name of a type. */
    private static String type(String ddl) {
        return ddl.replaceAll("\\s*([<>(),:])\\s*", "$1").replaceAll("\\s+", " ");
    }
}
