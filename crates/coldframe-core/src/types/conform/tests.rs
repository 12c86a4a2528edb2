//! Tests each conversion with whole arrays and with slices.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Result;
use arrow_array::builder::{Int32Builder, ListViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit, UnionFields};

use super::conform;

fn schema(kind: DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("x", kind, true)]))
}

fn batch(array: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("x", array, true)]).unwrap()
}

fn made(array: &ArrayRef, kind: &DataType) -> Result<ArrayRef> {
    let made = conform(&batch(array.clone()), &schema(kind.clone()))?;
    assert_eq!(made.schema(), schema(kind.clone()));
    made.column(0).to_data().validate_full().unwrap();
    Ok(made.column(0).clone())
}

/// Checks that `array` becomes `expected`, and each slice of `array` the same slice of `expected`.
#[track_caller]
fn becomes(array: impl Array + 'static, expected: impl Array + 'static) {
    let (array, expected): (ArrayRef, ArrayRef) = (Arc::new(array), Arc::new(expected));
    let rows = array.len();
    for (start, length) in [(0, rows), (1, rows - 1), (1, rows - 2), (rows, 0), (rows - 1, 1)] {
        let converted = made(&array.slice(start, length), expected.data_type()).unwrap();
        assert_eq!(&converted, &expected.slice(start, length), "rows {start} to {}", start + length);
    }
}

#[track_caller]
fn refused(array: impl Array + 'static, kind: DataType, message: &str) {
    let error = made(&(Arc::new(array) as ArrayRef), &kind).unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
    assert!(error.contains("column x"), "{error}");
}

fn field(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, true)
}

#[test]
fn columns_of_the_target_type_are_not_copied() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let target = Arc::new(
        schema(DataType::Int64).as_ref().clone().with_metadata(HashMap::from([("k".into(), "v".into())])),
    );
    let converted = conform(&batch(column.clone()), &target).unwrap();
    assert_eq!(converted.schema(), target);
    assert!(Arc::ptr_eq(converted.column(0), &column));
}

#[test]
fn names_that_differ_are_refused() {
    let target = Arc::new(Schema::new(vec![field("y", DataType::Int64)]));
    let error = conform(&batch(Arc::new(Int64Array::from(vec![1]))), &target).unwrap_err();
    assert!(error.to_string().contains(r#"expected columns ["y"], found ["x"]"#), "{error}");
}

#[test]
fn batches_without_columns_keep_their_number_of_rows() {
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let none = RecordBatch::try_new_with_options(
        Arc::new(Schema::new_with_metadata(Fields::empty(), HashMap::from([("a".into(), "b".into())]))),
        vec![],
        &options,
    );
    assert_eq!(conform(&none.unwrap(), &Arc::new(Schema::empty())).unwrap().num_rows(), 3);
}

#[test]
fn nulls_in_fields_that_are_not_nullable_are_refused() {
    let denied = |kind| Arc::new(Schema::new(vec![Field::new("x", kind, false)]));
    let column = batch(Arc::new(Int32Array::from(vec![Some(1), None, None])));
    let error = conform(&column, &denied(DataType::Int64)).unwrap_err().to_string();
    assert!(error.contains("column x is declared NOT NULL, found 2 nulls"), "{error}");
    let error = conform(&column, &denied(DataType::Int32)).unwrap_err().to_string();
    assert!(error.contains("found 2 nulls"), "{error}");
    assert!(conform(&column.slice(0, 1), &denied(DataType::Int64)).is_ok());
    let error =
        conform(&batch(Arc::new(NullArray::new(4))), &denied(DataType::Utf8)).unwrap_err().to_string();
    assert!(error.contains("found 4 nulls"), "{error}");
    // An index may be valid while the entry that it refers to is null.
    let entries = StringArray::from(vec![None, Some("b")]);
    let dictionary = DictionaryArray::new(Int8Array::from(vec![0, 1, 0]), Arc::new(entries));
    let error = conform(&batch(Arc::new(dictionary)), &denied(DataType::Utf8)).unwrap_err().to_string();
    assert!(error.contains("found 2 nulls"), "{error}");
}

#[test]
fn nulls_in_nested_fields_that_are_not_nullable_are_refused() {
    let list = |nullable| DataType::List(Arc::new(Field::new("item", DataType::Int64, nullable)));
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1)]), Some(vec![None])]);
    refused(lists.clone(), list(false), "column x.element is declared NOT NULL, found 1 nulls");
    assert!(made(&(Arc::new(lists.slice(0, 1)) as ArrayRef), &list(false)).is_ok());

    let child: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let nullable = Fields::from(vec![field("a", DataType::Int64)]);
    let denying = DataType::Struct(Fields::from(vec![Field::new("a", DataType::Int64, false)]));
    let structs = StructArray::new(nullable.clone(), vec![child.clone()], None);
    refused(structs, denying.clone(), "column x.a is declared NOT NULL, found 1 nulls");
    // A null inside an enclosing null is allowed, although the field is not nullable.
    let structs = StructArray::new(nullable, vec![child], Some(NullBuffer::from(vec![true, false])));
    assert_eq!(made(&(Arc::new(structs) as ArrayRef), &denying).unwrap().null_count(), 1);
}

