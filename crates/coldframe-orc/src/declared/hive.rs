//! Gives a file the column names of its Hive table, if Hive and Spark read it in the same way.
//!
//! | file | table | |
//! |---|---|---|
//! | `ID`, `name` | id, name | by name in any case, also in structs |
//! | `_col0`, `_col1` .. | id, name | by position: Hive wrote these names before 2.0; the columns of one transactional file are in its `row` |
//! | int, float, decimal(5,2), varchar(9) | bigint, double, decimal(9,3), string | every value stays the same |
//! | anything else | | [`conversions`] as by Hive's reader; an error where values are not converted, as in transactional files |
//!
//! A column that exists only in the file or only in the table is accepted, because tables change.

use std::sync::Arc;

use arrow_schema::FieldRef;
use coldframe_core::types::ddl;
use coldframe_core::types::hive::{Conversion, HiveVersion, Reader, Rules, Typed};
use coldframe_core::{Error, Result, SchemaSpec};

use super::types::{described, types_of};
use crate::layout::proto;
use crate::layout::types::{Kind, TypeTree};
use crate::open::Shape;
use crate::options::Options;
use crate::schema;

/// The start of a column name before Hive 2.0; the column's number follows.
const PLACEHOLDER: &str = "_col";

/// The columns of a file of a transactional table.
const IDENTIFIED: [&str; 6] =
    ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"];

/// The conversions of a file's columns to the types of its table, after the file has taken the table's names.
/// Only conversions that change a type are listed.
pub(crate) fn conversions(
    shape: &Shape,
    spec: &SchemaSpec,
    version: HiveVersion,
) -> Result<Vec<(FieldRef, Conversion)>> {
    let limits = &shape.options.limits;
    let declared = types_of(spec, limits)?;
    let kinds = match spec {
        SchemaSpec::Ddl(text) => ddl::parse_columns(text, limits)?,
        SchemaSpec::Arrow(_) => Vec::new(),
    };
    let options = Options { row_numbers: None, ..shape.options.clone() };
    let footer = proto::Footer { types: declared, ..proto::Footer::default() };
    let table = schema::schema(&TypeTree::new(&footer.types, limits)?, &footer, &options)?;
    let rules = Rules { version, reader: Reader::Orc, hybrid: shape.quirks.hybrid };
    let mut converted = Vec::new();
    for target in table.fields() {
        let Some((own, own_kind)) = column(shape, target.name())? else { continue };
        let declared = kinds.iter().find(|(name, _)| name == target.name()).map(|(_, kind)| kind);
        let own = Typed { field: &own, declared: Some(&own_kind) };
        let conversion = Conversion::new(own, Typed { field: target, declared }, rules)
            .map_err(|e| e.within(format!("column {}", target.name())))?;
        if !conversion.is_identity() {
            converted.push((target.clone(), conversion));
        }
    }
    Ok(converted)
}

/// A column of a file by its name, and its Hive type.
fn column(shape: &Shape, name: &str) -> Result<Option<(FieldRef, ddl::Type)>> {
    let types = &shape.tail.footer.types;
    let Some(root) = types.first() else { return Ok(None) };
    let place = root.field_names.iter().position(|own| own == name);
    let id = place.and_then(|place| root.subtypes.get(place));
    let own = shape.schema.fields().iter().find(|own| own.name() == name);
    let (Some(id), Some(own)) = (id, own) else { return Ok(None) };
    Ok(Some((Arc::clone(own), described(types, *id, &shape.options.limits)?)))
}

/// Gives the columns of a file the table's names. `converts`: whether the file's types are converted to the
/// table's types, so that the types may differ.
pub(super) fn take_names(footer: &mut proto::Footer, declared: &[proto::Type], converts: bool) -> Result<()> {
    let is_empty = footer.stripes.is_empty();
    let types = &mut footer.types;
    let Some(want) = declared.first() else { return Ok(()) };
    let Some(root) = types.first().filter(|root| kind(root) == Some(Kind::Struct)) else {
        return if is_empty {
            Ok(())
        } else {
            Err(unlike("expected a struct of columns, found another type"))
        };
    };
    if root.field_names.is_empty() && !is_empty {
        return Err(unlike("rows without columns"));
    }
    let is_identified = root.field_names.iter().map(String::as_str).eq(IDENTIFIED)
        && !want.field_names.iter().any(|name| name.eq_ignore_ascii_case("currentTransaction"));
    let row = root.subtypes.last().filter(|_| is_identified).copied();
    take_columns(types, row.unwrap_or(0), declared, converts)
}

