package reference;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import org.apache.hudi.io.ByteArraySeekableDataInputStream;
import org.apache.hudi.io.ByteBufferBackedInputStream;
import org.apache.hudi.io.hfile.HFileReader;
import org.apache.hudi.io.hfile.HFileReaderImpl;
import org.apache.hudi.io.hfile.KeyValue;
import org.apache.hudi.io.hfile.UTF8StringKey;

/** Reads a file with hudi-io. */
final class HudiFile {
    private record Pair(byte[] key, byte[] value) {}

    private HudiFile() {}

    private static HFileReader open(Path file) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        HFileReader reader = new HFileReaderImpl(
                new ByteArraySeekableDataInputStream(new ByteBufferBackedInputStream(bytes)), bytes.length);
        reader.initializeMetadata();
        return reader;
    }

    private static Pair pair(HFileReader reader) throws IOException {
        KeyValue pair = reader.getKeyValue().get();
        byte[] bytes = pair.getBytes();
        int key = pair.getKeyContentOffset();
        int value = pair.getValueOffset();
        return new Pair(
                Arrays.copyOfRange(bytes, key, key + pair.getKeyContentLength()),
                Arrays.copyOfRange(bytes, value, value + pair.getValueLength()));
    }

    private static List<Pair> pairs(Path file) throws IOException {
        List<Pair> pairs = new ArrayList<>();
        try (HFileReader reader = open(file)) {
            for (boolean more = reader.seekTo(); more; more = reader.next()) {
                pairs.add(pair(reader));
            }
        }
        return pairs;
    }

    /** Prints all records; returns how many there are. */
    static long read(Path file, Consumer<String> out) throws IOException {
        List<Pair> pairs = pairs(file);
        for (Pair pair : pairs) {
            out.accept("{\"key\": " + HBaseFile.base64(pair.key) + ", \"value\": " + HBaseFile.base64(pair.value) + "}");
        }
        return pairs.size();
    }

    /** Seeks every seventh key. */
    static String find(Path file) throws IOException {
        List<Pair> pairs = pairs(file);
        int hits = 0;
        try (HFileReader reader = open(file)) {
            reader.seekTo();
            for (int i = 0; i < pairs.size(); i += 7) {
                byte[] key = pairs.get(i).key;
                if (reader.seekTo(new UTF8StringKey(key)) != HFileReader.SEEK_TO_FOUND
                        || !Arrays.equals(pair(reader).key, key)) {
                    throw new IOException("not found: " + new String(key));
                }
                hits++;
            }
            return "{\"found\": " + hits + ", \"cells\": " + pairs.size() + ", \"entries\": "
                    + reader.getNumKeyValueEntries() + "}";
        }
    }
}
