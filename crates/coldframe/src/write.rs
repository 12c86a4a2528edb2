//! Writes files atomically: they appear as a whole or not at all.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use coldframe_core::writing::{Intake, stream_error, unfit, unsuitable};
use coldframe_core::{BatchWriter, Error, Result, WriteOptions};
use coldframe_store::{Mode, Store, Upload};

use crate::format_named;

pub(crate) mod folders;
pub(crate) mod partitions;

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The number of rows.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// The store's identifier of the file's content, if there is one.
    pub etag: Option<String>,
}

/// Where to write a file.
#[derive(Clone, Debug)]
pub struct Dest {
    store: Store,
    mode: Mode,
}

impl Dest {
    /// A path or URL, with the options of its store. `mode`: whether a file may exist there.
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

    /// The path or URL.
    pub fn url(&self) -> &str {
        self.store.url()
    }

    /// Starts the file.
    pub fn create(&self) -> Result<Box<dyn Upload>> {
        self.store.create("", &self.mode)
    }
}

/// A file being written. If it is dropped before it is finished, no file appears.
pub struct FileWriter {
    writer: Box<dyn BatchWriter>,
    intake: Intake,
    upload: Shared,
    rows: u64,
    url: String,
}

impl FileWriter {
    /// Starts a file of the format `format`, with the columns of `schema`.
    pub fn create(schema: &SchemaRef, dest: &Dest, format: &str, options: &WriteOptions) -> Result<Self> {
        Self::begin(schema, || dest.create(), dest.url(), format, options)
    }

    /// Like [`FileWriter::create`], but writes to the caller's own upload; errors call the file `url`.
    pub fn begin(
        schema: &SchemaRef,
        upload: impl FnOnce() -> Result<Box<dyn Upload>>,
        url: &str,
        format: &str,
        options: &WriteOptions,
    ) -> Result<Self> {
        let format = format_named(format)?;
        let url = url.to_owned();
        let refused = |e: Error| unsuitable(e).in_file(url.clone());
        let intake = Intake::new(schema).map_err(refused)?;
        let upload = Shared::new(upload()?);
        let sink = Box::new(BufWriter::with_capacity(1 << 20, upload.clone()));
        let writer = format.create(sink, intake.schema(), options).map_err(refused)?;
        Ok(Self { writer, intake, upload, rows: 0, url })
    }

    /// Adds rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        for piece in self.intake.pieces(batch) {
            let piece = piece.map_err(|e| unsuitable(e).in_file(self.url.clone()))?;
            self.writer.write(&piece).map_err(|e| unfit(e).in_file(self.url.clone()))?;
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// The bytes written so far; they grow by a stripe, a row group or a block at a time, depending on the
    /// format.
    pub fn bytes(&self) -> u64 {
        self.upload.written()
    }

    /// Completes the file, which appears under its name only now.
    pub fn finish(self) -> Result<Written> {
        let Self { writer, upload, rows, url, .. } = self;
        let bytes = writer.finish().map_err(|e| unfit(e).in_file(url.clone()))?;
        let stat = upload.take()?.finish().map_err(|e| e.in_file(url))?;
        Ok(Written { rows, bytes, etag: stat.etag })
    }
}

/// Writes all batches of `data` to `dest`, where the file appears at the end. `tick` is called after each batch with
/// the number of rows so far, and may stop the run by an error.
pub fn write_file(
    data: &mut dyn RecordBatchReader,
    dest: &Dest,
    format: &str,
    options: &WriteOptions,
    mut tick: impl FnMut(u64) -> Result<()>,
) -> Result<Written> {
    let mut file = FileWriter::create(&data.schema(), dest, format, options)?;
    for batch in data {
        file.write(&batch.map_err(stream_error)?)?;
        tick(file.rows)?;
    }
    file.finish()
}

/// An upload shared by a format's writer and the [`FileWriter`] that finishes it.
#[derive(Clone)]
struct Shared {
    upload: Arc<Mutex<Option<Box<dyn Upload>>>>,
    /// The number of bytes written.
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
        upload.ok_or_else(|| Error::invalid("expected an open upload, found one that was finished already"))
    }

    fn with<T>(&self, act: impl FnOnce(&mut dyn Upload) -> io::Result<T>) -> io::Result<T> {
        match self.upload.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(upload) => act(upload.as_mut()),
            None => Err(io::Error::other("writing beyond the end of a file")),
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
