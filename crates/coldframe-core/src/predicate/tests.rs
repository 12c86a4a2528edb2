//! Filters: normal form, pruning and exact evaluation, checked against SQL's rules for nulls, NaN and types.

mod language;
mod logic;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, Decimal128Array, Float64Array, Int32Array, RecordBatch, StringArray,
};

use super::*;

fn batch() -> RecordBatch {
    let i: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None, Some(4)]));
    let f: ArrayRef = Arc::new(Float64Array::from(vec![Some(f64::NAN), Some(-0.0), Some(1.5), None]));
    let s: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some("b"), None, Some("d")]));
    let d: ArrayRef =
        Arc::new(Decimal128Array::from(vec![100, 250, 300, 400]).with_precision_and_scale(5, 2).unwrap());
    RecordBatch::try_from_iter_with_nullable([("i", i, true), ("f", f, true), ("s", s, true), ("d", d, true)])
        .unwrap()
}

fn float(v: f64) -> ArrayRef {
    Arc::new(Float64Array::from(vec![v]))
}

fn int(v: i32) -> ArrayRef {
    Arc::new(Int32Array::from(vec![v]))
}

fn rows(p: Predicate) -> Vec<Option<bool>> {
    let batch = batch();
    p.bind(&batch.schema()).unwrap().evaluate(&batch).unwrap().iter().collect()
}

#[test]
fn comparisons_are_exact_across_types() {
    let (t, f, n) = (Some(true), Some(false), None);
    assert_eq!(rows(Predicate::compare("i", Op::Gt, float(1.5))), [f, t, n, t]);
    assert_eq!(rows(Predicate::compare("i", Op::Eq, float(2.0))), [f, t, n, f]);
    assert_eq!(rows(Predicate::compare("d", Op::Ge, float(2.5))), [f, t, t, t]);
    assert_eq!(rows(Predicate::compare("d", Op::Lt, int(3))), [t, t, f, f]);
    let thousandth: ArrayRef =
        Arc::new(Decimal128Array::from(vec![2501]).with_precision_and_scale(10, 3).unwrap());
    assert_eq!(rows(Predicate::compare("d", Op::Gt, thousandth)), [f, f, t, t]);
    let big: ArrayRef = Arc::new(arrow_array::Int64Array::from(vec![1i64 << 40]));
    assert_eq!(rows(Predicate::compare("i", Op::Lt, big)), [t, t, n, t]);
}

#[test]
fn nan_passes_the_negation_but_not_the_opposite_comparison() {
    let (t, f, n) = (Some(true), Some(false), None);
    assert_eq!(rows(Predicate::compare("f", Op::Lt, float(1.0))), [f, t, f, n]);
    assert_eq!(rows(!Predicate::compare("f", Op::Lt, float(1.0))), [t, f, t, n]);
    assert_eq!(rows(Predicate::compare("f", Op::Eq, float(0.0))), [f, t, f, n]);
    assert_eq!(rows(Predicate::compare("f", Op::Ne, float(f64::NAN))), [t, t, t, n]);
}

#[test]
fn sets_nulls_and_three_valued_logic() {
    let (t, f, n) = (Some(true), Some(false), None);
    let set: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), Some("d"), Some("x")]));
    let with_null: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), None]));
    let within =
        |values: ArrayRef, negated| Predicate::In { column: "s".into(), values: values.into(), negated };
    assert_eq!(rows(within(set.clone(), false)), [f, t, n, t]);
    assert_eq!(rows(within(set, true)), [t, f, n, f]);
    assert_eq!(rows(within(with_null.clone(), false)), [n, t, n, n]);
    assert_eq!(rows(within(with_null, true)), [n, f, n, n]);
    let null = Predicate::Null { column: "i".into(), negated: false };
    assert_eq!(rows(null.clone()), [f, f, t, f]);
    let gt = Predicate::compare("i", Op::Gt, int(1));
    assert_eq!(rows(Predicate::Or(vec![null.clone(), gt.clone()])), [f, t, t, t]);
    assert_eq!(rows(Predicate::And(vec![gt.clone(), !null])), [f, t, f, t]);
    assert_eq!(rows(!Predicate::And(vec![gt.clone(), gt])), [t, f, n, f]);
}

#[test]
fn an_impossible_comparison_is_a_schema_error() {
    let batch = batch();
    let e = Predicate::compare("i", Op::Eq, Arc::new(StringArray::from(vec!["x"]))).bind(&batch.schema());
    assert!(e.unwrap_err().to_string().contains("column `i` of type Int32 cannot be compared with 'x'"));
}

#[test]
fn pruning_keeps_units_that_may_match() {
    let bounds = |_: &str| {
        Some(ColumnBounds {
            min: Some(int(10)),
            max: Some(int(20)),
            has_null: Some(false),
            has_value: Some(true),
        })
    };
    let may = |op, v| Predicate::compare("i", op, int(v)).may_match(&bounds);
    assert_eq!([may(Op::Eq, 9), may(Op::Eq, 10), may(Op::Eq, 21)], [false, true, false]);
    assert_eq!(
        [may(Op::Lt, 10), may(Op::Le, 10), may(Op::Gt, 20), may(Op::Ge, 20)],
        [false, true, false, true]
    );
    assert!(!Predicate::Null { column: "i".into(), negated: false }.may_match(&bounds));
    assert!(Predicate::compare("i", Op::Eq, float(9.0)).may_match(&bounds)); // a bound of another type
    assert!(Predicate::compare("i", Op::Eq, int(9)).may_match(&|_| None));
}

