//! Object stores and web servers as stores. Keys are the literal names of objects.

mod addresses;
mod busy_retry;
mod connect;
mod profile;
mod read;
mod redirect;
mod upload;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use coldframe_core::io::Identity;
use coldframe_core::{Error, ReadAt, Result};
use futures_util::stream::{BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{CopyMode, CopyOptions, ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::files::{Files, Listing, Mode, Stat, Upload, already_exists, changed, other_content};
use crate::object::connect::Connection;
use crate::object::upload::ObjectUpload;
use crate::runtime::wait;

pub(crate) use connect::{connect, resolved};

/// How many entries a listing takes from its stream at a time.
const AT_ONCE: usize = 1000;

/// The suffix of the marker objects that Hadoop creates for folders.
const FOLDER_MARK: &str = "_$folder$";

/// The objects of a bucket, or the files of a web server.
#[derive(Debug)]
pub(crate) struct ObjectFiles {
    connection: Arc<Connection>,
}

impl ObjectFiles {
    /// The objects that a connection gives access to.
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection }
    }

    fn store(&self) -> Result<Arc<dyn ObjectStore>> {
        self.connection.store()
    }

    /// Web servers can be read but not listed.
    fn refuse_if_web(&self, what: &str) -> Result<()> {
        if self.connection.is_web() {
            return Err(Error::unsupported(format!("{what} on a web server")));
        }
        Ok(())
    }
}

/// Converts a key to a path of the client, without decoding or encoding anything. The client does not support
/// all names.
fn path_of(key: &str) -> Result<Path> {
    let path = Path::parse(key).ok().filter(|path| path.as_ref() == key);
    path.ok_or_else(|| {
        Error::unsupported(format!(
            "objects with empty, `.` or `..` parts or control characters in their names, as in {key:?}"
        ))
    })
}

fn stat_of(meta: &ObjectMeta) -> Stat {
    Stat {
        path: meta.location.to_string(),
        len: meta.size,
        is_folder: false,
        modified: Some(meta.last_modified.timestamp_millis()),
        etag: meta.e_tag.clone(),
    }
}

fn folder_of(path: &Path) -> Stat {
    Stat { path: path.to_string(), is_folder: true, ..Stat::default() }
}

impl Files for ObjectFiles {
    fn list(&self, folder: &str, deep: bool) -> Result<Listing> {
        self.refuse_if_web("lists of files")?;
        let (store, prefix) = (self.store()?, path_of(folder)?);
        if !deep {
            let result = wait(store.list_with_delimiter(Some(&prefix)))?.map_err(error)?;
            let folders: Vec<Stat> = result.common_prefixes.iter().map(folder_of).collect();
            let is_mark = |meta: &ObjectMeta| {
                // Some tools create an empty object with the folder's name in place of a folder.
                let below = format!("{}/", meta.location);
                meta.location == prefix
                    || meta.location.as_ref().ends_with(FOLDER_MARK)
                    || (meta.size == 0 && result.common_prefixes.iter().any(|p| format!("{p}/") == below))
            };
            let objects = result.objects.iter().filter(|o| !is_mark(o)).map(stat_of);
            let all: Vec<Result<Stat>> = objects.chain(folders).map(Ok).collect();
            return Ok(Box::new(all.into_iter()));
        }
        let objects = store.list(Some(&prefix)).ready_chunks(AT_ONCE).boxed();
        Ok(Box::new(Deep { store, prefix, objects, ready: VecDeque::new(), doubtful: None, failed: false }))
    }

    fn stat(&self, key: &str) -> Result<Option<Stat>> {
        let (store, path) = (self.store()?, path_of(key)?);
        if !key.is_empty() {
            match wait(store.head(&path))? {
                Ok(meta) => return Ok(Some(stat_of(&meta))),
                // A HEAD request that fails states no reason, but a failed listing states a reason.
                Err(e) if has_no_reason(&e) && !self.connection.is_web() => {
                    let listed = wait(async { store.list(Some(&path)).try_next().await })?;
                    return Err(error(listed.err().unwrap_or(e)));
                }
                Err(e) => match error(e) {
                    e if e.is_not_found() => {}
                    e => return Err(e),
                },
            }
        }
        if self.connection.is_web() {
            return Ok(None);
        }
        let first = wait(async { store.list(Some(&path)).try_next().await })?.map_err(error)?;
        Ok((key.is_empty() || first.is_some()).then(|| folder_of(&path)))
    }

