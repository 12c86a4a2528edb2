//! Plans and splits are the same after they are written and read; damaged bytes are errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use arrow_schema::{DataType, Field, Schema};
use coldframe_core::io::Identity;
use coldframe_core::options::Strings;
use coldframe_core::predicate::parse;
use coldframe_core::{OnError, Op, OpenOptions, Predicate, Scan, SchemaSpec, Source, Value};
use proptest::prelude::*;

use super::*;
use crate::dataset::columns::ColumnsBy;
use crate::dataset::fragment::Fragment;
use crate::dataset::plan::{Opening, Part, SplitFile};
use crate::dataset::storage::Stores;

fn file(path: &str) -> SplitFile {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
        Field::new("p", DataType::Utf8, true),
    ]);
    let value: ArrayRef = Arc::new(StringArray::from(vec!["eu"]));
    let seven: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let fragment = Fragment {
        constants: vec![("p".to_owned(), value)],
        defaults: vec![("id".to_owned(), seven)],
        by: ColumnsBy::Id("field".to_owned()),
        ..Fragment::new(schema.clone().into())
    };
    let extra = BTreeMap::from([
        ("serde".to_owned(), Value::Str("binary".to_owned())),
        ("deep".to_owned(), Value::List(vec![Value::map([("a", Value::Float(0.5))]), Value::UInt(u64::MAX)])),
    ]);
    let options = OpenOptions {
        schema: Some(SchemaSpec::Arrow(schema.into())),
        keys: BTreeMap::from([("k".to_owned(), b"hush".to_vec())]),
        extra,
        threads: Some(3),
        microseconds: true,
        ..OpenOptions::default()
    };
    let storage = Arc::new(Stores(BTreeMap::from([("secret_access_key".to_owned(), "hush".to_owned())])));
    SplitFile {
        path: path.to_owned(),
        opening: Arc::new(Opening { format: Some("rcfile".to_owned()), options, storage }),
        known: Some(Identity { len: 10, modified: Some(-3), etag: None }),
        recorded: Arc::new(vec![(0, "RCF1".into()), (6, "tail".into())]),
        fragment: Some(fragment),
        source: None,
    }
}

fn plan() -> Plan {
    let schema = Schema::new(vec![Field::new("id", DataType::Int64, true)]);
    let (first, second) = (Arc::new(file("t/p=eu/a")), Arc::new(file("t/p=eu/b")));
    let filter = "id in (1, 2, 9) and not (s like 'a%' or s is null) and (s = 'x' or id < 1e3)";
    let bound = parse::condition(filter).unwrap().bind(&first.fragment.as_ref().unwrap().schema).unwrap();
    let cut = |range, rows| Part::Cut(coldframe_core::Split { part: 1, range, rows });
    Plan {
        schema: schema.into(),
        scan: Scan {
            columns: Some(vec!["id".to_owned()]),
            predicate: Some(bound),
            limit: Some(5),
            batch_rows: 17,
            on_error: OnError::Null,
            doubtful: false,
            prune: false,
            threads: 2,
            strings: Some(Strings::View),
        },
        splits: vec![
            Split { file: first.clone(), part: cut(0..5, Some(2)), own: Vec::new() },
            Split { file: first, part: cut(5..10, None), own: vec![(1, "own".into())] },
            Split { file: second, part: Part::Share { number: 1, of: 2, target: 4 }, own: Vec::new() },
        ],
    }
}

/// The plan as text, including the fields that `Debug` leaves out.
fn debug_text(plan: &Plan) -> String {
    let mut text = format!("{plan:#?}");
    for split in &plan.splits {
        let options = &split.file.opening.options;
        text += &format!("{:?} {:?} {:?}", split.file.fragment, split.file.recorded, options.keys);
        text += &format!("{:?}", split.file.opening.storage.options(std::ffi::OsStr::new("x")));
    }
    text
}

#[test]
fn a_plan_is_the_same_after_writing_and_reading() {
    let plan = plan();
    let bytes = plan.to_bytes().unwrap();
    let back = Plan::from_bytes(&bytes, &Bound::default()).unwrap();
    assert_eq!(debug_text(&back), debug_text(&plan));
    assert_eq!(back.to_bytes().unwrap(), bytes);
    assert!(Arc::ptr_eq(&back.splits[0].file, &back.splits[1].file));
    let split = plan.splits[1].to_bytes().unwrap();
    assert_eq!(Split::from_bytes(&split, &Bound::default()).unwrap().to_bytes().unwrap(), split);
    assert!(Split::from_bytes(&bytes, &Bound::default()).is_err());
}

