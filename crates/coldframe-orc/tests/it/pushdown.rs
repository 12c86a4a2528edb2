//! Tests filters: pruning changes no rows, and few bytes are read for few rows.

use crate::support;

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, MapBuilder, StringBuilder, StructBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use coldframe_core::predicate::Pattern;
use coldframe_core::{Matching, OnError, Op, OpenOptions, Predicate, Scan, Value};
use coldframe_testing::{Dice, Logged, rows};
use support::{Opened, files, open, written};

/// The columns and children of structs that a filter can name.
fn leaves(schema: &Schema) -> Vec<String> {
    fn add(path: &str, data_type: &DataType, into: &mut Vec<String>) {
        match data_type {
            DataType::Struct(fields) => {
                for f in fields.iter().filter(|f| !f.name().contains('.')) {
                    add(&format!("{path}.{}", f.name()), f.data_type(), into);
                }
            }
            other if other.is_nested() => {}
            _ => into.push(path.to_owned()),
        }
    }
    let mut all = Vec::new();
    for field in schema.fields() {
        let twins = schema.fields().iter().filter(|f| f.name() == field.name()).count();
        if twins == 1 && !field.name().contains('.') {
            add(field.name(), field.data_type(), &mut all);
        }
    }
    all
}

const OPS: [Op; 6] = [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge];

/// One random test of a column, made from its values.
fn leaf(batch: &RecordBatch, paths: &[String], dice: &mut Dice) -> Predicate {
    let path = paths[dice.below(paths.len())].clone();
    let column = coldframe_core::projection::column(batch, &path).unwrap();
    let negated = dice.below(4) == 0;
    let value = |dice: &mut Dice| column.slice(dice.below(column.len()), 1);
    match dice.below(6) {
        0 => Predicate::Null { column: path, negated },
        1 | 2 => {
            let picked: Vec<ArrayRef> = (0..=dice.below(3)).map(|_| value(dice)).collect();
            let picked: Vec<&dyn Array> = picked.iter().map(AsRef::as_ref).collect();
            let values = arrow_select::concat::concat(&picked).unwrap();
            Predicate::In { column: path, values: values.into(), negated }
        }
        _ => Predicate::Compare { column: path, op: OPS[dice.below(6)], value: value(dice), negated },
    }
}

fn predicate(batch: &RecordBatch, paths: &[String], dice: &mut Dice) -> Predicate {
    let some = |dice: &mut Dice| (0..=dice.below(2)).map(|_| leaf(batch, paths, dice)).collect::<Vec<_>>();
    match dice.below(3) {
        0 => leaf(batch, paths, dice),
        1 => Predicate::And(some(dice)),
        _ => Predicate::Or(some(dice)),
    }
}

/// A filtered scan returns the rows of a full scan that pass the filter.
fn assert_same(opened: &Opened, rounds: usize, seed: u64) -> usize {
    let outcome = rows::read(opened.file.as_ref(), OnError::Raise).unwrap();
    assert!(outcome.error.is_none(), "{}: {:?}", opened.name, outcome.error);
    let all = outcome.batch;
    let paths = leaves(&all.schema());
    if all.num_rows() == 0 || paths.is_empty() {
        return 0;
    }
    let mut dice = Dice::new(seed);
    for round in 0..rounds {
        let filter = predicate(&all, &paths, &mut dice);
        let Ok(bound) = filter.clone().bind(&all.schema()) else { continue };
        let want = filter_record_batch(&all, &bound.evaluate(&all).unwrap()).unwrap();
        let scan = Scan { predicate: Some(filter.clone()), ..Scan::default() };
        let got = rows::scan(opened.file.as_ref(), &scan, None).unwrap();
        assert!(got.error.is_none(), "{} round {round}: {:?} for {filter:?}", opened.name, got.error);
        assert_eq!(got.batch.num_rows(), want.num_rows(), "{} round {round}: {filter:?}", opened.name);
        assert!(got.batch == want, "{} round {round}: other rows for {filter:?}", opened.name);
        let scan = Scan { prune: false, limit: Some(3), ..scan };
        let got = rows::scan(opened.file.as_ref(), &scan, None).unwrap();
        let first = want.slice(0, want.num_rows().min(3));
        assert!(got.batch == first, "{} round {round}: other first rows for {filter:?}", opened.name);
    }
    rounds
}

