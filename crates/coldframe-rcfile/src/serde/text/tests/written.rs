//! Values are written as the text that Hive writes for them.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, MapBuilder, StringBuilder};
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Decimal128Array, Int32Array, Int64Array, PrimitiveArray, StringArray,
    StructArray,
};
use arrow_schema::{DataType, Field};

use super::{encoded, encoder, hive_type, options, with_options};
use crate::hive_type::interval_day_time_fields;
use crate::serde::HiveVersion::{V2_3, V3_1, V4_1};
use crate::serde::SerdeOptions;

fn written(text: &str, options: &SerdeOptions, array: &dyn Array) -> Vec<String> {
    encoded(&hive_type(text), options, array).into_iter().map(|c| String::from_utf8(c).unwrap()).collect()
}

#[test]
fn doubles_are_printed_as_java_prints_them() {
    let table = [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (1234567.0, "1234567.0"),
        (9999999.0, "9999999.0"),
        (1.0e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (1.0e10, "1.0E10"),
        (0.001, "0.001"),
        (0.00123, "0.00123"),
        (0.0009999, "9.999E-4"),
        (0.1, "0.1"),
        (-2.5e-7, "-2.5E-7"),
        (f64::MAX, "1.7976931348623157E308"),
        (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
        (f64::from_bits(1), "4.9E-324"),
        (2e-323, "2.0E-323"),
        (1e23, "1.0E23"),
        (2e23, "2.0E23"),
        (9007199254740993.0 * 4.0, "3.602879701896397E16"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "Infinity"),
        (f64::NEG_INFINITY, "-Infinity"),
    ];
    let array: PrimitiveArray<Float64Type> = table.iter().map(|(v, _)| Some(*v)).collect();
    assert_eq!(written("double", &options(V4_1, &[]), &array), table.map(|(_, text)| text));
    let floats: PrimitiveArray<Float32Type> = [
        0.1f32,
        1.0e10,
        f32::MAX,
        1e-45,
        16_777_216.0,
        3.0,
        1_149_305.0 / 8.0,
        -4_024_753.0 / 8.0,
        3_878_939.0 / 8.0,
    ]
    .into_iter()
    .map(Some)
    .collect();
    let expected = [
        "0.1",
        "1.0E10",
        "3.4028235E38",
        "1.4E-45",
        "1.6777216E7",
        "3.0",
        "143663.12",
        "-503094.12",
        "484867.38",
    ];
    assert_eq!(written("float", &options(V4_1, &[]), &floats), expected);
}

#[test]
fn decimals_keep_their_zeros() {
    let decimals = Decimal128Array::from(vec![Some(150), Some(-5), Some(0), None, Some(10i128.pow(38) - 1)])
        .with_precision_and_scale(38, 2)
        .unwrap();
    let expected = ["1.50", "-0.05", "0.00", "\\N", "999999999999999999999999999999999999.99"];
    assert_eq!(written("decimal(38,2)", &options(V4_1, &[]), &decimals), expected);
    let longs = Int64Array::from(vec![0, i64::MIN, i64::MAX, -7]);
    let expected = ["0", "-9223372036854775808", "9223372036854775807", "-7"];
    assert_eq!(written("bigint", &options(V4_1, &[]), &longs), expected);
    let months = Int32Array::from(vec![-560, 3460, 11, -1]);
    assert_eq!(
        written("interval_year_month", &options(V4_1, &[]), &months),
        ["-46-8", "288-4", "0-11", "-0-1"]
    );
}

#[test]
fn times_lose_the_zeros_at_their_end() {
    let o = options(V4_1, &[]);
    let times = PrimitiveArray::<TimestampNanosecondType>::from(vec![0, 1_577_934_245_120_000_000, -1, 1]);
    let expected = [
        "1970-01-01 00:00:00",
        "2020-01-02 03:04:05.12",
        "1969-12-31 23:59:59.999999999",
        "1970-01-01 00:00:00.000000001",
    ];
    assert_eq!(written("timestamp", &o, &times), expected);
    let zoned = written("timestamp with local time zone", &o, &times);
    assert_eq!(zoned[..2], ["1970-01-01 00:00:00.0 UTC", "2020-01-02 03:04:05.12 UTC"]);
    let dates = PrimitiveArray::<Date32Type>::from(vec![0, -719_528, 18_263]);
    assert_eq!(written("date", &o, &dates), ["1970-01-01", "0000-01-01", "2020-01-02"]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![662_638_010, -1_530_242_506, 0])),
        Arc::new(Int32Array::from(vec![1, -1, -5])),
    ];
    let intervals = StructArray::new(interval_day_time_fields(), columns, None);
    let expected = ["7669 10:06:50.000000001", "-17711 03:21:46.000000001", "-0 00:00:00.000000005"];
    assert_eq!(written("interval_day_time", &o, &intervals), expected);
}

