//! Random values of random types are the same after writing and reading; no bytes make a decoder panic.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "random bits become numbers of every width"
)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray,
    TimestampNanosecondArray, UnionArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use proptest::prelude::*;

use super::{cells, decoder, encode_with, encoder};
use crate::hive_type::{HiveType, interval_day_time_fields, map_entries, struct_fields, union_fields};
use crate::serde::{Cells, HiveVersion, SerdeOptions, TimestampUnit};

/// A random type.
fn any_type() -> impl Strategy<Value = HiveType> {
    let leaf = prop_oneof![
        Just(HiveType::Boolean),
        Just(HiveType::TinyInt),
        Just(HiveType::SmallInt),
        Just(HiveType::Int),
        Just(HiveType::BigInt),
        Just(HiveType::Float),
        Just(HiveType::Double),
        Just(HiveType::Decimal { precision: 38, scale: 7 }),
        Just(HiveType::Decimal { precision: 9, scale: 2 }),
        Just(HiveType::String),
        Just(HiveType::Char(6)),
        Just(HiveType::Varchar(6)),
        Just(HiveType::Binary),
        Just(HiveType::Date),
        Just(HiveType::Timestamp),
        Just(HiveType::TimestampLocalTz),
        Just(HiveType::IntervalYearMonth),
        Just(HiveType::IntervalDayTime),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|t| HiveType::Array(Box::new(t))),
            inner.clone().prop_map(|t| HiveType::Map(Box::new(HiveType::String), Box::new(t))),
            prop::collection::vec(inner.clone(), 1..11).prop_map(|t| HiveType::Struct(
                t.into_iter().enumerate().map(|(i, t)| (format!("f{i}"), t)).collect()
            )),
            prop::collection::vec(inner, 1..4).prop_map(HiveType::Union),
        ]
    })
}

