//! Access to the files below a path or URL, for all parts of the project.
//!
//! ```text
//! s3://bucket/warehouse/t      Store { files: object store of `bucket`, root: "warehouse/t" }
//!    list, stat, open, create, put, publish, delete of "region=asia%2Fpacific/000000_0"
//!                                               │ joined, never decoded
//!                                               ▼
//!                      key "warehouse/t/region=asia%2Fpacific/000000_0"
//! ```

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::sync::Arc;

use coldframe_core::io::{Entry, Folder, Identity};
use coldframe_core::{Error, ReadAt, Result, Source};

use crate::files::{Files, Listing, Mode, Stat, Upload, is_taken};
use crate::local::LocalFiles;
use crate::location::Location;
use crate::name;

/// The files below a path or URL, which is called the root. Paths are relative to the root; `""` is the root.
#[derive(Clone, Debug)]
pub struct Store {
    files: Arc<dyn Files>,
    /// The path or URL as the user gave it, without a trailing slash.
    url: Arc<str>,
    root: String,
    is_local: bool,
    /// Whether this store is a subfolder of another store, so that missing folders are created.
    is_part: bool,
}

impl Store {
    /// The files at and below a path or, if its feature is enabled, a URL. `options` are the store's options.
    pub fn new(location: &OsStr, options: &BTreeMap<String, String>) -> Result<Self> {
        match Location::parse(location)? {
            Location::Local(path) => {
                let path = name::to_text(path.as_os_str());
                Ok(Self {
                    files: Arc::new(LocalFiles),
                    url: ended(&path).into(),
                    root: path,
                    is_local: true,
                    is_part: false,
                })
            }
            Location::Url { url, scheme } => remote(&url, &scheme, options),
        }
    }

    /// The files of the caller's own store, whose keys are below `root`. Errors call the store `url`.
    pub fn of(files: Arc<dyn Files>, url: &str, root: &str) -> Self {
        Self { files, url: ended(url).into(), root: ended(root).to_owned(), is_local: false, is_part: false }
    }

    /// The path or URL of the root.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The path or URL of the file at `path` below the root.
    pub fn url_of(&self, path: &str) -> String {
        match path {
            "" => self.url.to_string(),
            path if self.url.is_empty() => path.to_owned(),
            path if self.url.ends_with('/') => format!("{}{path}", self.url),
            path => format!("{}/{path}", self.url),
        }
    }

    /// [`Self::url_of`] in the operating system's form: names of local files need not be UTF-8.
    pub fn os_url_of(&self, path: &str) -> OsString {
        let url = self.url_of(path);
        if self.is_local { name::from_text(&url) } else { url.into() }
    }

    /// A path below the root in the operating system's form.
    pub fn os_path(&self, path: &str) -> OsString {
        if self.is_local { name::from_text(path) } else { path.into() }
    }

