//! Tests damaged files that are split: each loss is counted once, each remaining row is read once, and no row
//! is added.

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampNanosecondType;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use coldframe_core::{OnError, OpenOptions, Scan, SchemaSpec, Split, Value};
use coldframe_rcfile::{RcFile, RcFileFormat};
use coldframe_testing::fixture::{self, Fixture, source};
use coldframe_testing::rows::{self, Outcome, as_text};
use coldframe_testing::{Dice, mutate, written};

fn fixture(name: &str) -> Fixture {
    let all = fixture::manifest(&fixture::data().join("rcfile/files/MANIFEST.json"));
    all.into_iter().find(|f| f.name() == name).unwrap()
}

fn part(file: &RcFile, range: std::ops::Range<u64>, on_error: OnError) -> Outcome {
    let scan = Scan { on_error, ..Scan::default() };
    rows::scan(file, &scan, Some(&Split { part: 0, range, rows: None })).unwrap()
}

#[test]
fn two_splits_of_a_damaged_file_give_the_rows_of_the_file() {
    let mut dice = Dice::new(11);
    for name in ["text_groups.rc", "binary_groups_zlib.rc"] {
        let whole = fixture(name).bytes();
        let len = whole.len() as u64;
        for _ in 0..150 {
            let bytes = mutate::flipped(&whole, 100 + dice.below(whole.len() - 100), 0xff);
            let file = RcFile::open(&source(bytes), &OpenOptions::default()).unwrap();
            let cut = dice.below(whole.len()) as u64;
            for on_error in [OnError::Skip, OnError::Null] {
                let all = part(&file, 0..len, on_error);
                let parts = [part(&file, 0..cut, on_error), part(&file, cut..len, on_error)];
                let text: Vec<String> = parts.iter().flat_map(|p| as_text(&p.batch)).collect();
                assert_eq!(text, as_text(&all.batch), "{name} cut at {cut}, {on_error:?}");
                let damage: usize = parts.iter().map(|p| p.damage.len()).sum();
                assert_eq!(damage, all.damage.len(), "{name} cut at {cut}, {on_error:?}");
            }
        }
    }
}

#[test]
fn nulls_replace_lost_cells_but_add_no_rows() {
    let mut dice = Dice::new(12);
    for name in ["text_groups.rc", "binary_groups_zlib.rc", "binary_lz4.rc"] {
        let case = fixture(name);
        let whole = case.bytes();
        for _ in 0..300 {
            let bytes = mutate::flipped(&whole, 100 + dice.below(whole.len() - 100), 0xff);
            let file = RcFile::open(&source(bytes), &OpenOptions::default()).unwrap();
            let outcome = part(&file, 0..whole.len() as u64, OnError::Null);
            let rows = outcome.batch.num_rows() as u64;
            assert!(rows <= case.number("rows"), "{name}: {rows} rows, {:?}", outcome.damage);
            for record in outcome.damage {
                assert!(
                    record.structure.starts_with("row group ") && !record.structure.ends_with(": "),
                    "{record:?}"
                );
            }
        }
    }
}

/// A file of one text column with these cells; `\N` is written as a null.
fn text_file(cells: &[&str]) -> Vec<u8> {
    let cells = cells.iter().map(|cell| Some(*cell).filter(|cell| *cell != "\\N"));
    let column: ArrayRef = std::sync::Arc::new(cells.collect::<StringArray>());
    let batch = RecordBatch::try_from_iter_with_nullable([("b", column, true)]).unwrap();
    written(&RcFileFormat, &[batch], &[("serde", "text".into())]).unwrap().into()
}

/// Reads these cells as a column of a type, with a property of the SerDe.
fn text_batch(cells: &[&str], hive_type: &str, property: (&str, &str), batch_rows: usize) -> RecordBatch {
    let schema = Some(SchemaSpec::Ddl(format!("b {hive_type}")));
    let mut open = OpenOptions { schema, ..OpenOptions::default() };
    open.extra.insert("serde".into(), "text".into());
    open.extra.insert("serde_properties".into(), Value::map([(property.0, Value::from(property.1))]));
    let file = RcFile::open(&source(text_file(cells)), &open).unwrap();
    let scan = Scan { batch_rows, ..Scan::default() };
    let outcome = rows::scan(&file, &scan, None).unwrap();
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    outcome.batch
}

fn extended_booleans(cells: &[&str], batch_rows: usize) -> Vec<String> {
    let property = ("hive.lazysimple.extended_boolean_literal", "true");
    as_text(&text_batch(cells, "boolean", property, batch_rows))
}

const NULL: &str = "\u{0}\u{1}";

#[test]
fn a_null_does_not_change_a_parsers_state() {
    let values = extended_booleans(&["t", "\\N", "f", "\\N"], 100);
    assert_eq!(values, ["true\u{1}", NULL, "false\u{1}", NULL]);
    // Words that are not booleans read as the value before, except nulls.
    let values = extended_booleans(&["\\N", "what", "t", "\\N", "what"], 100);
    assert_eq!(values, [NULL, NULL, "true\u{1}", NULL, "true\u{1}"]);
}