#[test]
fn integers_fit_or_are_refused() {
    becomes(Int32Array::from(vec![Some(-5), None, Some(7)]), Int64Array::from(vec![Some(-5), None, Some(7)]));
    becomes(Int64Array::from(vec![Some(-5), None, Some(7)]), Int8Array::from(vec![Some(-5), None, Some(7)]));
    becomes(UInt64Array::from(vec![u64::MAX, 0, 1]), {
        let wide = Decimal128Array::from(vec![i128::from(u64::MAX), 0, 1]);
        wide.with_precision_and_scale(20, 0).unwrap()
    });
    refused(Int64Array::from(vec![300]), DataType::Int8, "column x: expected Int8, found Int64 (");
    refused(Int64Array::from(vec![-1]), DataType::UInt64, "expected UInt64");
    // The bytes under a null are arbitrary.
    let hidden = Int64Array::new(vec![300, 1].into(), Some(NullBuffer::from(vec![false, true])));
    assert_eq!(made(&(Arc::new(hidden) as ArrayRef), &DataType::Int8).unwrap().null_count(), 1);
}

#[test]
fn integers_become_floats_only_if_exact() {
    let (large, larger) = (1_i64 << 60, (1_i64 << 53) + 1);
    becomes(Int64Array::from(vec![large, -3, 0]), Float64Array::from(vec![large as f64, -3.0, 0.0]));
    refused(Int64Array::from(vec![0, larger]), DataType::Float64, "would change");
    refused(Int64Array::from(vec![i64::MAX]), DataType::Float64, "would change");
    refused(UInt64Array::from(vec![u64::MAX]), DataType::Float64, "would change");
    refused(Int32Array::from(vec![(1 << 24) + 1]), DataType::Float32, "would change");
    refused(Int16Array::from(vec![2049]), DataType::Float16, "would change");
    becomes(Int16Array::from(vec![i16::MIN, 1, 2]), Float32Array::from(vec![-32768.0, 1.0, 2.0]));
    let hidden = Int64Array::new(vec![larger, 1].into(), Some(NullBuffer::from(vec![false, true])));
    assert_eq!(made(&(Arc::new(hidden) as ArrayRef), &DataType::Float64).unwrap().null_count(), 1);
}

#[test]
fn only_floats_without_a_fraction_become_integers() {
    becomes(
        Float64Array::from(vec![Some(-0.0), None, Some(7.0)]),
        Int32Array::from(vec![Some(0), None, Some(7)]),
    );
    for wrong in [1.5, f64::NAN, f64::INFINITY, 2_f64.powi(31)] {
        refused(Float64Array::from(vec![0.0, wrong]), DataType::Int32, "expected Int32, found Float64");
    }
    refused(Float64Array::from(vec![2_f64.powi(63)]), DataType::Int64, "expected Int64");
}

#[test]
fn floats_may_round_into_floats() {
    becomes(Float64Array::from(vec![0.1, 1e300, -1.0]), Float32Array::from(vec![0.1, f32::INFINITY, -1.0]));
    becomes(
        Float32Array::from(vec![Some(0.5), None, Some(1.0)]),
        Float64Array::from(vec![Some(0.5), None, Some(1.0)]),
    );
}

