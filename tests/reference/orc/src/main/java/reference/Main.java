package reference;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory;
import org.apache.orc.InMemoryKeystore;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;

/** ORC's own Java classes from a command line. */
public final class Main {
    private static final String USAGE =
            """
            write DIR                      writes the files of tests/data/orc into DIR
            read FILE [KEY=VALUE...]       prints what Java reads from FILE, a JSON object a row
              equals=COLUMN:TEXT           of the row groups that may hold this text (a number, for a column of integers)
              key=NAME:HEX                 a key of an encrypted file
            copy FROM TO [KEY=VALUE...]    has Java write the rows of FROM anew, with settings such as orc.compress=ZLIB
            """;

    private Main() {}

    public static void main(String[] args) throws Exception {
        if (args.length == 2 && args[0].equals("write")) {
            new Fixtures(Path.of(args[1])).write();
        } else if (args.length >= 2 && args[0].equals("read")) {
            read(args[1], List.of(args).subList(2, args.length));
        } else if (args.length >= 3 && args[0].equals("copy")) {
            copy(args[1], args[2], List.of(args).subList(3, args.length));
        } else {
            System.err.print(USAGE);
            System.exit(2);
        }
    }

    /** Opens a file so that times are wall clocks in UTC and days are of the proleptic calendar. */
    static Reader open(String file, InMemoryKeystore keys) throws IOException {
        OrcFile.ReaderOptions options = OrcFile.readerOptions(new Configuration());
        options.useUTCTimestamp(true).convertToProlepticGregorian(true);
        if (keys != null) {
            options.setKeyProvider(keys);
        }
        return OrcFile.createReader(new org.apache.hadoop.fs.Path(file), options);
    }

    private static Map<String, String> settings(List<String> given) {
        Map<String, String> settings = new LinkedHashMap<>();
        for (String setting : given) {
            int equals = setting.indexOf('=');
            settings.put(setting.substring(0, equals), setting.substring(equals + 1));
        }
        return settings;
    }

    private static void read(String file, List<String> given) throws Exception {
        Map<String, String> settings = settings(given);
        InMemoryKeystore keys = null;
        String key = settings.get("key");
        if (key != null) {
            String[] parts = key.split(":");
            keys = Fixtures.keystore(Map.of(parts[0], parts[1]));
        }
        Reader reader = open(file, keys);
        Reader.Options options = reader.options();
        String wanted = settings.get("equals");
        if (wanted != null) {
            String column = wanted.substring(0, wanted.indexOf(':'));
            String text = wanted.substring(wanted.indexOf(':') + 1);
            boolean number = reader.getSchema().findSubtype(column).getCategory() != TypeDescription.Category.STRING;
            PredicateLeaf.Type type = number ? PredicateLeaf.Type.LONG : PredicateLeaf.Type.STRING;
            Object value = number ? (Object) Long.valueOf(text) : text;
            options.searchArgument(
                    SearchArgumentFactory.newBuilder().equals(column, type, value).build(), new String[] {column});
        }
        try (PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8)) {
            print(reader, options, out);
        }
    }

    static void print(Reader reader, Reader.Options options, Appendable out) throws IOException {
        TypeDescription schema = reader.getSchema();
        VectorizedRowBatch batch = schema.createRowBatch();
        try (RecordReader rows = reader.rows(options)) {
            while (rows.nextBatch(batch)) {
                for (int row = 0; row < batch.size; row++) {
                    Json.row(out, batch, schema, row);
                    out.append('\n');
                }
            }
        }
    }

    private static void copy(String from, String to, List<String> given) throws IOException {
        Configuration conf = new Configuration();
        settings(given).forEach(conf::set);
        Reader reader = open(from, null);
        OrcFile.WriterOptions options = OrcFile.writerOptions(conf).setSchema(reader.getSchema()).overwrite(true);
        options.useUTCTimestamp(true).setProlepticGregorian(true);
        VectorizedRowBatch batch = reader.getSchema().createRowBatch();
        try (Writer writer = OrcFile.createWriter(new org.apache.hadoop.fs.Path(to), options);
                RecordReader rows = reader.rows()) {
            while (rows.nextBatch(batch)) {
                writer.addRowBatch(batch);
            }
        }
    }

    /** The lines that {@link #print} gives. */
    static List<String> rows(Reader reader) throws IOException {
        StringBuilder text = new StringBuilder();
        print(reader, reader.options(), text);
        return new ArrayList<>(text.toString().lines().toList());
    }
}
