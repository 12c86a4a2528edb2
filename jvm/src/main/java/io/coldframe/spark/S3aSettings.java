package io.coldframe.spark;

import io.coldframe.ColdframeError;
import io.coldframe.UnsupportedError;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;

/**
 * Hadoop's settings of S3A as options of the library's client. If the client lacks a setting that makes S3A use another
 * endpoint or user, or decrypt data, this is an {@link UnsupportedError}. Source: the page "Connecting to an Amazon S3
 * Bucket through the S3A Connector" of Hadoop's documentation.
 */
final class S3aSettings {
  private static final String PREFIX = "fs.s3a.";
  private static final String PROVIDERS = "aws.credentials.provider";
  private static final String KEY_STORES = "hadoop.security.credential.provider.path";
  /** Options of the client that choose its credentials. */
  private static final List<String> CREDENTIALS =
      Arrays.asList("access_key_id", "aws_access_key_id", "secret_access_key", "aws_secret_access_key", "profile", "skip_signature");
  private static final Pattern ADDRESS = Pattern.compile("\\[.*|[0-9.]+|localhost");
  private static final Pattern OF_AWS = Pattern.compile("(?:.*\\.)?s3[.-]([a-z0-9-]+)\\.amazonaws\\.com(?:\\.cn)?");

  private final Configuration session;
  private final Map<String, String> settings = new TreeMap<>();

  private S3aSettings(Configuration session) {
    this.session = session;
  }

  /** The client's options for a bucket, except those that the user gives. */
  static Map<String, String> of(String bucket, Configuration session, Map<String, String> options) {
    S3aSettings made = new S3aSettings(ofBucket(bucket, session));
    made.check();
    if (!Places.isGiven(options, "endpoint") && !Places.isGiven(options, "aws_endpoint")) {
      made.addEndpoint(bucket);
    }
    if (CREDENTIALS.stream().noneMatch(name -> Places.isGiven(options, name))) {
      made.addCredentials();
    }
    made.settings.keySet().removeIf(name -> Places.isGiven(options, name));
    return made.settings;
  }

  /** The settings of one bucket replace the general ones. */
  private static Configuration ofBucket(String bucket, Configuration session) {
    Configuration own = new Configuration(session);
    String prefix = PREFIX + "bucket." + bucket + ".";
    for (Map.Entry<String, String> each : session) {
      if (each.getKey().startsWith(prefix)) {
        own.set(PREFIX + each.getKey().substring(prefix.length()), each.getValue());
      }
    }
    String stores = own.get(PREFIX + "security.credential.provider.path", "");
    if (!stores.isEmpty()) {
      String others = own.get(KEY_STORES, "");
      own.set(KEY_STORES, others.isEmpty() ? stores : stores + "," + others);
    }
    return own;
  }

  private String get(String name) {
    return Places.explicit(session, PREFIX + name);
  }

  /** A secret, which may be in one of Hadoop's key stores. */
  private String secret(String name) {
    try {
      char[] secret = session.getPassword(PREFIX + name);
      String text = secret == null ? "" : new String(secret).trim();
      return text.isEmpty() ? null : text;
    } catch (IOException e) {
      ColdframeError error = new ColdframeError("the secret " + PREFIX + name + " cannot be read: " + e.getMessage());
      error.initCause(e);
      throw error;
    }
  }

  private void check() {
    for (String name : new String[] {"accesspoint.arn", "delegation.token.binding", "custom.signers", "signing-algorithm"}) {
      if (get(name) != null) {
        throw refused(name);
      }
    }
    for (String name : new String[] {"encryption.algorithm", "server-side-encryption-algorithm"}) {
      String algorithm = get(name);
      if (algorithm != null && (algorithm.equals("SSE-C") || algorithm.startsWith("CSE"))) {
        throw refused(name);
      }
    }
    String client = get("impl");
    if (client != null && !client.endsWith(".S3AFileSystem")) {
      throw refused("impl");
    }
  }

  private UnsupportedError refused(String name) {
    String value = get(name);
    return new UnsupportedError(
        "the session's setting " + PREFIX + name + " = " + value
            + ": coldframe's client of S3 cannot follow it; storage_options give it settings of its own");
  }

