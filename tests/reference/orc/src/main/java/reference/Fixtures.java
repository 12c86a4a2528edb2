package reference;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TimeZone;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.CompressionKind;
import org.apache.orc.EncryptionAlgorithm;
import org.apache.orc.InMemoryKeystore;
import org.apache.orc.OrcFile;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;

/** The files of tests/data/orc, and beside each what Java's reader makes of it. */
final class Fixtures {
    static final String TYPES =
            "struct<flag:boolean,tiny:tinyint,small:smallint,n:int,big:bigint,f:float,d:double,s:string,c:char(6),"
                    + "v:varchar(9),bytes:binary,day:date,at:timestamp,instant:timestamp with local time zone,"
                    + "p9:decimal(9,2),p38:decimal(38,10)>";
    static final String NESTED =
            "struct<id:int,tags:array<string>,scores:map<string,int>,place:struct<name:string,at:struct<x:double>>,"
                    + "either:uniontype<int,string,array<bigint>>,deep:array<struct<a:int,m:map<int,array<date>>>>>";
    private static final String INTS =
            "struct<same:int,rising:bigint,falling:int,random:smallint,patched:bigint,nulls:int>";
    private static final String ACID =
            "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
                    + "row:struct<id:int,name:string>>";
    private static final int BUCKET = 0x20000000; // version 1, bucket 0, statement 0
    static final String KEY = "000102030405060708090a0b0c0d0e0f";

    private final Path dir;

    Fixtures(Path dir) {
        this.dir = dir;
    }

    static InMemoryKeystore keystore(Map<String, String> keys) throws IOException {
        InMemoryKeystore store = new InMemoryKeystore(new Random(7));
        for (Map.Entry<String, String> key : new TreeMap<>(keys).entrySet()) {
            store.addKey(key.getKey(), EncryptionAlgorithm.AES_CTR_128, HexFormat.of().parseHex(key.getValue()));
        }
        return store;
    }

    void write() throws IOException {
        Files.createDirectories(dir);
        for (CompressionKind codec : CompressionKind.values()) {
            file("types_" + codec.name().toLowerCase(), TYPES, 60, o -> o.compress(codec));
        }
        file("types_v011", TYPES, 60, o -> o.version(OrcFile.Version.V_0_11).compress(CompressionKind.ZLIB));
        file("nested_zlib", NESTED, 80, o -> o.compress(CompressionKind.ZLIB));
        file("nested_v011", NESTED, 80, o -> o.version(OrcFile.Version.V_0_11).compress(CompressionKind.NONE));
        file("ints", INTS, 1050, o -> o.rowIndexStride(1000).compress(CompressionKind.NONE));
        file("ints_compression_strategy", INTS, 1050,
                o -> o.encodingStrategy(OrcFile.EncodingStrategy.COMPRESSION).rowIndexStride(1000)
                        .compress(CompressionKind.SNAPPY));
        file("ints_v011", INTS, 1050,
                o -> o.version(OrcFile.Version.V_0_11).rowIndexStride(1000).compress(CompressionKind.SNAPPY));
        file("dictionary", "struct<few:string,many:string>", 2100,
                o -> o.rowIndexStride(1000).compress(CompressionKind.ZLIB), Map.of("orc.stripe.row.count", "1000"));
        file("empty", TYPES, 0, o -> o.compress(CompressionKind.ZLIB));
        file("no_index", "struct<a:int,b:string>", 50, o -> o.buildIndex(false).compress(CompressionKind.NONE));
        zone("America/New_York", "timestamps_new_york");
        zone("Asia/Kolkata", "timestamps_kolkata");
        String days = "struct<day:date,at:timestamp>";
        file("dates_hybrid", days, 120, o -> o.setProlepticGregorian(false).compress(CompressionKind.NONE));
        file("dates_proleptic", days, 120, o -> o.setProlepticGregorian(true).compress(CompressionKind.NONE));
        String bloom = "struct<id:bigint,name:string,p9:decimal(9,2)>";
        file("bloom_utf8", bloom, 1010,
                o -> o.bloomFilterColumns("id,name,p9").rowIndexStride(1000).compress(CompressionKind.ZSTD));
        file("bloom_original", bloom, 1010,
                o -> o.bloomFilterColumns("id,name,p9").rowIndexStride(1000).compress(CompressionKind.ZSTD)
                        .bloomFilterVersion(OrcFile.BloomFilterVersion.ORIGINAL));
        encrypted();
        acid();
    }

    private void zone(String zone, String name) throws IOException {
        TimeZone.setDefault(TimeZone.getTimeZone(zone));
        file(name, "struct<at:timestamp,instant:timestamp with local time zone>", 150,
                o -> o.compress(CompressionKind.NONE));
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    }

