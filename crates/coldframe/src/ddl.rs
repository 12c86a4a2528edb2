//! Column lists in Hive's DDL: parsing and printing.

use arrow_schema::{DataType, Schema, TimeUnit};
use coldframe_core::options::TimestampUnit;
use coldframe_core::types::Consumer;
use coldframe_core::{Error, Limits, Result, types};
use coldframe_rcfile::hive_type::{HiveType, ddl};

/// The columns of a list such as `id bigint, tags array<string>`.
pub fn parse_columns(text: &str, unit: TimestampUnit) -> Result<Schema> {
    let columns = ddl::parse_columns(text, &Limits::default())?;
    let fields = columns.into_iter().map(|(name, of)| of.to_field(&name, unit));
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// Like [`parse_columns`], for partition columns. Only types whose values can be the name of a directory are
/// allowed.
pub fn parse_partitions(text: &str, unit: TimestampUnit) -> Result<Schema> {
    for (name, of) in ddl::parse_columns(text, &Limits::default())? {
        check_key(&name, &of)?;
    }
    parse_columns(text, unit)
}

/// An error if values of a type cannot be the name of a directory.
pub(crate) fn check_key(name: &str, of: &HiveType) -> Result<()> {
    let is_plain = !matches!(
        of,
        HiveType::Binary
            | HiveType::TimestampLocalTz
            | HiveType::IntervalYearMonth
            | HiveType::IntervalDayTime
            | HiveType::Array(_)
            | HiveType::Map(..)
            | HiveType::Struct(_)
            | HiveType::Union(_)
    );
    if is_plain {
        return Ok(());
    }
    Err(Error::schema(format!(
        "type {of} of partition column {name}; expected one of string, tinyint, smallint, int, bigint, float, \
         double, boolean, date, timestamp, decimal(p,s), varchar(n), char(n)"
    )))
}

/// Prints the columns as a list; each Arrow type becomes a Hive type that can represent all of its values.
pub fn print_columns(schema: &Schema) -> Result<String> {
    let types = schema.fields().iter().map(|field| hive_type(field.data_type()));
    let types = types.collect::<Result<Vec<_>>>()?;
    Ok(ddl::print_columns(schema.fields().iter().map(|field| field.name().as_str()).zip(&types)))
}

fn hive_type(of: &DataType) -> Result<HiveType> {
    Ok(match of {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => HiveType::Array(Box::new(hive_type(item.data_type())?)),
        DataType::Struct(fields) => HiveType::Struct(
            fields
                .iter()
                .map(|field| Ok((field.name().clone(), hive_type(field.data_type())?)))
                .collect::<Result<_>>()?,
        ),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => match pair.iter().as_slice() {
                [key, value] => HiveType::Map(
                    Box::new(hive_type(key.data_type())?),
                    Box::new(hive_type(value.data_type())?),
                ),
                _ => return Err(lacks(of)),
            },
            _ => return Err(lacks(of)),
        },
        DataType::Union(branches, _) => HiveType::Union(
            branches.iter().map(|(_, branch)| hive_type(branch.data_type())).collect::<Result<_>>()?,
        ),
        DataType::Dictionary(_, values) => hive_type(values)?,
        // Unsigned integers become wider signed types or decimals, as for Spark.
        primitive => {
            let plain = Consumer::spark(TimeUnit::Nanosecond).plain(primitive).map_err(|_| lacks(of))?;
            HiveType::from_arrow(&plain).map_err(|_| lacks(of))?
        }
    })
}

fn lacks(of: &DataType) -> Error {
    Error::unsupported(format!("Hive has no type for Arrow's {}", types::name(of)))
}

#[cfg(test)]
mod tests {
    use arrow_schema::Field;

    use super::*;

    #[test]
    fn printed_columns_can_be_parsed_again() {
        let text = "`a``b` decimal(20,0), `m` map<string,array<decimal(5,2)>>, \
                    `s` struct<`x`:smallint,`y`:timestamp with local time zone>, `u` uniontype<int,string>";
        let schema = parse_columns(text, TimestampUnit::Microsecond).unwrap();
        assert_eq!(print_columns(&schema).unwrap(), text);
        let unsigned = Schema::new(vec![Field::new("n", DataType::UInt64, false)]);
        assert_eq!(print_columns(&unsigned).unwrap(), "`n` decimal(20,0)");
        let null = Schema::new(vec![Field::new("n", DataType::Null, true)]);
        assert_eq!(print_columns(&null).unwrap_err().to_string(), "Hive has no type for Arrow's null");
    }

    #[test]
    fn partition_types_fit_into_directory_names() {
        let of = |text| parse_partitions(text, TimestampUnit::Microsecond);
        let schema = of("dt date, p decimal(5,2), c varchar(3), d decimal").unwrap();
        let types: Vec<String> = schema.fields().iter().map(|f| types::name(f.data_type())).collect();
        assert_eq!(types, ["date32[day]", "decimal128(5, 2)", "string", "decimal128(10, 0)"]);
        for (text, part) in [
            ("dt binary", "type binary of partition column dt"),
            ("a array<int>", "array<int>"),
            ("dt blob", "blob"),
        ] {
            let e = of(text).unwrap_err().to_string();
            assert!(e.contains(part), "{e}");
        }
    }
}
