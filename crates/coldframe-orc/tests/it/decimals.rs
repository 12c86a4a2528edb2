//! Reads decimals of Hive 0.11, whose type states no precision: values have different scales, and keep all
//! digits.

use crate::support;

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_schema::DataType;
use coldframe_core::{OnError, OpenOptions, SchemaSpec};
use coldframe_orc::Kind;
use coldframe_testing::rows;
use support::crafted::Crafted;
use support::open;

const DATA: u32 = 1;
const SECONDARY: u32 = 5;

/// A file of decimals without precision: unscaled values below 64, and scales in a run of literals.
fn file(values: &[(u8, u8)]) -> Crafted {
    let data = values.iter().map(|(value, _)| value << 1).collect();
    // These are literals of RLE version 1, each in zigzag.
    let mut scales = vec![0u8.wrapping_sub(u8::try_from(values.len()).unwrap())];
    scales.extend(values.iter().map(|(_, scale)| scale << 1));
    let streams = vec![(DATA, 1, data), (SECONDARY, 1, scales)];
    let mut crafted = Crafted::new(Kind::Decimal, values.len() as u64, streams);
    crafted.encodings.iter_mut().for_each(|encoding| encoding.kind = Some(0));
    crafted
}

fn read(crafted: &Crafted, options: &OpenOptions) -> Result<(DataType, Vec<i128>), String> {
    let opened = open("hive 0.11", crafted.bytes(), options).map_err(|e| e.to_string())?;
    let got = rows::read(opened.file.as_ref(), OnError::Raise).unwrap();
    got.error.map_or(Ok(()), |e| Err(e.to_string()))?;
    let column = got.batch.column(0);
    Ok((column.data_type().clone(), column.as_primitive::<Decimal128Type>().values().to_vec()))
}

#[test]
fn no_digit_after_the_point_is_lost() {
    let (kind, values) = read(&file(&[(15, 1), (7, 16), (3, 0)]), &OpenOptions::default()).unwrap();
    assert_eq!(kind, DataType::Decimal128(38, 16));
    assert_eq!(values, [15 * 10i128.pow(15), 7, 3 * 10i128.pow(16)]);
    // Java's default scale is used if it is enough, so that the files of a table have the same type.
    let (kind, values) = read(&file(&[(15, 1), (7, 4)]), &OpenOptions::default()).unwrap();
    assert_eq!((kind, values), (DataType::Decimal128(38, 10), vec![15 * 10i128.pow(9), 7 * 10i128.pow(6)]));
}

#[test]
fn precision_and_scale_may_be_declared() {
    let declared =
        |ddl: &str| OpenOptions { schema: Some(SchemaSpec::Ddl(ddl.to_owned())), ..OpenOptions::default() };
    let (kind, values) = read(&file(&[(15, 1), (7, 3)]), &declared("id decimal(20,3)")).unwrap();
    assert_eq!((kind, values), (DataType::Decimal128(20, 3), vec![1500, 7]));
    // A digit that does not fit must not be dropped.
    let e = read(&file(&[(15, 1), (7, 3)]), &declared("id decimal(20,2)")).unwrap_err();
    assert!(e.contains("expected a decimal of scale 2, found one of scale 3"), "{e}");
}

/// If a value would need more than 38 digits at the scale of another one, it is not truncated.
#[test]
fn values_beyond_38_digits_are_an_error() {
    let e = read(&file(&[(63, 0), (1, 38)]), &OpenOptions::default()).unwrap_err();
    assert!(e.contains("room for scale 38"), "{e}");
}
