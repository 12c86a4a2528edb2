//! What a table is, as plain data: its columns, and its files with all that their reader must know.
//!
//! ```text
//! a folder               discovery                ┐
//! a Hive metastore       `hive_table`             ├──▶ TableDef ──▶ Dataset ──▶ Plan of splits ──▶ rows
//! an Iceberg snapshot    Python, by PyIceberg     ┘     │  ▲
//!                                                       ▼  │
//!                                                      bytes (see `wire`): another process, the JVM
//!
//! TableDef    columns, partition keys
//!   FileGroup    files that are read in the same way: opening, own columns, matching, conversion
//!     FileDef       one file: path, identity, constants, deletes, number of its first row
//! ```
//!
//! A definition needs no further look at a metastore, a listing or a table's metadata: two processes that hold the same
//! definition read the same rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use coldframe_core::io::Identity;
use coldframe_core::types::ddl;
use coldframe_core::types::hive::{self, Reader, Rules, Typed};
use coldframe_core::{Error, Limits, Result, arrow_error};
use roaring::RoaringTreemap;

use super::columns::ColumnsBy;
use super::opening::Opening;
use super::storage::shown_path;

/// A table: columns and files.
#[derive(Clone, Debug, Default)]
pub struct TableDef {
    /// The table's name in messages, such as `sales.orders`; empty if it has none.
    pub name: String,
    /// The columns that are stored in the files.
    pub columns: Columns,
    /// Whether it is an error if a file has a column that the table lacks.
    pub complete: bool,
    /// The partition keys, which follow the columns. Each [`FileGroup::constants`] has their values.
    pub keys: Vec<ColumnDef>,
    /// The columns that say where a row comes from; they follow the keys.
    pub origin: Origin,
    /// The files, in the order of the rows.
    pub groups: Vec<FileGroup>,
}

/// The names of columns that say where a row comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The column with the path of the row's file.
    pub file_path: Option<String>,
    /// The column with the number of the row among all rows. The first file's [`FileDef::first_row`], or else 0, is the
    /// first number.
    pub row_index: Option<String>,
}

impl Origin {
    /// The columns.
    pub fn fields(&self) -> Vec<Field> {
        let path = self.file_path.as_ref().map(|name| Field::new(name, DataType::Utf8, false));
        let index = self.row_index.as_ref().map(|name| Field::new(name, DataType::Int64, false));
        path.into_iter().chain(index).collect()
    }
}

/// Where a table's columns come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Columns {
    /// From all files, with a type for each column that is wide enough for all of them. Every file is opened to learn
    /// them.
    #[default]
    Merged,
    /// From the first file that can be opened.
    OfFirst,
    /// The definition states them.
    Stated(Vec<ColumnDef>),
}

/// A column of a table, a partition key, or a column of files.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    /// Name, Arrow type and nullability. If columns are matched by field id, the metadata of this field and of the
    /// fields within it have the ids and the names in files without ids: see [`ColumnsBy::Id`].
    pub field: FieldRef,
    /// The type in Hive's syntax, if the definition states one: it keeps what Arrow's type lacks, such as the length in
    /// `varchar(3)` and `struct<a:char(4)>`.
    pub declared: Option<String>,
}

impl ColumnDef {
    /// A column whose type is the Arrow type.
    pub fn new(field: impl Into<FieldRef>) -> Self {
        Self { field: field.into(), declared: None }
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.field.name()
    }
}

/// Files that are read in the same way.
#[derive(Clone, Debug)]
pub struct FileGroup {
    /// How the files are opened: format, options such as SerDe and columns of files that store none, keys, store. `format`
    /// is `None` if the bytes decide.
    pub opening: Arc<Opening>,
    /// The columns that the definition states for these files, if it states any: those of a Hive partition, whose types and
    /// number may differ from the table's. Empty: nothing is stated beyond the table's columns.
    pub own: Vec<ColumnDef>,
    /// Which column of a file is which column of the table.
    pub matching: ColumnsBy,
    /// How a value becomes one of the table's type.
    pub conversion: Conversion,
    /// Default values, as arrays of length one, for columns that a file lacks, and for fields within columns
    /// ([`super::columns::WITHIN`]). A column without default is null.
    pub defaults: Vec<(String, ArrayRef)>,
    /// Columns with one value in all rows of a file, such as the partition keys: a row for each combination of values,
    /// which files select by its number ([`FileDef::constants`]). A constant replaces the file's column of the same name.
    pub constants: RecordBatch,
    /// The name of the column of row numbers, counted from 0 in each file, that the opening's options make the reader
    /// generate. [`super::columns::IN_FILES`] makes it a column of the table; deletes by position need it.
    pub row_numbers: Option<String>,
    /// The files, in the order of the rows.
    pub files: Vec<FileDef>,
}

impl FileGroup {
    /// A group without files, stated columns, defaults and constants, matched by name.
    pub fn new(opening: Arc<Opening>) -> Self {
        Self {
            opening,
            own: Vec::new(),
            matching: ColumnsBy::Name,
            conversion: Conversion::Lossless,
            defaults: Vec::new(),
            constants: RecordBatch::new_empty(Arc::new(Schema::empty())),
            row_numbers: None,
            files: Vec::new(),
        }
    }
}

