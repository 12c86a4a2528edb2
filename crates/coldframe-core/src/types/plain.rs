//! The types that a consumer supports, and a substitute for each type that it lacks.
//!
//! ```text
//! uint8 .. uint32                        the next wider signed integer
//! uint64                                 decimal(20, 0)
//! float16                                float32
//! any decimal                            decimal128 of the same digits, at most the consumer's maximum
//! strings, binaries of any layout        string, binary
//! dates; times of day; durations         date32; time64[ns]; duration[us]
//! timestamps                             in the consumer's unit, of UTC or without a zone
//! dictionaries, run-end encoded          the type of the values
//! lists of any layout; structs; maps     list<element>, struct, map of plain types; all nullable except keys
//! unions                                 struct<tag: int32, f0, f1 ..>
//! ```

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};

use super::{MAX_PRECISION, name};
use crate::{Error, Result};

/// A consumer of Arrow data: Spark, and the table formats that it reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct Consumer {
    /// The consumer's name in errors.
    pub name: &'static str,
    /// The consumer's unit of timestamps.
    pub unit: TimeUnit,
    /// The maximum number of digits of the consumer's decimals.
    pub digits: u8,
}

impl Consumer {
    /// Spark. Spark's unit is the microsecond, but files for Spark may hold nanoseconds.
    pub const fn spark(unit: TimeUnit) -> Self {
        Self { name: "Spark", unit, digits: MAX_PRECISION }
    }

    /// The schema with the consumer's types, without metadata, and with all columns nullable: a file's claim
    /// that a column has no nulls is not reliable.
    pub fn schema(&self, of: &Schema) -> Result<Schema> {
        Ok(Schema::new(self.fields(&of.fields)?))
    }

    /// The consumer's type for the values of another type.
    pub fn plain(&self, of: &DataType) -> Result<DataType> {
        use DataType as T;
        Ok(match of {
            T::Null | T::Boolean | T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::Float32 | T::Float64 => {
                of.clone()
            }
            T::UInt8 => T::Int16,
            T::UInt16 => T::Int32,
            T::UInt32 => T::Int64,
            T::UInt64 => T::Decimal128(20, 0),
            T::Float16 => T::Float32,
            T::Decimal32(digits, scale)
            | T::Decimal64(digits, scale)
            | T::Decimal128(digits, scale)
            | T::Decimal256(digits, scale) => self.decimal(of, *digits, *scale)?,
            T::Utf8 | T::LargeUtf8 | T::Utf8View => T::Utf8,
            T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => T::Binary,
            T::Date32 | T::Date64 => T::Date32,
            T::Timestamp(_, zone) => T::Timestamp(self.unit, zone.as_ref().map(|_| "UTC".into())),
            T::Time32(_) | T::Time64(_) => T::Time64(TimeUnit::Nanosecond),
            T::Duration(_) => T::Duration(TimeUnit::Microsecond),
            T::Dictionary(_, values) => self.plain(values)?,
            T::RunEndEncoded(_, values) => self.plain(values.data_type())?,
            T::List(item)
            | T::LargeList(item)
            | T::ListView(item)
            | T::LargeListView(item)
            | T::FixedSizeList(item, _) => {
                T::List(Arc::new(Field::new("element", self.plain(item.data_type())?, true)))
            }
            T::Struct(fields) => T::Struct(self.fields(fields)?),
            T::Map(entries, _) => self.map(of, entries)?,
            T::Union(branches, _) => {
                let mut fields = vec![Field::new("tag", T::Int32, true)];
                for (place, (_, branch)) in branches.iter().enumerate() {
                    fields.push(Field::new(format!("f{place}"), self.plain(branch.data_type())?, true));
                }
                T::Struct(fields.into())
            }
            T::Interval(_) => return Err(self.lacks(of)),
        })
    }

    fn fields(&self, of: &Fields) -> Result<Fields> {
        of.iter().map(|field| Ok(Field::new(field.name(), self.plain(field.data_type())?, true))).collect()
    }

