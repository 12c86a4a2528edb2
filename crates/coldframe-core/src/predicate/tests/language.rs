//! Filters as text: parsing, evaluation, and simplification by known columns.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray,
    FixedSizeBinaryArray, Float32Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
    Time64MicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Fields, Schema};
use coldframe_encoding::ErrorKind;

use super::super::*;

fn table() -> RecordBatch {
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, None, Some(3)]));
    let inner = Fields::from(vec![Field::new("a", DataType::Int64, true)]);
    let structs = StructArray::new(inner, vec![a], Some(vec![true, true, false, true].into()));
    let dictionary: DictionaryArray<arrow_array::types::Int8Type> =
        vec![Some("p"), Some("q"), None, Some("p")].into_iter().collect();
    let d = Decimal128Array::from(vec![Some(123), None, Some(-500), Some(9999)]);
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(
        [Some(b"aa"), Some(b"ab"), None, Some(b"zz")].into_iter(),
        2,
    );
    let millis = vec![Some(0), Some(1001), None, Some(5)];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("x", Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4)]))),
        ("s", Arc::new(StringArray::from(vec![Some("abc"), Some("b"), None, Some("Ü")]))),
        ("f", Arc::new(Float32Array::from(vec![Some(1.5), Some(f32::NAN), None, Some(0.1)]))),
        ("d", Arc::new(d.with_precision_and_scale(4, 2).unwrap())),
        ("ts", Arc::new(TimestampNanosecondArray::from(vec![Some(0), Some(1_000_000_001), None, Some(5)]))),
        ("ms", Arc::new(TimestampMillisecondArray::from(millis.clone()))),
        ("utc", Arc::new(TimestampMillisecondArray::from(millis).with_timezone("UTC"))),
        ("day", Arc::new(Date32Array::from(vec![Some(16_071), Some(16_436), None, Some(-3653)]))),
        ("day64", Arc::new(Date64Array::from(vec![Some(0), Some(86_400_000), None, Some(-86_400_000)]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]))),
        ("bin", Arc::new(BinaryArray::from(vec![Some(&b"a"[..]), Some(b"\xff"), None, Some(b"")]))),
        ("fixed", Arc::new(fixed.unwrap())),
        ("clock", Arc::new(Time64MicrosecondArray::from(vec![Some(0), Some(1), None, Some(3_600_000_000)]))),
        ("st", Arc::new(structs)),
        ("u", Arc::new(UInt64Array::from(vec![Some(0), Some(1), None, Some(u64::MAX)]))),
        ("dict", Arc::new(dictionary)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap()
}

fn rows(condition: &Condition) -> Result<Vec<usize>, coldframe_encoding::Error> {
    let table = table();
    let passes = condition.bind(&table.schema())?.evaluate(&table)?;
    Ok((0..table.num_rows()).filter(|i| passes.is_valid(*i) && passes.value(*i)).collect())
}

