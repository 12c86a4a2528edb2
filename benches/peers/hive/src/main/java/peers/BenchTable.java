package peers;

import java.util.List;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.SerDeException;
import org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe;
import org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe;

/** The benchmark's table: nine columns of the types that cold tables are made of. */
final class BenchTable {
    static final List<String> NAMES = List.of(
            "id", "quantity", "score", "customer", "created_at", "price", "paid", "product", "day");
    static final List<String> TYPES = List.of(
            "bigint", "int", "double", "string", "timestamp", "decimal(12,2)", "boolean", "string", "date");

    private BenchTable() {}

    /** The SerDe that a file's name asks for: {@code binary_*} is LazyBinaryColumnarSerDe, all else ColumnarSerDe. */
    static AbstractSerDe serde(Configuration conf, String fileName) throws SerDeException {
        Properties table = new Properties();
        table.setProperty("columns", String.join(",", NAMES));
        table.setProperty("columns.types", String.join(":", TYPES));
        AbstractSerDe serde = fileName.startsWith("binary") ? new LazyBinaryColumnarSerDe() : new ColumnarSerDe();
        serde.initialize(conf, table, null);
        return serde;
    }
}
