//! The columns of `.schema(..)`: schema on read, as in Spark's own file sources.
//!
//! ```text
//! user      files              folders        the table
//! A int     a int              k=007 (7)      a int        names in any case
//! b string                                    b string     null: no file, or only some files, have it
//! c bigint  c int                             c bigint     widened without changing a value
//! k string                                    k string     '007': the text of the folder
//!           d int                             d int        only filters of the option `filter` see it
//! ```

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use coldframe::dataset::{Dataset, FileEntry, Given, TableOptions};
use coldframe::load::LoadOptions;
use coldframe::{Error, Result, format_named};

use super::opening;
use crate::types;

/// The dataset with the user's types and columns, and its columns with the types that the first file has.
///
/// Files that store no names of columns (RCFiles) get only the types of partition columns; [`types_of_files`] is for the
/// others.
pub(super) fn read_as(
    dataset: Dataset,
    options: &LoadOptions,
    user: &Schema,
) -> Result<(Dataset, SchemaRef)> {
    let known = dataset.schema()?;
    let has_names = !format_named(dataset.lead()?.1.table.format())?.capabilities().needs_schema;
    let is_key = |name: &str| dataset.partitions().iter().any(|key| key.name() == name);
    let mut made: Vec<FieldRef> = known.fields().to_vec();
    let mut lacking = Vec::new();
    for field in user.fields() {
        let Some(name) = place(field.name(), &known)? else {
            lacking.push(field.clone());
            continue;
        };
        let at = known.index_of(&name).ok().and_then(|at| made.get_mut(at));
        let Some(own) = at.filter(|own| !types::is_kind(own, field.data_type())) else { continue };
        if is_key(&name) {
            check_key(field)?;
        }
        // The metadata of the file's field belongs to the type in the file, so it is dropped.
        *own = Arc::new(Field::new(name, field.data_type().clone(), true));
    }
    let (keys, of_files): (Vec<FieldRef>, Vec<FieldRef>) =
        made.iter().cloned().partition(|field| is_key(field.name()));
    let has_own_keys = keys.iter().any(|key| !dataset.partitions().contains(key));
    let is_known = made.iter().eq(known.fields().iter()) && lacking.is_empty() && dataset.len() == 1;
    let is_read_as_it_is = if has_names { is_known } else { !has_own_keys };
    if is_read_as_it_is {
        return Ok((dataset, known));
    }
    let whole = |of_files: Vec<FieldRef>| {
        let fields = of_files.into_iter().chain(lacking.iter().cloned()).chain(keys.iter().cloned());
        Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), known.metadata().clone()))
    };
    let table = TableOptions {
        first_only: !(has_names || options.unify),
        schema: has_names.then(|| whole(of_files)),
        partition_types: Some(Schema::new(keys.clone()).into()),
        without_partitions: options.selection.is_recursive(),
        ..TableOptions::default()
    };
    let stored = known.fields().iter().filter(|field| !is_key(field.name())).cloned().collect();
    let made = Dataset::new(files(&dataset), opening(options), table)?;
    let stored = if has_names { whole(stored) } else { made.schema()? };
    Ok((made, stored))
}

/// The files of a dataset, listed once more without a listing.
fn files(dataset: &Dataset) -> Vec<Given> {
    let entries = (0..dataset.len()).filter_map(|at| dataset.entry(at));
    // Files of other kinds were already left out.
    entries.map(|entry| Given::Entry(FileEntry { listed: false, ..entry.clone() })).collect()
}

/// Whether the user's columns take instants of the files for wall clocks: `timestamp_ntz` for ORC's `timestamp`.
pub(super) fn wants_wall_clocks(user: &Schema, dataset: &Dataset) -> Result<bool> {
    let has_zone = format_named(dataset.lead()?.1.table.format())?.capabilities().zone_option.is_some();
    if !has_zone {
        return Ok(false);
    }
    let files = dataset.schema()?;
    are_wall_clocks(user, &files)
}

fn are_wall_clocks(user: &Schema, files: &Schema) -> Result<bool> {
    let (mut walls, mut instants) = (Vec::new(), Vec::new());
    for field in user.fields() {
        let Some(own) = place(field.name(), files)?.and_then(|name| files.field_with_name(&name).ok()) else {
            continue;
        };
        add_times(own.data_type(), field.data_type(), field.name(), &mut walls, &mut instants);
    }
    match (walls.first(), instants.first()) {
        (Some(wall), Some(instant)) => Err(Error::unsupported(format!(
            "column {wall} as timestamp_ntz and column {instant} as timestamp in one schema: one of them for all \
             columns that are timestamps in the files"
        ))),
        (wall, _) => Ok(wall.is_some()),
    }
}

