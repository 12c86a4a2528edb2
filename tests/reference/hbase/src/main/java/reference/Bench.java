package reference;

import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableSnapshotScanner;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.util.Bytes;

/** A table to measure reading by, and the fastest of HBase's offline readers over it. */
final class Bench {
    private static final byte[] F = Bytes.toBytes("f");

    private Bench() {}

    /** Four regions of three store files each: rows of five columns, a tenth of them written again by the last file. */
    static void load(Path to, int cells, String codec) throws Exception {
        Root root = new Root(to);
        boolean plain = codec.equals("none");
        TableDescriptor table =
                TableDescriptorBuilder.newBuilder(TableName.valueOf("bench"))
                        .setColumnFamily(
                                ColumnFamilyDescriptorBuilder.newBuilder(F)
                                        .setMaxVersions(1)
                                        .setCompressionType(Compression.getCompressionAlgorithmByName(codec))
                                        .setDataBlockEncoding(plain ? DataBlockEncoding.NONE : DataBlockEncoding.FAST_DIFF)
                                        .build())
                        .build();
        int rows = cells / 5;
        byte[][] cuts = new byte[3][];
        for (int i = 0; i < 3; i++) {
            cuts[i] = row((long) rows * (i + 1) / 4);
        }
        List<HRegion> regions = root.create(table, cuts);
        Random random = new Random(3);
        byte[] value = new byte[20];
        for (int file = 0; file < 3; file++) {
            for (int i = 0; i < rows; i++) {
                boolean mine = file < 2 ? i % 2 == file : i % 10 == 0;
                if (!mine) {
                    continue;
                }
                Put put = new Put(row(i)).setDurability(Durability.SKIP_WAL);
                for (int column = 0; column < 5; column++) {
                    random.nextBytes(value);
                    put.addColumn(F, Bytes.toBytes("column" + column), 1_600_000_000_000L + file, value.clone());
                }
                regions.get((int) ((long) i * 4 / rows)).put(put);
            }
            for (HRegion region : regions) {
                region.flush(true);
            }
        }
        root.snapshot("bench", table, regions);
    }

    private static byte[] row(long i) {
        return Bytes.toBytes(String.format("row-%012d", i));
    }

    static void scan(Path at, int passes) throws Exception {
        Root root = new Root(at);
        var threads = ManagementFactory.getThreadMXBean();
        for (int pass = 0; pass < passes; pass++) {
            java.nio.file.Path restore = java.nio.file.Files.createTempDirectory("restore");
            long wall = System.nanoTime();
            long cpu = threads.getCurrentThreadCpuTime();
            long cells = 0;
            try (TableSnapshotScanner scanner =
                    new TableSnapshotScanner(
                            root.conf, root.path, new org.apache.hadoop.fs.Path(restore.toUri()), "bench", new Scan(), false)) {
                for (Result result = scanner.next(); result != null; result = scanner.next()) {
                    cells += result.size();
                }
            }
            double seconds = (System.nanoTime() - wall) / 1e9;
            double busy = (threads.getCurrentThreadCpuTime() - cpu) / 1e9;
            System.out.printf(
                    "%d cells, %.2f M cells/s, %.2f M cells per CPU second of its thread%n",
                    cells, cells / seconds / 1e6, cells / busy / 1e6);
        }
    }
}
