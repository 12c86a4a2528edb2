package reference;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.RCFile;
import org.apache.hadoop.hive.ql.io.RCFileOutputFormat;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.SerDeException;
import org.apache.hadoop.hive.serde2.columnar.BytesRefArrayWritable;
import org.apache.hadoop.hive.serde2.columnar.BytesRefWritable;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.util.ReflectionUtils;

/** An RCFile to be written by Hive: its codec, header and the size of its row groups. */
final class HiveFile {
    private static final String HADOOP_CODECS = "org.apache.hadoop.io.compress.";

    private final Configuration conf = new Configuration();
    private final Map<String, String> metadata = new LinkedHashMap<>();
    private String codec;

    /** The codec, by its class below {@code org.apache.hadoop.io.compress} or by its full name. */
    HiveFile codec(String name) {
        codec = name == null || name.contains(".") ? name : HADOOP_CODECS + name;
        return this;
    }

    /** Row groups end after this many rows, at the latest. */
    HiveFile rowsPerGroup(int rows) {
        conf.setInt("hive.io.rcfile.record.interval", rows);
        return this;
    }

    /** The header of before Hive 0.9: a sequence file's, {@code SEQ6}, that names its key and value classes. */
    HiveFile sequenceFileHeader() {
        conf.setBoolean("hive.exec.rcfile.use.explicit.header", false);
        return this;
    }

    HiveFile metadata(String key, String value) {
        metadata.put(key, value);
        return this;
    }

    void write(Path path, Table table, List<? extends List<?>> rows) throws IOException, SerDeException {
        AbstractSerDe serDe = table.serDe(conf);
        StructObjectInspector inspector = table.javaInspector();
        List<TypeInfo> types = table.types();
        RCFile.Writer writer = open(path, types.size());
        for (List<?> row : rows) {
            writer.append(serDe.serialize(Values.row(row, types), inspector));
        }
        writer.close();
    }

    /** Writes raw cells, bypassing the SerDe: what foreign writers and careless loads leave in text tables. */
    void writeCells(Path path, List<List<String>> rows) throws IOException {
        int width = rows.get(0).size();
        RCFile.Writer writer = open(path, width);
        BytesRefArrayWritable cells = new BytesRefArrayWritable(width);
        for (List<String> row : rows) {
            cells.clear();
            for (int n = 0; n < width; n++) {
                byte[] cell = row.get(n).getBytes(StandardCharsets.UTF_8);
                cells.set(n, new BytesRefWritable(cell, 0, cell.length));
            }
            writer.append(cells);
        }
        writer.close();
    }

    RCFile.Writer open(Path path, int columns) throws IOException {
        RCFileOutputFormat.setColumnNumber(conf, columns);
        SequenceFile.Metadata pairs = new SequenceFile.Metadata();
        metadata.forEach((key, value) -> pairs.set(new Text(key), new Text(value)));
        FileSystem fs = FileSystem.getLocal(conf).getRaw();
        return new RCFile.Writer(fs, conf, path, null, pairs, compression());
    }

    private CompressionCodec compression() throws IOException {
        try {
            return codec == null ? null : (CompressionCodec) ReflectionUtils.newInstance(conf.getClassByName(codec), conf);
        } catch (ClassNotFoundException e) {
            throw new IOException(e);
        }
    }
}
