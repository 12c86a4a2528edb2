package reference;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.hive.serde2.typeinfo.DecimalTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.ListTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.MapTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.StructTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.UnionTypeInfo;

/** Rows of any type: the edges of each type's range often, nulls and empties now and then. Always the same rows. */
final class Samples {
    private static final String[] WORDS = {
        "amber", "birch", "cobalt", "delta", "ember", "fjord", "Grüße", "привет", "東京", "\uD83D\uDE00",
        "two words", " blank ",
    };
    private static final LocalDateTime FIRST = LocalDateTime.of(1920, 1, 1, 0, 0);

    private final Random random;
    private final String[] words;
    private boolean sinceGregor;

    Samples(long seed, String... moreWords) {
        random = new Random(seed);
        words = new String[WORDS.length + moreWords.length];
        System.arraycopy(WORDS, 0, words, 0, WORDS.length);
        System.arraycopy(moreWords, 0, words, WORDS.length, moreWords.length);
    }

    /** No dates before 1582: Hive 2 counts their days in a different calendar than it states. */
    Samples sinceGregor() {
        sinceGregor = true;
        return this;
    }

    List<List<Object>> rows(int count, Table table) {
        List<TypeInfo> types = table.types();
        List<List<Object>> rows = new ArrayList<>(count);
        for (int n = 0; n < count; n++) {
            List<Object> row = new ArrayList<>(types.size());
            for (TypeInfo type : types) {
                row.add(orNull(type, 8));
            }
            rows.add(row);
        }
        return rows;
    }

    private Object orNull(TypeInfo type, int oneIn) {
        return random.nextInt(oneIn) == 0 ? null : value(type);
    }

    private Object value(TypeInfo type) {
        return switch (type.getCategory()) {
            case LIST -> {
                List<Object> list = new ArrayList<>();
                for (int n = random.nextInt(4); n > 0; n--) {
                    list.add(orNull(((ListTypeInfo) type).getListElementTypeInfo(), 10));
                }
                yield list;
            }
            case MAP -> {
                Map<Object, Object> map = new LinkedHashMap<>();
                for (int n = random.nextInt(4); n > 0; n--) {
                    Object key = value(((MapTypeInfo) type).getMapKeyTypeInfo());
                    map.put(key, orNull(((MapTypeInfo) type).getMapValueTypeInfo(), 10));
                }
                yield map;
            }
            case STRUCT -> {
                List<Object> fields = new ArrayList<>();
                for (TypeInfo field : ((StructTypeInfo) type).getAllStructFieldTypeInfos()) {
                    fields.add(orNull(field, 10));
                }
                yield fields;
            }
            case UNION -> {
                List<TypeInfo> branches = ((UnionTypeInfo) type).getAllUnionObjectTypeInfos();
                int tag = random.nextInt(branches.size());
                yield new Values.Branch(tag, value(branches.get(tag)));
            }
            case PRIMITIVE -> primitive((PrimitiveTypeInfo) type);
        };
    }

    private Object primitive(PrimitiveTypeInfo type) {
        return switch (type.getPrimitiveCategory()) {
            case BOOLEAN -> random.nextBoolean();
            case BYTE -> (byte) integer(8);
            case SHORT -> (short) integer(16);
            case INT -> (int) integer(32);
            case LONG -> integer(64);
            case FLOAT -> (float) real();
            case DOUBLE -> real();
            case DECIMAL -> decimal((DecimalTypeInfo) type);
            case STRING, VARCHAR -> random.nextInt(12) == 0 ? "" : words[random.nextInt(words.length)];
            case CHAR -> words[random.nextInt(words.length)];
            case BINARY -> bytes(1 + random.nextInt(9));
            case DATE -> date();
            case TIMESTAMP -> timestamp();
            case INTERVAL_YEAR_MONTH -> sign() + random.nextInt(300) + "-" + random.nextInt(12);
            case INTERVAL_DAY_TIME ->
                sign() + random.nextInt(900) + " " + random.nextInt(24) + ":" + random.nextInt(60) + ":"
                        + random.nextInt(60) + "." + String.format("%09d", random.nextInt(1_000_000_000));
            default -> {
                if (type.getTypeName().equals("timestamp with local time zone")) { // a category that Hive 2 lacks
                    yield timestamp() + " UTC";
                }
                throw new IllegalArgumentException("no samples of " + type);
            }
        };
    }

    /** An integer of at most {@code bits} bits: all lengths in bits are equally likely, the ends of the range are frequent. */
    private long integer(int bits) {
        long max = -1L >>> (65 - bits);
        return switch (random.nextInt(10)) {
            case 0 -> max;
            case 1 -> -max - 1;
            case 2 -> 0;
            default -> (random.nextLong() >> (64 - bits)) >> random.nextInt(bits);
        };
    }

    private double real() {
        return switch (random.nextInt(12)) {
            case 0 -> Double.NaN;
            case 1 -> Double.POSITIVE_INFINITY;
            case 2 -> Double.NEGATIVE_INFINITY;
            case 3 -> -0.0;
            case 4 -> 1e-30;
            default -> random.nextGaussian() * 1000;
        };
    }

    private String decimal(DecimalTypeInfo type) {
        BigInteger limit = BigInteger.TEN.pow(random.nextInt(type.precision()) + 1);
        BigInteger unscaled = new BigInteger(limit.bitLength() + 1, random).mod(limit);
        unscaled = random.nextInt(8) == 0 ? limit.subtract(BigInteger.ONE) : unscaled;
        return new BigDecimal(random.nextBoolean() ? unscaled : unscaled.negate(), type.scale()).toPlainString();
    }

    private byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    private String date() {
        String[] edges = {sinceGregor ? "1583-01-01" : "0001-01-01", "9999-12-31", "1582-10-15", "1969-12-31", "2000-02-29"};
        return random.nextInt(4) == 0
                ? edges[random.nextInt(edges.length)]
                : LocalDate.ofEpochDay(random.nextInt(60_000) - 25_000).toString();
    }

    private String timestamp() {
        String[] edges = {
            "1969-12-31 23:59:59.999999999", "1970-01-01 00:00:00", "2038-01-19 03:14:08", "1920-01-01 00:00:00.5",
        };
        if (random.nextInt(5) == 0) {
            return edges[random.nextInt(edges.length)];
        }
        int[] units = {1_000_000_000, 1_000_000, 1_000, 1};
        int unit = units[random.nextInt(units.length)];
        LocalDateTime at = FIRST.plusSeconds((random.nextLong() >>> 1) % 6_000_000_000L);
        int nanos = random.nextInt(1_000_000_000) / unit * unit;
        return String.format("%tF %<tT.%09d", at.atOffset(ZoneOffset.UTC), nanos);
    }

    private String sign() {
        return random.nextInt(3) == 0 ? "-" : "";
    }
}
