//! Several threads return the same rows, in the same order, and the same error as one thread.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use coldframe::{Ahead, Error, File, OpenOptions, Scan, Source, TableScan, open_source};

fn open(bytes: Bytes) -> File {
    open_source(Source::file("a.rc", Arc::new(bytes)), None, &OpenOptions::default(), Vec::new()).unwrap()
}

/// A test file of many compressed row groups, in which damage is detected.
fn bytes() -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/rcfile/files");
    std::fs::read(folder.join("binary_groups_zlib.rc")).unwrap()
}

const AHEAD: Ahead = Ahead { split_bytes: 1, waiting_bytes: 1 << 20 };

fn all(mut scan: TableScan) -> Result<Vec<RecordBatch>, Error> {
    let mut batches = Vec::new();
    while let Some(batch) = scan.next_batch()? {
        batches.push(batch);
    }
    Ok(batches)
}

fn in_parallel(file: &File, threads: usize) -> Result<Vec<RecordBatch>, Error> {
    all(TableScan::try_new_parallel(file.clone(), Scan { threads, ..Scan::default() }, AHEAD)?)
}

fn alone(file: &File) -> Result<Vec<RecordBatch>, Error> {
    let splits = file.table.splits(AHEAD.split_bytes)?;
    all(TableScan::try_new(file.clone(), Scan { threads: 1, ..Scan::default() }, splits)?)
}

#[test]
fn threads_give_the_same_rows_in_the_same_order() {
    let file = open(bytes().into());
    let want = alone(&file).unwrap();
    assert!(want.len() > 4);
    for threads in [2, 3, 16] {
        assert_eq!(in_parallel(&file, threads).unwrap(), want);
    }
}

#[test]
fn several_threads_return_the_same_error_as_one_thread() {
    let mut bytes = bytes();
    let middle = bytes.len() / 2;
    bytes.iter_mut().skip(middle).take(64).for_each(|b| *b = 0xff);
    let file = open(bytes.into());
    let want = alone(&file).unwrap_err();
    assert_eq!(in_parallel(&file, 4).unwrap_err().to_string(), want.to_string());
}

/// No thread starts before a row is requested, and a reader that is dropped early leaves no thread waiting.
#[test]
fn a_scan_may_be_dropped_at_any_time() {
    let file = open(bytes().into());
    for taken in [0, 1, 3] {
        let two = Scan { threads: 2, ..Scan::default() };
        let mut scan = TableScan::try_new_parallel(file.clone(), two, AHEAD).unwrap();
        for _ in 0..taken {
            assert!(scan.next_batch().unwrap().is_some());
        }
        drop(scan);
    }
}
