//! Writing a file of HDFS.
//!
//! ```text
//! temporary file   | block 0 | block 1 | block 2 ..      sent as it is written, renamed when it is complete
//!                                      ^ a DataNode of this block does not answer
//! second file      | block 0 | block 1 |                 copied from the first, then continued
//! ```
//!
//! The NameNode takes ten minutes to notice that a DataNode is dead, and until then assigns new blocks to it.
//! Java's client requests the block again and excludes the dead node. hdfs-native recovers a block that was
//! begun, but does not begin it elsewhere. So this code begins the file again: first unchanged, since a large
//! cluster will choose other DataNodes; then with one replica of one long block, which needs only one live
//! DataNode. Before the file gets its name, the final number of replicas is set, and the NameNode creates
//! them.
//!
//! A sync of the first bytes of a block shows whether its DataNodes answer, while those bytes are still in
//! memory. A file that is sent in one piece needs no sync: all of it is in memory until it is closed.
//!
//! `hsync` of hdfs-native 0.14 never returns if the second DataNode of a block is dead: the task that sends
//! packets waits for another packet, while the task that would end it waits for the sending task. So `hsync`
//! has its own time limit.

use std::io::{self, Write};

use bytes::Bytes;
use coldframe_core::{Error, Result};
use hdfs_native::file::FileWriter;
use hdfs_native::{HdfsError, WriteOptions};

use super::{Cluster, error, stat_of};
use crate::files::{Stat, Upload, as_io, temporary_key};
use crate::runtime::{wait, within};

/// Number of bytes sent at a time.
const PIECE: usize = 1 << 20;

/// How often a file is begun again because of one block: first unchanged, then with a single replica.
const UNCHANGED: usize = 1;
const SINGLE: usize = 12;

/// The fraction of the cluster's timeout that the DataNodes of a new block have to sync its first bytes.
const SYNC_SHARE: u32 = 6;

/// Block size if each block has only one replica: there are then few blocks, so few of them can be assigned
/// to the dead DataNode. The NameNode requires that much free space.
const LONG_BLOCK: u64 = 1 << 30;

/// A file under a temporary name beside its final name.
pub(super) struct HdfsUpload {
    cluster: Cluster,
    key: String,
    no_overwrite: bool,
    /// The unfinished file; `None` once it is complete.
    draft: Option<Draft>,
    /// Bytes that were accepted but not sent yet.
    held: Vec<u8>,
    /// The number of bytes that were sent.
    sent: u64,
}

/// A file being written.
struct Draft {
    name: String,
    writer: FileWriter,
    /// The final number of replicas, if the file is written with fewer.
    copies: Option<u32>,
    /// The number of bytes written.
    len: u64,
    /// The block size, once it has been requested. `Some(None)`: blocks cannot be synced, because of erasure
    /// coding.
    block: Option<Option<u64>>,
}

/// Whether a piece was sent; otherwise why the DataNodes did not take it.
type Sent = Result<(), Error>;

impl std::fmt::Debug for HdfsUpload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HdfsUpload({})", self.key)
    }
}

impl HdfsUpload {
    /// Begins a file; missing parent folders are created.
    pub(super) fn create(cluster: &Cluster, key: &str, no_overwrite: bool) -> Result<Self> {
        let draft = Draft::create(cluster, key, WriteOptions::default(), None)?;
        let (cluster, key) = (cluster.clone(), key.to_owned());
        Ok(Self { cluster, key, no_overwrite, draft: Some(draft), held: Vec::new(), sent: 0 })
    }

    /// Sends the buffer, and syncs the first bytes of each new block.
    fn send(&mut self) -> Result<()> {
        let held = Bytes::from(std::mem::take(&mut self.held));
        let len = held.len() as u64;
        let Some(draft) = self.draft.as_mut().filter(|_| len > 0) else { return Ok(()) };
        if let Err(e) = draft.write_and_sync(&self.cluster, &held)? {
            self.begin_again(&held, false, e)?;
        }
        self.sent += len;
        Ok(())
    }

