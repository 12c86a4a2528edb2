//! How each version of Hive reads cells that no SerDe writes.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
};

use super::{decoded, with_options};
use crate::serde::HiveVersion::{self, V0_8, V2_3, V3_1, V4_1};
use crate::serde::{SerdeOptions, TimestampUnit};
use coldframe_encoding::calendar::Civil;

const ALL: [HiveVersion; 4] = [V0_8, V2_3, V3_1, V4_1];

#[test]
fn integers_lose_their_fraction_and_are_null_beyond_their_range() {
    let table = [
        ("12", Some(12)),
        ("+12", Some(12)),
        ("-12", Some(-12)),
        (" 12", None),
        ("12 ", None),
        ("12.7", Some(12)),
        ("-0.9", Some(0)),
        ("1e3", None),
        ("abc", None),
        ("", None),
        ("2147483647", Some(i32::MAX)),
        ("2147483648", None),
        ("-2147483648", Some(i32::MIN)),
        ("-2147483649", None),
        ("0x10", None),
        ("٣", None),
        ("1_000", None),
        ("12L", None),
        ("--1", None),
        ("+", None),
        ("-", None),
        (".", None),
        ("5.", Some(5)),
        (".5", Some(0)),
        ("00012", Some(12)),
        ("\t7\n", None),
        ("+.5", Some(0)),
        ("+.", None),
        ("1.2.3", None),
        ("1.x", None),
        ("000000000000000000000000012", Some(12)),
        ("-.5", Some(0)),
        ("\\N", None),
        ("null", None),
    ];
    let (texts, expected): (Vec<_>, Vec<_>) = table.into_iter().unzip();
    for version in ALL {
        let array = decoded("int", version, &texts);
        assert_eq!(array.as_primitive::<Int32Type>().iter().collect::<Vec<_>>(), expected);
    }
    let longs = [
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "1234567890123456789",
        "12.99",
        "1e5",
    ];
    let array = decoded("bigint", V4_1, &longs);
    let expected =
        [Some(i64::MAX), None, Some(i64::MIN), None, Some(1_234_567_890_123_456_789), Some(12), None];
    assert_eq!(array.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), expected);
    assert_eq!(decoded("tinyint", V4_1, &["127", "128", "-128", "-129", "1.5"]).null_count(), 2);
    assert_eq!(decoded("smallint", V4_1, &["32767", "32768", "-32768", "-32769"]).null_count(), 2);
}

#[test]
fn doubles_have_the_grammar_of_java() {
    let table = [
        ("1.5", Some(1.5)),
        ("NaN", Some(f64::NAN)),
        (" -NaN", Some(f64::NAN)),
        ("Infinity", Some(f64::INFINITY)),
        ("-Infinity", Some(f64::NEG_INFINITY)),
        ("1e400", Some(f64::INFINITY)),
        ("1e-400", Some(0.0)),
        (" 2.5 ", Some(2.5)),
        ("0x1.8p1", Some(3.0)),
        ("0X.8P-1d", Some(0.25)),
        ("0x1.fffffffffffff8p0", Some(2.0)),
        ("0x1.fffffffffffff7p0", Some(1.999_999_999_999_999_8)),
        ("0x1p-1074", Some(4.9e-324)),
        ("0x1p-1075", Some(0.0)),
        ("0x1.000001p-1075", Some(4.9e-324)),
        ("0x1p1024", Some(f64::INFINITY)),
        ("-0x.0p0", Some(-0.0)),
        ("0x1", None),
        ("0xp1", None),
        ("1f", Some(1.0)),
        ("2D", Some(2.0)),
        ("", None),
        ("abc", None),
        ("-0.0", Some(-0.0)),
        ("1E+5", Some(100_000.0)),
        ("00.10", Some(0.1)),
        ("+3", Some(3.0)),
        (".5", Some(0.5)),
        ("5.", Some(5.0)),
        ("1e", None),
        ("1e+", None),
        ("1,5", None),
        ("inf", None),
        ("nan", None),
        ("-inf", None),
        ("INFINITY", None),
        ("infinity", None),
        (".", None),
        ("1.2.3", None),
        ("1e99999999999999999999", Some(f64::INFINITY)),
        ("1ff", None),
        ("\\N", None),
    ];
    for version in ALL {
        let array = decoded("double", version, &table.map(|(text, _)| text));
        for ((text, expected), actual) in table.iter().zip(array.as_primitive::<Float64Type>()) {
            assert_eq!(actual.map(f64::to_bits), expected.map(f64::to_bits), "{text}");
        }
    }
    let floats =
        decoded("float", V4_1, &["1e40", "1e-50", "0x1p3", "-0", "0x1p-149", "0x1p-150", "2d", "NaN"]);
    let expected = [f32::INFINITY, 0.0, 8.0, -0.0, 1e-45, 0.0, 2.0, f32::NAN];
    let actual: Vec<_> = floats.as_primitive::<Float32Type>().iter().map(|v| v.unwrap().to_bits()).collect();
    assert_eq!(actual, expected.map(f32::to_bits));
}

