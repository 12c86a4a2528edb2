package reference;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.util.Bytes;

/** A table of given cells, such as those of {@code tests/reference/phoenix}. */
final class Written {
    private static final long TIME = 1_600_000_000_000L;

    private Written() {}

    /** Writes a region with a store file for each family. A line of {@code cells} has the fields in base64, separated by tabs. */
    static void write(Path to, String name, Path cells) throws Exception {
        List<byte[][]> all = Files.readAllLines(cells).stream().map(Written::cell).toList();
        Set<String> families = new LinkedHashSet<>();
        all.forEach(cell -> families.add(Bytes.toString(cell[1])));
        TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(TableName.valueOf(name));
        families.forEach(family -> table.setColumnFamily(ColumnFamilyDescriptorBuilder.of(family)));
        Root root = new Root(to);
        HRegion region = root.create(table.build()).get(0);
        for (byte[][] cell : all) {
            switch (Bytes.toString(cell[3])) {
                case "Put" ->
                        region.put(
                                new Put(cell[0])
                                        .setDurability(Durability.SKIP_WAL)
                                        .addColumn(cell[1], cell[2], TIME, cell[4]));
                case "DeleteColumn" ->
                        region.delete(
                                new Delete(cell[0]).setDurability(Durability.SKIP_WAL).addColumns(cell[1], cell[2], TIME));
                default -> throw new IllegalArgumentException(Bytes.toString(cell[3]));
            }
        }
        region.flush(true);
        region.close();
        root.close();
    }

    private static byte[][] cell(String line) {
        String[] parts = line.split("\t", -1);
        byte[][] cell = new byte[5][];
        for (int i = 0; i < 5; i++) {
            cell[i] = i == 3 ? Bytes.toBytes(parts[i]) : Base64.getDecoder().decode(parts[i]);
        }
        return cell;
    }
}