  private void addEndpoint(String bucket) {
    String region = get("endpoint.region");
    if (region != null) {
      settings.put("region", region);
    }
    if ("true".equalsIgnoreCase(get("requester.pays.enabled"))) {
      settings.put("request_payer", "true");
    }
    addProxy();
    String endpoint = get("endpoint");
    if (endpoint == null) {
      return;
    }
    boolean isPlain = "false".equalsIgnoreCase(get("connection.ssl.enabled"));
    String whole = endpoint.contains("://") ? endpoint : (isPlain ? "http://" : "https://") + endpoint;
    String scheme = whole.substring(0, whole.indexOf("://") + 3);
    String host = whole.substring(scheme.length()).replaceFirst("/+$", "");
    Matcher aws = OF_AWS.matcher(host);
    if (host.equals("s3.amazonaws.com")) {
      return; // S3A then asks for the bucket's region, as without an endpoint
    }
    if (aws.matches() && region == null) {
      settings.put("region", aws.group(1));
    }
    boolean isPath = "true".equalsIgnoreCase(get("path.style.access")) || aws.matches();
    if (isPath || ADDRESS.matcher(host.replaceFirst(":[0-9]+$", "")).matches()) {
      settings.put("endpoint", scheme + host);
      return;
    }
    settings.put("endpoint", scheme + bucket + "." + host);
    settings.put("virtual_hosted_style_request", "true");
  }

  private void addProxy() {
    String host = get("proxy.host");
    if (host == null) {
      return;
    }
    if (get("proxy.username") != null) {
      throw refused("proxy.username");
    }
    String port = get("proxy.port");
    boolean isPlain = "false".equalsIgnoreCase(get("connection.ssl.enabled"));
    settings.put("proxy_url", "http://" + host + ":" + (port != null ? port : isPlain ? "80" : "443"));
  }

  /** The credentials of the first provider that has some, as in S3A. */
  private void addCredentials() {
    String listed = get(PROVIDERS);
    List<String> classes =
        listed == null
            ? Arrays.asList("TemporaryAWSCredentialsProvider", "SimpleAWSCredentialsProvider", "EnvironmentVariableCredentialsProvider", "IAMInstanceCredentialsProvider")
            : Arrays.asList(listed.trim().split("\\s*,\\s*"));
    boolean isEnvironmentAsked = false;
    for (String each : classes) {
      switch (each.substring(each.lastIndexOf('.') + 1)) {
        case "TemporaryAWSCredentialsProvider":
          if (addKeys("session.token")) {
            return;
          }
          break;
        case "SimpleAWSCredentialsProvider":
          if (addKeys(null)) {
            return;
          }
          break;
        case "AnonymousAWSCredentialsProvider":
        case "AnonymousCredentialsProvider":
          settings.put("skip_signature", "true");
          return;
        case "ProfileCredentialsProvider":
        case "ProfileAWSCredentialsProvider":
          String profile = System.getenv("AWS_PROFILE");
          settings.put("profile", profile == null ? "default" : profile);
          return;
        case "EnvironmentVariableCredentialsProvider":
        case "DefaultCredentialsProvider":
        case "DefaultAWSCredentialsProviderChain":
        case "WebIdentityTokenCredentialsProvider":
        case "WebIdentityTokenFileCredentialsProvider":
          isEnvironmentAsked = true; // the client looks there by itself
          break;
        case "IAMInstanceCredentialsProvider":
        case "InstanceProfileCredentialsProvider":
        case "ContainerCredentialsProvider":
        case "EC2ContainerCredentialsProviderWrapper":
          if (!isEnvironmentAsked && System.getenv("AWS_ACCESS_KEY_ID") != null) {
            throw refused(PROVIDERS); // the client would take the keys of the environment first
          }
          return;
        default:
          throw refused(PROVIDERS);
      }
    }
    if (listed != null && !isEnvironmentAsked) {
      throw new ColdframeError("no credentials for S3: " + PREFIX + PROVIDERS + " = " + listed + ", and none of these has keys");
    }
  }

  /** Adds the session's keys, with the token if it is needed; false if the session has none. */
  private boolean addKeys(String token) {
    List<String> names = token == null ? Arrays.asList("access.key", "secret.key") : Arrays.asList("access.key", "secret.key", token);
    Map<String, String> secrets = new TreeMap<>();
    for (String name : names) {
      String secret = secret(name);
      if (secret == null) {
        return false;
      }
      secrets.put(name, secret);
    }
    settings.put("access_key_id", secrets.get("access.key"));
    settings.put("secret_access_key", secrets.get("secret.key"));
    if (token != null) {
      settings.put("session_token", secrets.get(token));
    }
    return true;
  }
}
