//! Reads encrypted columns: with keys the values, without them the masked values or an error.

use crate::support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use coldframe_core::{ErrorKind, KeySource, OnError, OpenOptions, Result, Scan, Value};
use coldframe_testing::mutate::flipped;
use coldframe_testing::{Fixture, rows};
use support::open;

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// The encrypted fixtures with their keys, from the manifest or from `keys.json` beside the file.
fn encrypted() -> Vec<(Fixture, BTreeMap<String, Vec<u8>>)> {
    let mut all = Vec::new();
    for fixture in support::fixtures() {
        let beside = fixture.path.with_file_name("keys.json");
        let keys = match fixture.entry.get("open").and_then(|open| open.get("keys")) {
            Some(keys) => Some(keys.clone()),
            None if beside.is_file() => {
                coldframe_testing::fixture::json(&beside)["keys"].get(fixture.name()).cloned()
            }
            None => None,
        };
        let Some(keys) = keys else { continue };
        let keys = keys.as_object().unwrap().iter().map(|(name, key)| {
            let hex = key.as_str().unwrap_or_else(|| key["hex"].as_str().unwrap());
            (name.clone(), unhex(hex))
        });
        let keys = keys.collect();
        all.push((fixture, keys));
    }
    assert!(!all.is_empty());
    all
}

#[test]
fn keys_give_the_values_that_were_masked() {
    for (fixture, keys) in encrypted() {
        let bytes = fixture.bytes();
        let with = OpenOptions { keys: keys.clone(), ..OpenOptions::default() };
        let read = |options: &OpenOptions| {
            let outcome = rows::read(
                open(&fixture.name(), bytes.clone(), options).unwrap().file.as_ref(),
                OnError::Raise,
            );
            let outcome = outcome.unwrap();
            assert!(outcome.error.is_none(), "{}: {:?}", fixture.name(), outcome.error);
            outcome.batch
        };
        let (plain, masked) = (read(&with), read(&OpenOptions::default()));
        assert_eq!(plain.num_rows(), masked.num_rows());
        assert!(plain != masked, "{}: the mask hides nothing", fixture.name());
        // ORC prints the name of a key with its version.
        let versions = keys.iter().map(|(name, key)| (format!("{name}@0"), key.clone())).collect();
        assert!(
            read(&OpenOptions { keys: versions, ..OpenOptions::default() }) == plain,
            "{}",
            fixture.name()
        );
        // Decryption can begin at a row group in the middle.
        let opened = open(&fixture.name(), bytes.clone(), &with).unwrap();
        let last = plain.num_rows() - 1;
        let column = plain.schema().fields().iter().position(|f| !f.data_type().is_nested()).unwrap();
        let filter = coldframe_core::Predicate::compare(
            plain.schema().field(column).name().clone(),
            coldframe_core::Op::Eq,
            plain.column(column).slice(last, 1),
        );
        let want = arrow_select::filter::filter_record_batch(
            &plain,
            &filter.clone().bind(&plain.schema()).unwrap().evaluate(&plain).unwrap(),
        );
        let got =
            rows::scan(opened.file.as_ref(), &Scan { predicate: Some(filter), ..Scan::default() }, None);
        assert!(got.unwrap().batch == want.unwrap(), "{}", fixture.name());
    }
}

/// Returns keys, and records the names that are requested.
#[derive(Debug)]
struct RecordingKeys {
    keys: BTreeMap<String, Vec<u8>>,
    names: Mutex<Vec<String>>,
}

impl KeySource for RecordingKeys {
    fn key(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.names.lock().unwrap().push(name.to_owned());
        Ok(self.keys.get(name).cloned())
    }
}

#[test]
fn each_key_is_requested_once() {
    for (fixture, keys) in encrypted() {
        let given = OpenOptions { keys: keys.clone(), ..OpenOptions::default() };
        let read = |options: &OpenOptions| {
            let file = open(&fixture.name(), fixture.bytes(), options).unwrap().file;
            rows::read(file.as_ref(), OnError::Raise).unwrap().batch
        };
        let recording = Arc::new(RecordingKeys { keys: keys.clone(), names: Mutex::default() });
        let source = OpenOptions { key_source: Some(recording.clone()), ..OpenOptions::default() };
        assert!(read(&source) == read(&given), "{}", fixture.name());
        let mut names = recording.names.lock().unwrap().clone();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(all, names.len(), "{}: {names:?}", fixture.name());
        // Without keys, the masked values are returned.
        let none = Arc::new(RecordingKeys { keys: BTreeMap::new(), names: Mutex::default() });
        let source = OpenOptions { key_source: Some(none), ..OpenOptions::default() };
        assert!(read(&source) == read(&OpenOptions::default()), "{}", fixture.name());
    }
}

