//! Which conversion applies to which pair of primitive types, and the loops over the values.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int64Type, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, PrimitiveArray,
    StringArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};

use super::super::ddl::Kind;
use super::number::Number;
use super::numbers::Width;
use super::{Reader, Rules, numbers, texts, times};
use crate::{Error, Result, arrow_error};

/// A value of a file's column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Boolean(bool),
    Integer(i64),
    /// The value as a double, and whether the column is a float.
    Float(f64, bool),
    Decimal(Number),
    /// Of a `string`.
    Text(&'a str),
    /// Of a `char`, without its padding, or a `varchar`.
    Character(&'a str),
    Bytes(&'a [u8]),
    /// Days since 1970-01-01.
    Date(i32),
    Time(Time),
}

/// A timestamp: of a wall clock, or an instant in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    /// Seconds since 1970-01-01, rounded down.
    pub(super) seconds: i64,
    /// 0..=999,999,999
    pub(super) nanos: u32,
}

/// A conversion between two types that are not the same.
#[derive(Clone, Debug)]
pub(super) struct Primitive {
    own: Kind,
    wanted: Kind,
    rules: Rules,
}

/// Groups of types that convert in the same way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Number,
    Text,
    Binary,
    Date,
    Time,
}

fn class(kind: &Kind) -> Option<Class> {
    Some(match kind {
        Kind::Boolean | Kind::TinyInt | Kind::SmallInt | Kind::Int | Kind::BigInt | Kind::Float | Kind::Double => {
            Class::Number
        }
        Kind::Decimal { .. } => Class::Number,
        Kind::String | Kind::Varchar(_) | Kind::Char(_) => Class::Text,
        Kind::Binary => Class::Binary,
        Kind::Date => Class::Date,
        Kind::Timestamp | Kind::TimestampLocalTz => Class::Time,
        _ => return None,
    })
}

impl Primitive {
    /// The conversion of one type to another; `None` if Hive refuses it.
    pub(super) fn new(own: &Kind, wanted: &Kind, rules: Rules) -> Option<Self> {
        // Instants depend on the zone of Hive's session, or are refused.
        if [own, wanted].contains(&&Kind::TimestampLocalTz) {
            return None;
        }
        let allowed = match (class(own)?, class(wanted)?) {
            (Class::Text, _) if *wanted == Kind::Boolean && rules.reader == Reader::Rows => *own == Kind::String,
            (Class::Number | Class::Time, Class::Binary) | (Class::Number, Class::Date) => false,
            (Class::Date, Class::Number | Class::Binary) => false,
            (Class::Binary, wanted) => wanted == Class::Text,
            _ => true,
        };
        allowed.then(|| Self { own: own.clone(), wanted: wanted.clone(), rules })
    }

    /// See [`super::Conversion::keeps_filters`].
    pub(super) fn keeps_filters(&self) -> bool {
        let width = |kind: &Kind| {
            [Kind::TinyInt, Kind::SmallInt, Kind::Int, Kind::BigInt].iter().position(|known| known == kind)
        };
        match (&self.own, &self.wanted) {
            (Kind::Decimal { precision, scale }, Kind::Decimal { precision: wider, scale: longer }) => {
                scale <= longer && precision - scale <= wider - longer
            }
            (Kind::Float, Kind::Double) => true,
            (own, wanted) => matches!((width(own), width(wanted)), (Some(own), Some(wanted)) if own < wanted),
        }
    }

