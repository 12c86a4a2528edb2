package io.coldframe.spark;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Logger;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * A table that the native library holds open for the driver. Spark never says that it is done with a table, so the library lets
 * go of those that Java has forgotten whenever another one is opened.
 */
final class OpenTable {
  private static final Logger LOG = Logger.getLogger("io.coldframe");
  private static final ReferenceQueue<OpenTable> FORGOTTEN = new ReferenceQueue<>();
  private static final Set<Reference> REFERENCES = ConcurrentHashMap.newKeySet();

  private static final class Reference extends PhantomReference<OpenTable> {
    private final long number;

    Reference(OpenTable table, long number) {
      super(table, FORGOTTEN);
      this.number = number;
    }
  }

  private final boolean ofHive;
  private final Map<String, String> options;
  private final String folders;
  private final StructType user;
  private long number;

  /** The files that the options name; {@code schema} is the user's, or null. */
  OpenTable(Map<String, String> options, StructType schema) {
    this(options, schema, null);
  }

  /** The files of a Hive metastore's table: {@code folders} are its partitions, as JSON. */
  OpenTable(Map<String, String> options, StructType schema, String folders) {
    this.options = options;
    this.folders = folders;
    user = schema;
    ofHive = folders != null;
  }

  /** What opens the table, or a stream of its files, with some columns; null are those of the files. */
  String opening(StructType columns) {
    String said = columns == null ? "null" : json(columns);
    return "{\"options\":" + Json.object(options) + ",\"schema\":" + said + ",\"folders\":" + folders + "}";
  }

  /** The table, opened when it is first asked: a stream's may have no file yet. */
  private synchronized long number() {
    if (number == 0) {
      for (Object gone = FORGOTTEN.poll(); gone != null; gone = FORGOTTEN.poll()) {
        Reference reference = (Reference) gone;
        REFERENCES.remove(reference);
        Native.closeTable(reference.number);
      }
      NativeLibrary.load();
      number = Native.open(Json.bytes(opening(user)));
      REFERENCES.add(new Reference(this, number));
      texts(Native.notices(number)).forEach(LOG::warning);
    }
    return number;
  }

  /**
   * Columns as the native library knows them. Timestamps of Hive's tables are wall clock times there; to Spark they are instants, the
   * same microseconds in UTC.
   */
  String json(StructType columns) {
    String json = columns.json();
    return ofHive ? json.replaceAll("(\"(?:type|elementType|keyType|valueType)\":\"timestamp)\"", "$1_ntz\"") : json;
  }

  /** The same, open. */
  OpenTable opened() {
    number();
    return this;
  }

  String name() {
    return new String(Native.name(number()), StandardCharsets.UTF_8);
  }

  /** Texts that each have a zero byte behind them. */
  private static List<String> texts(byte[] all) {
    List<String> texts = new ArrayList<>();
    for (String text : new String(all, StandardCharsets.UTF_8).split("\0")) {
      if (!text.isEmpty()) {
        texts.add(text);
      }
    }
    return texts;
  }

  StructType schema() {
    StructType schema = (StructType) DataType.fromJson(new String(Native.schema(number()), StandardCharsets.UTF_8));
    SparkVersion.checkTypes(schema);
    return schema;
  }

  /** For each filter, whether the library evaluates it. */
  boolean[] takes(List<String> filters) {
    byte[] found = Native.takes(number(), Json.bytes(Json.texts(filters)));
    boolean[] taken = new boolean[found.length];
    for (int at = 0; at < found.length; at++) {
      taken[at] = found[at] != 0;
    }
    return taken;
  }

  /** The columns of the answer to some aggregates; null where one of them is Spark's to compute. */
  StructType aggregates(String asked) {
    byte[] columns = Native.aggregates(number(), Json.bytes(asked));
    return columns == null ? null : (StructType) DataType.fromJson(new String(columns, StandardCharsets.UTF_8));
  }

  long[] statistics(String request) {
    return Native.statistics(number(), Json.bytes(request));
  }

  long[] partitioning(String request) {
    return Native.partitioning(number(), Json.bytes(request));
  }

  /** A filter that keeps the first rows in an order; null where it would keep all. */
  String top(String request) {
    byte[] filter = Native.top(number(), Json.bytes(request));
    return filter == null ? null : new String(filter, StandardCharsets.UTF_8);
  }

  byte[] plan(String request) {
    return Native.plan(number(), Json.bytes(request));
  }
}