    private void encrypted() throws IOException {
        String schema = "struct<id:int,name:string,x:array<bigint>>";
        file("encrypted", schema, 200, o -> {
            try {
                o.setKeyProvider(keystore(Map.of("pii", KEY))).encrypt("pii:name,x").masks("nullify:name,x");
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
            o.compress(CompressionKind.ZLIB);
        });
    }

    private void file(String name, String schema, int rows, Consumer<OrcFile.WriterOptions> with) throws IOException {
        file(name, schema, rows, with, Map.of());
    }

    private void file(
            String name, String schema, int rows, Consumer<OrcFile.WriterOptions> with, Map<String, String> settings)
            throws IOException {
        TypeDescription type = TypeDescription.fromString(schema);
        if (name.equals("types_none")) {
            type.findSubtype("s").setAttribute("coldframe.test", "an attribute");
        }
        Path path = dir.resolve(name + ".orc");
        try (Writer writer = create(path, type, with, settings)) {
            Samples samples = new Samples(type);
            VectorizedRowBatch batch = type.createRowBatch();
            for (int row = 0; row < rows; row++) {
                samples.put(batch, batch.size++, row);
                if (batch.size == batch.getMaxSize()) {
                    writer.addRowBatch(batch);
                    batch.reset();
                }
            }
            writer.addRowBatch(batch);
            writer.addUserMetadata("made.by", ByteBuffer.wrap("orc-core".getBytes(StandardCharsets.UTF_8)));
        }
        InMemoryKeystore keys = name.equals("encrypted") ? keystore(Map.of("pii", KEY)) : null;
        record(name, name + ".orc", schema, Main.rows(Main.open(path.toString(), keys)));
    }

    private Writer create(
            Path path, TypeDescription type, Consumer<OrcFile.WriterOptions> with, Map<String, String> settings)
            throws IOException {
        Configuration conf = new Configuration();
        settings.forEach(conf::set);
        OrcFile.WriterOptions options = OrcFile.writerOptions(conf).setSchema(type).overwrite(true);
        with.accept(options);
        Files.createDirectories(path.getParent());
        Writer writer = OrcFile.createWriter(new org.apache.hadoop.fs.Path(path.toString()), options);
        Files.deleteIfExists(path.resolveSibling("." + path.getFileName() + ".crc"));
        return writer;
    }

    /** Rows in JSON, for truth.py. */
    private void record(String name, String file, String schema, List<String> rows) throws IOException {
        StringBuilder head = new StringBuilder("{\"file\": ");
        Json.text(head, file);
        head.append(", \"schema\": ");
        Json.text(head, schema);
        head.append("}\n");
        Path to = dir.resolve(name + ".jsonl");
        Files.writeString(to, head);
        Files.write(to, rows, StandardOpenOption.APPEND);
        Files.deleteIfExists(dir.resolve("." + name + ".orc.crc"));
    }

    /** A transactional table: five rows, then two more; one of the five and one of the two are deleted, one row is updated. */
    private void acid() throws IOException {
        Path table = dir.resolve("acid_table");
        events(table.resolve("base_0000001"), new Object[][] {
            {0, 1, 0, 1, 10, "ten"}, {0, 1, 1, 1, 11, "eleven"}, {0, 1, 2, 1, 12, "twelve"},
            {0, 1, 3, 1, 13, "thirteen"}, {0, 1, 4, 1, 14, null}});
        events(table.resolve("delta_0000002_0000002_0000"),
                new Object[][] {{0, 2, 0, 2, 20, "twenty"}, {0, 2, 1, 2, 21, "twenty-one"}});
        events(table.resolve("delete_delta_0000003_0000003_0000"),
                new Object[][] {{2, 1, 1, 3, null, null}, {2, 2, 0, 3, null, null}});
        events(table.resolve("delete_delta_0000004_0000004_0000"), new Object[][] {{2, 1, 3, 4, null, null}});
        events(table.resolve("delta_0000004_0000004_0000"), new Object[][] {{0, 4, 0, 4, 13, "thirteen again"}});
        record("acid_table", "acid_table", "struct<id:int,name:string>", List.of(
                "{\"id\": 10, \"name\": \"ten\"}", "{\"id\": 12, \"name\": \"twelve\"}", "{\"id\": 14, \"name\": null}",
                "{\"id\": 21, \"name\": \"twenty-one\"}", "{\"id\": 13, \"name\": \"thirteen again\"}"));
    }

    private void events(Path folder, Object[][] events) throws IOException {
        Path path = folder.resolve("bucket_00000");
        TypeDescription type = TypeDescription.fromString(ACID);
        try (Writer writer = create(path, type, o -> o.compress(CompressionKind.NONE), Map.of())) {
            VectorizedRowBatch batch = type.createRowBatch();
            for (Object[] event : events) {
                Samples.event(batch, batch.size++, event, BUCKET);
            }
            writer.addRowBatch(batch);
            Object[] last = events[events.length - 1];
            String index = last[1] + "," + BUCKET + "," + last[2] + ";";
            writer.addUserMetadata("hive.acid.key.index", ByteBuffer.wrap(index.getBytes(StandardCharsets.UTF_8)));
            writer.addUserMetadata("hive.acid.version", ByteBuffer.wrap("2".getBytes(StandardCharsets.UTF_8)));
        }
        Files.deleteIfExists(folder.resolve(".bucket_00000.crc"));
    }
}
