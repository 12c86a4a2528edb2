import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;

/**
 * The metastore of Hive 3 or 4 over a new database. That of Hive 3 also has the tables for transactions; Hive 4 has them in scripts
 * alone, which are not in its jars.
 */
public final class StandaloneMetastore {
  private StandaloneMetastore() {}

  public static void main(String[] arguments) throws Throwable {
    Class<?> maker = null;
    try {
      maker = Class.forName("org.apache.hadoop.hive.metastore.txn.TxnDbUtil");
    } catch (ClassNotFoundException hive4) {
      // It has none.
    }
    if (maker != null) {
      maker.getMethod("prepDb", Configuration.class).invoke(null, MetastoreConf.newMetastoreConf());
    }
    HiveMetaStore.main(arguments);
  }
}
