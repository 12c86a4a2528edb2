//! Retries while a server reports that it is busy.
//!
//! The client retries a failed request a few times within a second or two, and ignores `Retry-After`. A store
//! may be busy for longer. After the status codes 429, 502, 503 and 504 this module waits as long as
//! `Retry-After` states, or for growing times, until `retry_timeout` has passed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coldframe_core::shown;
use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService};

use super::redirect::Redirects;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Makes clients that retry while the server is busy.
#[derive(Clone, Debug)]
pub(super) struct BusyRetry {
    /// The maximum time of all retries.
    pub(super) retry_timeout: Duration,
    /// The maximum number of retries, if the user set it.
    pub(super) max_retries: Option<usize>,
    /// The hosts to which a server may redirect; see [`Redirects`].
    pub(super) redirect_hosts: Arc<str>,
}

impl HttpConnector for BusyRetry {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = HttpClient::new(Redirects::new(options, self.redirect_hosts.clone())?);
        Ok(HttpClient::new(RetryingClient { client, busy_retry: self.clone() }))
    }
}

#[derive(Debug)]
struct RetryingClient {
    client: HttpClient,
    busy_retry: BusyRetry,
}

impl HttpService for RetryingClient {
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

impl RetryingClient {
    async fn execute(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let answer = self.client.execute(request.clone()).await.inspect_err(|e| {
                tracing::debug!(name: "fetch", url = shown(&request.uri().to_string()), retry = ?e.kind());
            })?;
            let left = self.busy_retry.retry_timeout.saturating_sub(begun.elapsed());
            if !is_busy(answer.status().as_u16()) || left.is_zero() {
                return Ok(answer);
            }
            let asked = answer.headers().get("retry-after").and_then(|value| seconds(value.as_bytes()));
            tracing::debug!(
                name: "fetch",
                url = shown(&request.uri().to_string()),
                retry = answer.status().as_u16(),
                wait_ms = millis(asked.unwrap_or(pause).min(left)),
            );
            // The last attempt is at the end of `retry_timeout`. After that the client, which has the same
            // limit, gives up as well.
            let wait = asked.unwrap_or(pause).min(left);
            if self.busy_retry.max_retries.is_some() {
                // Returning the busy response to the client makes it count the retry.
                if asked.is_some() && self.busy_retry.max_retries != Some(0) {
                    tokio::time::sleep(wait).await;
                }
                return Ok(answer);
            }
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn is_busy(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

fn millis(pause: Duration) -> u64 {
    u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
}

/// `Retry-After` in seconds. A date, which few servers send, is ignored.
fn seconds(value: &[u8]) -> Option<Duration> {
    std::str::from_utf8(value).ok()?.trim().parse().ok().map(Duration::from_secs)
}
