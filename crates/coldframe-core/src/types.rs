//! One schema for many files, with a common type for each column.
//!
//! ```text
//! a.orc   id int,     name string                  id bigint
//! b.orc   id bigint,  Name string,  at date   ──▶  name string
//! c.orc               name string                  at date          null where a file lacks it
//! ```
//!
//! Columns are matched by name, ignoring upper and lower case if that is unambiguous. [`wider`] has the rules
//! for types. If two types have no common type (text and numbers, decimals and doubles, instants and wall
//! clocks), the error names a file for each of the two types.
//!
//! | module | holds |
//! |---|---|
//! | this | one schema for many files |
//! | `widen` | the common type of two types |
//! | `plain` | the types that a consumer such as Spark supports |
//! | [`mod@arrange`] | a file's columns in the table's order and under its names, nulls for missing columns |
//! | [`ddl`] | columns and types in the language of Hive's and Spark's `CREATE TABLE` |
//! | [`hive`] | the conversions of Hive's readers, from a file's type to the table's |
//! | `hive_char` | Hive's `char`, whose trailing blanks do not count |
//! | [`views`] | conversion of strings and binary values to views and back |
//! | [`mod@conform`] | batches in exactly the types of a target, without changing a value |

pub mod arrange;
pub mod conform;
pub mod ddl;
pub mod hive;
mod hive_char;
mod name;
mod plain;
pub mod views;
mod widen;

use std::collections::{HashMap, HashSet};

use arrow_schema::{Field, Schema};

pub use arrange::{Arrangement, DefaultOf, with_defaults, with_fields};
pub use conform::conform;
pub use hive_char::{HIVE_TYPE, char_field, is_char};
pub use name::name;
pub use plain::{Consumer, shape};
pub use widen::{MAX_PRECISION, Unlike, wider};

use crate::{Error, Result};

/// A column merged from several files.
struct MergedColumn<'a> {
    field: Field,
    /// The file that has this type.
    path: &'a str,
    /// In how many schemas the column occurs.
    count: usize,
}

/// Merges the schemas of several files, given with their paths: the result has the columns and metadata of
/// the first schema, then the columns that other schemas add. A column or struct field that a file lacks is
/// nullable.
///
/// Returns a schema error, which names `table`, if a column has incompatible types or a file has a column
/// twice.
pub fn unify<'a>(
    schemas: impl IntoIterator<Item = (&'a str, &'a Schema)>,
    table: Option<&str>,
) -> Result<Schema> {
    let of = table.map_or_else(String::new, |table| format!("table {table}: "));
    let mut columns: Vec<MergedColumn<'a>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut seen: HashSet<&'a [arrow_schema::FieldRef]> = HashSet::new();
    let mut metadata = None;
    for (path, schema) in schemas {
        metadata.get_or_insert(&schema.metadata);
        if !seen.insert(&schema.fields) {
            continue;
        }
        check_names(schema).map_err(|twice| {
            let why = format!("columns {twice:?} occur twice, but files are merged by column name");
            Error::schema(format!("{of}{path}: {why}"))
        })?;
        for (name, field) in names_in(schema, &places).into_iter().zip(schema.fields()) {
            let merged = places.get(&name).and_then(|place| columns.get_mut(*place));
            if let Some(known) = merged {
                known.add(field, path).map_err(|why| Error::schema(format!("{of}{why}")))?;
            } else {
                places.insert(name, columns.len());
                columns.push(MergedColumn { field: field.as_ref().clone(), path, count: 1 });
            }
        }
    }
    let all = seen.len();
    let fields = columns.into_iter().map(|known| {
        let nullable = known.field.is_nullable() || known.count < all;
        known.field.with_nullable(nullable)
    });
    Ok(Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata.cloned().unwrap_or_default()))
}