#[test]
fn masked_columns_can_be_refused() {
    for (fixture, keys) in encrypted() {
        let mut refuse = OpenOptions::default();
        refuse.extra.insert("masked".into(), Value::from("error"));
        let file = open(&fixture.name(), fixture.bytes(), &refuse).unwrap().file;
        let e = rows::read(file.as_ref(), OnError::Raise).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::KeyUnavailable(_)), "{}: {e}", fixture.name());
        assert!(keys.keys().any(|name| e.to_string().contains(name.as_str())), "{}: {e}", fixture.name());
        refuse.keys = keys;
        let file = open(&fixture.name(), fixture.bytes(), &refuse).unwrap().file;
        assert!(rows::read(file.as_ref(), OnError::Raise).unwrap().error.is_none(), "{}", fixture.name());
    }
}

#[test]
fn wrong_keys_give_errors() {
    for (fixture, keys) in encrypted() {
        let short = keys.iter().map(|(name, key)| (name.clone(), key[1..].to_vec())).collect();
        let options = OpenOptions { keys: short, ..OpenOptions::default() };
        let e = open(&fixture.name(), fixture.bytes(), &options).map(|_| ()).unwrap_err();
        assert!(e.to_string().contains("bytes, found"), "{}: {e}", fixture.name());
        let other = keys.iter().map(|(name, key)| (name.clone(), vec![7; key.len()])).collect();
        let options = OpenOptions { keys: other, ..OpenOptions::default() };
        let e = open(&fixture.name(), fixture.bytes(), &options).map(|_| ()).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::KeyUnavailable(_)), "{}: {e}", fixture.name());
    }
}

/// With a key, statistics describe the values, otherwise the masked values; the counts of all levels agree.
#[test]
fn statistics_depend_on_the_keys() {
    for (fixture, keys) in encrypted() {
        let read = |keys: BTreeMap<String, Vec<u8>>| {
            let options = OpenOptions { keys, ..OpenOptions::default() };
            open(&fixture.name(), fixture.bytes(), &options).unwrap().file.statistics().unwrap()
        };
        let (with, without) = (read(keys.clone()), read(BTreeMap::new()));
        assert!(with.get("file") != without.get("file"), "{}", fixture.name());
        let list = |value: &Value| match value {
            Value::List(all) => all.clone(),
            other => panic!("{}: {other:?}", fixture.name()),
        };
        let count = |columns: &Value, column: usize| match list(columns)[column].get("number_of_values") {
            Some(Value::Int(n)) => *n,
            other => panic!("{}: {other:?}", fixture.name()),
        };
        for column in 0..list(with.get("file").unwrap()).len() {
            let whole = count(with.get("file").unwrap(), column);
            let (mut stripes, mut groups) = (0, 0);
            for stripe in list(with.get("stripes").unwrap()) {
                stripes += count(stripe.get("columns").unwrap(), column);
                groups +=
                    list(stripe.get("row_groups").unwrap()).iter().map(|g| count(g, column)).sum::<i64>();
            }
            assert_eq!((stripes, groups), (whole, whole), "{} column {column}", fixture.name());
        }
    }
}

/// The statistics of encrypted columns disprove damage that a plain read decodes without an error.
#[test]
fn encrypted_statistics_are_compared() {
    for (fixture, keys) in encrypted() {
        let bytes = fixture.bytes();
        for at in 0..bytes.len().min(4000) {
            let options = OpenOptions { keys: keys.clone(), ..OpenOptions::default() };
            let Ok(opened) = open(&fixture.name(), flipped(&bytes, at, 4), &options) else { continue };
            let Ok(outcome) = rows::read(opened.file.as_ref(), OnError::Raise) else { continue };
            if outcome.error.is_some_and(|e| e.structure().ends_with("statistics")) {
                return;
            }
        }
    }
    panic!("no flip contradicts statistics");
}