#[test]
fn decimals_keep_their_digits() {
    let decimals = |values: Vec<Option<i128>>, precision, scale| {
        Decimal128Array::from(values).with_precision_and_scale(precision, scale).unwrap()
    };
    let values = decimals(vec![Some(120), None, Some(-250)], 9, 2);
    becomes(values.clone(), decimals(vec![Some(12), None, Some(-25)], 9, 1));
    becomes(values.clone(), decimals(vec![Some(120_000), None, Some(-250_000)], 20, 5));
    becomes(values, {
        let wide = vec![Some(i256::from(120)), None, Some(i256::from(-250))];
        Decimal256Array::from(wide).with_precision_and_scale(50, 2).unwrap()
    });
    refused(decimals(vec![Some(125)], 9, 2), DataType::Decimal128(9, 1), "would change");
    refused(decimals(vec![Some(12_345)], 9, 2), DataType::Decimal128(4, 2), "expected Decimal128(4, 2)");
    // A value that gets one more digit by rounding up must still be refused.
    refused(decimals(vec![Some(999)], 3, 1), DataType::Decimal128(3, 0), "would change");
    becomes(
        decimals(vec![Some(200), None, Some(-100)], 9, 2),
        Int32Array::from(vec![Some(2), None, Some(-1)]),
    );
    refused(decimals(vec![Some(199)], 9, 2), DataType::Int32, "would change");
    becomes(
        Int32Array::from(vec![Some(2), None, Some(-1)]),
        decimals(vec![Some(200), None, Some(-100)], 9, 2),
    );
    refused(Int32Array::from(vec![12_345]), DataType::Decimal128(6, 2), "expected Decimal128(6, 2)");
    becomes(
        decimals(vec![Some(125), None, Some(0)], 9, 2),
        Float64Array::from(vec![Some(1.25), None, Some(0.0)]),
    );
    becomes(
        Float64Array::from(vec![Some(1.25), None, Some(0.0)]),
        decimals(vec![Some(125), None, Some(0)], 9, 2),
    );
    refused(Float64Array::from(vec![f64::NAN]), DataType::Decimal128(9, 2), "expected Decimal128(9, 2)");
}

#[test]
fn decimals_beyond_their_precision_are_refused() {
    let huge = i256::from_i128(i128::MAX).wrapping_mul(i256::from(4));
    let wide = |nulls: Option<Vec<bool>>| {
        let values = vec![huge, i256::from(120)];
        let made = Decimal256Array::new(values.into(), nulls.map(NullBuffer::from));
        made.with_precision_and_scale(9, 2).unwrap()
    };
    refused(wide(None), DataType::Decimal128(9, 2), "expected Decimal128(9, 2)");
    refused(wide(None), DataType::Decimal256(76, 40), "expected Decimal256(76, 40)");
    // The bytes under a null are arbitrary.
    let hidden: ArrayRef = Arc::new(wide(Some(vec![false, true])));
    let narrow = Decimal128Array::from(vec![None, Some(120)]).with_precision_and_scale(9, 2).unwrap();
    assert_eq!(made(&hidden, &DataType::Decimal128(9, 2)).unwrap().as_ref(), &narrow as &dyn Array);
}

#[test]
fn text_and_bytes_convert_between_all_layouts() {
    let text = || StringArray::from(vec![Some("é"), None, Some("more than twelve bytes")]);
    let plain = || BinaryArray::from_iter(text().iter().map(|t| t.map(str::as_bytes)));
    becomes(LargeStringArray::from_iter(&text()), text());
    becomes(StringViewArray::from_iter(&text()), text());
    becomes(StringViewArray::from_iter(&text()), plain());
    becomes(text(), plain());
    becomes(plain(), text());
    becomes(LargeBinaryArray::from_iter(&plain()), LargeStringArray::from_iter(&text()));
    becomes(LargeBinaryArray::from_iter(&plain()), text());
    becomes(BinaryViewArray::from_iter(&plain()), plain());
    becomes(BinaryViewArray::from_iter(&plain()), text());
    let five = [Some("abcde"), None, Some("12345")];
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(five.into_iter(), 5).unwrap();
    becomes(fixed.clone(), BinaryArray::from_iter(five.iter().map(|t| t.map(str::as_bytes))));
    becomes(fixed.clone(), StringArray::from(five.to_vec()));
    becomes(StringViewArray::from(five.to_vec()), fixed);
    refused(StringArray::from(vec!["abc"]), DataType::FixedSizeBinary(5), "expected FixedSizeBinary(5)");
}

