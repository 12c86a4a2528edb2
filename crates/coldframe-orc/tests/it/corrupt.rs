//! Damages files (truncates them, changes bytes, sets single wrong fields): the errors are helpful, and there
//! is no panic, no endless loop and no invalid Arrow array.

use crate::support;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use coldframe_core::{ErrorKind, OnError, Op, OpenOptions, Predicate, Scan, Value};
use coldframe_orc::Kind;
use coldframe_orc::proto::{self, Footer, StripeInformation, Type};
use coldframe_testing::counted::Counted;
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::{Dice, Fixture, mutate, rows};
use support::crafted::{Crafted, tailed};
use support::{open, open_source, written};

/// The small files under `tests/data`, and files of our writer with different codecs.
fn samples() -> Vec<(String, Bytes)> {
    let small = |f: &Fixture| f.bytes().len() <= 16 << 10;
    let committed =
        support::fixtures().into_iter().filter(|f| f.path.starts_with(coldframe_testing::fixture::data()));
    let mut all: Vec<_> = committed.filter(small).map(|f| (f.name(), f.bytes())).collect();
    let ids: ArrayRef = Arc::new((0..3000).map(|i| (i % 5 > 0).then_some(i * i)).collect::<Int64Array>());
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..3000).map(|i| format!("w{}", i % 900))));
    let batch = RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("word", texts, true)]).unwrap();
    for codec in ["none", "zlib"] {
        let options = [
            ("codec", Value::from(codec)),
            ("row_index_stride", Value::Int(1000)),
            ("bloom_filter_columns", Value::List(vec!["id".into()])),
        ];
        all.push((format!("written {codec}"), written(&batch, &options)));
    }
    all
}

/// The number of damaged files to try.
fn budget(all: usize, len: usize) -> usize {
    if std::env::var_os("COLDFRAME_EXHAUSTIVE").is_some() {
        all
    } else {
        (600_000 / len.max(1)).clamp(20, 400)
    }
}

/// Reads `bytes` in every way, with a source that stops endless reads; returns the rows that a read with
/// `OnError::Skip` yields.
fn survive(bytes: &Bytes, what: &str) -> Option<RecordBatch> {
    let mut options = OpenOptions::default();
    options.extra.insert("timestamp_unit".into(), Value::from("us"));
    let counted = Arc::new(Counted::new(bytes.clone()));
    let file = match open_source(what, counted, &options) {
        Ok(opened) => opened.file,
        Err(e) => {
            assert!(!e.to_string().is_empty());
            return None;
        }
    };
    let raised = rows::read(file.as_ref(), OnError::Raise).unwrap();
    let skipped = rows::read(file.as_ref(), OnError::Skip).unwrap();
    let nulled = rows::read(file.as_ref(), OnError::Null).unwrap();
    for outcome in [&skipped, &nulled] {
        let error = outcome.error.as_ref().filter(|e| e.is_damage());
        assert!(error.is_none(), "{what}: damage that is not skipped: {error:?}");
    }
    if let Some(e) = raised.error.as_ref().filter(|e| e.is_damage()) {
        assert!(!skipped.damage.is_empty(), "{what}: no damage reported for {e}");
    }
    assert!(nulled.batch.num_rows() >= skipped.batch.num_rows(), "{what}");
    // A filter also reads statistics, bloom filters and positions.
    if let Ok(field) = file.schema().field_with_name("id")
        && field.data_type() == &arrow_schema::DataType::Int64
    {
        let value: ArrayRef = Arc::new(Int64Array::from(vec![1600]));
        let scan = Scan {
            predicate: Some(Predicate::compare("id", Op::Eq, value)),
            on_error: OnError::Skip,
            ..Scan::default()
        };
        assert!(rows::scan(file.as_ref(), &scan, None).unwrap().error.is_none(), "{what}");
    }
    assert_tiled(&file.inspect().unwrap());
    file.metadata().unwrap();
    file.verify_structure().unwrap();
    // Damaged statistics may give an error.
    drop(file.statistics());
    Some(skipped.batch)
}

#[test]
fn a_truncated_file_is_refused() {
    let mut mutants = 0;
    for (name, bytes) in samples() {
        for len in mutate::spread(bytes.len(), budget(bytes.len(), bytes.len()))
            .filter(|n| (1..bytes.len()).contains(n))
        {
            mutants += 1;
            let rows = survive(&bytes.slice(..len), &format!("{name} cut at {len}"));
            assert!(rows.is_none(), "{name} cut at {len} opens");
        }
    }
    println!("{mutants} cuts");
}

