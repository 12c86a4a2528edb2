import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.kudu.ColumnSchema;
import org.apache.kudu.ColumnSchema.ColumnSchemaBuilder;
import org.apache.kudu.ColumnSchema.Encoding;
import org.apache.kudu.ColumnTypeAttributes.ColumnTypeAttributesBuilder;
import org.apache.kudu.Schema;
import org.apache.kudu.Type;
import org.apache.kudu.client.AlterTableOptions;
import org.apache.kudu.client.AsyncKuduScanner.ReadMode;
import org.apache.kudu.client.CreateTableOptions;
import org.apache.kudu.client.KuduClient;
import org.apache.kudu.client.KuduScanner;
import org.apache.kudu.client.KuduSession;
import org.apache.kudu.client.KuduTable;
import org.apache.kudu.client.Operation;
import org.apache.kudu.client.OperationResponse;
import org.apache.kudu.client.PartialRow;
import org.apache.kudu.client.RowResult;
import org.apache.kudu.client.SessionConfiguration.FlushMode;

/** Fills tables of a running Kudu and says what Kudu reads from them. One thread, one pass, run by make.py. */
public final class Main {
  private static KuduClient client;
  private static KuduSession session;
  private static final List<Long> snapshots = new ArrayList<>();

  /** usage: Main MASTER fixtures DIR WAIT_MS REPLICAS TABLE... | MASTER bench ROWS | MASTER scan TABLE */
  public static void main(String[] args) throws Exception {
    client = new KuduClient.KuduClientBuilder(args[0]).defaultOperationTimeoutMs(120_000).build();
    session = client.newSession();
    session.setFlushMode(FlushMode.MANUAL_FLUSH);
    session.setMutationBufferSpace(10_000);
    switch (args[1]) {
      case "fixtures" -> fixtures(Path.of(args[2]), Long.parseLong(args[3]), Integer.parseInt(args[4]),
          List.of(args).subList(5, args.length));
      case "bench" -> bench(Integer.parseInt(args[2]));
      case "scan" -> timedScan(args[2]);
      default -> throw new IllegalArgumentException(args[1]);
    }
    client.close();
  }

  private static ColumnSchemaBuilder column(String name, Type type) {
    return new ColumnSchemaBuilder(name, type);
  }

  private static ColumnSchema decimal(String name, int precision, int scale) {
    return column(name, Type.DECIMAL).nullable(true)
        .typeAttributes(new ColumnTypeAttributesBuilder().precision(precision).scale(scale).build()).build();
  }

  // --- fixtures ---

  private static void fixtures(Path to, long wait, int replicas, List<String> tables) throws Exception {
    boolean withEvents = tables.contains("events");
    if (withEvents) {
      createEvents(replicas);
    }
    if (tables.contains("numbers")) {
      createNumbers(replicas);
    }
    for (int phase = 1; phase <= 4; phase++) {
      if (withEvents) {
        changeEvents(phase);
      }
      if (tables.contains("numbers")) {
        changeNumbers(phase);
      }
      flushed(wait);
    }
    for (String table : tables) {
      for (int s = 0; s < snapshots.size(); s++) {
        dump(table, snapshots.get(s), to.resolve(table + ".s" + (s + 1) + ".jsonl"));
      }
    }
  }

  private static void createNumbers(int replicas) throws Exception {
    Schema numbers = new Schema(List.of(
        column("k", Type.INT32).key(true).desiredBlockSize(256).build(),
        column("v", Type.STRING).nullable(true).desiredBlockSize(256).encoding(Encoding.DICT_ENCODING).build()));
    client.createTable("numbers", numbers, new CreateTableOptions()
        .addHashPartitions(List.of("k"), 2).setNumReplicas(replicas));
  }

  private static void changeNumbers(int phase) throws Exception {
    KuduTable table = client.openTable("numbers");
    for (int i = 0; phase == 1 && i < 400; i++) {
      Operation insert = table.newInsert();
      insert.getRow().addInt("k", i * 3);
      if (i % 13 != 5) {
        insert.getRow().addString("v", "value " + i % 40);
      }
      apply(insert);
    }
    for (int i = 0; phase == 2 && i < 400; i += 9) {
      Operation change = i % 2 == 0 ? table.newUpdate() : table.newDelete();
      change.getRow().addInt("k", i * 3);
      if (i % 2 == 0) {
        change.getRow().addString("v", "changed " + i);
      }
      apply(change);
    }
  }

