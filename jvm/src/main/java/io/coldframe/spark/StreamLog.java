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
 * The files of a stream's log, in the folder of its checkpoint: {@code 0}, {@code 1} and so on, and {@code 9.all} in place of all up
 * to there. Written by what writes Spark's own logs there, so that a file is whole or not there in every store that Spark can
 * have checkpoints in.
 */
final class StreamLog {
  private static final String ALL = ".all";
  private static final String MANAGER = "CheckpointFileManager$";
  /** Entries between two files that have all. */
  private static final long BETWEEN = 10;

  private final Object manager;
  private final Path folder;

  StreamLog(String checkpoint) {
    folder = new Path(checkpoint, "coldframe");
    try {
      Object state = Reflected.call(SparkSession.active(), "sessionState");
      Object made = managers().getField("MODULE$").get(null);
      manager = Reflected.call(made, "create", folder, Reflected.call(state, "newHadoopConf"));
      Reflected.call(manager, "mkdirs", folder);
    } catch (ReflectiveOperationException e) {
      throw failed("cannot be opened", folder, e);
    }
  }

  /** Spark 4.1 has moved it to a package of its own. */
  private static Class<?> managers() throws ClassNotFoundException {
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
    String digits = name.endsWith(ALL) ? name.substring(0, name.length() - ALL.length()) : name;
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

  /** The newest file that has all entries up to its own, and those behind it. */
  List<byte[]> read() {
    List<String> names = names();
    String newest = null;
    for (String name : names) {
      if (name.endsWith(ALL) && (newest == null || number(name) > number(newest))) {
        newest = name;
      }
    }
    List<byte[]> found = new ArrayList<>();
    if (newest != null) {
      found.add(read(newest));
    }
    for (String name : names) {
      if (!name.endsWith(ALL) && (newest == null || number(name) > number(newest))) {
        found.add(read(name));
      }
    }
    return found;
  }

  private byte[] read(String name) {
    Path path = new Path(folder, name);
    try (InputStream in = (InputStream) Reflected.call(manager, "open", path)) {
      ByteArrayOutputStream whole = new ByteArrayOutputStream();
      byte[] some = new byte[1 << 16];
      for (int count = in.read(some); count >= 0; count = in.read(some)) {
        whole.write(some, 0, count);
      }
      return whole.toByteArray();
    } catch (IOException | ReflectiveOperationException e) {
      throw failed("cannot be read", path, e);
    }
  }

  /** Writes an entry; it fails if there is one of this number, which only another query over the same checkpoint can have written. */
  void write(long entry, byte[] line) {
    write(String.valueOf(entry), line);
  }

  /** Whether it is time for a file of all entries. */
  static boolean isDue(long entry) {
    return entry % BETWEEN == BETWEEN - 1;
  }

  /** Writes all entries up to one, and deletes those that they take the place of. */
  void writeAll(long entry, byte[] lines) {
    List<String> before = names();
    write(entry + ALL, lines);
    for (String name : before) {
      if (number(name) <= entry && !name.equals(entry + ALL)) {
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