    pub(super) fn convert(&self, array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
        let values = Values::new(array, &self.own, self.wanted != Kind::Binary)?;
        let rules = self.rules;
        let integers = |width| values.integers(width, rules);
        Ok(match &self.wanted {
            Kind::Boolean => {
                let booleans = values.iter().map(|value| value.and_then(|value| numbers::boolean(value, rules)));
                Arc::new(booleans.collect::<BooleanArray>())
            }
            Kind::TinyInt => cast(&integers(Width::Tiny), &DataType::Int8).map_err(arrow_error)?,
            Kind::SmallInt => cast(&integers(Width::Small), &DataType::Int16).map_err(arrow_error)?,
            Kind::Int => cast(&integers(Width::Int), &DataType::Int32).map_err(arrow_error)?,
            Kind::BigInt => Arc::new(integers(Width::Big)),
            Kind::Float => Arc::new(values.primitive::<Float32Type>(|value| numbers::float(value, rules))),
            Kind::Double => Arc::new(values.primitive::<Float64Type>(|value| numbers::double(value, rules))),
            Kind::Decimal { precision, scale } => values.decimals(*precision, *scale, rules)?,
            Kind::String => values.texts(rules, |_| {}),
            Kind::Varchar(length) => values.texts(rules, |text| texts::cut(text, *length)),
            Kind::Char(length) => values.texts(rules, |text| texts::padded(text, *length)),
            Kind::Binary => values.bytes(),
            Kind::Date => Arc::new(values.primitive::<Date32Type>(|value| times::date(value, rules))),
            Kind::Timestamp => values.times(target, |value| times::time(value, rules))?,
            wanted => return Err(Error::schema(format!("no conversion to {wanted}"))),
        })
    }
}

/// The values of an array in the layout that conversions read.
enum Values {
    Booleans(BooleanArray),
    Integers(Int64Array),
    Floats(Float64Array, bool),
    Decimals(Decimal128Array, i8),
    Texts(StringArray),
    /// With whether blanks at the end are padding.
    Characters(StringArray, bool),
    Bytes(BinaryArray),
    Dates(Date32Array),
    /// With the number of its units in a second.
    Times(Int64Array, i64),
}

