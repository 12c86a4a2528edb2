package reference;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;
import org.apache.hadoop.hdfs.server.datanode.DataNode;

/**
 * Cluster DIR [ha | named]: an HDFS of two DataNodes below DIR, on the loopback. With `named`, the DataNodes
 * are called {@code data0} and {@code data1}; clients still go to their addresses, but WebHDFS sends them to
 * the names.
 *
 * <p>Prints {@code READY URL CONF WEB}: the URL of its root, the directory that HADOOP_CONF_DIR should name, and where the first
 * NameNode has its web server. Then each line of standard input is a command, answered by {@code OK} or {@code FAILED why}; the end of the input ends the cluster.
 *
 * <pre>
 * stop            stops the next DataNode
 * start           starts the one that was stopped last
 * failover        the other NameNode becomes active (ha)
 * forbid PATH     nobody but its owner may read PATH
 * write PATH FILE N    the first N bytes of a local file as PATH, which stays open
 * close           closes the file that was opened last
 * </pre>
 */
public final class Cluster {
  private static final long BLOCK = 1 << 20;

  public static void main(String[] args) throws Exception {
    File base = new File(args[0]).getAbsoluteFile();
    boolean ha = args.length > 1 && args[1].equals("ha");
    boolean named = args.length > 1 && args[1].equals("named");
    Configuration conf = new Configuration();
    conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, new File(base, "data").getPath());
    // Small blocks, so that a small file is on both DataNodes.
    conf.setLong("dfs.blocksize", BLOCK);
    conf.setLong("dfs.namenode.fs-limits.min-block-size", BLOCK);
    MiniDFSCluster.Builder builder = new MiniDFSCluster.Builder(conf).numDataNodes(2).format(true);
    if (ha) {
      builder.nnTopology(MiniDFSNNTopology.simpleHATopology());
    }
    if (named) {
      builder.hosts(new String[] {"data0", "data1"});
    }
    MiniDFSCluster cluster = builder.build();
    if (ha) {
      cluster.transitionToActive(0);
    }
    cluster.waitActive();
    try (FileSystem files = cluster.getFileSystem(0)) {
      files.setPermission(new Path("/"), new FsPermission((short) 0777));
    }
    String url = ha ? "hdfs://cold" : "hdfs://localhost:" + cluster.getNameNodePort();
    File client = new File(base, "conf");
    client.mkdirs();
    describe(cluster, url, ha, new File(client, "core-site.xml"));
    try (PrintWriter out = new PrintWriter(new File(client, "hdfs-site.xml"))) {
      out.println("<configuration/>");
    }
    String web = "http://localhost:" + cluster.getHttpUri(0).split(":")[2];
    System.out.println("READY " + url + " " + client + " " + web);

    Deque<MiniDFSCluster.DataNodeProperties> stopped = new ArrayDeque<>();
    Deque<FSDataOutputStream> open = new ArrayDeque<>();
    int active = 0;
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.trim().split(" ");
      try {
        switch (words[0]) {
          case "stop" -> stopped.push(cluster.stopDataNode(0));
          case "start" -> {
            cluster.restartDataNode(stopped.pop(), true);
            // `waitActive` is not used, since it waits until stopped DataNodes are forgotten.
            DataNode started = cluster.getDataNodes().get(cluster.getDataNodes().size() - 1);
            while (!started.isDatanodeFullyStarted()) {
              Thread.sleep(50);
            }
          }
          case "failover" -> {
            cluster.transitionToStandby(active);
            active = 1 - active;
            cluster.transitionToActive(active);
          }
          case "forbid" -> {
            try (FileSystem files = cluster.getFileSystem(active)) {
              files.setOwner(new Path(words[1]), "somebody", "somebody");
              files.setPermission(new Path(words[1]), new FsPermission((short) 0700));
            }
          }
          // Like a writer that is still writing or was killed.
          case "write" -> {
            FSDataOutputStream out = cluster.getFileSystem(active).create(new Path(words[1]));
            byte[] bytes = Files.readAllBytes(Paths.get(words[2]));
            out.write(bytes, 0, Integer.parseInt(words[3]));
            out.hflush();
            open.push(out);
          }
          case "close" -> open.pop().close();
          default -> throw new IllegalArgumentException("no such command");
        }
        System.out.println("OK");
      } catch (Exception e) {
        System.out.println("FAILED " + e);
      }
    }
    cluster.shutdown();
    System.exit(0);
  }

  /** The configuration that a client needs. */
  private static void describe(MiniDFSCluster cluster, String url, boolean ha, File file) throws Exception {
    try (PrintWriter out = new PrintWriter(file)) {
      out.println("<configuration>");
      property(out, "fs.defaultFS", url);
      if (ha) {
        property(out, "dfs.nameservices", "cold");
        property(out, "dfs.ha.namenodes.cold", "one,two");
        property(out, "dfs.namenode.rpc-address.cold.one", "localhost:" + cluster.getNameNodePort(0));
        property(out, "dfs.namenode.rpc-address.cold.two", "localhost:" + cluster.getNameNodePort(1));
        property(
            out,
            "dfs.client.failover.proxy.provider.cold",
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider");
      }
      out.println("</configuration>");
    }
  }

  private static void property(PrintWriter out, String name, String value) {
    out.printf("<property><name>%s</name><value>%s</value></property>%n", name, value);
  }
}
