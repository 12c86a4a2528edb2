//! Cells are read and written byte by byte as Hive's classes do; variants of other writers are read; cells
//! that contradict their type are errors.

mod random;

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray,
    TimestampMicrosecondArray, TimestampNanosecondArray, UnionArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};

use super::*;
use crate::hive_type::ddl::parse_type;
use crate::hive_type::{interval_day_time_fields, map_entries, struct_fields, union_fields};
use crate::serde::TimestampUnit;

fn hive(text: &str) -> HiveType {
    parse_type(text, &Default::default()).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|b| *b != b' ').collect();
    digits.chunks(2).map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

fn cells<C: AsRef<[u8]>>(cells: &[C]) -> Cells {
    let offsets = OffsetBuffer::from_lengths(cells.iter().map(|c| c.as_ref().len()));
    let data: Vec<u8> = cells.iter().flat_map(|c| c.as_ref().to_vec()).collect();
    Cells { data: Buffer::from_vec(data), offsets, nulled: false, first_row: 0 }
}

fn decode_with(hive_type: &HiveType, hex: &[&str], options: &SerdeOptions) -> Result<ArrayRef> {
    let bytes: Vec<Vec<u8>> = hex.iter().map(|h| bytes(h)).collect();
    decoder(hive_type, options)?.decode(&cells(&bytes))
}

fn decode(hive_type: &str, hex: &[&str]) -> Result<ArrayRef> {
    decode_with(&hive(hive_type), hex, &SerdeOptions::default())
}

fn encode_with(
    hive_type: &HiveType,
    array: &dyn Array,
    options: &SerdeOptions,
) -> Result<(Vec<u8>, Vec<u32>)> {
    let (mut data, mut lengths) = (Vec::new(), Vec::new());
    encoder(hive_type, options)?.encode(array, 0..array.len(), &mut data, &mut lengths)?;
    assert_eq!(lengths.len(), array.len());
    assert_eq!(lengths.iter().sum::<u32>() as usize, data.len());
    Ok((data, lengths))
}

/// Checks that the cells that Hive wrote give these values, and that the values give the cells.
fn both_ways_with(hive_type: &str, hex: &[&str], expected: &dyn Array, options: &SerdeOptions) {
    let hive_type = hive(hive_type);
    let decoded = decode_with(&hive_type, hex, options).unwrap();
    assert_eq!(&*decoded, expected, "{hive_type:?}");
    let (data, lengths) = encode_with(&hive_type, expected, options).unwrap();
    let written: Vec<Vec<u8>> = hex.iter().map(|h| bytes(h)).collect();
    assert_eq!(data, written.concat(), "{hive_type:?}");
    assert_eq!(lengths, written.iter().map(|c| u32::try_from(c.len()).unwrap()).collect::<Vec<_>>());
}

fn both_ways(hive_type: &str, hex: &[&str], expected: impl Array) {
    both_ways_with(hive_type, hex, &expected, &SerdeOptions::default());
}

fn message(result: Result<ArrayRef>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn numbers_are_read_and_written_as_hive_does() {
    both_ways(
        "boolean",
        &["01", "00", "", "01"],
        BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]),
    );
    both_ways(
        "tinyint",
        &["fe", "", "8f", "1c"],
        Int8Array::from(vec![Some(-2), None, Some(-113), Some(28)]),
    );
    both_ways(
        "smallint",
        &["0002", "ff9c", "", "087b"],
        Int16Array::from(vec![Some(2), Some(-100), None, Some(2171)]),
    );
    both_ways(
        "float",
        &["3fe8f5c3", "", "ff800000"],
        Float32Array::from(vec![Some(1.82), None, Some(f32::NEG_INFINITY)]),
    );
    both_ways("double", &["4007e76c8b439581", "8000000000000000"], Float64Array::from(vec![2.988, -0.0]));
    both_ways(
        "int",
        &["861ebe", "8c7a3aeff8", "84345b2006", "8777", "90", "7e", "", "8f80"],
        Int32Array::from(vec![
            Some(-7871),
            Some(2_050_682_872),
            Some(-878_387_207),
            Some(-120),
            Some(-112),
            Some(126),
            None,
            Some(128),
        ]),
    );
    both_ways(
        "bigint",
        &["01", "887fffffffffffffff", "807fffffffffffffff", "", "8f8d"],
        Int64Array::from(vec![Some(1), Some(i64::MAX), Some(i64::MIN), None, Some(141)]),
    );
    both_ways("interval_year_month", &["18", "f4"], Int32Array::from(vec![24, -12]));
}