    /// Sends a file that is buffered as a whole.
    fn send_whole(&mut self) -> Result<()> {
        let held = Bytes::from(std::mem::take(&mut self.held));
        let Some(draft) = self.draft.as_mut().filter(|_| !held.is_empty()) else { return Ok(()) };
        match draft.write_whole(&self.cluster, &held)? {
            Ok(()) => Ok(()),
            Err(e) => self.begin_again(&held, true, e),
        }
    }

    /// Begins the file again because a new block failed with the error `e`, and sends `piece`, which may be
    /// the whole file.
    fn begin_again(&mut self, piece: &Bytes, is_whole: bool, e: Error) -> Result<()> {
        let Some(old) = self.draft.take() else { return Err(e) };
        let Draft { name, writer, copies, .. } = old;
        // The old writer must be dropped, because it would keep the lease of the file.
        drop(writer);
        let done = self.copied_draft(&name, copies, piece, is_whole, e);
        if let Ok(client) = self.cluster.client() {
            // If the file cannot be deleted, it keeps a name that readers ignore.
            drop(self.cluster.ask(client.delete(&name, false)));
        }
        self.draft = Some(done?);
        Ok(())
    }

    /// A draft with the blocks of `old` followed by `piece`.
    fn copied_draft(
        &self,
        old: &str,
        copies: Option<u32>,
        piece: &Bytes,
        is_whole: bool,
        mut e: Error,
    ) -> Result<Draft> {
        let client = self.cluster.client()?;
        let status = self.cluster.ask(client.get_file_info(old))?;
        let copies = copies.or(status.replication);
        for attempt in 0..UNCHANGED + SINGLE {
            let options = WriteOptions::default();
            let (options, copies) = if attempt < UNCHANGED {
                (options, None)
            } else {
                (options.replication(1).block_size(LONG_BLOCK.max(status.blocksize.unwrap_or(0))), copies)
            };
            let mut draft = Draft::create(&self.cluster, &self.key, options, copies)?;
            let filled = match is_whole {
                true => draft.write_whole(&self.cluster, piece)?,
                false => draft.fill(&self.cluster, old, self.sent, piece)?,
            };
            match filled {
                Ok(()) => return Ok(draft),
                Err(other) => {
                    e = other;
                    drop(self.cluster.ask(client.delete(&draft.name, false)));
                }
            }
        }
        Err(e)
    }
}

impl Draft {
    fn create(cluster: &Cluster, key: &str, options: WriteOptions, copies: Option<u32>) -> Result<Self> {
        let name = temporary_key(key);
        let writer = cluster.ask(cluster.client()?.create(&name, options))?;
        Ok(Self { name, writer, copies, len: 0, block: None })
    }

    fn write(&mut self, cluster: &Cluster, bytes: Bytes) -> Result<Sent> {
        self.len += bytes.len() as u64;
        answer(wait(within(cluster.timeout, self.writer.write_bytes(bytes)))??.map(drop))
    }

    /// Writes `bytes`; where a block begins, waits until its DataNodes have its first bytes.
    fn write_and_sync(&mut self, cluster: &Cluster, bytes: &Bytes) -> Result<Sent> {
        let mut at = 0;
        while at < bytes.len() {
            let block = self.block(cluster)?.filter(|block| *block > 0);
            let done = block.map_or(1, |block| self.len % block);
            let left = block.map_or(u64::MAX, |block| block - done);
            let end = bytes.len().min(at.saturating_add(usize::try_from(left).unwrap_or(usize::MAX)));
            let written = match self.write(cluster, bytes.slice(at..end))? {
                Ok(()) if done == 0 => self.sync(cluster)?,
                other => other,
            };
            if written.is_err() {
                return Ok(written);
            }
            at = end;
        }
        Ok(Ok(()))
    }

