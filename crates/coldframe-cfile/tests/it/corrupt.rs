//! Accidental damage: truncation and a flipped bit at every byte, random mutants, and altered footers. Reads
//! return an error or correct rows; they never panic and never invent a value.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test shows the place"
)]

use crate::support;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use coldframe_cfile::layout::proto::{BTreeInfo, BlockPointer, CFileFooter};
use coldframe_cfile::layout::types::{Compression, Encoding, KuduType};
use coldframe_cfile::write::Options;
use coldframe_core::{OnError, TableFile, Value};
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::mutate::{flipped, shaken};
use coldframe_testing::{Dice, rows};
use prost::Message;
use support::{column, encodings, open_with, types, write};

const ORDINAL: &[(&str, Value)] = &[("ordinal", Value::Bool(true))];

/// A file of several blocks for each type and encoding.
fn files(rows: usize, checksums: bool) -> impl Iterator<Item = (String, ArrayRef, Vec<u8>)> {
    types().into_iter().enumerate().flat_map(move |(i, data_type)| {
        encodings(data_type).into_iter().map(move |encoding| {
            let nulls = i % 3;
            let nulls = if nulls == 1 { 5 } else { 0 };
            let values = column(data_type, rows, nulls, i as u64);
            let codec = match i % 3 {
                0 => Compression::None,
                1 => Compression::Lz4,
                _ => Compression::Zlib,
            };
            let options = Options {
                encoding: Some(encoding),
                codec,
                block_size: 512,
                checksums,
                data_type: Some(data_type),
                ..Options::default()
            };
            let bytes = write(&values, nulls > 0, &options);
            (format!("{data_type} {encoding} {codec}"), values, bytes)
        })
    })
}

/// Checks that every returned row has the value of its ordinal.
fn assert_rows_match(name: &str, batch: &RecordBatch, truth: &ArrayRef) {
    let ordinals = batch.column(0).as_primitive::<Int64Type>();
    let all: Vec<u32> = ordinals.values().iter().map(|o| u32::try_from(*o).unwrap()).collect();
    assert!(all.is_sorted_by(|a, b| a < b), "{name}");
    let wanted = arrow_select::take::take(truth, &arrow_array::UInt32Array::from(all), None).unwrap();
    assert_eq!(batch.column(1).to_data(), wanted.to_data(), "{name}");
}

/// Opens and reads the file in every way. If `truth` is given (with checksums), every returned row must match
/// it.
fn survives(name: &str, bytes: &[u8], truth: Option<&ArrayRef>) {
    let Ok(file) = open_with(bytes, ORDINAL) else { return };
    let raised = rows::read(&file, OnError::Raise);
    if let (Ok(outcome), Some(truth)) = (&raised, truth) {
        assert_rows_match(name, &outcome.batch, truth);
    }
    for on_error in [OnError::Skip, OnError::Null] {
        let outcome = rows::read(&file, on_error).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(outcome.error.is_none(), "{name}: {:?}", outcome.error);
        if let (Some(truth), OnError::Skip) = (truth, on_error) {
            assert_rows_match(name, &outcome.batch, truth);
            let lost: u64 = outcome.damage.iter().filter_map(|d| d.rows_lost).sum();
            assert_eq!(outcome.batch.num_rows() as u64 + lost, truth.len() as u64, "{name}");
        }
    }
    assert_tiled(&file.inspect().unwrap());
    file.verify_structure().unwrap();
    file.metadata().unwrap();
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    for (name, _, bytes) in files(60, true) {
        for cut in 0..bytes.len() {
            let Err(e) = open_with(&bytes[..cut], &[]) else { panic!("{name} cut at {cut} opens") };
            assert!(e.is_damage(), "{name} cut at {cut}: {e}");
        }
    }
}

#[test]
fn every_flip_is_detected_and_loses_one_block() {
    for (name, truth, bytes) in files(150, true) {
        for at in 0..bytes.len() {
            let hurt = flipped(&bytes, at, 1 << (at % 8));
            let name = format!("{name}, byte {at}");
            let Ok(file) = open_with(&hurt, ORDINAL) else { continue };
            let whole = rows::read(&file, OnError::Raise);
            let detected = whole.is_err_and(|e| e.is_damage()) || {
                let outcome = rows::read(&file, OnError::Raise).unwrap();
                outcome.error.is_some_and(|e| e.is_damage())
            };
            assert!(detected, "{name}");
            survives(&name, &hurt, Some(&truth));
        }
    }
}

