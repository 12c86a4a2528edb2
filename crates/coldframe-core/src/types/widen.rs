//! The common type of two types.
//!
//! | types | common type |
//! |---|---|
//! | tinyint < smallint < int < bigint | the widest |
//! | unsigned integers | the widest; if one is signed, a signed type wide enough for both, at most bigint |
//! | integers, decimal | a decimal wide enough for both |
//! | decimal(p,s), decimal(q,t) | the larger scale, the larger number of digits before the point |
//! | float < double; integers, double | double |
//! | string, binary | binary; large if one is large |
//! | timestamps of one zone, times, durations | the finer unit |
//! | struct | the fields of both, matched by name, in the order of the first struct |
//! | list, map | the common type of their elements |
//! | dictionary | the common type of its values and the other type |
//!
//! A cast to the common type must check each value: not every bigint is a double.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};

/// The maximum number of digits of a decimal in Hive, in Spark and in the lakehouse formats.
pub const MAX_PRECISION: u8 = 38;

/// Why two types have no common type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlike(String);

impl fmt::Display for Unlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn unlike<T>() -> Result<T, Unlike> {
    Err(Unlike("no type holds the values of both".to_owned()))
}

/// The type that can represent the values of both types; see the module's documentation.
pub fn wider(left: &DataType, right: &DataType) -> Result<DataType, Unlike> {
    use DataType::{Dictionary, Map, Null, Struct};
    match (left, right) {
        (Null, kind) | (kind, Null) => Ok(kind.clone()),
        (Struct(own), Struct(others)) => Ok(Struct(wider_fields(own, others)?)),
        (DataType::List(own), DataType::List(others)) => Ok(DataType::List(wider_field(own, others)?)),
        (Map(own, sorted), Map(others, others_sorted)) => {
            Ok(Map(wider_entries(own, others)?, *sorted && *others_sorted))
        }
        _ if left == right => Ok(left.clone()),
        (Dictionary(_, values), kind) | (kind, Dictionary(_, values)) => wider(values, kind),
        _ if left.is_floating() && right.is_floating() => Ok(DataType::Float64),
        _ if is_decimal(left) || is_decimal(right) => wider_decimal(left, right),
        _ if left.is_integer() && right.is_integer() => Ok(wider_integer(left, right)),
        _ if is_number(left) && is_number(right) => Ok(wider_number(left, right)),
        _ if is_bytes(left) && is_bytes(right) => Ok(wider_bytes(left, right)),
        _ => wider_time(left, right),
    }
}

fn is_decimal(kind: &DataType) -> bool {
    digits(kind).is_some() && !kind.is_integer()
}

fn is_number(kind: &DataType) -> bool {
    kind.is_integer() || kind.is_floating()
}

fn is_bytes(kind: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary, LargeUtf8, Utf8, Utf8View};
    matches!(kind, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
}

/// Digits before the point and after it; `None` for types other than decimals and signed integers.
fn digits(kind: &DataType) -> Option<(i32, i32)> {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256, Int8, Int16, Int32, Int64};
    match kind {
        Int8 => Some((3, 0)),
        Int16 => Some((5, 0)),
        Int32 => Some((10, 0)),
        Int64 => Some((19, 0)),
        Decimal32(precision, scale)
        | Decimal64(precision, scale)
        | Decimal128(precision, scale)
        | Decimal256(precision, scale) => {
            Some((i32::from(*precision) - i32::from(*scale), i32::from(*scale)))
        }
        _ => None,
    }
}

fn wider_decimal(left: &DataType, right: &DataType) -> Result<DataType, Unlike> {
    let (Some(left), Some(right)) = (digits(left), digits(right)) else { return unlike() };
    let (whole, scale) = (left.0.max(right.0), left.1.max(right.1));
    match (u8::try_from(whole + scale), i8::try_from(scale)) {
        (Ok(precision), Ok(scale)) if precision <= MAX_PRECISION => {
            Ok(DataType::Decimal128(precision, scale))
        }
        _ => {
            let asked = whole + scale;
            Err(Unlike(format!(
                "a decimal for both would need {asked} digits, but the maximum is {MAX_PRECISION}"
            )))
        }
    }
}