#[test]
fn nan_is_written_as_one_bit_pattern() {
    let (data, _) =
        encode_with(&HiveType::Float, &Float32Array::from(vec![-f32::NAN]), &SerdeOptions::default())
            .unwrap();
    assert_eq!(data, bytes("7fc00000"));
    let (data, _) =
        encode_with(&HiveType::Double, &Float64Array::from(vec![-f64::NAN]), &SerdeOptions::default())
            .unwrap();
    assert_eq!(data, bytes("7ff8000000000000"));
}

#[test]
fn text_is_read_and_written_as_hive_does() {
    both_ways(
        "string",
        &["6b347171", "", "bf", "5f206f"],
        StringArray::from(vec![Some("k4qq"), None, Some(""), Some("_ o")]),
    );
    both_ways(
        "char(7)",
        &["43794136662020", "", "20202020202020"],
        StringArray::from(vec![Some("CyA6f  "), None, Some("       ")]),
    );
    both_ways("varchar(5)", &["3563", "", "207462"], StringArray::from(vec![Some("5c"), None, Some(" tb")]));
    both_ways(
        "binary",
        &["63bea4", "", "00"],
        BinaryArray::from(vec![Some(&b"c\xbe\xa4"[..]), None, Some(&[0])]),
    );
    both_ways("array<string>", &["02 01 00"], {
        let mut builder = ListBuilder::new(StringBuilder::new());
        builder.append_value([Some(""), None]);
        builder.finish()
    });
}

#[test]
fn text_is_truncated_and_padded_to_its_type() {
    let array = decode("char(3)", &["61", "61626364", "", "c3a4", "c3a4c3b6c3bc"]).unwrap();
    assert_eq!(
        array.as_string::<i32>(),
        &StringArray::from(vec![Some("a  "), Some("abc"), None, Some("ä  "), Some("äöü")])
    );
    let array = decode("varchar(2)", &["61", "616263", "c3a4c3b6c3bc"]).unwrap();
    assert_eq!(array.as_string::<i32>(), &StringArray::from(vec!["a", "ab", "äö"]));
    let array = decode("array<char(2)>", &["02 03 00 01 61"]).unwrap();
    assert_eq!(array.as_list::<i32>().value(0).as_string::<i32>(), &StringArray::from(vec!["  ", "a "]));
}

#[test]
fn malformed_utf8_is_read_as_in_java() {
    // Empty strings, a truncated character, a surrogate (one sequence in Java, three in the recommendation of
    // Unicode), a truncated surrogate.
    let array =
        decode("string", &["bf", "61c3", "eda080", "eda0", "f0908080", "bfbf", "eda041", "bf"]).unwrap();
    let expected =
        vec!["", "a\u{fffd}", "\u{fffd}", "\u{fffd}", "\u{10000}", "\u{fffd}\u{fffd}", "\u{fffd}A", ""];
    assert_eq!(array.as_string::<i32>(), &StringArray::from(expected));
    // Together these two are a character.
    let array = decode("string", &["c3", "a4"]).unwrap();
    assert_eq!(array.as_string::<i32>(), &StringArray::from(vec!["\u{fffd}", "\u{fffd}"]));
    // If both cells were read together, the truncated character and the mark of an empty string would be one
    // character.
    let array = decode("string", &["c3", "bf", "78"]).unwrap();
    assert_eq!(array.as_string::<i32>(), &StringArray::from(vec!["\u{fffd}", "", "x"]));
    // Only a string has the mark.
    let array = decode("varchar(3)", &["bf"]).unwrap();
    assert_eq!(array.as_string::<i32>(), &StringArray::from(vec!["\u{fffd}"]));
}