/// Names the columns of the struct `at`.
fn take_columns(types: &mut [proto::Type], at: u32, declared: &[proto::Type], converts: bool) -> Result<()> {
    let (Some(own), Some(want)) = (types.get(at as usize), declared.first()) else { return Ok(()) };
    let (own, mut names) = (own.clone(), own.field_names.clone());
    let places = places(&names, want)?;
    for (number, place) in places.into_iter().enumerate() {
        let Some(place) = place else { continue };
        let (Some(name), Some(of)) = (want.field_names.get(place), want.subtypes.get(place)) else {
            continue;
        };
        if let Some(own) = names.get_mut(number) {
            own.clone_from(name);
        }
        if let Some(child) = own.subtypes.get(number).filter(|child| **child > at) {
            if converts {
                take_what_fits(types, *child, declared, *of);
            } else {
                take(types, *child, declared, *of).map_err(|e| e.within(format!("column `{name}`")))?;
            }
        }
    }
    if let Some(own) = types.get_mut(at as usize) {
        own.field_names = names;
    }
    Ok(())
}

/// The table's position for each column of a file.
fn places(names: &[String], want: &proto::Type) -> Result<Vec<Option<usize>>> {
    let by_name = by_name(names, want)?;
    let numbers: Option<Vec<&str>> = names.iter().map(|name| name.strip_prefix(PLACEHOLDER)).collect();
    let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) else { return Ok(by_name) };
    if names.len() > want.field_names.len() {
        return Err(unlike(format!(
            "expected at most the {} columns of the table, found {}, named {PLACEHOLDER}..",
            want.field_names.len(),
            names.len()
        )));
    }
    let by_position: Vec<Option<usize>> = (0..names.len()).map(Some).collect();
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Spark looks at the prefix only, Hive also at the digits.
    if numbers.iter().all(is_number) || by_name == by_position {
        return Ok(by_position);
    }
    Err(unlike(format!("columns whose names all begin with {PLACEHOLDER}, without being placeholders")))
}

fn by_name(names: &[String], want: &proto::Type) -> Result<Vec<Option<usize>>> {
    let mut taken = vec![false; want.field_names.len()];
    let place = |name: &String| {
        let place = want.field_names.iter().position(|field| field.eq_ignore_ascii_case(name));
        if let Some(taken) = place.and_then(|place| taken.get_mut(place))
            && std::mem::replace(taken, true)
        {
            return Err(unlike(format!("several columns that are `{name}` if case is ignored")));
        }
        Ok(place)
    };
    names.iter().map(place).collect()
}

/// Checks one type and its nested types, which get the table's names.
fn take(types: &mut [proto::Type], at: u32, declared: &[proto::Type], of: u32) -> Result<()> {
    let (Some(own), Some(want)) = (types.get_mut(at as usize), declared.get(of as usize)) else {
        return Ok(());
    };
    if !is_read_alike(own, want) {
        return Err(unlike(format!("{} in the file, {} in its table", shown(own), shown(want))));
    }
    if kind(want) == Some(Kind::Binary) {
        super::take(own, want);
    }
    if kind(own) == Some(Kind::Struct) {
        let pairs = own.field_names.iter().zip(&want.field_names);
        let is_same = own.field_names.len() == want.field_names.len()
            && pairs.into_iter().all(|(a, b)| a.eq_ignore_ascii_case(b));
        if !is_same {
            return Err(unlike("a struct with other fields than in its table"));
        }
        own.field_names.clone_from(&want.field_names);
    }
    let children = own.subtypes.clone().into_iter().zip(&want.subtypes);
    for (child, of) in children.filter(|(child, _)| *child > at) {
        take(types, child, declared, *of)?;
    }
    Ok(())
}

