package io.coldframe.spark;

import io.coldframe.ColdframeError;
import io.coldframe.SchemaError;
import io.coldframe.UnsupportedError;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Writes rows into a folder of files, through Spark's own committer ({@link WrittenFiles}). An overwrite is a {@link Replacement};
 * if it replaces the partitions that have new rows (dynamic mode), Spark does that.
 */
final class Writes {
  private static final String DYNAMIC = "partitionoverwritemode";
  /** Entries that are looked at before files are added to a folder. */
  private static final int LOOKED_AT = 1000;

  private static final byte[] ORC = {'O', 'R', 'C'};

  /** Names of folders in the tables of others: plain files in them are no rows, or wrong ones. */
  private static final Pattern OF_TABLES =
      Pattern.compile("(base|delta|delete_delta)_[0-9]+.*|\\.hoodie|_delta_log|_kudu_metadata");

  private final FileSystem files;
  private final Path root;

  private Writes(String path) {
    Configuration session = Places.session();
    root = new Path(Places.resolved(path, session, false));
    try {
      files = root.getFileSystem(session);
    } catch (IOException e) {
      throw failed(root, e);
    }
  }

  /**
   * Whether Hadoop's file systems, with the session's configuration, store what is written. The others are stores that they
   * lack, and those for which the user gives options of our clients.
   */
  static boolean isByHadoop(Map<String, String> options) {
    String path = options.getOrDefault("path", options.get("location"));
    if (options.keySet().stream().anyMatch(name -> name.startsWith("storage_options"))) {
      return false;
    }
    if (path == null || path.isEmpty()) {
      return true;
    }
    Configuration session = Places.session();
    URI place = new Path(Places.resolved(path, session, false)).toUri();
    String scheme = place.getScheme() == null ? FileSystem.getDefaultUri(session).getScheme() : place.getScheme();
    if (scheme == null || scheme.equals("http") || scheme.equals("https")) {
      return scheme == null;
    }
    try {
      return FileSystem.getFileSystemClass(scheme, session) != null;
    } catch (IOException e) {
      return false;
    }
  }

  /** Whether options name one folder, which exists and has no data file. */
  static boolean isEmptyFolder(Map<String, String> options) {
    String path = options.getOrDefault("path", options.get("location"));
    if (path == null || options.containsKey("paths") || !isByHadoop(options)) {
      return false;
    }
    Writes writes = new Writes(path);
    try {
      return writes.files.getFileStatus(writes.root).isDirectory() && writes.listed(LOOKED_AT).isEmpty();
    } catch (IOException e) {
      return false;
    }
  }

  /** Whether there is something at each of the paths, or patterns of paths, that options name. */
  static boolean exists(Map<String, String> options) {
    return isByHadoop(options) && !paths(options).contains(null) && missing(options) == null;
  }

  private static List<String> paths(Map<String, String> options) {
    String path = options.getOrDefault("path", options.get("location"));
    return options.containsKey("paths") ? Places.list(options.get("paths")) : Collections.singletonList(path);
  }

  /** The first of the paths, or patterns of paths, that options name, at which there is nothing; null if there is none. */
  static String missing(Map<String, String> options) {
    List<String> paths = paths(options);
    if (paths.contains(null) || !isByHadoop(options)) {
      return null;
    }
    for (String each : paths) {
      Writes at = new Writes(each);
      try {
        FileStatus[] entries = at.files.globStatus(at.root);
        if (entries != null && entries.length > 0) {
          continue;
        }
      } catch (IOException e) {
        // The caller has not found it either.
      }
      return at.files.makeQualified(at.root).toString();
    }
    return null;
  }

  /**
   * Saves rows.
   *
   * @param partitions the columns whose values become the names of folders
   * @param replaced which of the files that are there an overwrite replaces, by their path below the folder
   */
  static void save(
      Map<String, String> given, SaveMode mode, List<String> partitions, Predicate<String> replaced, Dataset<Row> data) {
    NativeLibrary.checkSpark();
    Map<String, String> options = new HashMap<>(given);
    String location = options.remove("location");
    String path = options.remove("path");
    path = path == null ? location : path;
    if (path == null) {
      throw SparkErrors.noTarget(new SchemaError("no path: give one to save()"));
    }
    String dynamic = options.getOrDefault(DYNAMIC, SQLConf.get().getConfString("spark.sql.sources.partitionOverwriteMode", "STATIC"));
    boolean isReplacing = mode == SaveMode.Overwrite && (partitions.isEmpty() || !dynamic.equalsIgnoreCase("dynamic"));
    Writes writes = new Writes(path);
    boolean isLooking = mode == SaveMode.Append || mode == SaveMode.Overwrite;
    if (isLooking) {
      writes.completeLast();
    }
    List<FileStatus> before = isLooking ? writes.listed(isReplacing ? Integer.MAX_VALUE : LOOKED_AT) : Collections.emptyList();
    String format = options.containsKey("as") ? options.get("as") : options.get("format");
    options.put("as", format == null ? writes.formatOf(before) : format);
    if (isReplacing) {
      writes.replace(before, replaced, options, partitions, data);
    } else {
      write(path, mode, options, partitions, data);
    }
  }