#[test]
fn decimals_are_read_and_written_as_hive_does() {
    let decimals = |values: Vec<Option<i128>>, p, s| {
        Decimal128Array::from(values).with_precision_and_scale(p, s).unwrap()
    };
    both_ways(
        "decimal(5,2)",
        &["000100", "0001fc", "0102dd3e", "020102", "020201ad", "", "020300e1e8"],
        decimals(vec![Some(0), Some(-400), Some(-88980), Some(2), Some(429), None, Some(57832)], 5, 2),
    );
    both_ways(
        "decimal(38,10)",
        &["0a10009b469890c8dcc56bdb00a0620d03f0", "000100", "0002e0a2"],
        decimals(
            vec![Some(806_237_869_234_525_208_134_453_302_135_686_128), Some(0), Some(-80_300_000_000_000)],
            38,
            10,
        ),
    );
    both_ways(
        "decimal(38,0)",
        &["0010f92c8c94879bc2411b335f3c424510a1"],
        decimals(vec![Some(-9073283603637538181672082846324027231)], 38, 0),
    );
}

#[test]
fn decimals_are_rescaled_to_their_type() {
    // 1.25 and -1.25 to one digit, 99.96, 123, trailing zeros as Trino writes them, more bytes than needed.
    let hex = ["02 01 7d", "02 01 83", "02 02 27 0c", "00 01 7b", "03 02 05 dc", "00 03 00 00 07", ""];
    let array = decode("decimal(3,1)", &hex).unwrap();
    let expected = vec![Some(13), Some(-13), None, None, Some(15), Some(70), None];
    let expected = Decimal128Array::from(expected).with_precision_and_scale(3, 1).unwrap();
    assert_eq!(array.as_primitive::<Decimal128Type>(), &expected);
    // A value of more than 128 bits does not fit at any scale.
    let array = decode("decimal(38,0)", &["00 11 0100000000000000000000000000000000"]).unwrap();
    assert!(array.is_null(0));
}

#[test]
fn timestamps_are_read_and_written_as_hive_does() {
    let hex = [
        "b2d919b89b01",
        "cbb1b41f850186a001",
        "adcab045843b9ac9fffc",
        "8e7cba0bff01",
        "",
        "38bc6d6b",
        "b8bc4ae28d09fbf1",
        "80000000 15",
        "ffffffff ff ff",
    ];
    let expected = [
        Some("2065-01-30T20:19:04.001"),
        Some("2078-04-17T11:33:51.000001"),
        Some("1722-02-21T08:05:25.999999999"),
        Some("2045-10-02T06:32:43"),
        None,
        Some("2000-03-01T01:07:55"),
        Some("2000-02-29T22:40:34.123456"),
        Some("1970-01-01T00:00:00.12"),
        Some("1969-12-31T23:59:59"),
    ];
    let expected: Vec<Option<i64>> = expected.into_iter().map(|t| t.map(nanos)).collect();
    both_ways("timestamp", &hex, TimestampNanosecondArray::from(expected.clone()));
    both_ways(
        "timestamp with local time zone",
        &hex,
        TimestampNanosecondArray::from(expected.clone()).with_timezone("UTC"),
    );
    let options = SerdeOptions { timestamp_unit: TimestampUnit::Microsecond, ..Default::default() };
    let array = decode_with(&HiveType::Timestamp, &hex, &options).unwrap();
    let micros = expected.into_iter().map(|v| v.map(|v: i64| v.div_euclid(1000)));
    assert_eq!(array.as_primitive(), &micros.collect::<TimestampMicrosecondArray>());
    // 9999-12-31 is beyond nanoseconds; the error says what to do.
    let far = decode("timestamp", &["", "fff34848ea75"]);
    assert!(message(far).contains("timestamp_unit=\"us\""));
}

