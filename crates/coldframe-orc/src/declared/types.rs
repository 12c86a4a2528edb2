//! Derives types from the user's schema: [the language of `CREATE TABLE`](coldframe_core::types::ddl),
//! which ORC also uses to print its types, or Arrow's types.

use coldframe_core::types::ddl;
use coldframe_core::{Error, ErrorContext as _, Limits, Result, SchemaSpec};

use crate::layout::proto;
use crate::layout::types::Kind;

/// The types of a schema, the root first.
pub(crate) fn types_of(spec: &SchemaSpec, limits: &Limits) -> Result<Vec<proto::Type>> {
    match spec {
        SchemaSpec::Arrow(schema) => crate::write::types_of(schema),
        SchemaSpec::Ddl(text) => of_columns(text, limits).within(|| "schema"),
    }
}

fn of_columns(text: &str, limits: &Limits) -> Result<Vec<proto::Type>> {
    let columns = ddl::parse_columns(text, limits)?;
    if columns.is_empty() {
        return Err(ddl::error_at(text, text.len(), "expected a column, found the end"));
    }
    let mut types = vec![typed(Kind::Struct)];
    add_fields(&mut types, 0, columns, text)?;
    Ok(types)
}

fn typed(kind: Kind) -> proto::Type {
    proto::Type { kind: Some(kind.number()), ..proto::Type::default() }
}

/// Adds named types to the struct `parent`.
fn add_fields(
    types: &mut Vec<proto::Type>,
    parent: usize,
    fields: Vec<(String, ddl::Type)>,
    text: &str,
) -> Result<()> {
    for (name, of) in fields {
        if let Some(parent) = types.get_mut(parent) {
            parent.field_names.push(name);
        }
        add(types, parent, of, text)?;
    }
    Ok(())
}

/// Adds a type and its nested types to `parent`.
fn add(types: &mut Vec<proto::Type>, parent: usize, of: ddl::Type, text: &str) -> Result<()> {
    let id = types.len();
    let number = u32::try_from(id).map_err(|_| Error::schema("expected at most 2^32 types, found more"))?;
    if let Some(parent) = types.get_mut(parent) {
        parent.subtypes.push(number);
    }
    let (kind, below) = match of.kind {
        ddl::Kind::Boolean => (Kind::Boolean, Vec::new()),
        ddl::Kind::TinyInt => (Kind::Byte, Vec::new()),
        ddl::Kind::SmallInt => (Kind::Short, Vec::new()),
        ddl::Kind::Int => (Kind::Int, Vec::new()),
        ddl::Kind::BigInt => (Kind::Long, Vec::new()),
        ddl::Kind::Float => (Kind::Float, Vec::new()),
        ddl::Kind::Double => (Kind::Double, Vec::new()),
        ddl::Kind::String => (Kind::String, Vec::new()),
        ddl::Kind::Binary => (Kind::Binary, Vec::new()),
        ddl::Kind::Date => (Kind::Date, Vec::new()),
        ddl::Kind::Timestamp => (Kind::Timestamp, Vec::new()),
        ddl::Kind::TimestampLocalTz => (Kind::TimestampInstant, Vec::new()),
        ddl::Kind::Geometry => (Kind::Geometry, Vec::new()),
        ddl::Kind::Geography => (Kind::Geography, Vec::new()),
        ddl::Kind::Decimal { precision, scale } => {
            let decimal = typed(Kind::Decimal);
            types.push(proto::Type { precision: Some(precision), scale: Some(scale), ..decimal });
            return Ok(());
        }
        ddl::Kind::Varchar(n) => {
            types.push(proto::Type { maximum_length: Some(n), ..typed(Kind::Varchar) });
            return Ok(());
        }
        ddl::Kind::Char(n) => {
            types.push(proto::Type { maximum_length: Some(n), ..typed(Kind::Char) });
            return Ok(());
        }
        ddl::Kind::Array(element) => (Kind::List, vec![*element]),
        ddl::Kind::Map(key, value) => (Kind::Map, vec![*key, *value]),
        ddl::Kind::Union(branches) => (Kind::Union, branches),
        ddl::Kind::Struct(fields) => {
            types.push(typed(Kind::Struct));
            return add_fields(types, id, fields, text);
        }
        ddl::Kind::IntervalYearMonth | ddl::Kind::IntervalDayTime => {
            return Err(ddl::error_at(text, of.at, "expected an ORC type, found an interval"));
        }
    };
    types.push(typed(kind));
    below.into_iter().try_for_each(|of| add(types, id, of, text))
}