    fn map(&self, of: &DataType, entries: &FieldRef) -> Result<DataType> {
        let pair = match entries.data_type() {
            DataType::Struct(pair) => pair.iter().collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        let [key, value] = pair.as_slice() else { return Err(self.lacks(of)) };
        let pair = [
            Field::new("key", self.plain(key.data_type())?, false),
            Field::new("value", self.plain(value.data_type())?, true),
        ];
        let entries = Field::new("entries", DataType::Struct(pair.to_vec().into()), false);
        Ok(DataType::Map(Arc::new(entries), false))
    }

    fn decimal(&self, of: &DataType, digits: u8, scale: i8) -> Result<DataType> {
        // A negative scale means that the number ends with zeros before the point.
        let (digits, scale) = match u8::try_from(scale) {
            Ok(scale) => (digits.max(scale), scale),
            Err(_) => (digits.saturating_add(scale.unsigned_abs()), 0),
        };
        match i8::try_from(scale) {
            Ok(scale) if digits <= self.digits => Ok(DataType::Decimal128(digits, scale)),
            _ => Err(Error::unsupported(format!(
                "{} has no type for Arrow's {}: its decimals have at most {} digits",
                self.name,
                name(of),
                self.digits
            ))),
        }
    }

    fn lacks(&self, of: &DataType) -> Error {
        Error::unsupported(format!("{} has no type for Arrow's {}", self.name, name(of)))
    }
}

/// A type as text that ignores the order of struct fields, since readers match fields by name.
pub fn shape(of: &DataType) -> String {
    match of {
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| format!("{}: {}", field.name(), shape(field.data_type())));
            let mut fields: Vec<String> = fields.collect();
            fields.sort();
            format!("struct<{}>", fields.join(", "))
        }
        DataType::List(item) => format!("list<{}>", shape(item.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                let pair: Vec<String> = pair.iter().map(|field| shape(field.data_type())).collect();
                format!("map<{}>", pair.join(", "))
            }
            other => format!("map<{}>", shape(other)),
        },
        other => name(other),
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{IntervalUnit, UnionFields, UnionMode};

    use super::*;

    const SPARK: Consumer = Consumer::spark(TimeUnit::Microsecond);

    #[test]
    fn plain_types_map_to_themselves() {
        let field = |kind: DataType| Arc::new(Field::new("x", kind, false));
        let branches = UnionFields::try_new([0, 1], [field(DataType::UInt8), field(DataType::Utf8)]).unwrap();
        let pair = DataType::Struct(vec![field(DataType::LargeUtf8), field(DataType::UInt16)].into());
        for (of, expected) in [
            (DataType::UInt64, "decimal128(20, 0)"),
            (DataType::Decimal256(10, 2), "decimal128(10, 2)"),
            (DataType::Decimal128(5, -3), "decimal128(8, 0)"),
            (DataType::Decimal128(2, 5), "decimal128(5, 5)"),
            (DataType::Timestamp(TimeUnit::Second, Some("Europe/Berlin".into())), "timestamp[us, tz=UTC]"),
            (DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8View)), "string"),
            (DataType::LargeList(field(DataType::Date64)), "list<element: date32[day]>"),
            (DataType::Map(field(pair), true), "map<string, int32>"),
            (DataType::Union(branches, UnionMode::Dense), "struct<tag: int32, f0: int16, f1: string>"),
            (DataType::Struct(vec![field(DataType::Float16)].into()), "struct<x: float>"),
        ] {
            let plain = SPARK.plain(&of).unwrap();
            assert_eq!(name(&plain), expected);
            assert_eq!(SPARK.plain(&plain).unwrap(), plain);
        }
        let many = SPARK.plain(&DataType::Decimal256(60, 2)).unwrap_err().to_string();
        assert!(
            many.contains(
                "Spark has no type for Arrow's decimal256(60, 2): its decimals have at most 38 digits"
            ),
            "{many}"
        );
        assert!(SPARK.plain(&DataType::Interval(IntervalUnit::DayTime)).is_err());
    }

    #[test]
    fn shapes_ignore_the_order_of_fields() {
        let structure = |names: [&str; 2]| {
            DataType::Struct(names.map(|name| Field::new(name, DataType::Int8, true)).to_vec().into())
        };
        assert_eq!(shape(&structure(["b", "a"])), "struct<a: int8, b: int8>");
        assert_eq!(shape(&structure(["b", "a"])), shape(&structure(["a", "b"])));
    }
}