#[test]
fn flips_without_checksums_never_panic() {
    for (name, _, bytes) in files(150, false) {
        for at in 0..bytes.len() {
            for mask in [1 << (at % 8), 0xff] {
                survives(&format!("{name}, byte {at}"), &flipped(&bytes, at, mask), None);
            }
        }
    }
}

#[test]
fn mutants_never_panic() {
    let mut dice = Dice::new(5);
    for (name, _, bytes) in files(200, false) {
        for round in 0..60 {
            survives(&format!("{name}, mutant {round}"), &shaken(&bytes, &mut dice), None);
        }
    }
}

#[test]
fn lost_blocks_are_named_by_their_ordinals() {
    let values = column(KuduType::Int64, 400, 0, 1);
    let options = Options { encoding: Some(Encoding::Plain), block_size: 800, ..Options::default() };
    let bytes = write(&values, false, &options);
    let hurt = flipped(&bytes, 16 + 812 + 100, 4);
    let file = open_with(&hurt, ORDINAL).unwrap();
    let outcome = rows::read(&file, OnError::Skip).unwrap();
    assert_eq!(outcome.batch.num_rows(), 300);
    let [damage] = &outcome.damage[..] else { panic!("{:?}", outcome.damage) };
    assert_eq!((damage.bytes.clone(), damage.rows_lost), (828..1640, Some(100)));
    assert_eq!(damage.structure, "data block of ordinals 100..200 (ordinals 100..200)");
    assert!(damage.reason.contains("CRC-32C"), "{}", damage.reason);
    assert_rows_match("skip", &outcome.batch, &values);
}

/// A file without checksums with an altered footer.
fn altered(change: impl Fn(&mut CFileFooter)) -> Vec<u8> {
    let values = column(KuduType::Int64, 400, 0, 1);
    let options = Options { block_size: 512, checksums: false, value_index: false, ..Options::default() };
    altered_file(write(&values, false, &options), change)
}

/// `bytes` with an altered footer.
fn altered_file(mut bytes: Vec<u8>, change: impl Fn(&mut CFileFooter)) -> Vec<u8> {
    let end = bytes.len() - 12;
    let len = u32::from_le_bytes(bytes[end + 8..].try_into().unwrap()) as usize;
    let mut footer = CFileFooter::decode(&bytes[end - len..end]).unwrap();
    change(&mut footer);
    bytes.truncate(end - len);
    let message = footer.encode_to_vec();
    bytes.extend_from_slice(&message);
    bytes.extend_from_slice(b"kuducfl2");
    bytes.extend(u32::try_from(message.len()).unwrap().to_le_bytes());
    bytes
}

/// Alters a footer.
type Change = fn(&mut CFileFooter);

#[test]
fn altered_footers_are_errors() {
    assert!(open_with(&altered(|_| {}), &[]).is_ok());
    let cases: [(Change, &str); 10] = [
        (|f| f.incompatible_features = Some(4), "the incompatible features 0x4"),
        (|f| f.incompatible_features = Some(2), "a CFile of arrays"),
        (|f| f.is_type_array = Some(true), "a CFile of arrays"),
        (|f| f.data_type = Some(99), "an unknown data type: number 99"),
        (|f| f.encoding = Some(0), "an unknown encoding: number 0"),
        (|f| f.compression = Some(9), "an unknown compression: number 9"),
        (|f| f.num_values = Some(-1), "expected 0 values or more, found -1"),
        (|f| f.num_values = Some(1 << 40), "expected ordinals of 32 bits"),
        (|f| f.num_values = None, "expected the field num_values, found none"),
        (|f| f.posidx_info = None, "expected an index to 400 values, found none"),
    ];
    for (change, expected) in cases {
        let e = open_with(&altered(change), &[]).unwrap_err();
        assert!(e.to_string().contains(expected), "{e}");
    }
}