impl<'a> MergedColumn<'a> {
    /// Adds the column of another file. The error for a conflict names the file that determined the type so
    /// far.
    fn add(&mut self, other: &Field, path: &'a str) -> Result<(), String> {
        self.count += 1;
        let nullable = self.field.is_nullable() || other.is_nullable();
        let (own, added) = (self.field.data_type(), other.data_type());
        let wide = wider(own, added).map_err(|why| {
            let (name, path_of) = (self.field.name(), self.path);
            format!(
                "column {name} is {} in {path_of} and {} in {path}: {why}",
                name::name(own),
                name::name(added)
            )
        })?;
        if wide != *own {
            self.path = path;
        }
        self.field = self.field.clone().with_data_type(wide).with_nullable(nullable);
        Ok(())
    }
}

/// An error that lists the names that occur twice.
fn check_names(schema: &Schema) -> Result<(), Vec<&String>> {
    let mut seen = HashSet::new();
    let mut twice: Vec<&String> =
        schema.fields().iter().map(|field| field.name()).filter(|name| !seen.insert(*name)).collect();
    if twice.is_empty() {
        return Ok(());
    }
    twice.sort();
    twice.dedup();
    Err(twice)
}

/// The table's name for each column of a file: the same name, or the only name that differs only in upper and
/// lower case.
fn names_in(schema: &Schema, known: &HashMap<String, usize>) -> Vec<String> {
    let own: HashSet<&String> = schema.fields().iter().map(|field| field.name()).collect();
    let mut alike: HashMap<String, Vec<&String>> = HashMap::new();
    for name in known.keys() {
        alike.entry(name.to_lowercase()).or_default().push(name);
    }
    let of = |name: &String| match alike.get(&name.to_lowercase()).map(Vec::as_slice) {
        Some([name]) if !own.contains(*name) => (*name).clone(),
        _ => name.clone(),
    };
    schema.fields().iter().map(|field| of(field.name())).collect()
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType;

    use super::*;

    fn schema(fields: &[(&str, DataType, bool)]) -> Schema {
        let fields: Vec<Field> =
            fields.iter().map(|(name, kind, null)| Field::new(*name, kind.clone(), *null)).collect();
        Schema::new(fields)
    }

    #[test]
    fn columns_are_matched_by_name_in_any_unambiguous_case() {
        let first = schema(&[("id", DataType::Int32, false), ("name", DataType::Utf8, true)]);
        let second = schema(&[("Name", DataType::Utf8, true), ("id", DataType::Int64, false)]);
        let third = schema(&[("name", DataType::Utf8, true), ("NAME", DataType::Date32, false)]);
        let merged = unify([("a", &first), ("b", &second), ("c", &third), ("d", &first)], None).unwrap();
        let want =
            [("id", DataType::Int64, true), ("name", DataType::Utf8, true), ("NAME", DataType::Date32, true)];
        assert_eq!(merged, schema(&want));
    }

    #[test]
    fn a_conflict_names_the_file_that_set_the_type() {
        let of = |kind: &DataType| schema(&[("v", kind.clone(), true)]);
        let (byte, long, text) = (of(&DataType::Int8), of(&DataType::Int64), of(&DataType::Utf8));
        let all = [("a", &byte), ("b", &long), ("c", &byte), ("d", &text)];
        let e = unify(all, Some("t")).unwrap_err();
        assert_eq!(
            e.to_string(),
            "table t: column v is int64 in b and string in d: no type holds the values of both"
        );
        let twice = schema(&[("v", DataType::Int8, true), ("v", DataType::Int8, true)]);
        let e = unify([("a", &twice)], None).unwrap_err();
        assert_eq!(e.to_string(), "a: columns [\"v\"] occur twice, but files are merged by column name");
    }

    #[test]
    fn the_merged_schema_has_the_metadata_of_the_first() {
        let metadata = HashMap::from([("k".to_owned(), "v".to_owned())]);
        let first = schema(&[("v", DataType::Int8, true)]).with_metadata(metadata.clone());
        let second = schema(&[("v", DataType::Int16, true)]);
        assert_eq!(unify([("a", &first), ("b", &second)], None).unwrap().metadata, metadata);
        assert_eq!(unify([], None).unwrap(), Schema::empty());
    }
}
