package reference;

import java.nio.charset.StandardCharsets;
import java.sql.Timestamp;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.UnionColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.TypeDescription;

/** Values for every type, the same each time. The values of a column depend on its name if that is one of {@link #named}. */
final class Samples {
    private static final String[] WORDS = {"", "plain", "Grüße", "日本語", "\uD83E\uDD80 crab", "tab\tand\nline", "x y"};
    /** Seconds of 2015-01-01, and of clock changes in New York: 2015-03-08 07:00Z, 2015-11-01 06:00Z. */
    private static final long[] CLOCKS = {1420070400L, 1425798000L, 1446357600L, 0L, -86_400L * 365 * 60, 4_102_444_800L};

    private final TypeDescription schema;
    private final Random random = new Random(42);

    Samples(TypeDescription schema) {
        this.schema = schema;
    }

    /** Fills row {@code at} of a batch with sample {@code row}. */
    void put(VectorizedRowBatch batch, int at, int row) {
        List<TypeDescription> types = schema.getChildren();
        for (int n = 0; n < types.size(); n++) {
            put(batch.cols[n], types.get(n), schema.getFieldNames().get(n), at, row);
        }
    }

    private void put(ColumnVector vector, TypeDescription type, String name, int at, int row) {
        if (!named(vector, name, at, row)) {
            if (random.nextInt(6) == 0 && !name.equals("id")) {
                vector.noNulls = false;
                vector.isNull[at] = true;
            } else {
                value(vector, type, at, row);
            }
        }
    }

    private boolean named(ColumnVector vector, String name, int at, int row) {
        switch (name) {
            case "same" -> number(vector, at, row < 1200 ? 7 : row / 5);
            case "rising" -> number(vector, at, row * 1000L + random.nextInt(900));
            case "falling" -> number(vector, at, 5_000_000 - row * 3L);
            case "random" -> number(vector, at, (short) random.nextInt());
            case "patched" -> number(vector, at, row % 40 == 7 ? 1L << 40 | row : random.nextInt(1000) - 300);
            case "few" -> text(vector, at, WORDS[random.nextInt(WORDS.length)]);
            case "many" -> text(vector, at, "key-" + random.nextInt(4000));
            case "id" -> number(vector, at, row * 7L);
            case "name" -> text(vector, at, "name " + row * 3);
            default -> {
                return false;
            }
        }
        return true;
    }

    private static void number(ColumnVector vector, int at, long value) {
        ((LongColumnVector) vector).vector[at] = value;
    }

    private static void text(ColumnVector vector, int at, String text) {
        ((BytesColumnVector) vector).setVal(at, text.getBytes(StandardCharsets.UTF_8));
    }

    private void value(ColumnVector vector, TypeDescription type, int at, int row) {
        switch (type.getCategory()) {
            case BOOLEAN -> number(vector, at, random.nextInt(2));
            case BYTE -> number(vector, at, (byte) random.nextInt());
            case SHORT -> number(vector, at, (short) random.nextInt());
            case INT -> number(vector, at, row == 3 ? Integer.MIN_VALUE : random.nextInt() >> random.nextInt(32));
            case LONG -> number(vector, at, row == 3 ? Long.MIN_VALUE : random.nextLong() >> random.nextInt(64));
            case DATE -> number(vector, at, row * 9_973 % 1_400_000 - 700_000); // Java confuses years before 1
            case FLOAT -> ((DoubleColumnVector) vector).vector[at] = (float) special(row, random.nextGaussian());
            case DOUBLE -> ((DoubleColumnVector) vector).vector[at] = special(row, random.nextGaussian() * 1e100);
            case STRING -> text(vector, at, WORDS[random.nextInt(WORDS.length)] + row % 11);
            case CHAR, VARCHAR -> text(vector, at, "c" + row % 100);
            case BINARY -> {
                byte[] bytes = new byte[random.nextInt(9)];
                random.nextBytes(bytes);
                ((BytesColumnVector) vector).setVal(at, bytes);
            }
            case TIMESTAMP, TIMESTAMP_INSTANT -> timestamp((TimestampColumnVector) vector, at, row);
            case DECIMAL -> decimal((DecimalColumnVector) vector, type, at);
            case LIST -> list((ListColumnVector) vector, type, at, row);
            case MAP -> map((MapColumnVector) vector, type, at, row);
            case STRUCT -> {
                StructColumnVector struct = (StructColumnVector) vector;
                for (int n = 0; n < struct.fields.length; n++) {
                    put(struct.fields[n], type.getChildren().get(n), "", at, row);
                }
            }
            case UNION -> {
                UnionColumnVector union = (UnionColumnVector) vector;
                union.tags[at] = row % union.fields.length;
                put(union.fields[union.tags[at]], type.getChildren().get(union.tags[at]), "", at, row);
            }
            default -> throw new IllegalArgumentException(type.toString());
        }
    }

