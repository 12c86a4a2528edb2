//! The laws of damage, on each kind of file of a root directory: what is lost is said, and no cell comes out that was not there;
//! a lost block, file or description never uncovers an older or a deleted value.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use coldframe_core::{Damage, DamageLog, Format, OnError, OpenOptions, Result, Scan, ScanReader, Value};
use coldframe_hbase::HBaseFormat;
use coldframe_testing::fixture;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::laws::Subject;

fn options(more: &[(&str, Value)]) -> OpenOptions {
    let fixed = [("table", Value::from("shop:orders")), ("as_of", Value::Int(1_700_000_000_000))];
    let all = fixed.iter().chain(more).map(|(name, value)| ((*name).to_owned(), value.clone()));
    OpenOptions { extra: all.collect::<BTreeMap<_, _>>(), ..OpenOptions::default() }
}

/// Up to `most` files of the directory for which `of` holds, each damaged in `damages` ways.
fn obey(options: &OpenOptions, of: impl Fn(&str) -> bool, most: usize, damages: usize) {
    each(options, of, most, |subject| subject.damages(damages).obey());
}

fn each(options: &OpenOptions, of: impl Fn(&str) -> bool, most: usize, obey: impl Fn(Subject)) {
    let folder = MemoryFolder::load(&fixture::data().join("hbase/files/orders"));
    let paths: Vec<String> = folder.files.keys().filter(|p| of(p)).cloned().collect();
    let step = paths.len().div_ceil(most).max(1);
    assert!(!paths.is_empty());
    for path in paths.into_iter().step_by(step) {
        let bytes = folder.files.get(&path).unwrap().clone();
        let (folder, options, at) = (folder.clone(), options.clone(), path.clone());
        let open = move |source: coldframe_core::Source| {
            let damaged = source.bytes()?;
            let bytes = damaged.read(0..damaged.len())?;
            HBaseFormat.open(&folder.with(&at, bytes).source(), &options)
        };
        obey(Subject::new(format!("orders/{path}"), bytes, open).one_of_many());
    }
}

fn is_store_file(path: &str) -> bool {
    path.starts_with("data/") && (path.contains("/f/") || path.contains("/g/"))
}

#[test]
fn store_files() {
    obey(&options(&[("wal", Value::Bool(false))]), is_store_file, 8, 25);
}

#[test]
fn store_files_under_what_logs_hold() {
    obey(&options(&[("view", Value::from("versions"))]), is_store_file, 4, 15);
}

#[test]
fn store_files_as_stored() {
    let raw = [("view", Value::from("raw")), ("wal", Value::Bool(false))];
    obey(&options(&raw), is_store_file, 4, 15);
}

#[test]
fn store_files_of_a_wide_table() {
    let columns = Value::map([("f:note", Value::from("string"))]);
    let wide = [("view", Value::from("pivot")), ("columns", columns), ("wal", Value::Bool(false))];
    obey(&options(&wide), is_store_file, 4, 15);
}

#[test]
fn what_is_said_of_regions() {
    obey(&options(&[("wal", Value::Bool(false))]), |path| path.ends_with(".regioninfo"), 2, 30);
}

#[test]
fn manifests() {
    let snapshot = [("snapshot", Value::from("kept"))];
    // Nothing stands over what a manifest says of families.
    let of = |path: &str| path.starts_with(".hbase-snapshot");
    each(&options(&snapshot), of, 2, |subject| subject.unsummed().damages(40).obey());
}

/// The rows of the table with one file changed, and the damage that was passed over.
fn read(at: &str, bytes: Vec<u8>, on_error: OnError) -> Result<(Vec<RecordBatch>, Vec<Damage>)> {
    let folder = MemoryFolder::load(&fixture::data().join("hbase/files/orders"));
    let table =
        HBaseFormat.open(&folder.with(at, bytes).source(), &options(&[("wal", Value::Bool(false))]))?;
    let damage = DamageLog::default();
    let mut batches = Vec::new();
    for split in table.splits(u64::MAX)? {
        let scan = Scan { on_error, ..Scan::default() };
        let mut reader = ScanReader::try_new(&*table, &scan, &split, damage.clone())?;
        while let Some(batch) = reader.next_batch()? {
            batches.push(batch);
        }
    }
    Ok((batches, damage.records()))
}

/// A store file without its trailer is whole but for that, as long as its file info is there and all its blocks are; else
/// nobody knows what it had.
#[test]
fn a_lost_trailer_costs_no_cells() {
    let folder = MemoryFolder::load(&fixture::data().join("hbase/files/orders"));
    for (path, bytes) in folder.files.iter().filter(|(path, _)| is_store_file(path)) {
        let whole = read(path, bytes.to_vec(), OnError::Raise).unwrap().0;
        let trailer = bytes.len() - 4096;
        let mut changed = bytes.to_vec();
        changed[trailer..].fill(0);
        for cut in [changed.clone(), bytes[..trailer].to_vec()] {
            assert!(read(path, cut.clone(), OnError::Raise).is_err(), "{path}");
            let (left, damage) = read(path, cut, OnError::Skip).unwrap();
            assert_eq!(left, whole, "{path}");
            assert_eq!(damage.iter().map(|d| d.rows_lost).collect::<Vec<_>>(), [Some(0)], "{path}");
        }
        // A block that cannot be read beside it: the file is lost as a whole, and with it what is older.
        let mut block = changed;
        block[40] ^= 1;
        let (left, damage) = read(path, block, OnError::Skip).unwrap();
        let rows = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        assert!(rows(&left) < rows(&whole) && damage.iter().any(|d| d.rows_lost != Some(0)), "{path}");
    }
}
