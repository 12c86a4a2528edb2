package reference;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.RCFile;
import org.apache.hadoop.hive.ql.io.rcfile.merge.RCFileBlockMergeRecordReader;
import org.apache.hadoop.hive.ql.io.rcfile.merge.RCFileKeyBufferWrapper;
import org.apache.hadoop.hive.ql.io.rcfile.merge.RCFileValueBufferWrapper;
import org.apache.hadoop.mapred.FileSplit;

/**
 * Row groups copied without decoding, as Hive does for {@code ALTER TABLE .. CONCATENATE} and, with columns
 * nulled on the way, {@code TRUNCATE TABLE .. COLUMNS}.
 */
final class BlockCopy {
    private BlockCopy() {}

    static void write(Path to, HiveFile file, int columns, List<Path> from, List<Integer> nulled) throws IOException {
        RCFile.Writer writer = file.open(to, columns);
        for (Path path : from) {
            append(writer, path, nulled);
        }
        writer.close();
    }

    private static void append(RCFile.Writer writer, Path from, List<Integer> nulled) throws IOException {
        Configuration conf = new Configuration();
        long length = FileSystem.getLocal(conf).getFileStatus(from).getLen();
        RCFileBlockMergeRecordReader groups =
                new RCFileBlockMergeRecordReader(conf, new FileSplit(from, 0, length, (String[]) null));
        RCFileKeyBufferWrapper key = groups.createKey();
        RCFileValueBufferWrapper value = groups.createValue();
        while (groups.next(key, value)) {
            for (int column : nulled) {
                key.getKeyBuffer().nullColumn(column);
                value.getValueBuffer().nullColumn(column);
            }
            int keyLength = nulled.isEmpty() ? key.getKeyLength() : key.getKeyBuffer().getSize();
            int recordLength = keyLength;
            for (int bytes : key.getKeyBuffer().getEachColumnValueLen()) {
                recordLength += bytes;
            }
            writer.flushBlock(
                    key.getKeyBuffer(), value.getValueBuffer(), recordLength, keyLength, key.getCompressedKeyLength());
        }
        groups.close();
    }
}
