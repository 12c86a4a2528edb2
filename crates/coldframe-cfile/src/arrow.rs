//! Kudu's types in Arrow.

use arrow_schema::{DataType, TimeUnit};
use coldframe_core::{Error, Result};

use crate::layout::types::KuduType;

impl KuduType {
    /// The default Arrow type of this type's values. A CFile stores no precision and no scale.
    pub fn arrow(self) -> DataType {
        match self {
            Self::UInt8 => DataType::UInt8,
            Self::Int8 => DataType::Int8,
            Self::UInt16 => DataType::UInt16,
            Self::Int16 => DataType::Int16,
            Self::UInt32 => DataType::UInt32,
            Self::Int32 => DataType::Int32,
            Self::UInt64 => DataType::UInt64,
            Self::Int64 => DataType::Int64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Bool | Self::IsDeleted => DataType::Boolean,
            Self::String | Self::Varchar => DataType::Utf8,
            Self::Binary => DataType::Binary,
            Self::UnixtimeMicros => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Date => DataType::Date32,
            Self::Decimal32 => DataType::Decimal128(9, 0),
            Self::Decimal64 => DataType::Decimal128(18, 0),
            Self::Int128 | Self::Decimal128 => DataType::Decimal128(38, 0),
        }
    }

    /// Fails if values of this type cannot be returned as `to`. Possible types: its own Arrow type, a decimal
    /// of any precision and scale for decimals, bytes for text, views of either, or a dictionary of text or
    /// bytes.
    pub fn check_arrow(self, to: &DataType) -> Result<()> {
        let own = self.arrow();
        let fits = match (&own, to) {
            (a, b) if a == b => true,
            (DataType::Decimal128(..), DataType::Decimal128(..)) => true,
            (
                DataType::Timestamp(TimeUnit::Microsecond, _),
                DataType::Timestamp(TimeUnit::Microsecond, _),
            ) => true,
            (DataType::Utf8, DataType::Binary | DataType::Utf8View | DataType::BinaryView) => true,
            (DataType::Binary, DataType::BinaryView) => true,
            (DataType::Utf8 | DataType::Binary, DataType::Dictionary(key, value)) => {
                **key == DataType::Int32 && (**value == own || **value == DataType::Binary)
            }
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(Error::schema(format!("values of Kudu's {self} are returned as {own}, not as {to}")))
    }
}
