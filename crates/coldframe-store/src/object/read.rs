//! Reading an object by ranges.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::io::{Identity, Pending};
use coldframe_core::{Error, ReadAt, Result, shown};
use futures_util::future::join;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};

use super::connect::Connection;
use super::{error, is_refused};
use crate::ends::{Ends, HEAD, TAIL};
use crate::files::{changed, check};
use crate::parts::gather;
use crate::runtime::{start, wait};
use crate::trace;

/// Maximum number of requests of one read that are in flight at a time.
const AT_ONCE: usize = 10;

/// A longer range is requested in parallel parts: a single connection seldom uses all of the bandwidth.
const PART: u64 = 8 << 20;

/// One object.
#[derive(Debug)]
struct Object {
    connection: Arc<Connection>,
    target: Target,
}

/// A version of an object.
#[derive(Clone, Debug)]
struct Target {
    path: Path,
    /// The object's URL, for traces.
    url: Arc<str>,
    /// The strong etag, if the store has one: a condition of each request.
    etag: Option<String>,
    /// The identity that each response must have.
    identity: Identity,
}

impl Target {
    fn new(path: Path, url: Arc<str>, identity: Identity) -> Self {
        Self { path, url, etag: identity.etag.clone().filter(|etag| !etag.starts_with("W/")), identity }
    }

    /// An error if a response is of another version of the object. Times are compared only if there is no
    /// etag, and in seconds, since headers have no finer digits.
    fn check(&self, actual: &Identity) -> Result<()> {
        let seconds = |identity: &Identity| Identity {
            modified: identity.modified.map(|ms| ms.div_euclid(1000)).filter(|_| self.etag.is_none()),
            ..identity.clone()
        };
        match seconds(&self.identity).may_be(&seconds(actual)) {
            true => Ok(()),
            false => check(&self.identity, actual),
        }
    }
}

/// The identity of the object in a response. If the response has no time, the client reports 1970.
fn identity_of(meta: &ObjectMeta) -> Identity {
    let modified = Some(meta.last_modified.timestamp_millis()).filter(|ms| *ms != 0);
    Identity { len: meta.size, modified, etag: meta.e_tag.clone() }
}

/// Opens an object, with one request for each end if its length is not known yet.
pub(super) fn open(
    connection: &Arc<Connection>,
    path: Path,
    url: &str,
    known: Option<&Identity>,
) -> Result<Arc<dyn ReadAt>> {
    let shown: Arc<str> = shown(url).into();
    let Measured { identity, ends } = match known {
        Some(known) => Measured { identity: known.clone(), ends: Vec::new() },
        None => wait(measure(connection.store()?, &path, &shown, connection.has_suffixes()))??,
    };
    let target = Target::new(path, shown, identity);
    let object = Arc::new(Object { connection: connection.clone(), target });
    Ok(Arc::new(Ends::new(object, url, ends)))
}

/// The result of opening an object.
struct Measured {
    identity: Identity,
    /// Bytes of the head and the tail from the responses, with their offsets.
    ends: Vec<(u64, Bytes)>,
}

/// Requests both ends of an object at once. The response for the tail states the length.
async fn measure(store: Arc<dyn ObjectStore>, path: &Path, url: &str, by_suffix: bool) -> Result<Measured> {
    if by_suffix {
        let request = |range: GetRange| trace::answer(trace::fetch_of(url, &range), end(&store, path, range));
        let (tail, head) = join(request(GetRange::Suffix(TAIL)), request(GetRange::Bounded(0..HEAD))).await;
        match tail {
            Ok((identity, tail)) => {
                let tail = tail?;
                let mut ends = vec![(identity.len.saturating_sub(tail.len() as u64), tail)];
                // The head is used only if it is of the same version as the tail.
                if let Ok((head_identity, Ok(head))) = head
                    && head_identity == identity
                {
                    ends.push((0, head));
                }
                return Ok(Measured { identity, ends });
            }
            // Some servers do not support suffix ranges, and an empty object has no ranges.
            Err(e @ object_store::Error::Generic { .. }) if is_about_ranges(&e) => {}
            Err(e) => return Err(error(e)),
        }
    }
    let meta = trace::answer(trace::fetch_of(url, "HEAD"), store.head(path)).await.map_err(error)?;
    Ok(Measured { identity: identity_of(&meta), ends: Vec::new() })
}

