//! Damaged directories: reads give errors or fewer rows, never wrong rows and never a panic.

use std::collections::HashSet;

use coldframe_core::{ErrorKind, OnError, OpenOptions};
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::mutate::{Dice, flipped, shaken, spread};
use coldframe_testing::rows::{as_text, read};

use super::edit::changed;
use super::folder::{ending, open, table, tree};
use super::tablets::super_blocks;

/// Reads the table with `raise`, `skip` and `null`. If checksums are compared, every returned value must be
/// correct, except nulls under `null`.
fn survives(tree: &MemoryFolder, options: &OpenOptions, truth: &HashSet<String>, what: &str) {
    let Ok(table) = open(tree, options) else { return };
    for on_error in [OnError::Raise, OnError::Skip, OnError::Null] {
        let outcome = match read(table.as_ref(), on_error) {
            Err(_) if on_error == OnError::Raise => continue,
            read => read.unwrap_or_else(|e| panic!("{what} under {on_error:?}: {e}")),
        };
        let ended = outcome.error.as_ref().filter(|_| on_error != OnError::Raise);
        assert!(ended.is_none(), "{what} under {on_error:?}: {ended:?}");
        if on_error == OnError::Null || options.skip_checksums {
            continue;
        }
        for row in as_text(&outcome.batch) {
            assert!(truth.contains(&row), "{what}: {row:?} under {on_error:?}");
        }
        let lost = truth.len() - outcome.batch.num_rows();
        let reported = !outcome.damage.is_empty() || outcome.error.is_some();
        assert!(lost == 0 || reported, "{what}: {lost} rows are missing and not reported");
    }
    drop(table.inspect());
    drop(table.verify_structure());
    drop(table.metadata());
}

fn rows(tree: &MemoryFolder, options: &OpenOptions) -> HashSet<String> {
    let table = open(tree, options).unwrap();
    as_text(&read(table.as_ref(), OnError::Raise).unwrap().batch).into_iter().collect()
}

#[test]
fn a_flipped_byte_anywhere_is_reported_or_harmless() {
    for (name, of) in [("file_blocks", "numbers"), ("encrypted", "numbers"), ("log_blocks", "events")] {
        let whole = tree(name);
        let options = table(of);
        let truth = rows(&whole, &options);
        for (path, bytes) in whole.files.iter().filter(|(p, _)| !p.contains("consensus-meta")) {
            // The type description at the head of a container is skipped, but its checksum is verified.
            for at in spread(bytes.as_ref().len(), 6) {
                let mut hurt = whole.clone();
                hurt.files.insert(path.clone(), flipped(bytes, at, 0x41));
                survives(&hurt, &options, &truth, &format!("{name}/{path} byte {at}"));
            }
        }
    }
}

#[test]
fn shaken_files_without_checksums_cause_no_panic() {
    let whole = tree("file_blocks");
    let mut options = table("events");
    options.skip_checksums = true;
    let truth = rows(&whole, &options);
    let mut dice = Dice::new(5);
    for (path, bytes) in &whole.files {
        for _ in 0..3 {
            let mut hurt = whole.clone();
            hurt.files.insert(path.clone(), shaken(bytes, &mut dice));
            survives(&hurt, &options, &truth, path);
        }
    }
}

#[test]
fn cut_super_blocks_and_containers_are_reported() {
    let whole = tree("log_blocks");
    let options = table("events");
    let truth = rows(&whole, &options);
    let short = whole.files.iter().filter(|(p, _)| p.contains("tablet-meta") || p.ends_with(".metadata"));
    for (path, bytes) in short {
        for at in spread(bytes.as_ref().len(), 12) {
            let mut hurt = whole.clone();
            hurt.files.insert(path.clone(), bytes.slice(..at));
            survives(&hurt, &options, &truth, &format!("{path} cut at {at}"));
        }
    }
}