  private static void createEvents(int replicas) throws Exception {
    List<ColumnSchema> columns = List.of(
        column("region", Type.STRING).key(true).build(),
        column("id", Type.INT64).key(true).build(),
        column("amount", Type.INT64).build(),
        column("flag", Type.BOOL).nullable(true).build(),
        column("small", Type.INT8).nullable(true).encoding(Encoding.RLE).build(),
        column("count", Type.INT32).nullable(true).encoding(Encoding.PLAIN_ENCODING).build(),
        column("ratio", Type.FLOAT).nullable(true).build(),
        column("rate", Type.DOUBLE).build(),
        column("label", Type.STRING).nullable(true).build(),
        column("note", Type.STRING).nullable(true).build(),
        column("path", Type.STRING).nullable(true).encoding(Encoding.PREFIX_ENCODING).build(),
        column("raw", Type.BINARY).nullable(true).encoding(Encoding.PLAIN_ENCODING).build(),
        column("at", Type.UNIXTIME_MICROS).nullable(true).build(),
        column("day", Type.DATE).nullable(true).build(),
        decimal("price", 9, 2),
        decimal("sum", 18, 4),
        decimal("big", 30, 6),
        column("code", Type.VARCHAR).nullable(true)
            .typeAttributes(new ColumnTypeAttributesBuilder().length(6).build()).build());
    client.createTable("events", new Schema(columns), new CreateTableOptions()
        .setRangePartitionColumns(List.of("region")).setNumReplicas(replicas));
  }

  private static void changeEvents(int phase) throws Exception {
    KuduTable events = client.openTable("events");
    switch (phase) {
      case 1 -> {
        for (int i = 0; i < 90; i++) {
          apply(event(events.newInsert(), i, 0));
        }
      }
      case 2 -> {
        for (int i = 0; i < 90; i += 7) {
          Operation update = events.newUpdate();
          key(update.getRow(), i);
          update.getRow().addLong("amount", -i);
          update.getRow().addString("label", "changed, longer than it was " + i);
          update.getRow().addDecimal("price", new BigDecimal("-1234567.89"));
          apply(update);
        }
        for (int i = 5; i < 90; i += 11) {
          Operation delete = events.newDelete();
          key(delete.getRow(), i);
          apply(delete);
        }
      }
      case 3 -> {
        for (int i = 5; i < 90; i += 22) {
          apply(event(events.newInsert(), i, 1));
        }
        for (int i = 90; i < 110; i++) {
          apply(event(events.newInsert(), i, 0));
        }
        // Within one memory: inserted, deleted, inserted again.
        apply(event(events.newInsert(), 200, 0));
        Operation gone = events.newDelete();
        key(gone.getRow(), 200);
        apply(gone);
        apply(event(events.newInsert(), 200, 1));
        for (int i = 0; i < 110; i += 14) {
          Operation update = events.newUpdate();
          key(update.getRow(), i);
          update.getRow().setNull("label");
          update.getRow().setNull("big");
          update.getRow().addBoolean("flag", i % 4 == 0);
          update.getRow().addString("note", "of a column to be dropped");
          apply(update);
        }
      }
      default -> {
        client.alterTable("events", new AlterTableOptions()
            .addColumn(column("added", Type.INT32).defaultValue(7).build())
            .addColumn(column("extra", Type.STRING).nullable(true).build())
            .addColumn(decimal("more", 12, 3))
            .dropColumn("note")
            .renameColumn("label", "tag"));
        events = client.openTable("events");
        for (int i = 300; i < 312; i++) {
          Operation insert = event(events.newInsert(), i, 2);
          insert.getRow().addInt("added", i);
          insert.getRow().addString("extra", "extra " + i);
          apply(insert);
        }
        for (int i = 1; i < 90; i += 10) {
          Operation upsert = event(events.newUpsert(), i, 3);
          upsert.getRow().addInt("added", -i);
          apply(upsert);
        }
      }
    }
  }