/// Sets with and without null, in units with and without nulls and values. A null row never passes.
#[test]
fn units_of_nulls_are_pruned_by_sets() {
    let unit = |has_null, has_value| {
        move |_: &str| {
            Some(ColumnBounds {
                min: Some(int(10)),
                max: Some(int(20)),
                has_null: Some(has_null),
                has_value: Some(has_value),
            })
        }
    };
    let set = |values: Vec<Option<i32>>, negated| Predicate::In {
        column: "i".into(),
        values: Members::new(&(Arc::new(Int32Array::from(values)) as ArrayRef)),
        negated,
    };
    let with_null = || vec![None, Some(15)];
    assert!(set(with_null(), false).may_match(&unit(true, true)));
    assert!(!set(with_null(), false).may_match(&unit(true, false)));
    assert!(!set(vec![None, Some(1)], false).may_match(&unit(true, true)));
    assert!(!set(vec![Some(1)], true).may_match(&unit(true, false)));
    assert!(set(vec![Some(1)], true).may_match(&unit(true, true)));
    assert!(!set(with_null(), true).may_match(&unit(true, true)));
}

#[test]
fn sorted_files_get_a_key_range() {
    let key = |k: &str| Arc::new(BinaryArray::from(vec![k.as_bytes()])) as ArrayRef;
    let p = Predicate::And(vec![
        Predicate::compare("key", Op::Ge, key("b")),
        Predicate::compare("key", Op::Lt, key("d")),
        Predicate::Null { column: "value".into(), negated: true },
    ]);
    assert_eq!(p.key_range("key"), KeyRange { lower: Some(b"b".to_vec()), upper: Some(b"d".to_vec()) });
    assert_eq!(Predicate::Or(vec![p]).key_range("key"), KeyRange::default());
}

/// `and` within `or` within `and` .., so that no level is merged with another.
fn tower(levels: usize) -> Predicate {
    (0..levels).fold(Predicate::compare("i", Op::Ge, int(2)), |inner, level| {
        let test = Predicate::compare("i", Op::Eq, float(if level % 2 == 0 { 2.5 } else { 4.0 }));
        if level % 2 == 0 { Predicate::Or(vec![inner, test]) } else { Predicate::And(vec![inner, !test]) }
    })
}

#[test]
fn the_deepest_filter_fits_a_small_stack() {
    let work = || {
        let batch = batch();
        let schema = batch.schema();
        let bound = tower(MAX_DEPTH).bind(&schema).unwrap();
        let (t, f) = (true, false);
        assert_eq!(bound.passing(&batch).unwrap().iter().collect::<Vec<_>>(), [f, t, f, f]);
        assert_eq!(bound.evaluate(&batch).unwrap().value(1), t);
        assert!(bound.may_match(&|_| Some(ColumnBounds::default())));
        let known: ArrayRef = int(2);
        assert!(bound.given(&schema, &|_| Some(known.clone())).unwrap().is_all_rows());
        let mut columns = Vec::new();
        bound.columns(&mut columns);
        assert_eq!(columns.len(), MAX_DEPTH + 1);
        let renamed = (!bound.clone()).rename(&|name| name + "2");
        assert!(format!("{renamed:?}").contains("i2"));
    };
    // Java's threads have a stack of 1 MiB, threads of Rust 2 MiB.
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn thousands_of_conditions_fit_a_small_stack() {
    let work = || {
        let batch = batch();
        let all = (5..20_000).map(|i| Predicate::compare("i", Op::Ne, int(i)));
        let bound = Predicate::And(all.collect()).bind(&batch.schema()).unwrap();
        assert_eq!(bound.passing(&batch).unwrap().count_set_bits(), 3);
    };
    std::thread::Builder::new().stack_size(1 << 18).spawn(work).unwrap().join().unwrap();
}

#[test]
fn only_null_tests_take_nested_columns() {
    use arrow_array::types::Int32Type;
    use arrow_array::{Array, ListArray, StructArray};
    use arrow_schema::Field;
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1)]),
        Some(vec![]),
        None,
        Some(vec![None]),
    ]);
    let field = Field::new("l", lists.data_type().clone(), true);
    let valid = Some(vec![true, false, true, true].into());
    let points = StructArray::new(vec![field].into(), vec![Arc::new(lists)], valid);
    let batch =
        RecordBatch::try_from_iter_with_nullable([("s", Arc::new(points) as ArrayRef, true)]).unwrap();
    let schema = batch.schema();
    let bind = |text: &str| parse::condition(text).unwrap().bind(&schema);
    for (text, rows) in [
        ("s is null", &[1][..]),
        ("S.l is null", &[1, 2]),
        ("not (s.l is null)", &[0, 3]),
        ("s is not null and s.l is null", &[2]),
    ] {
        let passing = bind(text).unwrap().passing(&batch).unwrap();
        assert_eq!(passing.set_indices().collect::<Vec<_>>(), rows, "{text}");
    }
    for text in ["s = 1", "s.l in (1, 2)", "s.l like 'a'"] {
        let e = bind(text).unwrap_err();
        assert!(matches!(e.kind(), crate::ErrorKind::Schema(_) | crate::ErrorKind::Unsupported(_)), "{e}");
    }
    let nested = Predicate::compare("s.l", Op::Eq, int(1)).bind(&schema).unwrap_err().to_string();
    assert!(nested.contains("`is null`"), "{nested}");
}
