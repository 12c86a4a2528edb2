//! Files written by the formats' writers.

use std::io::Write;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use bytes::Bytes;
use coldframe_core::{Format, Result, Value, WriteOptions};

/// A sink whose contents can be read while a writer owns it.
#[derive(Clone, Debug, Default)]
pub struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    /// What was written.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes `batches` (one or more) to a file, and checks the length that the writer reports.
pub fn written(format: &dyn Format, batches: &[RecordBatch], options: &[(&str, Value)]) -> Result<Bytes> {
    let sink = Sink::default();
    let options = WriteOptions { extra: options.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect() };
    let mut writer = format.create(Box::new(sink.clone()), batches[0].schema_ref(), &options)?;
    for batch in batches {
        writer.write(batch)?;
    }
    let len = writer.finish()?;
    let bytes = sink.take();
    assert_eq!(bytes.len() as u64, len);
    Ok(bytes.into())
}
