package reference;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.apache.hadoop.hive.serde2.SerDeException;

/** The files of {@code tests/data/rcfile/files}: small, and between them every feature of the format. */
final class Fixtures {
    private static final String PRIMITIVES =
            "id bigint, tiny tinyint, small smallint, n int, big bigint, f float, d double, flag boolean, s string,"
                    + " c char(7), v varchar(12), bytes binary, day date, at timestamp, p5 decimal(5,2), p18 decimal(18,6),"
                    + " p38 decimal(38,10), p0 decimal(38,0)";
    private static final String HIVE_3_PRIMITIVES =
            ", instant timestamp with local time zone, months interval_year_month, span interval_day_time";
    private static final String NESTED =
            "id bigint, tags array<string>, scores map<string,int>,"
                    + " place struct<name:string,at:struct<lat:double,lon:double>>,"
                    + " history array<struct<day:date,amount:decimal(10,2)>>, either uniontype<int,string,array<string>>,"
                    + " by_id map<int,array<bigint>>, matrix array<array<smallint>>";
    private static final String ORDERS = "id bigint, name string, amount decimal(9,2), at timestamp, flag boolean";
    private static final String LENIENT =
            "raw string, tiny tinyint, n int, big bigint, f float, d double, p decimal(6,2), flag boolean, day date,"
                    + " at timestamp, bytes binary, v varchar(4), c char(4)";

    private final Output out;
    private final boolean hive2;

    Fixtures(Path dir, String version) throws IOException {
        hive2 = version.startsWith("2.");
        out = new Output(dir, "Hive " + version);
    }

    void write() throws IOException, SerDeException {
        if (hive2) {
            hive2();
        } else {
            types();
            codecs();
            groups();
            copies();
        }
        lenient();
    }

    private void types() throws IOException, SerDeException {
        Table text = new Table(PRIMITIVES + HIVE_3_PRIMITIVES, "text");
        new HiveFile()
                .metadata("origin", "coldframe")
                .write(out.path("text_types.rc"), text, new Samples(1).rows(90, text));
        out.add("text_types.rc", text, Map.of(), "every primitive type", "nulls", "edges", "user metadata");

        Table binary = new Table(PRIMITIVES + HIVE_3_PRIMITIVES, "binary");
        new HiveFile().write(out.path("binary_types.rc"), binary, new Samples(2).rows(90, binary));
        out.add("binary_types.rc", binary, Map.of(), "every primitive type", "nulls", "edges");

        Table textNested = new Table(NESTED, "text");
        new HiveFile()
                .codec("GzipCodec")
                .write(out.path("text_nested_gzip.rc"), textNested, new Samples(3).rows(120, textNested));
        out.add("text_nested_gzip.rc", textNested, Map.of(), "nested types", "gzip");

        Table binaryNested = new Table(NESTED, "binary");
        new HiveFile()
                .codec("DefaultCodec")
                .write(out.path("binary_nested_zlib.rc"), binaryNested, new Samples(4).rows(120, binaryNested));
        out.add("binary_nested_zlib.rc", binaryNested, Map.of(), "nested types", "zlib");

        Table delimited = new Table(
                NESTED,
                "text",
                Map.of(
                        "field.delim", "|", "collection.delim", ",", "mapkey.delim", ":", "escape.delim", "\\",
                        "serialization.null.format", "NULL"));
        Samples awkward = new Samples(5, "a,b", "k:v", "back\\slash", "pipe|", "line\nbreak", "\\N");
        new HiveFile()
                .codec("SnappyCodec")
                .write(out.path("text_delimiters_snappy.rc"), delimited, awkward.rows(120, delimited));
        out.add("text_delimiters_snappy.rc", delimited, Map.of(), "delimiters", "escapes", "null format", "snappy");
    }

    private void codecs() throws IOException, SerDeException {
        Table text = new Table(ORDERS, "text");
        List<List<Object>> rows = new Samples(6).rows(200, text);
        new HiveFile().codec("BZip2Codec").rowsPerGroup(80).write(out.path("text_bzip2.rc"), text, rows);
        new HiveFile().rowsPerGroup(80).write(out.path("twin.rc"), text, rows);
        // without Hadoop's native library Hive finds no row in its own bzip2 files
        out.add("text_bzip2.rc", "twin.rc", text, Map.of(), Map.of(), "bzip2", "row groups");
        Files.delete(Path.of(out.path("twin.rc").toUri()));

        Table binary = new Table(ORDERS, "binary");
        new HiveFile()
                .codec("Lz4Codec")
                .rowsPerGroup(60)
                .write(out.path("binary_lz4.rc"), binary, new Samples(7).rows(200, binary));
        out.add("binary_lz4.rc", binary, Map.of(), "lz4", "row groups");
    }