#[test]
fn a_changed_byte_gives_rows_or_an_error() {
    let mut mutants = 0;
    for (name, bytes) in samples() {
        // Most numbers are in the tail and the index of the first stripe.
        let places = mutate::spread(bytes.len(), budget(bytes.len(), 2 * bytes.len()))
            .chain(bytes.len().saturating_sub(150)..bytes.len())
            .chain(0..bytes.len().min(60));
        for (i, at) in places.enumerate() {
            mutants += 1;
            let mask = [0x01, 0x80, 0xff][i % 3];
            survive(&mutate::flipped(&bytes, at, mask), &format!("{name} byte {at} ^ {mask:#x}"));
        }
    }
    println!("{mutants} flips");
}

#[test]
fn randomly_changed_files_give_rows_or_an_error() {
    let mut mutants = 0;
    for (seed, (name, bytes)) in samples().into_iter().enumerate() {
        let mut dice = Dice::new(seed as u64);
        for round in 0..budget(4000, bytes.len() * 2) {
            mutants += 1;
            survive(&mutate::shaken(&bytes, &mut dice), &format!("{name} round {round}"));
        }
    }
    println!("{mutants} shaken files");
}

fn first_error(bytes: &Bytes) -> coldframe_core::Error {
    let opened = match open("crafted", bytes.clone(), &OpenOptions::default()) {
        Ok(opened) => opened,
        Err(e) => return e,
    };
    survive(bytes, "crafted");
    let outcome = rows::read(opened.file.as_ref(), OnError::Raise).unwrap();
    outcome.error.unwrap_or_else(|| panic!("{} rows", outcome.batch.num_rows()))
}

fn assert_limit(e: &coldframe_core::Error, name: &str) {
    assert!(matches!(e.kind(), ErrorKind::LimitExceeded { option, .. } if *option == name), "{e}");
}

#[test]
fn counts_beyond_the_bytes_are_refused() {
    // Rows that the bytes cannot hold, and rows that the streams do not have.
    for rows in [u64::MAX, 1 << 40, (1 << 24) + 1] {
        let e = first_error(&Crafted::new(Kind::Long, rows, vec![]).bytes());
        assert!(e.is_damage() && e.to_string().contains("expected at most 16777216 rows"), "{e}");
    }
    // Only the limit bounds the rows of a table without columns.
    let mut rows = Crafted::new(Kind::Long, (1 << 24) + 1, vec![]);
    (rows.types, rows.encodings) =
        (vec![Type { kind: Some(Kind::Struct.number()), ..Type::default() }], vec![rows.encodings[0]]);
    let opened = open("rows", rows.bytes(), &OpenOptions::default()).unwrap();
    for on_error in [OnError::Raise, OnError::Skip, OnError::Null] {
        let outcome = rows::read(opened.file.as_ref(), on_error).unwrap();
        assert_limit(&outcome.error.unwrap(), "max_unit_rows");
        assert!(outcome.damage.is_empty(), "{on_error:?}");
    }
    assert_limit(
        &coldframe_core::scan::verify(opened.file.as_ref(), |_| Ok(())).unwrap_err(),
        "max_unit_rows",
    );
    assert!(first_error(&Crafted::new(Kind::Long, 1 << 24, vec![]).bytes()).is_damage());
    // A run of 512 zeros in 4 bytes, but 2^24 rows.
    let run = vec![(1, 1, vec![0xc1, 0xff, 0, 0])];
    assert!(first_error(&Crafted::new(Kind::Long, 1 << 24, run).bytes()).is_damage());
    // Strings of 2^31 and 2^62 bytes each.
    for length in [vec![0x1b, 0x80, 0, 0, 0], vec![0x3f, 0x40, 0, 0, 0, 0, 0, 0, 0]] {
        let streams = vec![(1, 1, vec![b'x'; 8]), (2, 1, length)];
        assert!(first_error(&Crafted::new(Kind::String, 3, streams).bytes()).is_damage());
    }
    // A dictionary of 2^32 - 1 entries.
    let mut dictionary =
        Crafted::new(Kind::String, 1, vec![(1, 1, vec![0x02, 0, 0]), (2, 1, vec![0; 4]), (3, 1, vec![])]);
    dictionary.encodings[1] =
        proto::ColumnEncoding { kind: Some(3), dictionary_size: Some(u32::MAX), bloom_encoding: None };
    assert!(first_error(&dictionary.bytes()).is_damage());
    // A list of 512 times 2^30 elements without a stream.
    let lengths = vec![0xc1, 0xff, 0x80, 0x80, 0x80, 0x80, 0x04, 0x00];
    let mut list = Crafted::new(Kind::List, 512, vec![(2, 1, lengths)]);
    list.types[1].subtypes = vec![2];
    list.types.push(Type { kind: Some(Kind::Long.number()), ..Type::default() });
    list.encodings.push(list.encodings[1]);
    assert!(first_error(&list.bytes()).is_damage());
    // A varint of a decimal without an end.
    let streams = vec![(1, 1, vec![0xff; 100]), (5, 1, vec![0x02, 0, 0])];
    assert!(first_error(&Crafted::new(Kind::Decimal, 1, streams).bytes()).is_damage());
}

