package peers;

import java.io.File;
import java.util.List;
import java.util.TimeZone;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.RCFileRecordReader;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.columnar.BytesRefArrayWritable;
import org.apache.hadoop.hive.serde2.objectinspector.PrimitiveObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.StructField;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.BooleanObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.DoubleObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.IntObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.LongObjectInspector;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.mapred.FileSplit;

/** Reads files of the benchmark table with Hive: {@code ReadHive PASSES FILE...}. */
public final class ReadHive {
    private static long sink;

    private ReadHive() {}

    public static void main(String[] args) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        String reader = "hive " + System.getProperty("hive.version");
        for (String file : List.of(args).subList(1, args.length)) {
            Passes.run(reader, new File(file).getName(), Integer.parseInt(args[0]), () -> read(new File(file)));
        }
        if (sink == 0) { // used, so that every value must be read
            throw new IllegalStateException("nothing was read");
        }
    }

    private static Passes.Count read(File file) throws Exception {
        Configuration conf = new Configuration();
        AbstractSerDe serde = BenchTable.serde(conf, file.getName());
        StructObjectInspector rows = (StructObjectInspector) serde.getObjectInspector();
        List<? extends StructField> fields = rows.getAllStructFieldRefs();
        FileSplit split = new FileSplit(new Path(file.getPath()), 0, file.length(), (String[]) null);
        RCFileRecordReader<LongWritable, BytesRefArrayWritable> reader = new RCFileRecordReader<>(conf, split);
        LongWritable key = reader.createKey();
        BytesRefArrayWritable cells = reader.createValue();
        long count = 0;
        long values = 0;
        while (reader.next(key, cells)) {
            Object row = serde.deserialize(cells);
            for (StructField field : fields) {
                Object value = rows.getStructFieldData(row, field);
                if (value != null) {
                    values++;
                    consume(value, (PrimitiveObjectInspector) field.getFieldObjectInspector());
                }
            }
            count++;
        }
        reader.close();
        return new Passes.Count(count, values);
    }

    /** The value in the form of Hive's operators: primitives, or the SerDe's own object; never copied. */
    private static void consume(Object value, PrimitiveObjectInspector inspector) {
        switch (inspector.getPrimitiveCategory()) {
            case LONG -> sink += ((LongObjectInspector) inspector).get(value);
            case INT -> sink += ((IntObjectInspector) inspector).get(value);
            case DOUBLE -> sink += (long) ((DoubleObjectInspector) inspector).get(value);
            case BOOLEAN -> sink += ((BooleanObjectInspector) inspector).get(value) ? 1 : 0;
            default -> sink += inspector.getPrimitiveWritableObject(value) == null ? 0 : 1;
        }
    }
}
