package reference;

import java.io.IOException;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.RCFileRecordReader;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.SerDeException;
import org.apache.hadoop.hive.serde2.columnar.BytesRefArrayWritable;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.mapred.FileSplit;

/** Hive's own reading of a file: RCFileRecordReader over a byte range, then the SerDe. */
final class HiveRows {
    private HiveRows() {}

    /**
     * Appends one JSON object a row.
     *
     * @param settings what a session or a table would set, such as {@code hive.io.rcfile.tolerate.corruptions}
     * @return how many rows there were
     */
    static int print(Path path, Table table, long start, long length, Map<String, String> settings, Appendable out)
            throws IOException, SerDeException {
        Configuration conf = new Configuration();
        settings.forEach(conf::set);
        AbstractSerDe serDe = table.serDe(conf);
        ObjectInspector inspector = serDe.getObjectInspector();
        RCFileRecordReader<LongWritable, BytesRefArrayWritable> reader =
                new RCFileRecordReader<>(conf, new FileSplit(path, start, length, (String[]) null));
        LongWritable key = reader.createKey();
        BytesRefArrayWritable cells = reader.createValue();
        int rows = 0;
        while (reader.next(key, cells)) {
            Json.append(out, serDe.deserialize(cells), inspector);
            out.append('\n');
            rows++;
        }
        reader.close();
        return rows;
    }
}
