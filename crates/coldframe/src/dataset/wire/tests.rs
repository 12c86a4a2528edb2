//! Plans and splits are the same after they are written and read; damaged bytes are errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, StringArray};
use arrow_schema::{DataType, Field, Schema};
use coldframe_core::io::Identity;
use coldframe_core::options::Strings;
use coldframe_core::predicate::parse;
use coldframe_core::types::hive::{HiveVersion, Reader, Rules};
use coldframe_core::{OnError, Op, OpenOptions, Predicate, Scan, SchemaSpec, Source, Value};
use proptest::prelude::*;

use super::*;
use crate::dataset::columns::ColumnsBy;
use crate::dataset::fragment::Fragment;
use crate::dataset::opening::Opening;
use crate::dataset::plan::{Part, SplitFile};
use crate::dataset::storage::Stores;
use crate::dataset::table_def::{
    ColumnDef, Columns, Conversion, Deletes, FileDef, FileGroup, Origin, TableDef, constants,
};

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
        timestamps_in: Some("Asia/Kolkata".to_owned()),
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

fn table() -> TableDef {
    let column = |name: &str, kind, declared: Option<&str>| ColumnDef {
        field: Arc::new(Field::new(name, kind, true)),
        declared: declared.map(str::to_owned),
    };
    let opening = file("t").opening.clone();
    let keys = vec![column("p", DataType::Utf8, None), column("n", DataType::Int32, Some("int"))];
    let values: [ArrayRef; 2] = [
        Arc::new(StringArray::from(vec![Some("eu"), None])),
        Arc::new(arrow_array::Int32Array::from(vec![1, 2])),
    ];
    let values = keys.iter().map(|key| key.field.as_ref().clone()).zip(values).collect();
    let deleted: ArrayRef = Arc::new(Int64Array::from(vec![Some(4), None]));
    let deleted = constants(vec![(Field::new("id", DataType::Int64, true), deleted)], 2).unwrap();
    let deletes = Deletes {
        positions: Some(Arc::new([3, 70_000, 1 << 40].into_iter().collect())),
        keys: vec![Arc::new(deleted)],
    };
    let first = FileDef {
        path: "t/p=eu/a".to_owned(),
        known: Some(Identity { len: 10, modified: None, etag: Some("x".to_owned()) }),
        listed: true,
        rows: Some(7),
        first_row: Some(0),
        deletes: Some(Arc::new(deletes)),
        ..FileDef::default()
    };
    let second = FileDef { path: "t/b".to_owned(), constants: 1, ..first.clone() };
    let rules = Rules { version: HiveVersion::V2_3, reader: Reader::Rows, hybrid: true };
    let group = FileGroup {
        own: vec![column("id", DataType::Int32, Some("int"))],
        matching: ColumnsBy::Position,
        conversion: Conversion::Hive(rules),
        defaults: vec![("s".to_owned(), Arc::new(StringArray::from(vec!["-"])) as ArrayRef)],
        constants: constants(values, 2).unwrap(),
        row_numbers: Some("row".to_owned()),
        files: vec![first, second],
        ..FileGroup::new(opening.clone())
    };
    TableDef {
        name: "sales.orders".to_owned(),
        complete: true,
        origin: Origin { file_path: Some("path".to_owned()), row_index: None },
        columns: Columns::Stated(vec![
            column("id", DataType::Int64, None),
            column("s", DataType::Utf8, Some("varchar(3)")),
        ]),
        keys,
        groups: vec![group, FileGroup { matching: ColumnsBy::Hive, ..FileGroup::new(opening) }],
    }
}

#[test]
fn a_definition_is_the_same_after_it_is_written_and_read() {
    let (table, bound) = (table(), Bound::default());
    let bytes = table.to_bytes().unwrap();
    let read = TableDef::from_bytes(&bytes, &bound).unwrap();
    assert_eq!(format!("{read:?}"), format!("{table:?}"));
    let group = &read.groups[0];
    assert_eq!(Arc::as_ptr(&group.opening), Arc::as_ptr(&read.groups[1].opening));
    let values = |at: usize| group.files[at].constants_in(&group.constants).unwrap();
    assert_eq!(
        format!("{:?}", values(1)),
        format!("{:?}", group.files[1].constants_in(&table.groups[0].constants).unwrap())
    );
    assert!(values(1)[0].1.is_null(0) && values(0)[0].1.is_valid(0));
    let plain = TableDef { groups: vec![FileGroup::new(file("t").opening.clone())], ..TableDef::default() };
    let read = TableDef::from_bytes(&plain.to_bytes().unwrap(), &bound).unwrap();
    assert_eq!((read.schema(), read.len()), (None, 0));
    let e = TableDef::from_bytes(&plan().to_bytes().unwrap(), &bound).unwrap_err().to_string();
    assert!(e.contains("expected the magic \"CFTD\", found \"CFPL\""), "{e}");
}

#[test]
fn a_row_of_constants_that_is_missing_is_an_error() {
    let group = &table().groups[0];
    let beyond = FileDef { constants: 2, ..group.files[0].clone() };
    let e = beyond.constants_in(&group.constants).unwrap_err().to_string();
    assert!(e.contains("expected one of 2 rows of constants, found number 2"), "{e}");
}

/// The bytes of a message, with a valid checksum so that the checks behind it run.
fn sealed(kind: &Kind, body: &[u8]) -> Vec<u8> {
    let sum = crc32c::crc32c(body).to_le_bytes();
    [kind.magic.as_slice(), &[kind.version], &sum, body].concat()
}

/// Reads the bytes of a message as what they say they are; must not panic.
fn attempted(kind: &Kind, body: &[u8]) {
    let bytes = sealed(kind, body);
    if kind.magic == PLAN.magic {
        drop(Plan::from_bytes(&bytes, &Bound::default()));
    } else {
        drop(TableDef::from_bytes(&bytes, &Bound::default()));
    }
}

proptest! {
    #[test]
    fn hostile_bytes_are_an_error(at in 0usize..8192, byte: u8, cut in 0usize..8192) {
        for (kind, bytes) in [(&PLAN, plan().to_bytes().unwrap()), (&TABLE, table().to_bytes().unwrap())] {
            let mut body = bytes[HEADER..].to_vec();
            let (at, cut) = (at % body.len(), cut % body.len());
            body[at] = byte;
            attempted(kind, &body);
            attempted(kind, &body[..cut]);
        }
    }

    #[test]
    fn noise_is_an_error(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        attempted(&PLAN, &body);
        attempted(&TABLE, &body);
    }
}