/// Requests the head or tail of an object; returns the object's identity and the bytes.
async fn end(
    store: &Arc<dyn ObjectStore>,
    path: &Path,
    range: GetRange,
) -> object_store::Result<(Identity, Result<Bytes>)> {
    let options = GetOptions { range: Some(range), ..GetOptions::default() };
    let result = store.get_opts(path, options).await?;
    let (identity, range) = (identity_of(&result.meta), result.range.clone());
    Ok((identity, exactly(&range, result.bytes().await?)))
}

/// The bytes of a response, which must match the length in its header. A mismatch is an error of the server,
/// not damage of the file.
fn exactly(range: &Range<u64>, bytes: Bytes) -> Result<Bytes> {
    let (expected, len) = (range.end.saturating_sub(range.start), bytes.len());
    if len as u64 == expected {
        return Ok(bytes);
    }
    let text = format!("the server answered with {len} bytes, expected {expected}");
    Err(Error::from(std::io::Error::other(text)).at(range.start))
}

/// Whether the server responded, but not with the requested range. Only then is the request repeated in
/// another form.
fn is_about_ranges(e: &object_store::Error) -> bool {
    let text = e.to_string();
    let of_client = ["Received non-partial", "Content-Range", "CONTENT_RANGE", "Requested "];
    let of_server = ["status code: 4", "status code: 501"];
    let has_any = |signs: &[&str]| signs.iter().any(|sign| text.contains(sign));
    has_any(&of_client) || (has_any(&of_server) && !is_refused(e))
}

impl Object {
    fn read(
        &self,
        ranges: &[Range<u64>],
    ) -> Result<impl Future<Output = Result<Vec<Bytes>>> + Send + 'static> {
        let (store, target, ranges) = (self.connection.store()?, self.target.clone(), ranges.to_vec());
        let get = move |range| get(store.clone(), target.clone(), range);
        Ok(gather(ranges, PART, AT_ONCE, get))
    }
}

impl ReadAt for Object {
    fn identity(&self) -> Identity {
        // A listing has milliseconds, a response has seconds. If there is an etag, the time is left out,
        // because otherwise one version would look like two.
        let Identity { len, modified, etag } = self.target.identity.clone();
        Identity { len, modified: modified.filter(|_| self.target.etag.is_none()), etag }
    }

    fn len(&self) -> u64 {
        self.target.identity.len
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        wait(self.read(ranges)?)?
    }

    fn begin(&self, ranges: &[Range<u64>]) -> Option<Pending> {
        let later = start(self.read(ranges).ok()?).ok()?;
        Some(Box::new(move || later()?))
    }

    fn worthwhile_gap(&self) -> u64 {
        1 << 20
    }
}

async fn get(store: Arc<dyn ObjectStore>, target: Target, range: Range<u64>) -> Result<Bytes> {
    trace::answer(trace::fetch(&target.url, &range), get_part(store, &target, range.clone())).await
}

async fn get_part(store: Arc<dyn ObjectStore>, target: &Target, range: Range<u64>) -> Result<Bytes> {
    let offset = range.start;
    let options = GetOptions {
        range: Some(GetRange::Bounded(range.clone())),
        if_match: target.etag.clone(),
        ..GetOptions::default()
    };
    let failed = |e| match error(e) {
        // The object existed when it was opened, so it was deleted since.
        e if e.is_not_found() => changed("it is no longer there").at(offset),
        e => e.at(offset),
    };
    let result = match store.get_opts(&target.path, options).await {
        // If the object is shorter now, the response has fewer bytes, or no bytes. The client refuses both
        // before it reports the length.
        Err(e) if is_about_ranges(&e) => {
            let meta = store.head(&target.path).await.map_err(failed)?;
            target.check(&identity_of(&meta)).map_err(|e| e.at(offset))?;
            return Err(failed(e));
        }
        other => other.map_err(failed)?,
    };
    // Some servers ignore the condition, and some have no etags.
    target.check(&identity_of(&result.meta)).map_err(|e| e.at(offset))?;
    exactly(&range, result.bytes().await.map_err(failed)?)
}
