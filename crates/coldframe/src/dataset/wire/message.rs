//! The messages of a plan. Tags are permanent: the tag of a removed field is never reused.

use coldframe_core::Result;
use coldframe_encoding::Limits;
use coldframe_encoding::limits::message::{self, Shape, Shaped};

/// A request and the splits that answer it.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Plan {
    /// The schema of the returned batches, as an Arrow IPC stream.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) schema: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub(super) scan: Option<Scan>,
    #[prost(message, repeated, tag = "3")]
    pub(super) openings: Vec<Opening>,
    #[prost(message, repeated, tag = "4")]
    pub(super) tables: Vec<Table>,
    #[prost(message, repeated, tag = "5")]
    pub(super) files: Vec<File>,
    #[prost(message, repeated, tag = "6")]
    pub(super) splits: Vec<Split>,
    /// As in [`TableDef`].
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub(super) key_tables: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Scan {
    /// Whether `columns` is set: requesting no columns differs from requesting all columns.
    #[prost(bool, tag = "1")]
    pub(super) has_columns: bool,
    #[prost(string, repeated, tag = "2")]
    pub(super) columns: Vec<String>,
    #[prost(uint64, optional, tag = "4")]
    pub(super) limit: Option<u64>,
    #[prost(uint64, tag = "5")]
    pub(super) batch_rows: u64,
    /// 0 `raise`, 1 `skip`, 2 `null`.
    #[prost(uint32, tag = "6")]
    pub(super) on_error: u32,
    #[prost(bool, tag = "7")]
    pub(super) no_prune: bool,
    #[prost(uint64, tag = "8")]
    pub(super) threads: u64,
    /// 0 the layout with which the files are opened, 1 plain, 2 views.
    #[prost(uint32, tag = "9")]
    pub(super) strings: u32,
    /// The nodes of the filter; each node comes before its parts. The nodes are not nested messages, since
    /// nested messages may be at most 100 deep.
    #[prost(message, repeated, tag = "10")]
    pub(super) filter: Vec<Predicate>,
}

/// A node of a filter; `kind` selects which of the other fields are used.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Predicate {
    /// 1 compare, 2 in, 3 null, 4 like, 5 and, 6 or, 7 trimmed.
    #[prost(uint32, tag = "1")]
    pub(super) kind: u32,
    #[prost(string, tag = "2")]
    pub(super) column: String,
    /// `=`, `!=`, `<`, `<=`, `>`, `>=`.
    #[prost(string, tag = "3")]
    pub(super) op: String,
    #[prost(bool, tag = "4")]
    pub(super) negated: bool,
    /// An Arrow IPC stream of one column.
    #[prost(bytes = "vec", tag = "5")]
    pub(super) values: Vec<u8>,
    #[prost(string, tag = "6")]
    pub(super) pattern: String,
    /// The number of the node's parts.
    #[prost(uint64, tag = "8")]
    pub(super) parts: u64,
}

/// How files are opened.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Opening {
    #[prost(string, optional, tag = "1")]
    pub(super) format: Option<String>,
    #[prost(message, repeated, tag = "2")]
    pub(super) storage: Vec<Text>,
    /// An Arrow IPC stream, or a list of columns in DDL.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(super) schema: Option<Vec<u8>>,
    #[prost(string, optional, tag = "4")]
    pub(super) ddl: Option<String>,
    #[prost(bool, tag = "5")]
    pub(super) skip_checksums: bool,
    #[prost(message, repeated, tag = "6")]
    pub(super) keys: Vec<Key>,
    #[prost(uint64, repeated, tag = "7")]
    pub(super) limits: Vec<u64>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) threads: Option<u64>,
    #[prost(bool, tag = "9")]
    pub(super) microseconds: bool,
    /// The format's own options: a map.
    #[prost(message, optional, tag = "10")]
    pub(super) extra: Option<Value>,
    /// Whether further keys come from an object that cannot be sent and that `Bound` must supply.
    #[prost(bool, tag = "11")]
    pub(super) asks_for_keys: bool,
    /// Whether the store is accessed through an object that cannot be sent and that `Bound` must supply.
    #[prost(bool, tag = "12")]
    pub(super) foreign_storage: bool,
    /// As `strings` in the message of the request.
    #[prost(uint32, tag = "13")]
    pub(super) strings: u32,
    #[prost(string, optional, tag = "14")]
    pub(super) timestamps_in: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Text {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) text: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Key {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) key: Vec<u8>,
}