#[test]
fn bytes_become_text_only_if_utf8() {
    let broken: Vec<Option<&[u8]>> = vec![Some(b"a"), None, Some(b"\xff"), Some(b"b")];
    for (array, kind) in [
        (Arc::new(BinaryArray::from(broken.clone())) as ArrayRef, DataType::Utf8),
        (Arc::new(LargeBinaryArray::from(broken.clone())), DataType::LargeUtf8),
        (Arc::new(LargeBinaryArray::from(broken.clone())), DataType::Utf8),
        (Arc::new(BinaryViewArray::from(broken)), DataType::Utf8View),
    ] {
        let error = made(&array, &kind).unwrap_err().to_string();
        assert!(error.contains("a value is not UTF-8"), "{error}");
        assert_eq!(made(&array.slice(0, 2), &kind).unwrap().null_count(), 1);
        assert_eq!(made(&array.slice(3, 1), &kind).unwrap().null_count(), 0);
    }
    // The bytes under a null are not a value, and a character must not be split between two values.
    let spans = |offsets: Vec<i32>, bytes: &[u8], nulls: Option<Vec<bool>>| {
        let offsets = OffsetBuffer::new(offsets.into());
        BinaryArray::new(offsets, bytes.into(), nulls.map(NullBuffer::from))
    };
    let hidden: ArrayRef = Arc::new(spans(vec![0, 1, 2, 3], b"a\xffb", Some(vec![true, false, true])));
    let text = made(&hidden, &DataType::Utf8).unwrap();
    assert_eq!(text.as_ref(), &StringArray::from(vec![Some("a"), None, Some("b")]) as &dyn Array);
    refused(spans(vec![0, 1, 2], "é".as_bytes(), None), DataType::Utf8, "not UTF-8");
}

#[test]
fn timestamps_convert_to_other_units() {
    let nanos = vec![Some(-1), None, Some(-1000), Some(1999), Some(i64::MIN)];
    let micros = vec![Some(-1), None, Some(-1), Some(1), Some(-9_223_372_036_854_776)];
    becomes(TimestampNanosecondArray::from(nanos), TimestampMicrosecondArray::from(micros));
    becomes(
        TimestampSecondArray::from(vec![Some(-2), None, Some(3)]),
        TimestampMicrosecondArray::from(vec![Some(-2_000_000), None, Some(3_000_000)]),
    );
    becomes(
        TimestampMicrosecondArray::from(vec![Some(-2_000), None, Some(3_000)]),
        TimestampMillisecondArray::from(vec![Some(-2), None, Some(3)]),
    );
    // Nanoseconds are first rounded down to microseconds, whose digits must all survive.
    becomes(
        TimestampNanosecondArray::from(vec![-1_999_999, 5_000_999, 0]).slice(1, 2),
        TimestampMillisecondArray::from(vec![5, 0]),
    );
    let millis = DataType::Timestamp(TimeUnit::Millisecond, None);
    refused(TimestampMicrosecondArray::from(vec![1]), millis.clone(), "does not fit Timestamp(ms)");
    refused(TimestampNanosecondArray::from(vec![-1]), millis, "would lose digits");
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    refused(TimestampSecondArray::from(vec![i64::MAX / 1000]), micros.clone(), "does not fit");
    let hidden =
        TimestampSecondArray::new(vec![i64::MAX, 1].into(), Some(NullBuffer::from(vec![false, true])));
    assert_eq!(made(&(Arc::new(hidden) as ArrayRef), &micros).unwrap().null_count(), 1);
}

#[test]
fn an_instant_is_not_a_wall_clock() {
    let instants = TimestampNanosecondArray::from(vec![-1, 5_000, 0]);
    becomes(
        instants.clone().with_timezone("America/New_York"),
        TimestampMicrosecondArray::from(vec![-1, 5, 0]).with_timezone("UTC"),
    );
    becomes(instants.clone().with_timezone("+02:00"), instants.clone().with_timezone("UTC"));
    let utc = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    refused(instants.clone(), utc, "an instant is not a wall clock time");
    let bare = DataType::Timestamp(TimeUnit::Microsecond, None);
    refused(instants.with_timezone("UTC"), bare, "an instant is not a wall clock time");
}