    /// A path below the root, given in the operating system's form.
    pub fn path_of(&self, path: &OsStr) -> Result<String> {
        if self.is_local {
            return Ok(name::to_text(path));
        }
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| {
            Error::invalid(format!("expected a path of UTF-8, found {path:?}")).in_file(&*self.url)
        })
    }

    /// Whether the files are local.
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// The files below a folder.
    pub fn below(&self, path: &str) -> Result<Self> {
        let root = self.key(path)?;
        Ok(Self {
            files: self.files.clone(),
            url: self.url_of(path).into(),
            root,
            is_local: self.is_local,
            is_part: true,
        })
    }

    /// The direct entries of `path` or, if `deep`, all files below it; in any order, as they arrive.
    pub fn list(&self, path: &str, deep: bool) -> Result<Listing> {
        let folder = self.key(path)?;
        let shown = self.url_of(path);
        let listing = self.files.list(&folder, deep).map_err(|e| e.in_file(&*shown))?;
        let root = self.root.clone();
        let below = move |stat: Result<Stat>| {
            let stat = stat.map_err(|e| e.in_file(&*shown))?;
            let path = relative(&stat.path, &root).ok_or_else(|| {
                Error::invalid(format!("a store listed {:?}, which is not below {root:?}", stat.path))
            })?;
            Ok(Stat { path: path.to_owned(), ..stat })
        };
        Ok(Box::new(listing.map(below)))
    }

    /// The file or folder at `path`, if it exists.
    pub fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let entry = self.files.stat(&self.key(path)?).map_err(|e| self.named(e, path))?;
        Ok(entry.map(|stat| Stat { path: path.to_owned(), ..stat }))
    }

    /// Opens a file for reading.
    pub fn open(&self, path: &str, known: Option<&Identity>) -> Result<Arc<dyn ReadAt>> {
        let shown = self.url_of(path);
        self.files.open(&self.key(path)?, &shown, known).map_err(|e| e.in_file(shown))
    }

    /// Starts a file, which appears as a whole when it is finished. Folders below the root are created.
    pub fn create(&self, path: &str, mode: &Mode) -> Result<Box<dyn Upload>> {
        // If the local folder above the root is missing, the path is probably wrong. In other stores, folders
        // come into being with their files.
        if let (true, true, Some((folder, _))) =
            (self.is_local && !self.is_part, path.is_empty(), self.above())
            && folder.stat("")?.is_none()
        {
            return Err(self.named(Error::not_found("no such folder"), ""));
        }
        self.files.create(&self.own_key(path)?, mode).map_err(|e| self.named(e, path))
    }

    /// Writes a complete file.
    pub fn put(&self, path: &str, bytes: &[u8], mode: &Mode) -> Result<Stat> {
        let mut upload = self.create(path, mode)?;
        upload.write_all(bytes).map_err(|e| self.named(Error::from(e), path))?;
        let stat = upload.finish().map_err(|e| self.named(e, path))?;
        Ok(Stat { path: path.to_owned(), ..stat })
    }

    /// Renames a complete file below the same root.
    pub fn publish(&self, from: &str, to: &str, mode: &Mode) -> Result<()> {
        let (from_key, to_key) = (self.own_key(from)?, self.own_key(to)?);
        self.files.publish(&from_key, &to_key, mode).map_err(|e| self.named(e, to))
    }

    /// Whether a folder can be renamed atomically.
    pub fn renames_folders(&self) -> bool {
        self.files.renames_folders()
    }

    /// Renames a folder with everything below it atomically, below the same root, to a name that does not
    /// exist or is an empty folder.
    pub fn publish_folder(&self, from: &str, to: &str) -> Result<()> {
        let (from_key, to_key) = (self.own_key(from)?, self.own_key(to)?);
        self.files.publish_folder(&from_key, &to_key).map_err(|e| self.named(e, to))
    }

    /// Deletes a file.
    pub fn delete(&self, path: &str) -> Result<()> {
        self.files.delete(&self.own_key(path)?).map_err(|e| self.named(e, path))
    }

    /// Deletes a folder with everything below it.
    pub fn delete_folder(&self, path: &str) -> Result<()> {
        self.files.delete_folder(&self.own_key(path)?).map_err(|e| self.named(e, path))
    }

    /// Checks that the store supports [`Mode::New`]: some stores accept the condition but ignore it. Writes a
    /// small file at `path` twice, and deletes it.
    pub fn check_exclusive(&self, path: &str) -> Result<()> {
        self.put(path, b"coldframe", &Mode::New)?;
        let second = self.put(path, b"coldframe", &Mode::New);
        self.delete(path)?;
        match second {
            Err(e) if is_taken(&e) => Ok(()),
            Err(e) => Err(e),
            Ok(_) => Err(self.named(
                Error::unsupported(
                    "a store that ignores the condition If-None-Match and overwrites files: concurrent runs would lose files",
                ),
                path,
            )),
        }
    }

    /// The root as a source: a file with its siblings, or a folder.
    pub fn source(&self, known: Option<&Identity>) -> Result<Source> {
        let path: Arc<str> = coldframe_core::shown(&self.url).into();
        match self.open_if_file(known)? {
            Some(bytes) => Ok(Source::File { path, bytes, siblings: self.siblings() }),
            None => Ok(Source::Folder { path, folder: Arc::new(StoreFolder::new(self.clone())) }),
        }
    }

    /// The file at the root; `None` if the root is a folder.
    fn open_if_file(&self, known: Option<&Identity>) -> Result<Option<Arc<dyn ReadAt>>> {
        if !self.root.is_empty() {
            // Most roots are files: opening them without a `stat` saves a request.
            match self.open("", known) {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(e) if known.is_none() && e.is_not_found() => {}
                Err(e) => return Err(e),
            }
        }
        match self.stat("")? {
            Some(stat) if stat.is_folder => Ok(None),
            _ => Err(self.named(Error::not_found("no such file or directory"), "")),
        }
    }

    /// The parent folder of the root.
    fn siblings(&self) -> Option<Arc<dyn Folder>> {
        self.above().map(|(above, _)| Arc::new(StoreFolder::new(above)) as Arc<dyn Folder>)
    }

    /// The parent folder as a store, and the root's name in it.
    pub fn above(&self) -> Option<(Self, String)> {
        let (above, name) = match self.root.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((above, name)) => (above, name),
            None => ("", self.root.as_str()),
        };
        if name.is_empty() {
            return None;
        }
        let url = self.url.strip_suffix(name).unwrap_or(&self.url);
        let url = if url.ends_with("://") || url == "/" { url } else { ended(url) };
        let root = above.to_owned();
        Some((
            Self {
                files: self.files.clone(),
                url: url.into(),
                root,
                is_local: self.is_local,
                is_part: false,
            },
            name.to_owned(),
        ))
    }

    /// The store's key of a path below the root.
    fn key(&self, path: &str) -> Result<String> {
        if path.is_empty() {
            return Ok(self.root.clone());
        }
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(Error::invalid(format!("expected a path below the folder, found {path:?}"))
                .in_file(&*self.url));
        }
        Ok(match self.root.as_str() {
            "" => path.to_owned(),
            root if root.ends_with('/') => format!("{root}{path}"),
            root => format!("{root}/{path}"),
        })
    }

    /// The key of a path that is written, renamed or deleted. Local folders on the way to it must not be links, which
    /// lead out of the root.
    fn own_key(&self, path: &str) -> Result<String> {
        let folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at)).filter(|_| self.is_local);
        for folder in folders {
            let place = name::from_text(&self.key(folder)?);
            if std::fs::symlink_metadata(place).is_ok_and(|meta| meta.is_symlink()) {
                let what = "expected a directory, found a link: nothing is written, renamed or deleted through links";
                return Err(self.named(Error::unsupported(what), folder));
            }
        }
        self.key(path)
    }

    fn named(&self, e: Error, path: &str) -> Error {
        e.in_file(self.url_of(path))
    }
}