#[test]
fn pruning_changes_no_rows() {
    let rounds = if std::env::var_os("COLDFRAME_EXHAUSTIVE").is_some() { 1000 } else { 40 };
    let mut checked = 0;
    for (seed, opened) in files().into_iter().enumerate() {
        checked += assert_same(&opened, rounds, seed as u64);
    }
    println!("{checked} filters");
    assert!(checked > 0);
}

/// A table with sorted, random, sparse, long, floating-point and nested columns, for several stripes of small
/// row groups.
fn table(n: i64) -> RecordBatch {
    let mut dice = Dice::new(3);
    let mut random = |below: usize| dice.below(below);
    let ids: ArrayRef = Arc::new((0..n).collect::<Int64Array>());
    let random_ids: ArrayRef =
        Arc::new((0..n).map(|_| i64::try_from(random(1 << 20)).unwrap()).collect::<Int64Array>());
    let sparse: ArrayRef =
        Arc::new((0..n).map(|i| ((i / 500) % 3 == 0).then_some(i)).collect::<Int64Array>());
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..n).map(|i| format!("w{:05}", i / 7 % 5000))));
    let floats = (0..n).map(|i| match i % 1000 {
        0 => f64::NAN,
        1 => -0.0,
        _ => (i / 100) as f64,
    });
    let floats: ArrayRef = Arc::new(floats.map(Some).collect::<Float64Array>());
    RecordBatch::try_from_iter_with_nullable([
        ("id", ids, true),
        ("random", random_ids, true),
        ("sparse", sparse, true),
        ("word", texts, true),
        ("f", floats, true),
    ])
    .unwrap()
}

/// The table with a column of lists and one of maps.
fn table_with_nested(n: i64) -> RecordBatch {
    let table = table(n);
    let names = table.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let columns = names.into_iter().zip(table.columns().iter().cloned());
    let nested = [("items".to_owned(), items(n)), ("tags".to_owned(), tags(n))];
    let all = columns.chain(nested).map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(all).unwrap()
}

/// Lists of structs with nulls in lists, structs and their fields.
fn items(n: i64) -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("word", DataType::Utf8, true),
        Field::new("inner", DataType::Struct(vec![Field::new("n", DataType::Int64, true)].into()), true),
    ]);
    let mut lists = ListBuilder::new(StructBuilder::from_fields(fields, 0));
    for i in 0..n {
        for item in 0..i % 4 {
            let values = lists.values();
            let words: &mut StringBuilder = values.field_builder(0).unwrap();
            words.append_option((i % 5 > 0).then(|| format!("item {item} of {i}")));
            let inner: &mut StructBuilder = values.field_builder(1).unwrap();
            let numbers: &mut Int64Builder = inner.field_builder(0).unwrap();
            numbers.append_option((item % 2 == 0).then_some(i));
            inner.append(item % 2 == 0 || i % 2 == 0);
            values.append(i % 6 > 0);
        }
        lists.append(i % 7 > 0);
    }
    Arc::new(lists.finish())
}

/// Maps from few words to numbers.
fn tags(n: i64) -> ArrayRef {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for i in 0..n {
        for tag in 0..i % 3 {
            maps.keys().append_value(format!("tag {}", (i + tag) % 11));
            maps.values().append_option((i % 4 > 0).then_some(i * tag));
        }
        maps.append(i % 9 > 0).unwrap();
    }
    Arc::new(maps.finish())
}

#[test]
fn pruning_of_written_files_changes_no_rows() {
    for (seed, compression) in ["none", "zlib", "zstd", "lz4", "snappy"].into_iter().enumerate() {
        let options = [
            ("codec", Value::from(compression)),
            ("row_index_stride", Value::Int(1000)),
            ("compression_block_size", Value::Int(4096)),
            ("stripe_size", Value::Int(100_000)),
            ("bloom_filter_columns", Value::List(vec!["random".into(), "word".into(), "f".into()])),
        ];
        let bytes = written(&table_with_nested(20_000), &options);
        assert_same(&open(compression, bytes, &OpenOptions::default()).unwrap(), 150, seed as u64);
    }
}

fn between(column: &str, low: i64, high: i64) -> Predicate {
    let value = |v: i64| Arc::new(Int64Array::from(vec![v])) as ArrayRef;
    Predicate::And(vec![
        Predicate::compare(column, Op::Ge, value(low)),
        Predicate::compare(column, Op::Lt, value(high)),
    ])
}

