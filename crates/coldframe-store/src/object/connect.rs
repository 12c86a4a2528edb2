//! Builds a client from a URL and options.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coldframe_core::process::PerProcess;
use coldframe_core::{Error, Result, shown};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};
use url::Url;

use super::busy_retry::BusyRetry;
use super::{ObjectFiles, error};
use crate::files::Resolved;
use crate::options::{Kind, Options, truth};
use crate::runtime::kept;

/// The connection to a bucket, container or server; each process has its own client.
#[derive(Clone)]
pub(crate) struct Connection {
    config: Arc<ConnectionConfig>,
    client: Arc<PerProcess<Arc<dyn ObjectStore>>>,
}

/// Everything needed to build a client. No `Debug`: the configuration contains secrets.
#[derive(PartialEq, Eq)]
struct ConnectionConfig {
    kind: Kind,
    /// Scheme and authority, such as `s3://bucket`; for a web server with the query.
    base: String,
    options: Options,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({})", shown(&self.config.base))
    }
}

impl Connection {
    /// The client of this process.
    pub(crate) fn store(&self) -> Result<Arc<dyn ObjectStore>> {
        self.client.get(|| self.config.build()).map(|client| (*client).clone())
    }

    /// Whether this is a plain web server.
    pub(crate) fn is_web(&self) -> bool {
        self.config.kind == Kind::Http
    }

    /// Whether a file's last bytes can be requested without knowing its length.
    pub(crate) fn has_suffixes(&self) -> bool {
        self.config.kind != Kind::Azure
    }
}

/// The store of a URL.
pub(crate) fn connect(url: &str, scheme: &str, given: &BTreeMap<String, String>) -> Result<Resolved> {
    let shown = shown(url);
    let named = |e: Error| e.in_file(shown.as_str());
    let (kind, base, key) = divide(url, scheme).map_err(named)?;
    let options = options(kind, &base, given).map_err(named)?;
    let connection = connection(ConnectionConfig { kind, base, options });
    // A client that cannot be built fails here, not when the first file is read.
    connection.store().map_err(named)?;
    let files = Arc::new(ObjectFiles::new(Arc::new(connection)));
    Ok(Resolved { files, url: shown.clone(), root: key })
}

/// The options of the store of a URL, completed from the environment.
pub(crate) fn resolved(url: &str, scheme: &str, given: &BTreeMap<String, String>) -> Result<Options> {
    let named = |e: Error| e.in_file(shown(url));
    let (kind, base, _) = divide(url, scheme).map_err(named)?;
    options(kind, &base, given).map_err(named)
}

/// The connection that an earlier file used, whose client has open connections; otherwise a new connection.
fn connection(config: ConnectionConfig) -> Connection {
    static ALL: Mutex<Vec<Connection>> = Mutex::new(Vec::new());
    let config = Arc::new(config);
    kept(
        &ALL,
        |c| c.config == config,
        || Connection { config: config.clone(), client: Arc::new(PerProcess::new()) },
    )
}

/// Divides a URL into the kind of store, the base and the key. A key is the literal text after the authority;
/// for a web server's URL it is unescaped, since there `%` is an escape.
fn divide(url: &str, scheme: &str) -> Result<(Kind, String, String)> {
    let rest = url.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
    let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
    let kind = match scheme {
        "s3" | "s3a" | "s3n" => Kind::S3,
        "gs" | "gcs" => Kind::Google,
        "az" | "adl" | "azure" | "abfs" | "abfss" | "wasb" | "wasbs" => Kind::Azure,
        "http" | "https" => Kind::Http,
        _ => return Err(Error::unsupported(format!("{scheme}:// URLs"))),
    };
    if authority.is_empty() {
        return Err(Error::invalid(format!(
            "expected {scheme}://NAME/.., found no name in {:?}",
            shown(url)
        )));
    }
    if kind != Kind::Http {
        return Ok((kind, format!("{scheme}://{authority}"), key.to_owned()));
    }
    let parsed = Url::parse(url).map_err(|e| Error::invalid(format!("not a URL: {e}")))?;
    let path = object_store::path::Path::from_url_path(parsed.path())
        .map_err(|e| Error::invalid(format!("not a path in a URL: {e}")))?;
    let query = parsed.query().map(|query| format!("?{query}")).unwrap_or_default();
    let base = format!("{}://{}{query}", parsed.scheme(), parsed.authority());
    Ok((kind, base, path.to_string()))
}

