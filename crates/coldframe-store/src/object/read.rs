//! Reading an object by ranges.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::io::{Identity, Pending};
use coldframe_core::{ReadAt, Result};
use futures_util::future::join;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};

use super::connect::Connection;
use super::{error, is_refused};
use crate::ends::{Ends, HEAD, TAIL};
use crate::files::changed;
use crate::parts::gather;
use crate::runtime::{start, wait};

/// Requests of one read that are under way at once.
const AT_ONCE: usize = 10;

/// A longer range is asked for in parts side by side: one connection seldom has all the bandwidth.
const PART: u64 = 8 << 20;

/// One object.
#[derive(Debug)]
struct Object {
    connection: Arc<Connection>,
    target: Target,
    len: u64,
}

/// Which object, and which content of it.
#[derive(Clone, Debug)]
struct Target {
    path: Path,
    /// Where the store has one that it compares by every byte.
    etag: Option<String>,
}

/// Opens an object, by a request for each of its ends where its length is not known yet.
pub(super) fn open(
    connection: &Arc<Connection>,
    path: Path,
    url: &str,
    known: Option<&Identity>,
) -> Result<Arc<dyn ReadAt>> {
    let Measured { len, etag, ends } = match known {
        Some(known) => Measured { len: known.len, etag: known.etag.clone(), ends: Vec::new() },
        None => wait(measure(connection.store()?, &path, connection.has_suffixes()))??,
    };
    let target = Target { path, etag: etag.filter(|etag| !etag.starts_with("W/")) };
    let object = Arc::new(Object { connection: connection.clone(), target, len });
    Ok(Arc::new(Ends::new(object, url, ends)))
}

/// What opening learns of an object.
struct Measured {
    len: u64,
    etag: Option<String>,
    /// Offset and bytes of what came with it.
    ends: Vec<(u64, Bytes)>,
}

/// Asks for both ends of an object at once: the answer for the last bytes says how many there are.
async fn measure(store: Arc<dyn ObjectStore>, path: &Path, by_suffix: bool) -> Result<Measured> {
    if by_suffix {
        let (tail, head) =
            join(end(&store, path, GetRange::Suffix(TAIL)), end(&store, path, GetRange::Bounded(0..HEAD)))
                .await;
        match tail {
            Ok((len, etag, tail)) => {
                let mut ends = vec![(len.saturating_sub(tail.len() as u64), tail)];
                // The same content, as far as can be told; a longer tail has it in itself.
                if let Ok((head_len, head_etag, head)) = head
                    && (head_len, &head_etag) == (len, &etag)
                {
                    ends.push((0, head));
                }
                return Ok(Measured { len, etag, ends });
            }
            // Some servers have no ranges from the end, and an empty object has none at all.
            Err(e @ object_store::Error::Generic { .. }) if is_about_ranges(&e) => {}
            Err(e) => return Err(error(e)),
        }
    }
    let meta = store.head(path).await.map_err(error)?;
    Ok(Measured { len: meta.size, etag: meta.e_tag, ends: Vec::new() })
}

/// Length and etag of an object, and a part of it.
async fn end(
    store: &Arc<dyn ObjectStore>,
    path: &Path,
    range: GetRange,
) -> object_store::Result<(u64, Option<String>, Bytes)> {
    let options = GetOptions { range: Some(range), ..GetOptions::default() };
    let found = store.get_opts(path, options).await?;
    let (len, etag) = (found.meta.size, found.meta.e_tag.clone());
    Ok((len, etag, found.bytes().await?))
}

/// Whether a server answered, though not with what was wanted. Nobody is asked twice who does not answer, or has said what is wrong.
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
        Identity { len: self.len, modified: None, etag: self.target.etag.clone() }
    }

    fn len(&self) -> u64 {
        self.len
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
    let offset = range.start;
    let options = GetOptions {
        range: Some(GetRange::Bounded(range.clone())),
        if_match: target.etag,
        ..GetOptions::default()
    };
    let read = async {
        let found = store.get_opts(&target.path, options).await?;
        found.bytes().await
    };
    let bytes = read.await.map_err(|e| match error(e) {
        // It was there when it was opened.
        e if e.is_not_found() => changed("it is no longer there").at(offset),
        e => e.at(offset),
    })?;
    match bytes.len() as u64 == range.end - range.start {
        true => Ok(bytes),
        false => Err(changed("it ends earlier").at(offset)),
    }
}
