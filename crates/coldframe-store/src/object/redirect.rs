//! Redirects: followed on the host that was asked, and to the hosts that the user names.
//!
//! ```text
//! GET https://store/a    307 https://store/b        followed
//!                        302 https://elsewhere/b    an error; without credentials if `redirect_hosts` has it
//!                        302 http://store/b         an error
//! ```
//!
//! The headers of a request are credentials for its host: `authorization`, but also `x-amz-security-token`, which a
//! client of the web does not know. And a server that sends a reader to any address gets access to servers
//! that only the reader can reach. So object_store's client, which follows all redirects with all such
//! headers, is not used: the client is made here, from the same options.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use object_store::client::{HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService};
use object_store::{ClientConfigKey as Key, ClientOptions};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, NoProxy, Proxy};
use url::Url;

use super::addresses::Shuffled;
use crate::options::{time, truth};

/// How many redirects are followed for one request.
const MOST: usize = 10;

/// The headers that another host gets. These headers say which bytes are wanted.
const HARMLESS: [&str; 6] =
    ["accept", "if-match", "if-modified-since", "if-none-match", "if-unmodified-since", "range"];

/// A client that decides on redirects.
#[derive(Debug)]
pub(super) struct Redirects {
    client: HttpClient,
    /// The other hosts that may be asked: names separated by commas, or `*`.
    hosts: Arc<str>,
}

/// What to do with a redirect.
#[derive(Debug, PartialEq, Eq)]
enum Way {
    /// Send the same request there.
    Same,
    /// Send the request there without credentials.
    Bare,
    /// Report it.
    Refused,
}

impl Redirects {
    /// A client with these options. `hosts`: the storage option `redirect_hosts`.
    pub(super) fn new(options: &ClientOptions, hosts: Arc<str>) -> object_store::Result<Self> {
        Ok(Self { client: HttpClient::new(client(options)?), hosts })
    }

    async fn execute(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        for _ in 0..=MOST {
            let answer = self.client.execute(request.clone()).await?;
            let Some(location) = location(&request, &answer) else { return Ok(answer) };
            let asked = Url::parse(&request.uri().to_string()).map_err(other)?;
            let target = asked.join(&location).map_err(other)?;
            match self.way(&asked, &target) {
                Way::Same => {}
                Way::Bare => {
                    let headers = std::mem::take(request.headers_mut());
                    for name in HARMLESS {
                        if let (Some(value), Ok(name)) = (headers.get(name), name.parse()) {
                            request.headers_mut().insert::<reqwest::header::HeaderName>(name, value.clone());
                        }
                    }
                }
                Way::Refused => return Err(other(refusal(&asked, &target))),
            }
            *request.uri_mut() = target.as_str().parse().map_err(other)?;
        }
        Err(other(format!("the server redirects more than {MOST} times")))
    }

    fn way(&self, asked: &Url, target: &Url) -> Way {
        let is_less_safe = asked.scheme() == "https" && target.scheme() != "https";
        if is_less_safe || !matches!(target.scheme(), "http" | "https") {
            return Way::Refused;
        }
        let same_port = asked.port_or_known_default() == target.port_or_known_default();
        let gets_tls = asked.scheme() != target.scheme() && asked.port().is_none() && target.port().is_none();
        if asked.host() == target.host() && (gets_tls || (asked.scheme() == target.scheme() && same_port)) {
            return Way::Same;
        }
        let host = target.host_str().unwrap_or_default();
        let is_named = |name: &str| name == "*" || name.eq_ignore_ascii_case(host);
        if self.hosts.split(',').map(str::trim).any(is_named) { Way::Bare } else { Way::Refused }
    }
}

impl HttpService for Redirects {
    fn call<'life0, 'async_trait>(
        &'life0 self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(self.execute(request))
    }
}

/// Where an answer sends the reader. Answers that would turn a write into a read are not followed.
fn location(request: &HttpRequest, answer: &HttpResponse) -> Option<String> {
    let is_read = matches!(request.method().as_str(), "GET" | "HEAD");
    let is_redirect = match answer.status().as_u16() {
        307 | 308 => true,
        301..=303 => is_read,
        _ => false,
    };
    let location = answer.headers().get("location").filter(|_| is_redirect)?;
    location.to_str().ok().map(str::to_owned)
}

/// Names the host only: paths and queries of a redirect are often signed.
fn refusal(asked: &Url, target: &Url) -> String {
    let place = target.origin().ascii_serialization();
    if target.scheme() != "https" && asked.scheme() == "https" {
        return format!("the server redirects to {place}, which has no TLS: expected https");
    }
    format!(
        "the server redirects to {place}, another host than the store's; the storage option `redirect_hosts` names hosts \
         that may be asked, without credentials"
    )
}

