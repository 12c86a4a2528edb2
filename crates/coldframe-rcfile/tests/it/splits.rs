//! Tests byte ranges: which rows belong to each, and that any division of a file gives each row once.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use coldframe_core::{OnError, OpenOptions, Scan, Split, TableFile};
use coldframe_rcfile::RcFile;
use coldframe_testing::fixture::{self, Fixture, source};
use coldframe_testing::rows::{self, as_text};
use coldframe_testing::{Dice, mutate};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

fn number(value: &Json) -> u64 {
    value.as_u64().unwrap()
}

fn read(file: &RcFile, range: std::ops::Range<u64>) -> RecordBatch {
    let split = Split { part: 0, range, rows: None };
    let outcome = rows::scan(file, &Scan::default(), Some(&split)).unwrap();
    assert!(outcome.error.is_none(), "{split:?}: {:?}", outcome.error);
    outcome.batch
}

/// Ranges that cover `len` bytes, divided at `cuts`.
fn partition(len: u64, mut cuts: Vec<u64>) -> Vec<std::ops::Range<u64>> {
    cuts.extend([0, len]);
    cuts.sort_unstable();
    cuts.windows(2).map(|w| w[0]..w[1]).collect()
}

fn assert_covered(name: &str, file: &RcFile, ranges: &[std::ops::Range<u64>], all: &[String]) {
    let parts: Vec<String> = ranges.iter().flat_map(|r| as_text(&read(file, r.clone()))).collect();
    assert!(parts == all, "{name}: {} rows, not {}, in {ranges:?}", parts.len(), all.len());
}

#[test]
fn any_division_gives_each_row_once() {
    let mut dice = Dice::new(5);
    let files = fixture::distinct(fixture::files("rcfile")).into_iter().filter(|f| f.bytes().len() < 300_000);
    for case in files {
        let file = RcFile::open(&source(case.bytes()), &OpenOptions::default()).unwrap();
        let len = case.bytes().len();
        let all = as_text(&rows::read(&file, OnError::Raise).unwrap().batch);
        for parts in [2, 3, 7, 16] {
            let splits = file.splits((len as u64).div_ceil(parts)).unwrap();
            let ranges: Vec<_> = splits.into_iter().map(|s| s.range).collect();
            assert!(ranges.len() as u64 <= parts);
            assert_covered(&case.name(), &file, &ranges, &all);
        }
        let cuts = (0..dice.below(12)).map(|_| dice.below(len + 1) as u64).collect();
        assert_covered(&case.name(), &file, &partition(len as u64, cuts), &all);
    }
}

#[test]
fn a_small_file_may_be_divided_anywhere() {
    let all = fixture::manifest(&fixture::data().join("rcfile/files/MANIFEST.json"));
    for case in all.into_iter().filter(|f| ["text_groups.rc", "text_seq6.rc"].contains(&f.name().as_str())) {
        let file = RcFile::open(&source(case.bytes()), &OpenOptions::default()).unwrap();
        let len = case.bytes().len();
        let all = as_text(&rows::read(&file, OnError::Raise).unwrap().batch);
        for at in mutate::spread(len, 1500) {
            assert_covered(&case.name(), &file, &partition(len as u64, vec![at as u64]), &all);
        }
    }
}

/// The manifest states how many rows Hive finds in some ranges.
#[test]
fn ranges_hold_the_rows_that_hive_finds_in_them() {
    let with_splits: Vec<Fixture> = fixture::manifest(&fixture::data().join("rcfile/files/MANIFEST.json"))
        .into_iter()
        .filter(|f| f.entry.get("splits").is_some())
        .collect();
    assert!(!with_splits.is_empty());
    for case in with_splits {
        let file = RcFile::open(&source(case.bytes()), &case.options()).unwrap();
        for split in case.entry["splits"].as_array().unwrap() {
            let start = number(&split["start"]);
            let range = start..start + number(&split["length"]);
            assert_eq!(
                read(&file, range).num_rows() as u64,
                number(&split["rows"]),
                "{} {split}",
                case.name()
            );
        }
    }
}

/// SHA-256 over the cells of a row: length as 4 bytes, big-endian, and bytes; ff ff ff ff for a cell of a nulled
/// column.
fn hash(batch: &RecordBatch, row: usize) -> String {
    let mut hasher = Sha256::new();
    for column in batch.columns() {
        let cells = column.as_binary::<i32>();
        if cells.is_null(row) {
            hasher.update([0xff; 4]);
            continue;
        }
        let cell = cells.value(row);
        hasher.update(u32::try_from(cell.len()).unwrap().to_be_bytes());
        hasher.update(cell);
    }
    hasher.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// Every range of a larger corpus holds the rows that Hive's `RCFileRecordReader` finds in it, from first to last.
#[test]
fn ranges_of_a_larger_corpus_hold_hives_rows() {
    let Some(folder) = fixture::larger_corpus("rcfile") else { return };
    let all = fixture::json(&folder.join("splits.json"));
    let mut checked = 0;
    for (name, entry) in all["files"].as_object().unwrap() {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        assert_eq!(bytes.len() as u64, number(&entry["size"]));
        let file = RcFile::open(&source(bytes), &OpenOptions::default()).unwrap();
        assert_eq!(file.header().end, number(&entry["header_end"]), "{name}");
        let whole = read(&file, 0..u64::MAX);
        assert_eq!(whole.num_rows() as u64, number(&entry["total_rows"]), "{name}");
        let hashes: Vec<String> = (0..whole.num_rows()).map(|row| hash(&whole, row)).collect();
        for split in entry["splits"].as_array().unwrap() {
            let start = number(&split["start"]);
            let batch = read(&file, start..start + number(&split["len"]));
            assert_eq!(batch.num_rows() as u64, number(&split["rows"]), "{name} {split}");
            checked += 1;
            if batch.num_rows() == 0 {
                continue;
            }
            let ends = [hash(&batch, 0), hash(&batch, batch.num_rows() - 1)];
            assert_eq!([&split["first_hash"], &split["last_hash"]], [&ends[0], &ends[1]], "{name} {split}");
            for (row, hash) in [("first_row", &ends[0]), ("last_row", &ends[1])] {
                let row = usize::try_from(number(&split[row])).unwrap();
                assert_eq!(&hashes[row], hash, "{name} {split}");
            }
        }
    }
    assert!(checked > 500, "{checked}");
}
