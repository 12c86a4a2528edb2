//! A metadata table that Hudi wrote, compared with what Hudi read from it after each commit.

use crate::support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use coldframe_core::io::Folder;
use coldframe_core::{
    DamageLog, ErrorKind, Format, OnError, OpenOptions, Predicate, Result, Scan, ScanReader, Source,
    TableFile, Value,
};
use coldframe_hudi::HudiFormat;
use coldframe_store::LocalFolder;
use coldframe_testing::rows;
use serde_json::Value as Json;
use support::{DATA, unpack};

fn stages() -> Vec<Json> {
    let text = std::fs::read(format!("{DATA}/lab-1.1.1.json")).unwrap();
    serde_json::from_slice::<Vec<Json>>(&text).unwrap()
}

fn open(path: &Path) -> Result<Arc<dyn TableFile>> {
    let folder = Arc::new(LocalFolder::new(path));
    assert!(HudiFormat.probe_folder(folder.as_ref())?);
    let source = Source::Folder { path: path.display().to_string().into(), folder };
    HudiFormat.open(&source, &OpenOptions::default())
}

fn read(path: &Path) -> RecordBatch {
    let outcome = rows::read(open(path).unwrap().as_ref(), OnError::Raise).unwrap();
    if let Some(e) = outcome.error {
        panic!("{e}");
    }
    outcome.batch
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    batch.column_by_name(name).unwrap()
}

/// The size of each file; the minimum, maximum and count of the column `amount` in each file; and the keys of
/// records.
type State = (BTreeMap<String, i64>, BTreeMap<String, [i64; 3]>, Vec<String>);

/// The state of the metadata in the form of the expected values.
fn state(table: &Path) -> State {
    let mdt = table.join(".hoodie/metadata");
    let files = read(&mdt.join("files"));
    let (keys, maps) =
        (column(&files, "key").as_string::<i32>(), column(&files, "filesystemMetadata").as_map());
    let mut sizes = BTreeMap::new();
    for i in (0..files.num_rows()).filter(|i| keys.value(*i) != "__all_partitions__") {
        let entries = maps.value(i);
        let (names, infos) = (entries.column(0).as_string::<i32>(), entries.column(1).as_struct());
        let (size, gone) = (infos.column(0).as_primitive::<Int64Type>(), infos.column(1).as_boolean());
        for j in (0..entries.len()).filter(|j| !gone.value(*j)) {
            sizes.insert(format!("{}/{}", keys.value(i), names.value(j)), size.value(j));
        }
    }
    let stats = read(&mdt.join("column_stats"));
    let stats = column(&stats, "ColumnStatsMetadata").as_struct();
    let text = |name: &str| stats.column_by_name(name).unwrap().as_string::<i32>().clone();
    let (file, of) = (text("fileName"), text("columnName"));
    // The third non-null branch of the union holds longs.
    let long = |name: &str, i: usize| {
        let union = stats.column_by_name(name).unwrap().as_struct();
        union.column_by_name("member2").unwrap().as_struct().column(0).as_primitive::<Int64Type>().value(i)
    };
    let counts = stats.column_by_name("valueCount").unwrap().as_primitive::<Int64Type>();
    let gone = stats.column_by_name("isDeleted").unwrap().as_boolean();
    let mut amount = BTreeMap::new();
    for i in (0..stats.len()).filter(|i| of.value(*i) == "amount" && !gone.value(*i)) {
        let bounds = [long("minValue", i), long("maxValue", i), counts.value(i)];
        amount.insert(file.value(i).to_owned(), bounds);
    }
    let index = read(&mdt.join("record_index"));
    let mut keys: Vec<String> =
        column(&index, "key").as_string::<i32>().iter().map(|k| k.unwrap().into()).collect();
    keys.sort_unstable();
    (sizes, amount, keys)
}

fn assert_state(table: &Path, truth: &Json) {
    let (sizes, amount, keys) = state(table);
    let expected: BTreeMap<String, i64> = serde_json::from_value(truth["files"].clone()).unwrap();
    assert_eq!(sizes, expected);
    let expected: BTreeMap<String, [i64; 3]> = serde_json::from_value(truth["amount"].clone()).unwrap();
    assert_eq!(amount, expected);
    let expected: Vec<String> = truth["record_index"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, expected);
}

/// Turns the table's latest completed instant into a pending instant.
fn forget_last_commit(table: &Path) {
    let timeline = table.join(".hoodie/timeline");
    let names = std::fs::read_dir(&timeline).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let last = names.filter(|n| n.contains('_')).max().unwrap();
    std::fs::remove_file(timeline.join(last)).unwrap();
}

#[test]
fn the_latest_state_equals_what_hudi_reads() {
    let (_dir, table) = unpack();
    assert_state(&table, stages().last().unwrap());
}

#[test]
fn uncommitted_changes_are_invisible() {
    let (_dir, table) = unpack();
    forget_last_commit(&table);
    let stages = stages();
    assert_state(&table, &stages[stages.len() - 2]);
}

#[test]
fn all_partitions_read_as_one_table() {
    let (_dir, table) = unpack();
    let root = table.join(".hoodie/metadata");
    let all = read(&root);
    let mut rows = 0;
    for name in ["column_stats", "files", "partition_stats", "record_index"] {
        let count = read(&root.join(name)).num_rows();
        let partition = all.column_by_name("partition").unwrap().as_string::<i32>();
        assert_eq!(partition.iter().filter(|p| *p == Some(name)).count(), count, "{name}");
        rows += count;
    }
    assert_eq!(all.num_rows(), rows);
    let whole = open(&root).unwrap();
    let splits = whole.splits(1).unwrap();
    assert_eq!(splits.len(), 5, "a group each");
    let counts = splits.iter().map(|s| rows::scan(whole.as_ref(), &Scan::default(), Some(s)).unwrap());
    assert_eq!(counts.map(|o| o.batch.num_rows()).sum::<usize>(), rows);
    let Value::Map(metadata) = whole.metadata().unwrap() else { panic!() };
    assert!(metadata.iter().any(|(k, v)| k == "table_version" && *v == Value::Int(9)), "{metadata:?}");
}