/// A folder of a store.
#[derive(Debug)]
pub struct StoreFolder {
    store: Store,
}

impl StoreFolder {
    /// The files below a store's root.
    pub fn new(store: Store) -> Self {
        Self { store }
    }
}

impl Folder for StoreFolder {
    fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let entry = |stat: Stat| Entry { path: stat.path, len: stat.len, is_folder: stat.is_folder };
        let mut entries =
            self.store.list(path, false)?.map(|stat| stat.map(entry)).collect::<Result<Vec<_>>>()?;
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        self.store.open(path, None)
    }

    fn parent(&self) -> Result<Option<(Arc<dyn Folder>, String)>> {
        let above = self.store.above();
        Ok(above.map(|(store, name)| (Arc::new(Self { store }) as Arc<dyn Folder>, name)))
    }
}

/// The path without trailing slashes; a path of nothing but slashes is unchanged.
fn ended(path: &str) -> &str {
    let short = path.trim_end_matches('/');
    if short.is_empty() || short.ends_with(':') { path } else { short }
}

/// The part of `key` that is below `root`.
fn relative<'k>(key: &'k str, root: &str) -> Option<&'k str> {
    if root.is_empty() {
        return Some(key);
    }
    let rest = key.strip_prefix(root)?;
    if root.ends_with('/') { Some(rest) } else { rest.strip_prefix('/') }
}

