package reference;

import java.nio.file.Path;

/** HBase's own regions from a command line, without a server. */
public final class Main {
    private static final String USAGE =
            """
            write DIR              writes the roots of tests/data/hbase into DIR, and what HBase reads from each
            cells DIR TABLE FILE   writes a root into DIR with TABLE, whose cells FILE has: row, family, qualifier, type, value
            load DIR CELLS CODEC   writes a table `bench` of CELLS cells and a snapshot of it, for benches
            scan DIR PASSES        reads the snapshot of `load` by TableSnapshotScanner, and says how fast
            get DIR ROWS N PASSES  reads N of the ROWS rows of `load` by random keys, and says how fast
            """;

    private Main() {}

    public static void main(String[] args) throws Exception {
        int code = 1;
        try {
            code = run(args);
        } catch (Exception e) {
            e.printStackTrace();
        } finally {
            System.exit(code); // HBase's threads do not end by themselves
        }
    }

    private static int run(String[] args) throws Exception {
        switch (args.length == 0 ? "" : args[0]) {
            case "write" -> new Fixtures(Path.of(args[1])).write();
            case "cells" -> Written.write(Path.of(args[1]), args[2], Path.of(args[3]));
            case "load" -> Bench.load(Path.of(args[1]), Integer.parseInt(args[2]), args[3]);
            case "scan" -> Bench.scan(Path.of(args[1]), Integer.parseInt(args[2]));
            case "get" ->
                    Bench.get(Path.of(args[1]), Integer.parseInt(args[2]), Integer.parseInt(args[3]), Integer.parseInt(args[4]));
            default -> {
                System.err.print(USAGE);
                return 2;
            }
        }
        return 0;
    }
}
