//! Makes a [`TableDef`] from a table's definition in a metastore.
//!
//! ```text
//! table             id, price, channel
//! partition         id, cost             cost is price: a partition's columns match the table's by position
//! file with names   price, id            by the table's names, not the partition's; by position if the table has
//!                                        orc.force.positional.evolution
//! without           _col0, _col1         by position: RCFile, and ORC of Hive before 2.0
//! ```

use std::ffi::OsStr;
use std::sync::Arc;

use coldframe_core::options::{Field as _, TimestampUnit};
use coldframe_core::types::ddl::quoted;
use coldframe_core::types::hive::{HiveVersion, Reader, Rules};
use coldframe_core::{Error, Limits, OpenOptions, Result, SchemaSpec, Value};
use coldframe_rcfile::hive_type::{HiveType, ddl};
use coldframe_store::is_flat;

use super::{Column, Definition, Partition, Properties, Storage, properties, values};
use crate::dataset::opening::Opening;
use crate::dataset::openings::in_parallel;
use crate::dataset::special::special_of;
use crate::dataset::storage::{Storage as Stores, os_path};
use crate::dataset::table_def::{ColumnDef, Columns, Conversion, FileDef, FileGroup, Origin, TableDef};
use crate::dataset::{ColumnsBy, FileEntry, discover};
use crate::ddl::check_key;
use crate::format_named;

/// How the files of a table are reached and opened.
pub struct Access<'a> {
    /// The options of formats, which override those in the metastore.
    pub options: &'a OpenOptions,
    /// The store of a location.
    pub storage: &'a dyn Fn(&str) -> Result<Arc<dyn Stores>>,
}

/// The table's columns, with timestamps in `unit`.
pub fn columns_of(columns: &[Column], unit: TimestampUnit) -> Result<Vec<ColumnDef>> {
    columns.iter().map(|column| Ok(column_def(column, &parsed(column)?, unit))).collect()
}

/// The partition keys.
pub fn keys_of(keys: &[Column]) -> Result<Vec<ColumnDef>> {
    let of = |key: &Column| {
        let kind = parsed(key)?;
        check_key(&key.name, &kind)?;
        Ok(column_def(key, &kind, TimestampUnit::Microsecond))
    };
    keys.iter().map(of).collect()
}

fn parsed(column: &Column) -> Result<HiveType> {
    let named = |e: Error| Error::schema(format!("column `{}`: {}", column.name, e.reason()));
    ddl::parse_type(&column.kind, &Limits::default()).map_err(named)
}

fn column_def(column: &Column, kind: &HiveType, unit: TimestampUnit) -> ColumnDef {
    ColumnDef { field: Arc::new(kind.to_field(&column.name, unit)), declared: Some(kind.to_string()) }
}

/// The unit of timestamps that some options ask for.
fn unit_of(options: &OpenOptions) -> TimestampUnit {
    let units = crate::formats().into_iter().filter_map(|format| format.capabilities().unit_option);
    let asked = units.filter_map(|option| options.extra.get(option)).next();
    match asked {
        Some(Value::Str(unit)) if unit == "us" => TimestampUnit::Microsecond,
        None if options.microseconds => TimestampUnit::Microsecond,
        _ => TimestampUnit::Nanosecond,
    }
}

/// The table: its columns, and the files of these partitions, which are listed. A table without partitions has one, without
/// values. The files are in the order of the partitions, those that are read in the same way one after the other.
pub fn table_def(
    definition: &Definition,
    partitions: Vec<Partition>,
    access: &Access<'_>,
) -> Result<TableDef> {
    let unit = unit_of(access.options);
    let keys = keys_of(&definition.keys)?;
    let mut groups = Vec::new();
    for pending in grouped(definition, partitions)? {
        groups.push(pending.group(definition, &keys, unit, access)?);
    }
    Ok(TableDef {
        name: definition.name.clone(),
        complete: false,
        columns: Columns::Stated(columns_of(&definition.storage.columns, unit)?),
        keys,
        origin: Origin::default(),
        groups,
    })
}

/// Partitions that are read in the same way.
struct Pending {
    format: String,
    storage: Storage,
    partitions: Vec<Partition>,
}

/// What decides how a partition is read.
type Key = (String, Option<String>, Vec<Column>, Properties, Option<String>);