#[test]
fn hive_0_8_keeps_31_bits_of_seconds() {
    let array = decode("timestamp", &["7667089300", "ead1c79215"]).unwrap();
    let expected = ["2032-12-12T11:31:31", "2026-10-16T06:43:30.12"].map(nanos);
    assert_eq!(array.as_primitive(), &TimestampNanosecondArray::from(expected.to_vec()));
    let options = SerdeOptions { hive_version: HiveVersion::V0_8, ..Default::default() };
    let written = |seconds: i64| {
        let array = TimestampNanosecondArray::from(vec![seconds * 1_000_000_000 + 1]);
        encode_with(&HiveType::Timestamp, &array, &options)
    };
    assert_eq!(written(0).unwrap().0, bytes("80000000 8c05f5e100"));
    assert_eq!(written(i64::from(i32::MAX)).unwrap().0, bytes("ffffffff 8c05f5e100"));
    // Hive wraps these seconds, so that no reader could return them.
    for beyond in [-1, 1 << 31] {
        assert!(written(beyond).unwrap_err().to_string().contains("1970 to 2038"));
    }
}

fn nanos(text: &str) -> i64 {
    text.parse::<chrono::NaiveDateTime>().unwrap().and_utc().timestamp_nanos_opt().unwrap()
}

fn days(text: &str) -> i32 {
    let date: chrono::NaiveDate = text.parse().unwrap();
    i32::try_from(date.signed_duration_since(chrono::NaiveDate::default()).num_days()).unwrap()
}

#[test]
fn dates_of_hive_2_are_julian_before_1582_10_15() {
    let hive_2 = SerdeOptions { hive_version: HiveVersion::V2_3, ..Default::default() };
    let dates =
        ["1970-01-01", "1583-01-01", "1582-10-15", "1582-10-04", "1500-03-01", "1500-02-28", "0001-01-01"];
    let hex = ["00", "85022824", "85022872", "85022873", "85029e4a", "85029e4c", "850af93b"];
    let expected = Date32Array::from_iter_values(dates.map(days));
    both_ways_with("date", &hex, &expected, &hive_2);
    // Hive 3 counts Gregorian days throughout.
    let array = decode("date", &["85022873"]).unwrap();
    assert_eq!(array.as_primitive::<Date32Type>().value(0), days("1582-10-14"));
    // The 29th of February 1500 is only Julian.
    let array = decode_with(&HiveType::Date, &["85029e4b"], &hive_2).unwrap();
    assert_eq!(array.as_primitive::<Date32Type>().value(0), days("1500-03-01"));
    let (data, _) = encode_with(
        &HiveType::Timestamp,
        &TimestampMicrosecondArray::from(vec![i64::from(days("1582-10-04")) * 86_400_000_000]),
        &hive_2,
    )
    .unwrap();
    let options = SerdeOptions { timestamp_unit: TimestampUnit::Microsecond, ..hive_2 };
    let back = decoder(&HiveType::Timestamp, &options).unwrap().decode(&cells(&[data])).unwrap();
    let expected = vec![i64::from(days("1582-10-04")) * 86_400_000_000];
    assert_eq!(back.as_primitive(), &TimestampMicrosecondArray::from(expected));
}

#[test]
fn timestamps_of_hive_2_are_instants() {
    let options = SerdeOptions {
        hive_version: HiveVersion::V2_3,
        timezone: Some(chrono_tz::America::Los_Angeles),
        ..Default::default()
    };
    // These bytes were written by Hive 2.3.10 with that zone.
    let hex = [
        "da607bdeff02",
        "a1aafb629b03",
        "fca4ef15850f4240fe",
        "b62a8bd815",
        "e8e4a4a7feff",
        "f5951d348405f5e10001",
        "",
    ];
    let expected = [
        Some("2154-02-24T09:18:22"),
        Some("2192-01-19T17:29:06.001"),
        Some("1900-03-01T21:56:37.000000100"),
        Some("1998-10-18T17:46:16.12"),
        Some("1957-09-18T19:12:55.1"),
        Some("2100-07-25T02:17:40.000000001"),
        None,
    ];
    let expected: TimestampNanosecondArray = expected.into_iter().map(|t| t.map(nanos)).collect();
    both_ways_with("timestamp", &hex, &expected, &options);
}

