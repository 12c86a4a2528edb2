//! Writes files so that they are there whole or not at all.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatchReader;
use coldframe_core::writing::{Intake, stream_error, unfit, unsuitable};
use coldframe_core::{Error, Result, WriteOptions};
use coldframe_store::{Mode, Store, Upload};

use crate::format_named;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// The store's name of its content, where it has one.
    pub etag: Option<String>,
}

/// Where a file goes.
#[derive(Clone, Debug)]
pub struct Dest {
    store: Store,
    mode: Mode,
}

impl Dest {
    /// A path or URL, with the options of its store. `mode` says what may be there.
    pub fn new(
        dest: impl AsRef<OsStr>,
        storage_options: &BTreeMap<String, String>,
        mode: Mode,
    ) -> Result<Self> {
        Ok(Self { store: Store::new(dest.as_ref(), storage_options)?, mode })
    }

    /// A file below a store's root.
    pub fn below(store: &Store, path: &str, mode: Mode) -> Result<Self> {
        Ok(Self { store: store.below(path)?, mode })
    }
}

/// Writes all batches of `data` to `dest`, where the file appears at the end; or those up to the one with which `most_bytes` of the
/// file are written, as formats write a stripe, a row group or a block at a time. `tick` is called after each batch with the rows so
/// far, and may stop the run by an error.
pub fn write_file(
    data: &mut dyn RecordBatchReader,
    dest: &Dest,
    format: &str,
    options: &WriteOptions,
    most_bytes: Option<u64>,
    mut tick: impl FnMut(u64) -> Result<()>,
) -> Result<Written> {
    let format = format_named(format)?;
    let named = |e: Error| e.in_file(dest.store.url());
    let refused = |e: Error| named(unsuitable(e));
    let intake = Intake::new(&data.schema()).map_err(refused)?;
    let upload = Shared::new(dest.store.create("", &dest.mode)?);
    let sink = Box::new(BufWriter::with_capacity(1 << 20, upload.clone()));
    let mut writer = format.create(sink, intake.schema(), options).map_err(refused)?;
    let mut rows = 0;
    for batch in data {
        let batch = batch.map_err(stream_error)?;
        for piece in intake.pieces(&batch) {
            writer.write(&piece.map_err(refused)?).map_err(|e| named(unfit(e)))?;
        }
        rows += batch.num_rows() as u64;
        tick(rows)?;
        if most_bytes.is_some_and(|most| upload.written() >= most) {
            break;
        }
    }
    let bytes = writer.finish().map_err(|e| named(unfit(e)))?;
    let stat = upload.take()?.finish().map_err(named)?;
    Ok(Written { rows, bytes, etag: stat.etag })
}

/// An upload that a format's writer writes into, and that is finished when the writer is.
#[derive(Clone)]
struct Shared {
    upload: Arc<Mutex<Option<Box<dyn Upload>>>>,
    /// Bytes that came here.
    written: Arc<AtomicU64>,
}

impl Shared {
    fn new(upload: Box<dyn Upload>) -> Self {
        Self { upload: Arc::new(Mutex::new(Some(upload))), written: Arc::default() }
    }

    fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn take(&self) -> Result<Box<dyn Upload>> {
        let upload = self.upload.lock().unwrap_or_else(PoisonError::into_inner).take();
        upload.ok_or_else(|| Error::invalid("an upload that was finished twice"))
    }

    fn with<T>(&self, act: impl FnOnce(&mut dyn Upload) -> io::Result<T>) -> io::Result<T> {
        match self.upload.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(upload) => act(upload.as_mut()),
            None => Err(io::Error::other("writing behind the end of a file")),
        }
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.with(|upload| upload.write(bytes))?;
        self.written.fetch_add(taken as u64, Ordering::Relaxed);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(|upload| upload.flush())
    }
}
