//! Schemas and values as Arrow IPC streams.

use std::panic::catch_unwind;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use coldframe_core::{Error, Result};

use super::refused;

fn unwritten(e: ArrowError) -> Error {
    Error::schema(format!("a plan's columns as Arrow IPC: {e}"))
}

fn unread(e: ArrowError) -> Error {
    refused(format!("expected an Arrow IPC stream: {e}"))
}

pub(super) fn from_schema(schema: &Schema) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema).map_err(unwritten)?;
    writer.finish().map_err(unwritten)?;
    writer.into_inner().map_err(unwritten)
}

pub(super) fn to_schema(bytes: &[u8]) -> Result<SchemaRef> {
    let (schema, _) = decoded(bytes)?;
    Ok(schema)
}

/// Encodes named arrays of the same length.
pub(super) fn from_columns(columns: &[(String, ArrayRef)]) -> Result<Vec<u8>> {
    let Some((_, first)) = columns.first() else { return Ok(Vec::new()) };
    let field = |(name, array): &(String, ArrayRef)| Field::new(name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = columns.iter().map(|(_, array)| array.clone()).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(first.len()));
    let batch = RecordBatch::try_new_with_options(schema.clone().into(), arrays, &options);
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).map_err(unwritten)?;
    writer.write(&batch.map_err(unwritten)?).map_err(unwritten)?;
    writer.finish().map_err(unwritten)?;
    writer.into_inner().map_err(unwritten)
}

pub(super) fn to_columns(bytes: &[u8]) -> Result<Vec<(String, ArrayRef)>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let (_, batch) = decoded(bytes)?;
    let batch = batch.ok_or_else(|| refused("expected a batch of values, found a schema alone"))?;
    let names = batch.schema_ref().fields().iter().map(|field| field.name().clone());
    Ok(names.zip(batch.columns().iter().cloned()).collect())
}

/// Decodes a single row: the value of each column.
pub(super) fn to_row(bytes: &[u8]) -> Result<Vec<(String, ArrayRef)>> {
    let columns = to_columns(bytes)?;
    match columns.iter().find(|(_, array)| array.len() != 1) {
        None => Ok(columns),
        Some((name, array)) => Err(refused(format!("expected one value of `{name}`, found {}", array.len()))),
    }
}

fn decoded(bytes: &[u8]) -> Result<(SchemaRef, Option<RecordBatch>)> {
    check_buffers(bytes)?;
    // The library checks most fields of a message, but panics on some invalid fields.
    let decoded = catch_unwind(|| {
        let (mut decoder, mut buffer) = (StreamDecoder::new(), bytes.to_vec().into());
        let batch = decoder.decode(&mut buffer).map_err(unread)?;
        let schema =
            decoder.schema().ok_or_else(|| refused("expected an Arrow IPC stream, found no schema"))?;
        Ok((schema, batch))
    });
    decoded.unwrap_or_else(|_| Err(refused("expected an Arrow IPC stream, found an inconsistent one")))
}

/// Checks that the buffers of each message lie within its length.
fn check_buffers(mut left: &[u8]) -> Result<()> {
    let cut = || refused("expected an Arrow IPC message, found fewer bytes");
    while let Some((head, rest)) = left.split_at_checked(8) {
        let [c0, c1, c2, c3, l0, l1, l2, l3] = *head else { return Err(cut()) };
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        if [c0, c1, c2, c3] != [0xff; 4] {
            return Err(refused("expected the beginning of an Arrow IPC message"));
        }
        if length == 0 {
            return Ok(());
        }
        let length = usize::try_from(length).map_err(|_| cut())?;
        let (message, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        let message = arrow_ipc::root_as_message(message).map_err(|e| refused(format!("Arrow IPC: {e}")))?;
        let body = usize::try_from(message.bodyLength()).map_err(|_| cut())?;
        let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
        let batch = message.header_as_record_batch().or(dictionary);
        for buffer in batch.and_then(|batch| batch.buffers()).into_iter().flatten() {
            let end = buffer.offset().checked_add(buffer.length());
            let inside = buffer.offset() >= 0 && buffer.length() >= 0;
            if !inside || end.is_none_or(|end| usize::try_from(end).is_ok_and(|end| end > body)) {
                return Err(refused("expected a buffer inside its Arrow IPC message"));
            }
        }
        left = rest.get(body..).ok_or_else(cut)?;
    }
    Ok(())
}
