package reference;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.serde2.SerDeException;

/** A folder of files that Hive wrote, each with what Hive reads back from it ({@code .jsonl}), and the list of them. */
final class Output {
    static final String LIST = "written.jsonl";

    private final Path dir;
    private final String writer;

    Output(Path dir, String writer) throws IOException {
        this.dir = Files.createDirectories(dir);
        this.writer = writer;
    }

    org.apache.hadoop.fs.Path path(String name) throws IOException {
        Files.createDirectories(dir.resolve(name).getParent());
        return new org.apache.hadoop.fs.Path(dir.resolve(name).toUri());
    }

    long size(String name) throws IOException {
        return Files.size(dir.resolve(name));
    }

    /** Reads the file back and lists it. */
    void add(String name, Table table, Map<String, Object> open, String... features) throws IOException, SerDeException {
        add(name, name, table, open, Map.of(), features);
    }

    /**
     * @param twin the file that Hive reads the truth from: the same rows, where it cannot read its own file
     * @param open what a reader must know besides schema, serde and properties
     * @param more further keys of the file's entry
     */
    void add(
            String name, String twin, Table table, Map<String, Object> open, Map<String, Object> more, String... features)
            throws IOException, SerDeException {
        String truthName = more.getOrDefault("truth", name.replaceFirst("\\.rc$", "")) + ".jsonl";
        int rows;
        try (Writer truth = Files.newBufferedWriter(dir.resolve(truthName))) {
            rows = HiveRows.print(path(twin), table, 0, size(twin), Map.of(), truth);
        }
        Map<String, Object> opened = new LinkedHashMap<>();
        opened.put("schema", table.schema());
        opened.put("serde", table.serde());
        if (!table.properties().isEmpty()) {
            opened.put("serde_properties", table.properties());
        }
        opened.putAll(open);
        Map<String, Object> entry = new LinkedHashMap<>();
        entry.put("file", name);
        entry.put("truth", truthName);
        entry.put("open", opened);
        entry.put("rows", rows);
        entry.put("writer", writer);
        entry.put("features", List.of(features));
        more.forEach(entry::putIfAbsent);
        try (BufferedWriter list =
                Files.newBufferedWriter(dir.resolve(LIST), StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
            Json.appendPlain(list, entry);
            list.newLine();
        }
    }

    /** How many rows Hive finds in each of {@code count} equal byte ranges of a file. */
    List<Map<String, Object>> splits(String name, Table table, int count) throws IOException, SerDeException {
        List<Map<String, Object>> splits = new ArrayList<>();
        for (int n = 0; n < count; n++) {
            long start = size(name) * n / count;
            long length = size(name) * (n + 1) / count - start;
            Map<String, Object> split = new LinkedHashMap<>();
            split.put("start", start);
            split.put("length", length);
            split.put("rows", HiveRows.print(path(name), table, start, length, Map.of(), new StringBuilder()));
            splits.add(split);
        }
        return splits;
    }
}
