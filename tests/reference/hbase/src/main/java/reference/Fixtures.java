package reference;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import org.apache.hadoop.hbase.util.Bytes;

/** Small tables with everything that affects visibility, and what HBase's scans of their regions return. */
final class Fixtures {
    private static final byte[] F = Bytes.toBytes("f");
    private static final byte[] G = Bytes.toBytes("g");
    private static final long TIME = 1_600_000_000_000L;

    private final Path to;
    private final Random random = new Random(14);
    private PrintStream manifest;

    Fixtures(Path to) {
        this.to = to;
    }

    void write() throws Exception {
        Files.createDirectories(to);
        try (PrintStream out = new PrintStream(Files.newOutputStream(to.resolve("written.jsonl")), false, "UTF-8")) {
            manifest = out;
            orders();
            compressed("wal_dictionary", Map.of("hbase.regionserver.wal.tags.enablecompression", "false"));
            compressed("wal_gz", Map.of("hbase.regionserver.wal.value.enablecompression", "true"));
            compressed(
                    "wal_snappy",
                    Map.of(
                            "hbase.regionserver.wal.value.enablecompression", "true",
                            "hbase.regionserver.wal.value.compression.type", "snappy",
                            "hbase.io.compress.snappy.codec",
                                    "org.apache.hadoop.hbase.io.compress.aircompressor.SnappyCodec"));
        }
    }

