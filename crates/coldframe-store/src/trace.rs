//! Traces of the requests to remote stores.

use std::fmt::Display;
use std::future::Future;
use std::ops::Range;

use tracing::field::Empty;
use tracing::{Span, debug_span};

/// Traces a request for bytes until the span is dropped. `url` must have no secrets
/// ([`crate::location::traced`]).
pub(crate) fn fetch(url: &str, range: &Range<u64>) -> Span {
    let length = range.end.saturating_sub(range.start);
    debug_span!("fetch", url, offset = range.start, length, failed = Empty)
}

/// Traces a request for something else, which `request` names.
pub(crate) fn fetch_of(url: &str, request: impl Display) -> Span {
    debug_span!("fetch", url, request = %request, failed = Empty)
}

/// Waits for the answer to a request, and ends its span.
pub(crate) async fn answer<T, E>(span: Span, request: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let answer = request.await;
    if answer.is_err() {
        span.record("failed", true);
    }
    answer
}
