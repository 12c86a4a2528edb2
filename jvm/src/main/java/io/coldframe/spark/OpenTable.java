package io.coldframe.spark;

import io.coldframe.NotFoundError;
import io.coldframe.SchemaError;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TimeZone;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Logger;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * A table that the native library holds open for the driver. Spark has no call that closes a table, so opening a table also closes
 * tables whose Java objects have been garbage collected.
 */
final class OpenTable {
  private static final Logger LOG = Logger.getLogger("io.coldframe");
  private static final ReferenceQueue<OpenTable> COLLECTED = new ReferenceQueue<>();
  private static final Set<Reference> REFERENCES = ConcurrentHashMap.newKeySet();

  private static final class Reference extends PhantomReference<OpenTable> {
    private final long number;

    Reference(OpenTable table, long number) {
      super(table, COLLECTED);
      this.number = number;
    }
  }

  /** Instead of a handle: the table of an empty folder, or of files of which none is selected, whose columns the user or the catalog gives. */
  private static final long NOTHING = 0;

  private final boolean ofHive;
  private final Map<String, String> options;
  private final String folders;
  private final StructType user;
  private long number;

  /** Opens the files that the options name; {@code schema} is the user's, or null. */
  OpenTable(Map<String, String> options, StructType schema) {
    this(options, schema, null);
  }

  /** Opens the files of a Hive metastore's table; {@code folders} are its partitions, as JSON. */
  OpenTable(Map<String, String> options, StructType schema, String folders) {
    this.options = options;
    this.folders = folders;
    user = schema;
    ofHive = folders != null;
  }

  /** The request that opens the table, or a stream of its files, with these columns; null means the columns of the files. */
  String opening(StructType columns) {
    String schema = columns == null ? "null" : json(columns);
    // Tables of Hive are read as Hive's readers read them.
    Places places = Places.of(ofHive ? options : FileOptions.of(options));
    return "{\"options\":" + Json.object(places.options) + ",\"session\":" + Json.object(places.session)
        + ",\"zone\":" + Json.text(TimeZone.getDefault().getID()) + ",\"schema\":" + schema + ",\"folders\":" + folders + "}";
  }

  /**
   * The handle of the table, which is opened at the first call, because the table of a stream may have no
   * file yet.
   */
  private synchronized long number() {
    if (number == 0) {
      for (Object collected = COLLECTED.poll(); collected != null; collected = COLLECTED.poll()) {
        Reference reference = (Reference) collected;
        REFERENCES.remove(reference);
        Native.closeTable(reference.number);
      }
      NativeLibrary.load();
      if (user == null && !ofHive && !Places.isGiven(options)) {
        throw SparkErrors.noColumns(new SchemaError("no path: give one to load(), or the option path or paths"));
      }
      try {
        number = Native.open(Json.bytes(opening(user)));
      } catch (NotFoundError e) {
        if (ofHive || !isNothing()) {
          String missing = ofHive ? null : Writes.missing(options);
          throw missing == null ? e : SparkErrors.noPath(missing, e);
        }
        if (user == null) {
          throw SparkErrors.noColumns(e);
        }
        return NOTHING;
      }
      REFERENCES.add(new Reference(this, number));
      texts(Native.notices(number)).forEach(LOG::warning);
    }
    return number;
  }

  /** Whether there is no file to read: the folder has none, or none is selected. */
  private boolean isNothing() {
    return Writes.isEmptyFolder(options) || (FileOptions.areSelecting(options) && Writes.exists(options));
  }

  /**
   * Columns as JSON for the native library. Timestamps of Hive's RCFiles have no zone in the library; in Spark
   * they are instants, which have the same microseconds in UTC.
   */
  String json(StructType columns) {
    String json = columns.json();
    return ofHive && !"orc".equals(options.get("format")) ? json.replaceAll("(\"(?:type|elementType|keyType|valueType)\":\"timestamp)\"", "$1_ntz\"") : json;
  }

  /** Opens the table now. */
  OpenTable opened() {
    number();
    return this;
  }

  private boolean isEmpty() {
    return number() == NOTHING;
  }

  String name() {
    return isEmpty() ? "an empty folder" : new String(Native.name(number()), StandardCharsets.UTF_8);
  }

  /** Splits texts that each end with a zero byte. */
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
    if (isEmpty()) {
      return new boolean[filters.size()];
    }
    byte[] flags = Native.takes(number(), Json.bytes(Json.texts(filters)));
    boolean[] taken = new boolean[flags.length];
    for (int at = 0; at < flags.length; at++) {
      taken[at] = flags[at] != 0;
    }
    return taken;
  }

  /** The columns of the results of some aggregates; null if Spark has to compute one of them. */
  StructType aggregates(String functions) {
    byte[] columns = isEmpty() ? null : Native.aggregates(number(), Json.bytes(functions));
    return columns == null ? null : (StructType) DataType.fromJson(new String(columns, StandardCharsets.UTF_8));
  }

  long[] statistics(String request) {
    return isEmpty() ? new long[] {0, 0} : Native.statistics(number(), Json.bytes(request));
  }

  long[] partitioning(String request) {
    return isEmpty() ? new long[0] : Native.partitioning(number(), Json.bytes(request));
  }

  /** A filter that the first rows in an order pass; null if all rows would pass. */
  String top(String request) {
    byte[] filter = isEmpty() ? null : Native.top(number(), Json.bytes(request));
    return filter == null ? null : new String(filter, StandardCharsets.UTF_8);
  }

  byte[] plan(String request) {
    return isEmpty() ? Planned.nothing() : Native.plan(number(), Json.bytes(request));
  }
}
