//! Damages files in every way at every offset: no panic, no endless loop, no invalid Arrow array.
//!
//! The damaged files are the same in each run. With `COLDFRAME_EXHAUSTIVE` set, all of them are tried instead
//! of about as many as half a minute allows.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests"
)]

use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use coldframe_core::{ErrorKind, OnError, OpenOptions, Result, SchemaSpec, Source, TableFile, Value};
use coldframe_encoding::varint::{put_hadoop_text, put_hadoop_vlong};
use coldframe_rcfile::RcFile;
use coldframe_testing::counted::Counted;
use coldframe_testing::fixture::{self, Fixture, source};
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::rows;
use coldframe_testing::{Dice, mutate};

fn fixtures() -> Vec<Fixture> {
    let mut all = fixture::manifest(&fixture::data().join("rcfile/files/MANIFEST.json"));
    all.extend(fixture::manifest(&fixture::data().join("rcfile/damaged/MANIFEST.json")));
    all.retain(|f| f.bytes().len() <= 64 << 10);
    assert!(all.len() > 15);
    all
}

/// The number of damaged files to try, out of `all`, for a file of length `len`.
fn budget(all: usize, len: usize) -> usize {
    if std::env::var_os("COLDFRAME_EXHAUSTIVE").is_some() {
        all
    } else {
        (2_500_000 / len.max(1)).clamp(100, 1500)
    }
}

/// Reads `bytes` in every way, from a source that ends endless reads; returns the rows that a read with
/// `OnError::Skip` yields.
fn survive(bytes: &Bytes, options: &OpenOptions, what: &str) -> Option<RecordBatch> {
    let counted = Source::file("mutant", Arc::new(Counted::new(bytes.clone())));
    let file = match RcFile::open(&counted, options) {
        Ok(file) => file,
        Err(e) => {
            assert!(!e.to_string().is_empty());
            return None;
        }
    };
    let raised = rows::read(&file, OnError::Raise).unwrap();
    let skipped = rows::read(&file, OnError::Skip).unwrap();
    let nulled = rows::read(&file, OnError::Null).unwrap();
    for outcome in [&skipped, &nulled] {
        let error = outcome.error.as_ref().filter(|e| !e.is_limit());
        assert!(error.is_none(), "{what}: damage was not skipped: {error:?}");
    }
    if let Some(e) = raised.error.as_ref().filter(|e| !e.is_limit()) {
        assert!(!skipped.damage.is_empty(), "{what}: no damage reported for {e}");
    } else {
        assert!(skipped.batch.num_rows() <= raised.batch.num_rows() || !skipped.damage.is_empty(), "{what}");
    }
    assert_tiled(&file.inspect().unwrap());
    file.metadata().unwrap();
    file.verify_structure().unwrap();
    Some(skipped.batch)
}

fn truth(case: &Fixture) -> RecordBatch {
    let file = RcFile::open(&source(case.bytes()), &case.options()).unwrap();
    rows::read(&file, OnError::Skip).unwrap().batch
}

/// A truncated file gives the first rows, and the damage is reported, except if the file ends between two
/// groups.
#[test]
fn a_truncated_file_gives_its_first_rows() {
    let mut mutants = 0;
    for case in fixtures() {
        let (bytes, options, truth) = (case.bytes(), case.options(), truth(&case));
        for len in mutate::spread(bytes.len(), budget(bytes.len(), bytes.len())) {
            mutants += 1;
            let what = format!("{} cut at {len}", case.name());
            if let Some(rows) = survive(&bytes.slice(..len), &options, &what) {
                assert!(rows.num_rows() <= truth.num_rows(), "{what}");
                assert_eq!(rows, truth.slice(0, rows.num_rows()), "{what}");
            }
        }
    }
    println!("{mutants} cuts");
}

/// Length of the header and the first record header, in which each run tries all masks at all offsets.
const HEAD: usize = 80;

/// The places to change.
fn places(len: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..len.min(HEAD)).chain(mutate::spread(len, budget(len, 2 * len))).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn a_changed_byte_gives_rows_or_an_error() {
    let mut mutants = 0;
    for case in fixtures().into_iter().filter(|f| f.bytes().len() <= 16 << 10) {
        let (bytes, options) = (case.bytes(), case.options());
        let masks = [0x01, 0x80, 0xff];
        for (i, at) in places(bytes.len()).into_iter().enumerate() {
            let exhaustive = std::env::var_os("COLDFRAME_EXHAUSTIVE").is_some() || at < HEAD;
            for mask in
                masks.into_iter().enumerate().filter(|(k, _)| exhaustive || *k == i % 3).map(|(_, m)| m)
            {
                mutants += 1;
                survive(
                    &mutate::flipped(&bytes, at, mask),
                    &options,
                    &format!("{} byte {at} ^ {mask:#x}", case.name()),
                );
            }
        }
    }
    println!("{mutants} flips");
}

#[test]
fn randomly_changed_files_give_rows_or_an_error() {
    let mut mutants = 0;
    for (seed, case) in fixtures().into_iter().enumerate() {
        let (bytes, options) = (case.bytes(), case.options());
        let mut dice = Dice::new(seed as u64);
        for round in 0..budget(4000, bytes.len() * 2) {
            mutants += 1;
            let mutant = mutate::shaken(&bytes, &mut dice);
            survive(&mutant, &options, &format!("{} round {round}", case.name()));
        }
    }
    println!("{mutants} shaken files");
}

