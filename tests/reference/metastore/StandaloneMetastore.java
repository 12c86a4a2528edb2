import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;

/** The metastore of Hive 3 or 4 over a new database that also has the tables for transactions and locks. */
public final class StandaloneMetastore {
  private static final List<String> MAKERS =
      List.of(
          "org.apache.hadoop.hive.metastore.txn.TxnDbUtil",
          "org.apache.hadoop.hive.metastore.utils.TestTxnDbUtil");

  private StandaloneMetastore() {}

  public static void main(String[] arguments) throws Throwable {
    for (String maker : MAKERS) {
      try {
        Class.forName(maker).getMethod("prepDb", Configuration.class).invoke(null, MetastoreConf.newMetastoreConf());
      } catch (ClassNotFoundException | NoSuchMethodException other) {
        // Each version has one of them.
      }
    }
    HiveMetaStore.main(arguments);
  }
}
