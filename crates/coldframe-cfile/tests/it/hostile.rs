//! Malicious files: small files that try to make reading expensive. Work and memory must stay in proportion
//! to the bytes of the file.

use bytes::Bytes;
use coldframe_cfile::CFileFormat;
use coldframe_cfile::layout::proto::{BTreeInfo, BlockPointer, CFileFooter, IndexBlockTrailer};
use coldframe_core::{Format, OnError, OpenOptions, Source, TableFile};
use coldframe_encoding::codec::{Algorithm, Compressor};
use coldframe_encoding::varint::put_uleb128;
use coldframe_testing::laws::{assert_bounded, assert_linear, opener};
use coldframe_testing::rows;
use prost::Message;
use std::sync::Arc;

/// The key, offset and size in an index entry.
type IndexEntry = (Vec<u8>, u64, u64);

fn index_block(entries: &[IndexEntry], leaf: bool) -> Vec<u8> {
    let (mut out, mut offsets) = (Vec::new(), Vec::new());
    for (key, offset, size) in entries {
        offsets.extend(u32::try_from(out.len()).unwrap().to_le_bytes());
        put_uleb128(&mut out, key.len() as u64);
        out.extend_from_slice(key);
        put_uleb128(&mut out, *offset);
        put_uleb128(&mut out, *size);
    }
    out.extend(offsets);
    let num_entries = Some(i32::try_from(entries.len()).unwrap());
    let trailer = IndexBlockTrailer { num_entries, block_type: Some(i32::from(!leaf)) }.encode_to_vec();
    out.extend_from_slice(&trailer);
    out.extend(u32::try_from(trailer.len()).unwrap().to_le_bytes());
    out
}

/// A file with these bytes after the header. `root`: the offset and size of the root of an index among them.
fn file(body: &[u8], root: (u64, u64), compression: i32, value_index: bool) -> Bytes {
    let mut out = b"kuducfl2\0\0\0\0".to_vec();
    out.extend_from_slice(body);
    let pointer = BlockPointer {
        offset: Some(i64::try_from(root.0).unwrap()),
        size: Some(i32::try_from(root.1).unwrap()),
    };
    let info = Some(BTreeInfo { root_block: Some(pointer) });
    let footer = CFileFooter {
        data_type: Some(if value_index { 12 } else { 7 }),
        encoding: Some(1),
        num_values: Some(1_000_000),
        posidx_info: info.filter(|_| !value_index),
        validx_info: info.filter(|_| value_index),
        compression: Some(compression),
        ..CFileFooter::default()
    };
    ended(out, &footer.encode_to_vec())
}

fn ended(mut out: Vec<u8>, footer: &[u8]) -> Bytes {
    out.extend_from_slice(footer);
    out.extend_from_slice(b"kuducfl2");
    out.extend(u32::try_from(footer.len()).unwrap().to_le_bytes());
    out.into()
}

/// A file without values whose footer has `count` empty pairs.
fn with_pairs(count: usize) -> Bytes {
    let footer = CFileFooter {
        data_type: Some(7),
        encoding: Some(1),
        num_values: Some(0),
        compression: Some(1),
        ..CFileFooter::default()
    };
    let pairs = b"\x3a\x00".repeat(count);
    ended(b"kuducfl2\0\0\0\0".to_vec(), &[footer.encode_to_vec(), pairs].concat())
}

fn key(ordinal: usize) -> Vec<u8> {
    u32::try_from(ordinal).unwrap().to_be_bytes().to_vec()
}

/// A chain of `blocks` index blocks, each with two pointers to the next block; the last block is an empty
/// leaf.
fn chain(blocks: usize, value_index: bool) -> Bytes {
    let (mut out, mut to) = (Vec::new(), (0, 0));
    for i in 0..blocks {
        let entries: Vec<IndexEntry> =
            if i == 0 { Vec::new() } else { (0..2).map(|n| (key(n), to.0, to.1)).collect() };
        let block = index_block(&entries, i == 0);
        to = (12 + out.len() as u64, block.len() as u64);
        out.extend(block);
    }
    file(&out, to, 1, value_index)
}

/// A root with `inner` entries that all point to one leaf of `entries`.
fn fan(inner: usize, entries: usize) -> Bytes {
    let leaf = index_block(&(0..entries).map(|i| (key(i), 12, 1)).collect::<Vec<_>>(), true);
    let to = (12, leaf.len() as u64);
    let root = index_block(&(0..inner).map(|i| (key(i), to.0, to.1)).collect::<Vec<_>>(), false);
    let at = (12 + to.1, root.len() as u64);
    file(&[leaf, root].concat(), at, 1, false)
}