/// The filter selects one row in a thousand by a sorted column, and only the row groups of these rows are
/// read.
#[test]
fn few_bytes_are_read_for_few_rows() {
    for compression in ["none", "zstd"] {
        let n = 400_000;
        let options = [
            ("codec", Value::from(compression)),
            ("row_index_stride", Value::Int(5000)),
            ("compression_block_size", Value::Int(16 << 10)),
        ];
        let bytes = written(&table(n), &options);
        let len = bytes.len() as u64;
        let log = Arc::new(Logged::new(bytes));
        let opened = support::open_source(compression, log.clone(), &OpenOptions::default()).unwrap();
        log.take();
        let scan = Scan { predicate: Some(between("id", 200_100, 200_500)), ..Scan::default() };
        let got = rows::scan(opened.file.as_ref(), &scan, None).unwrap().batch;
        assert_eq!(got.num_rows(), 400);
        assert_eq!(got.column_by_name("id").unwrap().as_primitive::<Int64Type>().value(399), 200_499);
        let read: u64 = log.take().into_iter().flatten().map(|r| r.end - r.start).sum();
        println!("{compression}: {read} of {len} bytes");
        assert!(read < len / 10, "{compression}: {read} of {len} bytes");
        // If no row can match, only statistics are read.
        let scan = Scan { predicate: Some(between("id", n, n + 10)), ..Scan::default() };
        assert_eq!(rows::scan(opened.file.as_ref(), &scan, None).unwrap().batch.num_rows(), 0);
        let read: u64 = log.take().into_iter().flatten().map(|r| r.end - r.start).sum();
        assert!(read < len / 200, "{compression}: {read} of {len} bytes");
    }
}

/// Bloom filters exclude row groups that the smallest and largest values cannot exclude.
#[test]
fn bloom_filters_leave_out_row_groups() {
    let read_of = |filters: Vec<Value>| {
        let options = [
            ("codec", Value::from("none")),
            ("row_index_stride", Value::Int(1000)),
            ("bloom_filter_columns", Value::List(filters)),
        ];
        let log = Arc::new(Logged::new(written(&table(100_000), &options)));
        let opened = support::open_source("bloom", log.clone(), &OpenOptions::default()).unwrap();
        log.take();
        let value: ArrayRef = Arc::new(Int64Array::from(vec![1 << 21]));
        let set: ArrayRef = Arc::new(Int64Array::from(vec![-1, 524_288, 77]));
        let mut rows = 0;
        for filter in [
            Predicate::compare("random", Op::Eq, value),
            Predicate::In { column: "random".into(), values: set.into(), negated: false },
        ] {
            let scan =
                Scan { predicate: Some(filter), columns: Some(vec!["word".into()]), ..Scan::default() };
            rows += rows::scan(opened.file.as_ref(), &scan, None).unwrap().batch.num_rows();
        }
        let read: u64 = log.take().into_iter().flatten().map(|r| r.end - r.start).sum();
        (rows, read)
    };
    let (with, without) = (read_of(vec!["random".into()]), read_of(Vec::new()));
    assert_eq!(with.0, without.0);
    assert!(with.1 < without.1, "{} bytes with filters, {} without", with.1, without.1);
}

/// Filters also prune by columns that are returned as dictionaries.
#[test]
fn dictionaries_are_compared_like_strings() {
    let options =
        [("row_index_stride", Value::Int(1000)), ("bloom_filter_columns", Value::List(vec!["word".into()]))];
    let bytes = written(&table(20_000), &options);
    let mut open_options = OpenOptions::default();
    open_options.extra.insert("dictionary".into(), Value::Bool(true));
    let opened = open("dictionary", bytes, &open_options).unwrap();
    let value: ArrayRef = Arc::new(StringArray::from(vec!["w00042"]));
    let scan = Scan { predicate: Some(Predicate::compare("word", Op::Eq, value)), ..Scan::default() };
    let got = rows::scan(opened.file.as_ref(), &scan, None).unwrap();
    assert!(got.error.is_none(), "{:?}", got.error);
    assert_eq!(got.batch.num_rows(), 7);
    assert!(matches!(opened.file.schema().field(3).data_type(), DataType::Dictionary(..)));
}

