//! The laws of damage, for each kind of file of a data directory: losses are reported, and no row is returned
//! that the table did not have. If a block or delta is lost, no older or deleted value may be returned
//! instead.

use std::collections::BTreeMap;

use coldframe_core::{Format, OnError, OpenOptions, Value};
use coldframe_kudu::KuduFormat;
use coldframe_testing::fixture;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::laws::{AllowedLoss, Subject, assert_tolerant};
use coldframe_testing::rows;

fn options(table: &str, snapshot: Option<i64>) -> OpenOptions {
    let mut extra: BTreeMap<String, Value> = [("table".to_owned(), Value::Str(table.to_owned()))].into();
    extra.extend(snapshot.map(|s| ("snapshot".to_owned(), Value::Int(s))));
    OpenOptions { extra, ..OpenOptions::default() }
}

/// Checks the laws: damages up to `max_files` files of a directory for which `of` returns true, each in
/// `damages` ways.
fn obey(name: &str, options: &OpenOptions, of: impl Fn(&str) -> bool, max_files: usize, damages: usize) {
    let folder = MemoryFolder::load(&fixture::data().join("kudu/files").join(name));
    let paths: Vec<String> = folder.files.keys().filter(|p| of(p)).cloned().collect();
    let step = paths.len().div_ceil(max_files).max(1);
    assert!(!paths.is_empty());
    for path in paths.into_iter().step_by(step) {
        let bytes = folder.files.get(&path).unwrap().clone();
        let (folder, options, at) = (folder.clone(), options.clone(), path.clone());
        let open = move |source: coldframe_core::Source| {
            let damaged = source.bytes()?;
            let bytes = damaged.read(0..damaged.len())?;
            KuduFormat.open(&folder.with(&at, bytes).source(), &options)
        };
        Subject::new(format!("{name}/{path}"), bytes, open).part_of_table().damages(damages).obey();
    }
}

fn is_block(path: &str) -> bool {
    path.contains("/data/") && !path.ends_with("instance")
}

#[test]
fn the_laws_hold_for_blocks_in_files_of_their_own() {
    obey("file_blocks", &options("numbers", None), is_block, 40, 12);
}

#[test]
fn the_laws_hold_for_blocks_at_an_older_snapshot() {
    obey("file_blocks", &options("numbers", Some(7_353_429_188_416_778_241)), is_block, 40, 12);
}

#[test]
fn the_laws_hold_for_containers() {
    let container = |path: &str| path.ends_with(".data") || path.ends_with(".metadata");
    obey("encrypted", &options("numbers", None), container, 8, 30);
}

/// The segments of a server that was killed.
fn log(table: &str) -> Vec<Subject> {
    let folder = MemoryFolder::load(&fixture::data().join("kudu_wal/files/lz4"));
    let opened = KuduFormat.open(&folder.source(), &options(table, None)).unwrap();
    let metadata = opened.metadata().unwrap();
    let Some(Value::List(tablets)) = metadata.get("tablets") else { panic!("{metadata:?}") };
    let mut subjects = Vec::new();
    for tablet in tablets {
        let Some(Value::Str(id)) = tablet.get("tablet") else { panic!("{tablet:?}") };
        let (path, bytes) =
            folder.files.iter().find(|(p, _)| p.contains(&format!("wals/{id}/wal-"))).unwrap();
        let (folder, options, at) = (folder.clone(), options(table, None), path.clone());
        let open = move |source: coldframe_core::Source| {
            let damaged = source.bytes()?;
            let bytes = damaged.read(0..damaged.len())?;
            KuduFormat.open(&folder.with(&at, bytes).source(), &options)
        };
        // A log that is cut off between two records looks like a log that ends there.
        let subject =
            Subject::new(format!("{table}/{path}"), bytes.clone(), open).part_of_table().damages(150);
        subjects.push(subject.unit(|_| AllowedLoss::file().silent()));
    }
    subjects
}

#[test]
fn the_laws_hold_for_logs_of_new_rows() {
    log("notes").into_iter().for_each(Subject::obey);
}

#[test]
fn the_laws_hold_for_logs_of_changes() {
    // If a log is cut off, changes to rows may be missing. The rows are then older, as they would be for
    // Kudu.
    log("trips").into_iter().chain(log("ledger")).for_each(|subject| subject.unsummed().obey());
}

#[test]
fn the_laws_hold_for_super_blocks() {
    obey("file_blocks", &options("numbers", None), |path| path.contains("tablet-meta"), 3, 20);
}

/// If a file is missing although others refer to it, its contents are lost, and that is reported.
#[test]
fn the_laws_hold_for_lost_files() {
    for (name, lost) in [("encrypted", ".data"), ("encrypted", ".metadata"), ("file_blocks", "/data/")] {
        let whole = MemoryFolder::load(&fixture::data().join("kudu/files").join(name));
        let paths: Vec<&String> =
            whole.files.keys().filter(|p| p.contains(lost) && !p.ends_with("instance")).collect();
        assert!(!paths.is_empty(), "{name}");
        let (mut recorded, mut tried) = (0, 0);
        for path in paths.iter().step_by(paths.len().div_ceil(20)) {
            let mut folder = whole.clone();
            folder.files.remove(*path);
            let table = KuduFormat.open(&folder.source(), &options("numbers", None)).unwrap();
            assert_tolerant(table.as_ref(), None, &[1 << 11, 1 << 14]);
            let plain = rows::read(table.as_ref(), OnError::Raise);
            let refused = plain.map_or_else(Some, |outcome| outcome.error);
            assert!(refused.as_ref().is_none_or(|e| e.is_damage()), "{name}/{path}: {refused:?}");
            let damage = rows::read(table.as_ref(), OnError::Skip).unwrap().damage;
            assert_eq!(refused.is_none(), damage.is_empty(), "{name}/{path}: {damage:?}");
            (recorded, tried) = (recorded + usize::from(!damage.is_empty()), tried + 1);
        }
        assert!(recorded > 0, "{name}: {tried} files, none missed");
    }
}