/// How the values of a file's column become values of the table's type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conversion {
    /// Without changing a value: a value that does not fit is an error.
    #[default]
    Lossless,
    /// As Hive's readers do: text becomes numbers, text is cut to the length of `varchar(n)`, a value that does not fit is
    /// null. What Hive refuses is an error.
    Hive(Rules),
}

/// A file of a table, or a folder that is one table of its format.
#[derive(Clone, Debug, Default)]
pub struct FileDef {
    /// The path or URL, as text (see [`super::storage`]).
    pub path: String,
    /// The identity from a listing or from the table's metadata. It is an error if the file has changed since.
    pub known: Option<Identity>,
    /// Whether it comes from listing a folder, so that a file of another kind is left out instead of being an error.
    pub listed: bool,
    /// The number of its row in [`FileGroup::constants`].
    pub constants: u32,
    /// Default values of its own, which replace those of its group.
    pub defaults: Vec<(String, ArrayRef)>,
    /// The number of its rows before deletes, if the table's metadata states it.
    pub rows: Option<u64>,
    /// The number of its first row among the rows of the table, if known: rows are numbered from it.
    pub first_row: Option<u64>,
    /// The rows that are deleted.
    pub deletes: Option<Arc<Deletes>>,
}

impl FileDef {
    /// The file's row of its group's constants, as arrays of length one.
    pub fn constants_in(&self, constants: &RecordBatch) -> Result<Vec<(String, ArrayRef)>> {
        let (fields, rows) = (constants.schema_ref().fields(), constants.num_rows());
        let row = usize::try_from(self.constants).ok().filter(|row| *row < rows || fields.is_empty());
        let Some(row) = row else {
            let what = format!("expected one of {rows} rows of constants, found number {}", self.constants);
            return Err(Error::invalid(what).in_file(shown_path(&self.path)));
        };
        let column = |(field, array): (&FieldRef, &ArrayRef)| (field.name().clone(), array.slice(row, 1));
        Ok(fields.iter().zip(constants.columns()).map(column).collect())
    }
}

/// What a definition states of the files of a group, for the matching of their columns and values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stated {
    /// The table's columns; empty if the definition states none.
    pub table: Arc<Vec<ColumnDef>>,
    /// As [`FileGroup::own`].
    pub own: Vec<ColumnDef>,
    /// As [`FileGroup::conversion`].
    pub conversion: Conversion,
    /// As [`FileGroup::row_numbers`].
    pub row_numbers: Option<String>,
}

impl Stated {
    /// How the values of a file's column become those of one of the table's columns, by the rules of Hive; `None` if they
    /// stay what they are, or other rules apply. `place`: the position of the file's column. An error if Hive refuses it.
    pub fn conversion(&self, table: &Field, own: &Field, place: usize) -> Result<Option<hive::Conversion>> {
        let Conversion::Hive(rules) = self.conversion else { return Ok(None) };
        let parsed = |column: Option<&ColumnDef>| {
            let text = column.and_then(|column| column.declared.as_deref());
            text.map(|text| ddl::parse_type(text, &Limits::default())).transpose()
        };
        let declared = parsed(self.table.iter().find(|column| column.name() == table.name()))?;
        // Other files state their types themselves.
        let of_partition = self.own.get(place).filter(|_| rules.reader == Reader::Rows);
        let own_declared = parsed(of_partition)?;
        let own = Typed { field: own, declared: own_declared.as_ref() };
        let made = hive::Conversion::new(own, Typed { field: table, declared: declared.as_ref() }, rules)?;
        Ok(Some(made).filter(|conversion| !conversion.is_identity()))
    }
}

/// Deleted rows of a file. They are left out before filters and limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deletes {
    /// By position: the numbers of rows in the file, counted from 0.
    pub positions: Option<Arc<RoaringTreemap>>,
    /// By value: a row is deleted if it equals a row of one of these tables in all of that table's columns. Two nulls are
    /// equal. The columns are named and typed as those of the table.
    pub keys: Vec<Arc<RecordBatch>>,
}

impl Deletes {
    /// Whether no row is deleted.
    pub fn is_empty(&self) -> bool {
        self.positions.as_ref().is_none_or(|positions| positions.is_empty())
            && self.keys.iter().all(|keys| keys.num_rows() == 0)
    }
}

impl TableDef {
    /// The number of files.
    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.files.len()).sum()
    }

    /// Whether the table has no files.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.files.is_empty())
    }

    /// The table's columns, if the definition states them, with the partition keys and the origin.
    pub fn schema(&self) -> Option<SchemaRef> {
        let Columns::Stated(columns) = &self.columns else { return None };
        let fields = columns.iter().chain(&self.keys).map(|column| column.field.clone());
        let origin = self.origin.fields().into_iter().map(Arc::new);
        Some(Arc::new(Schema::new(fields.chain(origin).collect::<Vec<_>>())))
    }

    /// The fields of the partition keys.
    pub fn key_fields(&self) -> Vec<Field> {
        self.keys.iter().map(|key| key.field.as_ref().clone()).collect()
    }
}

/// Constants of a group from arrays of the same length.
pub fn constants(columns: Vec<(Field, ArrayRef)>, rows: usize) -> Result<RecordBatch> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).map_err(arrow_error)
}