#[test]
fn a_key_look_up_reads_only_its_group() {
    let (_dir, table) = unpack();
    let index = open(&table.join(".hoodie/metadata/record_index")).unwrap();
    let truth = stages();
    for key in truth.last().unwrap()["record_index"].as_object().unwrap().keys() {
        let value = Arc::new(StringArray::from(vec![key.as_str()]));
        let predicate = Some(Predicate::compare("key", coldframe_core::Op::Eq, value));
        let scan = Scan { predicate, ..Scan::default() };
        let split = &index.splits(u64::MAX).unwrap()[0];
        let mut reader = ScanReader::try_new(index.as_ref(), &scan, split, DamageLog::default()).unwrap();
        assert_eq!(reader.next_batch().unwrap().unwrap().num_rows(), 1, "{key}");
        assert!(reader.next_batch().unwrap().is_none());
        assert_eq!(reader.units(), 1, "{key}: both groups were read");
    }
}

#[test]
fn other_folders_are_not_metadata_tables() {
    let (_dir, table) = unpack();
    for other in [table.clone(), table.join("eu"), table.join(".hoodie"), table.join(".hoodie/timeline")] {
        assert!(!HudiFormat.probe_folder(&LocalFolder::new(&other)).unwrap(), "{}", other.display());
    }
}

/// The paths of a partition's files, logs or base files.
fn paths(partition: &Path, ending: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(partition).unwrap().map(|e| e.unwrap().path());
    let mut all: Vec<_> = all.filter(|p| p.file_name().unwrap().to_str().unwrap().contains(ending)).collect();
    all.sort();
    all
}

#[test]
fn a_truncated_log_is_damage_and_exposes_no_older_state() {
    let (_dir, table) = unpack();
    let files = table.join(".hoodie/metadata/files");
    let before = read(&files);
    let log = paths(&files, ".log.").pop().unwrap();
    let bytes = std::fs::read(&log).unwrap();
    for cut in (1..bytes.len()).step_by(211).chain([bytes.len() - 1]) {
        std::fs::write(&log, &bytes[..cut]).unwrap();
        let table = match open(&files) {
            Ok(table) => table,
            Err(e) => panic!("cut at {cut}: {e}"),
        };
        let raised = rows::read(table.as_ref(), OnError::Raise).unwrap();
        let e = raised.error.unwrap_or_else(|| panic!("cut at {cut}: no error"));
        assert!(matches!(e.kind(), ErrorKind::Corrupt(_)), "cut at {cut}: {e}");
        let skipped = rows::read(table.as_ref(), OnError::Skip).unwrap();
        assert!(skipped.error.is_none(), "cut at {cut}");
        // The part that was cut off may have changed any key, so both the block and the rows are recorded as
        // damage.
        assert_eq!((skipped.batch.num_rows(), skipped.damage.len()), (0, 2), "cut at {cut}");
        let lost: Vec<_> = skipped.damage.iter().map(|d| d.rows_lost).collect();
        assert_eq!(lost, [None, Some(before.num_rows() as u64)], "cut at {cut}");
    }
}

#[test]
fn no_flip_of_a_byte_panics_or_gives_invalid_rows() {
    let (_dir, table) = unpack();
    let files = table.join(".hoodie/metadata/files");
    let (log, base) = (paths(&files, ".log.").pop().unwrap(), paths(&files, ".hfile").pop().unwrap());
    for path in [log, base] {
        let bytes = std::fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(37) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(&path, &flipped).unwrap();
            let Ok(table) = open(&files) else { continue };
            for on_error in [OnError::Raise, OnError::Skip] {
                if let Ok(outcome) = rows::read(table.as_ref(), on_error) {
                    rows::assert_valid(&outcome.batch);
                }
            }
        }
        std::fs::write(&path, &bytes).unwrap();
    }
}

#[test]
fn a_single_base_file_decodes_its_values() {
    let (_dir, table) = unpack();
    let base = paths(&table.join(".hoodie/metadata/record_index"), ".hfile").pop().unwrap();
    let folder = LocalFolder::new(base.parent().unwrap());
    let bytes = folder.open(base.file_name().unwrap().to_str().unwrap()).unwrap();
    let source = Source::file(base.display().to_string(), bytes);
    let options =
        OpenOptions { extra: [("decode".to_owned(), Value::from("avro"))].into(), ..OpenOptions::default() };
    let file = HudiFormat.open(&source, &options).unwrap();
    let names: Vec<_> = file.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["key", "value", "record"]);
    let all = rows::read(file.as_ref(), OnError::Raise).unwrap();
    assert!(all.error.is_none());
    let record = all.batch.column(2).as_struct();
    let index = record.column_by_name("recordIndexMetadata").unwrap().as_struct();
    let partitions = index.column_by_name("partitionName").unwrap().as_string::<i32>();
    assert!(all.batch.num_rows() > 0);
    assert!(partitions.iter().all(|p| matches!(p, Some("eu" | "us"))));
    let columns = Some(vec!["record.recordIndexMetadata.partitionName".to_owned(), "key".to_owned()]);
    let some = rows::scan(file.as_ref(), &Scan { columns, ..Scan::default() }, None).unwrap();
    assert_eq!(some.batch.num_columns(), 2);
    assert_eq!(some.batch.num_rows(), all.batch.num_rows());
}
