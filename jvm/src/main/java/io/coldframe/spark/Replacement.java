package io.coldframe.spark;

import io.coldframe.ColdframeError;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/**
 * Replaces files of a folder by others, so that a kill at any moment leaves the old rows, the new rows, or a folder that coldframe
 * refuses to read; never both the old and the new rows.
 *
 * <pre>
 * sales/_coldframe-3f../dt=1/part-0.orc     1. the new files, under a name that readers ignore
 * sales/_coldframe-written.json             2. the record, from which the next write completes a replacement that was interrupted
 *                                           3. the old files are deleted, the new ones are moved, the record is deleted
 * </pre>
 *
 * While there are the record and the staged folder, the library refuses the folder.
 */
final class Replacement {
  private static final String STAGED = "_coldframe-";
  private static final String RECORD = "_coldframe-written.json";
  private static final String SUCCESS = "_SUCCESS";
  /** Ends the part of the record that lists files; a record without it was not written whole. */
  private static final String END = "end";

  private final FileSystem files;
  private final Path root;
  private final Path staged;

  Replacement(FileSystem files, Path root) {
    this(files, root, STAGED + UUID.randomUUID().toString().replace("-", ""));
  }

  private Replacement(FileSystem files, Path root, String staged) {
    this.files = files;
    this.root = root;
    this.staged = new Path(root, staged);
  }

  /** The folder to which the new files are written. */
  Path staged() {
    return staged;
  }

  /** Deletes the new files, after a failure. */
  void abandon() {
    try {
      files.delete(staged, true);
    } catch (IOException e) {
      // The caller has an error to report; readers ignore the folder.
    }
  }

  /** Replaces files, given by their paths below the folder, by all new files. */
  void publish(List<String> replaced) throws IOException {
    String record = "{\"staged\":" + Json.text(staged.getName()) + ",\"replaced\":" + Json.texts(replaced) + ",\"" + END + "\":true}";
    try (OutputStream out = files.create(new Path(root, RECORD), true)) {
      out.write(record.getBytes(StandardCharsets.UTF_8));
    }
    complete(replaced);
  }

  /** Completes a replacement of this folder that was interrupted, if there is one. */
  static void completeLast(FileSystem files, Path root) throws IOException {
    byte[] bytes;
    try (FSDataInputStream in = files.open(new Path(root, RECORD))) {
      bytes = new byte[Math.toIntExact(files.getFileStatus(new Path(root, RECORD)).getLen())];
      in.readFully(0, bytes);
    } catch (FileNotFoundException e) {
      return;
    }
    String record = new String(bytes, StandardCharsets.UTF_8);
    int at = record.indexOf("\"replaced\":[");
    if (!record.endsWith(",\"" + END + "\":true}") || at < 0) {
      if (at >= 0) {
        // It was not written whole, so that nothing has been replaced yet.
        files.delete(new Path(root, RECORD), false);
      }
      return; // otherwise the record of another kind of write
    }
    String list = record.substring(record.indexOf('[', at), record.lastIndexOf(",\"" + END));
    String staged = Places.list("[" + record.substring(record.indexOf(':') + 1, at - 1) + "]").get(0);
    if (!staged.startsWith(STAGED) || staged.contains("/")) {
      throw new ColdframeError(new Path(root, RECORD) + ": not the record of a write");
    }
    new Replacement(files, root, staged).complete(Places.list(list));
  }

  /** Steps that may be repeated from the start. */
  private void complete(List<String> replaced) throws IOException {
    files.delete(new Path(root, SUCCESS), false);
    for (String path : replaced) {
      Path file = below(path);
      files.delete(file, false);
      deleteEmpty(file.getParent());
    }
    for (Path file : listed()) {
      String path = file.toUri().getPath();
      String start = Path.getPathWithoutSchemeAndAuthority(files.makeQualified(staged)).toString();
      Path target = below(path.substring(start.length()).replaceFirst("^/+", ""));
      files.mkdirs(target.getParent());
      // Where a rename copies, a kill may leave both, or a part of the copy.
      if (files.exists(target)) {
        files.delete(target, false);
      }
      if (!files.rename(file, target)) {
        throw new IOException(file + ": cannot be renamed to " + target);
      }
    }
    files.delete(staged, true);
    files.delete(new Path(root, RECORD), false);
  }

  /** The new files that are not moved yet; the mark of a whole write is last. */
  private List<Path> listed() throws IOException {
    List<Path> all = new ArrayList<>();
    Path success = new Path(staged, SUCCESS);
    try {
      for (RemoteIterator<LocatedFileStatus> each = files.listFiles(staged, true); each.hasNext(); ) {
        Path file = each.next().getPath();
        if (!file.getName().startsWith("_") && !file.getName().startsWith(".")) {
          all.add(file);
        }
      }
    } catch (FileNotFoundException e) {
      return all; // all are moved
    }
    if (files.exists(success)) {
      all.add(success);
    }
    return all;
  }

  /** A path below the folder; names may have a colon. Whoever can write a record must not reach files elsewhere. */
  private Path below(String path) {
    for (String part : path.split("/", -1)) {
      if (part.isEmpty() || part.equals(".") || part.equals("..")) {
        throw new ColdframeError(new Path(root, RECORD) + ": expected paths below the folder, found " + path);
      }
    }
    return new Path(root.toString() + "/" + path);
  }

  /** Deletes the folder of a partition that has no file any more. */
  private void deleteEmpty(Path folder) throws IOException {
    try {
      if (folder.getName().contains("=") && files.listStatus(folder).length == 0) {
        files.delete(folder, false);
        deleteEmpty(folder.getParent());
      }
    } catch (FileNotFoundException e) {
      // It was deleted before.
    }
  }
}