#[test]
fn dates_times_and_durations_convert_if_exact() {
    let day = 86_400_000;
    becomes(
        Date64Array::from(vec![Some(-day), None, Some(2 * day)]),
        Date32Array::from(vec![Some(-1), None, Some(2)]),
    );
    becomes(
        Date32Array::from(vec![Some(-1), None, Some(2)]),
        Date64Array::from(vec![Some(-day), None, Some(2 * day)]),
    );
    refused(Date64Array::from(vec![day + 1]), DataType::Date32, "would change");
    refused(Date64Array::from(vec![i64::MAX]), DataType::Date32, "expected Date32");
    becomes(
        Time32MillisecondArray::from(vec![Some(5), None, Some(6)]),
        Time64NanosecondArray::from(vec![Some(5_000_000), None, Some(6_000_000)]),
    );
    becomes(Time64MicrosecondArray::from(vec![5_000, 0, 1_000]), Time32MillisecondArray::from(vec![5, 0, 1]));
    refused(
        Time64MicrosecondArray::from(vec![5_001]),
        DataType::Time32(TimeUnit::Millisecond),
        "would change",
    );
    becomes(
        DurationMillisecondArray::from(vec![Some(-5), None, Some(6)]),
        DurationMicrosecondArray::from(vec![Some(-5_000), None, Some(6_000)]),
    );
    refused(
        DurationMicrosecondArray::from(vec![-1]),
        DataType::Duration(TimeUnit::Millisecond),
        "would change",
    );
    refused(
        DurationSecondArray::from(vec![i64::MAX]),
        DataType::Duration(TimeUnit::Millisecond),
        "expected Duration(ms)",
    );
}

#[test]
fn types_of_different_families_are_refused() {
    let number = || Int64Array::from(vec![1]);
    refused(number(), DataType::Boolean, "column x: expected Boolean, found Int64");
    refused(number(), DataType::Utf8, "expected Utf8");
    refused(number(), DataType::Date64, "expected Date64");
    refused(number(), DataType::Timestamp(TimeUnit::Microsecond, None), "expected Timestamp");
    refused(StringArray::from(vec!["1"]), DataType::Int64, "expected Int64");
    refused(BooleanArray::from(vec![true]), DataType::Int64, "expected Int64");
    refused(
        Date32Array::from(vec![1]),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        "expected Timestamp",
    );
    refused(
        Time64NanosecondArray::from(vec![1]),
        DataType::Duration(TimeUnit::Nanosecond),
        "expected Duration",
    );
    refused(number(), DataType::List(Arc::new(field("item", DataType::Int64))), "expected List");
    refused(number(), DataType::Struct(Fields::from(vec![field("a", DataType::Int64)])), "expected Struct");
}

#[test]
fn dictionaries_runs_and_nulls_become_plain_values() {
    let text = StringArray::from(vec![Some("a"), None, Some("c"), None, Some("a")]);
    let entries = LargeStringArray::from(vec![Some("a"), None, Some("c")]);
    let keys = Int8Array::from(vec![Some(0), Some(1), Some(2), None, Some(0)]);
    becomes(DictionaryArray::new(keys, Arc::new(entries)), text.clone());
    let runs = RunArray::<Int16Type>::try_new(
        &Int16Array::from(vec![2, 5, 6]),
        &Int32Array::from(vec![Some(7), None, Some(9)]),
    );
    becomes(runs.unwrap(), Int64Array::from(vec![Some(7), Some(7), None, None, None, Some(9)]));
    becomes(NullArray::new(3), Int64Array::from(vec![None::<i64>; 3]));
    becomes(NullArray::new(3), StringArray::from(vec![None::<&str>; 3]));
    let structs = DataType::Struct(Fields::from(vec![field("a", DataType::Utf8)]));
    becomes(NullArray::new(3), new_null_array(&structs, 3).as_struct().clone());
}

fn longs(lists: Vec<Option<Vec<Option<i64>>>>) -> ListArray {
    let made = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
    let (_, offsets, values, nulls) = made.into_parts();
    ListArray::new(Arc::new(field("element", DataType::Int64)), offsets, values, nulls)
}