/// An array of `len` values out of `seeds`, about one in five null.
fn array_of(hive_type: &HiveType, len: usize, seeds: &mut impl FnMut() -> u64, top_level: bool) -> ArrayRef {
    let null: Vec<bool> = (0..len).map(|_| seeds().is_multiple_of(5)).collect();
    let nulls = || Some(NullBuffer::from_iter(null.iter().map(|n| !n)));
    let mut narrow = |bits: u32| -> Vec<i64> {
        // All magnitudes, both signs.
        (0..len).map(|_| (seeds() as i64) >> (64 - bits) >> (seeds() % u64::from(bits))).collect()
    };
    macro_rules! primitive {
        ($array:ident, $bits:literal, $from:expr) => {
            Arc::new($array::new(narrow($bits).into_iter().map($from).collect::<Vec<_>>().into(), nulls()))
        };
    }
    match hive_type {
        HiveType::Boolean => {
            Arc::new(BooleanArray::new(narrow(8).into_iter().map(|v| v & 1 == 0).collect(), nulls()))
        }
        HiveType::TinyInt => primitive!(Int8Array, 8, |v| v as i8),
        HiveType::SmallInt => primitive!(Int16Array, 16, |v| v as i16),
        HiveType::Int | HiveType::IntervalYearMonth => primitive!(Int32Array, 32, |v| v as i32),
        HiveType::BigInt => primitive!(Int64Array, 64, |v| v),
        HiveType::Float => primitive!(Float32Array, 32, |v| v as f32),
        HiveType::Double => primitive!(Float64Array, 64, |v| v as f64),
        HiveType::Date => primitive!(Date32Array, 20, |v| v as i32),
        HiveType::Timestamp => primitive!(TimestampNanosecondArray, 63, |v| v),
        HiveType::TimestampLocalTz => {
            Arc::new(TimestampNanosecondArray::new(narrow(63).into(), nulls()).with_timezone("UTC"))
        }
        HiveType::Decimal { precision, scale } => {
            let limit = 10i128.pow((*precision).into());
            let values = narrow(64).into_iter().map(|v| (i128::from(v) * i128::from(v >> 7)) % limit);
            let array = Decimal128Array::new(values.collect::<Vec<_>>().into(), nulls());
            Arc::new(array.with_precision_and_scale(*precision, *scale as i8).unwrap())
        }
        HiveType::StringBytes => unreachable!("nothing is written as this type"),
        HiveType::String | HiveType::Char(_) | HiveType::Varchar(_) | HiveType::Binary => {
            let text = |v: i64| {
                let n = (v as u64 % 7) as usize;
                let text: String =
                    ["a", "", "ü", "漢", "😀", "q", "-"].iter().cycle().skip(n).take(n).copied().collect();
                match hive_type {
                    HiveType::Char(n) => format!("{text:<width$}", width = *n as usize),
                    // These values would be read as null.
                    HiveType::Varchar(_) | HiveType::Binary if top_level => text + "v",
                    _ => text,
                }
            };
            let values = narrow(32).into_iter().zip(&null).map(|(v, n)| (!n).then(|| text(v)));
            match hive_type {
                HiveType::Binary => {
                    let values: Vec<_> = values.map(|v| v.map(String::into_bytes)).collect();
                    Arc::new(BinaryArray::from_iter(values))
                }
                _ => Arc::new(StringArray::from_iter(values)),
            }
        }
        HiveType::IntervalDayTime => {
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int64Array::from(narrow(64))),
                Arc::new(Int32Array::from_iter_values(narrow(30).into_iter().map(|v| v as i32))),
            ];
            Arc::new(StructArray::new(interval_day_time_fields(), columns, nulls()))
        }
        HiveType::Array(element) => {
            let lengths: Vec<usize> =
                null.iter().map(|n| if *n { 0 } else { (seeds() % 12) as usize }).collect();
            let items = array_of(element, lengths.iter().sum(), seeds, false);
            let field = arrow_schema::Field::new("item", items.data_type().clone(), true);
            Arc::new(ListArray::new(Arc::new(field), OffsetBuffer::from_lengths(lengths), items, nulls()))
        }
        HiveType::Map(key, value) => {
            let lengths: Vec<usize> =
                null.iter().map(|n| if *n { 0 } else { (seeds() % 6) as usize }).collect();
            let total = lengths.iter().sum();
            let keys: ArrayRef = Arc::new(StringArray::from_iter_values((0..total).map(|i| i.to_string())));
            let entries = map_entries(key, value, TimestampUnit::Nanosecond);
            let arrow_schema::DataType::Struct(fields) = entries.data_type() else { unreachable!() };
            let columns = vec![keys, array_of(value, total, seeds, false)];
            let pairs = StructArray::try_new_with_length(fields.clone(), columns, None, total).unwrap();
            Arc::new(MapArray::new(
                entries.clone(),
                OffsetBuffer::from_lengths(lengths),
                pairs,
                nulls(),
                false,
            ))
        }
        HiveType::Struct(types) => {
            let fields = struct_fields(types, TimestampUnit::Nanosecond);
            let columns = types.iter().map(|(_, t)| array_of(t, len, seeds, false)).collect();
            Arc::new(StructArray::new(fields, columns, nulls()))
        }
        HiveType::Union(branches) => {
            let fields = union_fields(branches, TimestampUnit::Nanosecond);
            let tags: Vec<i8> = (0..len).map(|_| (seeds() % branches.len() as u64) as i8).collect();
            let columns = branches.iter().map(|t| array_of(t, len, seeds, false)).collect();
            Arc::new(UnionArray::try_new(fields, tags.into(), None, columns).unwrap())
        }
    }
}

/// The values as text. A null in a union is shown without its branch.
fn shown(array: &dyn Array) -> Vec<String> {
    (0..array.len()).map(|i| shown_value(array, i)).collect()
}

fn shown_value(array: &dyn Array, i: usize) -> String {
    if array.is_null(i) {
        return "null".to_owned();
    }
    match array.data_type() {
        arrow_schema::DataType::Union(..) => {
            let union = array.as_union();
            let value = shown_value(&union.value(i), 0);
            if value == "null" { value } else { format!("{}: {value}", union.type_id(i)) }
        }
        arrow_schema::DataType::List(_) => format!("{:?}", shown(&array.as_list::<i32>().value(i))),
        arrow_schema::DataType::Map(..) => format!("{:?}", shown(&array.as_map().value(i))),
        arrow_schema::DataType::Struct(_) => {
            format!("{:?}", array.as_struct().columns().iter().map(|c| shown_value(c, i)).collect::<Vec<_>>())
        }
        _ => format!("{:?}", array.slice(i, 1)),
    }
}

