package peers;

import io.trino.filesystem.local.LocalInputFile;
import io.trino.hive.formats.encodings.ColumnEncodingFactory;
import io.trino.hive.formats.encodings.binary.BinaryColumnEncodingFactory;
import io.trino.hive.formats.encodings.text.TextColumnEncodingFactory;
import io.trino.hive.formats.encodings.text.TextEncodingOptions;
import io.trino.hive.formats.rcfile.RcFileReader;
import io.trino.spi.block.Block;
import io.trino.spi.type.BigintType;
import io.trino.spi.type.BooleanType;
import io.trino.spi.type.DateType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.DoubleType;
import io.trino.spi.type.IntegerType;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;
import java.io.File;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.joda.time.DateTimeZone;

/** Reads files of the benchmark table with Trino: {@code ReadTrino PASSES FILE...}. */
public final class ReadTrino {
    /** The benchmark table's columns; timestamps at Trino's default precision of milliseconds. */
    private static final List<Type> TYPES = List.of(
            BigintType.BIGINT,
            IntegerType.INTEGER,
            DoubleType.DOUBLE,
            VarcharType.VARCHAR,
            TimestampType.TIMESTAMP_MILLIS,
            DecimalType.createDecimalType(12, 2),
            BooleanType.BOOLEAN,
            VarcharType.VARCHAR,
            DateType.DATE);

    private ReadTrino() {}

    public static void main(String[] args) throws Exception {
        String reader = "trino " + System.getProperty("trino.version");
        for (String file : List.of(args).subList(1, args.length)) {
            Passes.run(reader, new File(file).getName(), Integer.parseInt(args[0]), () -> read(new File(file)));
        }
    }

    private static Passes.Count read(File file) throws Exception {
        Map<Integer, Type> columns = new HashMap<>();
        for (int n = 0; n < TYPES.size(); n++) {
            columns.put(n, TYPES.get(n));
        }
        ColumnEncodingFactory encoding = file.getName().startsWith("binary")
                ? new BinaryColumnEncodingFactory(DateTimeZone.UTC)
                : new TextColumnEncodingFactory(TextEncodingOptions.DEFAULT_SIMPLE_OPTIONS);
        long rows = 0;
        long values = 0;
        try (RcFileReader reader =
                new RcFileReader(new LocalInputFile(file), encoding, columns, 0, file.length())) {
            for (int batch = reader.advance(); batch >= 0; batch = reader.advance()) {
                rows += batch;
                for (int n = 0; n < TYPES.size(); n++) {
                    values += nonNulls(reader.readBlock(n));
                }
            }
        }
        return new Passes.Count(rows, values);
    }

    private static long nonNulls(Block block) {
        long count = 0;
        for (int n = 0; n < block.getPositionCount(); n++) {
            count += block.isNull(n) ? 0 : 1;
        }
        return count;
    }
}
