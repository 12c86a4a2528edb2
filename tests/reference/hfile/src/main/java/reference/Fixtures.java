package reference;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedOutputStream;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ArrayBackedTag;
import org.apache.hadoop.hbase.CellComparatorImpl;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.Tag;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.regionserver.StoreFileWriter;
import org.apache.hadoop.hbase.util.ChecksumType;
import org.apache.hudi.io.compress.CompressionCodec;
import org.apache.hudi.io.hfile.HFileContext;
import org.apache.hudi.io.hfile.HFileWriter;
import org.apache.hudi.io.hfile.HFileWriterImpl;
import org.apache.hudi.io.storage.HoodieHBaseKVComparator;

/** The files of tests/data/hfile. Values and times are fixed, so the bytes are, too. */
final class Fixtures {
    private static final long TIME = 1_700_000_000_000L;
    private static final String SCHEMA =
            "{\"type\": \"record\", \"name\": \"Pair\", \"fields\": [{\"name\": \"key\", \"type\": \"string\"},"
                    + " {\"name\": \"n\", \"type\": \"long\"}]}";

    private final Path dir;
    private final BufferedWriter list;

    Fixtures(Path dir) throws IOException {
        this.dir = Files.createDirectories(dir);
        this.list = Files.newBufferedWriter(dir.resolve("written.jsonl"));
    }

    void write() throws IOException {
        List<KeyValue> cells = cells(160, false, false);
        List<KeyValue> rich = cells(120, true, true);
        cells("cells_none", cells, c -> {}, BloomType.ROW, "encoding NONE", "codec NONE", "bloom ROW", "delete markers");
        cells("cells_prefix_gz", cells,
                c -> c.withDataBlockEncoding(DataBlockEncoding.PREFIX).withCompression(Compression.Algorithm.GZ),
                BloomType.NONE, "encoding PREFIX", "codec GZ");
        cells("cells_diff_snappy", cells,
                c -> c.withDataBlockEncoding(DataBlockEncoding.DIFF).withCompression(Compression.Algorithm.SNAPPY),
                BloomType.NONE, "encoding DIFF", "codec SNAPPY");
        cells("cells_fast_diff_lz4", cells,
                c -> c.withDataBlockEncoding(DataBlockEncoding.FAST_DIFF).withCompression(Compression.Algorithm.LZ4),
                BloomType.ROWCOL, "encoding FAST_DIFF", "codec LZ4", "bloom ROWCOL");
        cells("cells_row_index_zstd", cells,
                c -> c.withDataBlockEncoding(DataBlockEncoding.ROW_INDEX_V1)
                        .withCompression(Compression.Algorithm.ZSTD),
                BloomType.NONE, "encoding ROW_INDEX_V1", "codec ZSTD");
        cells("cells_lzo", cells, c -> c.withCompression(Compression.Algorithm.LZO), BloomType.NONE, "codec LZO");
        cells("cells_tags", rich,
                c -> c.withIncludesTags(true).withChecksumType(ChecksumType.CRC32).withBytesPerCheckSum(100),
                BloomType.NONE, "tags", "sequence ids", "checksum CRC32 of 100 bytes");
        cells("cells_tags_fast_diff", rich,
                c -> c.withIncludesTags(true).withCompressTags(true)
                        .withDataBlockEncoding(DataBlockEncoding.FAST_DIFF),
                BloomType.NONE, "tags by dictionary", "sequence ids", "encoding FAST_DIFF");
        cells("cells_no_mvcc", cells,
                c -> c.withIncludesMvcc(false).withChecksumType(ChecksumType.NULL), BloomType.NONE,
                "no sequence ids", "checksum NULL");
        HBaseFile.CONF.setInt("hfile.index.block.max.size", 200);
        HBaseFile.CONF.setInt("hfile.index.block.min.entries", 2);
        HBaseFile.CONF.setInt("io.storefile.bloom.block.size", 128);
        cells("cells_deep_index", cells(280, false, false), c -> c.withBlockSize(128), BloomType.ROW,
                "index of several levels", "bloom filter of several chunks");
        HBaseFile.CONF.unset("hfile.index.block.max.size");
        HBaseFile.CONF.unset("hfile.index.block.min.entries");
        HBaseFile.CONF.unset("io.storefile.bloom.block.size");
        cells("cells_empty", List.of(), c -> {}, BloomType.ROW, "no cells");
        hudiByHBase("pairs_hbase_gz");
        hudi("pairs_none", CompressionCodec.NONE, 150, "codec NONE");
        hudi("pairs_gzip", CompressionCodec.GZIP, 150, "codec GZIP", "meta block");
        hudi("pairs_empty", CompressionCodec.NONE, 0, "no pairs");
        list.close();
    }

