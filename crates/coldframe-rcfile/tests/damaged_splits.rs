//! Damage and splits: what is lost, is lost once; what is left, is read once; nothing is invented.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use coldframe_core::{OnError, OpenOptions, Scan, SchemaSpec, Split, Value, WriteOptions};
use coldframe_rcfile::{RcFile, RcFileFormat};
use coldframe_testing::fixture::{self, Fixture, source};
use coldframe_testing::rows::{self, Outcome, as_text};
use coldframe_testing::{Dice, mutate};

fn fixture(name: &str) -> Fixture {
    let all = fixture::manifest(&fixture::data().join("rcfile/files/MANIFEST.json"));
    all.into_iter().find(|f| f.name() == name).unwrap()
}

fn part(file: &RcFile, range: std::ops::Range<u64>, on_error: OnError) -> Outcome {
    let scan = Scan { on_error, ..Scan::default() };
    rows::scan(file, &scan, Some(&Split { part: 0, range, rows: None })).unwrap()
}

#[test]
fn two_splits_of_a_damaged_file_give_the_rows_of_one() {
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
fn nulls_take_the_place_of_lost_cells_and_never_of_rows_that_are_not_there() {
    let mut dice = Dice::new(12);
    for name in ["text_groups.rc", "binary_groups_zlib.rc", "binary_lz4.rc"] {
        let one = fixture(name);
        let whole = one.bytes();
        for _ in 0..300 {
            let bytes = mutate::flipped(&whole, 100 + dice.below(whole.len() - 100), 0xff);
            let file = RcFile::open(&source(bytes), &OpenOptions::default()).unwrap();
            let outcome = part(&file, 0..whole.len() as u64, OnError::Null);
            let found = outcome.batch.num_rows() as u64;
            assert!(found <= one.number("rows"), "{name}: {found} rows, {:?}", outcome.damage);
            for record in outcome.damage {
                assert!(
                    record.structure.starts_with("row group ") && !record.structure.ends_with(": "),
                    "{record:?}"
                );
            }
        }
    }
}

/// A file of one text column with these cells, read as boolean with Hive's extended literals.
fn extended_booleans(cells: &[&str], batch_rows: usize) -> Vec<String> {
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use coldframe_core::Format;
    let column: ArrayRef = std::sync::Arc::new(StringArray::from(cells.to_vec()));
    let batch = RecordBatch::try_from_iter_with_nullable([("b", column, true)]).unwrap();
    let folder = std::env::temp_dir().join(format!("coldframe-booleans-{}-{batch_rows}", std::process::id()));
    let sink = std::fs::File::create(&folder).unwrap();
    let mut options = WriteOptions::default();
    options.extra.insert("serde".into(), "text".into());
    let mut writer = RcFileFormat.create(Box::new(sink), &batch.schema(), &options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let bytes = std::fs::read(&folder).unwrap();
    std::fs::remove_file(&folder).unwrap();

    let mut open =
        OpenOptions { schema: Some(SchemaSpec::Ddl("b boolean".into())), ..OpenOptions::default() };
    open.extra.insert("serde".into(), "text".into());
    let property = ("hive.lazysimple.extended_boolean_literal", Value::from("true"));
    open.extra.insert("serde_properties".into(), Value::map([property]));
    let file = RcFile::open(&source(bytes), &open).unwrap();
    let scan = Scan { batch_rows, ..Scan::default() };
    as_text(&rows::scan(&file, &scan, None).unwrap().batch)
}

#[test]
fn extended_booleans_do_not_depend_on_where_batches_are_cut() {
    let cells = ["t", "no", "no", "no", "0", "yes", "T", "\\N", "what"];
    let all = extended_booleans(&cells, 100);
    assert_eq!(all.len(), cells.len());
    for batch_rows in 1..5 {
        assert_eq!(extended_booleans(&cells, batch_rows), all, "batches of {batch_rows}");
    }
}