#[test]
fn an_interval_has_seconds_and_nanoseconds() {
    let children: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![90_061, 0, -1])),
        Arc::new(Int32Array::from(vec![500_000_000, 0, -5])),
    ];
    let nulls = NullBuffer::from(vec![true, false, true]);
    let expected = StructArray::new(interval_day_time_fields(), children, Some(nulls));
    both_ways("interval_day_time", &["8d015fcd 8c1dcd6500", "", "ff fb"], expected);
}

#[test]
fn nested_types_are_read_and_written_as_hive_does() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1), None, Some(300)]),
        None,
        Some(vec![]),
        Some((0..9).map(Some).collect()),
    ]);
    both_ways("array<int>", &["03 05 01 8e012c", "", "00", "09 ff01 000102030405060708"], list);

    let hive_type = hive("array<array<int>>");
    let inner =
        ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(7)]), None, Some(vec![])]);
    let field = Arc::new(arrow_schema::Field::new("item", inner.data_type().clone(), true));
    let outer = ListArray::new(field, OffsetBuffer::from_lengths([3]), Arc::new(inner), None);
    both_ways_with(
        "array<array<int>>",
        &["03 05 00000003 01 01 07 00000001 00"],
        &outer,
        &SerdeOptions::default(),
    );
    assert_eq!(hive_type.depth(), 3);

    let entries = map_entries(&HiveType::String, &HiveType::Int, TimestampUnit::Nanosecond);
    let arrow_schema::DataType::Struct(fields) = entries.data_type() else { unreachable!() };
    let (keys, values) =
        (StringArray::from(vec!["a", "", "c"]), Int32Array::from(vec![Some(1), None, Some(3)]));
    let pairs = StructArray::new(fields.clone(), vec![Arc::new(keys), Arc::new(values)], None);
    let map = MapArray::new(
        entries.clone(),
        OffsetBuffer::from_lengths([2, 0, 1]),
        pairs,
        Some(vec![true, false, true].into()),
        false,
    );
    both_ways("map<string,int>", &["02 07 0161 01 00", "", "01 03 0163 03"], map);

    let types: Vec<(String, HiveType)> = (0..9).map(|i| (format!("f{i}"), HiveType::Int)).collect();
    let fields = struct_fields(&types, TimestampUnit::Nanosecond);
    let columns =
        (0..9).map(|i| Arc::new(Int32Array::from(vec![Some(i), None, (i == 8).then_some(5)])) as ArrayRef);
    let nulls = NullBuffer::from(vec![true, false, true]);
    let array = StructArray::new(fields, columns.collect(), Some(nulls));
    let ddl = "struct<f0:int,f1:int,f2:int,f3:int,f4:int,f5:int,f6:int,f7:int,f8:int>";
    both_ways(ddl, &["ff 0001020304050607 01 08", "", "00 01 05"], array);
}

#[test]
fn a_union_is_a_tag_and_an_element() {
    let branches = [HiveType::Int, HiveType::String];
    let fields = union_fields(&branches, TimestampUnit::Nanosecond);
    let children: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(7), None, None])),
        Arc::new(StringArray::from(vec![None, Some(""), None])),
    ];
    let sparse = UnionArray::try_new(fields.clone(), vec![0i8, 1, 0].into(), None, children).unwrap();
    both_ways("uniontype<int,string>", &["00 07", "01 00", ""], sparse);
    // A dense union is written in the same way.
    let children: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![Some(7), None])), Arc::new(StringArray::from(vec![""]))];
    let dense =
        UnionArray::try_new(fields, vec![0i8, 1, 0].into(), Some(vec![0, 0, 1].into()), children).unwrap();
    let (data, lengths) =
        encode_with(&hive("uniontype<int,string>"), &dense, &SerdeOptions::default()).unwrap();
    assert_eq!((data, lengths), (bytes("0007 0100"), vec![2, 2, 0]));
    assert!(
        message(decode("uniontype<int,string>", &["", "02 00"]))
            .contains("expected a tag of 0 to 1, found 2")
    );
}

