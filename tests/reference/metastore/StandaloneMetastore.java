import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;

/**
 * The metastore of Hive 3 or 4 over a new database. The metastore of Hive 3 also has the tables for transactions; for Hive 4 only
 * scripts make them, which are not in its jars.
 */
public final class StandaloneMetastore {
  private StandaloneMetastore() {}

  public static void main(String[] arguments) throws Throwable {
    Class<?> maker = null;
    try {
      maker = Class.forName("org.apache.hadoop.hive.metastore.txn.TxnDbUtil");
    } catch (ClassNotFoundException hive4) {
      // Hive 4 has no such class.
    }
    if (maker != null) {
      maker.getMethod("prepDb", Configuration.class).invoke(null, MetastoreConf.newMetastoreConf());
    }
    HiveMetaStore.main(arguments);
  }
}