    private void groups() throws IOException, SerDeException {
        Table text = new Table(ORDERS, "text");
        new HiveFile().rowsPerGroup(20).write(out.path("text_groups.rc"), text, new Samples(8).rows(400, text));
        out.add(
                "text_groups.rc", "text_groups.rc", text, Map.of(),
                Map.of("splits", out.splits("text_groups.rc", text, 7)),
                "20 row groups", "sync markers", "splits");

        Table binary = new Table(ORDERS, "binary");
        new HiveFile()
                .codec("DefaultCodec")
                .rowsPerGroup(50)
                .write(out.path("binary_groups_zlib.rc"), binary, new Samples(9).rows(600, binary));
        out.add(
                "binary_groups_zlib.rc", "binary_groups_zlib.rc", binary, Map.of(),
                Map.of("splits", out.splits("binary_groups_zlib.rc", binary, 5)),
                "12 row groups", "sync markers", "splits", "zlib");

        new HiveFile()
                .sequenceFileHeader()
                .rowsPerGroup(50)
                .write(out.path("text_seq6.rc"), text, new Samples(10).rows(120, text));
        out.add("text_seq6.rc", text, Map.of(), "SEQ6 header", "row groups");

        new HiveFile()
                .sequenceFileHeader()
                .codec("DefaultCodec")
                .metadata("origin", "coldframe")
                .write(out.path("binary_seq6_zlib.rc"), binary, new Samples(11).rows(120, binary));
        out.add("binary_seq6_zlib.rc", binary, Map.of(), "SEQ6 header", "zlib", "user metadata");

        new HiveFile().write(out.path("empty.rc"), text, List.of());
        out.add("empty.rc", text, Map.of(), "no row group");

        // a table that got a column after the file was written
        Table wider = new Table(ORDERS + ", added string", "text");
        out.add("text_seq6.rc", "text_seq6.rc", wider, Map.of(), Map.of("truth", "text_seq6_wider"), "column added later");
    }

    private void copies() throws IOException, SerDeException {
        Table text = new Table(ORDERS, "text");
        BlockCopy.write(
                out.path("text_concatenated.rc"), new HiveFile(), 5,
                List.of(out.path("text_seq6.rc"), out.path("text_groups.rc")), List.of());
        out.add(
                "text_concatenated.rc", text, Map.of(),
                "ALTER TABLE .. CONCATENATE", "row groups of a SEQ6 and an RCF1 file");

        Table binary = new Table(ORDERS, "binary");
        BlockCopy.write(
                out.path("binary_truncated_zlib.rc"), new HiveFile().codec("DefaultCodec"), 5,
                List.of(out.path("binary_groups_zlib.rc")), List.of(1, 3));
        out.add("binary_truncated_zlib.rc", binary, Map.of(), "TRUNCATE TABLE .. COLUMNS (name, at)", "zlib");
    }

    private void hive2() throws IOException, SerDeException {
        Table text = new Table(PRIMITIVES + ", tags array<string>", "text", Map.of("colelction.delim", ";"));
        new HiveFile()
                .codec("DefaultCodec")
                .write(out.path("text_types_hive2.rc"), text, new Samples(12).sinceGregor().rows(60, text));
        out.add("text_types_hive2.rc", text, Map.of("hive_version", "2.3"), "every primitive type", "misspelt property");

        inZone("America/Los_Angeles", zone -> {
            Table binary = new Table("id bigint, at timestamp, day date, times array<timestamp>", "binary");
            new HiveFile()
                    .write(out.path("binary_instants_hive2.rc"), binary, new Samples(13).sinceGregor().rows(90, binary));
            out.add(
                    "binary_instants_hive2.rc", binary, Map.of("hive_version", "2.3", "timezone", zone),
                    "timestamps as instants of the writer's time zone");
        });
    }

    private interface ZonedStep {
        void run(String zone) throws IOException, SerDeException;
    }

    /** Runs a step in a time zone and in a thread of its own: Hive 2 keeps the zone that a thread first saw. */
    private static void inZone(String zone, ZonedStep step) throws IOException, SerDeException {
        TimeZone before = TimeZone.getDefault();
        TimeZone.setDefault(TimeZone.getTimeZone(zone));
        FutureTask<Void> task = new FutureTask<>(() -> {
            step.run(zone);
            return null;
        });
        new Thread(task).start();
        try {
            task.get();
        } catch (ExecutionException | InterruptedException e) {
            throw new IOException("in " + zone, e);
        } finally {
            TimeZone.setDefault(before);
        }
    }

    /** The same cell in every column, whatever the column's type. */
    private void lenient() throws IOException, SerDeException {
        List<String> cells = List.of(
                "12.7", " 12", "12 ", "+5", "-0", "0x1f", "1e3", "1f", "NaN", "Infinity", "127", "128", "-129", "32768",
                "2147483648", "9223372036854775808", "123456789012345678901234567890", "1.005", "9999.995", "true", "TRUE",
                "t", "1", "yes", "2020-02-30", "2020-1-5", " 2020-01-05", "2020-01-05 10:11:12", "2020-01-05T10:11:12",
                "2020-01-05 10:11:12.1234567891", "2020-01-05 10:11", "1582-10-10", "YWJj", "not base64!", "", "\\N",
                "NULL", "null", "Grüße");
        int width = LENIENT.split(", ").length;
        List<List<String>> rows = cells.stream().map(cell -> Collections.nCopies(width, cell)).toList();
        String name = hive2 ? "text_lenient_hive2.rc" : "text_lenient.rc";
        new HiveFile().writeCells(out.path(name), rows);
        Map<String, Object> open = hive2 ? Map.of("hive_version", "2.3") : Map.of();
        out.add(name, new Table(LENIENT, "text"), open, "cells that no SerDe wrote: column raw shows them");
    }
}
