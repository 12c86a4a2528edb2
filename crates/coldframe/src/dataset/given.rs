//! The table of given files: paths, folders, patterns, URLs and objects become a [`TableDef`].

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{Field, SchemaRef};
use coldframe_core::{Result, Source};

use super::columns::ColumnsBy;
use super::discovery::{discover, with_bytes};
use super::file_entry::FileEntry;
use super::foreign::{self, LeftOut};
use super::opening::Opening;
use super::partition;
use super::special::special_of;
use super::storage::{Storage, shown_path};
use super::table_def::{ColumnDef, Columns, FileDef, FileGroup, Origin, TableDef};
use crate::{File, format_named, formats};

/// The sources of a table.
#[derive(Clone)]
#[non_exhaustive]
pub enum Given {
    /// A path, folder, pattern or URL.
    Path(OsString),
    /// A file that was already listed.
    Entry(FileEntry),
    /// A file that was already listed, with default values of its own, as arrays of one value, for columns
    /// that it may lack.
    EntryWith(FileEntry, Vec<(String, ArrayRef)>),
    /// A file that is already open.
    File(File),
    /// An object of this process that can be opened repeatedly, and a name for it.
    Source(Source, String),
}

/// How several files are read as one table.
#[derive(Clone, Debug, Default)]
pub struct TableOptions {
    /// Whether to ignore `key=value` folders instead of making a column of each key.
    pub without_partitions: bool,
    /// The types of partition columns, if they should not be inferred from the values.
    pub partition_types: Option<SchemaRef>,
    /// Whether the columns are those of the first file only. Otherwise the columns of all files are merged,
    /// with a common type for each. This opens every file when the columns are first needed.
    pub first_only: bool,
    /// The table's columns including partitions, if known; no file is then opened to determine them.
    pub schema: Option<SchemaRef>,
    /// How the columns of files are matched.
    pub by: ColumnsBy,
    /// Default values for columns that a file lacks, as arrays of one value; a column without default is null. A file's own
    /// defaults ([`Given::EntryWith`]) replace these.
    pub defaults: Vec<(String, ArrayRef)>,
    /// The columns that say where a row comes from.
    pub origin: Origin,
    /// The number of the first row, for `origin`.
    pub first_row: u64,
}

/// The sources of a table as its definition, and the facts that a definition cannot hold.
pub(super) struct Resolved {
    pub(super) def: TableDef,
    /// The given columns, which may have the partition keys among the others.
    pub(super) schema: Option<SchemaRef>,
    /// The files as they were listed.
    pub(super) entries: Vec<FileEntry>,
    /// The objects of this process among the files, by number.
    pub(super) objects: HashMap<usize, Object>,
    /// The listed files that do not belong to the table.
    pub(super) left_out: Vec<LeftOut>,
    /// The request as text, for messages.
    pub(super) shown: String,
}

/// The files of a table before its definition is made, and those that are left out.
struct Listed {
    entries: Vec<FileEntry>,
    /// Facts about some of the files, by their numbers.
    objects: HashMap<usize, Object>,
    left_out: Vec<LeftOut>,
}

/// Facts about a given file besides its entry.
#[derive(Clone, Default)]
pub(super) struct Object {
    pub(super) file: Option<File>,
    pub(super) source: Option<Source>,
    defaults: Vec<(String, ArrayRef)>,
}

/// Lists the files of the sources, and makes the table's definition.
pub(super) fn resolve(given: Vec<Given>, opening: Opening, options: TableOptions) -> Result<Resolved> {
    let shown = shown(&given);
    let Listed { entries, objects, left_out } = listed(given, &opening, &options, &shown)?;
    let keys = partition::fields(&entries, options.partition_types.as_deref())?;
    let constants = partition::columns(&entries, &keys)?;
    let column = |field: &Arc<Field>| ColumnDef::new(field.clone());
    let files = entries.iter().enumerate().map(|(at, entry)| FileDef {
        path: entry.path.clone(),
        known: entry.known.clone(),
        listed: entry.listed,
        rows: entry.rows,
        constants: u32::try_from(at).unwrap_or(u32::MAX),
        defaults: objects.get(&at).map(|object| object.defaults.clone()).unwrap_or_default(),
        first_row: (at == 0).then_some(options.first_row),
        ..FileDef::default()
    });
    let group = FileGroup {
        matching: options.by,
        defaults: options.defaults,
        constants,
        files: files.collect(),
        ..FileGroup::new(Arc::new(opening))
    };
    let columns = match &options.schema {
        Some(known) => {
            let is_key = |field: &&Arc<Field>| keys.iter().any(|key| key.name() == field.name());
            Columns::Stated(known.fields().iter().filter(|field| !is_key(field)).map(column).collect())
        }
        None if options.first_only => Columns::OfFirst,
        None => Columns::Merged,
    };
    let keys = keys.into_iter().map(ColumnDef::new).collect();
    let complete = options.first_only;
    let origin = options.origin;
    let def = TableDef { name: String::new(), columns, complete, keys, origin, groups: vec![group] };
    Ok(Resolved { def, schema: options.schema, entries, objects, left_out, shown })
}

