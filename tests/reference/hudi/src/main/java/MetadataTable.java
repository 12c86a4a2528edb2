import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.avro.model.HoodieMetadataColumnStats;
import org.apache.hudi.avro.model.LongWrapper;
import org.apache.hudi.client.HoodieJavaWriteClient;
import org.apache.hudi.client.WriteStatus;
import org.apache.hudi.client.common.HoodieJavaEngineContext;
import org.apache.hudi.common.config.HoodieMetadataConfig;
import org.apache.hudi.common.model.HoodieAvroPayload;
import org.apache.hudi.common.model.HoodieAvroRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.config.HoodieIndexConfig;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.index.HoodieIndex;
import org.apache.hudi.metadata.HoodieBackedTableMetadata;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.StoragePathInfo;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

/** Writes a small table with its metadata by Hudi's client for Java, and prints what Hudi reads from the metadata. */
public final class MetadataTable {
  private static final String SCHEMA =
      "{\"type\":\"record\",\"name\":\"row\",\"fields\":[{\"name\":\"id\",\"type\":\"string\"},"
          + "{\"name\":\"part\",\"type\":\"string\"},{\"name\":\"amount\",\"type\":\"long\"},"
          + "{\"name\":\"note\",\"type\":[\"null\",\"string\"],\"default\":null}]}";

  private static HoodieRecord<HoodieAvroPayload> row(Schema schema, int i, long amount) {
    String part = new String[] {"eu", "us"}[i % 2];
    GenericRecord row = new GenericData.Record(schema);
    row.put("id", String.format("id-%03d", i));
    row.put("part", part);
    row.put("amount", amount);
    row.put("note", i % 3 == 0 ? null : "note " + i);
    return new HoodieAvroRecord<>(
        new HoodieKey(String.format("id-%03d", i), part), new HoodieAvroPayload(Option.of(row)));
  }

  public static void main(String[] args) throws Exception {
    String base = Path.of(args[0]).toAbsolutePath().toString();
    HadoopStorageConfiguration conf = new HadoopStorageConfiguration(new Configuration());
    HoodieTableMetaClient.newTableBuilder()
        .setTableType(HoodieTableType.COPY_ON_WRITE)
        .setTableName("lab")
        .setRecordKeyFields("id")
        .setPartitionFields("part")
        .setPayloadClassName(HoodieAvroPayload.class.getName())
        .initTable(conf, base);
    HoodieWriteConfig config =
        HoodieWriteConfig.newBuilder()
            .withPath(base)
            .withSchema(SCHEMA)
            .withParallelism(1, 1)
            .withDeleteParallelism(1)
            .forTable("lab")
            .withEmbeddedTimelineServerEnabled(false)
            .withIndexConfig(
                HoodieIndexConfig.newBuilder().withIndexType(HoodieIndex.IndexType.SIMPLE).build())
            .withMetadataConfig(
                HoodieMetadataConfig.newBuilder()
                    .enable(true)
                    .withMetadataIndexColumnStats(true)
                    .withMetadataIndexColumnStatsFileGroupCount(1)
                    .withEnableGlobalRecordLevelIndex(true)
                    .withRecordIndexFileGroupCount(2, 2)
                    .withMaxNumDeltaCommitsBeforeCompaction(3)
                    .build())
            .build();
    Schema schema = new Schema.Parser().parse(SCHEMA);
    try (HoodieJavaWriteClient<HoodieAvroPayload> client =
        new HoodieJavaWriteClient<>(new HoodieJavaEngineContext(conf), config)) {
      List<String> stages = new ArrayList<>();
      insert(client, schema, 0, 20, 100);
      stages.add(state(base, conf, config));
      update(client, schema, 0, 10, 500);
      stages.add(state(base, conf, config));
      insert(client, schema, 20, 26, -7);
      stages.add(state(base, conf, config));
      delete(client, List.of(1, 2, 25));
      stages.add(state(base, conf, config));
      client.rollback(insert(client, schema, 40, 44, 9000));
      stages.add(state(base, conf, config));
      update(client, schema, 3, 5, 900);
      stages.add(state(base, conf, config));
      Files.writeString(Path.of(base + ".json"), "[\n" + String.join(",\n", stages) + "\n]\n");
    }
  }