impl Values {
    /// `stripped`: whether `char` loses its padding.
    fn new(array: &ArrayRef, own: &Kind, stripped: bool) -> Result<Self> {
        let laid_out = |kind: &DataType| -> Result<ArrayRef> {
            if array.data_type() == kind { Ok(array.clone()) } else { cast(array, kind).map_err(arrow_error) }
        };
        Ok(match own {
            Kind::Boolean => Self::Booleans(laid_out(&DataType::Boolean)?.as_boolean().clone()),
            Kind::TinyInt | Kind::SmallInt | Kind::Int | Kind::BigInt => {
                Self::Integers(laid_out(&DataType::Int64)?.as_primitive().clone())
            }
            Kind::Float | Kind::Double => {
                Self::Floats(laid_out(&DataType::Float64)?.as_primitive().clone(), *own == Kind::Float)
            }
            Kind::Decimal { .. } => {
                let decimals = match array.data_type() {
                    DataType::Decimal128(..) => array.clone(),
                    DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
                        laid_out(&DataType::Decimal128(*precision, *scale))?
                    }
                    other => return Err(Error::schema(format!("expected decimals, found {other}"))),
                };
                let decimals = decimals.as_primitive::<Decimal128Type>().clone();
                let scale = decimals.scale();
                Self::Decimals(decimals, scale)
            }
            Kind::String => Self::Texts(laid_out(&DataType::Utf8)?.as_string().clone()),
            Kind::Varchar(_) => Self::Characters(laid_out(&DataType::Utf8)?.as_string().clone(), false),
            Kind::Char(_) => Self::Characters(laid_out(&DataType::Utf8)?.as_string().clone(), stripped),
            Kind::Binary => Self::Bytes(laid_out(&DataType::Binary)?.as_binary().clone()),
            Kind::Date => Self::Dates(laid_out(&DataType::Date32)?.as_primitive().clone()),
            _ => {
                let DataType::Timestamp(unit, _) = array.data_type() else {
                    return Err(Error::schema(format!("expected timestamps, found {}", array.data_type())));
                };
                Self::Times(laid_out(&DataType::Int64)?.as_primitive().clone(), times::per_second(*unit))
            }
        })
    }

    fn array(&self) -> &dyn Array {
        match self {
            Self::Booleans(array) => array,
            Self::Integers(array) | Self::Times(array, _) => array,
            Self::Floats(array, _) => array,
            Self::Decimals(array, _) => array,
            Self::Texts(array) | Self::Characters(array, _) => array,
            Self::Bytes(array) => array,
            Self::Dates(array) => array,
        }
    }

    fn value(&self, row: usize) -> Value<'_> {
        match self {
            Self::Booleans(array) => Value::Boolean(array.value(row)),
            Self::Integers(array) => Value::Integer(array.value(row)),
            Self::Floats(array, is_float) => Value::Float(array.value(row), *is_float),
            Self::Decimals(array, scale) => Value::Decimal(Number::new(array.value(row), *scale)),
            Self::Texts(array) => Value::Text(array.value(row)),
            Self::Characters(array, true) => Value::Character(array.value(row).trim_end_matches(' ')),
            Self::Characters(array, false) => Value::Character(array.value(row)),
            Self::Bytes(array) => Value::Bytes(array.value(row)),
            Self::Dates(array) => Value::Date(array.value(row)),
            Self::Times(array, unit) => Value::Time(Time::of_units(array.value(row), *unit)),
        }
    }

    fn iter(&self) -> impl Iterator<Item = Option<Value<'_>>> {
        let array = self.array();
        (0..array.len()).map(move |row| array.is_valid(row).then(|| self.value(row)))
    }

    fn primitive<'a, T: ArrowPrimitiveType>(
        &'a self,
        convert: impl Fn(Value<'a>) -> Option<T::Native>,
    ) -> PrimitiveArray<T> {
        self.iter().map(|value| value.and_then(&convert)).collect()
    }

    /// Integers in the range of a type.
    fn integers(&self, width: Width, rules: Rules) -> Int64Array {
        self.primitive::<Int64Type>(|value| numbers::integer(value, width, rules))
    }

    fn decimals(&self, precision: u32, scale: u32, rules: Rules) -> Result<ArrayRef> {
        let (Ok(precision), Ok(scale), Ok(arrow_scale)) =
            (u8::try_from(precision), u8::try_from(scale), i8::try_from(scale))
        else {
            return Err(Error::schema(format!("no decimal({precision},{scale})")));
        };
        let made = self.primitive::<Decimal128Type>(|value| numbers::decimal(value, rules)?.fitted(precision, scale));
        Ok(Arc::new(made.with_precision_and_scale(precision, arrow_scale).map_err(arrow_error)?))
    }

    fn texts(&self, rules: Rules, shape: impl Fn(&mut String)) -> ArrayRef {
        let mut made = StringBuilder::with_capacity(self.array().len(), 0);
        let mut text = String::new();
        for value in self.iter() {
            text.clear();
            match value.and_then(|value| texts::print(value, rules, &mut text)) {
                Some(()) => {
                    shape(&mut text);
                    made.append_value(&text);
                }
                None => made.append_null(),
            }
        }
        Arc::new(made.finish())
    }

    /// Text as its bytes.
    fn bytes(&self) -> ArrayRef {
        let mut made = BinaryBuilder::new();
        for value in self.iter() {
            match value {
                Some(Value::Text(text) | Value::Character(text)) => made.append_value(text),
                Some(Value::Bytes(bytes)) => made.append_value(bytes),
                _ => made.append_null(),
            }
        }
        Arc::new(made.finish())
    }

    fn times(&self, target: &DataType, convert: impl Fn(Value<'_>) -> Option<Time>) -> Result<ArrayRef> {
        let DataType::Timestamp(unit, zone) = target else {
            return Err(Error::schema(format!("expected a type of timestamps, found {target}")));
        };
        let mut counts = Vec::with_capacity(self.array().len());
        for value in self.iter() {
            counts.push(value.and_then(&convert).map(|time| time.count(*unit)).transpose()?);
        }
        Ok(match unit {
            TimeUnit::Nanosecond => {
                let made: PrimitiveArray<TimestampNanosecondType> = counts.into_iter().collect();
                Arc::new(made.with_timezone_opt(zone.clone()))
            }
            TimeUnit::Microsecond => {
                let made: PrimitiveArray<TimestampMicrosecondType> = counts.into_iter().collect();
                Arc::new(made.with_timezone_opt(zone.clone()))
            }
            _ => return Err(Error::schema(format!("expected micro- or nanoseconds, found {target}"))),
        })
    }
}
