package reference;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.errorhandling.ForeignExceptionDispatcher;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.shaded.protobuf.generated.SnapshotProtos.SnapshotDescription;
import org.apache.hadoop.hbase.snapshot.SnapshotDescriptionUtils;
import org.apache.hadoop.hbase.snapshot.SnapshotManifest;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import org.apache.hadoop.hbase.util.FSTableDescriptors;
import org.apache.hadoop.hbase.wal.WAL;
import org.apache.hadoop.hbase.wal.WALFactory;

/** A root directory on the local disk, with regions of tables open for writing. */
final class Root {
    final Configuration conf = HBaseConfiguration.create();
    final Path path;
    final FileSystem fs;
    private final WALFactory wals;
    private long regionId = 1_600_000_000_000L;

    Root(java.nio.file.Path path) throws IOException {
        this(path, Map.of());
    }

    /** A root of a server with settings of its own. */
    Root(java.nio.file.Path path, Map<String, String> settings) throws IOException {
        this.path = new Path(path.toUri());
        conf.set("hbase.rootdir", this.path.toString());
        conf.set("fs.defaultFS", "file:///");
        conf.set("hbase.wal.provider", "filesystem");
        conf.setBoolean("hbase.unsafe.stream.capability.enforce", false);
        conf.setBoolean("hbase.hregion.memstore.mslab.enabled", false);
        settings.forEach(conf::set);
        fs = FileSystem.get(this.path.toUri(), conf);
        fs.setWriteChecksum(false);
        CommonFSUtils.setRootDir(conf, this.path);
        wals = new WALFactory(conf, "localhost,1,1");
    }

    /** The regions of a new table, cut at some rows. */
    List<HRegion> create(TableDescriptor table, byte[]... cuts) throws IOException {
        new FSTableDescriptors(conf).createTableDescriptor(table);
        List<HRegion> regions = new ArrayList<>();
        for (int i = 0; i <= cuts.length; i++) {
            RegionInfo info =
                    RegionInfoBuilder.newBuilder(table.getTableName())
                            .setStartKey(i == 0 ? new byte[0] : cuts[i - 1])
                            .setEndKey(i == cuts.length ? new byte[0] : cuts[i])
                            .setRegionId(regionId)
                            .build();
            WAL wal = wals.getWAL(info);
            regions.add(HRegion.createHRegion(info, path, conf, table, wal));
        }
        regionId += 1;
        return regions;
    }

    /** A snapshot of the flushed rows of the regions. */
    void snapshot(String name, TableDescriptor table, List<HRegion> regions) throws Exception {
        SnapshotDescription description =
                SnapshotDescription.newBuilder()
                        .setName(name)
                        .setTable(table.getTableName().getNameAsString())
                        .setCreationTime(1_600_000_000_000L)
                        .setType(SnapshotDescription.Type.SKIPFLUSH)
                        .setVersion(2)
                        .build();
        Path folder = SnapshotDescriptionUtils.getCompletedSnapshotDir(name, path);
        fs.mkdirs(folder);
        SnapshotDescriptionUtils.writeSnapshotInfo(description, folder, fs);
        SnapshotManifest manifest =
                SnapshotManifest.create(conf, fs, folder, description, new ForeignExceptionDispatcher());
        manifest.addTableDescriptor(table);
        for (HRegion region : regions) {
            manifest.addRegion(region);
        }
        manifest.consolidate();
    }

    void sync() throws IOException {
        for (WAL wal : wals.getWALs()) {
            wal.sync();
        }
    }

    void close() throws IOException {
        wals.close();
    }
}
