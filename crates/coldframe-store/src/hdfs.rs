//! HDFS as a store. Keys are literal absolute paths.
//!
//! ```text
//! hdfs://nn:8020/warehouse/t     one NameNode
//! hdfs://cold/warehouse/t        a name service of hdfs-site.xml, several NameNodes
//! hdfs:///warehouse/t            the NameNode or name service of fs.defaultFS
//! viewfs://cluster/warehouse/t   a mount table of core-site.xml
//! ```
//!
//! An open file keeps its block locations, so reading a range needs one exchange with a DataNode, and no
//! exchange with the NameNode. Files are published by renaming them. The NameNode does this atomically and,
//! if nothing may be overwritten, lets only one writer succeed.

mod read;
mod upload;
mod visible;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coldframe_core::io::Identity;
use coldframe_core::process::PerProcess;
use coldframe_core::{Error, ReadAt, Result};
use futures_util::stream::{BoxStream, StreamExt};
use hdfs_native::client::FileStatus;
use hdfs_native::{Client, ClientBuilder, HdfsError};

use self::upload::HdfsUpload;
use crate::files::{Files, Listing, Mode, Resolved, Stat, Upload, already_exists};
use crate::options::{Kind, Options};
use crate::runtime::{handle, kept, wait, within};

/// The permissions of folders that are created for a file.
const FOLDER_MODE: u32 = 0o755;

/// How to connect to a cluster; each process has its own client.
#[derive(Clone)]
pub(crate) struct Cluster {
    base: Arc<str>,
    options: Arc<Options>,
    /// How long the cluster may take to answer.
    timeout: Duration,
    /// The addresses of its NameNodes' web servers, which are needed to read files that are still being
    /// written; if empty, such files are an error.
    webhdfs: Arc<str>,
    client: Arc<PerProcess<Client>>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cluster({})", self.base)
    }
}

/// The store of a URL.
pub(crate) fn connect(url: &str, given: &BTreeMap<String, String>) -> Result<Resolved> {
    let named = |e: Error| e.in_file(url);
    let (scheme, rest) = url.split_once("://").unwrap_or(("hdfs", url));
    let scheme = scheme.to_ascii_lowercase();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut options = options(given).map_err(named)?;
    let timeout = options.take_time("timeout", Duration::from_secs(60)).map_err(named)?;
    let webhdfs = options.take("webhdfs").unwrap_or_default();
    let cluster = cluster(&format!("{scheme}://{authority}"), options, timeout, &webhdfs);
    cluster.client().map_err(named)?;
    Ok(Resolved { files: Arc::new(HdfsFiles { cluster }), url: url.to_owned(), root: format!("/{path}") })
}

/// The given options, under any of their names.
pub(crate) fn options(given: &BTreeMap<String, String>) -> Result<Options> {
    Options::new(Kind::Hdfs, given, |_| false)
}

/// The connection to the cluster that an earlier file used, or a new connection.
fn cluster(base: &str, options: Options, timeout: Duration, webhdfs: &str) -> Cluster {
    static ALL: Mutex<Vec<Cluster>> = Mutex::new(Vec::new());
    let same = |c: &Cluster| {
        *c.base == *base && *c.options == options && c.timeout == timeout && *c.webhdfs == *webhdfs
    };
    kept(&ALL, same, || Cluster {
        base: base.into(),
        options: Arc::new(options.clone()),
        timeout,
        webhdfs: webhdfs.into(),
        client: Arc::new(PerProcess::new()),
    })
}