#[test]
fn lists_of_any_layout_become_plain_lists() {
    let rows = vec![Some(vec![Some(1), None]), None, Some(vec![]), Some(vec![Some(4), Some(5), Some(6)])];
    becomes(ListArray::from_iter_primitive::<Int32Type, _, _>(rows_of(&rows)), longs(rows.clone()));
    becomes(LargeListArray::from_iter_primitive::<Int32Type, _, _>(rows_of(&rows)), longs(rows.clone()));
    let mut views = ListViewBuilder::new(Int32Builder::new());
    rows_of(&rows).into_iter().for_each(|row| views.append_option(row));
    becomes(views.finish(), longs(rows));
    // List views in another order: two of them share elements, and one is null.
    let values: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
    let item = Arc::new(field("item", DataType::Int32));
    let nulls = Some(NullBuffer::from(vec![true, true, false, true]));
    let views = ListViewArray::new(
        item.clone(),
        vec![2, 1, 0, 0].into(),
        vec![2, 3, 4, 0].into(),
        values.clone(),
        nulls.clone(),
    );
    let some = |values: &[i64]| Some(values.iter().copied().map(Some).collect::<Vec<_>>());
    becomes(views, longs(vec![some(&[3, 4]), some(&[2, 3, 4]), None, some(&[])]));
    let pairs = FixedSizeListArray::new(item.clone(), 1, values.clone(), nulls);
    becomes(pairs, longs(vec![some(&[1]), some(&[2]), None, some(&[4])]));
    let quads = FixedSizeListArray::new(item, 2, Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5, 6])), None);
    becomes(quads, longs(vec![some(&[1, 2]), some(&[3, 4]), some(&[5, 6])]));
}

fn rows_of(rows: &[Option<Vec<Option<i64>>>]) -> Vec<Option<Vec<Option<i32>>>> {
    let narrow = |value: &Option<i64>| value.map(|value| i32::try_from(value).unwrap());
    rows.iter().map(|row| row.as_ref().map(|row| row.iter().map(narrow).collect())).collect()
}

#[test]
fn only_the_elements_of_a_slice_are_converted() {
    let rows = vec![Some(vec![Some(1_i64 << 40)]), Some(vec![Some(2)]), Some(vec![Some(1 << 41)])];
    let lists: ArrayRef = Arc::new(longs(rows));
    let narrow = DataType::List(Arc::new(field("element", DataType::Int32)));
    let error = made(&lists, &narrow).unwrap_err().to_string();
    assert!(error.contains("column x.element: expected Int32, found Int64"), "{error}");
    assert_eq!(made(&lists.slice(1, 1), &narrow).unwrap().as_list::<i32>().values().len(), 1);
}

#[test]
fn keys_and_values_of_maps_are_converted() {
    fn map<K: Array + 'static, V: Array + 'static>(names: [&str; 3], keys: K, values: V) -> MapArray {
        let [entries, key, value] = names;
        let key = Field::new(key, keys.data_type().clone(), false);
        let fields = Fields::from(vec![key, field(value, values.data_type().clone())]);
        let pairs = StructArray::new(fields.clone(), vec![Arc::new(keys), Arc::new(values)], None);
        let entries = Arc::new(Field::new(entries, DataType::Struct(fields), false));
        let nulls = Some(NullBuffer::from(vec![true, false, true, true]));
        MapArray::new(entries, OffsetBuffer::new(vec![0, 2, 2, 2, 3].into()), pairs, nulls, false)
    }
    let source = map(
        ["key_value", "k", "v"],
        LargeStringArray::from(vec!["a", "b", "c"]),
        Int32Array::from(vec![Some(1), None, Some(3)]),
    );
    let keys = StringArray::from(vec!["a", "b", "c"]);
    becomes(
        source.clone(),
        map(["entries", "key", "value"], keys, Int64Array::from(vec![Some(1), None, Some(3)])),
    );
    let keys = Int64Array::from(vec![1, 2, 3]);
    let other = map(["entries", "key", "value"], keys, Int64Array::from(vec![1, 2, 3]));
    refused(source, other.data_type().clone(), "column x.key: expected Int64, found LargeUtf8");
}

