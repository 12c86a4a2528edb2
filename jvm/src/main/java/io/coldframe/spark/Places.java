package io.coldframe.spark;

import io.coldframe.ColdframeError;
import io.coldframe.NotFoundError;
import io.coldframe.UnsupportedError;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import scala.Option;

/**
 * Where the paths of a {@code load()} lie, and who may read them, by the session's Hadoop configuration, as for Spark's own
 * readers.
 *
 * <pre>
 * /data/t            fs.defaultFS = hdfs://nn            hdfs://nn/data/t
 * viewfs://c/data/t  a mount table                       what is mounted there
 * s3a://b/t          fs.s3a.*, fs.s3a.bucket.b.*         options of the library's client: {@link S3aSettings}
 * hdfs://c/t         name services                       the same settings for the library's client
 * </pre>
 *
 * <p>Storage options of the user replace the session's.
 */
final class Places {
  private static final String[] PATHS = {"path", "paths", "location", "option.path"};
  private static final String STORAGE = "storage_options";
  private static final Pattern URL = Pattern.compile("([A-Za-z][A-Za-z0-9+.-]*):/.*", Pattern.DOTALL);
  /** The names of Hadoop's settings that say where HDFS is and how it is addressed. */
  private static final Pattern OF_HDFS =
      Pattern.compile(
          "fs\\.defaultFS|dfs\\.nameservices|dfs\\.ha\\..*|dfs\\.namenode\\.rpc-address.*|dfs\\.client\\.failover\\..*"
              + "|dfs\\.client\\.use\\.datanode\\.hostname|hadoop\\.security\\.authentication|hadoop\\.rpc\\.protection"
              + "|dfs\\.data\\.transfer\\.protection|dfs\\.encrypt\\.data\\.transfer");

  private static final List<String> AZURE = Arrays.asList("abfs", "abfss", "wasb", "wasbs", "adl", "az", "azure");
  /** Settings of identity, place and encryption; those of buffers and the like change no answer. */
  private static final Pattern OF_GOOGLE =
      Pattern.compile("google\\.cloud\\.auth\\..*|fs\\.gs\\.(auth|project|storage|encryption|requester|proxy|delegation|authorization)\\..*");
  private static final Pattern OF_AZURE =
      Pattern.compile(
          "fs\\.azure\\.(account|sas|delegation|encryption|client|endpoint|ssl|enable\\.delegation|identity|authorization|secure)\\..*"
              + "|fs\\.adl\\..*|dfs\\.adls\\..*");

  /** The options with paths that need no Hadoop configuration. */
  final Map<String, String> options;
  /** Hadoop's settings for the library's client of HDFS, which options of the user override. */
  final Map<String, String> session;

  private Places(Map<String, String> options, Map<String, String> session) {
    this.options = options;
    this.session = session;
  }

  /** The places that options name. Options that begin with {@code fs.} are added to the session's configuration. */
  static Places of(Map<String, String> given) {
    Map<String, String> options = new HashMap<>(given);
    Configuration session = session();
    for (String name : given.keySet()) {
      if (name.startsWith("fs.")) {
        session.set(name, options.remove(name));
      }
    }
    boolean isGivenMounts = isGiven(options, "hadoop_conf_dir") || isGiven(options, "fs.viewfs");
    List<String> paths = new ArrayList<>();
    for (String name : PATHS) {
      String text = options.get(name);
      if (text == null) {
        continue;
      }
      List<String> made = new ArrayList<>();
      for (String path : name.equals("paths") ? list(text) : Collections.singletonList(text)) {
        if (path.isEmpty()) {
          throw new IllegalArgumentException("an empty path: Spark's own readers refuse it as well");
        }
        made.add(resolved(path, session, !isGivenMounts));
      }
      paths.addAll(made);
      options.put(name, name.equals("paths") ? Json.texts(made) : made.get(0));
    }
    Map<String, String> storage = storage(paths, session, options);
    // Names of options lose their capitals. Hadoop's names, which have a dot, need them, so they are kept apart.
    Map<String, String> ofHadoop = new TreeMap<>();
    storage.forEach(
        (name, value) -> {
          if (name.contains(".")) {
            ofHadoop.put(name, value);
          } else {
            options.put(STORAGE + "." + name, value);
          }
        });
    return new Places(options, ofHadoop);
  }