fn sql(text: &str) -> Vec<usize> {
    rows(&parse::condition(text).unwrap()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn sql_text_means_what_sql_means() {
    let cases: &[(&str, &[usize])] = &[
        ("X > 1", &[2, 3]),
        ("1 < x", &[2, 3]),
        ("x < 3.5", &[0, 2]),
        ("not x = 3.5", &[0, 2, 3]),
        ("not x > 9999999999", &[0, 2, 3]),
        ("x < 1e300", &[0, 2, 3]),
        ("x not between 1 and 3", &[3]),
        ("x in (1, 3, 2.5)", &[0, 2]),
        ("x not in (1)", &[2, 3]),
        ("x in (1, null)", &[0]),
        ("x not in (1, null)", &[]),
        ("not (x = null)", &[]),
        ("s is null or 4 = x", &[2, 3]),
        ("s like 'a%'", &[0]),
        ("s not like 'a%'", &[1, 3]),
        ("s like '%b%'", &[0, 1]),
        ("s not like '%b%'", &[3]),
        ("s like '_'", &[1, 3]),
        ("f = 0.1", &[]),
        ("f != 0.1", &[0, 1, 3]),
        ("f in (0.1, 1.5)", &[0]),
        ("f > 1", &[0]),
        ("not f > 1", &[1, 3]),
        ("d = 1.23", &[0]),
        ("d = 1.231", &[]),
        ("d > 1.225", &[0, 3]),
        ("d < 1e10", &[0, 2, 3]),
        ("ts >= '1970-01-01'", &[0, 1, 3]),
        ("ts = timestamp '1970-01-01 00:00:01.000000001'", &[1]),
        ("ms > timestamp '1970-01-01 00:00:01.0009'", &[1]),
        ("ms < timestamp '3000-01-01 00:00:00'", &[0, 1, 3]),
        ("utc > timestamp '1970-01-01 01:00:01+01:00'", &[1]),
        ("day = date '2014-01-01'", &[0]),
        ("day < timestamp '2014-01-01 00:00:01'", &[0, 3]),
        ("day64 = '1970-01-02'", &[1]),
        ("day64 = '1970-01-02 12:00'", &[]),
        ("day64 < '1970-01-01 12:00'", &[0, 3]),
        ("not b", &[1]),
        ("b is not true", &[1, 2]),
        ("bin = X'ff'", &[1]),
        ("fixed >= 'ab'", &[1, 3]),
        ("fixed > 'a'", &[0, 1, 3]),
        ("fixed = 'a'", &[]),
        ("clock = '01:00:00'", &[3]),
        ("st.a is null", &[1, 2]),
        ("`ST`.`a` >= 3", &[3]),
        ("u > 18446744073709551614", &[3]),
        ("u >= -1", &[0, 1, 3]),
        ("dict = 'p'", &[0, 3]),
        ("dict > 'p'", &[1]),
        ("dict in ('q', 'z')", &[1]),
        ("true", &[0, 1, 2, 3]),
        ("null", &[]),
        ("not null or x = 1", &[0]),
        ("x=1 AND s='abc' OR NOT x<4", &[0, 3]),
    ];
    for (text, expected) in cases {
        assert_eq!(&sql(text), expected, "{text}");
    }
}

#[test]
fn syntax_errors_name_their_position() {
    for (text, message) in [
        ("", "position 1: expected a column or a literal, found the end"),
        ("x >", "position 4: expected a literal, found the end"),
        ("é = 1 1", "position 7: expected the end of the condition, found \"1\""),
        ("x in ()", "position 7: expected a literal, found \")\""),
        ("x is 5", "position 6: expected null, true or false"),
        ("x = 12abc", "position 5: cannot read \"12abc\""),
        ("x between 1 or 2", "position 13: expected and"),
        ("x = 'a", "position 5: cannot read"),
        ("x not 5", "position 7: expected in, between or like"),
        ("x = date '2014-13-01'", "is not a date"),
    ] {
        let e = parse::condition(text).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::InvalidArgument(_)), "{text}");
        assert!(e.to_string().contains(message), "{text}: {e}");
    }
    let deep = format!("{}x{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(parse::condition(&deep).unwrap_err().to_string().contains("nested deeper than 100"));
    for text in ["upper(s) = 'A'", "x = y", "1 = 1"] {
        assert!(matches!(parse::condition(text).unwrap_err().kind(), ErrorKind::Unsupported(_)), "{text}");
    }
}

#[test]
fn filters_that_do_not_fit_the_columns_are_errors() {
    for (text, message) in [
        ("zz = 1", "the filter names column `zz`; the columns are `x`, `s`"),
        ("x = 'a'", "column `x` of type Int32 cannot be compared with 'a'"),
        ("s > 5", "cannot be compared with 5"),
        ("st = 1", "cannot be compared"),
        ("x like 'a'", "'like' needs a string column"),
        ("st.zz = 1", "has no field `zz`"),
        ("b = 1", "cannot be compared"),
        ("ts < true", "cannot be compared"),
        ("ts < 'then'", "not a date or timestamp"),
        ("ts < '1970-01-01 00:00:00Z'", "without a time zone"),
        ("clock = 'noon'", "cannot be compared"),
    ] {
        let e = rows(&parse::condition(text).unwrap()).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Schema(_)), "{text}: {e}");
        assert!(e.to_string().contains(message), "{text}: {e}");
    }
}

#[test]
fn names_in_another_case_must_be_unambiguous() {
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    let schema =
        Schema::new(vec![field("A"), field("a"), field("Bc"), field("twice"), field("twice"), field("s.t")]);
    let name = |n: &str| resolve(&schema, n).map(|(path, _)| path).map_err(|e| e.to_string());
    assert_eq!(name("a").unwrap(), "a");
    assert_eq!(name("bC").unwrap(), "Bc");
    assert_eq!(name("S.T").unwrap(), "s.t");
    assert!(name("twice").unwrap_err().contains("which occurs 2 times"));
    let e = resolve(&Schema::new(vec![field("Ab"), field("aB")]), "AB").unwrap_err();
    assert!(e.to_string().contains("the filter names column `AB`"));
}