/// Adds the name of a column to `walls` or `instants` if the files have instants, and the user wants the one or the
/// other.
fn add_times<'a>(
    own: &DataType,
    user: &DataType,
    column: &'a str,
    walls: &mut Vec<&'a str>,
    instants: &mut Vec<&'a str>,
) {
    let mut below = |own: &FieldRef, user: &FieldRef| {
        add_times(own.data_type(), user.data_type(), column, walls, instants);
    };
    match (own, user) {
        (DataType::Timestamp(_, Some(_)), DataType::Timestamp(_, None)) => walls.push(column),
        (DataType::Timestamp(_, Some(_)), DataType::Timestamp(_, Some(_))) => instants.push(column),
        (DataType::List(own), DataType::List(user)) => below(own, user),
        (DataType::Map(own, _), DataType::Map(user, _)) => {
            if let (DataType::Struct(own), DataType::Struct(user)) = (own.data_type(), user.data_type()) {
                own.iter().zip(user).for_each(|(own, user)| below(own, user));
            }
        }
        (DataType::Struct(own), DataType::Struct(user)) => {
            for field in user {
                if let Some(own) = own.iter().find(|own| own.name().eq_ignore_ascii_case(field.name())) {
                    below(own, field);
                }
            }
        }
        _ => {}
    }
}

/// Spark reads the times of partitions in the session's time zone.
fn check_key(field: &Field) -> Result<()> {
    if matches!(field.data_type(), DataType::Timestamp(_, Some(_))) {
        let what = format!(
            "a partition column of type timestamp ({}): declare it as timestamp_ntz or string",
            field.name()
        );
        return Err(Error::unsupported(what));
    }
    Ok(())
}

/// The user's types, for files that store no types: `.schema()` then lists the columns of the file. `None` if
/// the options have a schema, or if the user only selects columns by the files' names.
pub(super) fn types_of_files(
    dataset: &Dataset,
    options: &LoadOptions,
    user: &Schema,
) -> Result<Option<SchemaRef>> {
    if options.open.schema.is_some()
        || !format_named(dataset.lead()?.1.table.format())?.capabilities().needs_schema
    {
        return Ok(None);
    }
    let known = dataset.schema()?;
    let is_in_files = |name: &str| known.fields().iter().any(|field| field.name().eq_ignore_ascii_case(name));
    if user.fields().iter().all(|field| is_in_files(field.name())) {
        return Ok(None);
    }
    let is_of_folders =
        |name: &str| dataset.partitions().iter().any(|field| field.name().eq_ignore_ascii_case(name));
    let of_files = user.fields().iter().filter(|field| !is_of_folders(field.name()));
    let fields: Vec<Field> = of_files.map(|field| as_in_hive(field)).collect();
    Ok(Some(Schema::new(fields).into()))
}

/// A field as in Hive, whose timestamps are wall clocks.
fn as_in_hive(field: &Field) -> Field {
    match field.data_type() {
        DataType::Timestamp(unit, _) => field.clone().with_data_type(DataType::Timestamp(*unit, None)),
        _ => field.clone(),
    }
}

/// The names that the columns have in the files. As in Spark, upper and lower case are ignored if that is
/// unambiguous.
pub(super) fn resolve<'a>(wanted: impl Iterator<Item = &'a str>, files: &Schema) -> Result<Vec<String>> {
    let of = |name: &str| place(name, files)?.ok_or_else(|| unresolved(name, "not found".to_owned(), files));
    wanted.map(of).collect()
}

/// The name that a column has in the files; `None` if they lack it.
fn place(name: &str, files: &Schema) -> Result<Option<String>> {
    let names = || files.fields().iter().map(|field| field.name());
    if names().any(|known| known == name) {
        return Ok(Some(name.to_owned()));
    }
    let folded = name.to_lowercase();
    let alike: Vec<&String> = names().filter(|known| known.to_lowercase() == folded).collect();
    match alike.as_slice() {
        [] => Ok(None),
        [known] => Ok(Some((*known).clone())),
        _ => Err(unresolved(name, format!("ambiguous among {}", listed(alike)), files)),
    }
}

fn unresolved(name: &str, problem: String, files: &Schema) -> Error {
    let known = listed(files.fields().iter().map(|field| field.name()).collect());
    Error::schema(format!("column '{name}' {problem}; the files have {known}"))
}

fn listed(names: Vec<&String>) -> String {
    format!("[{}]", names.into_iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use arrow_schema::TimeUnit;

    use super::*;

    fn times(zones: [(&str, Option<&str>); 2]) -> Schema {
        let time = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        let [(flat, first), (nested, second)] = zones;
        let item = Arc::new(Field::new("item", time(second), true));
        let list = DataType::List(item);
        Schema::new(vec![Field::new(flat, time(first), true), Field::new(nested, list, true)])
    }

    #[test]
    fn wall_clocks_are_read_if_the_user_wants_them() {
        let files = times([("t", Some("UTC")), ("l", Some("UTC"))]);
        for (user, wanted) in [
            (times([("T", Some("UTC")), ("l", Some("UTC"))]), Some(false)),
            (times([("t", None), ("other", Some("UTC"))]), Some(true)),
            (times([("other", None), ("L", None)]), Some(true)),
            (times([("t", Some("UTC")), ("l", None)]), None),
        ] {
            assert_eq!(are_wall_clocks(&user, &files).ok(), wanted, "{user}");
        }
    }
}