    /** Two regions of several store files and a snapshot; then edits that are in the log alone. */
    private void orders() throws Exception {
        Path place = to.resolve("orders");
        Root root = new Root(place);
        TableDescriptor table =
                TableDescriptorBuilder.newBuilder(TableName.valueOf("shop", "orders"))
                        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(F).setMaxVersions(3).build())
                        .setColumnFamily(
                                ColumnFamilyDescriptorBuilder.newBuilder(G)
                                        .setMaxVersions(2)
                                        .setKeepDeletedCells(KeepDeletedCells.TRUE)
                                        .setDataBlockEncoding(DataBlockEncoding.FAST_DIFF)
                                        .setBlocksize(512)
                                        .build())
                        .build();
        List<HRegion> regions = root.create(table, Bytes.toBytes("o0040"));
        for (int flush = 0; flush < 3; flush++) {
            edit(regions, 120);
            for (HRegion region : regions) {
                region.flush(true);
            }
        }
        root.snapshot("kept", table, regions);
        regions.get(1).compact(true);
        edit(regions, 60);
        for (HRegion region : regions) {
            region.flush(true);
        }
        truths("orders", "shop:orders", null, false, regions);
        // There is no HBase scan of the snapshot: the expected rows are those on which coldframe and the scanner of benches
        // agree.
        edit(regions, 60);
        root.sync();
        truths("orders", "shop:orders", null, true, regions);
    }

    /** A root whose cells are in a compressed log alone: more qualifiers than their dictionary holds, tags, and empty values. */
    private void compressed(String name, Map<String, String> settings) throws Exception {
        Map<String, String> all = new HashMap<>(settings);
        all.put("hbase.regionserver.wal.enablecompression", "true");
        Root root = new Root(to.resolve(name), all);
        TableDescriptor table =
                TableDescriptorBuilder.newBuilder(TableName.valueOf("shop", "logged"))
                        .setColumnFamily(
                                ColumnFamilyDescriptorBuilder.newBuilder(F).setMaxVersions(3).setScope(1).build())
                        .setColumnFamily(ColumnFamilyDescriptorBuilder.of(G))
                        .build();
        List<HRegion> regions = root.create(table, Bytes.toBytes("o0040"));
        edit(regions, 40);
        for (int i = 0; i < 200; i++) {
            byte[] row = Bytes.toBytes(String.format("o%04d", i % 7 * 11));
            // Which number a qualifier takes after the 127th depends on the last use of each.
            byte[] qualifier = Bytes.toBytes("q" + (i % 3 == 0 ? random.nextInt(150) : i));
            byte[] value = Bytes.toBytes(i % 5 == 0 ? "" : "note ".repeat(1 + i % 9) + random.nextInt(1000));
            Put put = new Put(row).addColumn(i % 4 == 0 ? G : F, qualifier, TIME + i, value);
            if (i % 3 == 1) {
                put.setTTL(1_000_000_000_000_000L + i % 2);
            }
            region(regions, Bytes.toString(row)).put(put);
        }
        // Longer than the buffer of the codec's stream.
        byte[] value = settings.size() > 1 ? longValue() : new byte[200];
        region(regions, "o0001").put(new Put(Bytes.toBytes("o0001")).addColumn(F, Bytes.toBytes("long"), TIME, value));
        root.sync();
        String shown = name + ".wal";
        scan(shown + ".raw", regions, new Scan().setRaw(true).readAllVersions());
        manifest.printf(
                "{\"root\": \"%s\", \"table\": \"shop:logged\", \"name\": \"%s\", \"wal\": true, \"views\": [\"raw\"]}%n",
                name, shown);
    }

    private static HRegion region(List<HRegion> regions, String row) {
        return regions.get(row.compareTo("o0040") < 0 ? 0 : 1);
    }

    private static byte[] longValue() {
        byte[] bytes = new byte[70_000];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (i % 100 == 0 ? i / 100 : 'x');
        }
        return bytes;
    }

    private void edit(List<HRegion> regions, int edits) throws Exception {
        for (int i = 0; i < edits; i++) {
            byte[] row = Bytes.toBytes(String.format("o%04d", random.nextInt(80)));
            HRegion region = regions.get(Bytes.compareTo(row, Bytes.toBytes("o0040")) < 0 ? 0 : 1);
            byte[] family = random.nextBoolean() ? F : G;
            byte[] qualifier = Bytes.toBytes(List.of("", "count", "price", "note").get(random.nextInt(4)));
            long time = TIME + random.nextInt(40);
            if (random.nextInt(6) > 0) {
                byte[] value =
                        switch (Bytes.toString(qualifier)) {
                            case "count" -> Bytes.toBytes(random.nextLong() >> 40);
                            case "price" -> Bytes.toBytes(random.nextInt(100_000) / 100.0);
                            default -> Bytes.toBytes("note " + random.nextInt(1000));
                        };
                region.put(new Put(row).addColumn(family, qualifier, time, value));
                continue;
            }
            Delete delete = new Delete(row);
            switch (random.nextInt(4)) {
                case 0 -> delete.addColumn(family, qualifier, time);
                case 1 -> delete.addColumns(family, qualifier, time);
                case 2 -> delete.addFamilyVersion(family, time);
                default -> delete.addFamily(family, time - 20);
            }
            region.delete(delete);
        }
    }

    private void truths(String root, String table, String snapshot, boolean wal, List<HRegion> regions)
            throws Exception {
        String name = root + (snapshot == null ? "" : "." + snapshot) + (wal ? ".wal" : "");
        scan(name + ".latest", regions, new Scan());
        scan(name + ".versions", regions, new Scan().readAllVersions());
        scan(name + ".raw", regions, new Scan().setRaw(true).readAllVersions());
        scan(name + ".range", regions, new Scan().readVersions(2).setTimeRange(TIME + 5, TIME + 25));
        manifest.printf(
                "{\"root\": \"%s\", \"table\": \"%s\", \"name\": \"%s\", \"wal\": %b, \"time_range\": [%d, %d], \"versions\": 2}%n",
                root, table, name, wal, TIME + 5, TIME + 25);
    }

    private void scan(String name, List<HRegion> regions, Scan scan) throws Exception {
        Base64.Encoder base64 = Base64.getEncoder();
        try (PrintStream out = new PrintStream(Files.newOutputStream(to.resolve(name + ".jsonl")), false, StandardCharsets.UTF_8)) {
            for (HRegion region : regions) {
                try (RegionScanner scanner = region.getScanner(scan)) {
                    List<Cell> cells = new ArrayList<>();
                    boolean more;
                    do {
                        more = scanner.next(cells);
                        for (Cell cell : cells) {
                            out.printf(
                                    "{\"row\": \"%s\", \"family\": \"%s\", \"qualifier\": \"%s\", \"timestamp\": %d, \"type\": %d, \"value\": \"%s\"}%n",
                                    base64.encodeToString(CellUtil.cloneRow(cell)),
                                    base64.encodeToString(CellUtil.cloneFamily(cell)),
                                    base64.encodeToString(CellUtil.cloneQualifier(cell)),
                                    cell.getTimestamp(),
                                    KeyValue.Type.codeToType(cell.getTypeByte()).getCode(),
                                    base64.encodeToString(CellUtil.cloneValue(cell)));
                        }
                        cells.clear();
                    } while (more);
                }
            }
        }
    }
}