/// Lists the files of the sources, without those that do not belong to the table.
fn listed(given: Vec<Given>, opening: &Opening, options: &TableOptions, shown: &str) -> Result<Listed> {
    let whole = folders_are_tables(opening)?;
    let (mut entries, mut objects) = (Vec::new(), HashMap::new());
    for input in given {
        let object = match input {
            Given::Path(path) => {
                entries.extend(discover(opening.storage.as_ref(), &path, whole)?);
                continue;
            }
            Given::Entry(entry) => {
                entries.push(entry);
                continue;
            }
            Given::EntryWith(entry, defaults) => {
                entries.push(entry);
                Object { defaults, ..Object::default() }
            }
            Given::File(file) => {
                entries.push(FileEntry { path: file.path.to_string(), ..FileEntry::default() });
                Object { file: Some(file), ..Object::default() }
            }
            Given::Source(source, name) => {
                entries.push(FileEntry { path: name, ..FileEntry::default() });
                Object { source: Some(source), ..Object::default() }
            }
        };
        objects.insert(entries.len() - 1, object);
    }
    if options.without_partitions {
        entries.iter_mut().for_each(|entry| entry.pairs.clear());
    }
    let storage = opening.storage.as_ref();
    with_bytes(storage, entries.clone(), shown)?;
    let is_read = |entry: &FileEntry| {
        let is_empty = entry.known.as_ref().is_some_and(|known| known.len == 0);
        !is_empty || special_of(storage, entry).is_some()
    };
    let objects_of = entries.into_iter().enumerate().map(|(at, entry)| (entry, objects.remove(&at)));
    let mut kept: Vec<(FileEntry, Option<Object>)> = objects_of.collect();
    kept.retain(|(entry, _)| is_read(entry));
    let (entries, objects): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
    let foreign_files = foreign_files(&opening.storage, &entries)?;
    let left_out = foreign_files
        .iter()
        .filter_map(|(at, kind)| Some(LeftOut { path: entries.get(*at)?.path.clone(), kind }));
    let left_out = left_out.collect();
    let is_foreign: HashSet<usize> = foreign_files.into_iter().map(|(at, _)| at).collect();
    let numbered = entries.into_iter().zip(objects).enumerate();
    let (entries, objects): (Vec<FileEntry>, Vec<Option<Object>>) =
        numbered.filter(|(at, _)| !is_foreign.contains(at)).map(|(_, kept)| kept).unzip();
    let objects = objects.into_iter().enumerate().filter_map(|(at, object)| Some((at, object?)));
    Ok(Listed { entries, objects: objects.collect(), left_out })
}

/// The numbers and kinds of the files that do not belong to the table.
fn foreign_files(storage: &Arc<dyn Storage>, entries: &[FileEntry]) -> Result<Vec<(usize, &'static str)>> {
    foreign::check_no_iceberg(entries)?;
    foreign::foreign(storage, entries)
}

/// Whether an option of the format (of any format, if none is named) makes a folder one table.
fn folders_are_tables(opening: &Opening) -> Result<bool> {
    let of = match &opening.format {
        Some(name) => vec![format_named(name)?],
        None => formats(),
    };
    let is_set =
        |name: &str| matches!(opening.options.extra.get(name), Some(coldframe_core::Value::Bool(true)));
    Ok(of.iter().filter_map(|format| format.capabilities().folder_option).any(is_set))
}

/// The paths of the request, for errors.
fn shown(given: &[Given]) -> String {
    let name = |input: &Given| match input {
        Given::Path(path) => coldframe_store::shown(&OsStr::to_string_lossy(path)),
        Given::Entry(entry) | Given::EntryWith(entry, _) => shown_path(&entry.path),
        Given::File(file) => shown_path(&file.path),
        Given::Source(_, name) => name.clone(),
    };
    given.iter().take(3).map(name).collect::<Vec<_>>().join(", ")
}
