package peers;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.io.hfile.HFileScanner;
import org.apache.hudi.io.ByteArraySeekableDataInputStream;
import org.apache.hudi.io.ByteBufferBackedInputStream;
import org.apache.hudi.io.compress.CompressionCodec;
import org.apache.hudi.io.hfile.HFileContext;
import org.apache.hudi.io.hfile.HFileReader;
import org.apache.hudi.io.hfile.HFileReaderImpl;
import org.apache.hudi.io.hfile.HFileWriter;
import org.apache.hudi.io.hfile.HFileWriterImpl;
import org.apache.hudi.io.hfile.UTF8StringKey;

/**
 * {@code write DIR}: files of 1.5 million entries with values of 100 bytes, in blocks of 64 KiB. {@code read DIR PASSES}: a
 * JSON line for each pass over each by each reader, with the CPU seconds of this thread and of the whole process (collector and
 * compiler with it): a full scan, random look-ups, look-ups of 10,000 sorted keys.
 */
public final class HFiles {
    static final int ENTRIES = 1_500_000;
    private static final int LOOKUPS = 10_000;
    private static final long TIME = 1_700_000_000_000L;
    private static final byte[] FAMILY = "cf".getBytes(UTF_8);
    private static final byte[] QUALIFIER = "column".getBytes(UTF_8);
    private static final Configuration CONF = HBaseConfiguration.create();

    /** Consumes values, so that the compiler cannot optimise them away. */
    private static volatile Object sink;

    private HFiles() {}

    /** The measured work; returns the number of entries. */
    private interface Work {
        long run() throws IOException;
    }

    public static void main(String[] args) throws Exception {
        Path dir = Path.of(args[1]);
        if (args[0].equals("write")) {
            Files.createDirectories(dir);
            hudi(dir.resolve("hudi_none.hfile"), CompressionCodec.NONE);
            hudi(dir.resolve("hudi_gz.hfile"), CompressionCodec.GZIP);
            hbase(dir.resolve("hbase_none.hfile"), DataBlockEncoding.NONE);
            hbase(dir.resolve("hbase_fast_diff.hfile"), DataBlockEncoding.FAST_DIFF);
            return;
        }
        int passes = Integer.parseInt(args[2]);
        for (String name : new String[] {"hudi_none", "hudi_gz"}) {
            byte[] bytes = Files.readAllBytes(dir.resolve(name + ".hfile"));
            passes("hudi-io", name, "scan", passes, ENTRIES, () -> scanHudi(bytes));
            passes("hudi-io", name, "get", passes, LOOKUPS / 10, () -> getHudi(bytes, LOOKUPS / 10));
            passes("hudi-io", name, "get_many", passes, LOOKUPS, () -> getManyHudi(bytes));
        }
        // HBase refuses Hudi's files, as it lacks their comparator.
        for (String name : new String[] {"hbase_none", "hbase_fast_diff"}) {
            Path file = dir.resolve(name + ".hfile");
            passes("hbase", name, "scan", passes, ENTRIES, () -> scanHBase(file));
            passes("hbase", name, "get", passes, LOOKUPS / 10, () -> getHBase(file, LOOKUPS / 10, false));
            passes("hbase", name, "get_many", passes, LOOKUPS, () -> getHBase(file, LOOKUPS, true));
        }
    }

    private static void passes(String reader, String file, String what, int passes, long expected, Work work)
            throws IOException {
        var threads = ManagementFactory.getThreadMXBean();
        var process = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        for (int pass = 0; pass < passes; pass++) {
            long wall = System.nanoTime();
            long all = process.getProcessCpuTime();
            long cpu = threads.getCurrentThreadCpuTime();
            long entries = work.run();
            double cpuSeconds = (threads.getCurrentThreadCpuTime() - cpu) / 1e9;
            double processSeconds = (process.getProcessCpuTime() - all) / 1e9;
            double wallSeconds = (System.nanoTime() - wall) / 1e9;
            if (entries != expected) {
                throw new IOException(reader + " " + file + ": expected " + expected + ", values " + entries);
            }
            System.out.printf(
                    "{\"reader\": \"%s\", \"file\": \"%s\", \"what\": \"%s\", \"entries\": %d, \"cpu_s\": %.4f,"
                            + " \"process_cpu_s\": %.4f, \"wall_s\": %.4f}%n",
                    reader, file, what, entries, cpuSeconds, processSeconds, wallSeconds);
        }
    }

    static String key(int i) {
        return String.format("record-%012d", i);
    }

    /** Half of it hexadecimal noise, half text that repeats. */
    private static byte[] value(Random random) {
        StringBuilder value = new StringBuilder(100);
        while (value.length() < 64) {
            value.append(String.format("%016x", random.nextLong()));
        }
        return value.append("the rest of a value that repeats ....").substring(0, 100).getBytes(UTF_8);
    }

