package io.coldframe.spark;

import io.coldframe.ColdframeError;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;

/**
 * The files of a stream's log, in its checkpoint folder: one file per entry ({@code 0}, {@code 1} ..), and snapshots such as
 * {@code 9.all}, which replace all entries up to their number. They are written through Spark's CheckpointFileManager, so that files
 * appear atomically in every store that Spark supports for checkpoints.
 */
final class StreamLog {
  private static final String SNAPSHOT = ".all";
  private static final String MANAGER = "CheckpointFileManager$";
  /** Number of log entries between two snapshot files. */
  private static final long SNAPSHOT_INTERVAL = 10;

  private final Object manager;
  private final Path folder;

  StreamLog(String checkpoint) {
    folder = new Path(checkpoint, "coldframe");
    try {
      Object state = Reflected.call(SparkSession.active(), "sessionState");
      Object factory = managerFactory().getField("MODULE$").get(null);
      manager = Reflected.call(factory, "create", folder, Reflected.call(state, "newHadoopConf"));
      Reflected.call(manager, "mkdirs", folder);
    } catch (ReflectiveOperationException e) {
      throw failed("cannot be opened", folder, e);
    }
  }

  /** The class that makes managers. Spark 4.1 moved the class to another package. */
  private static Class<?> managerFactory() throws ClassNotFoundException {
    String streaming = "org.apache.spark.sql.execution.streaming.";
    try {
      return Class.forName(streaming + "checkpointing." + MANAGER);
    } catch (ClassNotFoundException e) {
      return Class.forName(streaming + MANAGER);
    }
  }

  private static ColdframeError failed(String what, Path path, Exception e) {
    ColdframeError error = new ColdframeError("the log of a stream " + what + ": " + path + ": " + e.getMessage());
    error.initCause(e);
    return error;
  }

  private static long number(String name) {
    String digits = name.endsWith(SNAPSHOT) ? name.substring(0, name.length() - SNAPSHOT.length()) : name;
    return digits.matches("[0-9]{1,18}") ? Long.parseLong(digits) : -1;
  }

  private List<String> names() {
    List<String> names = new ArrayList<>();
    try {
      for (FileStatus file : (FileStatus[]) Reflected.call(manager, "list", folder)) {
        String name = file.getPath().getName();
        if (number(name) >= 0) {
          names.add(name);
        }
      }
    } catch (ReflectiveOperationException e) {
      throw failed("cannot be listed", folder, e);
    }
    return names;
  }

  /** The newest snapshot, and the entries after it. */
  List<byte[]> read() {
    List<String> names = names();
    String newest = null;
    for (String name : names) {
      if (name.endsWith(SNAPSHOT) && (newest == null || number(name) > number(newest))) {
        newest = name;
      }
    }
    List<byte[]> entries = new ArrayList<>();
    if (newest != null) {
      entries.add(read(newest));
    }
    for (String name : names) {
      if (!name.endsWith(SNAPSHOT) && (newest == null || number(name) > number(newest))) {
        entries.add(read(name));
      }
    }
    return entries;
  }

  private byte[] read(String name) {
    Path path = new Path(folder, name);
    try (InputStream in = (InputStream) Reflected.call(manager, "open", path)) {
      ByteArrayOutputStream whole = new ByteArrayOutputStream();
      byte[] buffer = new byte[1 << 16];
      for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
        whole.write(buffer, 0, count);
      }
      return whole.toByteArray();
    } catch (IOException | ReflectiveOperationException e) {
      throw failed("cannot be read", path, e);
    }
  }

  /**
   * Writes an entry. It fails if there is already an entry with this number, which means that another query
   * uses the same checkpoint.
   */
  void write(long entry, byte[] line) {
    write(String.valueOf(entry), line);
  }

  /** Whether a snapshot follows this entry. */
  static boolean hasSnapshot(long entry) {
    return entry % SNAPSHOT_INTERVAL == SNAPSHOT_INTERVAL - 1;
  }

  /** Writes a snapshot of all entries up to a number, and deletes the files that it replaces. */
  void writeSnapshot(long entry, byte[] lines) {
    List<String> old = names();
    write(entry + SNAPSHOT, lines);
    for (String name : old) {
      if (number(name) <= entry && !name.equals(entry + SNAPSHOT)) {
        try {
          Reflected.call(manager, "delete", new Path(folder, name));
        } catch (ReflectiveOperationException e) {
          throw failed("cannot be cleaned up", new Path(folder, name), e);
        }
      }
    }
  }

  private void write(String name, byte[] bytes) {
    Path path = new Path(folder, name);
    try {
      OutputStream out = (OutputStream) Reflected.call(manager, "createAtomic", path, false);
      try {
        out.write(bytes);
        out.close();
      } catch (IOException | RuntimeException e) {
        Reflected.call(out, "cancel");
        throw failed("cannot be written", path, e);
      }
    } catch (ReflectiveOperationException e) {
      throw failed("cannot be written", path, e);
    }
  }
}