#[test]
fn a_struct_with_fewer_or_more_fields_than_the_type_is_read() {
    // Two fields were written: a third field is null, and a type with one field ignores the second.
    let array = decode("struct<a:int,b:int,c:int>", &["03 07 08"]).unwrap();
    let columns: Vec<_> = array
        .as_struct()
        .columns()
        .iter()
        .map(|c| c.as_primitive::<Int32Type>().iter().next().unwrap())
        .collect();
    assert_eq!(columns, [Some(7), Some(8), None]);
    let array = decode("struct<a:int>", &["03 07 08"]).unwrap();
    assert_eq!(array.as_struct().column(0).as_primitive::<Int32Type>().value(0), 7);
    // Another bitmap follows the eighth field if the cell does not end there.
    let ddl = "struct<f0:int,f1:int,f2:int,f3:int,f4:int,f5:int,f6:int,f7:int,f8:int>";
    let array = decode(ddl, &["01 07"]).unwrap();
    assert!(array.is_valid(0) && array.as_struct().column(8).is_null(0));
}

#[test]
fn a_map_leaves_out_entries_without_a_key() {
    let array = decode("map<string,int>", &["02 0e 05 0161 06"]).unwrap();
    let map = array.as_map().value(0);
    assert_eq!(map.column(0).as_string::<i32>(), &StringArray::from(vec!["a"]));
    assert_eq!(map.column(1).as_primitive::<Int32Type>(), &Int32Array::from(vec![6]));
}

#[test]
fn trino_writes_a_bitmap_for_an_empty_list() {
    let array = decode("array<string>", &["0000", "00"]).unwrap();
    assert!(array.as_list::<i32>().iter().flatten().all(|l| l.is_empty()));
}

#[test]
fn a_nulled_column_is_null_whatever_its_cells() {
    for ddl in ["int", "string", "uniontype<int,string>", "struct<a:int>", "array<int>"] {
        let cells = Cells { nulled: true, ..cells(&["x", "", "y"]) };
        let array = decoder(&hive(ddl), &SerdeOptions::default()).unwrap().decode(&cells).unwrap();
        assert_eq!((array.len(), array.logical_null_count()), (3, 3), "{ddl}");
    }
}

#[test]
fn some_of_the_cells_of_a_column_are_decoded_alone() {
    // The rest of the column is not UTF-8.
    let whole = cells(&[&b"\xff"[..], b"ab", b"", b"\xbf", b"\xff\xff"]);
    let part = Cells { offsets: OffsetBuffer::new(whole.offsets[1..5].to_vec().into()), ..whole };
    let array = decoder(&HiveType::String, &SerdeOptions::default()).unwrap().decode(&part).unwrap();
    assert_eq!(array.as_string::<i32>(), &StringArray::from(vec![Some("ab"), None, Some("")]));
    let array = decoder(&HiveType::Binary, &SerdeOptions::default()).unwrap().decode(&part).unwrap();
    assert_eq!(array.as_binary::<i32>(), &BinaryArray::from(vec![Some(&b"ab"[..]), None, Some(b"\xbf")]));
    let whole = cells(&[[1u8], [0], [1], [1]]);
    let part = Cells { offsets: OffsetBuffer::new(whole.offsets[1..4].to_vec().into()), ..whole };
    let array = decoder(&HiveType::Boolean, &SerdeOptions::default()).unwrap().decode(&part).unwrap();
    assert_eq!(array.as_boolean(), &BooleanArray::from(vec![false, true]));
}