/// Gives fields of structs the table's names. Gives columns the table's types if their bytes have these
/// types, too; other columns are converted.
fn take_what_fits(types: &mut [proto::Type], at: u32, declared: &[proto::Type], of: u32) {
    let (Some(own), Some(want)) = (types.get_mut(at as usize), declared.get(of as usize)) else { return };
    if super::take(own, want) || own.kind != want.kind {
        return;
    }
    let mut places: Vec<Option<usize>> = (0..own.subtypes.len()).map(Some).collect();
    if kind(own) == Some(Kind::Struct) {
        // Fields whose names are equal but for case keep their names.
        places = by_name(&own.field_names, want).unwrap_or_else(|_| vec![None; own.field_names.len()]);
        for (name, place) in own.field_names.iter_mut().zip(&places) {
            if let Some(wanted) = place.and_then(|place| want.field_names.get(place)) {
                name.clone_from(wanted);
            }
        }
    }
    let children = own.subtypes.clone().into_iter().zip(places);
    for (child, place) in children.filter(|(child, _)| *child > at) {
        if let Some(of) = place.and_then(|place| want.subtypes.get(place)) {
            take_what_fits(types, child, declared, *of);
        }
    }
}

fn kind(of: &proto::Type) -> Option<Kind> {
    of.kind.and_then(Kind::from_number)
}

/// Whether Hive, Spark and this reader return the same value.
fn is_read_alike(own: &proto::Type, want: &proto::Type) -> bool {
    let (Some(from), Some(to)) = (kind(own), kind(want)) else { return false };
    let width =
        |kind| [Kind::Byte, Kind::Short, Kind::Int, Kind::Long].iter().position(|integer| *integer == kind);
    match (from, to) {
        (Kind::Decimal, Kind::Decimal) => {
            let before_point = |of: &proto::Type| of.precision().checked_sub(of.scale());
            own.precision() > 0 && own.scale() <= want.scale() && before_point(own) <= before_point(want)
        }
        (Kind::Char | Kind::Varchar, _) if from == to => own.maximum_length == want.maximum_length,
        (Kind::Float, Kind::Double) | (Kind::Varchar, Kind::String) => true,
        // The bytes are returned as they are.
        (Kind::String | Kind::Varchar, Kind::Binary) => true,
        // Structs may have different fields, because fields are compared by name.
        _ if from == to => from == Kind::Struct || own.subtypes.len() == want.subtypes.len(),
        _ => matches!((width(from), width(to)), (Some(from), Some(to)) if from < to),
    }
}

/// A type as Hive writes it, without its nested types.
fn shown(of: &proto::Type) -> String {
    let name = kind(of).map_or("an unknown type", Kind::name);
    match kind(of) {
        Some(Kind::Decimal) => format!("{name}({},{})", of.precision(), of.scale()),
        Some(Kind::Char | Kind::Varchar) => format!("{name}({})", of.maximum_length()),
        _ => name.to_owned(),
    }
}