#[test]
fn fields_of_structs_are_matched_by_name() {
    let nulls = || Some(NullBuffer::from(vec![true, false, true]));
    let structs = |columns: Vec<(&str, ArrayRef)>, nulls| {
        let (fields, columns): (Vec<_>, Vec<_>) = columns
            .into_iter()
            .map(|(name, column)| (field(name, column.data_type().clone()), column))
            .unzip();
        StructArray::try_new_with_length(fields.into(), columns, nulls, 3).unwrap()
    };
    let small: ArrayRef = Arc::new(UInt16Array::from(vec![Some(1), Some(2), None]));
    let wide: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None]));
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
    let source = structs(vec![("a", small.clone()), ("b", flags.clone()), ("c", wide.clone())], nulls());
    becomes(source.clone(), structs(vec![("b", flags.clone()), ("a", wide.clone())], nulls()));
    becomes(source.clone(), structs(vec![], nulls()));
    let missing = structs(vec![("a", small.clone()), ("z", flags.clone())], None);
    refused(
        source,
        missing.data_type().clone(),
        r#"column x: fields ["z"] are missing, found ["a", "b", "c"]"#,
    );
    // Fields with equal names are matched by position.
    let twice = structs(vec![("a", small.clone()), ("a", flags.clone())], None);
    becomes(twice.clone(), structs(vec![("a", wide.clone()), ("a", flags.clone())], None));
    refused(twice, structs(vec![("a", wide)], None).data_type().clone(), "expected fields");
    let inner = structs(vec![("s", Arc::new(structs(vec![("a", small)], None)))], None);
    let target = structs(vec![("s", Arc::new(structs(vec![("a", flags)], None)))], None);
    refused(inner, target.data_type().clone(), "column x.s.a: expected Boolean, found UInt16");
}

/// The values 7, "seven", 8, null and "nine" in a union whose branches have the type codes 5 and 2: sparse,
/// dense, and as structs.
fn unions() -> (UnionArray, UnionArray, StructArray) {
    let fields =
        UnionFields::try_new(vec![5, 2], vec![field("i", DataType::Int32), field("s", DataType::LargeUtf8)])
            .unwrap();
    let codes = || ScalarBuffer::<i8>::from(vec![5, 2, 5, 5, 2]);
    // In a sparse union, a row also has values in the branches that it does not use. These values are
    // ignored, so they need not fit.
    let sparse = UnionArray::try_new(
        fields.clone(),
        codes(),
        None,
        vec![
            Arc::new(Int32Array::from(vec![Some(7), Some(-1), Some(8), None, Some(-1)])),
            Arc::new(LargeStringArray::from(vec!["-", "seven", "-", "-", "nine"])),
        ],
    );
    let dense = UnionArray::try_new(
        fields,
        codes(),
        Some(vec![1, 0, 0, 2, 1].into()),
        vec![
            Arc::new(Int32Array::from(vec![Some(8), Some(7), None])),
            Arc::new(LargeStringArray::from(vec!["seven", "nine"])),
        ],
    );
    let plain = StructArray::from(vec![
        (
            Arc::new(field("tag", DataType::Int32)),
            Arc::new(Int32Array::from(vec![0, 1, 0, 0, 1])) as ArrayRef,
        ),
        (
            Arc::new(field("f0", DataType::UInt8)),
            Arc::new(UInt8Array::from(vec![Some(7), None, Some(8), None, None])),
        ),
        (
            Arc::new(field("f1", DataType::Utf8)),
            Arc::new(StringArray::from(vec![None, Some("seven"), None, None, Some("nine")])),
        ),
    ]);
    (sparse.unwrap(), dense.unwrap(), plain)
}

#[test]
fn unions_become_structs() {
    let (sparse, dense, plain) = unions();
    becomes(sparse.clone(), plain.clone());
    becomes(dense.clone(), plain);
    let few = DataType::Struct(Fields::from(vec![field("tag", DataType::Int32)]));
    refused(sparse, few, "column x: expected Struct");
    let wrong = [field("tag", DataType::Int32), field("f0", DataType::Boolean), field("f1", DataType::Utf8)];
    refused(
        dense,
        DataType::Struct(Fields::from(wrong.to_vec())),
        "column x.f0: expected Boolean, found Int32",
    );
}

#[test]
fn unions_within_unions_become_structs() {
    let (_, inner, plain) = unions();
    let fields = UnionFields::try_new(vec![0], vec![field("u", inner.data_type().clone())]).unwrap();
    let codes = vec![0_i8; 5];
    let outer = UnionArray::try_new(fields, codes.into(), None, vec![Arc::new(inner)]).unwrap();
    let tags: ArrayRef = Arc::new(Int32Array::from(vec![0; 5]));
    becomes(
        outer,
        StructArray::from(vec![
            (Arc::new(field("tag", DataType::Int32)), tags),
            (Arc::new(field("f0", plain.data_type().clone())), Arc::new(plain)),
        ]),
    );
}
