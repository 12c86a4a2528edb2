//! Filters give the same rows with and without pruning, and read less with it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::{ArrayRef, Decimal128Array, Int32Array, Int64Array, StringArray};
use coldframe_core::predicate::Op;
use coldframe_core::{Predicate, Scan, TableFile};
use coldframe_testing::rows::{as_text, scan};

use super::folder::{Watched, open, table, tree};

fn rows(table: &dyn TableFile, predicate: Predicate) -> Vec<String> {
    let outcome = scan(table, &Scan { predicate: Some(predicate), ..Scan::default() }, None).unwrap();
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    as_text(&outcome.batch)
}

/// The same filter in a form with which the reader cannot prune by key.
fn opaque(predicate: &Predicate) -> Predicate {
    Predicate::Or(vec![predicate.clone(), predicate.clone()])
}

fn int32(v: i32) -> ArrayRef {
    Arc::new(Int32Array::from(vec![v]))
}

#[test]
fn key_ranges_prune_blocks() {
    let folder = Watched::new(tree("file_blocks"));
    let numbers = folder.table(&table("numbers"));
    for value in [-5, 0, 3, 4, 299, 300, 301, 600, 1197, 1198, 9999] {
        for op in [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge] {
            let filter = Predicate::compare("k", op, int32(value));
            let pruned = rows(numbers.as_ref(), filter.clone());
            assert_eq!(pruned, rows(numbers.as_ref(), opaque(&filter)), "k {op:?} {value}");
            let both = Predicate::And(vec![filter, Predicate::compare("k", Op::Lt, int32(450))]);
            assert_eq!(rows(numbers.as_ref(), both.clone()), rows(numbers.as_ref(), opaque(&both)));
        }
    }
    // The tables are small: reading only a range of a rowset saves less than reading the index costs, but
    // skipping a whole rowset saves all of its columns.
    let cost = |predicate: Predicate| {
        folder.read.store(0, Ordering::Relaxed);
        assert!(rows(numbers.as_ref(), predicate).is_empty());
        folder.read.load(Ordering::Relaxed)
    };
    let beyond = Predicate::compare("k", Op::Gt, int32(5000));
    let (pruned, whole) = (cost(beyond.clone()), cost(opaque(&beyond)));
    assert!(pruned * 2 < whole, "{pruned} of {whole}");
    // For a key that the bloom filter excludes, no column is read.
    let absent = Predicate::compare("k", Op::Eq, int32(601));
    let (pruned, whole) = (cost(absent.clone()), cost(opaque(&absent)));
    assert!(pruned < whole, "{pruned} of {whole}");
}

#[test]
fn ranges_of_keys_of_two_columns_prune_blocks() {
    let events = open(&tree("log_blocks"), &table("events")).unwrap();
    let region = |op, text: &str| {
        Predicate::compare("region", op, Arc::new(StringArray::from(vec![text])) as ArrayRef)
    };
    let id = |op, v: i64| Predicate::compare("id", op, Arc::new(Int64Array::from(vec![v])) as ArrayRef);
    let mut total = 0;
    for text in ["", "north\0east", "südwest", "a", "north"] {
        for op in [Op::Eq, Op::Lt, Op::Ge] {
            for v in [-40, -39, -38, -5, 0, 50, 260, 1000] {
                for second in [Op::Eq, Op::Le, Op::Gt, Op::Lt] {
                    let both = Predicate::And(vec![region(op, text), id(second, v)]);
                    let pruned = rows(events.as_ref(), both.clone());
                    assert_eq!(
                        pruned,
                        rows(events.as_ref(), opaque(&both)),
                        "{op:?} {text:?} {second:?} {v}"
                    );
                    total += pruned.len();
                }
            }
        }
    }
    assert!(total > 1000, "{total}");
}

#[test]
fn filters_see_changed_values() {
    let events = open(&tree("file_blocks"), &table("events")).unwrap();
    let amount = Predicate::compare("amount", Op::Lt, Arc::new(Int64Array::from(vec![0])) as ArrayRef);
    assert!(rows(events.as_ref(), amount).len() >= 10);
    let price = Decimal128Array::from(vec![-123_456_789]).with_precision_and_scale(9, 2).unwrap();
    assert!(
        rows(events.as_ref(), Predicate::compare("price", Op::Eq, Arc::new(price) as ArrayRef)).len() >= 10
    );
    let added = Predicate::compare("added", Op::Eq, int32(7));
    assert!(rows(events.as_ref(), added).len() >= 80);
    let none = Predicate::compare("added", Op::Eq, int32(1_000_000));
    assert!(rows(events.as_ref(), none).is_empty());
}

#[test]
fn filters_on_values_missing_in_a_dictionary_skip_rows() {
    let numbers = open(&tree("file_blocks"), &table("numbers")).unwrap();
    let v = |op, text: &str| Predicate::compare("v", op, Arc::new(StringArray::from(vec![text])) as ArrayRef);
    // The filters are for a value in the base data, for a value that is only in deltas, and for an absent
    // value; one filter passes no value.
    let cases = [v(Op::Eq, "value 7"), v(Op::Eq, "changed 18"), v(Op::Eq, "none"), v(Op::Lt, "")];
    let counts = cases.map(|filter| {
        let both = Predicate::And(vec![filter.clone(), Predicate::compare("k", Op::Ge, int32(0))]);
        let pruned = rows(numbers.as_ref(), both);
        assert_eq!(pruned, rows(numbers.as_ref(), opaque(&filter)));
        pruned.len()
    });
    assert!(counts[0] > 5, "{counts:?}");
    assert_eq!(counts[1..], [1, 0, 0]);
    let nulls = Predicate::Null { column: "v".to_owned(), negated: false };
    assert!(!rows(numbers.as_ref(), nulls).is_empty());
}