#[test]
fn booleans_are_true_or_false_in_any_case() {
    let texts = ["true", "false", "TRUE", "False", "t", "0", "yes", "", " true", "tru"];
    let expected = [Some(true), Some(false), Some(true), Some(false), None, None, None, None, None, None];
    let array = decoded("boolean", V4_1, &texts);
    assert_eq!(array.as_boolean().iter().collect::<Vec<_>>(), expected);

    let mut options = SerdeOptions::default();
    options.properties.insert("hive.lazysimple.extended_boolean_literal".into(), "true".into());
    let texts = ["yes", "t", "T", "1", "f", "0", "no", "Y", "no", "false"];
    let expected = [
        None,
        Some(true),
        Some(true),
        Some(true),
        Some(false),
        Some(false),
        Some(false), // like the row before
        None,
        None,
        Some(false),
    ];
    let array = with_options("boolean", &options, &texts);
    assert_eq!(array.as_boolean().iter().collect::<Vec<_>>(), expected);
}

#[test]
fn decimals_are_rounded_half_up_and_null_where_they_do_not_fit() {
    let table = [
        ("1.5", Some(150)),
        ("1.005", Some(101)),
        ("-1.005", Some(-101)),
        ("1.0049", Some(100)),
        ("9999.99", Some(999_999)),
        ("9999.995", None),
        ("10000", None),
        ("-0", Some(0)),
        ("1e2", Some(10_000)),
        ("1E-3", Some(0)),
        ("5e-3", Some(1)),
        ("", None),
        ("abc", None),
        ("NaN", None),
        ("+7", Some(700)),
        (".5", Some(50)),
        ("5.", Some(500)),
        (".", None),
        ("0000001.10", Some(110)),
        ("12345678901234567890", None),
        ("1.2.3", None),
        ("0x1", None),
        ("1e", None),
        ("0e99", Some(0)),
        ("0e100", None),
        ("1234e-002", Some(1234)),
        ("00000000000000000000000000000000000000000001", Some(100)),
        ("0.00000000000000000000000000000000000000000000000009", Some(0)),
        ("123456789012345678901234567890123456789", None),
        ("1e-99", Some(0)),
        ("\\N", None),
    ];
    let (texts, expected): (Vec<_>, Vec<_>) = table.into_iter().unzip();
    for version in ALL {
        let array = decoded("decimal(6,2)", version, &texts);
        for ((text, expected), actual) in
            texts.iter().zip(&expected).zip(array.as_primitive::<Decimal128Type>())
        {
            assert_eq!(actual, *expected, "{text} in {version:?}");
        }
    }
    let new = [" 3.14 ", "\t5\x0b", ".5e1", "7e- "];
    assert_eq!(decoded("decimal(6,2)", V3_1, &new).null_count(), 4);
    let array = decoded("decimal(6,2)", V4_1, &new);
    assert_eq!(array.as_primitive::<Decimal128Type>().values().as_ref(), [314, 500, 500, 700]);
}

#[test]
fn a_decimal_of_38_digits_is_exact() {
    let nines = "9".repeat(38);
    let array = decoded("decimal(38,0)", V4_1, &[nines.clone(), format!("{nines}.4"), format!("{nines}.5")]);
    let array = array.as_primitive::<Decimal128Type>();
    assert_eq!(array.value(0), 10i128.pow(38) - 1);
    assert_eq!(array.value(1), 10i128.pow(38) - 1);
    assert!(array.is_null(2));
    let array =
        decoded("decimal(38,38)", V4_1, &[format!(".{nines}"), format!("-0.{nines}4"), "1".to_owned()]);
    let array = array.as_primitive::<Decimal128Type>();
    assert_eq!((array.value(0), array.value(1)), (10i128.pow(38) - 1, 1 - 10i128.pow(38)));
    assert!(array.is_null(2));
}

fn dates(version: HiveVersion, texts: &[&str]) -> Vec<Option<String>> {
    let array = decoded("date", version, texts);
    let shown = |days: i32| {
        let d = Civil::from_days(i64::from(days));
        format!("{:04}-{:02}-{:02}", d.year, d.month, d.day)
    };
    array.as_primitive::<Date32Type>().iter().map(|d| d.map(shown)).collect()
}

