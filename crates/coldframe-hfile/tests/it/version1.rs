//! The bloom filter of a version 1 file, assembled here byte by byte: HBase wrote such files before 0.92.

use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{OpenOptions, Source};
use coldframe_encoding::hash::murmur2_32;
use coldframe_encoding::varint::put_hadoop_text;
use coldframe_hfile::HFile;

const BITS: usize = 512;
const HASHES: i32 = 5;

/// Sets the bits of a key one by one, as `ByteBloomFilter.add` does.
fn add(bits: &mut [u8; BITS / 8], key: &[u8]) {
    let first = murmur2_32(key, 0);
    let second = murmur2_32(key, first);
    for i in 0..u32::try_from(HASHES).unwrap() {
        let hash = first.wrapping_add(i.wrapping_mul(second)).cast_signed();
        let bit = (i64::from(hash) % i64::try_from(BITS).unwrap()).unsigned_abs();
        let bit = usize::try_from(bit).unwrap();
        *bits.get_mut(bit / 8).unwrap() |= 1 << (bit % 8);
    }
}

fn cell_key(row: &[u8], qualifier: &[u8]) -> Vec<u8> {
    let len = u16::try_from(row.len()).unwrap().to_be_bytes();
    [&len, row, b"\x01f", qualifier, &5_i64.to_be_bytes(), &[4]].concat()
}

/// A file of these cells, with a filter of rows or columns; `damage` may change the filter's meta block.
fn file(kind: &str, cells: &[(&[u8], &[u8])], rowcol: bool, damage: impl Fn(&mut Vec<u8>)) -> Bytes {
    let mut bits = [0; BITS / 8];
    let mut out = b"DATABLK*".to_vec();
    for (row, qualifier) in cells {
        add(&mut bits, &if rowcol { [*row, *qualifier].concat() } else { row.to_vec() });
        let key = cell_key(row, qualifier);
        out.extend(u32::try_from(key.len()).unwrap().to_be_bytes());
        out.extend(1_u32.to_be_bytes());
        out.extend(key);
        out.push(b'v');
    }
    let data_len = out.len();
    let mut meta_index = b"IDXBLK)+".to_vec();
    let mut meta = [1, i32::try_from(BITS / 8).unwrap(), HASHES, 1, i32::try_from(cells.len()).unwrap()]
        .map(i32::to_be_bytes)
        .as_flattened()
        .to_vec();
    damage(&mut meta);
    for (name, content) in [("BLOOM_FILTER_DATA", bits.as_slice()), ("BLOOM_FILTER_META", &meta)] {
        meta_index.extend(u64::try_from(out.len()).unwrap().to_be_bytes());
        meta_index.extend(u32::try_from(8 + content.len()).unwrap().to_be_bytes());
        put_hadoop_text(&mut meta_index, name.as_bytes());
        out.extend(b"METABLKc");
        out.extend(content);
    }
    let info_at = u64::try_from(out.len()).unwrap();
    out.extend(1_u32.to_be_bytes());
    put_hadoop_text(&mut out, b"BLOOM_FILTER_TYPE");
    out.push(1);
    put_hadoop_text(&mut out, kind.as_bytes());
    let index_at = u64::try_from(out.len()).unwrap();
    out.extend(b"IDXBLK)+");
    out.extend(0_u64.to_be_bytes());
    out.extend(u32::try_from(data_len).unwrap().to_be_bytes());
    let (row, qualifier) = cells.first().unwrap();
    put_hadoop_text(&mut out, &cell_key(row, qualifier));
    let meta_at = u64::try_from(out.len()).unwrap();
    out.extend(meta_index);
    out.extend(b"TRABLK\"$");
    out.extend(info_at.to_be_bytes());
    out.extend(index_at.to_be_bytes());
    out.extend(1_u32.to_be_bytes());
    out.extend(meta_at.to_be_bytes());
    out.extend(2_u32.to_be_bytes());
    out.extend(u64::try_from(data_len).unwrap().to_be_bytes());
    out.extend(u32::try_from(cells.len()).unwrap().to_be_bytes());
    out.extend(2_u32.to_be_bytes());
    out.extend(1_u32.to_be_bytes());
    out.into()
}

fn open(bytes: Bytes) -> HFile {
    HFile::open(&Source::file("v1.hfile", Arc::new(bytes)), &OpenOptions::default()).unwrap()
}

const CELLS: [(&[u8], &[u8]); 3] = [(b"apple", b"q"), (b"cherry", b"a"), (b"cherry", b"b")];

#[test]
fn a_row_bloom_filter_rules_out_absent_rows() {
    let file = open(file("ROW", &CELLS, false, |_| {}));
    for (row, _) in CELLS {
        assert!(file.might_contain(row, None).unwrap());
        assert_eq!(file.get(row).unwrap()[0].num_rows(), if row == b"apple" { 1 } else { 2 });
    }
    let others: Vec<Vec<u8>> = (0..200).map(|i| format!("no-{i}").into_bytes()).collect();
    let ruled_out = others.iter().filter(|row| !file.might_contain(row, None).unwrap()).count();
    assert!(ruled_out > 190, "{ruled_out} of 200");
    assert!(others.iter().all(|row| file.get(row).unwrap()[0].num_rows() == 0));
}

#[test]
fn a_column_bloom_filter_rules_out_no_row() {
    let file = open(file("ROWCOL", &CELLS, true, |_| {}));
    for (row, qualifier) in CELLS {
        assert!(file.might_contain(row, Some(qualifier)).unwrap());
        assert!(file.might_contain(row, None).unwrap());
    }
    assert!(file.might_contain(b"nothing", None).unwrap());
    let ruled_out =
        (0..200).filter(|i| !file.might_contain(b"apple", Some(format!("{i}").as_bytes())).unwrap());
    assert!(ruled_out.count() > 190);
}

#[test]
fn a_contradictory_filter_is_damage() {
    let shorter = open(file("ROW", &CELLS, false, |meta| *meta.get_mut(7).unwrap() = 63));
    let e = shorter.might_contain(b"apple", None).unwrap_err();
    assert!(e.is_damage() && e.to_string().contains("expected 63 bytes of bits"), "{e}");
    let cut = open(file("ROW", &CELLS, false, |meta| meta.truncate(10)));
    assert!(cut.might_contain(b"apple", None).unwrap_err().is_damage());
    let newer = open(file("ROW", &CELLS, false, |meta| *meta.get_mut(3).unwrap() = 2));
    assert!(!newer.might_contain(b"apple", None).unwrap_err().is_damage());
}