#[test]
fn values_that_the_version_would_read_differently_are_refused() {
    let refused = |text: &str, version, array: &dyn Array| {
        let e = encoder(&hive_type(text), &options(version, &[])).unwrap();
        e.encode(array, 0..1, &mut Vec::new(), &mut Vec::new()).unwrap_err().to_string()
    };
    let long = StringArray::from(vec!["abcd"]);
    assert!(refused("varchar(3)", V4_1, &long).contains("row 0 to be written: expected text of at most 3"));
    assert!(refused("char(3)", V4_1, &long).contains("found 4"));
    let wide = Decimal128Array::from(vec![1000]).with_precision_and_scale(38, 1).unwrap();
    assert!(refused("decimal(3,1)", V4_1, &wide).contains("at most 3 digits"));
    let zoned = "timestamp with local time zone";
    let before = PrimitiveArray::<TimestampNanosecondType>::from(vec![0]);
    assert_eq!(written(zoned, &options(V4_1, &[]), &before), ["1970-01-01 00:00:00.0 UTC"]);
    let before = PrimitiveArray::<TimestampSecondType>::from(vec![-62_135_596_801]);
    assert!(refused(zoned, V4_1, &before).contains("the year 0"));
    let far = PrimitiveArray::<TimestampSecondType>::from(vec![i64::MAX]);
    assert!(refused(zoned, V4_1, &far).contains("294246"));
    assert!(refused("timestamp", V4_1, &far).contains("294246"));
    let five = PrimitiveArray::<TimestampSecondType>::from(vec![253_402_300_800]);
    assert_eq!(written(zoned, &options(V4_1, &[]), &five), ["+10000-01-01 00:00:00.0 UTC"]);
    let far = PrimitiveArray::<Date32Type>::from(vec![2_932_897]);
    assert!(refused("date", V4_1, &far).contains("the year 10000"));
    let gap = PrimitiveArray::<Date32Type>::from(vec![-141_428]);
    assert!(refused("date", V2_3, &gap).contains("1582-10-14"));
    assert!(refused("int", V4_1, &far).contains("Date32"));
    assert!(refused("decimal(5,2)", V4_1, &Decimal128Array::from(vec![1])).contains("cannot be written"));
}

/// Values that Hive writes but reads as other values.
#[test]
fn values_that_text_cannot_hold_are_refused() {
    let attempt = |text: &str, properties: &[(&str, &str)], array: &dyn Array| {
        let e = encoder(&hive_type(text), &options(V4_1, properties)).unwrap();
        e.encode(array, 0..1, &mut Vec::new(), &mut Vec::new()).map_err(|e| e.to_string())
    };
    let refused = |text: &str, array: &dyn Array| attempt(text, &[], array).unwrap_err();
    let null = StringArray::from(vec!["\\N"]);
    assert!(refused("string", &null).contains("the null format `\\\\N`"));
    attempt("string", &[("escape.delim", "\\")], &null).unwrap();
    attempt("string", &[("serialization.null.format", "")], &null).unwrap();
    let minus = [("serialization.null.format", "-1")];
    assert!(attempt("bigint", &minus, &Int64Array::from(vec![-1])).unwrap_err().contains("null format `-1`"));
    let list = |element: Option<&str>| {
        let mut builder = ListBuilder::new(StringBuilder::new());
        builder.append_value([element]);
        builder.finish()
    };
    assert!(refused("array<string>", &list(None)).contains("null format"));
    assert!(refused("array<string>", &list(Some(""))).contains("without elements"));
    assert!(refused("array<string>", &list(Some("a\u{2}b"))).contains("byte 0x02"));
    attempt("array<string>", &[("escape.delim", "\\")], &list(Some("a\u{2}b"))).unwrap();
    attempt("string", &[], &StringArray::from(vec!["a\u{2}b"])).unwrap();
    let field = Arc::new(Field::new("x", DataType::Int64, true));
    let alone = StructArray::from(vec![(field, Arc::new(Int64Array::from(vec![None])) as ArrayRef)]);
    assert!(refused("struct<x:bigint>", &alone).contains("null format"));
    let mut twice = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for value in ["1", "2"] {
        twice.keys().append_value("k");
        twice.values().append_value(value);
    }
    twice.append(true).unwrap();
    assert!(refused("map<string,string>", &twice.finish()).contains("found `k`"));
}