  private static void write(
      String path, SaveMode mode, Map<String, String> options, List<String> partitions, Dataset<Row> data) {
    data.write()
        .format(WrittenFiles.class.getName())
        .options(options)
        .partitionBy(partitions.toArray(new String[0]))
        .mode(mode)
        .save(path);
  }

  /** Writes all rows before the first old file is deleted: the query may read the old files. */
  private void replace(
      List<FileStatus> before, Predicate<String> replaced, Map<String, String> options, List<String> partitions, Dataset<Row> data) {
    Replacement replacement = new Replacement(files, root);
    List<String> old = new ArrayList<>();
    for (FileStatus file : before) {
      String path = below(file.getPath());
      if (replaced.test(path)) {
        old.add(path);
      }
    }
    boolean isWritten = false;
    try {
      write(replacement.staged().toString(), SaveMode.Append, options, partitions, data);
      isWritten = true;
    } finally {
      if (!isWritten) {
        replacement.abandon();
      }
    }
    try {
      replacement.publish(old);
    } catch (IOException e) {
      throw failed(root, e);
    }
  }

  private void completeLast() {
    try {
      Replacement.completeLast(files, root);
    } catch (IOException e) {
      throw failed(root, e);
    }
  }

  /** The data files in the folder and below. Fails if it is a table whose files are not all of its rows. */
  private List<FileStatus> listed(int most) {
    List<FileStatus> entries = new ArrayList<>();
    try {
      RemoteIterator<LocatedFileStatus> all = files.listFiles(root, true);
      for (int seen = 0; seen < most && all.hasNext(); seen++) {
        FileStatus file = all.next();
        String[] names = below(file.getPath()).split("/");
        checkPlain(names);
        if (Arrays.stream(names).noneMatch(Writes::isHidden)) {
          entries.add(file);
        }
      }
    } catch (FileNotFoundException e) {
      return entries;
    } catch (IOException e) {
      throw failed(root, e);
    }
    return entries;
  }

  private void checkPlain(String[] names) {
    for (String name : names) {
      boolean isIceberg = names.length > 1 && names[names.length - 2].equals("metadata") && name.endsWith(".metadata.json");
      if (isIceberg || OF_TABLES.matcher(name).matches()) {
        throw new UnsupportedError(
            "writing plain files into " + root + ", which is a table with transactions or a log (" + String.join("/", names) + ")");
      }
    }
  }

  /** Whether readers ignore a name; the folder of a partition may begin with an underscore. */
  private static boolean isHidden(String name) {
    return name.startsWith(".") || (name.startsWith("_") && !name.contains("="));
  }

  /** A file's path below the folder. */
  private String below(Path file) {
    String whole = file.toUri().getPath();
    String folder = Path.getPathWithoutSchemeAndAuthority(files.makeQualified(root)).toString();
    return whole.startsWith(folder) ? whole.substring(folder.length()).replaceFirst("^/+", "") : file.getName();
  }

  /** The format in which to write if the user names none: ORC, unless there are other files. */
  private String formatOf(List<FileStatus> known) {
    if (!known.isEmpty()) {
      byte[] head = new byte[ORC.length];
      try (InputStream in = files.open(known.get(0).getPath())) {
        int read = in.read(head);
        if (read < head.length || !Arrays.equals(head, ORC)) {
          throw new SchemaError("option as is missing: " + root + " has files that are not ORC; give the format to write");
        }
      } catch (IOException e) {
        throw failed(known.get(0).getPath(), e);
      }
    }
    return "orc";
  }

  private static ColdframeError failed(Path what, IOException e) {
    ColdframeError error = new ColdframeError(what + ": " + e);
    error.initCause(e);
    return error;
  }
}
