package reference;

import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.Time;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;
import org.apache.phoenix.expression.Expression;
import org.apache.phoenix.schema.ColumnRef;
import org.apache.phoenix.schema.PColumn;
import org.apache.phoenix.schema.PTable;
import org.apache.phoenix.schema.TableRef;
import org.apache.phoenix.schema.tuple.ResultTuple;
import org.apache.phoenix.util.PhoenixRuntime;

/**
 * Phoenix's own client without a cluster: it makes the cells of rows, as for a bulk load, and reads their columns again.
 *
 * <p>usage: Phoenix STATEMENTS DIR. STATEMENTS has a CREATE TABLE for each table, followed by UPSERTs of its rows; semicolons end
 * statements. For the table T
 * it writes DIR/T.sql, DIR/T.cells (row, family, qualifier, type, value: base64, by tabs) and DIR/T.rows (JSON lines).
 */
public final class Phoenix {
    private static final Base64.Encoder BASE64 = Base64.getEncoder();

    private Phoenix() {}

    public static void main(String[] args) throws Exception {
        Path to = Path.of(args[1]);
        Files.createDirectories(to);
        Map<String, List<String>> tables = new LinkedHashMap<>();
        List<String> current = null;
        for (String statement : Files.readString(Path.of(args[0])).split(";\\s*\n")) {
            String sql = statement.strip();
            if (sql.startsWith("CREATE")) {
                current = new ArrayList<>();
                tables.put(sql, current);
            } else if (!sql.isEmpty()) {
                current.add(sql);
            }
        }
        for (Map.Entry<String, List<String>> table : tables.entrySet()) {
            try (Connection connection = DriverManager.getConnection("jdbc:phoenix:none")) {
                connection.setAutoCommit(false);
                write(connection, table.getKey(), table.getValue(), to);
            }
        }
        System.exit(0);
    }

    private static void write(Connection connection, String ddl, List<String> upserts, Path to) throws Exception {
        connection.createStatement().execute(ddl);
        String name = ddl.replaceFirst("(?s)CREATE (IMMUTABLE )?TABLE (IF NOT EXISTS )?", "").split("[\\s(]")[0];
        name = name.startsWith("\"") ? name.replace("\"", "") : name.toUpperCase(java.util.Locale.ROOT);
        for (String upsert : upserts) {
            connection.createStatement().execute(upsert);
        }
        List<Cell> cells = new ArrayList<>();
        Iterator<Pair<byte[], List<Cell>>> all = PhoenixRuntime.getUncommittedDataIterator(connection);
        while (all.hasNext()) {
            cells.addAll(all.next().getSecond());
        }
        PTable table = connection.unwrap(org.apache.phoenix.jdbc.PhoenixConnection.class)
                .getTable(new org.apache.phoenix.schema.PTableKey(null, name));
        Files.writeString(to.resolve(name + ".sql"), ddl + "\n");
        Map<String, List<Cell>> rows = new LinkedHashMap<>();
        try (PrintStream out = file(to.resolve(name + ".cells"))) {
            for (Cell cell : cells) {
                out.println(
                        String.join(
                                "\t",
                                text(CellUtil.cloneRow(cell)),
                                text(CellUtil.cloneFamily(cell)),
                                text(CellUtil.cloneQualifier(cell)),
                                cell.getType().name(),
                                text(CellUtil.cloneValue(cell))));
                List<Cell> row = rows.computeIfAbsent(text(CellUtil.cloneRow(cell)), key -> new ArrayList<>());
                if (cell.getType() == Cell.Type.Put) {
                    row.add(cell);
                }
            }
        }
        try (PrintStream out = file(to.resolve(name + ".rows"))) {
            for (List<Cell> row : rows.values()) {
                row.sort(org.apache.hadoop.hbase.CellComparator.getInstance());
                out.println(read(table, row));
            }
        }
    }

    /** A row's columns as Phoenix's own expressions read them. */
    private static String read(PTable table, List<Cell> cells) throws Exception {
        ResultTuple tuple = new ResultTuple(Result.create(cells));
        List<String> fields = new ArrayList<>();
        int hidden = table.getBucketNum() == null ? 0 : 1;
        for (PColumn column : table.getColumns().subList(hidden, table.getColumns().size())) {
            Expression read = new ColumnRef(new TableRef(table), column.getPosition()).newColumnExpression();
            ImmutableBytesWritable bytes = new ImmutableBytesWritable();
            Object value = null;
            if (read.evaluate(tuple, bytes) && bytes.getLength() > 0) {
                value =
                        read.getDataType()
                                .toObject(bytes, read.getDataType(), read.getSortOrder(), read.getMaxLength(), read.getScale());
            }
            fields.add("\"" + column.getName().getString() + "\": " + json(value));
        }
        return "{" + String.join(", ", fields) + "}";
    }

    /** Floating-point numbers and decimals are text, times are in ms (Timestamp: us), bytes in base64. */
    private static String json(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long) {
            return String.valueOf(value);
        }
        if (value instanceof Byte || value instanceof Short) {
            return value.toString();
        }
        if (value instanceof Timestamp time) {
            return Long.toString(Math.floorDiv(time.getTime(), 1000) * 1_000_000L + time.getNanos() / 1000);
        }
        if (value instanceof Date || value instanceof Time) {
            return Long.toString(((java.util.Date) value).getTime());
        }
        String text;
        if (value instanceof byte[] bytes) {
            text = text(bytes);
        } else if (value instanceof BigDecimal decimal) {
            text = decimal.toString();
        } else {
            text = value.toString();
        }
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            out.append(c < 0x20 || c > 0x7e || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        }
        return out.append('"').toString();
    }

    private static PrintStream file(Path path) throws Exception {
        return new PrintStream(Files.newOutputStream(path), false, StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return BASE64.encodeToString(bytes);
    }
}