#[test]
fn altered_counts_and_pointers_allocate_nothing() {
    let pointer = |offset, size| {
        let root_block = Some(BlockPointer { offset: Some(offset), size: Some(size) });
        move |f: &mut CFileFooter| f.posidx_info = Some(BTreeInfo { root_block })
    };
    for (offset, size) in [(1 << 60, 10), (0, i32::MAX), (-1, 10), (20, -1)] {
        assert!(open_with(&altered(pointer(offset, size)), &[]).is_err(), "{offset} {size}");
    }
    for (offset, size) in [(0, 16), (12, 100), (12, 0)] {
        survives("a root elsewhere", &altered(pointer(offset, size)), None);
    }
    for values in [0, 1, 399, 401, i64::from(u32::MAX)] {
        survives("another count", &altered(|f| f.num_values = Some(values)), None);
    }
    for number in 0..21 {
        survives("another type", &altered(|f| f.data_type = Some(number)), None);
        survives("another encoding", &altered(|f| f.encoding = Some(number % 7)), None);
    }
    survives("nulls", &altered(|f| f.is_type_nullable = Some(true)), None);
}

#[test]
fn rows_that_their_block_denies_do_not_become_nulls() {
    let values: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![None; 20]));
    let options = Options { checksums: false, ..Options::default() };
    let bytes = write(&values, true, &options);
    for (stated, nulls, lost) in [(1000, 20, vec![Some(0), Some(980)]), (15, 15, vec![Some(0)])] {
        let file = altered_file(bytes.clone(), |f| f.num_values = Some(stated));
        let file = open_with(&file, ORDINAL).unwrap();
        let outcome = rows::read(&file, OnError::Null).unwrap();
        assert_eq!((outcome.batch.num_rows(), outcome.batch.column(1).null_count()), (nulls, nulls));
        assert_eq!(outcome.damage.iter().map(|d| d.rows_lost).collect::<Vec<_>>(), lost);
    }
}

#[test]
fn a_file_of_kudu_1_2_is_read() {
    let values = column(KuduType::Int64, 400, 0, 1);
    let options = Options { block_size: 512, checksums: false, ..Options::default() };
    let mut bytes = write(&values, false, &options);
    let end = bytes.len() - 12;
    bytes[..8].copy_from_slice(b"kuducfil");
    let e = open_with(&bytes, &[]).unwrap_err();
    assert!(e.to_string().contains("the magic of another version"), "{e}");
    bytes[end..end + 8].copy_from_slice(b"kuducfil");
    let file = open_with(&bytes, ORDINAL).unwrap();
    assert_rows_match("v1", &rows::read(&file, OnError::Raise).unwrap().batch, &values);
}

/// The index blocks of a file by its layout, the root last.
fn index_blocks(file: &dyn TableFile) -> Vec<std::ops::Range<u64>> {
    let tree = file.inspect().unwrap();
    tree.children.iter().filter(|n| n.name == "positional index block").map(|n| n.bytes.clone()).collect()
}

#[test]
fn a_lost_index_block_loses_the_same_rows_in_splits() {
    let values: ArrayRef = std::sync::Arc::new(Int64Array::from_iter_values(0..420_000));
    let options = Options { encoding: Some(Encoding::Plain), block_size: 512, ..Options::default() };
    let bytes = write(&values, false, &options);
    let blocks = index_blocks(&open_with(&bytes, &[]).unwrap());
    assert!(blocks.len() > 3, "{blocks:?}");
    // Damages the first leaf, the second leaf, and the root.
    for (i, all) in [(0, false), (1, false), (blocks.len() - 1, true)] {
        let hurt = flipped(&bytes, usize::try_from(blocks[i].start).unwrap() + 9, 4);
        let file = open_with(&hurt, ORDINAL).unwrap();
        for on_error in [OnError::Skip, OnError::Null] {
            let whole = rows::read(&file, on_error).unwrap();
            let lost = 420_000 - whole.batch.num_rows();
            assert_eq!(lost == 420_000, all, "{lost}");
            assert!(lost > 100_000, "{lost}");
            let reported: u64 = whole.damage.iter().map(|d| d.rows_lost.unwrap()).sum();
            assert_eq!(reported, lost as u64, "{:?}", whole.damage);
            let (mut ordinals, mut reported) = (Vec::new(), 0);
            for split in file.splits(400_000).unwrap() {
                let scan = coldframe_core::Scan { on_error, ..coldframe_core::Scan::default() };
                let part = rows::scan(&file, &scan, Some(&split)).unwrap();
                assert!(part.error.is_none(), "{:?}", part.error);
                ordinals.extend(part.batch.column(0).as_primitive::<Int64Type>().values().iter().copied());
                reported += part.damage.iter().map(|d| d.rows_lost.unwrap()).sum::<u64>();
            }
            assert_eq!(ordinals, whole.batch.column(0).as_primitive::<Int64Type>().values().to_vec());
            assert_eq!(reported, lost as u64);
        }
    }
}
