//! Random filters over random rows, compared with an evaluator that applies the definition row by row.

use std::sync::Arc;

use arrow_array::{Float64Array, Int8Array, RecordBatch, StringArray};
use proptest::prelude::*;

use super::super::*;

type Row = (Option<i8>, Option<f64>, Option<&'static str>);

const TEXTS: [&str; 4] = ["", "a", "ab", "b"];

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let integer = prop::option::of(-3i8..4);
    let double = prop::option::of(prop::sample::select(vec![-1.5, 0.0, -0.0, 0.5, 1.0, f64::NAN]));
    let text = prop::option::of(prop::sample::select(TEXTS.to_vec()));
    prop::collection::vec((integer, double, text), 0..12)
}

fn number(tenths: i64) -> Literal {
    Literal::Number(Number::parse(&format!("{tenths}e-1")).unwrap())
}

fn leaves() -> impl Strategy<Value = Condition> {
    let op = prop::sample::select(vec![Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge]);
    let value = prop_oneof![
        (-40i64..40).prop_map(number),
        Just(number(10_000)),
        Just(Literal::Float(f64::NAN)),
        Just(Literal::Float(f64::INFINITY)),
        Just(Literal::Null),
    ];
    let column = prop::sample::select(vec!["i", "f"]);
    let text = prop::sample::select(TEXTS.to_vec());
    prop_oneof![
        (column, op.clone(), value).prop_map(|(column, op, value)| Condition::Compare {
            column: column.into(),
            op,
            value
        }),
        (op, text.clone()).prop_map(|(op, v)| Condition::Compare {
            column: "s".into(),
            op,
            value: Literal::Text(v.into())
        }),
        prop::collection::vec(-30i64..30, 0..4)
            .prop_map(|v| Condition::In { column: "i".into(), values: v.into_iter().map(number).collect() }),
        prop::collection::vec(text, 0..3).prop_map(|v| Condition::In {
            column: "s".into(),
            values: v.into_iter().map(|t| Literal::Text(t.into())).collect()
        }),
        prop::sample::select(vec!["i", "f", "s"]).prop_map(|c| Condition::IsNull { column: c.into() }),
        prop::sample::select(vec!["a%", "%b", "_", "a_", "%", ""])
            .prop_map(|p| Condition::Like { column: "s".into(), pattern: Pattern::new(p) }),
        prop::option::of(any::<bool>()).prop_map(Condition::Constant),
    ]
}

fn conditions() -> impl Strategy<Value = Condition> {
    leaves().prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|c| !c),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Condition::And),
            prop::collection::vec(inner, 0..4).prop_map(Condition::Or),
        ]
    })
}

/// A number as a double, which is exact for all numbers of this test.
fn double(value: &Literal) -> f64 {
    match value {
        Literal::Number(v) => v.to_string().parse().unwrap(),
        Literal::Float(v) => *v,
        other => panic!("{other}"),
    }
}

fn ordered<T: PartialOrd + ?Sized>(op: Op, a: &T, b: &T) -> bool {
    match op {
        Op::Eq => a == b,
        Op::Ne => a != b,
        Op::Lt => a < b,
        Op::Le => a <= b,
        Op::Gt => a > b,
        Op::Ge => a >= b,
    }
}

fn compare((i, f, s): &Row, column: &str, op: Op, value: &Literal) -> Option<bool> {
    match (column, value) {
        (_, Literal::Null) => None,
        ("i", v) => i.map(|a| ordered(op, &f64::from(a), &double(v))),
        ("f", v) => f.map(|a| ordered(op, &a, &double(v))),
        (_, Literal::Text(v)) => s.map(|a| ordered(op, a, v.as_str())),
        (_, other) => panic!("{other}"),
    }
}

/// The recursive definition: `%` matches either nothing, or one more character.
fn like(pattern: &[char], text: &[char]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, rest) => rest.is_none(),
        (Some(('%', after)), rest) => like(after, text) || rest.is_some_and(|(_, rest)| like(pattern, rest)),
        (Some((p, after)), Some((t, rest))) => (*p == '_' || p == t) && like(after, rest),
        (Some(_), None) => false,
    }
}

