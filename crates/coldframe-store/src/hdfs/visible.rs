//! Reading an HDFS file that is being written, through
//! [WebHDFS](https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html).
//!
//! ```text
//! | block 0 | block 1 | block 2 ..
//! |<- the NameNode -->|        |     counts complete blocks
//! |<- the DataNodes ---------->|     know the visible length: all bytes that the writer has flushed
//! ```
//!
//! Java's client asks the DataNodes of the last block (`getReplicaVisibleLength`). hdfs-native does not do
//! this, and does not give the addresses of DataNodes. A DataNode's web server reads with Java's client: its
//! answer to `OPEN` has the visible length (`Content-Length`) and the bytes. So a user who gives the
//! NameNode's web address can read the bytes flushed so far, which may be fewer than the final file has.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::io::{Identity, Pending};
use coldframe_core::process::PerProcess;
use coldframe_core::{Error, ReadAt, Result, shown};
use hdfs_native::client::FileStatus;
use reqwest::{Client, Response, StatusCode, Url};

use super::{Cluster, stat_of};
use crate::ends::Ends;
use crate::files::{changed, check};
use crate::parts::gather;
use crate::runtime::{start, wait, within};
use crate::trace;

/// Maximum number of ranges of one read that are in flight at a time.
const AT_ONCE: usize = 4;

/// A longer range is read in parallel parts.
const PART: u64 = 16 << 20;

/// Maximum number of bytes of an error response that are shown.
const MAX_MESSAGE_BYTES: usize = 300;

/// A file that is being written, with the length that it had when it was opened.
#[derive(Clone, Debug)]
struct WrittenFile {
    cluster: Cluster,
    key: Arc<str>,
    /// The file's URL, for traces.
    url: Arc<str>,
    len: u64,
    modified: Option<i64>,
    /// Where to read the file; each process has its own, like its connections.
    source: Arc<PerProcess<Source>>,
}

/// A DataNode that serves the file.
#[derive(Debug)]
struct Source {
    client: Client,
    /// A DataNode's URL, for the whole file.
    url: Url,
}

/// Opens a file that is being written. `status` is the NameNode's description of it.
pub(super) fn open(
    cluster: &Cluster,
    key: &str,
    url: &str,
    status: &FileStatus,
    known: Option<&Identity>,
) -> Result<Arc<dyn ReadAt>> {
    let shown: Arc<str> = shown(url).into();
    let request = trace::answer(trace::fetch_of(&shown, "a DataNode"), locate(cluster, key));
    let (source, len) = wait(request)??;
    let listed = stat_of(status).identity();
    let identity = Identity { len, ..listed.clone() };
    // If `known` comes from a listing, it has the NameNode's length; if it comes from a plan, it has the
    // visible length.
    if let Some(known) = known
        && known.len != listed.len
    {
        check(known, &identity)?;
    } else if let Some(known) = known {
        check(known, &listed)?;
    }
    let made = Arc::new(PerProcess::new());
    made.get(|| Ok(source))?;
    let modified = identity.modified;
    let file =
        WrittenFile { cluster: cluster.clone(), key: key.into(), url: shown, len, modified, source: made };
    Ok(Arc::new(Ends::new(Arc::new(file), url, Vec::new())))
}

/// Finds a DataNode that serves the file, and the visible length.
async fn locate(cluster: &Cluster, key: &str) -> Result<(Source, u64)> {
    // WebHDFS may use https.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .connect_timeout(cluster.timeout / 3)
        .read_timeout(cluster.timeout)
        .build()
        .map_err(failed)?;
    let url = datanode(cluster, &client, key).await?;
    let whole = within(cluster.timeout, client.get(url.clone()).send()).await?.map_err(failed)?;
    let whole = expect(whole, StatusCode::OK).await?;
    // Only the header of this answer is read, not the bytes.
    let len = whole.content_length().ok_or_else(|| refused("its answer to OPEN has no Content-Length"))?;
    Ok((Source { client, url }, len))
}

/// The DataNode to which the first active NameNode redirects readers of the file.
async fn datanode(cluster: &Cluster, client: &Client, key: &str) -> Result<Url> {
    let mut last = refused("storage option `webhdfs` names no address");
    for address in cluster.webhdfs.split(',').map(str::trim).filter(|address| !address.is_empty()) {
        let url = request(address, key, cluster.user().as_deref())?;
        match within(cluster.timeout, client.get(url).send()).await {
            Err(silent) => last = silent.into(),
            Ok(Err(e)) => last = failed(e),
            Ok(Ok(answer)) => match expect(answer, StatusCode::TEMPORARY_REDIRECT).await {
                Ok(answer) => return target(&answer),
                // A standby NameNode answers with an error, too.
                Err(e) => last = e,
            },
        }
    }
    Err(last)
}

/// The request to a NameNode.
fn request(address: &str, key: &str, user: Option<&str>) -> Result<Url> {
    let wrong = || {
        Error::invalid(format!(
            "storage option `webhdfs`: expected addresses such as http://namenode:9870, found {address:?}"
        ))
    };
    let mut url = Url::parse(address).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong());
    }
    url.path_segments_mut()
        .map_err(|()| wrong())?
        .pop_if_empty()
        .extend(["webhdfs", "v1"])
        .extend(key.split('/').filter(|part| !part.is_empty()));
    url.query_pairs_mut().append_pair("op", "OPEN").append_pair("offset", "0");
    if let Some(user) = user {
        url.query_pairs_mut().append_pair("user.name", user);
    }
    Ok(url)
}