fn wider_integer(left: &DataType, right: &DataType) -> DataType {
    use DataType::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let bits = |kind: &DataType| kind.primitive_width().unwrap_or(8) * 8;
    let (signed, unsigned) = (left.is_signed_integer(), right.is_signed_integer());
    let widest = bits(left).max(bits(right));
    if !signed && !unsigned {
        return [UInt8, UInt16, UInt32, UInt64]
            .into_iter()
            .find(|kind| bits(kind) == widest)
            .unwrap_or(UInt64);
    }
    // To hold the values of an unsigned type, a signed type needs one bit more.
    let room = |kind: &DataType| if kind.is_signed_integer() { bits(kind) } else { bits(kind) * 2 };
    let needed = room(left).max(room(right));
    [Int8, Int16, Int32, Int64].into_iter().find(|kind| bits(kind) == needed).unwrap_or(Int64)
}

fn wider_number(left: &DataType, right: &DataType) -> DataType {
    use DataType::{Float32, Float64, Int8, Int16};
    // A float can represent every smallint exactly.
    let is_small = |kind: &DataType| matches!(kind, Int8 | Int16 | Float32);
    if is_small(left) && is_small(right) { Float32 } else { Float64 }
}

fn wider_bytes(left: &DataType, right: &DataType) -> DataType {
    use DataType::{Binary, LargeBinary, LargeUtf8, Utf8, Utf8View};
    let large = [left, right].iter().any(|kind| matches!(kind, LargeBinary | LargeUtf8));
    let text = [left, right].iter().all(|kind| matches!(kind, Utf8 | LargeUtf8 | Utf8View));
    match (text, large) {
        (true, true) => LargeUtf8,
        (true, false) => Utf8,
        (false, true) => LargeBinary,
        (false, false) => Binary,
    }
}

fn wider_time(left: &DataType, right: &DataType) -> Result<DataType, Unlike> {
    use DataType::{Date32, Date64, Duration, Time32, Time64, Timestamp};
    match (left, right) {
        (Timestamp(unit, zone), Timestamp(others, other_zone)) if zone == other_zone => {
            Ok(Timestamp(*unit.max(others), zone.clone()))
        }
        (Duration(unit), Duration(others)) => Ok(Duration(*unit.max(others))),
        (Time32(unit) | Time64(unit), Time32(others) | Time64(others)) => match unit.max(others) {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => Ok(Time32(*unit)),
            unit => Ok(Time64(*unit)),
        },
        (Date32, Date64) | (Date64, Date32) => Ok(Date64),
        _ => unlike(),
    }
}

fn wider_fields(own: &Fields, others: &Fields) -> Result<Fields, Unlike> {
    let lower = |fields: &Fields| fields.iter().map(|f| f.name().to_lowercase()).collect::<Vec<_>>();
    let (own_names, other_names) = (lower(own), lower(others));
    let is_once = |names: &[String]| {
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair.first() != pair.last())
    };
    if !is_once(&own_names) || !is_once(&other_names) {
        return Err(Unlike("fields whose names are equal but for case".to_owned()));
    }
    let mut fields = Vec::with_capacity(own.len());
    for (field, name) in own.iter().zip(&own_names) {
        let other = other_names.iter().position(|other| other == name).and_then(|place| others.get(place));
        fields.push(match other {
            Some(other) => wider_field(field, other)?,
            None => nullable(field),
        });
    }
    let more = others.iter().zip(&other_names).filter(|(_, name)| !own_names.contains(name));
    fields.extend(more.map(|(field, _)| nullable(field)));
    Ok(fields.into())
}

fn nullable(field: &FieldRef) -> FieldRef {
    if field.is_nullable() { field.clone() } else { Arc::new(field.as_ref().clone().with_nullable(true)) }
}

/// The field `own`, with a type that can represent the values of both fields.
fn wider_field(own: &FieldRef, other: &FieldRef) -> Result<FieldRef, Unlike> {
    let kind = wider(own.data_type(), other.data_type())?;
    let nullable = own.is_nullable() || other.is_nullable();
    Ok(Arc::new(own.as_ref().clone().with_data_type(kind).with_nullable(nullable)))
}

