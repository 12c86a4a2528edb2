//! Random arrays of random types are the same after writing and reading; random cells never panic.

use std::sync::Arc;

use arrow_array::types::{Decimal128Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, ListArray, MapArray, PrimitiveArray, StringArray, StructArray,
    UnionArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;

use super::{cells, decode_checked, encoded, options};
use crate::hive_type::{HiveType, interval_day_time_fields, map_entries, struct_fields, union_fields};
use crate::serde::{Cells, HiveVersion, TimestampUnit};

const UNIT: TimestampUnit = TimestampUnit::Microsecond;

/// Text with separators and escapes, except the default null format.
fn text() -> impl Strategy<Value = String> {
    "[a-zA-Zäß日 .\\\\,;:\u{2}\u{3}\u{4}\r\n]{0,7}".prop_filter("null", |s| s != "\\N")
}

/// `len` values of a type.
fn values(hive_type: &HiveType, len: usize, nullable: bool) -> BoxedStrategy<ArrayRef> {
    let weight = if nullable { 0.8 } else { 1.0 };
    macro_rules! column {
        ($value:expr, $make:expr) => {
            vec(option::weighted(weight, $value), len)
                .prop_map(move |v| -> ArrayRef { Arc::new($make(v)) })
                .boxed()
        };
    }
    match hive_type {
        HiveType::Boolean => column!(any::<bool>(), BooleanArray::from),
        HiveType::TinyInt => column!(any::<i8>(), Int8Array::from),
        HiveType::SmallInt => column!(any::<i16>(), Int16Array::from),
        HiveType::Int => column!(any::<i32>(), Int32Array::from),
        HiveType::IntervalYearMonth => column!(-i32::MAX..i32::MAX, Int32Array::from),
        HiveType::BigInt => column!(any::<i64>(), Int64Array::from),
        HiveType::Float => column!(any::<f32>(), Float32Array::from),
        HiveType::Double => column!(any::<f64>(), Float64Array::from),
        HiveType::Decimal { precision, scale } => {
            let bound = 10i128.pow(u32::from(*precision));
            let (precision, scale) = (*precision, i8::try_from(*scale).unwrap());
            column!(1 - bound..bound, |v| PrimitiveArray::<Decimal128Type>::from(v)
                .with_precision_and_scale(precision, scale)
                .unwrap())
        }
        HiveType::String => column!(text(), StringArray::from),
        HiveType::Varchar(n) => column!(text().prop_map(cut(*n)), StringArray::from),
        HiveType::Char(n) => {
            let (limit, n) = (*n, *n as usize);
            column!(text().prop_map(cut(limit)).prop_map(move |s| format!("{s:<n$}")), StringArray::from)
        }
        HiveType::StringBytes => unreachable!("nothing is written as this type"),
        HiveType::Binary => {
            column!(vec(any::<u8>(), 0..9), |v: Vec<Option<Vec<u8>>>| { BinaryArray::from_iter(v) })
        }
        HiveType::Date => column!(-700_000i32..2_900_000, Date32Array::from),
        HiveType::Timestamp | HiveType::TimestampLocalTz => {
            let data_type = hive_type.to_arrow(UNIT);
            column!(-60_000_000_000_000_000i64..250_000_000_000_000_000, |v| {
                PrimitiveArray::<TimestampMicrosecondType>::from(v).with_data_type(data_type.clone())
            })
        }
        HiveType::IntervalDayTime => {
            let part = (0..100_000_000_000_000i64, 0..1_000_000_000i32, any::<bool>());
            column!(part, interval_day_time)
        }
        HiveType::Array(element) => list(element, len),
        HiveType::Map(key, value) => map(key, value, len),
        HiveType::Struct(fields) => {
            let columns: Vec<_> = fields.iter().map(|(_, t)| values(t, len, true)).collect();
            let fields = struct_fields(fields, UNIT);
            (columns, nulls(len))
                .prop_map(move |(columns, nulls)| -> ArrayRef {
                    Arc::new(StructArray::new(fields.clone(), columns, nulls))
                })
                .boxed()
        }
        HiveType::Union(branches) => union(branches, len),
    }
}

fn cut(n: u32) -> impl Fn(String) -> String + Clone {
    move |s| s.chars().take(n as usize).collect::<String>()
}

fn nulls(len: usize) -> impl Strategy<Value = Option<NullBuffer>> {
    vec(any::<bool>(), len).prop_map(|v| Some(NullBuffer::from(v)))
}

fn interval_day_time(values: Vec<Option<(i64, i32, bool)>>) -> StructArray {
    let signed =
        |v: &Option<(i64, i32, bool)>| v.map(|(s, n, negative)| if negative { (-s, -n) } else { (s, n) });
    let seconds: Int64Array = values.iter().map(|v| signed(v).map(|(s, _)| s)).collect();
    let nanos: Int32Array = values.iter().map(|v| signed(v).map(|(_, n)| n)).collect();
    let nulls = NullBuffer::from_iter(values.iter().map(Option::is_some));
    StructArray::new(interval_day_time_fields(), vec![Arc::new(seconds), Arc::new(nanos)], Some(nulls))
}

/// Creates lists of two elements or more: Hive cannot distinguish `[null]` from null, and `[""]` from `[]`.
fn list(element: &HiveType, len: usize) -> BoxedStrategy<ArrayRef> {
    let element = element.clone();
    (vec(prop_oneof![Just(0usize), 2..4usize], len), nulls(len))
        .prop_flat_map(move |(lengths, nulls)| {
            let lengths: Vec<usize> =
                lengths.into_iter().zip(nulls.iter().flatten()).map(|(n, v)| if v { n } else { 0 }).collect();
            let field = Arc::new(Field::new("item", element.to_arrow(UNIT), true));
            values(&element, lengths.iter().sum(), true).prop_map(move |values| -> ArrayRef {
                let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
                Arc::new(ListArray::new(field.clone(), offsets, values, nulls.clone()))
            })
        })
        .boxed()
}

/// Creates maps whose keys count from 0.
fn map(key: &HiveType, value: &HiveType, len: usize) -> BoxedStrategy<ArrayRef> {
    let (key, value) = (key.clone(), value.clone());
    (vec(0..3usize, len), nulls(len))
        .prop_flat_map(move |(lengths, nulls)| {
            let lengths: Vec<usize> =
                lengths.into_iter().zip(nulls.iter().flatten()).map(|(n, v)| if v { n } else { 0 }).collect();
            let entries = map_entries(&key, &value, UNIT);
            let numbers: Vec<usize> = lengths.iter().flat_map(|n| 0..*n).collect();
            values(&value, numbers.len(), true).prop_map(move |values| -> ArrayRef {
                let keys: ArrayRef = match entries.data_type() {
                    DataType::Struct(fields) if *fields[0].data_type() == DataType::Utf8 => {
                        Arc::new(StringArray::from_iter_values(numbers.iter().map(|n| format!("k{n}"))))
                    }
                    _ => Arc::new(Int32Array::from_iter_values(
                        numbers.iter().map(|n| i32::try_from(*n).unwrap()),
                    )),
                };
                let DataType::Struct(fields) = entries.data_type().clone() else { unreachable!() };
                let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
                let entry_array = StructArray::new(fields, vec![keys, values], None);
                Arc::new(MapArray::new(entries.clone(), offsets, entry_array, nulls.clone(), false))
            })
        })
        .boxed()
}

fn union(branches: &[HiveType], len: usize) -> BoxedStrategy<ArrayRef> {
    let count = i8::try_from(branches.len()).unwrap();
    let columns: Vec<_> = branches.iter().map(|t| values(t, len, true)).collect();
    let fields = union_fields(branches, UNIT);
    (vec(0..count, len), columns)
        .prop_map(move |(ids, columns)| -> ArrayRef {
            Arc::new(UnionArray::try_new(fields.clone(), ScalarBuffer::from(ids), None, columns).unwrap())
        })
        .boxed()
}

fn any_type() -> impl Strategy<Value = HiveType> {
    let leaf = prop_oneof![
        Just(HiveType::Boolean),
        Just(HiveType::TinyInt),
        Just(HiveType::SmallInt),
        Just(HiveType::Int),
        Just(HiveType::BigInt),
        Just(HiveType::Float),
        Just(HiveType::Double),
        (1u8..=38, 0u8..=38).prop_map(|(p, s)| HiveType::Decimal { precision: p, scale: s.min(p) }),
        Just(HiveType::String),
        (1u32..6).prop_map(HiveType::Varchar),
        (1u32..6).prop_map(HiveType::Char),
        Just(HiveType::Binary),
        Just(HiveType::Date),
        Just(HiveType::Timestamp),
        Just(HiveType::TimestampLocalTz),
        Just(HiveType::IntervalYearMonth),
        Just(HiveType::IntervalDayTime),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let key = prop_oneof![Just(HiveType::Int), Just(HiveType::String)];
        prop_oneof![
            inner.clone().prop_map(|t| HiveType::Array(Box::new(t))),
            (key, inner.clone()).prop_map(|(k, v)| HiveType::Map(Box::new(k), Box::new(v))),
            vec(inner.clone(), 2..4).prop_map(|ts| HiveType::Struct(
                ts.into_iter().zip('a'..).map(|(t, n)| (n.into(), t)).collect()
            )),
            vec(inner, 1..4).prop_map(HiveType::Union),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The cells are compared, because the arrays may differ under a null or in a union's other branches.
    #[test]
    fn cells_are_equal_after_reading_and_writing(
        (hive_type, array) in any_type().prop_flat_map(|t| (Just(t.clone()), values(&t, 9, true))),
        version in prop_oneof![Just(HiveVersion::V3_1), Just(HiveVersion::V4_1)],
    ) {
        let options = options(version, &[("escape.delim", "\\"), ("serialization.escape.crlf", "true"),
            ("hive.serialization.extend.nesting.levels", "true"), ("serialization.null.format", "\u{7f}")]);
        let first = encoded(&hive_type, &options, &array);
        let read = decode_checked(&hive_type, &options, &cells(&first));
        if hive_type.is_primitive() {
            prop_assert_eq!(&read, &array);
        }
        prop_assert_eq!(encoded(&hive_type, &options, &read), first);
    }

    #[test]
    fn random_cells_never_panic(
        hive_type in any_type(),
        bytes in vec(vec(prop_oneof![any::<u8>(), 0u8..8, b'+'..b':', Just(b'\\'), Just(b'e')], 0..40), 0..9),
        version in prop_oneof![Just(HiveVersion::V0_8), Just(HiveVersion::V2_3), Just(HiveVersion::V3_1), Just(HiveVersion::V4_1)],
        escaped in any::<bool>(),
        formats in any::<bool>(),
    ) {
        let escape = if escaped { [("escape.delim", "\\")].as_slice() } else { &[] };
        let formats = if formats { [("timestamp.formats", "yyyyMMdd,d/M/y h:mm a,millis,MMM dd HH:mm:ss.SSS")].as_slice() } else { &[] };
        let all = [escape, formats, &[("hive.serialization.extend.nesting.levels", "true")]].concat();
        decode_checked(&hive_type, &options(version, &all), &cells(&bytes));
    }

    #[test]
    fn fast_and_slow_parsers_agree(text in "[-+]?[0-9]{0,20}(\\.[0-9]{0,12})?|[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?)?") {
        // Far from the buffer's end whole words are loaded; at its end they are not.
        for name in [HiveType::BigInt, HiveType::TinyInt, HiveType::Date, HiveType::Timestamp, HiveType::Double,
            HiveType::Decimal { precision: 12, scale: 2 }, HiveType::Decimal { precision: 18, scale: 0 }] {
            for version in [HiveVersion::V2_3, HiveVersion::V4_1] {
                let options = options(version, &[]);
                let roomy = decode_checked(&name, &options, &cells(&[text.as_str(), "                    "]));
                let tight: Cells = cells(&[&text]);
                let tight = decode_checked(&name, &options, &tight);
                prop_assert_eq!(&roomy.slice(0, 1), &tight);
            }
        }
    }
}
