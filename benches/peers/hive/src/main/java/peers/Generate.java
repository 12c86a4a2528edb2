package peers;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.io.RCFile;
import org.apache.hadoop.hive.ql.io.RCFileOutputFormat;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorConverters;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorConverters.Converter;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.PrimitiveObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.util.ReflectionUtils;

/** Writes the benchmark table, the same rows in each file: {@code Generate DIR [ROWS]}. */
public final class Generate {
    private static final int ROWS = 2_200_000;
    private static final long FIRST_DAY = 15_340; // 2012-01-01
    private static final String[] CITIES = {
        "Amsterdam", "Berlin", "Chicago", "Delhi", "Edinburgh", "Fukuoka", "Geneva", "Hamburg", "Istanbul", "Jakarta",
        "Kyoto", "Lisbon", "Madrid", "Nairobi", "Oslo", "Paris", "Quito", "Rotterdam", "Stockholm", "Toronto",
    };
    private static final String[] PRODUCTS = {
        "bolt", "bracket", "cable", "casing", "filter", "flange", "gasket", "hinge", "lever", "nozzle", "piston",
        "pulley", "rotor", "sensor", "spring", "valve",
    };

    private final Random random = new Random(2014);
    private final Converter timestamp = fromString("timestamp");
    private final Converter date = fromString("date");

    public static void main(String[] args) throws Exception {
        new Generate().write(new Path(args[0]), args.length > 1 ? Integer.parseInt(args[1]) : ROWS);
    }

    private void write(Path dir, int rows) throws Exception {
        Configuration conf = new Configuration();
        RCFileOutputFormat.setColumnNumber(conf, BenchTable.NAMES.size());
        AbstractSerDe text = BenchTable.serde(conf, "text");
        AbstractSerDe binary = BenchTable.serde(conf, "binary");
        List<RCFile.Writer> texts = List.of(
                open(conf, dir, "text_none.rc", null),
                open(conf, dir, "text_zlib.rc", "org.apache.hadoop.io.compress.DefaultCodec"),
                open(conf, dir, "text_snappy.rc", "org.apache.hadoop.io.compress.SnappyCodec"));
        List<RCFile.Writer> binaries = List.of(
                open(conf, dir, "binary_none.rc", null),
                open(conf, dir, "binary_zlib.rc", "org.apache.hadoop.io.compress.DefaultCodec"));
        List<ObjectInspector> columns = new ArrayList<>();
        for (String type : BenchTable.TYPES) {
            columns.add(javaInspector(type));
        }
        ObjectInspector inspector =
                ObjectInspectorFactory.getStandardStructObjectInspector(BenchTable.NAMES, columns);
        for (int n = 0; n < rows; n++) {
            List<Object> row = row(n);
            append(texts, text.serialize(row, inspector));
            append(binaries, binary.serialize(row, inspector));
        }
        for (RCFile.Writer writer : texts) {
            writer.close();
        }
        for (RCFile.Writer writer : binaries) {
            writer.close();
        }
    }

    private static RCFile.Writer open(Configuration conf, Path dir, String name, String codecClass) throws Exception {
        CompressionCodec codec = null;
        if (codecClass != null) {
            codec = (CompressionCodec) ReflectionUtils.newInstance(conf.getClassByName(codecClass), conf);
        }
        FileSystem fs = FileSystem.getLocal(conf).getRaw();
        return new RCFile.Writer(fs, conf, new Path(dir, name), null, codec);
    }

    private static void append(List<RCFile.Writer> writers, Writable row) throws Exception {
        for (RCFile.Writer writer : writers) {
            writer.append(row);
        }
    }

    /** A row of an order table; one value in 50 is null, except in the column id. */
    private List<Object> row(int n) {
        long second = n * 43L + random.nextInt(40);
        int cents = (int) Math.abs(random.nextGaussian() * 250_000);
        String city = CITIES[random.nextInt(CITIES.length)];
        List<Object> row = new ArrayList<>(BenchTable.NAMES.size());
        row.add(4_000_000_000L + n * 3L);
        row.add(orNull(random.nextInt(20_000) - 1_000));
        row.add(orNull(random.nextInt(100) < 75 ? random.nextInt(1_000) / 8.0 : random.nextGaussian()));
        row.add(orNull(city + "-" + (1_000_000 + random.nextInt(9_000_000))));
        row.add(orNull(timestamp.convert(timestampText(second))));
        row.add(orNull(HiveDecimal.create(java.math.BigDecimal.valueOf(cents, 2))));
        row.add(orNull(random.nextInt(10) < 7));
        row.add(orNull(PRODUCTS[random.nextInt(PRODUCTS.length)] + " type " + random.nextInt(1_000)));
        row.add(orNull(date.convert(dateText(second))));
        return row;
    }

    private Object orNull(Object value) {
        return random.nextInt(50) == 0 ? null : value;
    }

    private String timestampText(long second) {
        long ofDay = second % 86_400;
        String clock = String.format("%02d:%02d:%02d", ofDay / 3_600, ofDay / 60 % 60, ofDay % 60);
        return dateText(second) + " " + clock + "." + (100_000 + random.nextInt(900_000));
    }

    private static String dateText(long second) {
        return java.time.LocalDate.ofEpochDay(FIRST_DAY + second / 86_400).toString();
    }

    private static ObjectInspector javaInspector(String type) {
        return TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(TypeInfoUtils.getTypeInfoFromTypeString(type));
    }

    private static Converter fromString(String type) {
        return ObjectInspectorConverters.getConverter(
                PrimitiveObjectInspectorFactory.javaStringObjectInspector, javaInspector(type));
    }
}
