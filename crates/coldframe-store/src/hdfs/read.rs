//! Reading a file of HDFS by ranges.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::io::{Identity, Pending};
use coldframe_core::{Error, ReadAt, Result};
use hdfs_native::HdfsError;
use hdfs_native::file::FileReader;

use super::{Cluster, error};
use crate::ends::Ends;
use crate::files::{changed, check};
use crate::parts::gather;
use crate::runtime::{PerProcess, start, wait, within};

/// Ranges of one read that are under way at once.
const AT_ONCE: usize = 4;

/// A longer range is read in parts side by side: its blocks lie on several machines.
const PART: u64 = 16 << 20;

/// One file.
#[derive(Clone, Debug)]
struct HdfsFile {
    cluster: Cluster,
    key: Arc<str>,
    len: u64,
    /// With the places of its blocks; each process's own, as the client is.
    reader: Arc<PerProcess<FileReader>>,
}

/// Opens a file by asking for the places of its blocks.
pub(super) fn open(
    cluster: &Cluster,
    key: &str,
    url: &str,
    known: Option<&Identity>,
) -> Result<Arc<dyn ReadAt>> {
    let reader = Arc::new(PerProcess::new());
    let file = HdfsFile { cluster: cluster.clone(), key: key.into(), len: 0, reader };
    let len = file.reader()?.file_length() as u64;
    if let Some(known) = known {
        check(known, &Identity { len, ..Identity::default() })?;
    }
    Ok(Arc::new(Ends::new(Arc::new(HdfsFile { len, ..file }), url, Vec::new())))
}

impl HdfsFile {
    fn reader(&self) -> Result<Arc<FileReader>> {
        self.reader.get(|| self.locate())
    }

    fn locate(&self) -> Result<FileReader> {
        let client = self.cluster.client()?;
        self.cluster.ask(client.read(&self.key))
    }

    fn read(
        &self,
        ranges: &[Range<u64>],
    ) -> Result<impl Future<Output = Result<Vec<Bytes>>> + Send + 'static> {
        let (reader, file, ranges) = (self.reader()?, self.clone(), ranges.to_vec());
        let read = move |part| file.clone().read_part(reader.clone(), part);
        Ok(gather(ranges, PART, AT_ONCE, read))
    }

    async fn read_part(self, reader: Arc<FileReader>, part: Range<u64>) -> Result<Bytes> {
        let at = |e: Error| e.at(part.start);
        match self.attempt(&reader, &part).await.map_err(at)? {
            Ok(bytes) => Ok(bytes),
            // Blocks may have moved since the file was opened.
            Err(HdfsError::IOError(_) | HdfsError::DataTransferError(_) | HdfsError::BlocksNotFound(_)) => {
                let client = self.cluster.client()?;
                let fresh = within(self.cluster.patience, client.read(&self.key))
                    .await?
                    .map_err(error)
                    .map_err(at)?;
                if fresh.file_length() as u64 != self.len {
                    return Err(changed("it has another length").at(part.start));
                }
                self.attempt(&fresh, &part).await.map_err(at)?.map_err(error).map_err(at)
            }
            Err(e) => Err(at(error(e))),
        }
    }

    async fn attempt(&self, reader: &FileReader, part: &Range<u64>) -> Result<hdfs_native::Result<Bytes>> {
        let size = |n: u64| {
            usize::try_from(n).map_err(|_| Error::invalid("the range is larger than the address space"))
        };
        let (offset, len) = (size(part.start)?, size(part.end - part.start)?);
        // The client panics beyond the end.
        if offset.checked_add(len).is_none_or(|end| end > reader.file_length()) {
            return Err(changed("it is shorter"));
        }
        let read = within(self.cluster.patience, reader.read_range(offset, len)).await?;
        match read {
            Ok(bytes) if bytes.len() != len => Err(changed("it ends earlier")),
            read => Ok(read),
        }
    }
}

impl ReadAt for HdfsFile {
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
