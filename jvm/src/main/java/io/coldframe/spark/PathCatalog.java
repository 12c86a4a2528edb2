package io.coldframe.spark;

import io.coldframe.UnsupportedError;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalog whose tables are paths: with {@code spark.sql.catalog.coldframe = io.coldframe.spark.PathCatalog},
 * {@code SELECT .. FROM coldframe.`/path`} reads the files there. The catalog's options apply to all reads
 * ({@code spark.sql.catalog.coldframe.mode = DROPMALFORMED}).
 */
public class PathCatalog implements TableCatalog {
  private String name = "coldframe";
  private Map<String, String> options = new HashMap<>();

  @Override
  public void initialize(String catalog, CaseInsensitiveStringMap settings) {
    name = catalog;
    options = ColdframeSource.lower(settings.asCaseSensitiveMap());
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Table loadTable(Identifier path) {
    StringBuilder whole = new StringBuilder();
    for (String part : path.namespace()) {
      whole.append(part).append('.');
    }
    Map<String, String> all = new HashMap<>(options);
    all.put("path", whole.append(path.name()).toString());
    OpenTable open = new OpenTable(all, null);
    return new ColdframeTable(open, open.schema(), all);
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    return new Identifier[0];
  }

  private static UnsupportedError readOnly() {
    return new UnsupportedError("changing tables through the catalog of paths, which is read-only");
  }

  @Override
  public Table createTable(Identifier path, StructType schema, Transform[] partitions, Map<String, String> properties) {
    throw readOnly();
  }

  @Override
  public Table alterTable(Identifier path, TableChange... changes) {
    throw readOnly();
  }

  @Override
  public boolean dropTable(Identifier path) {
    throw readOnly();
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    throw readOnly();
  }
}