/// Nested plain data; `kind` selects which of the other fields are used.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Value {
    /// 0 null, 1 bool, 2 int, 3 uint, 4 float, 5 text, 6 bytes, 7 list, 8 map.
    #[prost(uint32, tag = "1")]
    pub(super) kind: u32,
    #[prost(sint64, tag = "2")]
    pub(super) int: i64,
    #[prost(uint64, tag = "3")]
    pub(super) uint: u64,
    #[prost(double, tag = "4")]
    pub(super) float: f64,
    #[prost(string, tag = "5")]
    pub(super) text: String,
    #[prost(bytes = "vec", tag = "6")]
    pub(super) bytes: Vec<u8>,
    /// The items of a list, or the values of a map, whose names are in `names`.
    #[prost(message, repeated, tag = "7")]
    pub(super) items: Vec<Value>,
    #[prost(string, repeated, tag = "8")]
    pub(super) names: Vec<String>,
}

/// The columns and defaults that files share.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Table {
    /// The columns, as an Arrow IPC stream.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) schema: Vec<u8>,
    /// Default values for columns that files may lack, as an Arrow IPC stream of one row.
    #[prost(bytes = "vec", tag = "2")]
    pub(super) defaults: Vec<u8>,
    /// How columns are matched: 0 by name, 1 by position, 2 by the ids under `key`, 3 as Hive.
    #[prost(uint32, tag = "3")]
    pub(super) by: u32,
    #[prost(string, tag = "4")]
    pub(super) key: String,
    #[prost(bool, tag = "5")]
    pub(super) complete: bool,
    /// The columns that the definition states for the table and for the files.
    #[prost(message, optional, tag = "6")]
    pub(super) stated: Option<Columns>,
    #[prost(message, optional, tag = "7")]
    pub(super) own: Option<Columns>,
    /// As `conversion` and `row_numbers` of [`Group`].
    #[prost(uint32, tag = "8")]
    pub(super) conversion: u32,
    #[prost(string, optional, tag = "9")]
    pub(super) row_numbers: Option<String>,
}

/// Columns of a table, or of a group of its files.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Columns {
    /// The fields, as an Arrow IPC stream.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) schema: Vec<u8>,
    /// The declared type of each field; empty if no type is declared.
    #[prost(string, repeated, tag = "2")]
    pub(super) declared: Vec<String>,
}

/// What a table is.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TableDef {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// 0 merged from all files, 1 the columns of the first file, 2 `columns`.
    #[prost(uint32, tag = "2")]
    pub(super) columns_from: u32,
    #[prost(message, optional, tag = "3")]
    pub(super) columns: Option<Columns>,
    #[prost(message, optional, tag = "4")]
    pub(super) keys: Option<Columns>,
    #[prost(message, repeated, tag = "5")]
    pub(super) openings: Vec<Opening>,
    #[prost(message, repeated, tag = "6")]
    pub(super) groups: Vec<Group>,
    /// The keys of rows that are deleted by value: each table as an Arrow IPC stream.
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub(super) key_tables: Vec<Vec<u8>>,
    #[prost(bool, tag = "8")]
    pub(super) complete: bool,
    #[prost(string, optional, tag = "9")]
    pub(super) file_path: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub(super) row_index: Option<String>,
}

/// Files that are read in the same way.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Group {
    /// The index of the opening in the table's list.
    #[prost(uint32, tag = "1")]
    pub(super) opening: u32,
    #[prost(message, optional, tag = "2")]
    pub(super) own: Option<Columns>,
    /// As `by` and `key` of [`Table`].
    #[prost(uint32, tag = "3")]
    pub(super) by: u32,
    #[prost(string, tag = "4")]
    pub(super) key: String,
    /// 0 lossless, 1 as Hive.
    #[prost(uint32, tag = "5")]
    pub(super) conversion: u32,
    #[prost(bytes = "vec", tag = "6")]
    pub(super) defaults: Vec<u8>,
    /// The constant columns, as an Arrow IPC stream.
    #[prost(bytes = "vec", tag = "7")]
    pub(super) constants: Vec<u8>,
    #[prost(string, optional, tag = "8")]
    pub(super) row_numbers: Option<String>,
    #[prost(message, repeated, tag = "9")]
    pub(super) files: Vec<FileDef>,
}

/// A file of a group.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FileDef {
    #[prost(string, tag = "1")]
    pub(super) path: String,
    #[prost(message, optional, tag = "2")]
    pub(super) known: Option<Known>,
    #[prost(bool, tag = "3")]
    pub(super) listed: bool,
    /// The number of the file's row in the group's constants.
    #[prost(uint32, tag = "4")]
    pub(super) constants: u32,
    #[prost(bytes = "vec", tag = "5")]
    pub(super) defaults: Vec<u8>,
    #[prost(uint64, optional, tag = "6")]
    pub(super) rows: Option<u64>,
    #[prost(uint64, optional, tag = "7")]
    pub(super) first_row: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(super) deletes: Option<Deletes>,
}

