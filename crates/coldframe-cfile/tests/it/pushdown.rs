//! Counts the bytes that filters, splits and seeks read, and checks that pruning does not change the rows.

use crate::support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use coldframe_cfile::CFileTable;
use coldframe_cfile::layout::types::Encoding;
use coldframe_cfile::options::Options as OpenOptions;
use coldframe_cfile::write::Options;
use coldframe_core::predicate::Op;
use coldframe_core::{OnError, OpenOptions as CoreOptions, Predicate, Scan, Value};
use coldframe_testing::{Logged, rows};
use support::write;

fn logged(bytes: &[u8]) -> (Arc<Logged>, CFileTable) {
    let source = Arc::new(Logged::new(bytes.to_vec()));
    let extra = [("ordinal".to_owned(), Value::Bool(true))].into();
    let options = OpenOptions::new(&CoreOptions { extra, ..CoreOptions::default() }).unwrap();
    let table = CFileTable::open(source.clone(), options).unwrap();
    source.take();
    (source, table)
}

fn filtered(table: &CFileTable, predicate: Predicate, on_error: OnError) -> Vec<i64> {
    let scan = Scan { predicate: Some(predicate), on_error, ..Scan::default() };
    let outcome = rows::scan(table, &scan, None).unwrap();
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    outcome.batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

fn bytes_read(source: &Logged) -> u64 {
    source.take().iter().flatten().map(|r| r.end - r.start).sum()
}

#[test]
fn key_ranges_and_ordinals_read_few_blocks() {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..50_000).map(|i| i * 2)));
    let options = Options {
        encoding: Some(Encoding::Plain),
        value_index: true,
        block_size: 4000,
        ..Options::default()
    };
    let bytes = write(&values, false, &options);
    let (source, table) = logged(&bytes);
    let literal = |n: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
    for (op, value, expected) in [
        (Op::Eq, 40_000, vec![20_000]),
        (Op::Eq, 40_001, vec![]),
        (Op::Lt, 4, vec![0, 1]),
        (Op::Ge, 99_996, vec![49_998, 49_999]),
        (Op::Gt, 99_998, vec![]),
    ] {
        let filter = || Predicate::compare("value", op, literal(value));
        assert_eq!(filtered(&table, filter(), OnError::Raise), expected, "{op:?} {value}");
        let read = bytes_read(&source);
        assert!(read < bytes.len() as u64 / 8, "{op:?} {value}: {read} of {}", bytes.len());
        // A read under `skip` does not prune; it must return the same rows.
        assert_eq!(filtered(&table, filter(), OnError::Skip), expected, "{op:?} {value}");
        source.take();
        let by_ordinal = Predicate::compare("ordinal", op, literal(value / 2));
        let plain: Vec<i64> = filtered(&table, by_ordinal, OnError::Raise);
        assert!(plain.iter().all(|o| (0..50_000).contains(o)));
        let read = bytes_read(&source);
        assert!(read < bytes.len() as u64 / 8, "ordinal {op:?} {value}: {read} of {}", bytes.len());
    }
    let split = table.seek(49_000).unwrap();
    rows::scan(&table, &Scan::default(), Some(&split)).unwrap();
    assert!(bytes_read(&source) < bytes.len() as u64 / 8);
    // If only ordinals are requested, no data block is read.
    let scan = Scan { columns: Some(vec!["ordinal".to_owned()]), ..Scan::default() };
    assert_eq!(rows::scan(&table, &scan, None).unwrap().batch.num_rows(), 50_000);
    assert!(bytes_read(&source) < bytes.len() as u64 / 8);
}

#[test]
fn short_separators_find_keys_of_text() {
    let texts: Vec<String> = (0..3000).map(|i| format!("word {:06}", i * 7)).collect();
    let values: ArrayRef = Arc::new(StringArray::from(texts.clone()));
    let options = Options {
        encoding: Some(Encoding::Prefix),
        value_index: true,
        block_size: 600,
        ..Options::default()
    };
    let bytes = write(&values, false, &options);
    let (source, table) = logged(&bytes);
    for at in [0usize, 1, 55, 56, 57, 1500, 2999] {
        let text: ArrayRef = Arc::new(StringArray::from(vec![texts[at].clone()]));
        let ordinals = filtered(&table, Predicate::compare("value", Op::Eq, text.clone()), OnError::Raise);
        assert_eq!(ordinals, [i64::try_from(at).unwrap()]);
        let several = Predicate::In { column: "value".into(), values: text.into(), negated: false };
        assert_eq!(filtered(&table, several, OnError::Raise), [i64::try_from(at).unwrap()]);
    }
    source.take();
    let absent: ArrayRef = Arc::new(StringArray::from(vec!["zebra"]));
    assert_eq!(
        filtered(&table, Predicate::compare("value", Op::Ge, absent), OnError::Raise),
        Vec::<i64>::new()
    );
    assert!(bytes_read(&source) < bytes.len() as u64 / 2);
}