#[test]
fn known_columns_decide_a_filter() {
    let schema = Schema::new(vec![
        Field::new("p", DataType::Int64, true),
        Field::new("q", DataType::Utf8, true),
        Field::new("x", DataType::Int64, true),
    ]);
    let known = |name: &str| -> Option<ArrayRef> {
        match name {
            "p" => Some(Arc::new(Int64Array::from(vec![5]))),
            "q" => Some(Arc::new(StringArray::from(vec![None::<&str>]))),
            _ => None,
        }
    };
    for (text, left) in [
        ("p = 5 and x > 1", "x > 1"),
        ("p = 4 and x > 1", "false"),
        ("P = 5 or x > 1", "true"),
        ("p = 4 or x > 1", "x > 1"),
        ("q = 'a' and x > 1", "x > 1 and null"),
        ("q = 'a' or x > 1", "x > 1 or null"),
        ("not q = 'a'", "null"),
        ("q is null and not (p in (1, 2))", "true"),
        ("not x is null", "not x is null"),
        ("q like 'a%' or p in (5)", "true"),
        ("x in (1)", "x in (1)"),
    ] {
        let settled = parse::condition(text).unwrap().given(&schema, &known).unwrap();
        assert_eq!(settled, parse::condition(left).unwrap(), "{text}");
    }
    let never = |text: &str| parse::condition(text).unwrap().never_true();
    assert!(never("null") && never("false and x = 1") && never("false or null"));
    assert!(!never("x = 1 or null") && !never("true") && !never("not x = 1"));
}

#[test]
fn metadata_decides_what_may_match() {
    let bounds = |min: Option<ArrayRef>, max: Option<ArrayRef>| {
        let x = ColumnBounds { min, max, has_null: Some(false), has_value: Some(true) };
        move |name: &str| (name == "x").then(|| x.clone())
    };
    let may = |text: &str, min: ArrayRef, max: ArrayRef| {
        parse::condition(text).unwrap().may_match(&bounds(Some(min), Some(max)))
    };
    let number = |v: i32| -> ArrayRef { Arc::new(Int32Array::from(vec![v])) };
    for (text, expected) in [
        ("x = 9", false),
        ("x = 10", true),
        ("x = 20.5", false),
        ("x < 10", false),
        ("x <= 10", true),
        ("x > 20", false),
        ("x >= 20", true),
        ("x in (1, 30)", false),
        ("x in (1, 15)", true),
        ("x is null", false),
        ("not x = 9", true),
        ("not (x >= 10 and x <= 20)", false),
        ("not (x > 10 or y = 1)", true),
        ("x = 'a'", true),
        ("y = 1", true),
        ("null", false),
        ("x = 9 or y = 1", true),
        ("x = 9 and y = 1", false),
        ("x != 10", true),
    ] {
        assert_eq!(may(text, number(10), number(20)), expected, "{text}");
    }
    assert!(!may("x != 7", number(7), number(7)));
    assert!(!may("x > date '1970-01-03'", number(0), number(2)), "dates are kept as days");
    let micros = |v: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![v])) };
    for text in ["x > timestamp '1970-01-01 00:00:00.000003'", "x > timestamp '1970-01-01 00:00:00.000003Z'"]
    {
        assert!(!may(text, micros(0), micros(2)), "timestamps are kept as microseconds");
        assert!(may(text, micros(0), micros(4)));
    }
    let text = |v: &str| -> ArrayRef { Arc::new(StringArray::from(vec![v])) };
    assert!(!may("x = 'b'", text("c"), text("d")) && !may("x like 'b%'", text("c"), text("d")));
    let decimal = |v: i128| -> ArrayRef {
        Arc::new(Decimal128Array::from(vec![v]).with_precision_and_scale(30, 15).unwrap())
    };
    let tenth = 10_i128.pow(14);
    assert!(!may("x = 1.5", decimal(16 * tenth), decimal(17 * tenth)));
    assert!(may("x = '1.5'", decimal(16 * tenth), decimal(17 * tenth)), "text does not fit decimals");
    assert!(parse::condition("x = 1").unwrap().may_match(&bounds(None, None)));
    let nulls = ColumnBounds { has_null: Some(true), has_value: Some(false), ..ColumnBounds::default() };
    let only_nulls = |text: &str| parse::condition(text).unwrap().may_match(&|_| Some(nulls.clone()));
    assert!(!only_nulls("x = 1") && !only_nulls("x is not null") && only_nulls("x is null"));
}

/// For every Arrow type, a literal taken from an array can be compared with a column of that type.
#[test]
fn literals_of_arrays_fit_columns_of_their_type() {
    let table = table();
    let schema = table.schema();
    for (field, column) in schema.fields().iter().zip(table.columns()) {
        if field.data_type().is_nested() {
            continue;
        }
        let value = Literal::from_array(column, 0);
        let own = Condition::Compare { column: field.name().clone(), op: Op::Eq, value };
        assert!(rows(&own).unwrap().contains(&0), "{field}");
        let at = (0..column.len()).find(|i| column.is_null(*i)).unwrap();
        let null = Literal::from_array(column, at);
        let none = Condition::Compare { column: field.name().clone(), op: Op::Ne, value: null };
        assert!(rows(&none).unwrap().is_empty(), "{field}");
    }
}
