import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.function.Predicate;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hive.common.ValidReadTxnList;
import org.apache.hadoop.hive.common.ValidReaderWriteIdList;
import org.apache.hadoop.hive.common.ValidTxnList;
import org.apache.hadoop.hive.common.ValidWriteIdList;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.api.hive_metastoreConstants;
import org.apache.hadoop.hive.ql.io.AcidDirectory;
import org.apache.hadoop.hive.ql.io.AcidInputFormat;
import org.apache.hadoop.hive.ql.io.AcidOutputFormat;
import org.apache.hadoop.hive.ql.io.AcidUtils;
import org.apache.hadoop.hive.ql.io.BucketCodec;
import org.apache.hadoop.hive.ql.io.HiveInputFormat;
import org.apache.hadoop.hive.ql.io.IOConstants;
import org.apache.hadoop.hive.ql.io.RecordIdentifier;
import org.apache.hadoop.hive.ql.io.RecordUpdater;
import org.apache.hadoop.hive.ql.io.orc.OrcFile;
import org.apache.hadoop.hive.ql.io.orc.OrcInputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcStruct;
import org.apache.hadoop.hive.ql.io.orc.Vectorized;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.objectinspector.StructField;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.Reporter;

/**
 * Transactional tables by the classes with which Hive's tasks write, compact and read them: an SQL statement ends in a call
 * below. Run by make.py: Acid DIR writes each table as DIR/NAME, and what Hive reads of it under lists of write ids as
 * DIR/NAME.N.jsonl.
 */
public final class Acid {
  private static final int BUCKETS = 2;
  private static final int DELETE = 2;
  private static final StructObjectInspector ROW = (StructObjectInspector) ObjectInspectorFactory
      .getReflectionObjectInspector(Row.class, ObjectInspectorFactory.ObjectInspectorOptions.JAVA);
  private static final StructObjectInspector PLAIN = (StructObjectInspector) ObjectInspectorFactory
      .getReflectionObjectInspector(PlainRow.class, ObjectInspectorFactory.ObjectInspectorOptions.JAVA);

  /** A row of the tables, with its identity. */
  static final class Row {
    Long id;
    Text name;
    Double price;
    RecordIdentifier ROW__ID;

    Row(long id, String name, RecordIdentifier at) {
      this.id = id;
      this.name = name == null ? null : new Text(name);
      this.price = id % 7 == 3 ? null : id / 8.0;
      this.ROW__ID = at;
    }

    String json() {
      String text = name == null ? "null" : "\"" + name + "\"";
      return "[" + id + ", " + text + ", " + price + "]";
    }
  }

  /** A row of a table that is not transactional yet. */
  static final class PlainRow {
    Long id;
    Text name;
    Double price;

    PlainRow(Row row) {
      id = row.id;
      name = row.name;
      price = row.price;
    }
  }

  private final Path local;
  private final org.apache.hadoop.fs.Path root;
  private final JobConf conf = new JobConf(new HiveConf());
  private final FileSystem files;
  private final List<String> lists = new ArrayList<>();
  /** Whether there are files that the batch reader only reads in a planned job: files without identities, or never closed. */
  private boolean rowsAlone;

  private Acid(Path dir, String name) throws IOException {
    local = Files.createDirectories(dir.resolve(name));
    root = new org.apache.hadoop.fs.Path(local.toUri());
    conf.set("fs.defaultFS", "file:///");
    conf.setBoolean(hive_metastoreConstants.TABLE_IS_TRANSACTIONAL, true);
    conf.set(IOConstants.SCHEMA_EVOLUTION_COLUMNS, "id,name,price");
    conf.set(IOConstants.SCHEMA_EVOLUTION_COLUMNS_TYPES, "bigint,string,double");
    conf.setInt(hive_metastoreConstants.BUCKET_COUNT, BUCKETS);
    conf.set("mapreduce.input.fileinputformat.inputdir", root.toString());
    // All compactions are visible.
    conf.set(ValidTxnList.VALID_TXNS_KEY, new ValidReadTxnList().writeToString());
    AcidUtils.setAcidOperationalProperties(conf, true, AcidUtils.AcidOperationalProperties.getDefault());
    files = FileSystem.getLocal(conf).getRawFileSystem();
  }

