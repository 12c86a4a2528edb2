//! The pages of a column chunk, with the checksums that the `parquet` crate does not write.
//!
//! ```text
//! page    | header | data |                                    the crate passes on header and data in turns
//! header  15 type  15 uncompressed size  15 compressed size  [15 crc]  2c .. | 4c .. | 5c ..
//!         └ field 1        └ field 2           └ field 3      field 4   └ field 5, 7 or 8, a struct
//! ```
//!
//! In Thrift's compact protocol, the high half of a field's first byte is the distance of its number from the
//! number of the previous field. The low half is its type: 5 is an i32 (zigzag, a varint), c is a struct.
//! Inserting a checksum reduces the distance of the next field by 1. See `PageHeader` in parquet.thrift: the
//! CRC-32 covers the data as stored, that is, everything after the header.
//!
//! The crate passes on the dictionary page last, but in the file it comes first.

use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_writer::{PageKey, PageStore, PageStoreArgs, PageStoreFactory};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// The first byte of an i32 field whose number is one more than the number of the previous field.
const NEXT_I32: u8 = 0x15;
/// The `PageType` of a dictionary page.
const DICTIONARY: u8 = 2;

/// The pages of a column chunk.
#[derive(Debug, Default)]
struct Pages {
    /// A header whose data has not arrived yet.
    header: Option<Bytes>,
    /// The header and the data of the dictionary page, alternating.
    dictionary: Vec<Bytes>,
    data: Vec<Bytes>,
    /// How many bytes the checksums have added to the headers.
    grown: usize,
    /// The total size of the pages.
    len: usize,
}

impl Pages {
    fn put(&mut self, blob: Bytes) -> Result<()> {
        let Some(header) = self.header.take() else {
            self.header = Some(blob);
            return Ok(());
        };
        let (kind, with_sum) = with_checksum(&header, crc32fast::hash(&blob))?;
        self.grown += with_sum.len() - header.len();
        self.len += with_sum.len() + blob.len();
        let pages = if kind == DICTIONARY { &mut self.dictionary } else { &mut self.data };
        pages.extend([with_sum.into(), blob]);
        Ok(())
    }
}

/// The type of a page, and its header with the checksum inserted.
fn with_checksum(header: &[u8], sum: u32) -> Result<(u8, Vec<u8>)> {
    let unknown = || ParquetError::General("a page header with an unknown layout".to_owned());
    let (mut at, mut kind) = (0, None);
    for _ in 0..3 {
        let field = header.get(at).filter(|field| **field == NEXT_I32);
        let first = field.and_then(|_| header.get(at + 1)).ok_or_else(unknown)?;
        // Zigzag doubles a non-negative number.
        kind.get_or_insert(*first >> 1);
        let rest = header.get(at + 1..).unwrap_or_default();
        at += 2 + rest.iter().position(|byte| byte & 0x80 == 0).ok_or_else(unknown)?;
    }
    let (front, back) = header.split_at_checked(at).ok_or_else(unknown)?;
    let next = *back.first().filter(|next| **next >= 0x20).ok_or_else(unknown)?;
    let mut made = Vec::with_capacity(header.len() + 6);
    made.extend_from_slice(front);
    made.push(NEXT_I32);
    push_zigzag(&mut made, sum);
    made.push(next - 0x10);
    made.extend_from_slice(back.get(1..).unwrap_or_default());
    Ok((kind.ok_or_else(unknown)?, made))
}

