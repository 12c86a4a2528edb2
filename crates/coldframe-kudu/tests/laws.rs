//! The laws of damage, on each kind of file of a data directory: what is lost is said, and no row comes out that was not there;
//! a lost block or delta never uncovers an older or a deleted value.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use coldframe_core::{Format, OpenOptions, Value};
use coldframe_kudu::KuduFormat;
use coldframe_testing::fixture;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::laws::Subject;

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

#[test]
fn super_blocks() {
    obey("file_blocks", &options("numbers", None), |path| path.contains("tablet-meta"), 3, 20);
}