    /** Sorted cells of all types: several versions and columns a row, values of all lengths. */
    private static List<KeyValue> cells(int rows, boolean tags, boolean sequenceIds) {
        Random random = new Random(7);
        List<KeyValue> cells = new ArrayList<>();
        KeyValue.Type[] types = {
            KeyValue.Type.Put, KeyValue.Type.Put, KeyValue.Type.Put, KeyValue.Type.Put, KeyValue.Type.Delete,
            KeyValue.Type.DeleteColumn, KeyValue.Type.DeleteFamily, KeyValue.Type.DeleteFamilyVersion
        };
        for (int i = 0; cells.size() < rows; i++) {
            byte[] row = (i % 5 == 0 ? "user/" + i : String.format("row-%05d", i * 3)).getBytes(UTF_8);
            for (int version = 0; version <= random.nextInt(3); version++) {
                KeyValue.Type type = types[random.nextInt(types.length)];
                boolean wholeFamily = type == KeyValue.Type.DeleteFamily || type == KeyValue.Type.DeleteFamilyVersion;
                byte[] qualifier = wholeFamily ? new byte[0] : ("q" + random.nextInt(3)).getBytes(UTF_8);
                byte[] value = new byte[type == KeyValue.Type.Put ? random.nextInt(6) * random.nextInt(12) : 0];
                for (int at = 0; at < value.length; at++) {
                    value[at] = (byte) (random.nextInt(8) + (i % 7 == 0 ? 200 : 60));
                }
                List<Tag> some = new ArrayList<>();
                for (int tag = 0; tags && tag < i % 3; tag++) {
                    some.add(new ArrayBackedTag((byte) (60 + tag), "label " + i % 4));
                }
                KeyValue cell = new KeyValue(
                        row, "cf".getBytes(UTF_8), qualifier, TIME - random.nextInt(100_000) * version, type, value, some);
                if (sequenceIds) {
                    cell.setSequenceId(i % 9 == 0 ? 1L << 40 : i % 200);
                }
                cells.add(cell);
            }
        }
        cells.sort(CellComparatorImpl.COMPARATOR);
        return cells;
    }

    private void cells(
            String name, List<KeyValue> cells, Consumer<HFileContextBuilder> settings, BloomType bloom,
            String... features)
            throws IOException {
        Configuration conf = HBaseFile.CONF;
        HFileContextBuilder context = new HFileContextBuilder()
                .withBlockSize(1024).withChecksumType(ChecksumType.CRC32C).withBytesPerCheckSum(16 * 1024)
                .withHBaseCheckSum(true).withCreateTime(TIME).withColumnFamily("cf".getBytes(UTF_8));
        settings.accept(context);
        Path file = dir.resolve(name + ".hfile");
        StoreFileWriter writer = new StoreFileWriter.Builder(conf, CacheConfig.DISABLED, HBaseFile.disk())
                .withFilePath(HBaseFile.path(file)).withBloomType(bloom).withFileContext(context.build()).build();
        for (KeyValue cell : cells) {
            writer.append(cell);
        }
        writer.appendMetadata(7, true);
        writer.close();
        long read;
        try (BufferedWriter truth = Files.newBufferedWriter(dir.resolve(name + ".jsonl"))) {
            read = HBaseFile.read(file, line -> put(truth, line));
        }
        listed(name, "cells", read, "HBase " + org.apache.hadoop.hbase.util.VersionInfo.getVersion(), features);
    }