#[test]
fn dates_differ_by_version() {
    let table = [
        // text, Hive 2.3, 3.1, 4.1
        ("2020-01-02", ["2020-01-02", "2020-01-02", "2020-01-02"]),
        ("2020-1-2", ["2020-01-02", "2020-01-02", "2020-01-02"]),
        ("2020-01-02 03:04:05", ["", "2020-01-02", "2020-01-02"]),
        ("2020-13-01", ["", "2021-01-01", ""]),
        ("2020-02-30", ["2020-03-01", "2020-03-01", ""]),
        ("2020-02-32", ["", "2020-03-03", ""]),
        ("20200102", ["", "", ""]),
        ("0001-01-01", ["0001-01-01", "0001-01-01", "0001-01-01"]),
        ("9999-12-31", ["9999-12-31", "9999-12-31", "9999-12-31"]),
        ("10000-01-01", ["", "10000-01-01", ""]),
        ("-0001-01-01", ["", "-001-01-01", "-001-01-01"]),
        ("", ["", "", ""]),
        ("2020-1-", ["", "", ""]),
        (" 2020-01-02", ["", "2020-01-02", "2020-01-02"]),
        ("2020-01-02 ", ["", "2020-01-02", "2020-01-02"]),
        ("2020-01-02T00:00:00", ["", "", "2020-01-02"]),
        ("2020-01-021", ["", "", ""]),
        ("1582-10-10", ["1582-10-20", "1582-10-10", "1582-10-10"]),
        ("1500-02-29", ["1500-03-01", "1500-03-01", ""]),
        ("\\N", ["", "", ""]),
    ];
    let texts = table.map(|(text, _)| text);
    for (column, version) in [(0, V2_3), (1, V3_1), (2, V4_1)] {
        for ((text, expected), actual) in table.iter().zip(dates(version, &texts)) {
            assert_eq!(actual.unwrap_or_default(), expected[column], "{text} in {version:?}");
        }
    }
}

/// A timestamp as a number of microseconds.
fn micros(date: (i64, i64, i64), seconds: i64, micros: i64) -> Option<i64> {
    Some((Civil::new(date.0, date.1, date.2).days() * 86_400 + seconds) * 1_000_000 + micros)
}

#[test]
fn timestamps_differ_by_version() {
    let day = (2020, 1, 2);
    let at = |seconds: i64, fraction| micros(day, 3 * 3600 + 4 * 60 + seconds, fraction);
    let table = [
        ("2020-01-02 03:04:05", [at(5, 0); 3]),
        ("2020-01-02 03:04:05.1", [at(5, 100_000); 3]),
        ("2020-01-02 03:04:05.123456789", [at(5, 123_456); 3]),
        ("2020-01-02 03:04:05.1234567891", [None; 3]),
        ("2020-01-02", [None; 3]),
        ("2020-01-02T03:04:05", [None, at(5, 0), at(5, 0)]),
        ("2020-01-02T03:04", [None, at(0, 0), at(0, 0)]),
        ("2020-01-02T03:04:05.", [None, at(5, 0), at(5, 0)]),
        ("2020-01-02T03:04:05Z", [None; 3]),
        ("2020-01-02 03:04:05+02:00", [None; 3]),
        ("2020-1-2 3:4:5", [at(5, 0); 3]),
        ("2020-01-02 03:04", [None; 3]),
        ("2020-02-30 00:00:00", [micros((2020, 3, 1), 0, 0), micros((2020, 3, 1), 0, 0), None]),
        ("2020-01-02 24:00:00", [micros(day, 86_400, 0), micros(day, 86_400, 0), None]),
        ("2020-01-02 23:59:60", [micros(day, 86_400, 0), micros(day, 86_400, 0), None]),
        ("2020-01-02 100:00:00", [micros(day, 360_000, 0), None, None]),
        ("", [None; 3]),
        ("abc", [None; 3]),
        (" 2020-01-02 03:04:05 ", [at(5, 0); 3]),
        ("2020-01-02 03:04:05.", [None; 3]),
        ("1577934245", [None; 3]),
        ("2020-01-02 03:04:05 UTC", [None; 3]),
        ("12020-01-02 03:04:05", [None, micros((12020, 1, 2), 11_045, 0), micros((12020, 1, 2), 11_045, 0)]),
        (
            "1582-10-10 00:00:00",
            [micros((1582, 10, 20), 0, 0), micros((1582, 10, 10), 0, 0), micros((1582, 10, 10), 0, 0)],
        ),
        ("\\N", [None; 3]),
    ];
    let texts = table.map(|(text, _)| text);
    for (column, version) in [(0, V2_3), (1, V3_1), (2, V4_1)] {
        let array = decoded("timestamp", version, &texts);
        for ((text, expected), actual) in table.iter().zip(array.as_primitive::<TimestampMicrosecondType>()) {
            assert_eq!(actual, expected[column], "{text} in {version:?}");
        }
    }
}

