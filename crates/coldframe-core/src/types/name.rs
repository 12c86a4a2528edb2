//! The names of Arrow types in Python.

use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};

/// The type as pyarrow prints it: `int64`, `timestamp[us, tz=UTC]`, `list<item: string>`.
pub fn name(kind: &DataType) -> String {
    use DataType as T;
    match kind {
        T::Null => "null".to_owned(),
        T::Boolean => "bool".to_owned(),
        T::Float16 => "halffloat".to_owned(),
        T::Float32 => "float".to_owned(),
        T::Float64 => "double".to_owned(),
        T::Utf8 => "string".to_owned(),
        T::LargeUtf8 => "large_string".to_owned(),
        T::Utf8View => "string_view".to_owned(),
        T::LargeBinary => "large_binary".to_owned(),
        T::BinaryView => "binary_view".to_owned(),
        T::FixedSizeBinary(width) => format!("fixed_size_binary[{width}]"),
        T::Date32 => "date32[day]".to_owned(),
        T::Date64 => "date64[ms]".to_owned(),
        T::Time32(unit) => format!("time32[{}]", of_unit(*unit)),
        T::Time64(unit) => format!("time64[{}]", of_unit(*unit)),
        T::Duration(unit) => format!("duration[{}]", of_unit(*unit)),
        T::Timestamp(unit, None) => format!("timestamp[{}]", of_unit(*unit)),
        T::Timestamp(unit, Some(zone)) => format!("timestamp[{}, tz={zone}]", of_unit(*unit)),
        T::Decimal32(precision, scale) => format!("decimal32({precision}, {scale})"),
        T::Decimal64(precision, scale) => format!("decimal64({precision}, {scale})"),
        T::Decimal128(precision, scale) => format!("decimal128({precision}, {scale})"),
        T::Decimal256(precision, scale) => format!("decimal256({precision}, {scale})"),
        T::List(item) => format!("list<{}>", of_field(item)),
        T::LargeList(item) => format!("large_list<{}>", of_field(item)),
        T::FixedSizeList(item, length) => format!("fixed_size_list<{}>[{length}]", of_field(item)),
        T::Struct(fields) => {
            let fields: Vec<String> = fields.iter().map(|field| of_field(field)).collect();
            format!("struct<{}>", fields.join(", "))
        }
        T::Map(entries, _) => match entries.data_type() {
            T::Struct(pair) => {
                let pair: Vec<String> = pair.iter().map(|field| name(field.data_type())).collect();
                format!("map<{}>", pair.join(", "))
            }
            other => format!("map<{}>", name(other)),
        },
        T::Dictionary(keys, values) => {
            format!("dictionary<values={}, indices={}, ordered=0>", name(values), name(keys))
        }
        T::Interval(IntervalUnit::YearMonth) => "month_interval".to_owned(),
        T::Interval(IntervalUnit::DayTime) => "day_time_interval".to_owned(),
        T::Interval(IntervalUnit::MonthDayNano) => "month_day_nano_interval".to_owned(),
        // For integers and binary, pyarrow's names are the names of the Rust crate in lower case.
        other => other.to_string().to_lowercase(),
    }
}

fn of_field(field: &Field) -> String {
    let not_null = if field.is_nullable() { "" } else { " not null" };
    format!("{}: {}{not_null}", field.name(), name(field.data_type()))
}

fn of_unit(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn types_have_the_names_that_python_prints() {
        let field = |name: &str, kind: DataType, null: bool| Arc::new(Field::new(name, kind, null));
        let pair = vec![field("key", DataType::Utf8, false), field("value", DataType::Float64, true)];
        let map = DataType::Map(field("entries", DataType::Struct(pair.into()), false), false);
        for (kind, text) in [
            (DataType::Int64, "int64"),
            (DataType::UInt8, "uint8"),
            (DataType::Binary, "binary"),
            (DataType::Decimal128(5, 2), "decimal128(5, 2)"),
            (DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), "timestamp[us, tz=UTC]"),
            (DataType::List(field("item", DataType::Date32, true)), "list<item: date32[day]>"),
            (DataType::Struct(vec![field("a", DataType::Int8, false)].into()), "struct<a: int8 not null>"),
            (map, "map<string, double>"),
        ] {
            assert_eq!(name(&kind), text);
        }
    }
}