    /** As Hudi up to 1.0 writes: with HBase's writer and Hudi's comparator. */
    private void hudiByHBase(String name) throws IOException {
        Path file = dir.resolve(name + ".hfile");
        var context = new HFileContextBuilder()
                .withBlockSize(1024).withCompression(Compression.Algorithm.GZ).withCreateTime(TIME)
                .withCellComparator(new HoodieHBaseKVComparator()).build();
        HFile.Writer writer = HFile.getWriterFactory(HBaseFile.CONF, CacheConfig.DISABLED)
                .withPath(HBaseFile.disk(), HBaseFile.path(file)).withFileContext(context).create();
        for (int i = 0; i < 150; i++) {
            byte[] nothing = new byte[0];
            writer.append(new KeyValue(
                    key(i).getBytes(UTF_8), nothing, nothing, Long.MAX_VALUE, KeyValue.Type.Put, value(i)));
        }
        writer.appendFileInfo("schema".getBytes(UTF_8), SCHEMA.getBytes(UTF_8));
        writer.appendFileInfo("minRecordKey".getBytes(UTF_8), key(0).getBytes(UTF_8));
        writer.appendFileInfo("maxRecordKey".getBytes(UTF_8), key(149).getBytes(UTF_8));
        writer.close();
        pairs(name, "HBase " + org.apache.hadoop.hbase.util.VersionInfo.getVersion() + " as Hudi 1.0 uses it", "codec GZ");
    }

    private void hudi(String name, CompressionCodec codec, int records, String... features) throws IOException {
        HFileContext context =
                HFileContext.builder().blockSize(1024).compressionCodec(codec).fileCreationTime(TIME).build();
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(dir.resolve(name + ".hfile")));
                HFileWriter writer = new HFileWriterImpl(context, out)) {
            for (int i = 0; i < records; i++) {
                writer.append(key(i), value(i));
            }
            writer.appendFileInfo("schema", SCHEMA.getBytes(UTF_8));
            if (records > 0) {
                writer.appendFileInfo("minRecordKey", key(0).getBytes(UTF_8));
                writer.appendFileInfo("maxRecordKey", key(records - 1).getBytes(UTF_8));
            }
            if (codec == CompressionCodec.GZIP) {
                writer.appendMetaInfo("bloomFilter", "not a filter, but a meta block".getBytes(UTF_8));
            }
        }
        pairs(name, "hudi-io 1.2.0", features);
    }

    private void pairs(String name, String writer, String... features) throws IOException {
        long read;
        try (BufferedWriter truth = Files.newBufferedWriter(dir.resolve(name + ".jsonl"))) {
            read = HudiFile.read(dir.resolve(name + ".hfile"), line -> put(truth, line));
        }
        listed(name, "pairs", read, writer, features);
    }

    private static String key(int i) {
        boolean first = i < 70;
        return String.format("%s/2024-%02d/file-%04d", first ? "europe" : "südamerika", (first ? i : i - 70) / 7 + 1, i);
    }

    /** A record of {@link #SCHEMA} in Avro: the key as a string, a number in zigzag. */
    private static byte[] value(int i) {
        byte[] key = key(i).getBytes(UTF_8);
        byte[] value = new byte[key.length + 2];
        value[0] = (byte) (key.length * 2);
        System.arraycopy(key, 0, value, 1, key.length);
        value[value.length - 1] = (byte) (i % 64 * 2);
        return value;
    }

    private void listed(String name, String kind, long rows, String writer, String... features) {
        String all = "\"" + String.join("\", \"", features) + "\"";
        put(list, "{\"name\": \"" + name + "\", \"kind\": \"" + kind + "\", \"rows\": " + rows + ", \"writer\": \""
                + writer + "\", \"features\": [" + all + "]}");
    }

    private static void put(BufferedWriter out, String line) {
        try {
            out.write(line);
            out.newLine();
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
