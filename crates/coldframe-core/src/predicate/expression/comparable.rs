//! Decides whether this crate compares a column with a value as pyarrow does.

use arrow_schema::DataType;

/// For comparisons. pyarrow casts both sides to a common type; this crate compares exactly. Both select the
/// same rows if the common type can represent all values, or if pyarrow refuses the values that it cannot
/// represent.
pub(super) fn comparable(column: &DataType, value: &DataType) -> bool {
    use DataType::{Date32, Date64, Dictionary, Time32, Time64, Timestamp};
    match (column, value) {
        (Dictionary(_, column), value) => comparable(column, value),
        (column, Dictionary(_, value)) => comparable(column, value),
        (Timestamp(_, zone), Timestamp(_, other)) => zone.is_some() == other.is_some(),
        (Timestamp(_, None) | Date32 | Date64, Timestamp(_, None) | Date32 | Date64) => true,
        (Time32(_) | Time64(_), _) => column == value,
        (DataType::Boolean, DataType::Boolean) => true,
        _ if is_text(column) => is_text(value),
        _ if is_bytes(column) => is_text(value) || is_bytes(value),
        // pyarrow compares a decimal and a double as doubles.
        _ if column.is_decimal() => value.is_decimal() || value.is_integer(),
        _ if column.is_floating() => value.is_floating() || value.is_integer(),
        _ if column.is_integer() => value.is_numeric(),
        _ => false,
    }
}

/// For membership in sets, whose values pyarrow casts to the column's type.
pub(super) fn comparable_set(column: &DataType, values: &DataType) -> bool {
    let rounds = values.is_floating() || column.is_floating();
    comparable(column, values) && (!rounds || column == values)
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_bytes(kind: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
    matches!(kind, Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
}

#[cfg(test)]
mod tests {
    use arrow_schema::TimeUnit;

    use super::*;

    #[test]
    fn types_that_pyarrow_compares_less_exactly_are_left_to_it() {
        let instant = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Second, zone.map(Into::into));
        let (decimal, double) = (DataType::Decimal128(9, 2), DataType::Float64);
        let words = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        for (column, value, same) in [
            (&DataType::Int8, &DataType::Int64, true),
            (&DataType::Int64, &double, true),
            (&decimal, &double, false),
            (&decimal, &DataType::UInt64, true),
            (&DataType::Float32, &decimal, false),
            (&words, &DataType::LargeUtf8, true),
            (&DataType::Utf8, &words, true),
            (&DataType::Utf8, &DataType::Binary, false),
            (&DataType::Binary, &DataType::Utf8, true),
            (&instant(None), &DataType::Date32, true),
            (&instant(None), &instant(Some("UTC")), false),
            (&instant(Some("Asia/Tokyo")), &instant(Some("UTC")), true),
            (&DataType::Null, &DataType::Null, false),
        ] {
            assert_eq!(comparable(column, value), same, "{column} and {value}");
        }
        assert!(!comparable_set(&DataType::Float32, &double) && comparable_set(&double, &double));
        assert!(!comparable_set(&DataType::Int64, &double));
    }
}
