//! The laws of damage, on each kind of file of a data directory: what is lost is said, and no row comes out that was not there;
//! a lost block or delta never uncovers an older or a deleted value.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;

use coldframe_core::{Format, OpenOptions, Value};
use coldframe_kudu::KuduFormat;
use coldframe_testing::fixture;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::laws::{Subject, Toll};

fn options(table: &str, snapshot: Option<i64>) -> OpenOptions {
    let mut extra: BTreeMap<String, Value> = [("table".to_owned(), Value::Str(table.to_owned()))].into();
    extra.extend(snapshot.map(|s| ("snapshot".to_owned(), Value::Int(s))));
    OpenOptions { extra, ..OpenOptions::default() }
}

/// Every file of a directory for which `of` holds, up to `most` of them, each damaged in `damages` ways.
fn obey(name: &str, options: &OpenOptions, of: impl Fn(&str) -> bool, most: usize, damages: usize) {
    let folder = MemoryFolder::load(&fixture::data().join("kudu/files").join(name));
    let paths: Vec<String> = folder.files.keys().filter(|p| of(p)).cloned().collect();
    let step = paths.len().div_ceil(most).max(1);
    assert!(!paths.is_empty());
    for path in paths.into_iter().step_by(step) {
        let bytes = folder.files.get(&path).unwrap().clone();
        let (folder, options, at) = (folder.clone(), options.clone(), path.clone());
        let open = move |source: coldframe_core::Source| {
            let damaged = source.bytes()?;
            let bytes = damaged.read(0..damaged.len())?;
            KuduFormat.open(&folder.with(&at, bytes).source(), &options)
        };
        Subject::new(format!("{name}/{path}"), bytes, open).one_of_many().damages(damages).obey();
    }
}

fn is_block(path: &str) -> bool {
    path.contains("/data/") && !path.ends_with("instance")
}

#[test]
fn blocks_in_files_of_their_own() {
    obey("file_blocks", &options("numbers", None), is_block, 40, 12);
}

#[test]
fn blocks_at_an_older_snapshot() {
    obey("file_blocks", &options("numbers", Some(7_353_429_188_416_778_241)), is_block, 40, 12);
}

#[test]
fn containers() {
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
        // A log that ends between two records ends nowhere else.
        let subject = Subject::new(format!("{table}/{path}"), bytes.clone(), open).one_of_many().damages(150);
        subjects.push(subject.unit(|_| Toll::file().silent()));
    }
    subjects
}

#[test]
fn logs_of_new_rows() {
    log("notes").into_iter().for_each(Subject::obey);
}

#[test]
fn logs_of_changes() {
    // What a cut takes away may have changed rows: those are older then, as they are for Kudu.
    log("trips").into_iter().chain(log("ledger")).for_each(|subject| subject.unsummed().obey());
}

#[test]
fn super_blocks() {
    obey("file_blocks", &options("numbers", None), |path| path.contains("tablet-meta"), 3, 20);
}