#[test]
fn strings_are_truncated_padded_and_made_valid() {
    let cells = ["abcdef", "a", "", "  b", "日本語テ", "\\N", "\\n", "\\\\N"];
    let texts = |hive_type: &str| -> Vec<Option<String>> {
        decoded(hive_type, V4_1, &cells).as_string::<i32>().iter().map(|v| v.map(str::to_owned)).collect()
    };
    let some = |texts: [&str; 8]| texts.map(|t| Some(t.to_owned()).filter(|t| t != "NULL")).to_vec();
    assert_eq!(texts("string"), some(["abcdef", "a", "", "  b", "日本語テ", "NULL", "\\n", "\\\\N"]));
    assert_eq!(texts("varchar(3)"), some(["abc", "a", "", "  b", "日本語", "NULL", "\\n", "\\\\N"]));
    assert_eq!(texts("char(3)"), some(["abc", "a  ", "   ", "  b", "日本語", "NULL", "\\n ", "\\\\N"]));
}

#[test]
fn malformed_utf8_is_replaced_as_java_does() {
    let table: [(&[u8], &str); 9] = [
        (b"a\xffb", "a\u{fffd}b"),
        (b"\xed\xa0\x80!", "\u{fffd}!"),
        (b"\xed\xa0", "\u{fffd}"),
        (b"\xe2\x82", "\u{fffd}"),
        (b"\xe2\x82A", "\u{fffd}A"),
        (b"\xf0\x9f\x98", "\u{fffd}"),
        (b"\xf5\x80\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
        (b"\xc0\x80", "\u{fffd}\u{fffd}"),
        ("é\u{10ffff}".as_bytes(), "é\u{10ffff}"),
    ];
    let array = decoded("string", V4_1, &table.map(|(bytes, _)| bytes));
    for ((bytes, expected), actual) in table.iter().zip(array.as_string::<i32>()) {
        assert_eq!(actual, Some(*expected), "{bytes:x?}");
    }
    // Two halves of a character are two malformed cells, although their bytes together are valid.
    let array = decoded("string", V4_1, &[b"\xc3".as_slice(), b"\xa9"]);
    assert_eq!(array.as_string::<i32>().iter().flatten().collect::<String>(), "\u{fffd}\u{fffd}");
}

#[test]
fn invalid_base64_is_taken_as_raw_bytes() {
    let table: [(&str, &[u8], &[u8]); 12] = [
        // text, Hive 2.3 and 3.1, Hive 4.1
        ("AAEC", b"\x00\x01\x02", b"\x00\x01\x02"),
        ("!!!notb64", b"!!!notb64", b"!!!notb64"),
        ("", b"", b""),
        ("AAE", b"\x00\x01", b"\x00\x01"),
        ("AAEC\n", b"\x00\x01\x02", b"AAEC\n"),
        ("aGVsbG8=", b"hello", b"hello"),
        ("aGVsbG8", b"hello", b"hello"),
        ("-_-_", b"\xfb\xff\xbf", b"-_-_"),
        ("plain text", b"\xa6V\xa2\x9e\xd7\xb1", b"plain text"),
        ("A", b"A", b"A"),
        ("AA=", b"\x00", b"AA="),
        ("AAF=", b"\x00\x01", b"\x00\x01"),
    ];
    for (version, new) in [(V2_3, false), (V3_1, false), (V4_1, true)] {
        let array = decoded("binary", version, &table.map(|(text, ..)| text));
        for ((text, old, expected), actual) in table.iter().zip(array.as_binary::<i32>()) {
            assert_eq!(actual.unwrap(), if new { *expected } else { *old }, "{text} in {version:?}");
        }
    }
}

#[test]
fn a_timestamp_beyond_nanoseconds_is_an_error_that_names_the_option() {
    let options = SerdeOptions { timestamp_unit: TimestampUnit::Nanosecond, ..SerdeOptions::default() };
    let array = with_options(
        "timestamp",
        &options,
        &["1677-09-21 00:12:43.145224192", "2262-04-11 23:47:16.854775807"],
    );
    assert_eq!(array.null_count(), 0);
    let hive_type = crate::hive_type::HiveType::Timestamp;
    let decoder = super::super::decoder(&hive_type, &options).unwrap();
    let e = decoder.decode(&super::cells(&["2262-04-11 23:47:16.854775808"])).unwrap_err().to_string();
    assert!(e.contains("timestamp_unit=\"us\"") && e.contains("2262-04-11"), "{e}");
}
