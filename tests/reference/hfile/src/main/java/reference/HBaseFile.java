package reference;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.Tag;
import org.apache.hadoop.hbase.io.HFileLink;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileScanner;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.regionserver.StoreFileInfo;
import org.apache.hadoop.hbase.regionserver.StoreFileReader;
import org.apache.hadoop.hbase.util.BloomFilter;
import org.apache.hadoop.hbase.util.Bytes;

/** Reads a file with HBase. */
final class HBaseFile {
    static final Configuration CONF = HBaseConfiguration.create();

    private HBaseFile() {}

    /** The local file system, without checksum files. */
    static FileSystem disk() throws IOException {
        FileSystem disk = new RawLocalFileSystem();
        disk.initialize(URI.create("file:///"), CONF);
        return disk;
    }

    static org.apache.hadoop.fs.Path path(Path file) {
        return new org.apache.hadoop.fs.Path(file.toAbsolutePath().toUri());
    }

    /** Prints all cells; returns how many there are. */
    static long read(Path file, Consumer<String> out) throws IOException {
        long cells = 0;
        for (Cell cell : cells(file)) {
            out.accept(json(cell));
            cells++;
        }
        return cells;
    }

    private static List<KeyValue> cells(Path file) throws IOException {
        List<KeyValue> cells = new ArrayList<>();
        try (HFile.Reader reader = HFile.createReader(disk(), path(file), CacheConfig.DISABLED, true, CONF)) {
            HFileScanner scanner = reader.getScanner(CONF, false, false, false);
            for (boolean more = scanner.seekTo(); more; more = scanner.next()) {
                Cell cell = scanner.getCell();
                KeyValue copy = new KeyValue(
                        CellUtil.cloneRow(cell), CellUtil.cloneFamily(cell), CellUtil.cloneQualifier(cell),
                        cell.getTimestamp(), KeyValue.Type.codeToType(cell.getTypeByte()), CellUtil.cloneValue(cell),
                        PrivateCellUtil.getTags(cell));
                copy.setSequenceId(cell.getSequenceId());
                cells.add(copy);
            }
        }
        return cells;
    }

    private static String json(Cell cell) {
        StringBuilder tags = new StringBuilder();
        for (Tag tag : PrivateCellUtil.getTags(cell)) {
            String comma = tags.isEmpty() ? "" : ", ";
            tags.append(comma).append("{\"type\": ").append(tag.getType() & 0xff);
            tags.append(", \"value\": ").append(base64(Tag.cloneValue(tag))).append("}");
        }
        return "{\"row\": " + base64(CellUtil.cloneRow(cell))
                + ", \"family\": " + base64(CellUtil.cloneFamily(cell))
                + ", \"qualifier\": " + base64(CellUtil.cloneQualifier(cell))
                + ", \"timestamp\": " + cell.getTimestamp()
                + ", \"type\": " + (cell.getTypeByte() & 0xff)
                + ", \"value\": " + base64(CellUtil.cloneValue(cell))
                + ", \"tags\": [" + tags + "]"
                + ", \"sequence_id\": " + cell.getSequenceId() + "}";
    }

    static String base64(byte[] bytes) {
        return '"' + Base64.getEncoder().encodeToString(bytes) + '"';
    }

    /**
     * Seeks each seventh cell as a region server does: through the index, after the bloom filter was asked. Among cells of equal
     * keys, the seek must end at the first cell.
     */
    static String find(Path file) throws IOException {
        List<KeyValue> cells = cells(file);
        int hits = 0;
        int refused = 0;
        FileSystem disk = disk();
        StoreFileInfo info = new StoreFileInfo(CONF, disk, disk.getFileStatus(path(file)), (HFileLink) null);
        HStoreFile store = new HStoreFile(info, BloomType.ROWCOL, CacheConfig.DISABLED);
        store.initReader();
        StoreFileReader reader = store.getReader();
        HFileScanner scanner = reader.getScanner(false, true, false);
        for (int i = 0; i < cells.size(); i += 7) {
            KeyValue cell = cells.get(i);
            // Keys in the index have no sequence id, and among equal keys a larger sequence id comes first.
            cell.setSequenceId(0);
            int way = scanner.seekTo(cell);
            if (way != 0 || !CellUtil.matchingRowColumn(scanner.getCell(), cell)) {
                throw new IOException("not found: " + cell + ": seek " + way + " to " + scanner.getCell());
            }
            hits++;
            byte[] row = CellUtil.cloneRow(cell);
            byte type = cell.getTypeByte();
            boolean deletes = type == KeyValue.Type.DeleteFamily.getCode()
                    || type == KeyValue.Type.DeleteFamilyVersion.getCode();
            boolean denied = deletes && !reader.passesDeleteFamilyBloomFilter(row, 0, row.length);
            if (denied || !mayContain(reader, row, CellUtil.cloneQualifier(cell))) {
                throw new IOException("a bloom filter denies " + cell);
            }
            if (!mayContain(reader, Bytes.add(row, Bytes.toBytes("-not there")), CellUtil.cloneQualifier(cell))) {
                refused++;
            }
        }
        String bloom = reader.getBloomFilterType().name();
        boolean bulk = store.getBulkLoadTimestamp().isPresent();
        String facts = ", \"cells\": " + cells.size() + ", \"deletes\": " + reader.getDeleteFamilyCnt();
        store.closeStoreFile(true);
        return "{\"found\": " + hits + ", \"refused\": " + refused + ", \"bloom\": \"" + bloom + "\", \"bulk\": "
                + bulk + facts + "}";
    }

    private static boolean mayContain(StoreFileReader reader, byte[] row, byte[] qualifier) {
        BloomFilter bloom = reader.getGeneralBloomFilter();
        if (bloom == null || row.length == 0) {
            return true;
        }
        if (reader.getBloomFilterType() == BloomType.ROWCOL) {
            return bloom.contains(PrivateCellUtil.createFirstOnRow(row, new byte[0], qualifier), null, BloomType.ROWCOL);
        }
        return bloom.contains(row, 0, row.length, null);
    }
}
