package reference;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableSnapshotScanner;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.snapshot.RestoreSnapshotHelper;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;

/** A benchmark table, and HBase's offline readers over it. */
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

    /** Full scans of the snapshot by TableSnapshotScanner; one JSON line per pass. */
    static void scan(Path at, int passes) throws Exception {
        Root root = new Root(at);
        for (int pass = 0; pass < passes; pass++) {
            java.nio.file.Path restore = java.nio.file.Files.createTempDirectory("restore");
            Clock clock = new Clock();
            long cells = 0;
            try (TableSnapshotScanner scanner =
                    new TableSnapshotScanner(
                            root.conf, root.path, new org.apache.hadoop.fs.Path(restore.toUri()), "bench", new Scan(), false)) {
                for (Result result = scanner.next(); result != null; result = scanner.next()) {
                    cells += result.size();
                }
            }
            clock.print("scan", cells);
        }
    }

    /** Looks rows up by random keys, in regions of the snapshot that stay open; one JSON line per pass. */
    static void get(Path at, int rows, int lookups, int passes) throws Exception {
        Root root = new Root(at);
        var restore = new org.apache.hadoop.fs.Path(java.nio.file.Files.createTempDirectory("restore").toUri());
        var changes = RestoreSnapshotHelper.copySnapshotForScanner(root.conf, root.fs, root.path, restore, "bench");
        TableDescriptor table = changes.getTableDescriptor();
        List<HRegion> regions = new ArrayList<>();
        for (RegionInfo info : changes.getRegionsToAdd()) {
            // Opens the region as ClientSideRegionScanner does.
            var folder = CommonFSUtils.getTableDir(restore, table.getTableName());
            HRegion region = HRegion.newHRegion(folder, null, root.fs, root.conf, info, table, null);
            region.setRestoredRegion(true);
            region.initialize();
            regions.add(region);
        }
        regions.sort((a, b) -> a.getRegionInfo().compareTo(b.getRegionInfo()));
        Random random = new Random(2);
        byte[][] keys = new byte[lookups][];
        int[] places = new int[lookups];
        for (int i = 0; i < lookups; i++) {
            int row = random.nextInt(rows);
            keys[i] = row(row);
            places[i] = (int) ((long) row * 4 / rows);
        }
        for (int pass = 0; pass < passes; pass++) {
            Clock clock = new Clock();
            long cells = 0;
            for (int i = 0; i < lookups; i++) {
                cells += regions.get(places[i]).get(new Get(keys[i])).size();
            }
            if (cells != 5L * lookups) {
                throw new IllegalStateException("expected " + 5 * lookups + " cells, found " + cells);
            }
            clock.print("get", lookups);
        }
    }

    /** Times since the object's creation: wall time, CPU time of this thread, and CPU time of the process
     * with collector and compiler.
     */
    private static final class Clock {
        private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
        private static final OperatingSystemMXBean SYSTEM =
                (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        private final long wall = System.nanoTime();
        private final long thread = THREADS.getCurrentThreadCpuTime();
        private final long process = SYSTEM.getProcessCpuTime();

        void print(String what, long entries) {
            System.out.printf(
                    Locale.ROOT,
                    "{\"what\": \"%s\", \"entries\": %d, \"wall_s\": %.6f, \"cpu_s\": %.6f, \"process_cpu_s\": %.6f}%n",
                    what,
                    entries,
                    (System.nanoTime() - wall) / 1e9,
                    (THREADS.getCurrentThreadCpuTime() - thread) / 1e9,
                    (SYSTEM.getProcessCpuTime() - process) / 1e9);
        }
    }
}
