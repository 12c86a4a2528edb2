package reference;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The types of the files, each with its values as texts; these are also all types that a table declares. */
final class Samples {
    private Samples() {}

    private static final String LONG = "é世界 😀 a text that is longer than any char";

    private static final List<String> TEXTS = List.of(
            "", "0", "1", "-1", " 12 ", "12abc", "abc", "127", "128", "-129", "32768", "2147483648", "9223372036854775808",
            "1.5", "-1.5", "2.5", "-1.5e3", "NaN", "Infinity", "-Infinity", "true", "TRUE", "False", "t", "yes", "+5", "1d", "0x10",
            "1e400", "1e-400", "0.005", "999.995", "99999999999999999999999999999999999999", "1e38", ".5", "5.", "-0", "00012",
            "2014-01-01", "2014-1-2", " 2014-01-01 ", "2014-01-01x", "2014-01-01 12:34:56", "2014-01-01 12:34:56.789",
            "2014-01-01 12:34:56.1234567891", "2014-01-01 12:34", "2014-01-01T12:34:56", "2014-01-01 12:34:56 UTC",
            "2014-01-01 12:34:56 Europe/Berlin", "1500-01-01", "1582-10-10", "1500-03-01 01:02:03.5", "2020-02-30", "2020-02-30 00:00:00", "2020-13-01",
            "10000-01-01", "0000-01-01", "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999999", "  padded  ", LONG);

    private static final List<String> DATES = List.of(
            "1970-01-01", "1969-12-31", "2014-06-15", "1500-01-01", "1582-10-15", "1582-10-04", "0001-01-01", "9999-12-31",
            "2262-04-12", "1900-02-28");

    private static final List<String> TIMES = List.of(
            "1970-01-01 00:00:00", "1970-01-01 00:00:01", "1970-01-01 00:02:00.5", "1969-12-31 23:59:58.25", "1969-12-31 23:59:58",
            "2014-06-15 12:34:56", "2014-06-15 12:34:56.7", "2014-06-15 12:34:56.789123456", "2014-06-15 00:00:00",
            "1900-01-01 00:00:00.000001", "1900-01-01 00:00:00", "2038-01-19 03:14:08", "1960-07-01 10:20:30.000000001",
            "1960-07-01 10:20:30.25");

    private static final List<String> FAR = List.of(
            "1500-03-01 01:02:03.5", "1582-10-15 00:00:00", "1582-10-04 12:00:00", "2262-04-12 00:00:00.1",
            "9999-12-31 23:59:59.999", "0001-01-01 00:00:00");

    /**
     * The types of the file. Hive 4.1 has timestamps with a local time zone, but its reader of ORC refuses files with them.
     */
    static final Map<String, List<String>> TYPES = types();

    /** What follows a type where a file has two columns of it: times that nanoseconds of 64 bits do not hold. */
    private static final String IS_FAR = " (far)";

    static final List<String> DECLARED = List.of(
            "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,2)", "decimal(10,0)", "decimal(18,4)",
            "decimal(38,10)", "decimal(38,0)", "string", "char(3)", "char(32)", "varchar(3)", "varchar(32)", "binary", "date",
            "timestamp", "timestamp with local time zone");

    private static Map<String, List<String>> types() {
        Map<String, List<String>> types = new LinkedHashMap<>();
        types.put("boolean", List.of("true", "false"));
        types.put("tinyint", List.of("-128", "-1", "0", "1", "65", "127"));
        types.put("smallint", List.of("-32768", "-129", "-1", "0", "1", "128", "256", "999", "1000", "32767"));
        types.put("int", List.of(
                "-2147483648", "-32769", "-1001", "-1", "0", "1", "32768", "65536", "86400", "16777217", "1402835696", "2147483647"));
        types.put("bigint", List.of(
                "-9223372036854775808", "-2147483649", "-62135596801", "-1001", "-1", "0", "1", "256", "65537", "2147483648",
                "4294967296", "1402835696", "1402835696789", "253402300799", "253402300800",
                "9223372036854775807"));
        types.put("bigint" + IS_FAR, List.of("9007199254740993", "-9007199254740993", "4611686018427387904"));
        types.put("float", List.of(
                "0.0", "-0.0", "1.0", "1.5", "-1.5", "2.5", "0.1", "-0.5", "127.9", "128.0", "-128.9", "-129.0", "1000.0", "32768.0", "1.0E7",
                "123456.79", "1.6777216E7", "2.14748365E9", "3.0E9", "9.223372E18", "1.0E20", "3.4028235E38", "1.4E-45", "0.001",
                "1.0E-4", "999.995", "NaN", "Infinity", "-Infinity"));
        types.put("double", List.of(
                "0.0", "-0.0", "1.0", "1.5", "-1.5", "2.5", "0.1", "-0.5", "127.9", "128.0", "-128.9", "-129.0", "1000.0", "32768.0", "1.0E7",
                "123456789.12345679", "2.147483648E9", "-2.147483649E9", "9.223372036854775807E18",
                "1.0E19", "1.0E20", "1.0E38", "1.7976931348623157E308", "4.9E-324", "3.5E38", "0.001", "1.0E-4", "999.995",
                "1.005", "2.0E-3", "1.402835696789123E9", "-1.25", "9.999999999999999E22", "2.2250738585072014E-308", "NaN", "Infinity",
                "-Infinity"));
        types.put("double" + IS_FAR, List.of("9.007199254740993E15", "-9.0E15"));
        types.put("decimal(5,2)", List.of("0", "1.5", "-1.5", "2.50", "0.01", "127.99", "128", "-128.99", "999.99", "-999.99"));
        types.put("decimal(20,4)", List.of(
                "0", "1", "1.5", "-1.5", "2.5", "0.0001", "-0.5", "127.9999", "-128.5", "-129", "999.995", "32768", "2147483647.5", "2147483648",
                "1402835696.789", "-1402835696.789", "0.005"));
        types.put("decimal(20,4)" + IS_FAR, List.of("9999999999999999.9999", "-9999999999999999.9999"));
        types.put("decimal(38,10)", List.of(
                "0", "1.0000000001", "-0.0000000001", "9223372036854775807", "9223372036854775808", "-9223372036854775808.5",
                "9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "123456789.123456789",
                "0.9999999999", "100"));
        types.put("string", TEXTS);
        types.put("char(24)", TEXTS);
        types.put("varchar(24)", TEXTS);
        types.put("binary", List.of("", "abc", "é世界", "12", "true", "2014-01-01"));
        types.put("date", DATES);
        types.put("timestamp", TIMES);
        types.put("timestamp" + IS_FAR, FAR);
        return types;
    }

    /** The type of a column. */
    static String type(String column) {
        return column.replace(IS_FAR, "");
    }
}