    private static void hudi(Path file, CompressionCodec codec) throws IOException {
        Random random = new Random(1);
        HFileContext context = HFileContext.builder().blockSize(64 << 10).compressionCodec(codec).build();
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file), 1 << 20);
                HFileWriter writer = new HFileWriterImpl(context, out)) {
            for (int i = 0; i < ENTRIES; i++) {
                writer.append(key(i), value(random));
            }
        }
    }

    private static void hbase(Path file, DataBlockEncoding encoding) throws IOException {
        Random random = new Random(1);
        var context = new HFileContextBuilder()
                .withBlockSize(64 << 10).withCompression(Compression.Algorithm.NONE)
                .withDataBlockEncoding(encoding).build();
        HFile.Writer writer = HFile.getWriterFactory(CONF, CacheConfig.DISABLED)
                .withPath(disk(), path(file)).withFileContext(context).create();
        for (int i = 0; i < ENTRIES; i++) {
            writer.append(new KeyValue(
                    key(i).getBytes(UTF_8), FAMILY, QUALIFIER, TIME + i % 1000, KeyValue.Type.Put, value(random)));
        }
        writer.close();
    }

    private static FileSystem disk() throws IOException {
        FileSystem disk = new RawLocalFileSystem();
        disk.initialize(URI.create("file:///"), CONF);
        return disk;
    }

    private static org.apache.hadoop.fs.Path path(Path file) {
        return new org.apache.hadoop.fs.Path(file.toAbsolutePath().toUri());
    }

    /** Reads from memory, the fastest source for hudi-io. */
    private static HFileReader open(byte[] bytes) throws IOException {
        HFileReader reader = new HFileReaderImpl(
                new ByteArraySeekableDataInputStream(new ByteBufferBackedInputStream(bytes)), bytes.length);
        reader.initializeMetadata();
        return reader;
    }

    private static long scanHudi(byte[] bytes) throws IOException {
        long entries = 0;
        long size = 0;
        try (HFileReader reader = open(bytes)) {
            for (boolean more = reader.seekTo(); more; more = reader.next()) {
                // Reads like Hudi's own reader: the key as text, and a copy of the value.
                var pair = reader.getKeyValue().get();
                int at = pair.getValueOffset();
                byte[] value = Arrays.copyOfRange(pair.getBytes(), at, at + pair.getValueLength());
                sink = value;
                sink = pair.getKey().getContentInString();
                size += value.length;
                entries++;
            }
        }
        return size > 0 ? entries : -1;
    }

    /** hudi-io only seeks forwards: for a random key it starts again. */
    private static long getHudi(byte[] bytes, int lookups) throws IOException {
        Random random = new Random(2);
        long values = 0;
        try (HFileReader reader = open(bytes)) {
            for (int i = 0; i < lookups; i++) {
                reader.seekTo();
                if (reader.seekTo(new UTF8StringKey(key(random.nextInt(ENTRIES)))) == HFileReader.SEEK_TO_FOUND) {
                    values += reader.getKeyValue().get().getValueLength() / 100;
                }
            }
        }
        return values;
    }

    private static long getManyHudi(byte[] bytes) throws IOException {
        long values = 0;
        try (HFileReader reader = open(bytes)) {
            reader.seekTo();
            for (int i = 0; i < LOOKUPS; i++) {
                if (reader.seekTo(new UTF8StringKey(key(ENTRIES / LOOKUPS * i))) == HFileReader.SEEK_TO_FOUND) {
                    values += reader.getKeyValue().get().getValueLength() / 100;
                }
            }
        }
        return values;
    }

    private static long scanHBase(Path file) throws IOException {
        long entries = 0;
        long size = 0;
        try (HFile.Reader reader = HFile.createReader(disk(), path(file), CacheConfig.DISABLED, true, CONF)) {
            HFileScanner scanner = reader.getScanner(CONF, false, false, false);
            for (boolean more = scanner.seekTo(); more; more = scanner.next()) {
                // The parts of a cell as a client gets them.
                Cell cell = scanner.getCell();
                sink = CellUtil.cloneRow(cell);
                sink = CellUtil.cloneFamily(cell);
                sink = CellUtil.cloneQualifier(cell);
                sink = CellUtil.cloneValue(cell);
                size += (cell.getTimestamp() & 1) + cell.getTypeByte();
                entries++;
            }
        }
        return size > 0 ? entries : -1;
    }

    private static long getHBase(Path file, int lookups, boolean sorted) throws IOException {
        Random random = new Random(2);
        long values = 0;
        try (HFile.Reader reader = HFile.createReader(disk(), path(file), CacheConfig.DISABLED, true, CONF)) {
            HFileScanner scanner = reader.getScanner(CONF, false, true, false);
            for (int i = 0; i < lookups; i++) {
                int n = sorted ? ENTRIES / lookups * i : random.nextInt(ENTRIES);
                KeyValue wanted =
                        new KeyValue(key(n).getBytes(UTF_8), FAMILY, QUALIFIER, TIME + n % 1000, KeyValue.Type.Put);
                if (scanner.seekTo(wanted) == 0) {
                    values += scanner.getCell().getValueLength() / 100;
                }
            }
        }
        return values;
    }
}