/// The given options, completed from the environment.
fn options(kind: Kind, base: &str, given: &BTreeMap<String, String>) -> Result<Options> {
    let known: fn(&str) -> bool = match kind {
        Kind::S3 => |name| AmazonS3ConfigKey::from_str(name).is_ok(),
        Kind::Google => |name| GoogleConfigKey::from_str(name).is_ok(),
        Kind::Azure => |name| AzureConfigKey::from_str(name).is_ok(),
        Kind::Http | Kind::Hdfs => |name| ClientConfigKey::from_str(name).is_ok(),
    };
    let mut options = Options::new(kind, given, known)?;
    let credentials: &[&str] = match kind {
        Kind::S3 => &["access_key_id", "secret_access_key", "session_token", "skip_signature", "profile"],
        _ => &[],
    };
    // Given credentials must not be mixed with credentials in the environment.
    let given_credentials = options.has_any(credentials);
    match kind {
        Kind::S3 => {
            let is_credential = move |name: &str| credentials.contains(&name);
            let of_environment = {
                let mut variables = Options::default();
                variables.add_environment(kind, "AWS_", known);
                variables
            };
            for (name, value) in of_environment.iter() {
                if !(given_credentials && is_credential(name)) {
                    options.or_set(name, value);
                }
            }
            super::profile::add(&mut options)?;
            // Without this option the client refuses a conditional copy, although the server may support it.
            options.or_set("copy_if_not_exists", "multipart");
        }
        Kind::Google => options.add_environment(kind, "GOOGLE_", known),
        Kind::Azure => options.add_environment(kind, "AZURE_", known),
        Kind::Http | Kind::Hdfs => {}
    }
    // An http:// URL allows http; for which the client alone would require a second option.
    let endpoint = options.get("endpoint").or(options.get("base_url"));
    if base.starts_with("http://") || endpoint.is_some_and(|e| e.starts_with("http://")) {
        options.or_set("allow_http", "true");
    }
    // An endpoint may have no scheme, as in Hadoop.
    if let Some(bare) = options.get("endpoint").filter(|e| !e.is_empty() && !e.contains("://")) {
        let scheme = if options.get("allow_http").and_then(truth) == Some(true) { "http" } else { "https" };
        let whole = format!("{scheme}://{bare}");
        options.take("endpoint");
        options.or_set("endpoint", whole);
    }
    Ok(options)
}

impl ConnectionConfig {
    fn build(&self) -> Result<Arc<dyn ObjectStore>> {
        // An error only means that this process has chosen a provider before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut options = self.options.clone();
        let (retry, busy_retry) = retry(&mut options)?;
        let client = client(&mut options)?;
        let authority = self.base.split_once("://").map(|(_, name)| name).unwrap_or_default();
        let store: Arc<dyn ObjectStore> = match self.kind {
            Kind::S3 => {
                let builder = AmazonS3Builder::new()
                    .with_client_options(client)
                    .with_retry(retry)
                    .with_http_connector(busy_retry);
                let builder = configure(builder, &options, AmazonS3Builder::with_config)?;
                Arc::new(builder.with_bucket_name(authority).build().map_err(error)?)
            }
            Kind::Google => {
                let builder = GoogleCloudStorageBuilder::new()
                    .with_client_options(client)
                    .with_retry(retry)
                    .with_http_connector(busy_retry);
                let builder = configure(builder, &options, GoogleCloudStorageBuilder::with_config)?;
                Arc::new(builder.with_bucket_name(authority).build().map_err(error)?)
            }
            Kind::Azure => {
                let builder = MicrosoftAzureBuilder::new()
                    .with_client_options(client)
                    .with_retry(retry)
                    .with_http_connector(busy_retry);
                let builder = configure(
                    builder.with_url(azure_url(&self.base)),
                    &options,
                    MicrosoftAzureBuilder::with_config,
                )?;
                Arc::new(builder.build().map_err(error)?)
            }
            Kind::Http | Kind::Hdfs => {
                let builder = HttpBuilder::new()
                    .with_url(&self.base)
                    .with_client_options(client)
                    .with_retry(retry)
                    .with_http_connector(busy_retry);
                Arc::new(builder.build().map_err(error)?)
            }
        };
        Ok(store)
    }
}

/// The URL with a scheme that the client supports.
fn azure_url(base: &str) -> String {
    match base.split_once("://") {
        Some(("wasb" | "wasbs", rest)) => format!("abfss://{}", rest.replace(".blob.", ".dfs.")),
        _ => base.to_owned(),
    }
}