    private static double special(int row, double value) {
        return switch (row) {
            case 5 -> Double.NaN;
            case 6 -> Double.NEGATIVE_INFINITY;
            case 7 -> -0.0;
            default -> value;
        };
    }

    /** Writes a time near a clock change, or far from one; no fractions in the second before 1970, which ORC cannot express. */
    private void timestamp(TimestampColumnVector vector, int at, int row) {
        long second = CLOCKS[row % CLOCKS.length] + (row / CLOCKS.length - 8) * 900L;
        int nanos = row % 3 == 0 ? 0 : row % 3 == 1 ? 123_456_789 : 500_000_000;
        Timestamp value = new Timestamp(second * 1000);
        value.setNanos(second == -1 ? 0 : nanos);
        vector.set(at, value);
    }

    private void decimal(DecimalColumnVector vector, TypeDescription type, int at) {
        java.math.BigInteger unscaled = new java.math.BigInteger(type.getPrecision() * 3, random);
        java.math.BigDecimal value = new java.math.BigDecimal(unscaled, type.getScale());
        vector.set(at, HiveDecimal.create(random.nextBoolean() ? value : value.negate()));
    }

    private void list(ListColumnVector list, TypeDescription type, int at, int row) {
        list.offsets[at] = list.childCount;
        list.lengths[at] = random.nextInt(4);
        list.childCount += (int) list.lengths[at];
        list.child.ensureSize(list.childCount, true);
        for (int n = 0; n < list.lengths[at]; n++) {
            put(list.child, type.getChildren().get(0), "", (int) list.offsets[at] + n, row);
        }
    }

    private void map(MapColumnVector map, TypeDescription type, int at, int row) {
        map.offsets[at] = map.childCount;
        map.lengths[at] = random.nextInt(3);
        map.childCount += (int) map.lengths[at];
        map.keys.ensureSize(map.childCount, true);
        map.values.ensureSize(map.childCount, true);
        for (int n = 0; n < map.lengths[at]; n++) {
            int child = (int) map.offsets[at] + n;
            if (map.keys instanceof LongColumnVector keys) {
                keys.vector[child] = row * 10L + n;
            } else {
                text(map.keys, child, "key " + row % 7 + n);
            }
            put(map.values, type.getChildren().get(1), "", child, row);
        }
    }

    /** A row of a transactional table: operation, original write id, row id, write id, and the columns or null. */
    static void event(VectorizedRowBatch batch, int at, Object[] event, int bucket) {
        number(batch.cols[0], at, (int) event[0]);
        number(batch.cols[1], at, (int) event[1]);
        number(batch.cols[2], at, bucket);
        number(batch.cols[3], at, (int) event[2]);
        number(batch.cols[4], at, (int) event[3]);
        StructColumnVector row = (StructColumnVector) batch.cols[5];
        if (event[4] == null) {
            row.noNulls = false;
            row.isNull[at] = true;
            return;
        }
        number(row.fields[0], at, (int) event[4]);
        if (event[5] == null) {
            row.fields[1].noNulls = false;
            row.fields[1].isNull[at] = true;
        } else {
            text(row.fields[1], at, (String) event[5]);
        }
    }
}