/// The null format is not a value, not even an out-of-range value.
#[test]
fn a_null_format_may_be_a_timestamp_beyond_nanoseconds() {
    let cells = ["2020-01-02 03:04:05", "9999-12-31 00:00:00"];
    for hive_type in ["timestamp", "timestamp with local time zone"] {
        let format = ("serialization.null.format", cells[1]);
        let batch = text_batch(&cells, hive_type, format, 100);
        let column = batch.column(0).as_primitive::<TimestampNanosecondType>();
        assert_eq!((column.value(0), column.is_null(1)), (1_577_934_245_000_000_000, true));
        assert_eq!(text_batch(&cells[..1], hive_type, format, 100).num_rows(), 1);
    }
}

/// Damages each byte of a marker and of the record header after it, with splits that begin at the marker and
/// near it.
#[test]
fn a_damaged_marker_belongs_to_one_split() {
    use coldframe_core::TableFile;
    for name in ["text_groups.rc", "binary_groups_zlib.rc"] {
        let whole = fixture(name).bytes();
        let len = whole.len() as u64;
        let file = RcFile::open(&source(whole.clone()), &OpenOptions::default()).unwrap();
        let mut markers = Vec::new();
        for group in file.inspect().unwrap().children {
            markers.extend(group.children.iter().filter(|n| n.name == "sync marker").map(|n| n.bytes.start));
        }
        assert!(markers.len() > 2, "{name}");
        for marker in markers {
            for damaged in 0..36 {
                // The marker's own bytes, and the bytes of the record header after it.
                let place = usize::try_from(marker).unwrap() + damaged;
                let bytes = mutate::flipped(&whole, place, 0x10);
                let file = RcFile::open(&source(bytes), &OpenOptions::default()).unwrap();
                let all = part(&file, 0..len, OnError::Skip);
                let all_rows = as_text(&all.batch);
                assert!(!all.damage.is_empty() || damaged >= 20, "{name} {marker} {damaged}");
                for cut in [marker - 300, marker - 1, marker, marker + 1, marker + 21, marker + 300] {
                    let parts = [part(&file, 0..cut, OnError::Skip), part(&file, cut..len, OnError::Skip)];
                    let text: Vec<String> = parts.iter().flat_map(|p| as_text(&p.batch)).collect();
                    assert_eq!(text, all_rows, "{name}: byte {damaged} of {marker}, cut at {cut}");
                    let records: usize = parts.iter().map(|p| p.damage.len()).sum();
                    assert_eq!(records, all.damage.len(), "{name}: byte {damaged} of {marker}, cut at {cut}");
                }
            }
        }
    }
}

/// A read with `OnError::Null` yields at least the rows that a read with `OnError::Skip` yields, whatever
/// byte is damaged.
#[test]
fn null_keeps_what_skip_keeps() {
    let mut dice = Dice::new(13);
    for name in ["text_groups.rc", "binary_groups_zlib.rc", "binary_lz4.rc"] {
        let whole = fixture(name).bytes();
        for round in 0..400 {
            let mask = [0x01, 0x80, 0xff][round % 3];
            let bytes = mutate::flipped(&whole, 100 + dice.below(whole.len() - 100), mask);
            let file = RcFile::open(&source(bytes), &OpenOptions::default()).unwrap();
            let [skipped, nulled] =
                [OnError::Skip, OnError::Null].map(|o| part(&file, 0..whole.len() as u64, o));
            let (skipped_rows, nulled_rows) = (skipped.batch.num_rows(), nulled.batch.num_rows());
            assert!(
                nulled_rows >= skipped_rows,
                "{name} {round}: {nulled_rows} rows, expected {skipped_rows}: {:?}",
                nulled.damage
            );
        }
    }
}

#[test]
fn extended_booleans_do_not_depend_on_the_batch_size() {
    let cells = ["t", "no", "no", "no", "0", "yes", "T", "\\N", "what"];
    let all = extended_booleans(&cells, 100);
    assert_eq!(all.len(), cells.len());
    for batch_rows in 1..5 {
        assert_eq!(extended_booleans(&cells, batch_rows), all, "batches of {batch_rows}");
    }
}

/// A codec without checksums spreads a changed byte over many cells, and only some of these cells contradict
/// their type.
#[test]
fn a_reported_change_of_a_compressed_column_leaves_no_wrong_row() {
    let mut dice = Dice::new(14);
    let case = fixture("binary_lz4.rc");
    let whole = case.bytes();
    let len = whole.len() as u64;
    let truth: Vec<String> = {
        let file = RcFile::open(&source(whole.clone()), &case.options()).unwrap();
        as_text(&part(&file, 0..len, OnError::Raise).batch)
    };
    let mut spread = 0;
    for _ in 0..250 {
        let bytes = mutate::flipped(&whole, 100 + dice.below(whole.len() - 100), 1 << dice.below(8));
        let file = RcFile::open(&source(bytes), &case.options()).unwrap();
        let skipped = part(&file, 0..len, OnError::Skip);
        if skipped.damage.is_empty() {
            continue;
        }
        spread += usize::from(skipped.damage.iter().any(|d| d.structure.ends_with("cell")));
        let mut rest = truth.iter();
        let rows = as_text(&skipped.batch);
        assert!(rows.iter().all(|row| rest.any(|of| of == row)), "{:?}", skipped.damage);
        let scan = Scan { on_error: OnError::Skip, batch_rows: 3, ..Scan::default() };
        let few = rows::scan(&file, &scan, None).unwrap();
        assert_eq!((as_text(&few.batch), few.damage), (rows, skipped.damage));
    }
    assert!(spread > 0);
}
