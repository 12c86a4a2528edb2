//! Files of our own writer.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use bytes::Bytes;
use coldframe_core::{Format, Value, WriteOptions};
use coldframe_hive::HiveFormat;

/// A file with the rows of `batch`.
pub(crate) fn written(batch: &RecordBatch, options: &[(&str, Value)]) -> Bytes {
    let shared = Arc::new(Mutex::new(Vec::new()));
    let options = WriteOptions { extra: options.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect() };
    let mut writer = HiveFormat.create(Box::new(Sink(shared.clone())), &batch.schema(), &options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    std::mem::take(&mut *shared.lock().unwrap()).into()
}

struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
