package reference;

import java.io.File;
import org.apache.hadoop.minikdc.MiniKdc;

/**
 * Kdc DIR: a KDC on the loopback, with the keys of a service in DIR/hive.keytab and of a user in DIR/client.keytab.
 *
 * <p>Prints {@code READY KRB5CONF REALM}, and ends with its standard input.
 */
public final class Kdc {
  private Kdc() {}

  public static void main(String[] args) throws Exception {
    File base = new File(args[0]).getAbsoluteFile();
    MiniKdc kdc = new MiniKdc(MiniKdc.createConf(), new File(base, "kdc"));
    kdc.start();
    kdc.createPrincipal(new File(base, "hive.keytab"), "hive/localhost");
    kdc.createPrincipal(new File(base, "client.keytab"), "olga");
    System.out.println("READY " + kdc.getKrb5conf() + " " + kdc.getRealm());
    while (System.in.read() >= 0) {
      // Wait until standard input is closed.
    }
    kdc.stop();
    System.exit(0);
  }
}
