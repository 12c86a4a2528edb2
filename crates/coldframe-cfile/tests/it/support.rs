//! Writes and opens files of generated columns.

#![allow(dead_code, reason = "each test uses some of it")]

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, RecordBatch, StringArray, make_array,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema};
use coldframe_cfile::layout::types::{Encoding, KuduType, Physical};
use coldframe_cfile::write::{Options, Writer};
use coldframe_cfile::{CFileFormat, CFileTable};
use coldframe_core::format::Format;
use coldframe_core::{BatchWriter, OpenOptions, Result, Source, TableFile, Value};
use coldframe_testing::Dice;
use coldframe_testing::written::Sink;

pub(crate) fn try_write(values: &ArrayRef, nullable: bool, options: &Options) -> Result<Vec<u8>> {
    let field = Field::new("value", values.data_type().clone(), nullable);
    let schema = Arc::new(Schema::new(vec![field]));
    let out = Sink::default();
    let mut writer = Box::new(Writer::new(Box::new(out.clone()), &schema, options)?);
    let half = values.len() / 2;
    for part in [values.slice(0, half), values.slice(half, values.len() - half)] {
        writer.write(&RecordBatch::try_new(schema.clone(), vec![part]).unwrap())?;
    }
    let len = writer.finish()?;
    let bytes = out.take();
    assert_eq!(bytes.len() as u64, len);
    Ok(bytes)
}

pub(crate) fn write(values: &ArrayRef, nullable: bool, options: &Options) -> Vec<u8> {
    try_write(values, nullable, options).unwrap()
}

pub(crate) fn open_with(bytes: &[u8], extra: &[(&str, Value)]) -> Result<CFileTable> {
    let extra = extra.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    let options = OpenOptions { extra, ..OpenOptions::default() };
    let source = bytes::Bytes::from(bytes.to_vec());
    assert_eq!(CFileFormat.open(&Source::file("memory", Arc::new(source.clone())), &options).is_ok(), {
        let options = coldframe_cfile::options::Options::new(&options)?;
        CFileTable::open(Arc::new(source.clone()), options).is_ok()
    });
    CFileTable::open(Arc::new(source), coldframe_cfile::options::Options::new(&options)?)
}

pub(crate) fn open(bytes: &[u8]) -> Result<CFileTable> {
    let file = open_with(bytes, &[])?;
    assert_eq!(file.format(), "cfile");
    Ok(file)
}

/// All types that the writer supports.
pub(crate) fn types() -> Vec<KuduType> {
    use KuduType::*;
    vec![
        UInt8,
        Int8,
        UInt16,
        Int16,
        UInt32,
        Int32,
        UInt64,
        Int64,
        String,
        Bool,
        Float,
        Double,
        Binary,
        UnixtimeMicros,
        Int128,
        Decimal32,
        Decimal64,
        Decimal128,
        IsDeleted,
        Varchar,
        Date,
    ]
}

/// The encodings of a type.
pub(crate) fn encodings(data_type: KuduType) -> Vec<Encoding> {
    use Encoding::*;
    match data_type.physical() {
        Physical::Bool => vec![Plain, Rle],
        Physical::Binary => vec![Plain, Prefix, Dict],
        Physical::Fixed(16) => vec![Plain, BitShuffle],
        _ => match data_type {
            KuduType::Float | KuduType::Double => vec![Plain, BitShuffle],
            KuduType::UInt32 => vec![Plain, Rle, BitShuffle, GroupVarint],
            _ => vec![Plain, Rle, BitShuffle],
        },
    }
}

/// `rows` values, some of them in runs. Every `nulls`-th value is null (1: all values; 0: no value).
pub(crate) fn column(data_type: KuduType, rows: usize, nulls: usize, seed: u64) -> ArrayRef {
    let mut dice = Dice::new(seed);
    let valid: Vec<bool> =
        (0..rows).map(|i| nulls == 0 || (nulls > 1 && i % nulls != 1 && i % 97 > 5)).collect();
    let mut numbers: Vec<u64> = Vec::with_capacity(rows);
    while numbers.len() < rows {
        let run = if dice.below(3) == 0 { dice.below(40) } else { 1 };
        let value = dice.roll() >> dice.below(64);
        numbers.extend(std::iter::repeat_n(value, run));
    }
    numbers.truncate(rows);
    let zip = || numbers.iter().zip(&valid);
    let text = |n: &u64| format!("{:0>1$}", n % 1000, (n % 23) as usize);
    match data_type.arrow() {
        DataType::Boolean => Arc::new(zip().map(|(n, v)| v.then_some(n % 2 == 0)).collect::<BooleanArray>()),
        DataType::Utf8 => Arc::new(zip().map(|(n, v)| v.then(|| text(n))).collect::<StringArray>()),
        DataType::Binary => {
            let bytes = |n: &u64| [&n.to_le_bytes()[..], text(n).as_bytes()].concat();
            Arc::new(zip().map(|(n, v)| v.then(|| bytes(n))).collect::<BinaryArray>())
        }
        to @ DataType::Decimal128(..) => {
            let modulus = match data_type.physical() {
                Physical::Fixed(4) => 999_999_999i128,
                Physical::Fixed(8) => 999_999_999_999_999_999,
                _ => 10i128.pow(37),
            };
            let sign = |n: &u64| if n.is_multiple_of(3) { -1 } else { 1 };
            let wide = |n: &u64| (i128::from(*n >> 1) * i128::from(*n >> 2) % modulus) * sign(n);
            Arc::new(zip().map(|(n, v)| v.then(|| wide(n))).collect::<Decimal128Array>().with_data_type(to))
        }
        to => {
            let Physical::Fixed(width) = data_type.physical() else { unreachable!() };
            let bytes: Vec<u8> = zip()
                .flat_map(|(n, v)| if *v { *n } else { 0 }.to_le_bytes().into_iter().take(width))
                .collect();
            let nulls = (!valid.iter().all(|v| *v)).then(|| NullBuffer::from(valid.clone()));
            let data = ArrayData::builder(to).len(rows).nulls(nulls).add_buffer(Buffer::from(bytes));
            make_array(data.align_buffers(true).build().unwrap())
        }
    }
}