/// If a stripe has a small dictionary, a filter tests its entries; in other stripes it tests the rows. The
/// same rows pass again.
#[test]
fn small_dictionaries_are_tested_by_entry() {
    let rows = 20_000;
    // This column makes up most of the file, so the scout decodes the small `word` column first.
    let long = |i: i64| format!("{:064x}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(long)));
    // The first stripe has three words and nulls, the second as many words as rows.
    let word = |i: i64| match i {
        0..10_000 => (i % 5 > 0).then(|| format!("word {}", i % 3)),
        _ => Some(format!("word {i}")),
    };
    let word: ArrayRef = Arc::new((0..rows).map(word).collect::<StringArray>());
    let batch =
        RecordBatch::try_from_iter_with_nullable([("text", text, true), ("word", word, true)]).unwrap();
    let opened = open(
        "words",
        written(
            &batch,
            &[
                ("stripe_rows", Value::Int(10_000)),
                ("row_index_stride", Value::Int(1000)),
                ("codec", Value::from("none")),
            ],
        ),
        &OpenOptions::default(),
    )
    .unwrap();
    let texts = |texts: &[Option<&str>]| Arc::new(texts.iter().copied().collect::<StringArray>()) as ArrayRef;
    let column = || "word".to_owned();
    let like = |negated| Predicate::Like { column: column(), pattern: Pattern::new("%1_"), negated };
    let predicates = [
        Predicate::compare("word", Op::Eq, texts(&[Some("word 2")])),
        Predicate::compare("word", Op::Gt, texts(&[Some("word 19995")])),
        Predicate::compare("word", Op::Eq, texts(&[None])),
        like(false),
        like(true),
        Predicate::In {
            column: column(),
            values: texts(&[Some("word 1"), Some("word 10001")]).into(),
            negated: false,
        },
        Predicate::In { column: column(), values: texts(&[Some("word 1"), None]).into(), negated: true },
        Predicate::Null { column: column(), negated: false },
    ];
    for predicate in predicates {
        let expected = filter_record_batch(&batch, &predicate.evaluate(&batch).unwrap()).unwrap();
        let scan = Scan { predicate: Some(predicate.clone()), ..Scan::default() };
        let got = rows::scan(opened.file.as_ref(), &scan, None).unwrap();
        assert_eq!(got.batch, expected, "{predicate:?}");
    }
}

/// If statistics exclude no row group and requests are cheap, the filter's column is read first, and the
/// other columns only for row groups with a row that passes. With a codec, the random numbers are most of the
/// file, and everything but the index is read at once.
#[test]
fn other_columns_are_read_only_where_a_row_passes() {
    for compression in ["none", "zstd"] {
        let options = [("codec", Value::from(compression)), ("row_index_stride", Value::Int(1000))];
        let bytes = written(&table(100_000), &options);
        let all =
            support::open_source(compression, Arc::new(bytes.clone()), &OpenOptions::default()).unwrap();
        let all = rows::scan(all.file.as_ref(), &Scan::default(), None).unwrap().batch;
        let value = all.column_by_name("random").unwrap().slice(54_321, 1);
        let passes = Predicate::compare("random", Op::Eq, value.clone()).evaluate(&all).unwrap();
        let expected = filter_record_batch(&all, &passes).unwrap();
        let read_of = |gap: u64| {
            let log = Arc::new(Logged::with_gap(bytes.clone(), gap));
            let opened = support::open_source(compression, log.clone(), &OpenOptions::default()).unwrap();
            log.take();
            let predicate = Some(Predicate::compare("random", Op::Eq, value.clone()));
            let scan = Scan { predicate, ..Scan::default() };
            assert_eq!(rows::scan(opened.file.as_ref(), &scan, None).unwrap().batch, expected);
            log.take().into_iter().flatten().map(|r| r.end - r.start).sum::<u64>()
        };
        let (few, whole) = (read_of(0), read_of(1 << 20));
        let less =
            if compression == "none" { few < whole * 2 / 3 } else { few.abs_diff(whole) < whole / 100 };
        assert!(less, "{compression}: {few} of {whole} bytes");
    }
}

/// The statistics of stripes decide which splits a filter needs; they hold all rows that pass.
#[test]
fn splits_of_stripes_that_a_filter_excludes_are_left_out() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..1000).map(|i| i / 100 * 100 + i % 7)));
    let batch = RecordBatch::try_from_iter_with_nullable([("n", numbers, true)]).unwrap();
    let opened =
        open("stripes", written(&batch, &[("stripe_rows", Value::Int(100))]), &OpenOptions::default())
            .unwrap();
    let value = |n: i64| Arc::new(Int64Array::from(vec![n])) as ArrayRef;
    let among = |some: &[i64]| Predicate::In {
        column: "n".to_owned(),
        values: (Arc::new(Int64Array::from(some.to_vec())) as ArrayRef).into(),
        negated: false,
    };
    let cases = [
        (Predicate::compare("n", Op::Lt, value(0)), 0, 0),
        (among(&[3]), 1, 1),
        (among(&[3, 101, 203, 500, 906, 907]), 5, 3),
        (Predicate::compare("n", Op::Ge, value(0)), 10, 1),
    ];
    for (predicate, most, least) in cases {
        let expected = filter_record_batch(&batch, &predicate.evaluate(&batch).unwrap()).unwrap();
        let bound = predicate.bind(opened.file.schema()).unwrap();
        let scan = Scan { predicate: Some(bound.clone()), ..Scan::default() };
        for (target, count) in [(1, most), (u64::MAX, least)] {
            let Matching { splits, pruned } = opened.file.matching_splits(target, &bound).unwrap().unwrap();
            assert_eq!((splits.len(), pruned), (count, 10 - most as u64), "{bound:?} {target}");
            let parts = splits
                .iter()
                .map(|split| rows::scan(opened.file.as_ref(), &scan, Some(split)).unwrap().batch);
            let matching = concat_batches(&batch.schema(), &parts.collect::<Vec<_>>()).unwrap();
            assert_eq!(matching, expected, "{bound:?} {target}");
        }
    }
}