/// The entries of a map, whose two fields are matched by position.
fn wider_entries(own: &FieldRef, other: &FieldRef) -> Result<FieldRef, Unlike> {
    let (DataType::Struct(pair), DataType::Struct(others)) = (own.data_type(), other.data_type()) else {
        return unlike();
    };
    let fields: Vec<FieldRef> =
        pair.iter().zip(others).map(|(field, other)| wider_field(field, other)).collect::<Result<_, _>>()?;
    let entries = DataType::Struct(fields.into());
    Ok(Arc::new(Field::new(own.name(), entries, own.is_nullable())))
}

#[cfg(test)]
mod tests {
    use DataType::*;

    use super::*;

    fn list(kind: DataType) -> DataType {
        DataType::new_list(kind, true)
    }

    fn structs(fields: &[(&str, DataType)]) -> DataType {
        Struct(fields.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect())
    }

    #[test]
    fn types_with_a_common_type() {
        let micros = |zone: Option<&str>| Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        for (left, right, wide) in [
            (Int8, Int64, Int64),
            (UInt8, UInt32, UInt32),
            (UInt8, Int8, Int16),
            (UInt32, Int32, Int64),
            (UInt64, Int8, Int64),
            (Int32, Float64, Float64),
            (Int64, Float32, Float64),
            (UInt16, Float32, Float64),
            (Int16, Float32, Float32),
            (Float16, Float32, Float64),
            (Decimal128(10, 2), Decimal128(12, 4), Decimal128(12, 4)),
            (Decimal128(10, 2), Decimal128(10, 4), Decimal128(12, 4)),
            (Int32, Decimal128(8, 2), Decimal128(12, 2)),
            (Null, Date32, Date32),
            (Utf8, Binary, Binary),
            (LargeUtf8, Utf8View, LargeUtf8),
            (FixedSizeBinary(3), FixedSizeBinary(4), Binary),
            (micros(None), Timestamp(TimeUnit::Nanosecond, None), Timestamp(TimeUnit::Nanosecond, None)),
            (Time32(TimeUnit::Second), Time64(TimeUnit::Microsecond), Time64(TimeUnit::Microsecond)),
            (Dictionary(Box::new(Int8), Box::new(Utf8)), Utf8, Utf8),
            (list(Int8), list(Int16), list(Int16)),
            (
                LargeList(Arc::new(Field::new("item", Int8, true))),
                Null,
                LargeList(Arc::new(Field::new("item", Int8, true))),
            ),
        ] {
            assert_eq!(wider(&left, &right).unwrap(), wide, "{left} {right}");
            assert_eq!(wider(&right, &left).unwrap(), wide, "{right} {left}");
            assert_eq!(wider(&left, &left).unwrap(), left);
        }
    }

    #[test]
    fn fields_of_structs_are_matched_by_name() {
        let left = structs(&[("a", Int32), ("b", Utf8)]);
        let right = structs(&[("b", Utf8), ("A", Int64), ("c", Date32)]);
        assert_eq!(wider(&left, &right).unwrap(), structs(&[("a", Int64), ("b", Utf8), ("c", Date32)]));
        let strict = Struct(vec![Field::new("a", Int32, false)].into());
        let wide = wider(&strict, &structs(&[("b", Utf8)])).unwrap();
        assert_eq!(wide, structs(&[("a", Int32), ("b", Utf8)]));
        let twice = structs(&[("a", Int32), ("A", Int32)]);
        assert!(wider(&twice, &left).unwrap_err().to_string().contains("but for case"));
    }

    #[test]
    fn types_without_a_common_type() {
        for (left, right) in [
            (Utf8, Int32),
            (Decimal128(10, 2), Float64),
            (Timestamp(TimeUnit::Microsecond, None), Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            (Date32, Timestamp(TimeUnit::Microsecond, None)),
            (Decimal128(38, 0), Decimal128(38, 10)),
            (Boolean, Int8),
            (list(Int8), Int8),
            (UInt8, Decimal128(5, 0)),
        ] {
            wider(&left, &right).unwrap_err();
            wider(&right, &left).unwrap_err();
        }
    }
}