/// Groups partitions, in the order of each group's first partition.
fn grouped(definition: &Definition, partitions: Vec<Partition>) -> Result<Vec<Pending>> {
    let (mut groups, mut numbers): (Vec<Pending>, Vec<Key>) = (Vec::new(), Vec::new());
    for partition in partitions {
        let named =
            || format!("{} {}", definition.name, definition.name_of(&partition)).trim_end().to_owned();
        let of = &partition.storage;
        let format = properties::declared_format(of.input_format.as_deref(), &definition.parameters);
        if !properties::is_read(&format) {
            let shown = if format.is_empty() { "unknown format" } else { &format };
            return Err(Error::unsupported(format!("{}: files of {shown}", named())));
        }
        if partition.location.is_empty() {
            return Err(Error::unsupported(format!("{}: it has no location", named())));
        }
        let serde_properties = definition.serde_properties(&partition);
        let scheme = partition.location.split_once("://").map(|(scheme, _)| scheme.to_lowercase());
        let key = (format.clone(), of.serde.clone(), of.columns.clone(), serde_properties, scheme);
        // Most partitions are read as the one before.
        let known = numbers.iter().rposition(|known| *known == key);
        let at = known.unwrap_or_else(|| {
            let storage = Storage { serde_properties: key.3.clone(), ..of.clone() };
            groups.push(Pending { format, storage, partitions: Vec::new() });
            numbers.push(key);
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(at) {
            group.partitions.push(partition);
        }
    }
    Ok(groups)
}

impl Pending {
    fn group(
        self,
        definition: &Definition,
        keys: &[ColumnDef],
        unit: TimestampUnit,
        access: &Access<'_>,
    ) -> Result<FileGroup> {
        let location = self.partitions.first().map(|partition| partition.location.as_str());
        let storage = (access.storage)(location.unwrap_or_default())?;
        let needs_schema = format_named(&self.format)?.capabilities().needs_schema;
        let options = if needs_schema { self.typed(access.options) } else { access.options.clone() };
        let matching = match needs_schema || properties::is_by_position(&definition.parameters) {
            true => ColumnsBy::Position,
            false => ColumnsBy::Hive,
        };
        let whole = properties::is_transactional(&definition.parameters);
        let listed = listed(&self.partitions, &storage, whole)?;
        let (files, values) = located(definition, &self.partitions, listed);
        let fields: Vec<_> = keys.iter().map(|key| key.field.as_ref().clone()).collect();
        Ok(FileGroup {
            own: columns_of(&self.storage.columns, unit)?,
            matching,
            conversion: Conversion::Hive(rules_of(&options, needs_schema)?),
            constants: values::columns(&definition.name, &values, &fields)?,
            files,
            ..FileGroup::new(Arc::new(Opening { format: Some(self.format), options, storage }))
        })
    }

    /// The options for files that store no types. The user's options win.
    fn typed(&self, given: &OpenOptions) -> OpenOptions {
        let mut options = given.clone();
        if options.schema.is_none() {
            let columns = self.storage.columns.iter();
            let columns = columns.map(|column| format!("{} {}", quoted(&column.name), column.kind));
            options.schema = Some(SchemaSpec::Ddl(columns.collect::<Vec<_>>().join(", ")));
        }
        if let Some(serde) = &self.storage.serde {
            options.extra.entry("serde".to_owned()).or_insert_with(|| Value::Str(serde.clone()));
        }
        if !self.storage.serde_properties.is_empty() {
            let pairs = self.storage.serde_properties.iter();
            let pairs = pairs.map(|(name, text)| (name.clone(), Value::Str(text.clone())));
            options.extra.entry("serde_properties".to_owned()).or_insert_with(|| Value::map(pairs));
        }
        options
    }
}

/// Whose conversions apply. Files that store no types are read with those of their partition, and converted row by row.
fn rules_of(options: &OpenOptions, needs_schema: bool) -> Result<Rules> {
    let version = options.extra.get("hive_version").cloned().map(HiveVersion::from_value).transpose()?;
    let reader = if needs_schema { Reader::Rows } else { Reader::Orc };
    // The calendar of timestamps before 1583: Hive's files are hybrid unless they state otherwise.
    Ok(Rules { version: version.unwrap_or_default(), reader, hybrid: true })
}

/// The files at each location, in parallel.
fn listed(partitions: &[Partition], storage: &Arc<dyn Stores>, whole: bool) -> Result<Vec<Vec<FileEntry>>> {
    let locations: Vec<String> = partitions.iter().map(|partition| partition.location.clone()).collect();
    let storage = storage.clone();
    in_parallel(locations.len(), move |at| {
        locations.get(at).map_or(Ok(Vec::new()), |location| files_at(storage.as_ref(), location, whole))
    })
}

/// The files at a location: none if it is empty; an error if it does not exist.
fn files_at(storage: &dyn Stores, location: &str, whole: bool) -> Result<Vec<FileEntry>> {
    let path = os_path(location);
    let entries = match discover(storage, &path, whole) {
        Err(e) if e.is_not_found() => {
            // Object stores have no directories: an empty and a missing one look the same.
            let is_remote = !storage.is_of_this_machine(&path);
            if (is_remote && is_flat(OsStr::new(&path))) || storage.store(&path)?.stat("")?.is_some() {
                return Ok(Vec::new());
            }
            return Err(e);
        }
        listed => listed?,
    };
    let is_empty = |entry: &FileEntry| entry.known.as_ref().is_some_and(|known| known.len == 0);
    Ok(entries.into_iter().filter(|entry| !is_empty(entry) || special_of(storage, entry).is_some()).collect())
}

/// The files, and the rows of partition values that they refer to. If no partition is registered, the folders above a file
/// have its values, and other files belong to no partition.
fn located(
    definition: &Definition,
    partitions: &[Partition],
    listed: Vec<Vec<FileEntry>>,
) -> (Vec<FileDef>, Vec<Vec<String>>) {
    let (mut files, mut values): (Vec<FileDef>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
    for (partition, entries) in partitions.iter().zip(listed) {
        let by_folders = partition.values.len() < definition.keys.len();
        if !by_folders {
            values.push(partition.values.clone());
        }
        for entry in entries {
            if by_folders {
                let Some(own) = values_above(definition, partition, &entry) else { continue };
                if values.last() != Some(&own) {
                    values.push(own);
                }
            }
            files.push(FileDef {
                path: entry.path,
                known: entry.known,
                constants: u32::try_from(values.len() - 1).unwrap_or(u32::MAX),
                ..FileDef::default()
            });
        }
    }
    (files, values)
}

/// The values in the names of the folders between a location and a file; `None` if the folders are not those of the
/// partition keys.
fn values_above(definition: &Definition, partition: &Partition, entry: &FileEntry) -> Option<Vec<String>> {
    let below = entry.path.get(partition.location.len()..)?.trim_start_matches('/');
    let mut folders: Vec<&str> = below.split('/').collect();
    folders.pop();
    let keys = definition.keys.iter().map(|key| key.name.as_str());
    let are_of = properties::are_folders_of(keys, &folders);
    let pairs = entry.pairs.iter().take(definition.keys.len());
    are_of.then(|| pairs.map(|(_, value)| value.clone()).collect())
}