/// What the scout decoded of the filter's columns is handed out beside the other columns: for few rows that pass and for
/// many, with little memory for what it keeps, and with gaps between the row groups that it examines.
#[test]
fn columns_of_the_filter_are_handed_out_beside_the_others() {
    let rows = 30_000;
    let long = |i: i64| format!("{i:0300}");
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(long)));
    let nested: ArrayRef = Arc::new(StructArray::from(vec![(
        Arc::new(Field::new("n", DataType::Int64, true)),
        Arc::new((0..rows).map(|i| (i % 5 > 0).then_some(i)).collect::<Int64Array>()) as ArrayRef,
    )]));
    let table = table(rows);
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("word", table.column_by_name("word").unwrap().clone(), true),
        ("id", table.column_by_name("id").unwrap().clone(), true),
        ("nested", nested, true),
        ("text", text, true),
        ("sparse", table.column_by_name("sparse").unwrap().clone(), true),
    ])
    .unwrap();
    let options = [("row_index_stride", Value::Int(1000)), ("stripe_rows", Value::Int(25_000))];
    let bytes = written(&batch, &options);
    let number = |column: &str, op, value: i64| {
        Predicate::compare(column, op, Arc::new(Int64Array::from(vec![value])) as ArrayRef)
    };
    let like = |column: &str, pattern| Predicate::Like {
        column: column.to_owned(),
        pattern: Pattern::new(pattern),
        negated: false,
    };
    let some = Predicate::Or(vec![number("id", Op::Lt, 1500), number("id", Op::Gt, 8500)]);
    let predicates = [
        like("word", "%77"),
        like("text", "%7"),
        like("text", "%"),
        number("sparse", Op::Ge, 0),
        number("nested.n", Op::Ge, 100),
        Predicate::And(vec![some, like("text", "%1%"), like("word", "%2%")]),
    ];
    for limit in [None, Some(4 << 20)] {
        let mut open_options = OpenOptions::default();
        open_options.limits.memory_limit = limit.unwrap_or(open_options.limits.memory_limit);
        let opened = open("handed out", bytes.clone(), &open_options).unwrap();
        for predicate in &predicates {
            let expected = filter_record_batch(&batch, &predicate.evaluate(&batch).unwrap()).unwrap();
            let scan = Scan { predicate: Some(predicate.clone()), ..Scan::default() };
            let got = rows::scan(opened.file.as_ref(), &scan, None).unwrap();
            assert!(got.error.is_none(), "{:?}", got.error);
            assert_eq!(got.batch, expected, "{predicate:?}");
        }
    }
}
