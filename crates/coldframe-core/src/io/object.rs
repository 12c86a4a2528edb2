//! Files in object stores, by URL.
#![cfg(feature = "object-store")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use coldframe_encoding::{Error, ErrorKind, Result};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;
use url::Url;

use super::{ReadAt, check_range};

/// One object. Requests run on a runtime of this process; a process that forks makes its own.
#[derive(Debug)]
struct Object {
    store: Arc<dyn ObjectStore>,
    location: Path,
    len: u64,
    url: String,
}

/// Opens `url` (`s3://`, `gs://`, `az://`, `http://` ...) with the store's `options` under their own names.
pub fn open_url(url: &str, options: &BTreeMap<String, String>) -> Result<Arc<dyn ReadAt>> {
    // An error only says that this process has chosen a provider before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let parsed = Url::parse(url).map_err(|e| Error::invalid(format!("{url}: not a URL: {e}")))?;
    let mut options = options.clone();
    if parsed.scheme() == "http" {
        // Whoever writes http:// means it; the store would want to be told twice.
        options.entry("allow_http".to_owned()).or_insert_with(|| "true".to_owned());
    }
    let (store, location) =
        object_store::parse_url_opts(&parsed, options).map_err(|e| store_error(e, url))?;
    let store: Arc<dyn ObjectStore> = Arc::from(store);
    let meta = runtime()?.block_on(store.head(&location)).map_err(|e| store_error(e, url))?;
    Ok(Arc::new(Object { store, location, len: meta.size, url: url.to_owned() }))
}

impl ReadAt for Object {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        for range in ranges {
            check_range(range, self.len)?;
        }
        // The store coalesces near ranges and asks for the rest side by side.
        runtime()?
            .block_on(self.store.get_ranges(&self.location, ranges))
            .map_err(|e| store_error(e, &self.url))
    }

    fn worthwhile_gap(&self) -> u64 {
        1 << 20
    }
}

fn store_error(e: object_store::Error, url: &str) -> Error {
    let kind = match e {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound("no such object".to_owned()),
        e => ErrorKind::Io(std::io::Error::other(e)),
    };
    Error::new(kind).in_file(url)
}

/// The runtime of this process. Threads do not survive a fork, so the process id decides whether it is still ours.
fn runtime() -> Result<Arc<Runtime>> {
    static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);
    let mut slot = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    match slot.take() {
        Some((owner, runtime)) if owner == pid => {
            *slot = Some((owner, runtime.clone()));
            return Ok(runtime);
        }
        // Dropping a runtime joins threads that this process does not have.
        Some((_, stale)) => std::mem::forget(stale),
        None => {}
    }
    let made = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let made = Arc::new(made);
    *slot = Some((pid, made.clone()));
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_reads_by_ranges_and_a_missing_one_is_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.bin");
        std::fs::write(&path, b"0123456789").unwrap();
        let url = format!("file://{}", path.display());
        let file = open_url(&url, &BTreeMap::new()).unwrap();
        assert_eq!(file.len(), 10);
        assert_eq!(file.read_ranges(&[1..3, 8..10]).unwrap(), [&b"12"[..], b"89"]);
        assert!(file.read(8..11).is_err());
        let missing = open_url(&format!("{url}x"), &BTreeMap::new()).unwrap_err();
        assert!(matches!(missing.kind(), ErrorKind::NotFound(_)));
    }
}
