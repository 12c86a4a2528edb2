package io.coldframe.spark;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.spark.sql.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The HDFS hosts that store the bytes of tasks. They are requested with Hadoop's client, which every Spark
 * has, because the native library's client does not give them. There is one request for each folder, several
 * run at a time, and there is a time limit. A task whose hosts are unknown may run anywhere.
 */
final class BlockHosts {
  private static final Logger LOG = LoggerFactory.getLogger(BlockHosts.class);
  private static final int MAX_THREADS = 8;
  private static final long TIMEOUT_MS = 5_000;
  /** Maximum number of hosts of a task, the same as in Spark's own readers. */
  private static final int MAX_HOSTS = 3;

  /** The blocks of files, by path. */
  private final Map<String, BlockLocation[]> blocks = new ConcurrentHashMap<>();

  private BlockHosts() {}

  /** Finds the hosts of tasks; {@code settings} are the store's options in the native library. */
  static BlockHosts of(List<Planned> tasks, Map<String, String> settings) {
    BlockHosts hosts = new BlockHosts();
    Map<String, Set<String>> folders = new HashMap<>();
    for (Planned task : tasks) {
      for (Planned.Range range : task.ranges) {
        int slash = range.path.lastIndexOf('/');
        folders.computeIfAbsent(range.path.substring(0, slash), none -> new HashSet<>()).add(range.path.substring(slash + 1));
      }
    }
    if (!folders.isEmpty()) {
      hosts.ask(folders, settings);
    }
    return hosts;
  }

  /** The hosts that store most of a task's bytes, in descending order. */
  String[] of(Planned task) {
    Map<String, Long> bytes = new TreeMap<>();
    for (Planned.Range range : task.ranges) {
      for (BlockLocation block : blocks.getOrDefault(range.path, new BlockLocation[0])) {
        long end = Math.min(range.end, block.getOffset() + block.getLength());
        add(bytes, block, end - Math.max(range.start, block.getOffset()));
      }
    }
    List<String> hosts = new ArrayList<>(bytes.keySet());
    hosts.sort((left, right) -> Long.compare(bytes.get(right), bytes.get(left)));
    return hosts.subList(0, Math.min(hosts.size(), MAX_HOSTS)).toArray(new String[0]);
  }

  private static void add(Map<String, Long> bytes, BlockLocation block, long more) {
    if (more <= 0) {
      return;
    }
    try {
      for (String host : block.getHosts()) {
        bytes.merge(host, more, Long::sum);
      }
    } catch (IOException e) {
      LOG.debug("cannot read the hosts of a block", e);
    }
  }

  private void ask(Map<String, Set<String>> folders, Map<String, String> settings) {
    Map<String, FileSystem> clusters = new ConcurrentHashMap<>();
    ExecutorService threads =
        Executors.newFixedThreadPool(
            Math.min(MAX_THREADS, folders.size()),
            task -> {
              Thread thread = new Thread(task, "coldframe-hosts");
              thread.setDaemon(true);
              return thread;
            });
    try {
      Configuration configuration = configuration(settings);
      List<Callable<Void>> questions = new ArrayList<>();
      for (Map.Entry<String, Set<String>> folder : folders.entrySet()) {
        URI uri = new Path(folder.getKey() + "/").toUri();
        String cluster = uri.getScheme() + "://" + uri.getAuthority();
        if (!clusters.containsKey(cluster)) {
          clusters.put(cluster, connected(uri, configuration, settings.get("user")));
        }
        FileSystem files = clusters.get(cluster);
        questions.add(
            () -> {
              ask(files, folder.getKey(), folder.getValue());
              return null;
            });
      }
      for (Future<Void> answer : threads.invokeAll(questions, TIMEOUT_MS, TimeUnit.MILLISECONDS)) {
        answer.get();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (IOException | ReflectiveOperationException | ExecutionException | RuntimeException e) {
      // Hosts only make tasks faster, so a failure is just logged.
      LOG.warn("tasks are not placed on the hosts that store their data: {}", e instanceof CancellationException
          ? "the NameNode took longer than " + TIMEOUT_MS / 1000 + " s" : e.toString());
    } finally {
      threads.shutdownNow();
      clusters.values().forEach(BlockHosts::close);
    }
  }

  /** Makes a new client, since Hadoop's cache of clients ignores the settings. */
  private static FileSystem connected(URI uri, Configuration configuration, String user)
      throws IOException, InterruptedException {
    return user == null
        ? FileSystem.newInstance(uri, configuration)
        : FileSystem.newInstance(uri, configuration, user);
  }

  private static void close(FileSystem files) {
    try {
      files.close();
    } catch (IOException e) {
      LOG.debug("cannot close a client of HDFS", e);
    }
  }

  /** Spark's Hadoop configuration with the store's options. Options with a dot in their name are Hadoop's own. */
  private static Configuration configuration(Map<String, String> settings) throws ReflectiveOperationException {
    Object state = Reflected.call(SparkSession.active(), "sessionState");
    Configuration made = new Configuration((Configuration) Reflected.call(state, "newHadoopConf"));
    String folder = settings.get("hadoop_conf_dir");
    for (String name : new String[] {"core-site.xml", "hdfs-site.xml"}) {
      File file = new File(folder == null ? "" : folder, name);
      if (folder != null && file.isFile()) {
        made.addResource(new Path(file.toURI()));
      }
    }
    settings.forEach(
        (name, value) -> {
          if (name.contains(".")) {
            made.set(name, value);
          }
        });
    return made;
  }

  private void ask(FileSystem files, String folder, Set<String> names) throws IOException {
    if (names.size() == 1) {
      String path = folder + "/" + names.iterator().next();
      blocks.put(path, files.getFileBlockLocations(new Path(path), 0, Long.MAX_VALUE));
      return;
    }
    RemoteIterator<LocatedFileStatus> all = files.listLocatedStatus(new Path(folder + "/"));
    while (all.hasNext()) {
      LocatedFileStatus file = all.next();
      if (names.contains(file.getPath().getName())) {
        blocks.put(folder + "/" + file.getPath().getName(), file.getBlockLocations());
      }
    }
  }
}