#[test]
fn a_missing_column_file_costs_its_values_or_its_rows() {
    let whole = tree("file_blocks");
    let options = table("events");
    let truth = rows(&whole, &options);
    let opened = open(&whole, &options).unwrap();
    let metadata = opened.metadata().unwrap();
    let columns = metadata.get("columns").unwrap();
    let coldframe_core::Value::List(columns) = columns else { panic!() };
    let number = |name: &str| {
        let column = columns.iter().find(|c| c.get("name") == Some(&name.into())).unwrap();
        let coldframe_core::Value::Int(id) = column.get("id").unwrap() else { panic!() };
        id.to_string()
    };
    let Some(coldframe_core::Value::List(tablets)) = metadata.get("tablets") else { panic!() };
    let Some(coldframe_core::Value::List(rowsets)) = tablets[0].get("rowsets") else { panic!() };
    let block = |name: &str| {
        let blocks = rowsets[0].get("columns").unwrap();
        let coldframe_core::Value::Int(id) = blocks.get(&number(name)).unwrap() else { panic!() };
        ending(&whole, &format!("{id:016}")).pop().unwrap()
    };
    for (name, nullable) in [("ratio", true), ("rate", false)] {
        let mut hurt = whole.clone();
        hurt.files.remove(&block(name));
        let table = open(&hurt, &options).unwrap();
        let e = read(table.as_ref(), OnError::Raise).unwrap().error.unwrap();
        assert!(matches!(e.kind(), ErrorKind::Corrupt(_)) && e.to_string().contains(name), "{e}");
        let skipped = read(table.as_ref(), OnError::Skip).unwrap();
        assert!(skipped.batch.num_rows() < truth.len());
        assert!(skipped.damage[0].structure.contains(name), "{:?}", skipped.damage);
        assert!(as_text(&skipped.batch).iter().all(|row| truth.contains(row)));
        let filled = read(table.as_ref(), OnError::Null).unwrap();
        let rows = if nullable { truth.len() } else { skipped.batch.num_rows() };
        assert_eq!(filled.batch.num_rows(), rows);
    }
}

#[test]
fn a_damaged_delta_block_costs_only_the_rows_it_may_change() {
    let whole = tree("file_blocks");
    let options = table("numbers");
    let truth = rows(&whole, &options);
    let metadata = open(&whole, &options).unwrap().metadata().unwrap();
    let Some(coldframe_core::Value::List(tablets)) = metadata.get("tablets") else { panic!() };
    let Some(coldframe_core::Value::List(rowsets)) = tablets[0].get("rowsets") else { panic!() };
    let Some(coldframe_core::Value::List(redo)) = rowsets[0].get("redo_deltas") else { panic!() };
    let coldframe_core::Value::Int(id) = redo[0] else { panic!() };
    let path = ending(&whole, &format!("{id:016}")).pop().unwrap();
    let mut hurt = whole.clone();
    hurt.files.insert(path.clone(), flipped(&whole.files[&path], 40, 1));
    let table = open(&hurt, &options).unwrap();
    let e = read(table.as_ref(), OnError::Raise).unwrap().error.unwrap();
    assert!(e.to_string().contains("REDO deltas"), "{e}");
    let skipped = read(table.as_ref(), OnError::Skip).unwrap();
    assert!(as_text(&skipped.batch).iter().all(|row| truth.contains(row)));
    assert!(skipped.batch.num_rows() < truth.len() && skipped.batch.num_rows() > 100);
    assert_eq!(skipped.damage.len(), 1);
}

#[test]
fn an_unreadable_super_block_is_reported() {
    let whole = tree("file_blocks");
    let truth = rows(&whole, &table("numbers"));
    for path in whole.files.keys().filter(|p| p.contains("tablet-meta")) {
        let mut hurt = whole.clone();
        let bytes = &whole.files[path];
        hurt.files.insert(path.clone(), flipped(bytes, bytes.as_ref().len() - 20, 1));
        let Ok(table) = open(&hurt, &table("numbers")) else { panic!("{path}") };
        assert_eq!(table.row_count(), None);
        assert!(read(table.as_ref(), OnError::Raise).is_err());
        let skipped = read(table.as_ref(), OnError::Skip).unwrap();
        assert_eq!(skipped.damage.len(), 1);
        assert!(as_text(&skipped.batch).iter().all(|row| truth.contains(row)));
    }
    // If the tablet has another replica, there is nothing to report.
    let replicas = tree("replicas");
    let mut hurt = replicas.clone();
    let path = replicas.files.keys().find(|p| p.starts_with("ts1/tablet-meta")).unwrap();
    hurt.files.insert(path.clone(), flipped(&replicas.files[path], 50, 1));
    assert_eq!(rows(&hurt, &table("numbers")), rows(&replicas, &table("numbers")));
}

/// A super block may list the same rowset many times.
#[test]
fn rowsets_that_share_their_blocks_are_not_read() {
    let mut tree = tree("file_blocks");
    let path = super_blocks(&tree, "numbers").remove(0);
    let crafted = changed(&tree.files[&path], |mut fields| {
        let rowset = fields.iter().find(|(field, ..)| *field == 6).cloned().unwrap();
        fields.extend(std::iter::repeat_n(rowset, 10_000));
        fields
    });
    tree.files.insert(path, crafted);
    let e = read(open(&tree, &table("numbers")).unwrap().as_ref(), OnError::Raise).unwrap_err();
    assert!(e.is_damage() && e.to_string().contains("found it again in rowset"), "{e}");
}
