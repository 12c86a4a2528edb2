//! Reading a file of HDFS by ranges.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::io::{Identity, Pending};
use coldframe_core::process::PerProcess;
use coldframe_core::{Error, ReadAt, Result, shown};
use hdfs_native::client::FileStatus;
use hdfs_native::file::FileReader;
use hdfs_native::{Client, HdfsError};

use super::{Cluster, error, stat_of, visible};
use crate::ends::Ends;
use crate::files::{changed, check};
use crate::parts::gather;
use crate::runtime::{start, wait, within};
use crate::trace;

/// Maximum number of ranges of one read that are in flight at a time.
const AT_ONCE: usize = 4;

/// A longer range is read in parallel parts: its blocks are on several machines.
const PART: u64 = 16 << 20;

/// One file.
#[derive(Clone, Debug)]
struct HdfsFile {
    cluster: Cluster,
    key: Arc<str>,
    /// The file's URL, for traces.
    url: Arc<str>,
    len: u64,
    /// When the file was last written.
    modified: Option<i64>,
    /// The reader with its block locations; like the client, each process has its own reader.
    reader: Arc<PerProcess<FileReader>>,
}

/// Opens a file by requesting its block locations.
pub(super) fn open(
    cluster: &Cluster,
    key: &str,
    url: &str,
    known: Option<&Identity>,
) -> Result<Arc<dyn ReadAt>> {
    let client = cluster.client()?;
    let shown: Arc<str> = shown(url).into();
    let request = trace::answer(trace::fetch_of(&shown, "block locations"), describe(&client, key));
    let (status, reader) = match cluster.ask(request)?? {
        Description::Closed(status, reader) => (status, reader),
        Description::Open(_) if cluster.webhdfs.is_empty() => return Err(being_written()),
        Description::Open(status) => return visible::open(cluster, key, url, &status, known),
    };
    let identity = Identity { len: status.length as u64, ..stat_of(&status).identity() };
    if let Some(known) = known {
        check(known, &identity)?;
    }
    let (reader, of_process) = (Arc::new(PerProcess::new()), reader);
    reader.get(|| Ok(*of_process))?;
    let (len, modified) = (identity.len, identity.modified);
    let file = HdfsFile { cluster: cluster.clone(), key: key.into(), url: shown, len, modified, reader };
    Ok(Arc::new(Ends::new(Arc::new(file), url, Vec::new())))
}

/// The NameNode's description of a file.
enum Description {
    /// A closed file, with its block locations.
    Closed(FileStatus, Box<FileReader>),
    /// A file that is being written, for which the NameNode's length counts only complete blocks
    /// ([`visible`]).
    Open(FileStatus),
}

fn being_written() -> Error {
    Error::unsupported(
        "a file of HDFS that is being written: only the DataNodes of its last block know its readable length. If its writer is gone, close it with `hdfs debug recoverLease -path ..`; or read the visible part with the storage option `webhdfs=http://namenode:9870`",
    )
}

/// The NameNode's description of a file.
///
/// Only DataNodes know the length of the last block of a file that is being written. Without this length the
/// file would be read as if that block, which is often the only one, did not exist. A file being written is
/// recognised by its reserved space, since a whole block is reserved for its last block. The status is
/// requested last, so that it shows whether the file was closed or replaced in between.
async fn describe(client: &Client, key: &str) -> hdfs_native::Result<Result<Description>> {
    let reader = client.read(key).await?;
    let summary = client.get_content_summary(key).await?;
    let status = client.get_file_info(key).await?;
    let len = reader.file_length() as u64;
    let reserved = status
        .blocksize
        .zip(status.replication)
        .map(|(block, copies)| len.saturating_add(block).saturating_mul(u64::from(copies)));
    // If the writer has synced its data, the NameNode also counts a part of the last block.
    let is_more = status.length as u64 > len || summary.length > len;
    if is_more || (summary.space_consumed > 0 && reserved == Some(summary.space_consumed)) {
        return Ok(Ok(Description::Open(status)));
    }
    if status.length as u64 != len || summary.length != len {
        return Ok(Err(changed("it has another length")));
    }
    Ok(Ok(Description::Closed(status, Box::new(reader))))
}

impl HdfsFile {
    fn reader(&self) -> Result<Arc<FileReader>> {
        self.reader.get(|| self.locate())
    }

    /// Creates the reader, in a process that has not opened the file.
    fn locate(&self) -> Result<FileReader> {
        let client = self.cluster.client()?;
        wait(self.same(&client))?
    }

    fn read(
        &self,
        ranges: &[Range<u64>],
    ) -> Result<impl Future<Output = Result<Vec<Bytes>>> + Send + 'static> {
        let (reader, file, ranges) = (self.reader()?, self.clone(), ranges.to_vec());
        let read = move |part: Range<u64>| {
            let (file, reader) = (file.clone(), reader.clone());
            trace::answer(trace::fetch(&file.url.clone(), &part), file.read_part(reader, part))
        };
        Ok(gather(ranges, PART, AT_ONCE, read))
    }

    async fn read_part(self, reader: Arc<FileReader>, part: Range<u64>) -> Result<Bytes> {
        let at = |e: Error| e.at(part.start);
        match self.attempt(&reader, &part).await.map_err(at)? {
            Ok(bytes) => Ok(bytes),
            // Blocks may have moved since the file was opened.
            Err(HdfsError::IOError(_) | HdfsError::DataTransferError(_) | HdfsError::BlocksNotFound(_)) => {
                tracing::debug!(name: "fetch", url = &*self.url, offset = part.start, retry = "blocks moved");
                let client = self.cluster.client()?;
                let fresh = self.same(&client).await.map_err(at)?;
                self.attempt(&fresh, &part).await.map_err(at)?.map_err(error).map_err(at)
            }
            Err(e) => Err(at(error(e))),
        }
    }

    /// Requests the block locations again, if the file is still the same.
    async fn same(&self, client: &Client) -> Result<FileReader> {
        let described = within(self.cluster.timeout, describe(client, &self.key)).await?;
        let described = described.map_err(|e| match error(e) {
            e if e.is_not_found() => changed("it is no longer there"),
            e => e,
        })??;
        let Description::Closed(status, reader) = described else {
            return Err(changed("it is being written again"));
        };
        check(&self.identity(), &stat_of(&status).identity())?;
        Ok(*reader)
    }

    async fn attempt(&self, reader: &FileReader, part: &Range<u64>) -> Result<hdfs_native::Result<Bytes>> {
        let size = |n: u64| {
            usize::try_from(n).map_err(|_| Error::invalid("the range is larger than the address space"))
        };
        let (offset, len) = (size(part.start)?, size(part.end - part.start)?);
        // The client would panic for a range beyond the end.
        if offset.checked_add(len).is_none_or(|end| end > reader.file_length()) {
            return Err(changed("it is shorter"));
        }
        let read = within(self.cluster.timeout, reader.read_range(offset, len)).await?;
        match read {
            Ok(bytes) if bytes.len() != len => Err(changed("it ends earlier")),
            read => Ok(read),
        }
    }
}

impl ReadAt for HdfsFile {
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