  private static String insert(
      HoodieJavaWriteClient<HoodieAvroPayload> client, Schema schema, int from, int to, long amount) {
    List<HoodieRecord<HoodieAvroPayload>> rows = new ArrayList<>();
    for (int i = from; i < to; i++) {
      rows.add(row(schema, i, amount + i));
    }
    String instant = client.startCommit();
    commit(client, instant, client.insert(rows, instant));
    return instant;
  }

  private static void update(
      HoodieJavaWriteClient<HoodieAvroPayload> client, Schema schema, int from, int to, long amount) {
    List<HoodieRecord<HoodieAvroPayload>> rows = new ArrayList<>();
    for (int i = from; i < to; i++) {
      rows.add(row(schema, i, amount + i));
    }
    String instant = client.startCommit();
    commit(client, instant, client.upsert(rows, instant));
  }

  private static void delete(HoodieJavaWriteClient<HoodieAvroPayload> client, List<Integer> ids) {
    List<HoodieKey> keys = new ArrayList<>();
    for (int i : ids) {
      keys.add(new HoodieKey(String.format("id-%03d", i), i % 2 == 0 ? "eu" : "us"));
    }
    String instant = client.startCommit();
    commit(client, instant, client.delete(keys, instant));
  }

  private static void commit(
      HoodieJavaWriteClient<HoodieAvroPayload> client, String instant, List<WriteStatus> statuses) {
    for (WriteStatus status : statuses) {
      if (status.hasErrors()) {
        throw new IllegalStateException(status.toString());
      }
    }
    client.commit(instant, statuses);
  }

  /** What Hudi reads from the metadata: sizes of files, bounds of the column amount, places of records. */
  private static String state(String base, HadoopStorageConfiguration conf, HoodieWriteConfig config)
      throws Exception {
    HoodieTableMetaClient meta = HoodieTableMetaClient.builder().setConf(conf).setBasePath(base).build();
    HoodieBackedTableMetadata metadata =
        new HoodieBackedTableMetadata(
            new HoodieJavaEngineContext(conf), meta.getStorage(), config.getMetadataConfig(), base, true);
    StringBuilder json = new StringBuilder("{\n\"files\": {");
    StringBuilder stats = new StringBuilder();
    String comma = "";
    for (String part : new TreeSet<>(metadata.getAllPartitionPaths())) {
      Map<String, Long> files = new TreeMap<>();
      for (StoragePathInfo file : metadata.getAllFilesInPartition(new StoragePath(base, part))) {
        files.put(file.getPath().getName(), file.getLength());
      }
      for (Map.Entry<String, Long> file : files.entrySet()) {
        json.append(comma).append("\n\"").append(part).append('/').append(file.getKey()).append("\": ");
        json.append(file.getValue());
        HoodieMetadataColumnStats amount =
            metadata
                .getColumnStats(List.of(Pair.of(part, file.getKey())), "amount")
                .values()
                .iterator()
                .next();
        stats.append(comma).append("\n\"").append(file.getKey()).append("\": [");
        stats.append(((LongWrapper) amount.getMinValue()).getValue()).append(", ");
        stats.append(((LongWrapper) amount.getMaxValue()).getValue()).append(", ");
        stats.append(amount.getValueCount()).append(']');
        comma = ",";
      }
    }
    json.append("},\n\"amount\": {").append(stats);
    json.append("},\n\"record_index\": {");
    List<String> keys = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      keys.add(String.format("id-%03d", i));
    }
    comma = "";
    Map<String, String> locations = new TreeMap<>();
    metadata
        .readRecordIndexLocationsWithKeys(org.apache.hudi.common.data.HoodieListData.eager(keys))
        .collectAsList()
        .forEach(
            pair ->
                locations.put(
                    pair.getKey(),
                    "[\""
                        + pair.getValue().getPartitionPath()
                        + "\", \""
                        + pair.getValue().getFileId()
                        + "\", \""
                        + pair.getValue().getInstantTime()
                        + "\"]"));
    for (Map.Entry<String, String> entry : locations.entrySet()) {
      json.append(comma).append("\n\"").append(entry.getKey()).append("\": ").append(entry.getValue());
      comma = ",";
    }
    return json.append("}\n}").toString();
  }
}
