package reference;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** HBase's and Hudi's own HFile classes from a command line. */
public final class Main {
    private static final String USAGE =
            """
            write DIR        writes the files of tests/data/hfile into DIR, and what their library reads from each
            read hbase FILE  prints what HBase reads from FILE, a JSON object a cell
            read hudi FILE   prints what hudi-io reads from FILE, a JSON object a record
            find hbase FILE  seeks each seventh cell and asks the bloom filter for it
            find hudi FILE   seeks each seventh key
            """;

    private Main() {}

    public static void main(String[] args) throws Exception {
        String command = args.length == 0 ? "" : args[0];
        try (PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8)) {
            if (args.length == 2 && command.equals("write")) {
                new Fixtures(Path.of(args[1])).write();
            } else if (args.length == 3 && args[1].equals("hbase")) {
                switch (command) {
                    case "read" -> HBaseFile.read(Path.of(args[2]), out::println);
                    case "find" -> out.println(HBaseFile.find(Path.of(args[2])));
                    default -> usage();
                }
            } else if (args.length == 3 && args[1].equals("hudi")) {
                switch (command) {
                    case "read" -> HudiFile.read(Path.of(args[2]), out::println);
                    case "find" -> out.println(HudiFile.find(Path.of(args[2])));
                    default -> usage();
                }
            } else {
                usage();
            }
        }
    }

    private static void usage() {
        System.err.print(USAGE);
        System.exit(2);
    }
}
