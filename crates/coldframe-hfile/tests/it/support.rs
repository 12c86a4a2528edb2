//! Files for tests, made by the writer or assembled block by block.

#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, UInt8Array};
use bytes::Bytes;
use coldframe_core::{Error, OpenOptions, Source, Value};
use coldframe_hfile::{HFile, HFileFormat};
use coldframe_testing::written;

/// A cell of family `f`: row, qualifier, timestamp, type, value.
pub(crate) type Cell = (String, String, i64, u8, String);

pub(crate) fn cell(row: &str, qualifier: &str, timestamp: i64, kind: u8, value: &str) -> Cell {
    (row.to_owned(), qualifier.to_owned(), timestamp, kind, value.to_owned())
}

/// Writes a batch as a file.
pub(crate) fn try_write(batch: &RecordBatch, options: &[(&str, Value)]) -> Result<Bytes, Error> {
    written(&HFileFormat, std::slice::from_ref(batch), options)
}

/// A file with these cells, in this order.
pub(crate) fn write(cells: &[Cell], options: &[(&str, Value)]) -> Bytes {
    let text = |of: fn(&Cell) -> &String| -> ArrayRef {
        Arc::new(BinaryArray::from_iter_values(cells.iter().map(|c| of(c).as_bytes())))
    };
    let timestamps: ArrayRef = Arc::new(Int64Array::from_iter_values(cells.iter().map(|c| c.2)));
    let kinds: ArrayRef = Arc::new(UInt8Array::from_iter_values(cells.iter().map(|c| c.3)));
    let columns = [
        ("row", text(|c| &c.0)),
        ("qualifier", text(|c| &c.1)),
        ("timestamp", timestamps),
        ("type", kinds),
        ("value", text(|c| &c.4)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut all = vec![("family", Value::from("f"))];
    all.extend(options.iter().cloned());
    try_write(&batch, &all).unwrap()
}

pub(crate) fn open(bytes: impl Into<Bytes>, extra: &[(&str, Value)]) -> Result<HFile, Error> {
    let mut options = OpenOptions::default();
    options.extra.extend(extra.iter().map(|(k, v)| ((*k).to_owned(), v.clone())));
    HFile::open(&Source::file("test.hfile", Arc::new(bytes.into())), &options)
}

/// A block without checksums.
pub(crate) fn block(magic: &[u8; 8], content: &[u8]) -> Vec<u8> {
    let int = |n: usize| i32::try_from(n).unwrap().to_be_bytes();
    let covered = 33 + content.len();
    let sums = covered.div_ceil(16 << 10) * 4;
    let mut block = magic.to_vec();
    block.extend(int(content.len() + sums));
    block.extend(int(content.len()));
    block.extend((-1i64).to_be_bytes());
    block.push(0);
    block.extend(int(16 << 10));
    block.extend(int(covered));
    block.extend(content);
    block.resize(block.len() + sums, 0);
    block
}

/// A cell in plain form, without sequence id.
pub(crate) fn plain_cell(row: &str, value: &str) -> Vec<u8> {
    let mut key = u16::try_from(row.len()).unwrap().to_be_bytes().to_vec();
    key.extend(row.as_bytes());
    key.extend([1, b'f']);
    key.extend(5i64.to_be_bytes());
    key.push(4);
    let mut cell = u32::try_from(key.len()).unwrap().to_be_bytes().to_vec();
    cell.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
    cell.extend(key);
    cell.extend(value.as_bytes());
    cell
}

/// An entry of an index: of the root if `root` (where the key has a length), else of an index block below it.
pub(crate) fn entry(at: usize, size: usize, row: &str, root: bool) -> Vec<u8> {
    let mut key = u16::try_from(row.len()).unwrap().to_be_bytes().to_vec();
    key.extend(row.as_bytes());
    key.extend([0; 10]);
    let mut entry = i64::try_from(at).unwrap().to_be_bytes().to_vec();
    entry.extend(i32::try_from(size).unwrap().to_be_bytes());
    if root {
        entry.push(u8::try_from(key.len()).unwrap());
    }
    entry.extend(key);
    entry
}

/// The content of an index block below the root.
pub(crate) fn index_content(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut content = i32::try_from(entries.len()).unwrap().to_be_bytes().to_vec();
    let mut at = 0;
    content.extend(0i32.to_be_bytes());
    for entry in entries {
        at += entry.len();
        content.extend(i32::try_from(at).unwrap().to_be_bytes());
    }
    content.extend(entries.concat());
    content
}

fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n > 0x7f {
        out.push(u8::try_from(n & 0x7f | 0x80).unwrap());
        n >>= 7;
    }
    out.push(u8::try_from(n).unwrap());
}

/// Completes a file after its data blocks: appends root index, meta index, file info and a trailer of version 3.3.
pub(crate) fn complete(
    mut file: Vec<u8>,
    root: &[Vec<u8>],
    levels: u64,
    cells: u64,
    data: (usize, usize),
) -> Bytes {
    let load_on_open = file.len();
    let mut content = root.concat();
    if levels > 1 {
        content.extend([0; 16]);
    }
    file.extend(block(b"IDXROOT2", &content));
    file.extend(block(b"IDXROOT2", &[]));
    let info = file.len();
    file.extend(block(b"FILEINF2", b"PBUF\0"));
    let fields = [
        (1, info as u64),
        (2, load_on_open as u64),
        (5, root.len() as u64),
        (6, 0),
        (7, cells),
        (8, levels),
        (9, data.0 as u64),
        (10, data.1 as u64),
        (12, 2),
    ];
    let mut message = Vec::new();
    for (number, value) in fields {
        put_varint(&mut message, number << 3);
        put_varint(&mut message, value);
    }
    let mut trailer = b"TRABLK\"$".to_vec();
    put_varint(&mut trailer, message.len() as u64);
    trailer.extend(message);
    trailer.resize(4092, 0);
    trailer.extend((3u32 << 24 | 3).to_be_bytes());
    file.extend(trailer);
    file.into()
}