#[test]
fn streams_and_stripes_at_impossible_places_are_refused() {
    // A stream of a column that does not exist, and one longer than the stripe.
    let e = first_error(&Crafted::new(Kind::Long, 1, vec![(1, 9, vec![0, 0, 0])]).bytes());
    assert!(e.to_string().contains("column"), "{e}");
    let sizes = [
        (u64::MAX, 1, 1, 1),
        (3, u64::MAX, 1, 1),
        (3, 1, u64::MAX, 1),
        (3, 1, 1, u64::MAX),
        (1 << 60, 0, 0, 0),
    ];
    for (offset, index, data, footer) in sizes {
        let stripe = StripeInformation {
            offset: Some(offset),
            index_length: Some(index),
            data_length: Some(data),
            footer_length: Some(footer),
            number_of_rows: Some(1),
            ..StripeInformation::default()
        };
        let types = Crafted::new(Kind::Long, 0, vec![]).types;
        let e = first_error(&tailed(
            b"ORC".to_vec(),
            &Footer { stripes: vec![stripe], types, ..Footer::default() },
        ));
        assert!(e.is_damage(), "{e}");
    }
}

#[test]
fn deep_and_broken_trees_are_refused() {
    for depth in [130, 5000, 90_000u32] {
        let types: Vec<Type> = (0..depth)
            .map(|i| Type {
                kind: Some(if i + 1 < depth { Kind::List } else { Kind::Int }.number()),
                subtypes: if i + 1 < depth { vec![i + 1] } else { vec![] },
                ..Type::default()
            })
            .collect();
        assert_limit(
            &first_error(&tailed(b"ORC".to_vec(), &Footer { types, ..Footer::default() })),
            "max_depth",
        );
    }
    let list = |subtypes: Vec<u32>| Type { kind: Some(Kind::List.number()), subtypes, ..Type::default() };
    for types in
        [vec![list(vec![0])], vec![list(vec![1]), list(vec![0])], vec![list(vec![7])], vec![list(vec![])]]
    {
        let e = first_error(&tailed(b"ORC".to_vec(), &Footer { types, ..Footer::default() }));
        assert!(e.is_damage(), "{e}");
    }
    let root = Type {
        kind: Some(Kind::Struct.number()),
        subtypes: vec![1, 1],
        field_names: vec!["x".to_owned(), "y".to_owned()],
        ..Type::default()
    };
    let types = vec![root, Type { kind: Some(Kind::Int.number()), ..Type::default() }];
    let e = first_error(&tailed(b"ORC".to_vec(), &Footer { types, ..Footer::default() }));
    assert!(e.to_string().contains("expected types in pre-order"), "{e}");
    let many = vec![Type { kind: Some(Kind::Int.number()), ..Type::default() }; 100_002];
    assert_limit(
        &first_error(&tailed(b"ORC".to_vec(), &Footer { types: many, ..Footer::default() })),
        "max_columns",
    );
}

/// Text that is not UTF-8 is an error, whether it is stored directly or in a dictionary.
#[test]
fn invalid_text_is_refused() {
    let direct = vec![(1, 1, vec![0xff, 0xfe, b'a']), (2, 1, vec![0x02, 3, 0])];
    let streams = vec![(1, 1, vec![0xc3, 0x28, b'a']), (2, 1, vec![0x00, 3])];
    for streams in [direct, streams] {
        assert!(first_error(&Crafted::new(Kind::String, 1, streams).bytes()).is_damage());
    }
}

/// An index with impossible positions and statistics is not used, and no row is lost.
#[test]
fn impossible_indexes_cause_no_panic() {
    let entry = |position: u64, values: u64| proto::RowIndexEntry {
        positions: vec![position; 3],
        statistics: Some(proto::ColumnStatistics {
            number_of_values: Some(values),
            has_null: Some(false),
            ..Default::default()
        }),
    };
    for position in [0, 1, 1 << 40, u64::MAX] {
        let index = proto::encode(&proto::RowIndex { entry: vec![entry(position, 5), entry(position, 5)] });
        let streams = vec![(6, 1, index), (1, 1, vec![0xc0, 9, 0, 2])];
        let mut file = Crafted::new(Kind::Long, 10, streams);
        file.stride = Some(5);
        survive(&file.bytes(), "wild index");
    }
}