/// A header without a codec.
fn header(columns: &str) -> Vec<u8> {
    let mut file = b"RCF\x01\x00\x00\x00\x00\x01".to_vec();
    for text in [b"hive.io.rcfile.column.number", columns.as_bytes()] {
        put_hadoop_text(&mut file, text);
    }
    file.extend([7; 16]);
    file
}

/// A row group whose key consists of `numbers` as VInts.
fn group(numbers: &[i64], data: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    numbers.iter().for_each(|n| put_hadoop_vlong(&mut key, *n));
    let mut group = Vec::new();
    for len in [key.len() + data.len(), key.len(), key.len()] {
        group.extend(u32::try_from(len).unwrap().to_be_bytes());
    }
    group.extend(key);
    group.extend_from_slice(data);
    group
}

fn first_error(bytes: Vec<u8>, options: &OpenOptions) -> coldframe_core::Error {
    let open = |bytes: &[u8]| -> Result<()> {
        let file = RcFile::open(&source(bytes.to_vec()), options)?;
        let outcome = rows::read(&file, OnError::Raise)?;
        outcome.error.map_or(Ok(()), Err)
    };
    let e = open(&bytes).unwrap_err();
    survive(&bytes.into(), options, "bomb");
    e
}

fn assert_limit(e: &coldframe_core::Error, name: &str) {
    assert!(matches!(e.kind(), ErrorKind::LimitExceeded { option, .. } if *option == name), "{e}");
    assert!(e.to_string().contains(name));
}

#[test]
fn lengths_beyond_the_bytes_are_refused() {
    let raw = OpenOptions::default();
    let max = i64::from(i32::MAX);
    // 2^31 - 1 rows of no bytes: one run.
    let rows = [header("1"), group(&[max, 0, 0, 6, 0, !(max - 1)], b"")].concat();
    assert_limit(&first_error(rows, &raw), "max_unit_rows");
    // The number of rows is within the limit, but the lengths are for fewer rows.
    let e = first_error([header("1"), group(&[1 << 23, 0, 0, 1, 0], b"")].concat(), &raw);
    assert!(matches!(e.kind(), ErrorKind::Corrupt(_)), "{e}");
    // A column, and one cell, of 2^31 - 1 bytes.
    let e = first_error([header("1"), group(&[1, max, max, 5, max], b"abc")].concat(), &raw);
    assert!(matches!(e.kind(), ErrorKind::Corrupt(_)), "{e}");
    let e = first_error([header("1"), group(&[1, 3, 3, 5, max], b"abc")].concat(), &raw);
    assert!(matches!(e.kind(), ErrorKind::Corrupt(_)), "{e}");
    // Runs whose total size overflows 64 bits if unchecked.
    let e = first_error([header("1"), group(&[3, 3, 3, 10, max, !max], b"abc")].concat(), &raw);
    assert!(matches!(e.kind(), ErrorKind::Corrupt(_)), "{e}");
    assert_limit(&first_error(header("100001"), &raw), "max_columns");
    assert!(first_error([header("100000"), group(&[1], b"")].concat(), &raw).is_damage());
}

/// A compressed file with a small zlib stream that is far too long, by its stated or its real length.
#[test]
fn streams_that_decompress_to_too_much_are_refused() {
    let raw = OpenOptions::default();
    let mut file = b"RCF\x01\x01".to_vec();
    let class = "org.apache.hadoop.io.compress.DefaultCodec";
    put_hadoop_text(&mut file, class.as_bytes());
    file.extend(&header("1")[5..]);
    for key_len in [i32::MAX, 300 << 20, 1 << 20, -1] {
        let mut bomb = file.clone();
        bomb.extend(i32::MAX.to_be_bytes());
        bomb.extend(key_len.to_be_bytes());
        bomb.extend(20i32.to_be_bytes());
        bomb.extend([0x78, 0x9c, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]);
        assert!(first_error(bomb, &raw).is_damage());
    }
}

#[test]
fn limits_are_options() {
    let mut options = OpenOptions::default();
    options.limits.max_unit_rows = Some(10);
    let file = [header("1"), group(&[11, 0, 0, 2, 0, !10], b"")].concat();
    assert_limit(&first_error(file.clone(), &options), "max_unit_rows");
    let file = RcFile::open(&source(file), &OpenOptions::default()).unwrap();
    assert_eq!(rows::read(&file, OnError::Raise).unwrap().batch.num_rows(), 11);
}

/// Types nested deeper than the stack allows.
#[test]
fn deep_types_are_refused() {
    for (open, close) in [("array<", ">"), ("struct<a:", ">"), ("map<int,", ">"), ("uniontype<", ">")] {
        for depth in [129, 10_000, 100_000] {
            let ddl = format!("c {}int{}", open.repeat(depth), close.repeat(depth));
            for serde in ["text", "binary"] {
                let mut options =
                    OpenOptions { schema: Some(SchemaSpec::Ddl(ddl.clone())), ..OpenOptions::default() };
                options.extra.insert("serde".to_owned(), Value::from(serde));
                let e = RcFile::open(&source(header("1")), &options).unwrap_err();
                assert_limit(&e, "max_depth");
            }
        }
    }
}

#[test]
fn random_bytes_are_no_file() {
    let mut dice = Dice::new(9);
    let header = header("3");
    for round in 0..3000 {
        let mut bytes =
            if round % 2 == 0 { header.clone() } else { header[..dice.below(header.len())].to_vec() };
        bytes.extend(
            (0..dice.below(200)).map(|_| if round % 3 == 0 { dice.byte() & 0x83 } else { dice.byte() }),
        );
        survive(&bytes.into(), &OpenOptions::default(), &format!("round {round}"));
    }
}