fn naive(condition: &Condition, row: &Row) -> Option<bool> {
    let three = |parts: &[Condition], decides: bool| {
        let answers: Vec<_> = parts.iter().map(|p| naive(p, row)).collect();
        if answers.contains(&Some(decides)) {
            Some(decides)
        } else if answers.contains(&None) {
            None
        } else {
            Some(!decides)
        }
    };
    match condition {
        Condition::Constant(v) => *v,
        Condition::Compare { column, op, value } => compare(row, column, *op, value),
        Condition::In { column, values } => {
            let known = if column == "i" { row.0.is_some() } else { row.2.is_some() };
            known.then(|| values.iter().any(|v| compare(row, column, Op::Eq, v) == Some(true)))
        }
        Condition::IsNull { column } => Some(match column.as_str() {
            "i" => row.0.is_none(),
            "f" => row.1.is_none(),
            _ => row.2.is_none(),
        }),
        Condition::Like { pattern, .. } => {
            let pattern: Vec<char> = pattern.as_str().chars().collect();
            row.2.map(|s| like(&pattern, &s.chars().collect::<Vec<_>>()))
        }
        Condition::Not(part) => naive(part, row).map(|v| !v),
        Condition::And(all) => three(all, false),
        Condition::Or(any) => three(any, true),
    }
}

/// Whether the condition has no unknown constant: `bind` turns unknown constants into false.
fn is_plain(condition: &Condition) -> bool {
    match condition {
        Condition::Constant(v) => v.is_some(),
        Condition::Not(part) => is_plain(part),
        Condition::And(parts) | Condition::Or(parts) => parts.iter().all(is_plain),
        _ => true,
    }
}

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        ("i", Arc::new(Int8Array::from_iter(rows.iter().map(|r| r.0)))),
        ("f", Arc::new(Float64Array::from_iter(rows.iter().map(|r| r.1)))),
        ("s", Arc::new(StringArray::from_iter(rows.iter().map(|r| r.2)))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap()
}

/// The bounds of a unit with these rows: minima and maxima for integers, and for all columns whether the
/// column has nulls.
fn bounds(rows: &[Row], column: &str) -> ColumnBounds {
    let integers: Vec<i8> = rows.iter().filter_map(|r| r.0).collect();
    let bound =
        |v: Option<&i8>| v.filter(|_| column == "i").map(|v| Arc::new(Int8Array::from(vec![*v])) as ArrayRef);
    let nulls: Vec<bool> = rows
        .iter()
        .map(|r| match column {
            "i" => r.0.is_none(),
            "f" => r.1.is_none(),
            _ => r.2.is_none(),
        })
        .collect();
    ColumnBounds {
        min: bound(integers.iter().min()),
        max: bound(integers.iter().max()),
        has_null: Some(nulls.contains(&true)),
        has_value: Some(nulls.contains(&false)),
    }
}

proptest! {
    #[test]
    fn rows_pass_as_the_definition_says(condition in conditions(), rows in rows()) {
        let batch = batch(&rows);
        let predicate = condition.bind(&batch.schema()).unwrap();
        let answers: Vec<Option<bool>> = predicate.evaluate(&batch).unwrap().iter().collect();
        let expected: Vec<Option<bool>> = rows.iter().map(|r| naive(&condition, r)).collect();
        let passes = |v: &[Option<bool>]| v.iter().map(|v| *v == Some(true)).collect::<Vec<_>>();
        prop_assert_eq!(passes(&answers), passes(&expected), "{}", condition);
        if is_plain(&condition) {
            prop_assert_eq!(&answers, &expected, "{}", condition);
        }
        let short: Vec<bool> = predicate.passing(&batch).unwrap().iter().collect();
        prop_assert_eq!(short, passes(&answers), "{}", condition);
        // Pruning never loses a row that passes.
        if answers.contains(&Some(true)) {
            prop_assert!(predicate.may_match(&|column| Some(bounds(&rows, column))), "{}", condition);
        }
        // Simplifying a filter by a known column changes no result.
        for (row, answer) in rows.iter().zip(&expected) {
            let known = |name: &str| (name == "i").then(|| Arc::new(Int8Array::from(vec![row.0])) as ArrayRef);
            let rest = condition.given(&batch.schema(), &known).unwrap();
            prop_assert_eq!(naive(&rest, row) == Some(true), *answer == Some(true), "{} given {:?}", condition, row);
        }
    }

    #[test]
    fn a_condition_printed_as_text_parses_to_the_same_condition(condition in leaves()) {
        let text = condition.to_string();
        // NaN and infinity have no text in SQL.
        prop_assume!(!text.contains("NaN") && !text.contains("inf") && !text.contains("()"));
        let batch = batch(&[]);
        let again = parse::condition(&text).unwrap();
        let bound = |c: &Condition| format!("{:?}", c.bind(&batch.schema()).unwrap());
        prop_assert_eq!(bound(&again), bound(&condition), "{}", text);
    }
}