/// The error for a file that Hive and Spark might read differently.
fn unlike(what: impl std::fmt::Display) -> Error {
    Error::unsupported(format!("a file that its table's columns do not describe: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::proto::StripeInformation;
    use coldframe_core::Limits;

    fn types(text: &str) -> Vec<proto::Type> {
        types_of(&SchemaSpec::Ddl(text.to_owned()), &Limits::default()).unwrap()
    }

    /// The names of a file's types, following the names in its table.
    fn named(file: Vec<proto::Type>, table: &str) -> Result<String> {
        let stripes = vec![StripeInformation::default()];
        let mut footer = proto::Footer { types: file, stripes, ..proto::Footer::default() };
        take_names(&mut footer, &types(table), false)?;
        let names: Vec<String> = footer.types.iter().flat_map(|of| of.field_names.clone()).collect();
        Ok(names.join(" "))
    }

    #[test]
    fn columns_are_matched_as_hive_and_spark_do() {
        for (file, table, names) in [
            ("ID int, gone string", "more double, id bigint", "id gone"),
            ("_col0 int, _col1 string", "id bigint, name string, more int", "id name"),
            ("_col7 int, _col0 string", "id int, name string", "id name"),
            ("_col0 int, other string", "other string, _col0 int, more int", "_col0 other"),
            ("_color int", "_color bigint", "_color"),
            ("s struct<A:tinyint,b:float>", "s struct<a:int,B:double>", "s a B"),
            (
                "l array<varchar(3)>, m map<int,decimal(5,2)>",
                "l array<string>, m map<bigint,decimal(9,3)>",
                "l m",
            ),
        ] {
            assert_eq!(named(types(file), table).unwrap(), names, "{file}");
        }
    }

    #[test]
    fn the_columns_of_a_transactional_file_are_in_its_row() {
        let identities =
            "operation int, originalTransaction bigint, bucket int, rowId bigint, currentTransaction bigint";
        let of = |row: &str| types(&format!("{identities}, row struct<{row}>"));
        let row =
            |text: &str| format!("operation originalTransaction bucket rowId currentTransaction row {text}");
        assert_eq!(named(of("_col0:int,_col1:string"), "id bigint, name string").unwrap(), row("id name"));
        assert_eq!(named(of("NAME:string"), "id int, name string").unwrap(), row("name"));
        // An external table over such a file is also accepted.
        let outside = format!("{identities}, row struct<_col0:int>");
        let own = named(of("_col0:int"), &outside).unwrap();
        assert_eq!(own, row("_col0"));
        assert!(named(of("name:int"), "name string").is_err());
    }

    #[test]
    fn columns_that_readers_read_differently_are_refused() {
        for (file, table, reason) in [
            (
                "v bigint",
                "v int",
                "column `v`: a file that its table's columns do not describe: bigint in the file, int in its table",
            ),
            ("v string", "v int", "string in the file, int in its table"),
            ("v char(5)", "v string", "char(5) in the file, string in its table"),
            ("v varchar(5)", "v varchar(3)", "varchar(5) in the file, varchar(3) in its table"),
            ("v decimal(9,3)", "v decimal(9,4)", "decimal(9,3) in the file, decimal(9,4) in its table"),
            ("v array<bigint>", "v array<int>", "bigint in the file, int in its table"),
            ("v struct<a:int>", "v struct<a:int,b:int>", "a struct with other fields than in its table"),
            (
                "v struct<a:int,b:int>",
                "v struct<b:int,a:int>",
                "a struct with other fields than in its table",
            ),
            ("v int, V int", "v int", "several columns that are `V` if case is ignored"),
            ("_col0 int, _col1 int", "v int", "expected at most the 1 columns of the table, found 2"),
            ("_color int, _col0 int", "v int, w int", "without being placeholders"),
        ] {
            let e = named(types(file), table).unwrap_err().to_string();
            assert!(e.contains(reason), "{file}: {e}");
        }
        let without_digits = vec![
            proto::Type { subtypes: vec![1], field_names: vec!["v".into()], ..types("v int").swap_remove(0) },
            proto::Type { kind: Some(Kind::Decimal.number()), ..proto::Type::default() },
        ];
        assert!(named(without_digits, "v decimal(10,0)").is_err());
    }

    #[test]
    fn files_without_rows_may_have_no_columns() {
        let empty = vec![proto::Type { kind: Some(Kind::Struct.number()), ..proto::Type::default() }];
        assert!(named(empty.clone(), "v int").unwrap_err().to_string().contains("rows without columns"));
        let mut footer = proto::Footer { types: empty, ..proto::Footer::default() };
        take_names(&mut footer, &types("v int"), false).unwrap();
        let number = vec![proto::Type { kind: Some(Kind::Int.number()), ..proto::Type::default() }];
        assert!(named(number, "v int").unwrap_err().to_string().contains("expected a struct of columns"));
    }
}