#[test]
fn deep_and_long_filters_are_the_same_after_writing_and_reading() {
    let test = |i: i64| {
        let value: ArrayRef = Arc::new(Int64Array::from(vec![i]));
        Predicate::compare("id", Op::Ne, value)
    };
    let word: ArrayRef = Arc::new(StringArray::from(vec!["ab"]));
    let trimmed = Predicate::Trimmed(Box::new(Predicate::compare("s", Op::Eq, word)));
    let deep = (0..600).fold(trimmed, |inner, i| {
        let parts = vec![test(i), inner, test(-i)];
        if i % 2 == 0 { Predicate::Or(parts) } else { Predicate::And(parts) }
    });
    for filter in [deep, Predicate::And((0..5000).map(test).collect()), Predicate::Or(Vec::new())] {
        let mut plan = plan();
        plan.scan.predicate = Some(filter);
        let back = Plan::from_bytes(&plan.to_bytes().unwrap(), &Bound::default()).unwrap();
        assert_eq!(format!("{:?}", back.scan.predicate), format!("{:?}", plan.scan.predicate));
    }
    let mut plan = plan();
    plan.scan.predicate = None;
    let back = Plan::from_bytes(&plan.to_bytes().unwrap(), &Bound::default()).unwrap();
    assert!(back.scan.predicate.is_none());
}

#[test]
fn malformed_filters_are_errors() {
    let node = |kind, parts| message::Predicate { kind, parts, ..message::Predicate::default() };
    let null = || node(3, 0);
    let refused = |nodes: &[message::Predicate]| predicate::from_nodes(nodes).unwrap_err().to_string();
    assert!(refused(&[node(5, 2), null()]).contains("expected 2 parts of a filter, found 1"));
    assert!(refused(&[null(), null()]).contains("expected one filter, found 2"));
    assert!(refused(&[node(3, 1), null()]).contains("without parts"));
    assert!(refused(&[node(7, 1), node(5, 1), null()]).contains("to trim"));
    assert!(refused(&[node(5, u64::MAX)]).contains("found 0"));
    let deep: Vec<_> = std::iter::repeat_with(|| node(5, 1)).take(2000).chain([null()]).collect();
    assert!(refused(&deep).contains("at most 600 deep"));
    assert!(predicate::from_nodes(&deep[1500..]).unwrap().is_some());
}

#[test]
fn shared_parts_are_written_once() {
    let mut plan = plan();
    let len = plan.to_bytes().unwrap().len();
    let split = plan.splits[0].clone();
    plan.splits.extend(vec![split; 100]);
    assert!(plan.to_bytes().unwrap().len() < len + 100 * 20);
}

#[test]
fn secrets_are_not_shown() {
    let text = format!("{:?}", plan());
    assert!(!text.contains("hush") && text.contains("secret_access_key"), "{text}");
}

#[test]
fn other_bytes_are_errors() {
    let bytes = plan().to_bytes().unwrap();
    let refused = |bytes: &[u8]| Plan::from_bytes(bytes, &Bound::default()).unwrap_err().to_string();
    assert!(refused(b"CF").contains("found fewer bytes"));
    assert!(refused(&[b"XXXX", &bytes[4..]].concat()).contains("expected the magic \"CFPL\""));
    assert!(refused(&[&bytes[..4], &[9], &bytes[5..]].concat()).contains("a plan of version 9"));
    assert!(refused(&bytes[..bytes.len() - 1]).contains("CRC-32C differs"));
}

#[test]
fn objects_of_this_process_cannot_be_written() {
    let of_object = SplitFile {
        source: Some(Source::file("<bytes>", Arc::new(bytes::Bytes::from_static(b"RCF1")))),
        ..file("<bytes>")
    };
    let split = Split { file: Arc::new(of_object), ..plan().splits[0].clone() };
    let e = split.to_bytes().unwrap_err().to_string();
    assert!(e.contains("<bytes> cannot be pickled"), "{e}");
}

/// The bytes of a message, with a valid checksum so that the checks behind it run.
fn sealed(body: &[u8]) -> Vec<u8> {
    let sum = crc32c::crc32c(body).to_le_bytes();
    [MAGIC.as_slice(), &[VERSION], &sum, body].concat()
}

proptest! {
    #[test]
    fn hostile_bytes_are_an_error(at in 0usize..4096, byte: u8, cut in 0usize..4096) {
        let bytes = plan().to_bytes().unwrap();
        let mut body = bytes[HEADER..].to_vec();
        let (at, cut) = (at % body.len(), cut % body.len());
        body[at] = byte;
        // Neither call may panic.
        drop(Plan::from_bytes(&sealed(&body), &Bound::default()));
        drop(Plan::from_bytes(&sealed(&body[..cut]), &Bound::default()));
    }

    #[test]
    fn noise_is_an_error(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(Plan::from_bytes(&sealed(&body), &Bound::default()));
    }
}
