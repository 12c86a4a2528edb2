package reference;

import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.sql.Date;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.hive.ql.io.orc.OrcFile;
import org.apache.hadoop.hive.ql.io.orc.OrcStruct;
import org.apache.hadoop.hive.ql.io.orc.Reader;
import org.apache.hadoop.hive.ql.io.orc.RecordReader;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorConverters;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.PrimitiveObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.orc.CompressionKind;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;

/**
 * Writes a file with a column of each primitive type, and reads each column as each type that a table may declare.
 *
 * <pre>
 * reader  type in the file  type of the table  values (\N: null), or ! and why Hive refuses
 * orc     int               string             -2147483648  ..      by Hive's reader of ORC
 * rows    int               string             -2147483648  ..      by the converter from a partition's type to its table's
 * </pre>
 */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        String directory = arguments[1];
        if (arguments[0].equals("write")) {
            write(directory + "/types.orc", Samples.TYPES);
        } else {
            read(directory + "/types.orc", Samples.TYPES);
        }
    }

    // ---- writing

    private static void write(String path, Map<String, List<String>> types) throws IOException {
        List<String> fields = new ArrayList<>();
        int rows = 0;
        for (Map.Entry<String, List<String>> type : types.entrySet()) {
            fields.add("c" + fields.size() + ":" + Samples.type(type.getKey()));
            rows = Math.max(rows, type.getValue().size() + 1);
        }
        TypeDescription schema = TypeDescription.fromString("struct<" + String.join(",", fields) + ">");
        Files.deleteIfExists(Paths.get(path));
        Writer writer = org.apache.orc.OrcFile.createWriter(
                new Path(path),
                org.apache.orc.OrcFile.writerOptions(new Configuration()).compress(CompressionKind.ZLIB).setSchema(schema));
        VectorizedRowBatch batch = schema.createRowBatch();
        batch.size = rows;
        int column = 0;
        for (Map.Entry<String, List<String>> type : types.entrySet()) {
            fill(batch.cols[column++], type.getKey(), type.getValue(), rows);
        }
        writer.addRowBatch(batch);
        writer.close();
    }

    /** The values, then nulls. */
    private static void fill(ColumnVector vector, String type, List<String> values, int rows) {
        vector.noNulls = false;
        for (int row = 0; row < rows; row++) {
            vector.isNull[row] = row >= values.size();
            if (!vector.isNull[row]) {
                set(vector, row, type, values.get(row));
            }
        }
    }

    private static void set(ColumnVector vector, int row, String type, String text) {
        if (vector instanceof DoubleColumnVector) {
            ((DoubleColumnVector) vector).vector[row] = type.equals("float") ? Float.parseFloat(text) : Double.parseDouble(text);
        } else if (vector instanceof DecimalColumnVector) {
            ((DecimalColumnVector) vector).set(row, HiveDecimal.create(new BigDecimal(text)));
        } else if (vector instanceof BytesColumnVector) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            ((BytesColumnVector) vector).setVal(row, bytes, 0, bytes.length);
        } else if (vector instanceof TimestampColumnVector) {
            ((TimestampColumnVector) vector).set(row, Timestamp.valueOf(text));
        } else if (type.equals("date")) {
            ((LongColumnVector) vector).vector[row] = Math.floorDiv(Date.valueOf(text).getTime(), 86_400_000L);
        } else if (type.equals("boolean")) {
            ((LongColumnVector) vector).vector[row] = text.equals("true") ? 1 : 0;
        } else {
            ((LongColumnVector) vector).vector[row] = Long.parseLong(text);
        }
    }

    // ---- reading

    private static void read(String path, Map<String, List<String>> types) throws IOException {
        int column = 0;
        for (Map.Entry<String, List<String>> type : types.entrySet()) {
            int count = type.getValue().size();
            List<Object> own = values(path, column, Samples.type(type.getKey()), count);
            for (String declared : Samples.DECLARED) {
                print("orc", type.getKey(), declared, readAs(path, column, declared, count));
                print("rows", type.getKey(), declared, converted(own, Samples.type(type.getKey()), declared));
            }
            column++;
        }
    }

    private static void print(String reader, String own, String declared, List<String> values) {
        System.out.println(reader + "\t" + own + "\t" + declared + "\t" + String.join("\t", values));
    }

    private static List<String> readAs(String path, int column, String declared, int count) {
        try {
            return texts(values(path, column, declared, count));
        } catch (Exception e) {
            return List.of(refusal(e));
        }
    }

    private static List<Object> values(String path, int column, String declared, int count) throws IOException {
        Configuration conf = new Configuration();
        TypeDescription schema = TypeDescription.fromString("struct<c" + column + ":" + declared + ">");
        TypeInfo info = TypeInfoUtils.getTypeInfoFromTypeString("struct<c" + column + ":" + declared + ">");
        StructObjectInspector inspector = (StructObjectInspector) OrcStruct.createObjectInspector(info);
        Reader reader = OrcFile.createReader(new Path(path), OrcFile.readerOptions(conf));
        List<Object> values = new ArrayList<>();
        RecordReader rows = reader.rowsOptions(new Reader.Options().schema(schema));
        while (rows.hasNext() && values.size() < count) {
            values.add(inspector.getStructFieldsDataAsList(rows.next(null)).get(0));
        }
        rows.close();
        return values;
    }

    /** What Hive makes of values that a SerDe read with the partition's type, if the table has another type.
     */
    private static List<String> converted(List<Object> values, String own, String declared) {
        try {
            ObjectInspector from = PrimitiveObjectInspectorFactory.getPrimitiveWritableObjectInspector(
                    (PrimitiveTypeInfo) TypeInfoUtils.getTypeInfoFromTypeString(own));
            ObjectInspector to = PrimitiveObjectInspectorFactory.getPrimitiveWritableObjectInspector(
                    (PrimitiveTypeInfo) TypeInfoUtils.getTypeInfoFromTypeString(declared));
            ObjectInspectorConverters.Converter converter = ObjectInspectorConverters.getConverter(from, to);
            List<String> texts = new ArrayList<>();
            for (Object value : values) {
                String text;
                try {
                    text = text(converter.convert(value));
                } catch (RuntimeException e) {
                    text = refusal(e);
                }
                texts.add(text);
            }
            return texts;
        } catch (Exception e) {
            return List.of(refusal(e));
        }
    }

    private static List<String> texts(List<Object> values) {
        List<String> texts = new ArrayList<>();
        values.forEach(value -> texts.add(text(value)));
        return texts;
    }

    private static String text(Object value) {
        return value == null ? "\\N" : escaped(value.toString());
    }

    private static String refusal(Exception e) {
        return "!" + escaped(e.getClass().getSimpleName() + ": " + e.getMessage());
    }

    private static String escaped(String text) {
        return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r");
    }
}