/// The target of a redirect.
fn target(answer: &Response) -> Result<Url> {
    let location = answer.headers().get(reqwest::header::LOCATION).and_then(|value| value.to_str().ok());
    location
        .and_then(|location| answer.url().join(location).ok())
        .filter(|url| url.scheme() == "https" || (url.scheme() == "http" && answer.url().scheme() == "http"))
        .ok_or_else(|| refused("it names no DataNode, or one without TLS although the NameNode has it"))
}

/// The URL for a range of bytes from the same DataNode.
fn of_range(url: &Url, range: &Range<u64>) -> Url {
    let others: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| name != "offset" && name != "length")
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let mut url = url.clone();
    url.query_pairs_mut()
        .clear()
        .extend_pairs(others)
        .append_pair("offset", &range.start.to_string())
        .append_pair("length", &(range.end - range.start).to_string());
    url
}

/// A response with this status; an error with the response's message for any other status.
async fn expect(answer: Response, status: StatusCode) -> Result<Response> {
    let actual = answer.status();
    if actual == status {
        return Ok(answer);
    }
    let message = answer.bytes().await.unwrap_or_default();
    let message = String::from_utf8_lossy(message.get(..MAX_MESSAGE_BYTES).unwrap_or(&message)).into_owned();
    match actual {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if !message.contains("StandbyException") => {
            let why = format!("WebHDFS: {actual}: {message}");
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why).into())
        }
        _ => Err(refused(&format!("{actual}: {message}"))),
    }
}

fn refused(why: &str) -> Error {
    io::Error::other(format!("reading a file that is being written, through WebHDFS: {why}")).into()
}

fn failed(e: reqwest::Error) -> Error {
    // The URL in the error may contain a token.
    let e = e.without_url();
    let kind = if e.is_timeout() { io::ErrorKind::TimedOut } else { io::ErrorKind::Other };
    let mut why = format!("WebHDFS: {e}");
    let mut below = std::error::Error::source(&e);
    while let Some(cause) = below {
        why = format!("{why}: {cause}");
        below = cause.source();
    }
    io::Error::new(kind, why).into()
}

impl WrittenFile {
    fn source(&self) -> Result<Arc<Source>> {
        self.source.get(|| {
            let (source, len) = wait(locate(&self.cluster, &self.key))??;
            // The file may be longer by now, because the writer has continued.
            if len < self.len { Err(changed("it is shorter")) } else { Ok(source) }
        })
    }

    fn read(
        &self,
        ranges: &[Range<u64>],
    ) -> Result<impl Future<Output = Result<Vec<Bytes>>> + Send + 'static> {
        let (source, file, ranges) = (self.source()?, self.clone(), ranges.to_vec());
        let read = move |part: Range<u64>| {
            let (source, file) = (source.clone(), file.clone());
            async move {
                let at = part.start;
                let span = trace::fetch(&file.url, &part);
                trace::answer(span, file.read_part(&source, part)).await.map_err(|e| e.at(at))
            }
        };
        Ok(gather(ranges, PART, AT_ONCE, read))
    }

    async fn read_part(&self, source: &Source, part: Range<u64>) -> Result<Bytes> {
        let url = of_range(&source.url, &part);
        let limit = self.cluster.timeout;
        let answer = within(limit, source.client.get(url).send()).await?.map_err(failed)?;
        let answer = expect(answer, StatusCode::OK).await?;
        // An answer that is longer than requested is not read to its end.
        if answer.content_length().is_some_and(|len| len > part.end - part.start) {
            return Err(refused("its answer is longer than the requested range"));
        }
        let bytes = within(limit, answer.bytes()).await?.map_err(failed)?;
        match bytes.len() as u64 == part.end - part.start {
            true => Ok(bytes),
            false => Err(changed("it ends earlier")),
        }
    }
}

impl ReadAt for WrittenFile {
    fn identity(&self) -> Identity {
        Identity { len: self.len, modified: self.modified, etag: None }
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
        256 << 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_webhdfs() {
        let url = request("http://nn:9870/", "/a b/c%20d", Some("hive")).unwrap();
        assert_eq!(url.as_str(), "http://nn:9870/webhdfs/v1/a%20b/c%2520d?op=OPEN&offset=0&user.name=hive");
        let datanode =
            Url::parse("http://dn:9864/webhdfs/v1/x?op=OPEN&user.name=a&offset=0&length=9").unwrap();
        let part = of_range(&datanode, &(5..8));
        assert_eq!(part.as_str(), "http://dn:9864/webhdfs/v1/x?op=OPEN&user.name=a&offset=5&length=3");
        for wrong in ["", "nn:9870", "hdfs://nn:8020"] {
            let message = request(wrong, "/x", None).unwrap_err().to_string();
            assert!(message.contains("webhdfs"), "{message}");
        }
    }
}
