//! Writes an object: a small object in one request, a large object in parts.
//!
//! An object appears when the last request ends, so readers never see a partial object. The last request has
//! the condition on what may exist; for a small object, that is the only request, a put. A large object that
//! must not replace another is uploaded under a temporary name, and then copied with the condition.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use coldframe_core::{Error, Result};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion, WriteMultipart,
};

use super::{error, path_of, put_error};
use crate::files::{Mode, Stat, Upload, as_io, temporary_key};
use crate::runtime::wait;

/// The maximum size of a small object, and the size of parts. S3 allows 10,000 parts, which is 156 GiB.
const PART: usize = 16 << 20;

/// Maximum number of parts in flight at a time.
const AT_ONCE: usize = 4;

/// An object being written.
pub(super) struct ObjectUpload {
    store: Arc<dyn ObjectStore>,
    path: Path,
    mode: Mode,
    held: Vec<u8>,
    written: u64,
    parts: Option<LargeUpload>,
}

/// A large object, and its temporary or final name.
struct LargeUpload {
    upload: WriteMultipart,
    name: Path,
}

impl fmt::Debug for ObjectUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectUpload({})", self.path)
    }
}

impl ObjectUpload {
    pub(super) fn new(store: Arc<dyn ObjectStore>, path: Path, mode: Mode) -> Self {
        Self { store, path, mode, held: Vec::new(), written: 0, parts: None }
    }

    /// Sends the buffer as a part.
    fn send(&mut self) -> Result<()> {
        if self.parts.is_none() {
            if let Mode::Matching(_) = self.mode {
                return Err(Error::unsupported("replacing one version of an object with more than 16 MiB"));
            }
            let name = if self.mode == Mode::New {
                path_of(&temporary_key(self.path.as_ref()))?
            } else {
                self.path.clone()
            };
            let upload: Box<dyn MultipartUpload> = wait(self.store.put_multipart(&name))?.map_err(error)?;
            self.parts =
                Some(LargeUpload { upload: WriteMultipart::new_with_chunk_size(upload, PART), name });
        }
        if let Some(parts) = &mut self.parts {
            let held = std::mem::take(&mut self.held);
            wait(async {
                parts.upload.wait_for_capacity(AT_ONCE).await?;
                parts.upload.put(held.into());
                Ok(())
            })?
            .map_err(error)?;
        }
        Ok(())
    }

    async fn put(&mut self) -> object_store::Result<Option<String>> {
        let mode = match &self.mode {
            Mode::New => PutMode::Create,
            Mode::Over => PutMode::Overwrite,
            Mode::Matching(etag) => {
                PutMode::Update(UpdateVersion { e_tag: Some(etag.clone()), version: None })
            }
        };
        let payload = PutPayload::from(std::mem::take(&mut self.held));
        self.store
            .put_opts(&self.path, payload, PutOptions { mode, ..PutOptions::default() })
            .await
            .map(|put| put.e_tag)
    }

    async fn finish_parts(&mut self, mut parts: LargeUpload) -> object_store::Result<Option<String>> {
        if !self.held.is_empty() {
            parts.upload.put(std::mem::take(&mut self.held).into());
        }
        let put = parts.upload.finish().await?;
        if parts.name == self.path {
            return Ok(put.e_tag);
        }
        let copied = self
            .store
            .copy_opts(&parts.name, &self.path, CopyOptions::new().with_mode(CopyMode::Create))
            .await;
        let deleted = self.store.delete(&parts.name).await;
        copied.and(deleted)?;
        Ok(self.store.head(&self.path).await?.e_tag)
    }
}

impl Write for ObjectUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = PART - self.held.len();
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.held.extend_from_slice(taken);
        self.written += taken.len() as u64;
        if self.held.len() == PART {
            self.send().map_err(as_io)?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Upload for ObjectUpload {
    fn finish(mut self: Box<Self>) -> Result<Stat> {
        let parts = self.parts.take();
        let sent = wait(async {
            match parts {
                None => self.put().await,
                Some(parts) => self.finish_parts(parts).await,
            }
        })?;
        let etag = sent.map_err(|e| put_error(e, &self.mode))?;
        Ok(Stat { path: self.path.to_string(), len: self.written, etag, ..Stat::default() })
    }
}

impl Drop for ObjectUpload {
    /// Removes the parts of an abandoned object.
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            // If the store does not answer, the parts stay until its lifecycle rules remove them.
            drop(wait(parts.upload.abort()));
        }
    }
}