  /** The place of files to write, for a source that knows no Hadoop configuration. */
  static Map<String, String> forWriting(Map<String, String> given) {
    String path = given.get("path");
    Map<String, String> options = new HashMap<>(given);
    if (path != null) {
      Configuration session = session();
      String made = resolved(path, session, false);
      if (!made.equals(path) && "viewfs".equals(scheme(made))) {
        throw new UnsupportedError("writing to a mount of fs.defaultFS (" + made + "): give the URL of what is mounted");
      }
      options.put("path", made);
      if (isS3a(made, session)) {
        S3aSettings.of(bucket(made), session, options).forEach((name, value) -> options.putIfAbsent(STORAGE + "." + name, value));
      }
    }
    return options;
  }

  /** Whether options name a place. */
  static boolean isGiven(Map<String, String> options) {
    return Arrays.stream(PATHS).anyMatch(options::containsKey);
  }

  /** The session's Hadoop configuration, as a copy. */
  static Configuration session() {
    Option<SparkSession> session = SparkSession.getActiveSession();
    session = session.isDefined() ? session : SparkSession.getDefaultSession();
    if (session.isEmpty()) {
      return new Configuration();
    }
    try {
      Object state = Reflected.call(session.get(), "sessionState");
      return new Configuration((Configuration) Reflected.call(state, "newHadoopConf"));
    } catch (ReflectiveOperationException e) {
      throw failed("the session's Hadoop configuration", e);
    }
  }

  /** A setting that is not one of Hadoop's own defaults; null if there is none. */
  static String explicit(Configuration session, String name) {
    String[] sources = session.getPropertySources(name);
    boolean isDefault = sources != null && sources.length > 0 && sources[sources.length - 1].endsWith("-default.xml");
    String value = isDefault ? null : session.getTrimmed(name);
    return value == null || value.isEmpty() ? null : value;
  }

  /** Whether the user gives a storage option whose name begins in this way. */
  static boolean isGiven(Map<String, String> options, String name) {
    String whole = options.getOrDefault(STORAGE, "").toLowerCase(Locale.ROOT);
    return whole.contains("\"" + name) || options.keySet().stream().anyMatch(each -> each.startsWith(STORAGE + "." + name));
  }

  /** A path as the session's configuration means it; {@code mounts}: whether to follow mounts of viewfs. */
  static String resolved(String path, Configuration session, boolean mounts) {
    String whole = path;
    if (scheme(path) == null) {
      URI root = FileSystem.getDefaultUri(session);
      if (root.getScheme() == null || root.getScheme().equals("file")) {
        return path;
      }
      String base = root.getScheme() + "://" + (root.getAuthority() == null ? "" : root.getAuthority());
      whole = base + (path.startsWith("/") ? path : home(root, session) + "/" + path);
    }
    return mounts && "viewfs".equals(scheme(whole)) ? mounted(whole, session) : whole;
  }

  /** The scheme of a URL in lower case; null for a path. */
  private static String scheme(String path) {
    Matcher matcher = URL.matcher(path);
    return matcher.matches() ? matcher.group(1).toLowerCase(Locale.ROOT) : null;
  }

  private static String home(URI root, Configuration session) {
    try {
      return FileSystem.get(root, session).getWorkingDirectory().toUri().getPath();
    } catch (IOException e) {
      throw failed("the home directory in " + root, e);
    }
  }

