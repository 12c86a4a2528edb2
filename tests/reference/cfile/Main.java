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

/** Fills tables of a running Kudu and prints what Kudu reads from them. One thread, one pass, run by make.py. */
public final class Main {
  private static KuduClient client;
  private static KuduSession session;
  private static final List<Long> snapshots = new ArrayList<>();

  /** usage: Main MASTER fixtures DIR WAIT_MS REPLICAS TABLE... | MASTER killed PHASE REPLICAS | MASTER logr PHASE | MASTER storm SEED
   * | MASTER transactions
   * | MASTER dump TABLE SNAPSHOT FILE | MASTER bench ROWS | MASTER scan TABLE */
  public static void main(String[] args) throws Exception {
    client = new KuduClient.KuduClientBuilder(args[0]).defaultOperationTimeoutMs(120_000).build();
    session = client.newSession();
    session.setFlushMode(FlushMode.MANUAL_FLUSH);
    session.setMutationBufferSpace(10_000);
    switch (args[1]) {
      case "fixtures" -> fixtures(Path.of(args[2]), Long.parseLong(args[3]), Integer.parseInt(args[4]),
          List.of(args).subList(5, args.length));
      case "killed" -> killed(Integer.parseInt(args[2]), Integer.parseInt(args[3]));
      case "logr" -> logr(Integer.parseInt(args[2]));
      case "transactions" -> transactions();
      case "storm" -> storm(Long.parseLong(args[2]));
      case "dump" -> dump(args[2], Long.parseLong(args[3]), Path.of(args[4]));
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
        // One flush covers all of these changes: the row is inserted, deleted, and inserted again.
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

  /** Flushes the session, waits until memory is flushed to files, and remembers the time. */
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

  /** Writes a line with the schema and the snapshot (0: the latest rows), then a line for each row. */
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
    KuduScanner.KuduScannerBuilder builder = client.newScannerBuilder(table);
    if (snapshot > 0) {
      builder.readMode(ReadMode.READ_AT_SNAPSHOT).snapshotTimestampRaw(snapshot);
    }
    KuduScanner scanner = builder.build();
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

  // --- what a killed server had in memory ---

  /** A phase of changes; prints the time after it. Phase 0 is flushed, the others are not. */
  private static void killed(int phase, int replicas) throws Exception {
    switch (phase) {
      case 0 -> {
        createKilled(replicas);
        KuduTable ledger = client.openTable("ledger");
        for (int i = 0; i < 300; i++) {
          apply(ledgerRow(ledger.newInsert(), i * 2, "flushed " + i % 7));
        }
        KuduTable trips = client.openTable("trips");
        for (int i = 0; i < 60; i++) {
          apply(trip(trips.newInsert(), i, 0));
        }
      }
      case 1 -> {
        KuduTable ledger = client.openTable("ledger");
        for (int i = 0; i < 40; i++) {
          apply(ledgerRow(ledger.newInsert(), i * 2 + 1, i % 5 == 0 ? null : "new " + i));
        }
        for (int i = 0; i < 300; i += 11) {
          Operation update = ledger.newUpdate();
          update.getRow().addInt("k", i * 2);
          update.getRow().addString("v", "changed " + i);
          apply(update);
        }
        for (int i = 4; i < 300; i += 17) {
          apply(ledgerKey(ledger.newDelete(), i * 2));
        }
        // Some of these rows exist, in files or in memory, and some do not; some upserts have only a key.
        for (int i = 0; i < 30; i++) {
          apply(i % 6 == 5 ? ledgerKey(ledger.newUpsert(), i * 3) : ledgerRow(ledger.newUpsert(), i * 3, "upserted " + i));
          apply(ledgerRow(ledger.newInsertIgnore(), i * 5, "ignored?"));
          apply(ledgerKey(ledger.newDeleteIgnore(), 1000 + i));
          Operation update = ledger.newUpdateIgnore();
          update.getRow().addInt("k", i * 7);
          update.getRow().setNull("v");
          update.getRow().addLong("n", -i);
          apply(update);
        }
        flushWithErrors();
        // Two rows are deleted and inserted again: the first is in memory, the second in a file.
        for (int key : new int[] {1, 8}) {
          apply(ledgerKey(ledger.newDelete(), key));
          apply(ledgerRow(ledger.newInsert(), key, "back"));
          Operation update = ledger.newUpdate();
          update.getRow().addInt("k", key);
          update.getRow().addLong("n", 99);
          apply(update);
        }
        apply(ledgerKey(ledger.newDelete(), 3));
        // Errors of rows do not end the batch.
        apply(ledgerRow(ledger.newInsert(), 5, "there already"));
        apply(ledgerKey(ledger.newDelete(), 4001));
        KuduTable notes = client.openTable("notes");
        for (int i = 0; i < 12; i++) {
          Operation insert = notes.newInsert();
          insert.getRow().addString("topic", "topic " + i % 3);
          insert.getRow().addString("text", "note " + i);
          apply(insert);
        }
      }
      case 2 -> {
        KuduTable trips = client.openTable("trips");
        for (int i = 0; i < 60; i += 5) {
          Operation update = trips.newUpdate();
          tripKey(update.getRow(), i);
          update.getRow().addDouble("km", i / 3.0);
          update.getRow().setNull("fare");
          apply(update);
        }
        for (int i = 60; i < 75; i++) {
          apply(trip(trips.newInsert(), i, 1));
        }
        Operation delete = trips.newDelete();
        tripKey(delete.getRow(), 12);
        apply(delete);
        flushWithErrors();
        client.alterTable("trips", new AlterTableOptions()
            .addColumn(column("tip", Type.INT32).defaultValue(3).build())
            .addColumn(column("note", Type.STRING).nullable(true).build())
            .renameColumn("driver", "person")
            .dropColumn("open"));
        trips = client.openTable("trips");
        for (int i = 70; i < 90; i++) {
          Operation upsert = trip(trips.newUpsert(), i, 2);
          if (i % 2 == 0) {
            upsert.getRow().addInt("tip", i);
            upsert.getRow().addString("note", "note of " + i);
          }
          apply(upsert);
        }
        for (int i = 0; i < 60; i += 9) {
          Operation update = trips.newUpdate();
          tripKey(update.getRow(), i);
          update.getRow().addString("person", "");
          update.getRow().addInt("tip", -i);
          apply(update);
        }
      }
      default -> {
        KuduTable ledger = client.openTable("ledger");
        for (int i = 700; i < 760; i++) {
          apply(ledgerRow(ledger.newInsert(), i, "last " + i));
        }
        apply(ledgerKey(ledger.newDelete(), 10));
        KuduTable trips = client.openTable("trips");
        Operation back = trip(trips.newInsert(), 12, 2);
        apply(back);
      }
    }
    flushWithErrors();
    System.out.println(client.getLastPropagatedTimestamp() + 1);
    Thread.sleep(50);
  }

  /** Rows of transactions: one committed and changed later, one rolled back, one never ended. */
  private static void transactions() throws Exception {
    KuduTable ledger = client.openTable("ledger");
    for (int t = 0; t < 3; t++) {
      // An open transaction locks the tablets that it writes to.
      if (t == 2) {
        apply(ledgerKey(ledger.newDelete(), 2003));
        Operation update = ledger.newUpdate();
        update.getRow().addInt("k", 2004);
        update.getRow().addString("v", "changed later");
        apply(update);
        flushWithErrors();
      }
      org.apache.kudu.client.KuduTransaction transaction = client.newTransaction();
      KuduSession own = transaction.newKuduSession();
      own.setFlushMode(FlushMode.MANUAL_FLUSH);
      for (int i = 0; i < 20; i++) {
        own.apply(ledgerRow(ledger.newInsert(), 2000 + 100 * t + i, "of transaction " + t));
      }
      for (OperationResponse response : own.flush()) {
        if (response.hasRowError()) {
          throw new IllegalStateException(response.getRowError().toString());
        }
      }
      if (t == 0) {
        transaction.commit();
      } else if (t == 1) {
        transaction.rollback();
        Thread.sleep(4000);
      }
      System.out.println(client.getLastPropagatedTimestamp() + 1);
      Thread.sleep(50);
    }
    System.exit(0);
  }

  /** Changes rows in batches of all sizes until this program is killed, together with the server. */
  private static void storm(long seed) throws Exception {
    java.util.Random dice = new java.util.Random(seed);
    KuduTable ledger = client.openTable("ledger");
    session = client.newSession();
    session.setFlushMode(FlushMode.AUTO_FLUSH_BACKGROUND);
    session.setMutationBufferSpace(200);
    session.setFlushInterval(1);
    System.out.println("begun");
    System.out.flush();
    for (long i = 0; ; i++) {
      int k = dice.nextInt(3000);
      Operation operation = switch (dice.nextInt(6)) {
        case 0 -> ledgerRow(ledger.newInsert(), k, "inserted " + i);
        case 1, 2 -> ledgerRow(ledger.newUpsert(), k, "upserted " + i);
        case 3 -> ledgerKey(ledger.newDelete(), k);
        default -> {
          Operation update = ledger.newUpdate();
          update.getRow().addInt("k", k);
          update.getRow().addString("v", "updated " + i);
          yield update;
        }
      };
      session.apply(operation);
      if (dice.nextInt(50) == 0) {
        Thread.sleep(1);
      }
    }
  }

  /** A phase of changes to a small table; prints the time after it. */
  private static void logr(int phase) throws Exception {
    if (phase == 0) {
      createNumbers(1);
    }
    if (phase < 2) {
      changeNumbers(phase + 1);
    } else {
      KuduTable table = client.openTable("numbers");
      for (int i = 0; i < 40; i++) {
        Operation insert = table.newInsert();
        insert.getRow().addInt("k", i * 30 + phase - 1);
        insert.getRow().addString("v", "of phase " + phase);
        apply(insert);
        // Some of these rows were deleted before.
        Operation upsert = table.newUpsert();
        upsert.getRow().addInt("k", i * 9 * phase);
        upsert.getRow().addString("v", "upserted " + i);
        apply(upsert);
        Operation delete = table.newDeleteIgnore();
        delete.getRow().addInt("k", i * 15 + 3 * phase);
        apply(delete);
      }
    }
    flushWithErrors();
    System.out.println(client.getLastPropagatedTimestamp() + 1);
    Thread.sleep(50);
  }

  private static void createKilled(int replicas) throws Exception {
    Schema ledger = new Schema(List.of(
        column("k", Type.INT32).key(true).desiredBlockSize(256).build(),
        column("v", Type.STRING).nullable(true).build(),
        column("n", Type.INT64).defaultValue(7L).build(),
        decimal("price", 12, 2),
        column("fixed", Type.INT32).nullable(true).immutable(true).build()));
    client.createTable("ledger", ledger, new CreateTableOptions().addHashPartitions(List.of("k"), 2).setNumReplicas(replicas));
    Schema trips = new Schema(List.of(
        column("city", Type.STRING).key(true).build(),
        column("at", Type.UNIXTIME_MICROS).key(true).build(),
        column("driver", Type.STRING).nullable(true).build(),
        column("open", Type.BOOL).build(),
        column("km", Type.DOUBLE).nullable(true).build(),
        column("seats", Type.INT8).build(),
        column("raw", Type.BINARY).nullable(true).build(),
        column("day", Type.DATE).nullable(true).build(),
        column("code", Type.VARCHAR).nullable(true)
            .typeAttributes(new ColumnTypeAttributesBuilder().length(6).build()).build(),
        decimal("fare", 30, 6)));
    client.createTable("trips", trips, new CreateTableOptions().setRangePartitionColumns(List.of("city")).setNumReplicas(replicas));
    Schema notes = new Schema(List.of(
        column("topic", Type.STRING).nonUniqueKey(true).build(),
        column("text", Type.STRING).nullable(true).build()));
    client.createTable("notes", notes, new CreateTableOptions().setRangePartitionColumns(List.of("topic")).setNumReplicas(replicas));
  }

  private static Operation ledgerKey(Operation operation, int k) {
    operation.getRow().addInt("k", k);
    return operation;
  }

  private static Operation ledgerRow(Operation operation, int k, String v) {
    PartialRow row = operation.getRow();
    row.addInt("k", k);
    if (v == null) {
      row.setNull("v");
    } else {
      row.addString("v", v);
    }
    if (k % 4 != 0) {
      row.addLong("n", k * 1_000_000_007L);
    }
    if (k % 3 != 0) {
      row.addDecimal("price", BigDecimal.valueOf(k * 101L - 5000, 2));
    }
    boolean upsert = operation instanceof org.apache.kudu.client.Upsert;
    if (k % 5 == 1 && !upsert) {
      row.addInt("fixed", k);
    }
    return operation;
  }

  private static void tripKey(PartialRow row, int i) {
    row.addString("city", i % 3 == 0 ? "" : i % 3 == 1 ? "north\0east" : "südwest");
    row.addLong("at", 1_700_000_000_000_000L - i * 86_400_000_001L);
  }

  private static Operation trip(Operation operation, int i, int version) {
    PartialRow row = operation.getRow();
    tripKey(row, i);
    row.addString(version >= 2 ? "person" : "driver", i % 4 == 0 ? "" : "driver " + i % 9 + "/" + version);
    if (version < 2) {
      row.addBoolean("open", i % 2 == 0);
    }
    if (i % 5 != 2) {
      row.addDouble("km", i * 1.5 + version);
    }
    row.addByte("seats", (byte) (i - 64));
    row.addBinary("raw", new byte[] {(byte) i, 0, (byte) (i * 7)});
    if (i % 7 != 0) {
      row.addDate("day", java.sql.Date.valueOf(java.time.LocalDate.ofEpochDay(i * 200L - 5000)));
      row.addVarchar("code", "Ü" + i);
    }
    row.addDecimal("fare", new BigDecimal("-123456789012345678.000001").multiply(BigDecimal.valueOf(i - 30)));
    return operation;
  }

  /** Flushes the session; errors of single rows are expected. */
  private static void flushWithErrors() throws Exception {
    for (OperationResponse response : session.flush()) {
      if (response.hasRowError()) {
        var status = response.getRowError().getErrorStatus();
        if (!status.isAlreadyPresent() && !status.isNotFound()) {
          throw new IllegalStateException(response.getRowError().toString());
        }
      }
    }
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
