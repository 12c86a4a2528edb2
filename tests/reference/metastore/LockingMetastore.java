import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;

/** Hive's metastore over a new database that also has the tables for locks: Iceberg's commits take them. */
public final class LockingMetastore {
  private LockingMetastore() {}

  public static void main(String[] arguments) throws Throwable {
    TxnDbUtil.prepDb(new HiveConf());
    HiveMetaStore.main(arguments);
  }
}