impl Cluster {
    /// The client of this process.
    fn client(&self) -> Result<Arc<Client>> {
        self.client.get(|| {
            expect_server(&self.base, self.timeout / 3)?;
            // A DataNode has a shorter timeout than the cluster, so that another DataNode has time to answer.
            let silence = (self.timeout / 3).as_millis().to_string();
            let mut settings = HashMap::from([("dfs.client.socket-timeout".to_owned(), silence)]);
            let mut builder = ClientBuilder::new().with_url(&*self.base).with_io_runtime(handle()?);
            for (name, value) in self.options.iter() {
                match name {
                    "hadoop_conf_dir" => builder = builder.with_config_dir(value),
                    "user" => builder = builder.with_user(value),
                    setting => drop(settings.insert(setting.to_owned(), value.to_owned())),
                }
            }
            builder.with_config(settings).build().map_err(error)
        })
    }

    /// The user name that the cluster sees, as its client determines it.
    fn user(&self) -> Option<String> {
        let variable = |name| std::env::var(name).ok().filter(|user| !user.is_empty());
        let given = self.options.get("user").map(str::to_owned);
        given.or_else(|| variable("HADOOP_USER_NAME")).or_else(|| variable("USER"))
    }

    /// Waits for an answer of the cluster.
    fn ask<T>(&self, question: impl Future<Output = hdfs_native::Result<T>>) -> Result<T> {
        wait(within(self.timeout, question))??.map_err(error)
    }
}

/// An error if the host of `hdfs://host:port` does not exist or has no server there. hdfs-native tries again until the
/// timeout. A URL without a port names several NameNodes, or one of the configuration.
fn expect_server(base: &str, limit: Duration) -> Result<()> {
    let authority = base.split_once("://").map(|(_, authority)| authority).unwrap_or_default();
    let Some((host, port)) = authority.rsplit_once(':') else { return Ok(()) };
    let Ok(port) = port.parse::<u16>() else { return Ok(()) };
    let failed = |why: String| Error::from(io::Error::other(format!("no NameNode at {authority}: {why}")));
    let addresses = (host.trim_matches(['[', ']']), port).to_socket_addrs();
    let addresses = addresses.map_err(|e| failed(format!("the host has no address: {e}")))?;
    let mut refused = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, limit) {
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => refused = Some(e),
            // The client waits for a slow server.
            _ => return Ok(()),
        }
    }
    refused.map_or(Ok(()), |e| Err(failed(e.to_string())))
}

/// The files of a cluster.
#[derive(Debug)]
struct HdfsFiles {
    cluster: Cluster,
}

fn stat_of(status: &FileStatus) -> Stat {
    Stat {
        path: status.path.clone(),
        len: if status.isdir { 0 } else { status.length as u64 },
        is_folder: status.isdir,
        modified: i64::try_from(status.modification_time).ok(),
        etag: None,
    }
}

/// The parent folder of a path.
fn above(key: &str) -> &str {
    match key.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((folder, _)) => folder,
    }
}

fn no_overwrite(mode: &Mode) -> Result<bool> {
    match mode {
        Mode::New => Ok(true),
        Mode::Over => Ok(false),
        Mode::Matching(_) => {
            Err(Error::unsupported("replacing a file of HDFS by its etag: HDFS has no etags"))
        }
    }
}

impl Files for HdfsFiles {
    fn list(&self, folder: &str, deep: bool) -> Result<Listing> {
        let entries = self.cluster.client()?.list_status_iter(folder, deep).into_stream();
        let listing = Entries { cluster: self.cluster.clone(), deep, entries, ended: false };
        Ok(Box::new(listing))
    }

