//! Decodes values written by HBase's `Bytes` into Arrow columns.
//!
//! ```text
//! binary  | unchanged           string | UTF-8           boolean | 1 byte, not 0
//! short   | i16                 int    | i32             long    | i64            big-endian
//! float   | IEEE 754, 4 bytes   double | 8 bytes
//! ```
//!
//! HBase: `Bytes`.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder,
    StringBuilder,
};
use arrow_schema::DataType;
use coldframe_core::{Error, Result};

/// The type names that [`bytes_type`] accepts.
pub const BYTES_TYPES: &str = "binary, string, long, int, short, float, double, boolean";

/// The Arrow type for a type name of `Bytes`.
pub fn bytes_type(name: &str) -> Option<DataType> {
    Some(match name {
        "binary" => DataType::Binary,
        "string" => DataType::Utf8,
        "boolean" => DataType::Boolean,
        "short" => DataType::Int16,
        "int" => DataType::Int32,
        "long" => DataType::Int64,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        _ => return None,
    })
}

/// Collects the values of one column of a wide table.
#[derive(Debug)]
pub struct Values(ValueBuilder);

#[derive(Debug)]
enum ValueBuilder {
    Binary(BinaryBuilder),
    Text(StringBuilder),
    Boolean(BooleanBuilder),
    Short(Int16Builder),
    Int(Int32Builder),
    Long(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
}

impl Values {
    /// A collector for a type that [`bytes_type`] returned.
    pub fn new(data_type: &DataType) -> Result<Self> {
        Ok(Self(match data_type {
            DataType::Binary => ValueBuilder::Binary(BinaryBuilder::new()),
            DataType::Utf8 => ValueBuilder::Text(StringBuilder::new()),
            DataType::Boolean => ValueBuilder::Boolean(BooleanBuilder::new()),
            DataType::Int16 => ValueBuilder::Short(Int16Builder::new()),
            DataType::Int32 => ValueBuilder::Int(Int32Builder::new()),
            DataType::Int64 => ValueBuilder::Long(Int64Builder::new()),
            DataType::Float32 => ValueBuilder::Float(Float32Builder::new()),
            DataType::Float64 => ValueBuilder::Double(Float64Builder::new()),
            other => return Err(Error::schema(format!("no pivot to {other}"))),
        }))
    }

    /// Appends a value. Returns `false`, and appends nothing, if its bytes are no value of the column's type.
    pub fn append(&mut self, value: &[u8]) -> bool {
        macro_rules! number {
            ($builder:ident, $type:ty) => {
                value.try_into().map(|bytes| $builder.append_value(<$type>::from_be_bytes(bytes))).is_ok()
            };
        }
        match &mut self.0 {
            ValueBuilder::Binary(b) => {
                b.append_value(value);
                true
            }
            ValueBuilder::Text(b) => {
                simdutf8::basic::from_utf8(value).map(|text| b.append_value(text)).is_ok()
            }
            ValueBuilder::Boolean(b) => match value {
                [byte] => {
                    b.append_value(*byte != 0);
                    true
                }
                _ => false,
            },
            ValueBuilder::Short(b) => number!(b, i16),
            ValueBuilder::Int(b) => number!(b, i32),
            ValueBuilder::Long(b) => number!(b, i64),
            ValueBuilder::Float(b) => number!(b, f32),
            ValueBuilder::Double(b) => number!(b, f64),
        }
    }

    /// Appends a null.
    pub fn append_null(&mut self) {
        match &mut self.0 {
            ValueBuilder::Binary(b) => b.append_null(),
            ValueBuilder::Text(b) => b.append_null(),
            ValueBuilder::Boolean(b) => b.append_null(),
            ValueBuilder::Short(b) => b.append_null(),
            ValueBuilder::Int(b) => b.append_null(),
            ValueBuilder::Long(b) => b.append_null(),
            ValueBuilder::Float(b) => b.append_null(),
            ValueBuilder::Double(b) => b.append_null(),
        }
    }

    /// Returns all values since the last call.
    pub fn finish(&mut self) -> ArrayRef {
        match &mut self.0 {
            ValueBuilder::Binary(b) => Arc::new(b.finish()),
            ValueBuilder::Text(b) => Arc::new(b.finish()),
            ValueBuilder::Boolean(b) => Arc::new(b.finish()),
            ValueBuilder::Short(b) => Arc::new(b.finish()),
            ValueBuilder::Int(b) => Arc::new(b.finish()),
            ValueBuilder::Long(b) => Arc::new(b.finish()),
            ValueBuilder::Float(b) => Arc::new(b.finish()),
            ValueBuilder::Double(b) => Arc::new(b.finish()),
        }
    }
}
