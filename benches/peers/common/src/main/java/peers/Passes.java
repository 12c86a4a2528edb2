package peers;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Locale;

/** Reads a file repeatedly on this thread and prints the cost of each pass, one JSON object per line. */
final class Passes {
    /** One full read: every column of every row. */
    interface Pass {
        Count run() throws Exception;
    }

    /** The result of a pass; values are counted, so that every reader must decode them. */
    record Count(long rows, long values) {}

    private Passes() {}

    static void run(String reader, String file, int passes, Pass pass) throws Exception {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        for (int n = 1; n <= passes; n++) {
            long wall = System.nanoTime();
            long cpu = threads.getCurrentThreadCpuTime();
            Count count = pass.run();
            double cpuSeconds = (threads.getCurrentThreadCpuTime() - cpu) / 1e9;
            double wallSeconds = (System.nanoTime() - wall) / 1e9;
            System.out.println(String.format(
                    Locale.ROOT,
                    "{\"reader\": \"%s\", \"file\": \"%s\", \"pass\": %d, \"rows\": %d, \"values\": %d,"
                            + " \"cpu_s\": %.3f, \"wall_s\": %.3f, \"mrows_per_cpu_s\": %.2f}",
                    reader, file, n, count.rows(), count.values(), cpuSeconds, wallSeconds,
                    count.rows() / cpuSeconds / 1e6));
        }
    }
}
