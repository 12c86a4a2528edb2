//! Several threads give the rows of one, in order, and the error of one.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use coldframe::{Error, File, OpenOptions, Scan, Source, Split, TableScan, open_source};

fn open(bytes: Bytes) -> File {
    open_source(Source::file("a.rc", Arc::new(bytes)), None, &OpenOptions::default(), Vec::new()).unwrap()
}

/// A fixture of many row groups, compressed: what is damaged in it does not go unseen.
fn bytes() -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/rcfile/files");
    std::fs::read(folder.join("binary_groups_zlib.rc")).unwrap()
}

fn batches(file: &File, splits: Vec<Split>, threads: usize) -> Result<Vec<RecordBatch>, Error> {
    let scan = Scan { threads, ..Scan::default() };
    let mut scan = TableScan::try_new_parallel(file.clone(), scan, splits)?;
    let mut found = Vec::new();
    while let Some(batch) = scan.next_batch()? {
        found.push(batch);
    }
    Ok(found)
}

#[test]
fn threads_give_the_same_rows_in_the_same_order() {
    let file = open(bytes().into());
    let splits = file.table.splits(1).unwrap();
    let alone = batches(&file, splits.clone(), 1).unwrap();
    assert!(!alone.is_empty());
    for threads in [2, 3, 16] {
        assert_eq!(batches(&file, splits.clone(), threads).unwrap(), alone);
    }
    assert!(batches(&file, Vec::new(), 4).unwrap().is_empty());
}

#[test]
fn damage_is_the_error_that_one_thread_finds() {
    let mut bytes = bytes();
    let middle = bytes.len() / 2;
    bytes.iter_mut().skip(middle).take(64).for_each(|b| *b = 0xff);
    let file = open(bytes.into());
    let splits = file.table.splits(1).unwrap();
    let alone = batches(&file, splits.clone(), 1).unwrap_err();
    assert_eq!(batches(&file, splits, 4).unwrap_err().to_string(), alone.to_string());
}

/// A reader that is dropped early leaves no thread waiting for it.
#[test]
fn a_scan_may_be_dropped_early() {
    let file = open(bytes().into());
    let splits = file.table.splits(1).unwrap();
    let two = Scan { threads: 2, ..Scan::default() };
    let mut scan = TableScan::try_new_parallel(file.clone(), two, splits).unwrap();
    assert!(scan.next_batch().unwrap().is_some());
    drop(scan);
}
