package io.coldframe.spark;

import io.coldframe.UnsupportedError;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;

/** Copies the jar's native library to a temporary file and loads it, once for each class loader. */
final class NativeLibrary {
  /** A system property with the path of another library, for development. */
  private static final String OVERRIDE = "coldframe.library";

  private static volatile boolean loaded;

  private NativeLibrary() {}

  /** The jar's version. */
  static String version() {
    Properties properties = new Properties();
    try (InputStream in = NativeLibrary.class.getResourceAsStream("/io/coldframe/spark/jar.properties")) {
      if (in != null) {
        properties.load(in);
      }
    } catch (IOException e) {
      throw new UnsupportedError("a jar whose version cannot be read: " + e.getMessage());
    }
    return properties.getProperty("version", "unknown");
  }

  static void load() {
    if (!loaded) {
      loadOnce();
    }
  }

  private static synchronized void loadOnce() {
    if (loaded) {
      return;
    }
    checkSpark();
    String path = System.getProperty(OVERRIDE);
    if (path != null) {
      loadInOwnThread(Paths.get(path).toAbsolutePath().toString());
    } else {
      loadCopy();
    }
    String version = new String(Native.version(), StandardCharsets.UTF_8);
    if (!version.equals(version())) {
      throw new UnsupportedError(
          "a jar of version " + version() + " with a native library of version " + version + ": take both from one build");
    }
    checkCalls();
    loaded = true;
  }

  /**
   * Checks that Java and the library have the same calls. The version number does not show this, since all
   * builds between two releases have the same version.
   */
  private static void checkCalls() {
    int calls;
    try {
      calls = Native.calls();
    } catch (UnsatisfiedLinkError e) {
      calls = 1; // the library has no such call
    }
    if (calls != Native.CALLS) {
      throw new UnsupportedError(
          "a jar with calls " + Native.CALLS + " and a native library with calls " + calls + ": take both from one build");
    }
  }

  /** Loads a copy of the jar's library. The copy is deleted at once, since a killed executor could not delete it later. */
  private static void loadCopy() {
    Path copy = unpack();
    try {
      loadInOwnThread(copy.toString());
    } finally {
      // Linux keeps the contents of the deleted file as long as they are mapped.
      copy.toFile().delete();
    }
  }

  /**
   * Loads the library in a thread that lives as long as the JVM. Its allocator, mimalloc 3, treats the
   * loading thread as the main thread. If that thread ended, a new thread with the same id would get its
   * heap, which is then freed.
   */
  private static void loadInOwnThread(String path) {
    CompletableFuture<Error> result = new CompletableFuture<>();
    Runnable load =
        () -> {
          try {
            System.load(path);
            result.complete(null);
          } catch (UnsatisfiedLinkError e) {
            result.complete(e);
            return;
          }
          while (true) {
            LockSupport.park();
          }
        };
    Thread thread = new Thread(null, load, "coldframe-allocator", 1 << 18);
    thread.setDaemon(true);
    thread.start();
    Error failed = result.join();
    if (failed != null) {
      throw new UnsupportedError("this platform: its system cannot load the native library: " + failed.getMessage());
    }
  }

  /** If Spark is too old, fails with a clear message instead of a ClassNotFoundException. */
  static void checkSpark() {
    try {
      Class.forName("org.apache.spark.sql.connector.read.SupportsPushDownV2Filters");
    } catch (ClassNotFoundException e) {
      throw new UnsupportedError("this Spark: the connector needs 3.3 or later");
    }
  }

  private static Path unpack() {
    String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
    String machine = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
    if (machine.equals("amd64")) {
      machine = "x86_64";
    }
    String platform = system + "-" + machine;
    String name = "/io/coldframe/native/" + platform + "/libcoldframe_jni.so";
    try (InputStream in = NativeLibrary.class.getResourceAsStream(name)) {
      if (in == null) {
        throw new UnsupportedError("this platform: the jar has no native library for " + platform);
      }
      Path file = Files.createTempFile("coldframe-" + version() + "-", ".so");
      try {
        Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
      } catch (IOException e) {
        file.toFile().delete();
        throw e;
      }
      return file;
    } catch (IOException e) {
      throw new UnsupportedError("the native library could not be copied to a temporary file: " + e.getMessage());
    }
  }
}