  /** What is mounted at a path of viewfs. A pattern begins below the mount. */
  private static String mounted(String url, Configuration session) {
    Matcher pattern = Pattern.compile("/[^/]*[*?\\[{].*", Pattern.DOTALL).matcher(url);
    String fixed = pattern.find() ? url.substring(0, pattern.start()) : url;
    try {
      Path path = new Path(fixed.endsWith("//") || fixed.isEmpty() ? fixed + "/" : fixed);
      String target = FileSystem.get(path.toUri(), session).resolvePath(path).toString();
      if ("viewfs".equals(scheme(target))) {
        throw new UnsupportedError("a path above the mounts of viewfs (" + url + "): load what is mounted below");
      }
      return target + url.substring(fixed.length());
    } catch (FileNotFoundException e) {
      throw new NotFoundError(url + ": no such file or directory");
    } catch (IOException e) {
      throw failed(url, e);
    }
  }

  /** The options of the store at these paths; the session's settings must be the same for all of them. */
  private static Map<String, String> storage(List<String> paths, Configuration session, Map<String, String> options) {
    Map<String, String> first = null;
    for (String path : paths) {
      Map<String, String> own = storage(path, session, options);
      if (first != null && !first.equals(own)) {
        throw new UnsupportedError(
            "paths of stores for which the session has different settings (" + paths.get(0) + ", " + path
                + "): load each by itself, and unite the DataFrames");
      }
      first = own;
    }
    return first == null ? Collections.emptyMap() : first;
  }

  private static Map<String, String> storage(String path, Configuration session, Map<String, String> options) {
    if (isS3a(path, session)) {
      return S3aSettings.of(bucket(path), session, options);
    }
    checkOthers(path, session, options);
    Map<String, String> settings = new TreeMap<>();
    if ("hdfs".equals(scheme(path)) && !isGiven(options, "hadoop_conf_dir")) {
      for (Map.Entry<String, String> entry : session) {
        String value = OF_HDFS.matcher(entry.getKey()).matches() ? explicit(session, entry.getKey()) : null;
        if (value != null && !isGiven(options, entry.getKey().toLowerCase(Locale.ROOT))) {
          settings.put(entry.getKey(), value);
        }
      }
    }
    return settings;
  }

  /**
   * Refuses the session's settings of Google's and Azure's stores that say who reads and from where: the library's clients do
   * not follow them, and would read with other credentials.
   */
  private static void checkOthers(String path, Configuration session, Map<String, String> options) {
    String scheme = scheme(path);
    Pattern names = scheme == null ? null : scheme.equals("gs") ? OF_GOOGLE : AZURE.contains(scheme) ? OF_AZURE : null;
    if (names == null || !options.getOrDefault(STORAGE, "").isEmpty() || options.keySet().stream().anyMatch(name -> name.startsWith(STORAGE + "."))) {
      return;
    }
    for (Map.Entry<String, String> entry : session) {
      if (names.matcher(entry.getKey()).matches() && explicit(session, entry.getKey()) != null) {
        throw new UnsupportedError(
            "the session's setting " + entry.getKey() + ": coldframe's client of " + scheme
                + ":// cannot follow it; storage_options give it settings of its own");
      }
    }
  }

  /** Whether Spark reads a URL through S3A. */
  private static boolean isS3a(String path, Configuration session) {
    String scheme = scheme(path);
    if (scheme == null || !Arrays.asList("s3a", "s3", "s3n").contains(scheme)) {
      return false;
    }
    return scheme.equals("s3a") || session.get("fs." + scheme + ".impl", "").endsWith("S3AFileSystem");
  }

  private static String bucket(String url) {
    return url.replaceFirst("^[^/]*//", "").replaceFirst("/.*$", "");
  }

  /** The texts of a JSON list. Spark's classes for JSON are in another package in other releases. */
  static List<String> list(String json) {
    try {
      Class<?> type = Class.forName("com.fasterxml.jackson.databind.ObjectMapper");
      Object mapper = type.getConstructor().newInstance();
      Object read = type.getMethod("readValue", String.class, Class.class).invoke(mapper, json, String[].class);
      return Arrays.asList((String[]) read);
    } catch (ReflectiveOperationException e) {
      throw failed("option paths: expected a JSON list of texts", e);
    }
  }

  private static ColdframeError failed(String what, Exception e) {
    ColdframeError error = new ColdframeError(what + ": " + (e.getCause() == null ? e : e.getCause()));
    error.initCause(e);
    return error;
  }
}