    /// The block size.
    fn block(&mut self, cluster: &Cluster) -> Result<Option<u64>> {
        if self.block.is_none() {
            let client = cluster.client()?;
            self.block = Some(cluster.ask(client.get_file_info(&self.name))?.blocksize);
        }
        Ok(self.block.flatten())
    }

    /// Waits until the DataNodes have the written bytes.
    fn sync(&mut self, cluster: &Cluster) -> Result<Sent> {
        let synced = match wait(within(cluster.timeout / SYNC_SHARE, self.writer.hsync()))? {
            Ok(synced) => synced,
            Err(silent) => return Ok(Err(silent.into())),
        };
        match synced {
            Err(HdfsError::OperationFailed(why)) if why.contains("erasure") => {
                self.block = Some(None);
                Ok(Ok(()))
            }
            other => answer(other),
        }
    }

    /// Writes a complete file.
    fn write_whole(&mut self, cluster: &Cluster, bytes: &Bytes) -> Result<Sent> {
        match self.write(cluster, bytes.clone())? {
            Ok(()) => answer(wait(within(cluster.timeout, self.writer.close()))??),
            failed => Ok(failed),
        }
    }

    /// Writes the complete blocks of `old`, then the part of `piece` after them; `piece` begins at byte `at`
    /// of the file.
    fn fill(&mut self, cluster: &Cluster, old: &str, at: u64, piece: &Bytes) -> Result<Sent> {
        let reader = cluster.ask(cluster.client()?.read(old))?;
        let len = reader.file_length();
        // If its DataNodes fail, the bytes of an incomplete block are lost.
        let behind = usize::try_from(at).ok().and_then(|at| len.checked_sub(at));
        let Some(rest) = behind.filter(|n| *n <= piece.len()).map(|n| piece.slice(n..)) else {
            return Err(Error::from(io::Error::other(
                "all DataNodes of a block failed while it was written",
            )));
        };
        for start in (0..len).step_by(PIECE) {
            let bytes = cluster.ask(reader.read_range(start, PIECE.min(len - start)))?;
            let written = self.write_and_sync(cluster, &bytes)?;
            if written.is_err() {
                return Ok(written);
            }
        }
        self.write_and_sync(cluster, &rest)
    }
}

/// Separates errors that may be failures of a DataNode from all other errors.
fn answer(sent: hdfs_native::Result<()>) -> Result<Sent> {
    match sent {
        Ok(()) => Ok(Ok(())),
        Err(e @ (HdfsError::IOError(_) | HdfsError::DataTransferError(_))) => Ok(Err(error(e))),
        Err(e) => Err(error(e)),
    }
}

impl Write for HdfsUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= PIECE {
            self.send().map_err(as_io)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Upload for HdfsUpload {
    fn finish(mut self: Box<Self>) -> Result<Stat> {
        if self.sent == 0 {
            self.send_whole()?;
        } else {
            self.send()?;
        }
        let client = self.cluster.client()?;
        let Some(draft) = &mut self.draft else {
            return Err(Error::invalid("an upload that failed earlier"));
        };
        self.cluster.ask(draft.writer.close())?;
        if let Some(copies) = draft.copies {
            self.cluster.ask(client.set_replication(&draft.name, copies))?;
        }
        self.cluster.ask(client.rename(&draft.name, &self.key, !self.no_overwrite))?;
        self.draft = None;
        let status = self.cluster.ask(client.get_file_info(&self.key))?;
        Ok(Stat { path: self.key.clone(), ..stat_of(&status) })
    }
}

impl Drop for HdfsUpload {
    /// Removes an abandoned file.
    fn drop(&mut self) {
        if let Some(draft) = self.draft.take()
            && let Ok(client) = self.cluster.client()
        {
            // If the cluster does not answer, the file keeps a name that readers ignore.
            drop(self.cluster.ask(client.delete(&draft.name, false)));
        }
    }
}