fn remote(url: &str, scheme: &str, options: &BTreeMap<String, String>) -> Result<Store> {
    match scheme {
        "hdfs" | "viewfs" => hdfs(url, options),
        _ => object(url, scheme, options),
    }
}

#[cfg(any(feature = "object-store", feature = "hdfs"))]
fn of_resolved(reached: crate::files::Resolved) -> Store {
    Store::of(reached.files, &reached.url, &reached.root)
}

#[cfg(feature = "hdfs")]
fn hdfs(url: &str, options: &BTreeMap<String, String>) -> Result<Store> {
    crate::hdfs::connect(url, options).map(of_resolved)
}

#[cfg(not(feature = "hdfs"))]
fn hdfs(_url: &str, _options: &BTreeMap<String, String>) -> Result<Store> {
    Err(Error::unsupported("hdfs:// URLs in a build without the feature `hdfs`"))
}

#[cfg(feature = "object-store")]
fn object(url: &str, scheme: &str, options: &BTreeMap<String, String>) -> Result<Store> {
    crate::object::connect(url, scheme, options).map(of_resolved)
}

#[cfg(not(feature = "object-store"))]
fn object(_url: &str, scheme: &str, _options: &BTreeMap<String, String>) -> Result<Store> {
    Err(Error::unsupported(format!("{scheme}:// URLs in a build without the feature `object-store`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(path: &std::path::Path) -> Store {
        Store::new(path.as_os_str(), &BTreeMap::new()).unwrap()
    }

    fn listed(store: &Store, path: &str, deep: bool) -> Vec<(String, u64, bool)> {
        let mut all: Vec<_> = store
            .list(path, deep)
            .unwrap()
            .map(|stat| stat.map(|s| (s.path, s.len, s.is_folder)).unwrap())
            .collect();
        all.sort();
        all
    }

    #[test]
    fn the_operations_of_a_local_store_work() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let put = store.put("t/k=a%2Fb/x", b"xyz", &Mode::New).unwrap();
        assert_eq!((put.path.as_str(), put.len), ("t/k=a%2Fb/x", 3));
        assert!(is_taken(&store.put("t/k=a%2Fb/x", b"other", &Mode::New).unwrap_err()));
        assert_eq!(listed(&store, "", false), [("t".to_owned(), 0, true)]);
        assert_eq!(listed(&store, "t", true), [("t/k=a%2Fb/x".to_owned(), 3, false)]);
        let stat = store.stat("t/k=a%2Fb/x").unwrap().unwrap();
        assert_eq!(stat.identity(), put.identity());
        assert_eq!(store.open("t/k=a%2Fb/x", Some(&put.identity())).unwrap().read(1..3).unwrap(), &b"yz"[..]);

        store.put("t/k=a%2Fb/x", b"wxyz", &Mode::Over).unwrap();
        let stale = store.open("t/k=a%2Fb/x", Some(&put.identity())).unwrap_err();
        assert!(stale.to_string().contains("was changed"), "{stale}");

        store.put("staged", b"1", &Mode::New).unwrap();
        assert!(is_taken(&store.publish("staged", "t/k=a%2Fb/x", &Mode::New).unwrap_err()));
        store.publish("staged", "out/deep/x", &Mode::New).unwrap();
        assert_eq!(store.stat("staged").unwrap(), None);
        assert_eq!(store.open("out/deep/x", None).unwrap().len(), 1);
        store.check_exclusive("probe").unwrap();
        store.delete("out/deep/x").unwrap();
        assert!(store.delete("out/deep/x").unwrap_err().is_not_found());
        store.delete_folder("t").unwrap();
        store.delete_folder("t").unwrap();
        assert!(listed(&store, "", true).is_empty());
    }

    #[test]
    fn a_dropped_upload_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let mut upload = store.create("a/b", &Mode::New).unwrap();
        upload.write_all(b"half").unwrap();
        drop(upload);
        assert!(listed(&store, "", true).is_empty());
    }

    #[test]
    fn only_one_writer_creates_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let won: Vec<bool> = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..16u8)
                .map(|n| {
                    scope.spawn({
                        let store = &store;
                        move || store.put("lock", &[n], &Mode::New).is_ok()
                    })
                })
                .collect();
            tries.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
    }

    #[test]
    fn paths_stay_below_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        for outside in ["../x", "/etc/hostname", "a//b", "./a", "a/.."] {
            assert!(store.stat(outside).is_err(), "{outside}");
        }
        let below = store.below("a").unwrap();
        below.put("b", b"1", &Mode::New).unwrap();
        assert_eq!(listed(&store, "", true), [("a/b".to_owned(), 1, false)]);
        let (above, name) = below.above().unwrap();
        assert_eq!((listed(&above, &name, false).len(), above.url()), (1, store.url()));
    }

    #[cfg(unix)]
    #[test]
    fn links_below_the_root_are_not_followed_by_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (root, elsewhere) = (dir.path().join("root"), dir.path().join("elsewhere"));
        std::fs::create_dir_all(root.join("t")).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("x"), b"keep").unwrap();
        std::os::unix::fs::symlink(&elsewhere, root.join("t/link")).unwrap();
        let store = store(&root);
        store.put("own", b"1", &Mode::New).unwrap();
        for error in [
            store.put("t/link/y", b"1", &Mode::New).unwrap_err(),
            store.put("t/link/deep/y", b"1", &Mode::Over).unwrap_err(),
            store.publish("own", "t/link/y", &Mode::New).unwrap_err(),
            store.publish("t/link/x", "y", &Mode::New).unwrap_err(),
            store.delete("t/link/x").unwrap_err(),
            store.delete_folder("t/link/x").unwrap_err(),
        ] {
            assert!(error.to_string().contains("found a link"), "{error}");
        }
        // The link itself is an entry of the root. Reading follows the link.
        assert_eq!(store.open("t/link/x", None).unwrap().len(), 4);
        store.delete_folder("t").unwrap();
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_of_written_files() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let mode =
            |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
        std::fs::File::create(dir.path().join("plain")).unwrap();
        store.put("new", b"1", &Mode::New).unwrap();
        assert_eq!(mode("new"), mode("plain"), "as the umask has it");
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(dir.path().join("new"), private).unwrap();
        store.put("new", b"2", &Mode::Over).unwrap();
        assert_eq!(mode("new"), 0o600, "a replaced file keeps its permissions");
        let mut upload = store.create("copy", &Mode::New).unwrap();
        upload.limit_mode(0o400).unwrap();
        upload.write_all(b"1").unwrap();
        upload.finish().unwrap();
        assert_eq!(mode("copy"), 0o400);
    }

    #[test]
    fn a_root_has_a_parent() {
        let of = |url: &str, root: &str| Store::of(Arc::new(LocalFiles), url, root).above();
        let (above, name) = of("s3://b/w/t/", "w/t").unwrap();
        assert_eq!((above.url(), above.root.as_str(), name.as_str()), ("s3://b/w", "w", "t"));
        let (above, name) = of("s3://b/t", "t").unwrap();
        assert_eq!((above.url(), above.root.as_str(), name.as_str()), ("s3://b", "", "t"));
        let (above, name) = of("hdfs:///t", "/t").unwrap();
        assert_eq!(
            (above.url_of("x"), above.root.as_str(), name.as_str()),
            ("hdfs:///x".to_owned(), "/", "t")
        );
        assert!(of("s3://b", "").is_none());
        assert!(of("hdfs://n/", "/").is_none());
    }
}