#[test]
fn cells_that_contradict_their_type_name_the_row() {
    let wrong = [
        ("int", "8c", "row 2: cell: expected 1 more bytes, found 0"),
        ("int", "8b0100000000", "row 2: cell: expected a 32-bit VInt, found 4294967296"),
        ("int", "0101", "row 2: cell: expected the end, found 1 more bytes"),
        ("bigint", "8f8d00", "row 2: cell: expected the end, found 1 more bytes"),
        ("bigint", "00000000000000000000", "row 2: cell: expected the end, found 9 more bytes"),
        ("boolean", "02", "row 2: cell: expected a boolean of 0 or 1, found 2"),
        ("boolean", "0101", "row 2: cell: expected the end, found 1 more bytes"),
        ("double", "00", "row 2: cell: expected 8 more bytes, found 1"),
        ("decimal(5,2)", "0203ff", "row 2: cell: expected 3 more bytes, found 1"),
        ("decimal(5,2)", "7f0101", "row 2: cell: expected a decimal's scale of 0 to 38, found 127"),
        ("decimal(5,2)", "0200", "row 2: cell: expected the bytes of a decimal, found none"),
        ("timestamp", "000000", "row 2: cell: expected 4 more bytes, found 3"),
        ("timestamp", "80000000", "row 2: cell: expected 1 more bytes, found 0"),
        ("timestamp", "0000000001", "row 2: cell: expected the end, found 1 more bytes"),
        (
            "timestamp",
            "80000000 8c3b9aca00",
            "row 2: cell: expected nine digits of nanoseconds, found 1000000000",
        ),
        ("array<int>", "0203 01", "row 2: cell: expected 1 more bytes, found 0"),
        ("array<int>", "ff", "row 2: cell: expected a count of 0 or more, found -1"),
        ("array<int>", "8c7fffffff 00", "row 2: cell: expected 268435456 more bytes, found 1"),
        ("array<array<int>>", "0101 00000002 0101", "row 2: cell: expected 1 more bytes, found 0"),
        ("array<boolean>", "0203 0102", "row 2: cell: expected a boolean of 0 or 1, found 2"),
        (
            "struct<a:array<boolean>>",
            "01 00000003 0101 05",
            "row 2: cell: expected a boolean of 0 or 1, found 5",
        ),
        ("map<int,int>", "0103 01 0102", "row 2: cell: expected the end, found 1 more bytes"),
        ("map<decimal(1,0),int>", "0103 000164 02", "row 2: cell: a map's key does not fit its type"),
        ("uniontype<int>", "00 0101", "row 2: cell: expected the end, found 1 more bytes"),
    ];
    for (hive_type, hex, expected) in wrong {
        let error = decode(hive_type, &["", "", hex]).unwrap_err();
        assert_eq!(error.to_string(), expected, "{hive_type} {hex}");
        assert!(error.is_damage());
    }
}

#[test]
fn values_that_hive_cannot_write_are_errors() {
    let options = SerdeOptions::default();
    let empty: ArrayRef = Arc::new(BinaryArray::from(vec![&b""[..]]));
    assert!(
        encode_with(&HiveType::Binary, &empty, &options).unwrap_err().to_string().contains("empty binary")
    );
    let text: ArrayRef = Arc::new(StringArray::from(vec!["abc "]));
    assert!(encode_with(&HiveType::Varchar(3), &text, &options).is_err());
    assert!(encode_with(&HiveType::Char(2), &text, &options).is_err());
    assert_eq!(encode_with(&HiveType::Char(3), &text, &options).unwrap().0, b"abc");
    let error = encode_with(&HiveType::Int, &text, &options).unwrap_err();
    assert!(matches!(error.kind(), coldframe_encoding::ErrorKind::Schema(_)));
}

#[test]
fn nesting_is_limited() {
    let options = SerdeOptions {
        limits: coldframe_encoding::Limits { max_depth: 2, ..Default::default() },
        ..Default::default()
    };
    assert!(decoder(&hive("array<int>"), &options).is_ok());
    assert!(decoder(&hive("array<array<int>>"), &options).is_err());
    assert!(encoder(&hive("array<array<int>>"), &options).is_err());
}