#[test]
fn filters_on_a_dictionary_return_the_same_rows() {
    for (nulls, block_size) in [(0, 512), (3, 512), (3, 100_000), (1, 512)] {
        let values = support::column(coldframe_cfile::layout::types::KuduType::String, 4000, nulls, 3);
        let options = Options { encoding: Some(Encoding::Dict), block_size, ..Options::default() };
        let bytes = write(&values, nulls > 0, &options);
        let (_, table) = logged(&bytes);
        let literal = |s: &str| -> ArrayRef { Arc::new(StringArray::from(vec![s])) };
        let several: ArrayRef = Arc::new(StringArray::from(vec!["7", "00", "nowhere"]));
        for predicate in [
            Predicate::compare("value", Op::Lt, literal("0005")),
            Predicate::compare("value", Op::Ne, literal("")),
            Predicate::In { column: "value".into(), values: several.clone().into(), negated: false },
            Predicate::In { column: "value".into(), values: several.into(), negated: true },
            Predicate::Null { column: "value".into(), negated: false },
            Predicate::Null { column: "value".into(), negated: true },
        ] {
            let pruned = filtered(&table, predicate.clone(), OnError::Raise);
            // A read under `skip` reads all values.
            assert_eq!(pruned, filtered(&table, predicate.clone(), OnError::Skip), "{predicate:?}");
        }
    }
}

/// In a sorted column, a filter on a key selects its row, and one on a range of keys selects their rows, for
/// any block size.
#[test]
fn filters_on_keys_are_exact_in_each_encoding() {
    let text: Vec<String> = (0..4000).map(|i| format!("{:05} {}", i * 3, "x".repeat(i % 17))).collect();
    let texts: ArrayRef = Arc::new(StringArray::from(text));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..4000).map(|i| i * 3)));
    for (values, encoding) in [
        (&texts, Encoding::Dict),
        (&texts, Encoding::Plain),
        (&texts, Encoding::Prefix),
        (&numbers, Encoding::Plain),
        (&numbers, Encoding::BitShuffle),
        (&numbers, Encoding::Rle),
    ] {
        for block_size in [512, 2000, 40_000] {
            let options =
                Options { encoding: Some(encoding), value_index: true, block_size, ..Options::default() };
            let (_, table) = logged(&write(values, false, &options));
            for row in (0..4000).step_by(7).chain(3990..4000) {
                let value = values.slice(row, 1);
                let row = i64::try_from(row).unwrap();
                let name = format!("{encoding} in blocks of {block_size}, row {row}");
                let rows = table.lookup(&value).unwrap();
                assert_eq!(rows.num_rows(), 1, "{name}");
                let filter = |op| Predicate::compare("value", op, value.clone());
                assert_eq!(filtered(&table, filter(Op::Eq), OnError::Raise), [row], "{name}");
                if row % 10 == 0 {
                    let below = filtered(&table, filter(Op::Le), OnError::Raise);
                    assert_eq!(below, (0..=row).collect::<Vec<_>>(), "{name}");
                    let above = filtered(&table, filter(Op::Gt), OnError::Raise);
                    assert_eq!(above, (row + 1..4000).collect::<Vec<_>>(), "{name}");
                }
            }
        }
    }
}

#[test]
fn lookups_and_filters_return_the_same_rows() {
    let numbers = [0.0, -0.0, f64::NAN, -f64::NAN, 1.5, f64::INFINITY];
    let values: ArrayRef = Arc::new(Float64Array::from_iter(numbers.map(Some).into_iter().chain([None])));
    let bytes = write(&values, true, &Options::default());
    let (_, table) = logged(&bytes);
    for (wanted, expected) in [
        (Some(0.0), vec![0, 1]),
        (Some(-0.0), vec![0, 1]),
        (Some(f64::NAN), vec![]),
        (Some(1.5), vec![4]),
        (Some(f64::INFINITY), vec![5]),
        (None, vec![6]),
    ] {
        let value: ArrayRef = Arc::new(Float64Array::from(vec![wanted]));
        let rows = table.lookup(&value).unwrap();
        let rows = rows.column(0).as_primitive::<Int64Type>().values().to_vec();
        assert_eq!(rows, expected, "{wanted:?}");
        if wanted.is_some() {
            let filter = Predicate::compare("value", Op::Eq, value);
            assert_eq!(filtered(&table, filter, OnError::Raise), expected, "{wanted:?}");
        }
    }
    let large: ArrayRef = Arc::new(StringArray::from(vec!["not a number"]));
    assert!(!table.lookup(&large).unwrap_err().is_damage());
}
