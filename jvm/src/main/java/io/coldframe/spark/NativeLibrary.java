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

/** The library that the jar carries: copied to a temporary file and loaded, once for each class loader. */
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
    String given = System.getProperty(OVERRIDE);
    if (given != null) {
      loadForEver(Paths.get(given).toAbsolutePath().toString());
    } else {
      loadCopy();
    }
    String found = new String(Native.version(), StandardCharsets.UTF_8);
    if (!found.equals(version())) {
      throw new UnsupportedError(
          "a jar of version " + version() + " with a native library of version " + found + ": take both from one build");
    }
    checkCalls();
    loaded = true;
  }

  /** Builds between two releases have one version. */
  private static void checkCalls() {
    int found;
    try {
      found = Native.calls();
    } catch (UnsatisfiedLinkError e) {
      found = 1; // before they had a number
    }
    if (found != Native.CALLS) {
      throw new UnsupportedError(
          "a jar with calls " + Native.CALLS + " and a native library with calls " + found + ": take both from one build");
    }
  }

  /** Loads a copy of the jar's library. The copy goes at once, since an executor that is killed could not remove it later. */
  private static void loadCopy() {
    Path copy = unpacked();
    try {
      loadForEver(copy.toString());
    } finally {
      // Linux keeps the contents for as long as they are mapped.
      copy.toFile().delete();
    }
  }

  /**
   * Loads the library in a thread that stays as long as the JVM. Its allocator, mimalloc 3, takes the thread that loads it for the
   * main one, and when that thread ends, and its number is given to a new one, finds in the new one a heap that was given back.
   */
  private static void loadForEver(String path) {
    CompletableFuture<Error> done = new CompletableFuture<>();
    Runnable load =
        () -> {
          try {
            System.load(path);
            done.complete(null);
          } catch (UnsatisfiedLinkError e) {
            done.complete(e);
            return;
          }
          while (true) {
            LockSupport.park();
          }
        };
    Thread thread = new Thread(null, load, "coldframe-allocator", 1 << 18);
    thread.setDaemon(true);
    thread.start();
    Error failed = done.join();
    if (failed != null) {
      throw new UnsupportedError("this platform: its system cannot load the native library: " + failed.getMessage());
    }
  }

  /** Says so where Spark is too old for this connector, instead of a class that is not found. */
  static void checkSpark() {
    try {
      Class.forName("org.apache.spark.sql.connector.read.SupportsPushDownV2Filters");
    } catch (ClassNotFoundException e) {
      throw new UnsupportedError("this Spark: the connector needs 3.3 or later");
    }
  }

  private static Path unpacked() {
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