/// The deleted rows of a file.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Deletes {
    /// Row numbers, as a 64-bit roaring bitmap in the portable form.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(super) positions: Option<Vec<u8>>,
    /// The indexes of tables of keys in the table's list.
    #[prost(uint32, repeated, tag = "2")]
    pub(super) keys: Vec<u32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct File {
    #[prost(string, tag = "1")]
    pub(super) path: String,
    /// The index of the opening in the plan's list.
    #[prost(uint32, tag = "2")]
    pub(super) opening: u32,
    #[prost(uint32, optional, tag = "3")]
    pub(super) table: Option<u32>,
    #[prost(message, optional, tag = "4")]
    pub(super) known: Option<Known>,
    #[prost(message, repeated, tag = "5")]
    pub(super) recorded: Vec<Piece>,
    /// Values of the partition columns, as an Arrow IPC stream of one row.
    #[prost(bytes = "vec", tag = "6")]
    pub(super) constants: Vec<u8>,
    #[prost(message, optional, tag = "7")]
    pub(super) deletes: Option<Deletes>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) first_row: Option<u64>,
    #[prost(uint64, optional, tag = "9")]
    pub(super) rows: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Known {
    #[prost(uint64, tag = "1")]
    pub(super) len: u64,
    #[prost(int64, optional, tag = "2")]
    pub(super) modified: Option<i64>,
    #[prost(string, optional, tag = "3")]
    pub(super) etag: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Piece {
    #[prost(uint64, tag = "1")]
    pub(super) at: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) bytes: bytes::Bytes,
}

/// A part of a file: a split as the format defines it (`part`, `start`, `end`), or a share (`number` of
/// `of`).
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Split {
    #[prost(uint32, tag = "1")]
    pub(super) file: u32,
    #[prost(uint32, tag = "2")]
    pub(super) part: u32,
    #[prost(uint64, tag = "3")]
    pub(super) start: u64,
    #[prost(uint64, tag = "4")]
    pub(super) end: u64,
    #[prost(uint64, optional, tag = "5")]
    pub(super) rows: Option<u64>,
    #[prost(message, repeated, tag = "6")]
    pub(super) own: Vec<Piece>,
    /// The number of shares; 0 if this part is no share.
    #[prost(uint64, tag = "7")]
    pub(super) of: u64,
    #[prost(uint64, tag = "8")]
    pub(super) number: u64,
    #[prost(uint64, tag = "9")]
    pub(super) target: u64,
}

const PIECE: Shape = Shape::of::<Piece>(&[]);
const PREDICATE: Shape = Shape::of::<Predicate>(&[]);
const VALUE: Shape = Shape::of::<Value>(&[(7, Shape::of::<Value>(&[]))]);

const KNOWN: Shape = Shape::of::<Known>(&[]);
const COLUMNS: Shape = Shape::of::<Columns>(&[]);
const DELETES: Shape = Shape::of::<Deletes>(&[(2, Shape::packed::<u32>())]);
const OPENING: Shape = Shape::of::<Opening>(&[
    (2, Shape::of::<Text>(&[])),
    (6, Shape::of::<Key>(&[])),
    (7, Shape::packed::<u64>()),
    (10, VALUE),
]);

impl Shaped for TableDef {
    const SHAPE: Shape = Shape::of::<Self>(&[
        (3, COLUMNS),
        (4, COLUMNS),
        (5, OPENING),
        (6, Shape::of::<Group>(&[(2, COLUMNS), (9, Shape::of::<FileDef>(&[(2, KNOWN), (8, DELETES)]))])),
    ]);
}

impl Shaped for Plan {
    const SHAPE: Shape = Shape::of::<Self>(&[
        (2, Shape::of::<Scan>(&[(10, PREDICATE)])),
        (3, OPENING),
        (4, Shape::of::<Table>(&[(6, COLUMNS), (7, COLUMNS)])),
        (5, Shape::of::<File>(&[(4, KNOWN), (5, PIECE), (7, DELETES)])),
        (6, Shape::of::<Split>(&[(6, PIECE)])),
    ]);
}

/// An error if a message would take more memory than its length justifies.
pub(super) fn check<M: Shaped>(body: &[u8]) -> Result<()> {
    message::check::<M>(body, &Limits::default(), body.len() as u64)
}
