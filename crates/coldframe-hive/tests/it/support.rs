//! Files for tests, written by our own writer.

use arrow_array::RecordBatch;
use bytes::Bytes;
use coldframe_core::Value;
use coldframe_hive::HiveFormat;

/// A file with the rows of `batch`.
pub(crate) fn written(batch: &RecordBatch, options: &[(&str, Value)]) -> Bytes {
    coldframe_testing::written(&HiveFormat, std::slice::from_ref(batch), options).unwrap()
}