  // --- writing ---

  private AcidOutputFormat.Options options(long write, int statement, int bucket) {
    return new AcidOutputFormat.Options(conf).filesystem(files).bucket(bucket).minimumWriteId(write)
        .maximumWriteId(write).statementId(statement).inspector(ROW).recordIdColumn(3).finalDestination(root);
  }

  private static int bucketOf(long id) {
    return (int) (id % BUCKETS);
  }

  private void insert(long write, int statement, long from, long to, String name) throws IOException {
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
      RecordUpdater updater = new OrcOutputFormat().getRecordUpdater(root, options(write, statement, bucket));
      for (long id = from; id < to; id++) {
        if (bucketOf(id) == bucket) {
          updater.insert(write, new Row(id, id % 5 == 4 ? null : name + " " + id, null));
        }
      }
      updater.close(false);
    }
  }

  /** Changes or deletes the rows that a statement of this write sees and `which` selects, in the order of their identities. */
  private void change(long write, int statement, Predicate<Row> which, String name, String list) throws Exception {
    List<Row> rows = new ArrayList<>(read(list).stream().filter(which).toList());
    rows.sort(Comparator.comparing(row -> row.ROW__ID));
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
      RecordUpdater updater = new OrcOutputFormat().getRecordUpdater(root, options(write, statement, bucket));
      for (Row row : rows) {
        int property = row.ROW__ID.getBucketProperty();
        if (BucketCodec.determineVersion(property).decodeWriterId(property) != bucket) {
          continue;
        }
        if (name != null) {
          updater.update(write, new Row(row.id, name + " " + row.id, row.ROW__ID));
        } else {
          updater.delete(write, row);
        }
      }
      updater.close(false);
    }
  }

  private void plain(String path, long from, long to, String name) throws IOException {
    var options = OrcFile.writerOptions(conf).fileSystem(files).inspector(PLAIN);
    var writer = OrcFile.createWriter(new org.apache.hadoop.fs.Path(root, path), options);
    for (long id = from; id < to; id++) {
      writer.addRow(new PlainRow(new Row(id, name + " " + id, null)));
    }
    writer.close();
    rowsAlone = true;
  }

  /** A base of all rows, as an overwrite writes it. */
  private void overwrite(long write, long from, long to, String name) throws IOException {
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
      RecordUpdater updater =
          new OrcOutputFormat().getRecordUpdater(root, options(write, 0, bucket).writingBase(true));
      for (long id = from; id < to; id++) {
        if (bucketOf(id) == bucket) {
          updater.insert(write, new Row(id, name + " " + id, null));
        }
      }
      updater.close(false);
    }
  }

  /** A batch of transactions in one file, each flushed; the last is never committed. */
  private void stream(long first, long last, long from) throws IOException {
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
      AcidOutputFormat.Options options = options(first, -1, bucket).maximumWriteId(last);
      RecordUpdater updater = new OrcOutputFormat().getRecordUpdater(root, options);
      long id = from;
      for (long write = first; write <= last; write++) {
        for (int i = 0; i < 6; i++, id++) {
          if (bucketOf(id) == bucket) {
            updater.insert(write, new Row(id, "streamed " + id, null));
          }
        }
        updater.flush();
      }
      // The writing process is gone: the file ends at the last flush.
    }
    rowsAlone = true;
  }

  /** The tasks of a compaction, for each bucket. */
  private void compact(boolean major, long highest, long visible, String list) throws Exception {
    ValidWriteIdList valid = ValidReaderWriteIdList.fromValue(list);
    AcidDirectory state = AcidUtils.getAcidState(files, root, conf, valid, null, false);
    var deltas = state.getCurrentDirectories().stream().map(AcidUtils.ParsedDelta::getPath)
        .toArray(org.apache.hadoop.fs.Path[]::new);
    long lowest = state.getCurrentDirectories().stream().mapToLong(AcidUtils.ParsedDelta::getMinWriteId).min().orElse(1);
    org.apache.hadoop.fs.Path base = state.getBaseDirectory();
    if (major && base == null && !state.getOriginalFiles().isEmpty()) {
      base = root;
    }
    var temporary = new org.apache.hadoop.fs.Path(root, "_tmp_" + visible);
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
      AcidInputFormat.RawReader<OrcStruct> reader = new OrcInputFormat()
          .getRawReader(conf, major, bucket, valid, major ? base : null, deltas, new HashMap<>());
      AcidOutputFormat.Options options = new AcidOutputFormat.Options(conf).filesystem(files).bucket(bucket)
          .inspector(reader.getObjectInspector()).isCompressed(true).writingBase(major).reporter(Reporter.NULL)
          .minimumWriteId(major ? 0 : lowest).maximumWriteId(highest).statementId(-1).visibilityTxnId(visible);
      var inserts = new OrcOutputFormat().getRawRecordWriter(temporary, options);
      var deletes = major ? null : new OrcOutputFormat().getRawRecordWriter(temporary, options.clone().writingDeleteDelta(true));
      RecordIdentifier key = reader.createKey();
      OrcStruct value = reader.createValue();
      while (reader.next(key, value)) {
        boolean deleted = ((IntWritable) field(value, 0)).get() == DELETE;
        if (!deleted) {
          inserts.write(value);
        } else if (!major) {
          deletes.write(value);
        }
      }
      inserts.close(false);
      if (deletes != null) {
        deletes.close(false);
      }
      reader.close();
    }
    for (var made : files.listStatus(temporary)) {
      files.rename(made.getPath(), new org.apache.hadoop.fs.Path(root, made.getPath().getName()));
    }
    files.delete(temporary, true);
  }

  private static Object field(OrcStruct struct, int i) {
    StructObjectInspector inspector = (StructObjectInspector) OrcStruct.createObjectInspector(EVENT);
    return inspector.getStructFieldData(struct, inspector.getAllStructFieldRefs().get(i));
  }

  private static final org.apache.hadoop.hive.serde2.typeinfo.TypeInfo EVENT =
      org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils.getTypeInfoFromTypeString(
          "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
              + "row:struct<id:bigint,name:string,price:double>>");

  // --- reading ---

  /** What Hive reads of the table by a list of write ids, row by row. */
  private List<Row> read(String list) throws Exception {
    JobConf job = new JobConf(conf);
    job.set(ValidWriteIdList.VALID_WRITEIDS_KEY, list);
    List<Row> rows = new ArrayList<>();
    OrcInputFormat format = new OrcInputFormat();
    if (job.get("transactional_properties", "").equals("insert_only")) {
      // The rows of such a table have no identities: Hive selects the directories and reads their files like
      // the files of any table.
      List<org.apache.hadoop.fs.Path> paths = new ArrayList<>();
      List<org.apache.hadoop.fs.Path> originals = new ArrayList<>();
      HiveInputFormat.processPathsForMmRead(List.of(root), job, ValidReaderWriteIdList.fromValue(list), paths, originals);
      paths.addAll(originals);
      job.set("mapreduce.input.fileinputformat.inputdir", String.join(",", paths.stream().map(Object::toString).toList()));
      job.setBoolean(hive_metastoreConstants.TABLE_IS_TRANSACTIONAL, false);
      AcidUtils.setAcidOperationalProperties(job, false, null);
    }
    for (InputSplit split : format.getSplits(job, 1)) {
      var reader = format.getRecordReader(split, job, Reporter.NULL);
      OrcStruct value = reader.createValue();
      StructObjectInspector inspector = (StructObjectInspector) OrcStruct.createObjectInspector(
          org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils.getTypeInfoFromTypeString(
              "struct<id:bigint,name:string,price:double>"));
      while (reader.next(NullWritable.get(), value)) {
        List<Object> fields = new ArrayList<>();
        for (StructField field : inspector.getAllStructFieldRefs()) {
          fields.add(inspector.getStructFieldData(value, field));
        }
        RecordIdentifier at = null;
        if (reader instanceof AcidInputFormat.AcidRecordReader<?, ?> acid) {
          RecordIdentifier id = acid.getRecordIdentifier();
          at = new RecordIdentifier(id.getWriteId(), id.getBucketProperty(), id.getRowId());
        }
        Row row = new Row(Long.parseLong(fields.get(0).toString()), null, at);
        row.name = fields.get(1) == null ? null : new Text(fields.get(1).toString());
        row.price = fields.get(2) == null ? null : Double.valueOf(fields.get(2).toString());
        rows.add(row);
      }
      reader.close();
    }
    return rows;
  }

  /** What Hive's other reader, which jobs use by default, reads by the same list. */
  private List<String> vectorized(String list) throws Exception {
    JobConf job = new JobConf(conf);
    job.set(ValidWriteIdList.VALID_WRITEIDS_KEY, list);
    List<Row> rows = new ArrayList<>();
    for (InputSplit split : new OrcInputFormat().getSplits(job, 1)) {
      for (Object[] values : Vectorized.rows(split, job)) {
        Row row = new Row((Long) values[0], (String) values[1], null);
        row.price = (Double) values[2];
        rows.add(row);
      }
    }
    return rows.stream().sorted(Comparator.comparing(row -> row.id)).map(Row::json).toList();
  }

  /** Registers a list of write ids with which Hive reads the table, once everything is written. */
  private void truth(String list) {
    lists.add(list);
  }

  private void finish() throws Exception {
    for (int i = 0; i < lists.size(); i++) {
      StringBuilder out = new StringBuilder("{\"list\": \"" + lists.get(i) + "\"}\n");
      List<Row> rows = read(lists.get(i));
      rows.sort(Comparator.comparing(row -> row.id));
      if (!rowsAlone && !vectorized(lists.get(i)).equals(rows.stream().map(Row::json).toList())) {
        throw new IllegalStateException("Hive's two readers differ: " + local + " by " + lists.get(i));
      }
      rows.forEach(row -> out.append(row.json()).append('\n'));
      Files.writeString(local.resolveSibling(local.getFileName() + "." + i + ".jsonl"), out, StandardCharsets.UTF_8);
    }
  }

  /** All writes up to a write, except aborted writes. */
  private static String upTo(long highest, long... aborted) {
    StringBuilder list = new StringBuilder("default.t:" + highest + ":" + Long.MAX_VALUE + "::");
    for (int i = 0; i < aborted.length; i++) {
      list.append(i == 0 ? "" : ",").append(aborted[i]);
    }
    return list.toString();
  }

  // --- tables ---

  /**
   * Inserts, updates, deletes, a merge of two statements, an aborted write, and a write after the aborted write.
   */
  private void changes() throws Exception {
    insert(1, 0, 0, 40, "one");
    change(2, 0, row -> row.id % 3 == 0, "two", upTo(1));
    change(3, 0, row -> row.id % 8 == 1, null, upTo(2));
    change(4, 0, row -> row.id % 4 == 2, "merged", upTo(3));
    insert(4, 1, 40, 50, "merged");
    change(5, 0, row -> true, "aborted", upTo(4));
    insert(5, 1, 50, 60, "aborted");
    change(6, 0, row -> row.id % 10 == 6, "six", upTo(5, 5));
    change(7, 0, row -> row.id % 10 == 8, null, upTo(6, 5));
  }

  public static void main(String[] args) throws Exception {
    Path dir = Path.of(args[0]);
    Acid changes = new Acid(dir, "changes");
    changes.changes();
    for (long highest = 1; highest <= 7; highest++) {
      changes.truth(upTo(highest, highest < 5 ? new long[0] : new long[] {5}));
    }
    changes.truth(upTo(7));
    changes.finish();

    Acid minor = new Acid(dir, "minor");
    minor.changes();
    minor.compact(false, 6, 21, upTo(6, 5));
    minor.truth(upTo(7, 5));
    minor.truth(upTo(4));
    minor.finish();

    Acid major = new Acid(dir, "major");
    major.changes();
    major.compact(true, 4, 22, upTo(4));
    major.truth(upTo(4));
    major.truth(upTo(7, 5));
    major.compact(false, 7, 23, upTo(7, 5));
    major.change(8, 0, row -> row.id == 47 || row.id == 2, "eight", upTo(7, 5));
    major.truth(upTo(8, 5));
    major.compact(true, 8, 24, upTo(8, 5));
    major.truth(upTo(8, 5));
    major.finish();

    Acid originals = new Acid(dir, "originals");
    originals.plain("000000_0", 0, 20, "plain");
    originals.plain("000000_0_copy_1", 20, 30, "copied");
    originals.plain("000001_0", 31, 40, "plain");
    originals.truth(upTo(0));
    originals.change(1, 0, row -> row.id % 4 == 0, "changed", upTo(0));
    originals.change(2, 0, row -> row.id % 5 == 3, null, upTo(1));
    originals.insert(3, 0, 100, 110, "new");
    originals.truth(upTo(3));
    originals.truth(upTo(1));
    originals.finish();

    Acid converted = new Acid(dir, "converted");
    converted.plain("000000_0", 0, 20, "plain");
    converted.plain("000001_0", 21, 40, "plain");
    converted.change(1, 0, row -> row.id % 4 == 0, "changed", upTo(0));
    converted.change(2, 0, row -> row.id % 5 == 3, null, upTo(1));
    converted.compact(true, 2, 25, upTo(2));
    converted.change(3, 0, row -> row.id % 6 == 1, "again", upTo(2));
    converted.truth(upTo(3));
    converted.truth(upTo(2));
    converted.finish();

    Acid loaded = new Acid(dir, "loaded");
    loaded.insert(1, 0, 0, 10, "first");
    loaded.plain("delta_0000002_0000002_0000/000000_0", 10, 20, "loaded");
    loaded.plain("delta_0000002_0000002_0000/000001_0", 21, 30, "loaded");
    loaded.truth(upTo(2));
    loaded.change(3, 0, row -> row.id > 12 && row.id % 2 == 0, "changed", upTo(2));
    loaded.change(4, 0, row -> row.id == 15 || row.id == 23, null, upTo(3));
    loaded.truth(upTo(4));
    loaded.truth(upTo(4, 2, 3, 4));
    loaded.finish();

    Acid inserts = new Acid(dir, "insert_only");
    inserts.conf.set("transactional_properties", "insert_only");
    inserts.conf.setBoolean("hive.mm.allow.originals", true); // otherwise Hive moves them when the table is converted
    inserts.plain("000000_0", 0, 5, "before");
    inserts.plain("delta_0000001_0000001_0000/000000_0", 5, 10, "one");
    inserts.plain("delta_0000001_0000001_0000/000001_0", 10, 14, "one");
    inserts.plain("delta_0000002_0000002_0000/000000_0", 14, 20, "aborted");
    inserts.plain("base_0000003/000000_0", 20, 30, "over");
    inserts.plain("delta_0000004_0000004_0000/000000_0", 30, 33, "four");
    inserts.plain("delta_0000004_0000004_0001/000000_0", 33, 36, "four, next");
    inserts.truth(upTo(1));
    inserts.truth(upTo(2, 2));
    inserts.truth(upTo(4, 2));
    inserts.truth(upTo(4, 2, 3));
    inserts.finish();

    Acid overwritten = new Acid(dir, "overwritten");
    overwritten.insert(1, 0, 0, 10, "first");
    overwritten.overwrite(2, 10, 20, "over");
    overwritten.change(3, 0, row -> row.id == 13, "changed", upTo(2));
    overwritten.truth(upTo(3));
    overwritten.truth(upTo(1));
    overwritten.truth(upTo(3, 2, 3));
    overwritten.finish();

    Acid streamed = new Acid(dir, "streamed");
    streamed.stream(1, 4, 0);
    Files.write(dir.resolve("streamed/delta_0000001_0000004/bucket_00000"), new byte[777], StandardOpenOption.APPEND);
    streamed.change(5, 0, row -> row.id % 5 == 0, "changed", upTo(4));
    streamed.truth(upTo(5));
    streamed.truth(upTo(5, 3));
    streamed.truth("default.t:5:3:3:");
    streamed.finish();
    System.exit(0);
  }
}