    fn open(&self, key: &str, url: &str, known: Option<&Identity>) -> Result<Arc<dyn ReadAt>> {
        read::open(&self.connection, path_of(key)?, url, known)
    }

    fn create(&self, key: &str, mode: &Mode) -> Result<Box<dyn Upload>> {
        self.refuse_if_web("writing")?;
        Ok(Box::new(ObjectUpload::new(self.store()?, path_of(key)?, mode.clone())))
    }

    fn publish(&self, from: &str, to: &str, mode: &Mode) -> Result<()> {
        self.refuse_if_web("writing")?;
        let (store, from, to) = (self.store()?, path_of(from)?, path_of(to)?);
        let mode = match mode {
            Mode::New => CopyMode::Create,
            Mode::Over => CopyMode::Overwrite,
            Mode::Matching(_) => {
                return Err(Error::unsupported("a copy that replaces only one version of an object"));
            }
        };
        wait(async {
            store.copy_opts(&from, &to, CopyOptions::new().with_mode(mode)).await?;
            store.delete(&from).await
        })?
        .map_err(error)
    }

    fn delete(&self, key: &str) -> Result<()> {
        self.refuse_if_web("deleting")?;
        wait(self.store()?.delete(&path_of(key)?))?.map_err(error)
    }

    fn delete_folder(&self, key: &str) -> Result<()> {
        self.refuse_if_web("deleting")?;
        let (store, prefix) = (self.store()?, path_of(key)?);
        let below = store.list(Some(&prefix)).map_ok(|meta| meta.location).boxed();
        let deleted = wait(store.delete_stream(below).try_for_each(|_| async { Ok(()) }))?;
        match deleted.map_err(error) {
            Err(e) if e.is_not_found() => Ok(()),
            other => other,
        }
    }
}

/// All objects below a prefix, as they arrive, without folder markers.
struct Deep {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    objects: BoxStream<'static, Vec<object_store::Result<ObjectMeta>>>,
    ready: VecDeque<object_store::Result<ObjectMeta>>,
    /// An empty object that may be a file or a folder marker. The client has removed the trailing slash of a
    /// marker's name, so the next object has to show whether this object is a file or a marker.
    doubtful: Option<ObjectMeta>,
    failed: bool,
}

impl Deep {
    /// The next object as listed.
    fn listed(&mut self) -> Result<Option<ObjectMeta>> {
        loop {
            if let Some(meta) = self.ready.pop_front() {
                return meta.map(Some).map_err(error);
            }
            let objects = &mut self.objects;
            match wait(async { objects.next().await })? {
                Some(chunk) => self.ready = chunk.into(),
                None => return Ok(None),
            }
        }
    }

    /// Whether an empty object is a file; `next` is the object listed after it.
    fn is_file(&self, doubtful: &ObjectMeta, next: Option<&ObjectMeta>) -> Result<bool> {
        let below = format!("{}/", doubtful.location);
        if next.is_some_and(|next| next.location.as_ref().starts_with(&below)) {
            return Ok(false);
        }
        match wait(self.store.head(&doubtful.location))? {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(e) => Err(error(e)),
        }
    }

    fn advance(&mut self) -> Result<Option<Stat>> {
        loop {
            let next = self.listed()?;
            if let Some(doubtful) = self.doubtful.take()
                && self.is_file(&doubtful, next.as_ref())?
            {
                if let Some(next) = next {
                    self.ready.push_front(Ok(next));
                }
                return Ok(Some(stat_of(&doubtful)));
            }
            let Some(next) = next else { return Ok(None) };
            if next.location == self.prefix || next.location.as_ref().ends_with(FOLDER_MARK) {
                continue;
            }
            if next.size > 0 {
                return Ok(Some(stat_of(&next)));
            }
            self.doubtful = Some(next);
        }
    }
}

impl Iterator for Deep {
    type Item = Result<Stat>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.advance();
        self.failed = next.is_err();
        next.transpose()
    }
}