/// The type of a file's column as a parsed type.
pub(super) fn described(types: &[proto::Type], id: u32, limits: &Limits) -> Result<ddl::Type> {
    described_at(types, id, 1, limits)
}

fn described_at(types: &[proto::Type], id: u32, depth: u64, limits: &Limits) -> Result<ddl::Type> {
    limits.depth("nested types", depth)?;
    let corrupt = |what: &str| Error::corrupt(format!("expected {what} of type {id}, found none"));
    let own = types.get(id as usize).ok_or_else(|| corrupt("the description"))?;
    let child = |id: &u32| described_at(types, *id, depth + 1, limits);
    let at = |place: usize| child(own.subtypes.get(place).ok_or_else(|| corrupt("a nested type"))?).map(Box::new);
    let kind = match own.kind.and_then(Kind::from_number).ok_or_else(|| corrupt("a known kind"))? {
        Kind::Boolean => ddl::Kind::Boolean,
        Kind::Byte => ddl::Kind::TinyInt,
        Kind::Short => ddl::Kind::SmallInt,
        Kind::Int => ddl::Kind::Int,
        Kind::Long => ddl::Kind::BigInt,
        Kind::Float => ddl::Kind::Float,
        Kind::Double => ddl::Kind::Double,
        Kind::String => ddl::Kind::String,
        Kind::Binary => ddl::Kind::Binary,
        Kind::Date => ddl::Kind::Date,
        Kind::Timestamp => ddl::Kind::Timestamp,
        Kind::TimestampInstant => ddl::Kind::TimestampLocalTz,
        Kind::Geometry => ddl::Kind::Geometry,
        Kind::Geography => ddl::Kind::Geography,
        Kind::Decimal => ddl::Kind::Decimal { precision: own.precision(), scale: own.scale() },
        Kind::Varchar => ddl::Kind::Varchar(own.maximum_length()),
        Kind::Char => ddl::Kind::Char(own.maximum_length()),
        Kind::List => ddl::Kind::Array(at(0)?),
        Kind::Map => ddl::Kind::Map(at(0)?, at(1)?),
        Kind::Union => ddl::Kind::Union(own.subtypes.iter().map(child).collect::<Result<_>>()?),
        Kind::Struct => {
            let fields = own.field_names.iter().cloned().zip(&own.subtypes);
            ddl::Kind::Struct(fields.map(|(name, id)| Ok((name, child(id)?))).collect::<Result<_>>()?)
        }
    };
    Ok(ddl::Type { kind, at: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::types::TypeTree;

    fn parse(text: &str) -> Result<Vec<proto::Type>> {
        types_of(&SchemaSpec::Ddl(text.to_owned()), &Limits::default())
    }

    #[test]
    fn a_list_of_columns_is_a_tree() {
        let text = "id bigint, `a b` array<struct<x:int,y:decimal(5,2)>>, m map<string,char(3)>,\
                    t timestamp with local time zone, u uniontype<int,string>, ts timestamp";
        let types = parse(text).unwrap();
        let tree = TypeTree::new(&types, &Limits::default()).unwrap();
        let kinds: Vec<&str> = tree.columns().iter().map(|c| c.kind.name()).collect();
        assert_eq!(
            kinds.join(" "),
            "struct bigint array struct int decimal map string char timestamp with local time zone \
             uniontype int string timestamp"
        );
        assert_eq!(tree.get(5).unwrap().path, "a b.item.y");
        assert_eq!((types[5].precision(), types[5].scale(), types[8].maximum_length()), (5, 2, 3));
    }

    #[test]
    fn errors_name_the_expected_text() {
        for (text, expected) in [
            ("", "schema: Hive schema, character 1: expected a column, found the end"),
            ("a", "character 2: expected a Hive type, found the end"),
            ("a int b", "character 7: expected `,` or the end of the column list, found `b`"),
            ("a array<int", "character 12: expected `>`, found the end"),
            ("a number", "character 3: expected a Hive type, found `number`"),
            ("a char(x)", "character 8: expected a length, found `x)`"),
            ("a int, b interval_day_time", "character 10: expected an ORC type, found an interval"),
        ] {
            let e = parse(text).unwrap_err().to_string();
            assert!(e.contains(expected), "{text}: {e}");
        }
        let deep = format!("a {}int{}", "array<".repeat(100_000), ">".repeat(100_000));
        assert!(parse(&deep).unwrap_err().to_string().contains("max_depth"));
    }
}
