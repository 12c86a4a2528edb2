package reference;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;

/** Hive's own RCFile classes from a command line. */
public final class Main {
    private static final String USAGE =
            """
            write DIR                              writes the files of tests/data/rcfile into DIR
            read FILE SCHEMA SERDE [KEY=VALUE...]  prints what Hive reads from FILE, a JSON object a row
              SCHEMA  the columns as DDL: "id bigint, tags array<string>"
              SERDE   text or binary
              KEY     a SerDe property or a setting of the session; split=START:LENGTH reads the rows of a byte range,
                      timezone=ZONE is the session's time zone (UTC)
            """;

    private Main() {}

    public static void main(String[] args) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        if (args.length == 2 && args[0].equals("write")) {
            write(Path.of(args[1]));
        } else if (args.length >= 4 && args[0].equals("read")) {
            read(Path.of(args[1]), args[2], args[3], List.of(args).subList(4, args.length));
        } else {
            System.err.print(USAGE);
            System.exit(2);
        }
    }

    private static void write(Path dir) throws Exception {
        String version = System.getProperty("hive.version");
        new Fixtures(dir.resolve("files"), version).write();
        if (!version.startsWith("2.")) {
            new Warehouse(dir.resolve("warehouse"), version).write(dir.resolve("warehouse"));
        }
    }

    private static void read(Path file, String schema, String serde, List<String> settings) throws Exception {
        Map<String, String> properties = new LinkedHashMap<>();
        for (String setting : settings) {
            int equals = setting.indexOf('=');
            properties.put(setting.substring(0, equals), setting.substring(equals + 1));
        }
        String zone = properties.remove("timezone");
        if (zone != null) {
            TimeZone.setDefault(TimeZone.getTimeZone(zone));
        }
        String split = properties.remove("split");
        String[] range = (split == null ? "0:" + Files.size(file) : split).split(":");
        try (PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8)) {
            HiveRows.print(
                    new org.apache.hadoop.fs.Path(file.toUri()), new Table(schema, serde, properties),
                    Long.parseLong(range[0]), Long.parseLong(range[1]), properties, out);
        }
    }
}