#[test]
fn text_is_escaped_and_padded() {
    let texts = StringArray::from(vec!["a|b\\c\r\n", "x\u{2}y"]);
    let o = options(V4_1, &[("escape.delim", "\\"), ("field.delim", "|")]);
    assert_eq!(written("string", &o, &texts), ["a\\|b\\\\c\r\n", "x\\\u{2}y"]);
    let crlf = options(V4_1, &[("escape.delim", "\\"), ("serialization.escape.crlf", "true")]);
    assert_eq!(written("string", &crlf, &texts)[0], "a|b\\\\c\\r\\n");
    let texts = StringArray::from(vec!["é", "abc"]);
    assert_eq!(written("char(3)", &options(V4_1, &[]), &texts), ["é  ", "abc"]);
    assert_eq!(written("varchar(3)", &options(V4_1, &[]), &texts), ["é", "abc"]);
    let bytes = BinaryArray::from(vec![b"hello".as_slice(), b""]);
    assert_eq!(written("binary", &options(V4_1, &[]), &bytes), ["aGVsbG8", ""]);
    assert_eq!(written("binary", &options(V2_3, &[]), &bytes), ["aGVsbG8=", ""]);
}

#[test]
fn lists_hold_nulls_between_separators() {
    let mut builder = ListBuilder::new(StringBuilder::new());
    builder.append_value([Some("a"), None, Some("")]);
    builder.append_null();
    builder.append_value([None::<&str>; 0]);
    let expected = ["a\u{2}\\N\u{2}", "\\N", ""];
    assert_eq!(written("array<string>", &options(V4_1, &[]), &builder.finish()), expected);
}

#[test]
fn patterns_of_timestamps_come_before_hives_own() {
    let formats =
        "yyyy-MM-dd'T'HH:mm:ss,yyyy-MM-dd'T'HH:mm:ss.SSS,MM/dd/yyyy,d MMM yy h:mm a,yyyyMMdd,millis";
    let o = options(V4_1, &[("timestamp.formats", formats)]);
    let cells = [
        "2020-01-02T03:04:05",
        "2020-01-02T03:04:05.678",
        "01/02/2020",
        "2 Jan 20 3:04 PM",
        "2020-01-02 03:04:05.123456",
        "1577934245678.9",
        "nothing",
    ];
    let array = with_options("timestamp", &o, &cells);
    let expected = [
        "2020-01-02 03:04:05",
        "2020-01-02 03:04:05.678",
        "2020-01-02 00:00:00",
        "2020-01-02 15:04:00",
        "2020-01-02 03:04:05.123456",
        "2020-01-02 03:04:05.678",
        "\\N",
    ];
    assert_eq!(written("timestamp", &options(V4_1, &[]), &array), expected);
    let e = encoder_or_decoder_error("yyyy-DDD");
    assert!(e.contains("`D`"), "{e}");
}

/// Joda-Time applies what it has read of a text that it does not match, and throws at a day of 99.
#[test]
fn patterns_before_hive_4_refuse_fields_out_of_range() {
    let cells = ["9999-12-31 00:00:00", "2020-01-02 03:04:05", "99/12/2020", "31/12/2020", "31/02/2020"];
    let read = |version, formats: &str| {
        let o = options(version, &[("timestamp.formats", formats)]);
        let array = with_options("timestamp", &o, &cells);
        (0..cells.len()).map(|i| array.is_valid(i)).collect::<Vec<_>>()
    };
    for version in [V2_3, V3_1] {
        assert_eq!(read(version, "dd/MM/yyyy"), [false, true, false, true, false]);
        // Of several patterns, the patterns that match no beginning of the text have no effect.
        assert_eq!(read(version, "dd/MM/yyyy,yyyyMMdd"), [true, true, false, true, false]);
        assert_eq!(read(version, "dd,dd/MM/yyyy"), [false, true, false, true, false]);
    }
    assert_eq!(read(V4_1, "dd/MM/yyyy"), [true, true, false, true, true]);
}

fn encoder_or_decoder_error(format: &str) -> String {
    let o = options(V4_1, &[("timestamp.formats", format)]);
    super::decoder(&hive_type("timestamp"), &o).err().unwrap().to_string()
}
