package reference;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.hive.serde2.SerDeException;

/** The Hive warehouse of {@code tests/data/rcfile/warehouse}: two tables as an old cluster left them. */
final class Warehouse {
    static final Table SALES = new Table(
            "id bigint, customer string, quantity int, price decimal(10,2), discount double, sold_at timestamp,"
                    + " paid boolean, channel varchar(12)",
            "binary");
    static final Table EVENTS = new Table(
            "event_id bigint, kind varchar(16), country char(2), amount decimal(12,3), at timestamp, day date,"
                    + " tags array<string>, attributes map<string,string>,"
                    + " session struct<id:string,ms:bigint,mobile:boolean>, note string",
            "text",
            Map.of("field.delim", "|", "collection.delim", ",", "mapkey.delim", ":", "escape.delim", "\\"));
    private static final List<String> DAYS = List.of("2014-01-01", "2014-01-02", "2014-01-03");
    private static final List<String> REGIONS = List.of("eu", "us", "asia%2Fpacific");

    private final Random random = new Random(2014);
    private final Output out;

    Warehouse(Path dir, String version) throws IOException {
        out = new Output(dir, "Hive " + version);
    }

    void write(Path dir) throws IOException, SerDeException {
        int file = 0;
        long id = 1;
        for (String day : DAYS) {
            List<String> regions = new ArrayList<>(REGIONS);
            if (day.equals("2014-01-03")) {
                regions.add("__HIVE_DEFAULT_PARTITION__");
            }
            for (String region : regions) {
                int rows = 250 + random.nextInt(150);
                sales("sales/dt=" + day + "/region=" + region + "/000000_0", day, id, rows, file++ % 3 == 2);
                id += rows;
            }
        }
        for (int n = 0; n < 3; n++) {
            events("events/00000" + n + "_0", 1 + n * 700L, 700, n);
        }
        leftovers(dir.resolve("events"));
    }

    /** What lies in a table's folder but does not belong to the table. */
    private static void leftovers(Path table) throws IOException {
        Files.createFile(table.resolve("_SUCCESS"));
        Path staging = Files.createDirectories(table.resolve(".hive-staging_hive_2014-01-04_02-11-09_117_1/-ext-10000"));
        Files.copy(table.resolve("000000_0"), staging.resolve("000000_0"));
    }

    private void sales(String name, String day, long firstId, int count, boolean plain) throws IOException, SerDeException {
        List<List<Object>> rows = new ArrayList<>(count);
        for (int n = 0; n < count; n++) {
            int hour = n * 24 / count;
            rows.add(Arrays.asList(
                    firstId + n,
                    "customer-" + (1000 + random.nextInt(900)),
                    orNull(1 + random.nextInt(12)),
                    orNull(String.format("%d.%02d", random.nextInt(400), random.nextInt(100))),
                    orNull(random.nextInt(20) / 40.0),
                    String.format("%s %s.%03d", day, clock(hour), random.nextInt(1000)),
                    orNull(random.nextInt(10) > 0),
                    orNull(pick("web", "shop", "phone", "partner"))));
        }
        new HiveFile().codec(plain ? null : "DefaultCodec").rowsPerGroup(150).write(out.path(name), SALES, rows);
        out.add(name, SALES, Map.of(), plain ? "none" : "zlib");
    }

    private void events(String name, long firstId, int count, int codec) throws IOException, SerDeException {
        List<List<Object>> rows = new ArrayList<>(count);
        for (int n = 0; n < count; n++) {
            String day = DAYS.get(random.nextInt(DAYS.size()));
            rows.add(Arrays.asList(
                    firstId + n,
                    pick("view", "click", "purchase", "refund"),
                    orNull(pick("DE", "FR", "JP", "US", "X")),
                    orNull(String.format("%d.%03d", random.nextInt(90_000) - 10_000, random.nextInt(1000))),
                    orNull(String.format("%s %s.%06d", day, clock(random.nextInt(24)), random.nextInt(1_000_000))),
                    orNull(day),
                    orNull(tags()),
                    orNull(attributes()),
                    orNull(session()),
                    orNull(pick("", "plain", "a|b, c:d", "back\\slash", "Grüße aus Köln"))));
        }
        String[] codecs = {"DefaultCodec", "SnappyCodec", null};
        new HiveFile().codec(codecs[codec]).rowsPerGroup(200).write(out.path(name), EVENTS, rows);
        out.add(name, EVENTS, Map.of(), String.valueOf(codecs[codec]));
    }

    private String clock(int hour) {
        return String.format("%02d:%02d:%02d", hour, random.nextInt(60), random.nextInt(60));
    }

    private List<Object> session() {
        String id = Long.toHexString(random.nextLong() >>> 32);
        return Arrays.asList(id, (long) random.nextInt(90_000), orNull(random.nextBoolean()));
    }

    private List<Object> tags() {
        List<Object> tags = new ArrayList<>();
        for (int n = random.nextInt(4); n > 0; n--) {
            tags.add(pick("new", "promo", "vip", "a,b"));
        }
        return tags;
    }

    private Map<Object, Object> attributes() {
        Map<Object, Object> attributes = new LinkedHashMap<>();
        for (int n = random.nextInt(3); n > 0; n--) {
            attributes.put(pick("agent", "referrer", "campaign"), pick("mail", "search", "k:v", "none"));
        }
        return attributes;
    }

    private Object orNull(Object value) {
        return random.nextInt(20) == 0 ? null : value;
    }

    private String pick(String... of) {
        return of[random.nextInt(of.length)];
    }
}