  private static void apply(Operation operation) throws Exception {
    session.apply(operation);
  }

  /** Writes what was applied, waits until memory is flushed, and remembers the time. */
  private static void flushed(long wait) throws Exception {
    for (OperationResponse response : session.flush()) {
      if (response.hasRowError()) {
        throw new IllegalStateException(response.getRowError().toString());
      }
    }
    Thread.sleep(wait);
    snapshots.add(client.getLastPropagatedTimestamp() + 1);
    Thread.sleep(50);
  }

  private static void key(PartialRow row, int i) {
    row.addString("region", i % 3 == 0 ? "" : i % 3 == 1 ? "north\0east" : "südwest");
    row.addLong("id", i - 40L);
  }

  private static Operation event(Operation operation, int i, int version) {
    PartialRow row = operation.getRow();
    key(row, i);
    row.addLong("amount", i * 1_000_003L + version);
    row.addDouble("rate", i / 8.0);
    String label = version >= 2 ? "tag" : "label";
    for (String name : List.of("flag", "small", "count", "ratio", label, "path", "raw", "at", "day", "price", "sum",
        "big", "code")) {
      if ((i + name.length()) % 6 == 0) {
        row.setNull(name);
        continue;
      }
      switch (name) {
        case "flag" -> row.addBoolean(name, i % 5 < 2);
        case "small" -> row.addByte(name, (byte) (i / 9 - 3));
        case "count" -> row.addInt(name, i * 31 - 77);
        case "ratio" -> row.addFloat(name, i / 3.0f);
        case "path" -> row.addString(name, String.format("/warehouse/part=%02d/%d", i / 10, i));
        case "raw" -> row.addBinary(name, new byte[] {(byte) i, 0, (byte) (i * 7)});
        case "at" -> row.addLong(name, 1_700_000_000_000_000L + i * 1_000_001L);
        case "day" -> row.addDate(name, java.sql.Date.valueOf(java.time.LocalDate.ofEpochDay(i * 200L - 5000)));
        case "price" -> row.addDecimal(name, BigDecimal.valueOf(i * 101 - 5000, 2));
        case "sum" -> row.addDecimal(name, BigDecimal.valueOf(i * 1_000_000_007L - 5000, 4));
        case "big" -> row.addDecimal(name, new BigDecimal("123456789012345678.000001").multiply(BigDecimal.valueOf(i - 50)));
        case "code" -> row.addVarchar(name, "Ü" + i);
        default -> row.addString(name, i % 4 == 0 ? "" : "label " + i % 5 + (version == 1 ? " again" : ""));
      }
    }
    return operation;
  }

  /** First a line with the schema and the snapshot, then one for each row. */
  private static void dump(String name, long snapshot, Path to) throws Exception {
    KuduTable table = client.openTable(name);
    StringBuilder out = new StringBuilder("{\"snapshot\": " + snapshot + ", \"columns\": [");
    String comma = "";
    for (ColumnSchema c : table.getSchema().getColumns()) {
      String size = c.getTypeAttributes() == null ? ""
          : ", \"precision\": " + c.getTypeAttributes().getPrecision() + ", \"scale\": " + c.getTypeAttributes().getScale();
      out.append(comma).append("{\"name\": \"" + c.getName() + "\", \"type\": \"" + c.getType().getName() + "\"" + size + "}");
      comma = ", ";
    }
    out.append("]}\n");
    KuduScanner scanner = client.newScannerBuilder(table).readMode(ReadMode.READ_AT_SNAPSHOT)
        .snapshotTimestampRaw(snapshot).build();
    while (scanner.hasMoreRows()) {
      for (RowResult row : scanner.nextRows()) {
        out.append('[');
        for (int i = 0; i < row.getSchema().getColumnCount(); i++) {
          out.append(i == 0 ? "" : ", ").append(row.isNull(i) ? "null" : value(row, i));
        }
        out.append("]\n");
      }
    }
    Files.writeString(to, out);
  }