/// Passes each option to a builder.
fn configure<B, K: FromStr<Err = object_store::Error>>(
    builder: B,
    options: &Options,
    with: impl Fn(B, K, String) -> B,
) -> Result<B> {
    options.iter().try_fold(builder, |builder, (name, value)| {
        let key = K::from_str(name)
            .map_err(|_| Error::invalid(format!("no storage option `{name}` for this store")))?;
        Ok(with(builder, key, value.to_owned()))
    })
}

/// Timeouts and retries.
fn retry(options: &mut Options) -> Result<(RetryConfig, BusyRetry)> {
    let max_retries = options.take("max_retries").map(|text| {
        text.parse::<usize>().map_err(|_| {
            Error::invalid(format!("storage option `max_retries`: expected a number, found {text:?}"))
        })
    });
    let max_retries = max_retries.transpose()?;
    let retry_timeout = options.take_time("retry_timeout", Duration::from_secs(60))?;
    let redirect_hosts = options.take("redirect_hosts").unwrap_or_default().into();
    let busy_retry = BusyRetry { retry_timeout, max_retries, redirect_hosts };
    let max_retries = max_retries.unwrap_or(4);
    Ok((RetryConfig { backoff: BackoffConfig::default(), max_retries, retry_timeout }, busy_retry))
}

/// A long response may take any length of time, but the server must not stop sending.
fn client(options: &mut Options) -> Result<ClientOptions> {
    let silence = options.take_time("timeout", Duration::from_secs(20))?;
    let connect = options.take_time("connect_timeout", Duration::from_secs(5))?;
    let mut client =
        ClientOptions::new().with_timeout_disabled().with_read_timeout(silence).with_connect_timeout(connect);
    let ours: Vec<(String, ClientConfigKey)> =
        options.iter().filter_map(|(name, _)| Some((name.to_owned(), name.parse().ok()?))).collect();
    for (name, key) in ours {
        if let Some(value) = options.take(&name) {
            client = client.with_config(key, value);
        }
    }
    Ok(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(url: &str) -> (Kind, String, String) {
        divide(url, url.split("://").next().unwrap()).unwrap()
    }

    #[test]
    fn keys_are_literal_except_for_web_servers() {
        let key = |url: &str| divided(url).2;
        assert_eq!(key("s3a://b/w/region=asia%2Fpacific/a b#c?d"), "w/region=asia%2Fpacific/a b#c?d");
        assert_eq!(key("abfss://c@account.dfs.core.windows.net/a%20b"), "a%20b");
        assert_eq!((key("gs://b"), key("gs://b/")), (String::new(), String::new()));
        assert_eq!(key("https://host/a%20b/c"), "a b/c");
        assert_eq!(divided("https://host:1/x?sig=a%2Fb").1, "https://host:1?sig=a%2Fb");
        assert!(divide("s3:///x", "s3").is_err());
        assert!(divide("ftp://h/x", "ftp").is_err());
    }

    #[test]
    fn secrets_are_not_shown() {
        let given = BTreeMap::from([
            ("secret_access_key".to_owned(), "hush".to_owned()),
            ("access_key_id".to_owned(), "k".to_owned()),
        ]);
        let store = connect("s3://bucket/x", "s3", &given).unwrap();
        assert!(!format!("{store:?}").contains("hush"), "{store:?}");
        let store = connect("https://host/x?sig=hush", "https", &BTreeMap::new()).unwrap();
        assert!(!format!("{store:?}").contains("hush") && store.url == "https://host/x", "{store:?}");
    }

    #[test]
    fn files_of_a_bucket_share_a_client() {
        let given = BTreeMap::from([("skip_signature".to_owned(), "true".to_owned())]);
        let options = options(Kind::S3, "s3://b", &given).unwrap();
        let of = |base: &str| {
            connection(ConnectionConfig { kind: Kind::S3, base: base.to_owned(), options: options.clone() })
        };
        assert!(Arc::ptr_eq(&of("s3://one").client, &of("s3://one").client));
        assert!(!Arc::ptr_eq(&of("s3://one").client, &of("s3://other").client));
    }

    #[test]
    fn endpoints_may_have_no_scheme() {
        let given = BTreeMap::from([
            ("fs.s3a.endpoint".to_owned(), "h:9000".to_owned()),
            ("fs.s3a.connection.ssl.enabled".to_owned(), "false".to_owned()),
        ]);
        assert_eq!(options(Kind::S3, "s3://b", &given).unwrap().get("endpoint"), Some("http://h:9000"));
    }
}
