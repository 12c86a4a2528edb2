//! Files and folders in object stores, by URL.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use coldframe_core::io::{Entry, Folder, check_range};
use coldframe_core::{Error, ErrorKind, ReadAt, Result, Source};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, ObjectStoreScheme};
use tokio::runtime::Runtime;
use url::Url;

/// One object. Requests run on a runtime of this process; a process that forks makes its own.
#[derive(Debug)]
struct Object {
    store: Arc<dyn ObjectStore>,
    location: Path,
    len: u64,
    url: String,
}

/// What `url` (`s3://`, `gs://`, `az://`, `http://` ...) names, with the store's `options` under their own names: an object or,
/// where there is none, a folder of objects.
pub fn open_url(url: &str, options: &BTreeMap<String, String>) -> Result<Source> {
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
    let found = match parsed.path().ends_with('/') {
        true => None,
        false => match runtime()?.block_on(store.head(&location)) {
            Ok(meta) => Some(meta),
            Err(object_store::Error::NotFound { .. }) => None,
            Err(e) => return Err(store_error(e, url)),
        },
    };
    if let Some(meta) = found {
        let siblings = ObjectFolder { store: store.clone(), root: above(&location) };
        let bytes = Arc::new(Object { store, location, len: meta.size, url: url.to_owned() });
        return Ok(Source::File { path: url.into(), bytes, siblings: Some(Arc::new(siblings)) });
    }
    let folder = ObjectFolder { store, root: location };
    // A web server has no lists, and so no folders.
    let listed = !matches!(ObjectStoreScheme::parse(&parsed), Ok((ObjectStoreScheme::Http, _)));
    if listed && !folder.list("").map_err(|e| e.in_file(url))?.is_empty() {
        return Ok(Source::Folder { path: url.into(), folder: Arc::new(folder) });
    }
    Err(Error::new(ErrorKind::NotFound("no such object".to_owned())).in_file(url))
}

/// The objects whose names begin with `root`.
#[derive(Debug)]
struct ObjectFolder {
    store: Arc<dyn ObjectStore>,
    root: Path,
}

impl ObjectFolder {
    fn resolve(&self, path: &str) -> Result<Path> {
        let below = Path::parse(path)
            .ok()
            .filter(|p| p.as_ref() == path && path.split('/').all(|part| part != "." && part != ".."));
        let below = below
            .ok_or_else(|| Error::invalid(format!("expected a path below the folder, found {path:?}")))?;
        Ok(self.root.parts().chain(below.parts()).collect())
    }

    /// An object's or folder's name as an entry's path below `path`.
    fn entry(path: &str, location: &Path, len: u64, is_folder: bool) -> Option<Entry> {
        let name = location.filename()?;
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        Some(Entry { path, len, is_folder })
    }
}

impl Folder for ObjectFolder {
    fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let prefix = self.resolve(path)?;
        let found = runtime()?
            .block_on(self.store.list_with_delimiter(Some(&prefix)))
            .map_err(|e| store_error(e, prefix.as_ref()))?;
        let object = |meta: &ObjectMeta| Self::entry(path, &meta.location, meta.size, false);
        // Some tools leave an empty object in place of a folder, under the folder's name.
        let objects = found.objects.iter().filter(|o| o.location != prefix).filter_map(object);
        let folders = found.common_prefixes.iter().filter_map(|p| Self::entry(path, p, 0, true));
        let mut entries: Vec<Entry> = objects.chain(folders).collect();
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        let location = self.resolve(path)?;
        let url = location.as_ref().to_owned();
        let meta = runtime()?.block_on(self.store.head(&location)).map_err(|e| store_error(e, &url))?;
        Ok(Arc::new(Object { store: self.store.clone(), location, len: meta.size, url }))
    }

    fn parent(&self) -> Result<Option<(Arc<dyn Folder>, String)>> {
        let Some(name) = self.root.filename() else { return Ok(None) };
        let parent = Self { store: self.store.clone(), root: above(&self.root) };
        Ok(Some((Arc::new(parent), name.to_owned())))
    }
}

/// The folder that a name lies in.
fn above(location: &Path) -> Path {
    let parts: Vec<_> = location.parts().collect();
    let above = parts.len().saturating_sub(1);
    parts.into_iter().take(above).collect()
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

    fn open(path: &std::path::Path) -> Result<Source> {
        open_url(&format!("file://{}", path.display()), &BTreeMap::new())
    }

    #[test]
    fn a_url_reads_by_ranges_and_a_missing_one_is_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.bin");
        std::fs::write(&path, b"0123456789").unwrap();
        let Source::File { bytes, siblings, .. } = open(&path).unwrap() else { panic!("a folder") };
        assert_eq!(bytes.len(), 10);
        assert_eq!(bytes.read_ranges(&[1..3, 8..10]).unwrap(), [&b"12"[..], b"89"]);
        assert!(bytes.read(8..11).is_err());
        assert_eq!(siblings.unwrap().open("a.bin").unwrap().len(), 10);
        let missing = open(&dir.path().join("x")).unwrap_err();
        assert!(matches!(missing.kind(), ErrorKind::NotFound(_)));
    }

    #[test]
    fn a_folder_is_listed_and_its_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("t/.hidden/b=1")).unwrap();
        std::fs::write(dir.path().join("t/.hidden/b=1/x"), b"xyz").unwrap();
        std::fs::write(dir.path().join("t/a"), b"a").unwrap();
        let Source::Folder { folder, .. } = open(&dir.path().join("t")).unwrap() else { panic!("a file") };
        let entry = |path: &str, len, is_folder| Entry { path: path.to_owned(), len, is_folder };
        assert_eq!(folder.list("").unwrap(), [entry(".hidden", 0, true), entry("a", 1, false)]);
        assert_eq!(folder.list(".hidden").unwrap(), [entry(".hidden/b=1", 0, true)]);
        assert_eq!(folder.list(".hidden/b=1").unwrap(), [entry(".hidden/b=1/x", 3, false)]);
        assert_eq!(folder.open(".hidden/b=1/x").unwrap().read(1..3).unwrap().as_ref(), b"yz");
        let (parent, name) = folder.parent().unwrap().unwrap();
        assert_eq!((name.as_str(), parent.list("").unwrap()), ("t", vec![entry("t", 0, true)]));
        for outside in ["../t/a", "/t/a", "./a", "a//b"] {
            assert!(folder.open(outside).is_err(), "{outside}");
        }
        assert!(matches!(folder.open("b").unwrap_err().kind(), ErrorKind::NotFound(_)));
    }
}