    fn stat(&self, key: &str) -> Result<Option<Stat>> {
        let client = self.cluster.client()?;
        match self.cluster.ask(client.get_file_info(key)) {
            Ok(status) => Ok(Some(Stat { path: key.to_owned(), ..stat_of(&status) })),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn open(&self, key: &str, url: &str, known: Option<&Identity>) -> Result<Arc<dyn ReadAt>> {
        read::open(&self.cluster, key, url, known)
    }

    fn create(&self, key: &str, mode: &Mode) -> Result<Box<dyn Upload>> {
        Ok(Box::new(HdfsUpload::create(&self.cluster, key, no_overwrite(mode)?)?))
    }

    fn publish(&self, from: &str, to: &str, mode: &Mode) -> Result<()> {
        let no_overwrite = no_overwrite(mode)?;
        let client = self.cluster.client()?;
        self.cluster.ask(client.mkdirs(above(to), FOLDER_MODE, true))?;
        self.cluster.ask(client.rename(from, to, !no_overwrite))
    }

    fn renames_folders(&self) -> bool {
        true
    }

    fn publish_folder(&self, from: &str, to: &str) -> Result<()> {
        let client = self.cluster.client()?;
        self.cluster.ask(client.rename(from, to, false))
    }

    fn delete(&self, key: &str) -> Result<()> {
        let client = self.cluster.client()?;
        match self.cluster.ask(client.delete(key, false))? {
            true => Ok(()),
            false => Err(Error::not_found("no such file")),
        }
    }

    fn delete_folder(&self, key: &str) -> Result<()> {
        let client = self.cluster.client()?;
        self.cluster.ask(client.delete(key, true)).map(drop)
    }
}

/// The entries of a listing.
struct Entries {
    cluster: Cluster,
    deep: bool,
    entries: BoxStream<'static, hdfs_native::Result<FileStatus>>,
    ended: bool,
}

impl Iterator for Entries {
    type Item = Result<Stat>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let entries = &mut self.entries;
            match self.cluster.ask(async { entries.next().await.transpose() }) {
                Ok(Some(status)) if self.deep && status.isdir => {}
                Ok(Some(status)) => return Some(Ok(stat_of(&status))),
                // The stream must not be polled again.
                Ok(None) => self.ended = true,
                Err(e) => {
                    self.ended = true;
                    return Some(Err(e));
                }
            }
        }
        None
    }
}

/// Converts an error of the client. Of a Java stack trace only the first line is kept.
fn error(e: HdfsError) -> Error {
    let text = e.to_string();
    let line = text.lines().next().unwrap_or_default().to_owned();
    let io = |kind| Error::from(io::Error::new(kind, line.clone()));
    match &e {
        HdfsError::FileNotFound(_) => Error::not_found("no such file or directory"),
        HdfsError::IsADirectoryError(_) => Error::not_found("a folder, not a file"),
        HdfsError::AlreadyExists(_) => already_exists(),
        HdfsError::RPCError(class, _) | HdfsError::FatalRPCError(class, _) => {
            match class.rsplit('.').next() {
                Some("FileNotFoundException") => Error::not_found(line),
                Some("FileAlreadyExistsException") => already_exists(),
                Some("AccessControlException" | "AuthorizationException") => {
                    io(io::ErrorKind::PermissionDenied)
                }
                _ => io(io::ErrorKind::Other),
            }
        }
        HdfsError::UnsupportedFeature(_) | HdfsError::UnsupportedErasureCodingPolicy(_) => {
            Error::unsupported(line)
        }
        HdfsError::InvalidArgument(_) | HdfsError::UrlParseError(_) | HdfsError::InvalidPath(_) => {
            Error::invalid(line)
        }
        HdfsError::IOError(e) => io(e.kind()),
        HdfsError::SASLError(_) | HdfsError::GSSAPIError(..) | HdfsError::NoSASLMechanism => {
            io(io::ErrorKind::PermissionDenied)
        }
        _ => io(io::ErrorKind::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_node_that_is_not_there_is_an_error_at_once() {
        let limit = Duration::from_secs(1);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        expect_server(&format!("hdfs://{address}"), limit).unwrap();
        drop(listener);
        let error = expect_server(&format!("hdfs://{address}"), limit).unwrap_err().to_string();
        assert!(error.contains(&format!("no NameNode at {address}")), "{error}");
        let error = expect_server("hdfs://no-such-host.invalid:8020", limit).unwrap_err().to_string();
        assert!(error.contains("has no address"), "{error}");
        for without_port in ["hdfs://nameservice", "hdfs://", "viewfs://cluster"] {
            expect_server(without_port, limit).unwrap();
        }
    }
}