/// A leaf with `entries` entries that all point to one block of `size` bytes, which claims to have as many
/// values from ordinal 0 on.
fn sharing(entries: usize, size: usize) -> Bytes {
    let values = u32::try_from((size - 8) / 4).unwrap();
    let mut block = [values, 0].map(u32::to_le_bytes).concat();
    block.resize(size, 0);
    let to = (12, block.len() as u64);
    let leaf = index_block(
        &(0..entries).map(|i| (key(i * values as usize % (1 << 31)), to.0, to.1)).collect::<Vec<_>>(),
        true,
    );
    let at = (12 + to.1, leaf.len() as u64);
    file(&[block, leaf].concat(), at, 1, false)
}

/// A leaf with `entries` entries that point to as many tiny invalid blocks.
fn crumbs(entries: usize) -> Bytes {
    let size = 8;
    let places: Vec<IndexEntry> =
        (0..entries).map(|i| (key(i), 12 + (i * size) as u64, size as u64)).collect();
    let body = vec![0xff; entries * size];
    let leaf = index_block(&places, true);
    let at = (12 + body.len() as u64, leaf.len() as u64);
    file(&[body, leaf].concat(), at, 1, false)
}

/// An index block whose entry and trailer are separated by zeros, which compress well: few bytes state many
/// entries.
fn packed(entries: usize) -> Bytes {
    let mut block = vec![0u8; 8 + 4 * entries];
    let num_entries = Some(i32::try_from(entries).unwrap());
    let trailer = IndexBlockTrailer { num_entries, block_type: Some(0) }.encode_to_vec();
    block.extend_from_slice(&trailer);
    block.extend(u32::try_from(trailer.len()).unwrap().to_le_bytes());
    let mut stored = u32::try_from(block.len()).unwrap().to_le_bytes().to_vec();
    Compressor::new().compress(Algorithm::Zlib, None, &block, &mut stored).unwrap();
    let len = stored.len() as u64;
    file(&stored, (12, len), 4, false)
}

fn open(source: Source) -> coldframe_core::Result<Arc<dyn TableFile>> {
    CFileFormat.open(&source, &OpenOptions::default())
}

fn a_block_with_two_pointers_is_followed_once() {
    for value_index in [false, true] {
        let bytes = chain(60, value_index);
        let open = opener(open);
        assert_bounded("a chain", &bytes, &open);
        let table = open(Source::file("memory", Arc::new(bytes))).unwrap();
        let outcome = rows::read(table.as_ref(), OnError::Raise);
        let e = outcome.map_or_else(Some, |outcome| outcome.error).unwrap();
        assert!(e.is_damage() && e.to_string().contains("index block"), "{e}");
        let outcome = rows::read(table.as_ref(), OnError::Skip).unwrap();
        assert!(outcome.error.is_none() && !outcome.damage.is_empty(), "{:?}", outcome.error);
        coldframe_core::scan::verify(table.as_ref(), |_| Ok(())).unwrap();
    }
    let files: Vec<Bytes> = [15, 30, 60].map(|n| chain(n, false)).into();
    assert_linear("chains", &files, &opener(open));
}

/// A footer of pairs with neither key nor value: a pair takes two bytes in the file, but a struct of fifty
/// bytes in memory.
fn many_empty_pairs() {
    let bytes = with_pairs(10 << 20);
    let e = open(Source::file("memory", Arc::new(bytes.clone()))).unwrap_err();
    assert!(e.to_string().contains("max_metadata_bytes"), "{e}");
    assert_bounded("empty pairs", &bytes, &opener(open));
    open(Source::file("memory", Arc::new(with_pairs(1000)))).unwrap();
}

fn many_pointers_to_one_leaf() {
    let open = opener(open);
    assert_bounded("a fan", &fan(10_000, 60_000), &open);
    let files: Vec<Bytes> = [5_000, 10_000, 20_000].map(|n| fan(n, 2 * n)).into();
    assert_linear("fans", &files, &open);
}

fn many_pointers_to_one_data_block() {
    let open = opener(open);
    assert_bounded("a shared block", &sharing(20_000, 1 << 20), &open);
    let files: Vec<Bytes> = [5_000, 10_000, 20_000].map(|n| sharing(n, n * 50)).into();
    assert_linear("shared blocks", &files, &open);
}

fn many_invalid_blocks() {
    let open = opener(open);
    let files: Vec<Bytes> = [25_000, 50_000, 100_000].map(crumbs).into();
    assert_bounded("crumbs", &crumbs(100_000), &open);
    assert_linear("crumbs", &files, &open);
}

fn counts_that_compress_well() {
    let open = opener(open);
    for entries in [100_000, 5_000_000, 60_000_000] {
        assert_bounded("a packed leaf", &packed(entries), &open);
    }
}

/// The steps run in sequence, because memory in use is counted for the whole process.
#[test]
fn work_and_memory_are_proportional_to_the_bytes() {
    a_block_with_two_pointers_is_followed_once();
    many_empty_pairs();
    many_pointers_to_one_leaf();
    many_pointers_to_one_data_block();
    many_invalid_blocks();
    counts_that_compress_well();
}