fn is_plain(hive_type: &HiveType) -> bool {
    match hive_type {
        HiveType::Union(_) => false,
        HiveType::Array(t) => is_plain(t),
        HiveType::Map(k, v) => is_plain(k) && is_plain(v),
        HiveType::Struct(fields) => fields.iter().all(|(_, t)| is_plain(t)),
        _ => true,
    }
}

fn random(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = state ^ (state >> 31);
        x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (x >> 29)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn written_and_read_values_are_equal(hive_type in any_type(), len in 0usize..70, seed: u64, version in 0..4) {
        let hive_version = [HiveVersion::V0_8, HiveVersion::V2_3, HiveVersion::V3_1, HiveVersion::V4_1][version as usize];
        // 0.8 wraps timestamps, and knows few types.
        let hive_version = hive_version.max(HiveVersion::V2_3);
        let timezone = (seed.is_multiple_of(2)).then_some(chrono_tz::UTC);
        let options = SerdeOptions { hive_version, timezone, ..Default::default() };
        let array = array_of(&hive_type, len, &mut random(seed), true);
        let (data, lengths) = encode_with(&hive_type, &array, &options).unwrap();
        let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|n| *n as usize));
        let written = Cells { data: Buffer::from_vec(data), offsets, nulled: false, first_row: 0 };
        let decoded = decoder(&hive_type, &options).unwrap().decode(&written).unwrap();
        if is_plain(&hive_type) {
            prop_assert_eq!(&decoded, &array);
        } else {
            // A null in a union comes back as a null of the first branch.
            prop_assert_eq!(shown(&decoded), shown(&array));
        }
        // The same cells are decoded in two parts.
        let half = len / 2;
        let (mut first, mut first_lengths) = (Vec::new(), Vec::new());
        let encoder = encoder(&hive_type, &options).unwrap();
        encoder.encode(&array, 0..half, &mut first, &mut first_lengths).unwrap();
        encoder.encode(&array, half..len, &mut first, &mut first_lengths).unwrap();
        prop_assert_eq!((&first[..], first_lengths), (written.data.as_slice(), lengths));
        let part = Cells { offsets: OffsetBuffer::new(written.offsets[half..].to_vec().into()), ..written };
        let decoded_part = decoder(&hive_type, &options).unwrap().decode(&part).unwrap();
        prop_assert_eq!(shown(&decoded_part), shown(&decoded.slice(half, len - half)));
    }

    #[test]
    fn random_cells_never_panic(
        hive_type in any_type(),
        random in prop::collection::vec(prop::collection::vec(prop_oneof![any::<u8>(), 0u8..4], 0..24), 0..20),
        hive_2: bool,
    ) {
        let hive_version = if hive_2 { HiveVersion::V2_3 } else { HiveVersion::V4_1 };
        let timezone = Some(chrono_tz::Europe::Berlin);
        let options = SerdeOptions { hive_version, timezone, ..Default::default() };
        let decoder = decoder(&hive_type, &options).unwrap();
        if let Ok(array) = decoder.decode(&cells(&random)) {
            prop_assert_eq!(array.len(), random.len());
            array.to_data().validate_full().unwrap();
        }
        for (i, cell) in random.iter().enumerate() {
            // Each cell gives the same result alone as together with the other cells.
            let alone = decoder.decode(&cells(&[cell]));
            if let Err(e) = alone {
                prop_assert!(e.structure().starts_with("row 0"), "{}: {}", i, e);
            }
        }
    }

    #[test]
    fn truncated_and_changed_cells_never_panic(hive_type in any_type(), seed: u64, at: usize, byte: u8) {
        let options = SerdeOptions::default();
        let array = array_of(&hive_type, 20, &mut random(seed), true);
        let (mut data, lengths) = encode_with(&hive_type, &array, &options).unwrap();
        if !data.is_empty() {
            let at = at % data.len();
            data[at] = byte;
        }
        let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|n| *n as usize));
        let decoder = decoder(&hive_type, &options).unwrap();
        for end in [data.len(), data.len() / 2] {
            let cells = Cells { data: Buffer::from(&data[..end]), offsets: offsets.clone(), nulled: false, first_row: 0 };
            if let Ok(array) = decoder.decode(&cells) {
                prop_assert_eq!(array.len(), 20);
            }
        }
    }
}
