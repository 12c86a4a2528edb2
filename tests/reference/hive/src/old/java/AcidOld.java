import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Predicate;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hive.common.ValidReadTxnList;
import org.apache.hadoop.hive.common.ValidTxnList;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.io.AcidInputFormat;
import org.apache.hadoop.hive.ql.io.AcidOutputFormat;
import org.apache.hadoop.hive.ql.io.AcidUtils;
import org.apache.hadoop.hive.ql.io.IOConstants;
import org.apache.hadoop.hive.ql.io.RecordIdentifier;
import org.apache.hadoop.hive.ql.io.RecordUpdater;
import org.apache.hadoop.hive.ql.io.orc.OrcInputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcStruct;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;

/** As Acid, for Hive 2: transactions in place of write ids, updates and deletes beside inserts in one delta. */
public final class AcidOld {
  private static final int BUCKETS = 2;
  private static final int DELETE = 2;
  private static final StructObjectInspector ROW = (StructObjectInspector) ObjectInspectorFactory
      .getReflectionObjectInspector(Row.class, ObjectInspectorFactory.ObjectInspectorOptions.JAVA);
  private static final StructObjectInspector READ = inspector("struct<id:bigint,name:string,price:double>");
  private static final StructObjectInspector EVENT = inspector(
      "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
          + "row:struct<id:bigint,name:string,price:double>>");

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
      return "[" + id + ", " + (name == null ? "null" : "\"" + name + "\"") + ", " + price + "]";
    }
  }

  private final Path local;
  private final org.apache.hadoop.fs.Path root;
  private final JobConf conf = new JobConf(new HiveConf());
  private final FileSystem files;
  private int truths;

  private AcidOld(Path dir, String name) throws IOException {
    local = Files.createDirectories(dir.resolve(name));
    root = new org.apache.hadoop.fs.Path(local.toUri());
    conf.set("fs.defaultFS", "file:///");
    conf.set(IOConstants.SCHEMA_EVOLUTION_COLUMNS, "id,name,price");
    conf.set(IOConstants.SCHEMA_EVOLUTION_COLUMNS_TYPES, "bigint,string,double");
    conf.setInt("bucket_count", BUCKETS);
    conf.set("mapreduce.input.fileinputformat.inputdir", root.toString());
    AcidUtils.setTransactionalTableScan(conf, true);
    AcidUtils.setAcidOperationalProperties(conf, AcidUtils.AcidOperationalProperties.getLegacy());
    files = FileSystem.getLocal(conf).getRawFileSystem();
  }

  private static StructObjectInspector inspector(String type) {
    return (StructObjectInspector) OrcStruct.createObjectInspector(TypeInfoUtils.getTypeInfoFromTypeString(type));
  }

  private RecordUpdater updater(long transaction, int bucket) throws IOException {
    return new OrcOutputFormat().getRecordUpdater(root, new AcidOutputFormat.Options(conf).filesystem(files).bucket(bucket)
        .minimumTransactionId(transaction).maximumTransactionId(transaction).statementId(0).inspector(ROW)
        .recordIdColumn(3).finalDestination(root));
  }

  private void insert(long transaction, long from, long to, String name) throws IOException {
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
      RecordUpdater updater = updater(transaction, bucket);
      for (long id = from; id < to; id++) {
        if (id % BUCKETS == bucket) {
          updater.insert(transaction, new Row(id, id % 5 == 4 ? null : name + " " + id, null));
        }
      }
      updater.close(false);
    }
  }

  private void change(long transaction, Predicate<Row> which, String name, ValidReadTxnList list) throws Exception {
    List<Row> rows = new ArrayList<>(read(list).stream().filter(which).toList());
    rows.sort(Comparator.comparing(row -> row.ROW__ID));
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
      RecordUpdater updater = updater(transaction, bucket);
      for (Row row : rows) {
        if (row.id % BUCKETS != bucket) {
          continue;
        }
        if (name != null) {
          updater.update(transaction, new Row(row.id, name + " " + row.id, row.ROW__ID));
        } else {
          updater.delete(transaction, row);
        }
      }
      updater.close(false);
    }
  }

  private void compact(boolean major, long highest, ValidReadTxnList valid) throws Exception {
    AcidUtils.Directory state = AcidUtils.getAcidState(root, conf, valid);
    var deltas = state.getCurrentDirectories().stream().map(AcidUtils.ParsedDelta::getPath)
        .toArray(org.apache.hadoop.fs.Path[]::new);
    long lowest = state.getCurrentDirectories().stream().mapToLong(AcidUtils.ParsedDelta::getMinTransaction).min().orElse(1);
    var temporary = new org.apache.hadoop.fs.Path(root, "_tmp");
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
      AcidInputFormat.RawReader<OrcStruct> reader = new OrcInputFormat()
          .getRawReader(conf, major, bucket, valid, major ? state.getBaseDirectory() : null, deltas);
      var writer = new OrcOutputFormat().getRawRecordWriter(temporary, new AcidOutputFormat.Options(conf)
          .filesystem(files).bucket(bucket).inspector(reader.getObjectInspector()).isCompressed(true)
          .writingBase(major).reporter(Reporter.NULL).minimumTransactionId(major ? 0 : lowest)
          .maximumTransactionId(highest).statementId(-1));
      RecordIdentifier key = reader.createKey();
      OrcStruct value = reader.createValue();
      while (reader.next(key, value)) {
        var operation = (IntWritable) EVENT.getStructFieldData(value, EVENT.getAllStructFieldRefs().get(0));
        if (!major || operation.get() != DELETE) {
          writer.write(value);
        }
      }
      writer.close(false);
      reader.close();
    }
    for (var made : files.listStatus(temporary)) {
      files.rename(made.getPath(), new org.apache.hadoop.fs.Path(root, made.getPath().getName()));
    }
    files.delete(temporary, true);
  }

  private List<Row> read(ValidReadTxnList list) throws Exception {
    JobConf job = new JobConf(conf);
    job.set(ValidTxnList.VALID_TXNS_KEY, list.writeToString());
    List<Row> rows = new ArrayList<>();
    OrcInputFormat format = new OrcInputFormat();
    for (InputSplit split : format.getSplits(job, 1)) {
      RecordReader<NullWritable, OrcStruct> reader = format.getRecordReader(split, job, Reporter.NULL);
      OrcStruct value = reader.createValue();
      while (reader.next(NullWritable.get(), value)) {
        Object[] fields = READ.getAllStructFieldRefs().stream().map(f -> READ.getStructFieldData(value, f)).toArray();
        RecordIdentifier at = ((AcidInputFormat.AcidRecordReader<?, ?>) reader).getRecordIdentifier();
        at = new RecordIdentifier(at.getTransactionId(), at.getBucketId(), at.getRowId());
        Row row = new Row(Long.parseLong(fields[0].toString()), null, at);
        row.name = fields[1] == null ? null : new Text(fields[1].toString());
        row.price = fields[2] == null ? null : Double.valueOf(fields[2].toString());
        rows.add(row);
      }
      reader.close();
    }
    return rows;
  }

  /** Stores what Hive reads, and the list in the form of Hive 3. */
  private void truth(long highest, long... aborted) throws Exception {
    StringBuilder out = new StringBuilder("{\"list\": \"default.t:" + highest + ":" + Long.MAX_VALUE + "::");
    for (int i = 0; i < aborted.length; i++) {
      out.append(i == 0 ? "" : ",").append(aborted[i]);
    }
    out.append("\"}\n");
    List<Row> rows = read(upTo(highest, aborted));
    rows.sort(Comparator.comparing(row -> row.id));
    rows.forEach(row -> out.append(row.json()).append('\n'));
    String name = local.getFileName() + "." + truths++ + ".jsonl";
    Files.write(local.resolveSibling(name), out.toString().getBytes(StandardCharsets.UTF_8));
  }

  private static ValidReadTxnList upTo(long highest, long... aborted) {
    return new ValidReadTxnList(aborted, highest, Long.MAX_VALUE);
  }

  private void changes() throws Exception {
    insert(1, 0, 40, "one");
    change(2, row -> row.id % 3 == 0, "two", upTo(1));
    change(3, row -> row.id % 8 == 1, null, upTo(2));
    change(4, row -> row.id % 6 == 0, "four", upTo(3));
    change(5, row -> true, "aborted", upTo(4));
    insert(6, 40, 50, "six");
    change(7, row -> row.id % 10 == 2, null, upTo(6, 5));
  }

  public static void main(String[] args) throws Exception {
    Path dir = Path.of(args[0]);
    AcidOld changes = new AcidOld(dir, "hive2_changes");
    changes.changes();
    for (long highest = 1; highest <= 4; highest++) {
      changes.truth(highest);
    }
    changes.truth(7, 5);
    AcidOld minor = new AcidOld(dir, "hive2_minor");
    minor.changes();
    minor.compact(false, 7, upTo(7, 5));
    minor.truth(7, 5);
    AcidOld major = new AcidOld(dir, "hive2_major");
    major.changes();
    major.compact(true, 4, upTo(4));
    major.truth(4);
    major.truth(7, 5);
    System.exit(0);
  }
}