  private static String value(RowResult row, int i) {
    return switch (row.getColumnType(i)) {
      case BOOL -> String.valueOf(row.getBoolean(i));
      case INT8 -> String.valueOf(row.getByte(i));
      case INT16 -> String.valueOf(row.getShort(i));
      case INT32 -> String.valueOf(row.getInt(i));
      case INT64, UNIXTIME_MICROS -> String.valueOf(row.getLong(i));
      case FLOAT -> String.valueOf(row.getFloat(i));
      case DOUBLE -> String.valueOf(row.getDouble(i));
      case DATE -> "\"" + row.getDate(i) + "\"";
      case DECIMAL -> "\"" + row.getDecimal(i).toPlainString() + "\"";
      case STRING -> base64(row.getString(i).getBytes(StandardCharsets.UTF_8));
      case VARCHAR -> base64(row.getVarchar(i).getBytes(StandardCharsets.UTF_8));
      case BINARY -> base64(row.getBinaryCopy(i));
      default -> throw new IllegalStateException(row.getColumnType(i).getName());
    };
  }

  private static String base64(byte[] bytes) {
    return "\"" + Base64.getEncoder().encodeToString(bytes) + "\"";
  }

  // --- bench ---

  /** Two tables of the same rows; in `updated`, a tenth of them are changed afterwards. */
  private static void bench(int rows) throws Exception {
    Schema schema = new Schema(List.of(
        column("id", Type.INT64).key(true).build(),
        column("n", Type.INT32).build(),
        column("d", Type.DOUBLE).build(),
        column("label", Type.STRING).build(),
        column("name", Type.STRING).nullable(true).build(),
        column("flag", Type.BOOL).build(),
        column("at", Type.UNIXTIME_MICROS).build(),
        decimal("price", 30, 6)));
    session.setFlushMode(FlushMode.AUTO_FLUSH_BACKGROUND);
    session.setMutationBufferSpace(20_000);
    for (String name : List.of("plain", "updated")) {
      client.createTable(name, schema, new CreateTableOptions().setRangePartitionColumns(List.of("id")).setNumReplicas(1));
      KuduTable table = client.openTable(name);
      for (int i = 0; i < rows; i++) {
        Operation insert = table.newInsert();
        PartialRow row = insert.getRow();
        row.addLong("id", i);
        row.addInt("n", (int) (i * 2654435761L));
        row.addDouble("d", Math.sqrt(i));
        row.addString("label", "label " + (i * 7919L % 100));
        if (i % 10 == 3) {
          row.setNull("name");
        } else {
          row.addString("name", "customer number " + i);
        }
        row.addBoolean("flag", i / 50 % 2 == 0);
        row.addLong("at", 1_700_000_000_000_000L + i * 1_000L);
        row.addDecimal("price", BigDecimal.valueOf(i * 1_000_003L, 6));
        session.apply(insert);
      }
      session.flush();
    }
    Thread.sleep(45_000);
    KuduTable table = client.openTable("updated");
    for (int i = 0; i < rows; i += 10) {
      Operation update = table.newUpdate();
      update.getRow().addLong("id", i);
      update.getRow().addInt("n", -i);
      update.getRow().addString("name", "changed customer " + i);
      session.apply(update);
    }
    session.flush();
    Thread.sleep(15_000);
    timedScan("plain");
  }

  /** Reads all values of a table five times and prints how long each pass took. */
  private static void timedScan(String name) throws Exception {
    KuduTable table = client.openTable(name);
    for (int pass = 0; pass < 5; pass++) {
      long start = System.nanoTime();
      long rows = 0;
      long sum = 0;
      KuduScanner scanner = client.newScannerBuilder(table).batchSizeBytes(1 << 20).build();
      while (scanner.hasMoreRows()) {
        for (RowResult row : scanner.nextRows()) {
          sum += row.getLong(0) + row.getInt(1) + (long) row.getDouble(2) + row.getString(3).length();
          sum += row.isNull(4) ? 0 : row.getString(4).length();
          sum += row.getBoolean(5) ? 1 : 0;
          sum += row.getLong(6) + row.getDecimal(7).signum();
          rows++;
        }
      }
      System.out.printf("java-client %d rows %.1f ms (sum %d)%n", rows, (System.nanoTime() - start) / 1e6, sum);
    }
  }
}