/// Appends the 32 bits of an i32 as a zigzag varint.
fn push_zigzag(out: &mut Vec<u8>, bits: u32) {
    let sign = if bits >> 31 == 1 { u32::MAX } else { 0 };
    let mut rest = (bits << 1) ^ sign;
    while rest >= 0x80 {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}

/// Collects the pages of a row group's column chunks as they arrive.
#[derive(Clone, Debug, Default)]
pub(super) struct RowGroupPages(Arc<Mutex<Vec<SharedPages>>>);

#[derive(Clone, Debug, Default)]
struct SharedPages(Arc<Mutex<Pages>>);

impl SharedPages {
    fn get(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RowGroupPages {
    /// Takes the pages of the complete row group, by column, and starts the next row group.
    pub(super) fn take(&self) -> Vec<ChunkPages> {
        let shared = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        shared.iter().map(|pages| ChunkPages(std::mem::take(&mut *pages.get()))).collect()
    }
}

impl PageStoreFactory for RowGroupPages {
    fn create(&self, args: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        let mut columns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if args.column_index() != columns.len() {
            let (expected, actual) = (columns.len(), args.column_index());
            return Err(ParquetError::General(format!("expected column {expected}, found {actual}")));
        }
        let pages = SharedPages::default();
        columns.push(pages.clone());
        Ok(Box::new(Store(pages)))
    }
}

/// The sink for a column's pages. The crate never reads the pages back.
struct Store(SharedPages);

impl PageStore for Store {
    fn put(&mut self, blob: Bytes) -> Result<PageKey> {
        self.0.get().put(blob)?;
        Ok(PageKey::new(0))
    }

    fn take(&mut self, _key: PageKey) -> Result<Bytes> {
        Err(ParquetError::General("pages with checksums cannot be read back".to_owned()))
    }

    fn memory_size(&self) -> usize {
        self.0.get().len
    }
}

/// The pages of a complete column chunk in the order of the file.
#[derive(Debug)]
pub(super) struct ChunkPages(Pages);

impl ChunkPages {
    /// The crate's description of the chunk, corrected for the inserted checksums.
    pub(super) fn described(&self, close: &mut ColumnCloseResult) -> Result<ColumnCloseResult> {
        let signed = |n: usize| i64::try_from(n).map_err(|e| ParquetError::External(Box::new(e)));
        let dictionary: usize = self.0.dictionary.iter().map(Bytes::len).sum();
        let metadata = &close.metadata;
        let expected = metadata.compressed_size() + signed(self.0.grown)?;
        if self.0.header.is_some() || signed(self.0.len)? != expected {
            let actual = self.0.len;
            return Err(ParquetError::General(format!("expected pages of {expected} bytes, found {actual}")));
        }
        let metadata = metadata
            .clone()
            .into_builder()
            .set_dictionary_page_offset((dictionary > 0).then_some(0))
            .set_data_page_offset(signed(dictionary)?)
            .set_total_compressed_size(expected)
            .set_total_uncompressed_size(metadata.uncompressed_size() + signed(self.0.grown)?)
            .build()?;
        Ok(ColumnCloseResult {
            bytes_written: self.0.len as u64,
            rows_written: close.rows_written,
            metadata,
            bloom_filter: close.bloom_filter.take(),
            column_index: None,
            // The offset index is dropped, because its offsets would not include the checksums.
            offset_index: None,
        })
    }
}

impl Length for ChunkPages {
    fn len(&self) -> u64 {
        self.0.len as u64
    }
}

impl ChunkReader for ChunkPages {
    type T = Blobs;

    /// Copying a chunk always reads from the start.
    fn get_read(&self, start: u64) -> Result<Blobs> {
        if start != 0 {
            return Err(ParquetError::General(format!("expected to copy a chunk from 0, found {start}")));
        }
        let blobs: Vec<Bytes> = self.0.dictionary.iter().chain(&self.0.data).cloned().collect();
        Ok(Blobs(blobs.into_iter()))
    }

    fn get_bytes(&self, _start: u64, _length: usize) -> Result<Bytes> {
        Err(ParquetError::General("a chunk can only be copied as a whole".to_owned()))
    }
}

/// Reads several pieces of bytes one after another.
pub(super) struct Blobs(std::vec::IntoIter<Bytes>);

impl Read for Blobs {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let mut taken = 0;
        while let Some(first) = self.0.as_mut_slice().first_mut() {
            let some = first.len().min(out.len() - taken);
            if let Some(out) = out.get_mut(taken..taken + some) {
                first.copy_to_slice(out);
            }
            taken += some;
            if !first.is_empty() {
                break;
            }
            self.0.next();
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_the_fourth_field() {
        // A data page of 300 and 200 bytes, and the start of its struct.
        let header = [0x15, 0, 0x15, 0xd8, 4, 0x15, 0x90, 3, 0x2c, 0x15, 2, 0];
        let (kind, made) = with_checksum(&header, 0x8000_0001).unwrap();
        assert_eq!(kind, 0);
        // -0x7fffffff as zigzag: 0xfffffffd.
        let expected = [&header[..8], &[0x15, 0xfd, 0xff, 0xff, 0xff, 0x0f], &[0x1c], &header[9..]].concat();
        assert_eq!(made, expected);
        assert_eq!(with_checksum(&[0x15, 4, 0x15, 2, 0x15, 2, 0x4c, 0], 0).unwrap().0, DICTIONARY);
    }

    #[test]
    fn unknown_page_headers_are_errors() {
        let header = [0x15, 0, 0x15, 0xd8, 4, 0x15, 0x90, 3, 0x2c, 0x15, 2, 0];
        for len in 0..9 {
            assert!(with_checksum(&header[..len], 7).is_err(), "{len}");
        }
        // This header already has a checksum.
        assert!(with_checksum(&[0x15, 0, 0x15, 2, 0x15, 2, 0x15, 9, 0x1c, 0], 7).is_err());
        assert!(with_checksum(&[0x15, 0, 0x18, 2, 0x15, 2, 0x2c, 0], 7).is_err());
    }

    #[test]
    fn blobs_read_as_one_stream() {
        let blobs: Vec<Bytes> = [&b""[..], b"abc", b"", b"d", b"efghij"].map(Bytes::from_static).into();
        for size in [1, 2, 3, 64] {
            let mut reader = Blobs(blobs.clone().into_iter());
            let (mut all, mut some) = (Vec::new(), vec![0; size]);
            loop {
                let taken = reader.read(&mut some).unwrap();
                if taken == 0 {
                    break;
                }
                all.extend_from_slice(&some[..taken]);
            }
            assert_eq!(all, b"abcdefghij", "{size}");
        }
    }
}