fn other(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> HttpError {
    HttpError::new_boxed(HttpErrorKind::Unknown, why.into())
}

/// A client with object_store's options and defaults, which follows no redirects.
fn client(options: &ClientOptions) -> object_store::Result<Client> {
    let set = Settings(options);
    let failed = |e: reqwest::Error| set.error(e.without_url().to_string());
    let agent =
        set.text(Key::UserAgent).unwrap_or_else(|| format!("coldframe/{}", env!("CARGO_PKG_VERSION")));
    let mut builder = Client::builder().redirect(Policy::none()).user_agent(agent);
    if let Some(headers) = options.get_default_headers() {
        builder = builder.default_headers(headers.clone());
    }
    if let Some(address) = set.text(Key::ProxyUrl) {
        let mut proxy = Proxy::all(address).map_err(failed)?;
        if let Some(hosts) = set.text(Key::ProxyExcludes) {
            proxy = proxy.no_proxy(NoProxy::from_string(&hosts));
        }
        if let Some(pem) = set.text(Key::ProxyCaCertificate) {
            let certificate = Certificate::from_pem(pem.as_bytes()).map_err(failed)?;
            builder = builder.tls_certs_merge([certificate]);
        }
        builder = builder.proxy(proxy);
    }
    if set.is(Key::NoSystemCertificates)? {
        builder = builder.tls_certs_only([]);
    }
    if set.is(Key::AllowInvalidCertificates)? {
        builder = builder.danger_accept_invalid_certs(true);
    }
    if set.is(Key::RandomizeAddresses)? {
        builder = builder.dns_resolver(Arc::new(Shuffled));
    }
    let builder = set.protocol(set.times(builder)?)?;
    // Compression would change the lengths that the answers state.
    let builder = builder.no_gzip().no_brotli().no_zstd().no_deflate();
    builder.https_only(!set.is(Key::AllowHttp)?).build().map_err(failed)
}

/// The options by their names.
struct Settings<'a>(&'a ClientOptions);

impl Settings<'_> {
    fn text(&self, key: Key) -> Option<String> {
        self.0.get_config_value(&key)
    }

    fn is(&self, key: Key) -> object_store::Result<bool> {
        self.parsed(key, truth).map(|value| value.unwrap_or_default())
    }

    fn parsed<T>(&self, key: Key, parse: impl Fn(&str) -> Option<T>) -> object_store::Result<Option<T>> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let value = parse(&text);
        let wrong = || self.error(format!("storage option `{}`: cannot read {text:?}", key.as_ref()));
        value.map(Some).ok_or_else(wrong)
    }

    fn error(&self, why: String) -> object_store::Error {
        object_store::Error::Generic { store: "HTTP", source: why.into() }
    }

    fn times(&self, mut builder: ClientBuilder) -> object_store::Result<ClientBuilder> {
        // object_store writes `1m 30s`.
        let time = |text: &str| text.split_whitespace().map(time).sum::<Option<_>>();
        if let Some(limit) = self.parsed(Key::Timeout, time)? {
            builder = builder.timeout(limit);
        }
        if let Some(limit) = self.parsed(Key::ConnectTimeout, time)? {
            builder = builder.connect_timeout(limit);
        }
        if let Some(limit) = self.parsed(Key::ReadTimeout, time)? {
            builder = builder.read_timeout(limit);
        }
        if let Some(limit) = self.parsed(Key::PoolIdleTimeout, time)? {
            builder = builder.pool_idle_timeout(limit);
        }
        if let Some(most) = self.parsed(Key::PoolMaxIdlePerHost, |text| text.parse().ok())? {
            builder = builder.pool_max_idle_per_host(most);
        }
        if let Some(interval) = self.parsed(Key::Http2KeepAliveInterval, time)? {
            builder = builder.http2_keep_alive_interval(interval);
        }
        if let Some(limit) = self.parsed(Key::Http2KeepAliveTimeout, time)? {
            builder = builder.http2_keep_alive_timeout(limit);
        }
        Ok(builder)
    }

    fn protocol(&self, mut builder: ClientBuilder) -> object_store::Result<ClientBuilder> {
        if self.is(Key::Http2KeepAliveWhileIdle)? {
            builder = builder.http2_keep_alive_while_idle(true);
        }
        if let Some(size) = self.parsed(Key::Http2MaxFrameSize, |text| text.parse().ok())? {
            builder = builder.http2_max_frame_size(Some(size));
        }
        if self.is(Key::Http1Only)? {
            builder = builder.http1_only();
        }
        if self.is(Key::Http2Only)? {
            builder = builder.http2_prior_knowledge();
        }
        Ok(builder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(hosts: &str, asked: &str, target: &str) -> Way {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Redirects::new(&ClientOptions::new(), hosts.into()).unwrap();
        let asked = Url::parse(asked).unwrap();
        client.way(&asked, &asked.join(target).unwrap())
    }

    #[test]
    fn redirects_stay_on_the_host() {
        for (asked, target, expected) in [
            ("https://store/a", "/b?sig=1", Way::Same),
            ("https://store/a", "https://STORE:443/b", Way::Same),
            ("http://store/a", "https://store/a", Way::Same),
            ("http://store:9000/a", "http://store:9001/a", Way::Refused),
            ("http://store:9000/a", "https://store/a", Way::Refused),
            ("https://store/a", "http://store/a", Way::Refused),
            ("https://store/a", "https://elsewhere/a", Way::Refused),
            ("http://store/a", "http://169.254.169.254/latest/meta-data", Way::Refused),
            ("http://store/a", "file:///etc/passwd", Way::Refused),
        ] {
            assert_eq!(way("", asked, target), expected, "{asked} to {target}");
        }
    }

    #[test]
    fn named_hosts_get_no_credentials() {
        for hosts in ["*", "cdn.example, Elsewhere"] {
            assert_eq!(way(hosts, "https://store/a", "https://elsewhere/a"), Way::Bare);
            assert_eq!(way(hosts, "https://store/a", "http://elsewhere/a"), Way::Refused);
            assert_eq!(way(hosts, "https://store/a", "https://store/b"), Way::Same);
        }
        assert_eq!(way("cdn.example", "https://store/a", "https://elsewhere/a"), Way::Refused);
    }

    #[test]
    fn refusals_name_the_host_alone() {
        let url = |text: &str| Url::parse(text).unwrap();
        let text = refusal(&url("https://store/a"), &url("https://u:hush@elsewhere:8443/hush?sig=hush"));
        assert!(text.contains("https://elsewhere:8443,") && !text.contains("hush"), "{text}");
    }
}