/// Converts an error of the client. The messages of such errors are shortened, because they contain URLs and
/// XML.
pub(crate) fn error(e: object_store::Error) -> Error {
    use object_store::Error as E;
    let io = |kind, text: String| Error::from(io::Error::new(kind, text));
    let why = reason_of(&e);
    match e {
        _ if why.contains("NoSuchBucket") || why.contains("ContainerNotFound") => {
            Error::not_found(format!("no such bucket: {why}"))
        }
        _ if is_about_time(&why) => {
            io(io::ErrorKind::PermissionDenied, format!("{why} Check the clock of this machine."))
        }
        // Stores use several status codes for refusals, and the client hides the code for listings and
        // deletions.
        E::Generic { .. } if is_refusal(&why) => {
            io(io::ErrorKind::PermissionDenied, format!("the store refuses this: {why}"))
        }
        // The client treats this as a request for a folder.
        E::NotFound { .. } if has_status(&why, &["405"]) => {
            io(io::ErrorKind::Unsupported, format!("the server does not allow this: {why}"))
        }
        E::Generic { .. } if has_status(&why, &["401", "403"]) => {
            io(io::ErrorKind::PermissionDenied, format!("the store refuses this: {why}"))
        }
        E::NotFound { .. } => Error::not_found("no such object"),
        E::AlreadyExists { .. } => already_exists(),
        E::Precondition { .. } | E::NotModified { .. } => changed(&why),
        E::PermissionDenied { .. } => {
            io(io::ErrorKind::PermissionDenied, format!("the store refuses this (403){}", behind(&why)))
        }
        E::Unauthenticated { .. } => {
            let why = behind(&why);
            io(
                io::ErrorKind::PermissionDenied,
                format!("the store requires credentials, or does not accept these (401){why}"),
            )
        }
        E::NotSupported { .. } | E::NotImplemented { .. } => Error::unsupported(why),
        E::InvalidPath { .. } => Error::unsupported(format!("an object's name: {why}")),
        _ if why.contains("timed out") => io(io::ErrorKind::TimedOut, why),
        _ => io(io::ErrorKind::Other, why),
    }
}

/// Whether a response without a reason has one of these status codes.
fn has_status(why: &str, numbers: &[&str]) -> bool {
    let number = why.strip_prefix("Server returned non-2xx status code: ");
    number.is_some_and(|rest| numbers.iter().any(|number| rest.starts_with(number)))
}

/// The error codes of stores for refused requests, with any status.
const REFUSALS: &[&str] = &[
    "AccessDenied",
    "AccountProblem",
    "AllAccessDisabled",
    "AuthenticationFailed",
    "AuthorizationFailure",
    "AuthorizationPermissionMismatch",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidAuthenticationInfo",
    "InvalidToken",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
];

/// Whether a response's error code means that the request is refused.
fn is_refusal(why: &str) -> bool {
    why.split_once(':').is_some_and(|(code, _)| REFUSALS.contains(&code))
}

/// Whether the error means that the request is refused.
pub(crate) fn is_refused(e: &object_store::Error) -> bool {
    let why = reason_of(e);
    is_refusal(&why) || is_about_time(&why)
}

fn is_about_time(why: &str) -> bool {
    why.starts_with("RequestTimeTooSkewed:") || why.starts_with("RequestExpired:")
}

/// Whether an error is a response without a reason. The response to a HEAD request has no body.
fn has_no_reason(e: &object_store::Error) -> bool {
    use object_store::Error as E;
    let why = reason_of(e);
    matches!(e, E::PermissionDenied { .. } | E::Unauthenticated { .. } | E::Generic { .. })
        && why.starts_with("Server returned")
        && !why.contains("code: 5")
}

/// The reason in the form that ends a message; empty for a response without a body.
fn behind(why: &str) -> String {
    if why.starts_with("Server returned") { String::new() } else { format!(": {why}") }
}

/// The message in the XML of the store's response, or else the innermost error.
fn reason_of(e: &object_store::Error) -> String {
    let mut innermost: &dyn std::error::Error = e;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let (outer, inner) = (e.to_string(), innermost.to_string());
    let part = |open: &str, close: &str| {
        outer.split_once(open).and_then(|(_, rest)| rest.split_once(close)).map(|(text, _)| text)
    };
    match (part("<Code>", "</Code>"), part("<Message>", "</Message>")) {
        (Some(code), Some(message)) => shortened(&format!("{code}: {message}")),
        (Some(code), None) => shortened(code),
        _ => shortened(&inner),
    }
}

/// The first line of a text, without the queries and passwords of URLs, which are secrets.
fn shortened(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    coldframe_core::shown_in(line).chars().take(300).collect()
}

/// Converts the error of a put. If its condition failed, the file already exists, or has other content than
/// expected.
pub(crate) fn put_error(e: object_store::Error, mode: &Mode) -> Error {
    match (e, mode) {
        (object_store::Error::Precondition { .. }, Mode::Matching(etag)) => other_content(etag),
        (object_store::Error::Precondition { .. } | object_store::Error::NotModified { .. }, Mode::New) => {
            already_exists()
        }
        (e, _) => error(e),
    }
}
