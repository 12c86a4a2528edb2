//! The interface between formats and everything else: a format opens a file; a file plans a split; a plan
//! yields units; a unit decodes.
//!
//! The traits require only what every format can do. A format with a footer lists its units from the footer;
//! a format without a footer walks the file; a sorted format seeks by the key range of the predicate; a table
//! of many single-column files plans over all of them. What only one format can do (a point look-up, a seek
//! by ordinal) is a method of its concrete type, available through [`TableFile::as_any`].

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use coldframe_encoding::{Error, Result};

use crate::io::Entry;
use crate::options::OptionSpec;
use crate::{
    ColumnSummary, Content, Damage, DamageLog, Extremes, Node, Notice, Predicate, Proof, ReadAt, Scan,
    Source, Value,
};

mod options;

pub use options::{CommonOptions, KeySource, OpenOptions, SchemaSpec, WriteOptions};

/// Batches of one unit, in file order.
pub type BatchIter = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// What a format can do besides scans, and what it needs from the user. This is data, so that no other layer
/// depends on the names of formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Rows can be looked up by key (`get`, `get_many`, `scan` of a range).
    pub keys: bool,
    /// Rows can be read from a given number on (`seek`).
    pub seek: bool,
    /// Rows can be looked up by value (`lookup`).
    pub lookup: bool,
    /// A bloom filter can rule out a key (`might_contain`).
    pub might_contain: bool,
    /// Files store no column types: the user must supply them.
    pub needs_schema: bool,
    /// A folder can be one table.
    pub folders: bool,
    /// A folder can hold several tables: the option `table` selects one, [`Format::tables`] lists them.
    pub tables: bool,
    /// Files can be written.
    pub written: bool,
    /// File name extensions without the dot, the usual extension first.
    pub endings: &'static [&'static str],
    /// Whether an empty file is a valid file of this format, if its name ends with one of `endings`.
    pub empty_files: bool,
    /// The file format whose folders are really tables of this format. A folder that is opened as that file
    /// format is opened as this format.
    pub tables_of: Option<&'static str>,
    /// The option of `open` that opens a folder as one table. Without it, `scan` reads the folder's files.
    pub folder_option: Option<&'static str>,
    /// Whether several folders can form one source: the data directories of several servers, which hold
    /// replicas of the same rows.
    pub side_by_side: bool,
    /// Hive's input formats for these files, as suffixes of class names.
    pub input_formats: &'static [&'static str],
    /// The option of `open` that sets the unit of timestamps, `"ns"` or `"us"`: for consumers that support
    /// only one.
    pub unit_option: Option<&'static str>,
    /// The option of `open` that turns timestamps without a zone into instants of a zone: for consumers whose
    /// timestamps are instants.
    pub zone_option: Option<&'static str>,
    /// The option of `open` that adds a column with the number of each row in its file.
    pub row_numbers_option: Option<&'static str>,
}

/// A file format: detects, opens and creates files.
pub trait Format: Send + Sync {
    /// The name in lower case, as in `format="orc"`.
    fn name(&self) -> &'static str;

    /// What the format can do and needs.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Whether a file that begins with `head` and ends with `tail` is of this format. Each slice has at least
    /// 64 bytes, or the whole file if that is shorter.
    fn probe(&self, head: &[u8], tail: &[u8]) -> bool;

    /// Whether a folder is one table of this format.
    fn probe_folder(&self, _folder: &dyn crate::io::Folder) -> Result<bool> {
        Ok(false)
    }

    /// Whether a subfolder of this name shows that its parent is a table, or a partition of a table.
    fn is_part_of_folder(&self, _name: &str) -> bool {
        false
    }

    /// The tables of a folder: for each, the value for the option `table`, and its name.
    fn tables(&self, _source: &Source, _options: &OpenOptions) -> Result<Vec<(String, String)>> {
        Err(Error::unsupported(format!("several tables in one folder of {}", self.name())))
    }

    /// Everything that could be read from a source. Each part has a flag for whether these options read all
    /// of it. Empty if the source contains nothing except what [`Self::open`] opens. Reads no rows.
    fn contents(&self, _source: &Source, _options: &OpenOptions) -> Result<Vec<Content>> {
        Ok(Vec::new())
    }

    /// The files in a folder that belong to none of its tables: neither data, in whatever state, nor metadata of
    /// this format. Nobody reads them, so a folder is not safe to delete with them. Files without bytes are left
    /// out.
    fn unclaimed(&self, _source: &Source, _options: &OpenOptions) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    /// Opens a file or folder by reading its metadata.
    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>>;

    /// Like [`Self::open`], but with bytes of the folder that were read before. `recorded` comes from
    /// [`Self::shared`] for the table, or from [`TableFile::recorded`] for one split; with the latter, only
    /// that split can be read.
    fn open_recorded(
        &self,
        source: &Source,
        options: &OpenOptions,
        recorded: &[Piece],
    ) -> Result<Arc<dyn TableFile>> {
        let _ = recorded;
        self.open(source, options)
    }

    /// Reads once what opening every table of a folder would otherwise read each time. The keys are the
    /// values of the option `table`. Empty if the tables share nothing.
    fn shared(&self, source: &Source, options: &OpenOptions) -> Result<BTreeMap<String, Vec<Piece>>> {
        let _ = (source, options);
        Ok(BTreeMap::new())
    }

    /// Creates a file.
    fn create(
        &self,
        _sink: Box<dyn Write + Send>,
        _schema: &SchemaRef,
        _options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        Err(Error::unsupported(format!("writing {}", self.name())))
    }

    /// The options of [`OpenOptions::extra`] that this format has besides [`CommonOptions`].
    fn open_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// The options of [`WriteOptions::extra`] that this format has.
    fn write_options(&self) -> &'static [OptionSpec] {
        &[]
    }
}

/// Bytes kept from one opening of a table for the next: stored bytes, or a result computed from them. The
/// number is an offset in a file; for a folder, the format decides what it means.
pub type Piece = (u64, Bytes);

/// The part of a table that one task reads. It has only numbers, so that it can be sent to Spark executors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The number of the part of the table that is read; 0 for a single file.
    pub part: u32,
    /// The range within the part: bytes of a file (a unit belongs to the split that contains its start, as
    /// the format defines it), or ordinals if the format counts rows.
    pub range: Range<u64>,
    /// Number of rows, if known.
    pub rows: Option<u64>,
}

/// The parts of a table in which some rows may pass a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// The splits with such rows.
    pub splits: Vec<Split>,
    /// How many units (stripes, row groups) these splits leave out.
    pub pruned: u64,
}

impl Split {
    /// The error of [`TableFile::byte_split`] for a table of many files.
    pub fn not_of_bytes() -> Error {
        Error::unsupported("a byte range of a table of many files: take one of its `splits()`")
    }
}

/// The input of a plan.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// The user's request. The predicate is bound to the file's schema; it is `None` if the plan must not
    /// prune.
    pub scan: Scan,
    /// The columns to decode, in this order: the requested columns and the columns that the filter needs. A
    /// struct may list only some of its children; a format may decode all of them, and the scan drops the
    /// others.
    pub decode: SchemaRef,
    /// Records damage that does not end the scan.
    pub damage: DamageLog,
}

/// The dictionary of a column, as one part of a file stores it.
#[derive(Clone, Debug)]
pub struct StoredDictionary {
    /// The name of the part: `stripe 3`.
    pub part: String,
    /// The byte range of the dictionary in the file.
    pub bytes: Range<u64>,
    /// The values by their indexes; of type binary if some are not UTF-8.
    pub values: ArrayRef,
}

/// An open table.
pub trait TableFile: Send + Sync + Debug {
    /// The format's name, as in `format="orc"`.
    fn format(&self) -> &'static str;

    /// All columns.
    fn schema(&self) -> &SchemaRef;

    /// Whether column names are only positions (`_col0`), so that the user must supply the real names.
    fn has_placeholder_names(&self) -> bool {
        false
    }

    /// Number of rows, if the metadata states it.
    fn row_count(&self) -> Option<u64>;

    /// Whether only a full read can confirm [`Self::row_count`], because nothing else in the file repeats
    /// that number. Counting then reads the rows.
    fn counts_by_reading(&self) -> bool {
        false
    }

    /// All metadata of the file.
    fn metadata(&self) -> Result<Value>;

    /// What the user should know about this table.
    fn notices(&self) -> Result<Vec<Notice>> {
        Ok(Vec::new())
    }

    /// What the user should know besides [`notices`](Self::notices), and only reading a part of the table tells. A
    /// scan tells the same.
    fn notices_by_reading(&self) -> Result<Vec<Notice>> {
        Ok(Vec::new())
    }

    /// Takes what look-ups met since the last call.
    fn take_notices(&self) -> Vec<Notice> {
        Vec::new()
    }

    /// Cuts the table into parts of about `target` bytes; together they contain each row once.
    fn splits(&self, target: u64) -> Result<Vec<Split>>;

    /// [`Self::splits`] without the units that the file's metadata rule out for `filter`. The filter must be
    /// bound to the table's schema. Reads no units. `None` if the metadata do not describe units.
    fn matching_splits(&self, target: u64, filter: &Predicate) -> Result<Option<Matching>> {
        let _ = (target, filter);
        Ok(None)
    }

    /// For each of these splits, the pieces with which [`Format::open_recorded`] need not search for the
    /// split's data.
    fn recorded(&self, splits: &[Split]) -> Result<Vec<Vec<Piece>>> {
        Ok(vec![Vec::new(); splits.len()])
    }

    /// The split for a byte range of the file: ranges that tile the file return each row once. A format whose
    /// splits are not byte ranges maps the range to its own splits; a table of many files returns an error.
    fn byte_split(&self, bytes: Range<u64>) -> Result<Split> {
        Ok(Split { part: 0, range: bytes, rows: None })
    }

    /// Whether the format decodes views where [`PlanRequest::decode`] has view types for strings and binary
    /// values. The scan converts columns that are decoded as another type.
    fn decodes_views(&self) -> bool {
        false
    }

    /// Whether a scan can return [doubtful](Scan::doubtful) rows: what is damaged decodes in part, and nothing
    /// proves that part.
    fn has_doubtful_rows(&self) -> bool {
        false
    }

    /// Starts a scan of one part.
    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>>;

    /// Suggested options of `open`, guessed from the values, that show more of the table. The user should
    /// review these options.
    fn proposal(&self) -> Result<Option<Value>> {
        Ok(None)
    }

    /// Statistics in the format's own form; `Null` if the format stores no statistics.
    fn statistics(&self) -> Result<Value> {
        Ok(Value::Null)
    }

    /// The lengths of the file's keys, values and rows. Reads the whole file; calls `tick` with the rows so
    /// far.
    fn lengths(&self, _tick: &mut dyn FnMut(u64) -> Result<()>) -> Result<Value> {
        Err(Error::unsupported(format!(
            "lengths of keys and values in {}: only HFiles have them",
            self.format()
        )))
    }

    /// Passes the dictionaries of a column to `with`, in file order. Parts without a dictionary are skipped.
    fn dictionaries(
        &self,
        _column: &str,
        _with: &mut dyn FnMut(StoredDictionary) -> Result<()>,
    ) -> Result<()> {
        Err(Error::unsupported(format!(
            "dictionaries in {}: only the columns of ORC files and CFiles have them",
            self.format()
        )))
    }

    /// The file's statistics for the columns of a split, with which decoded values can be compared. There is
    /// a list of columns, as in [`Self::statistics`], for each unit of the split, or one list for all units.
    /// `Null` if the file has none.
    fn split_statistics(&self, split: &Split) -> Result<Value> {
        let _ = split;
        Ok(Value::Null)
    }

    /// The reliable statistics of the top-level columns of a split: a list for each unit of the split, or one
    /// list for all units. Empty if the file has none.
    fn column_summaries(&self, split: &Split) -> Result<Vec<Vec<ColumnSummary>>> {
        let _ = split;
        Ok(Vec::new())
    }

    /// The exact counts and extremes of top-level columns, taken from metadata, for parts that together cover
    /// the rows of a split. `None` if only decoding the rows gives them. `by_unit` requests a part for each
    /// unit, if the metadata has them; otherwise there are as few parts as possible.
    fn extremes(&self, split: &Split, columns: &[String], by_unit: bool) -> Result<Option<Vec<Extremes>>> {
        let _ = (split, columns, by_unit);
        Ok(None)
    }

    /// The physical layout as a tree in which each byte belongs to one leaf. Damage is a node, not an error.
    fn inspect(&self) -> Result<Node>;

    /// Checks what a scan of all columns does not check: checksums of parts that a scan skips, agreement of
    /// counts, unused bytes. Returns the damage.
    fn verify_structure(&self) -> Result<Vec<Damage>> {
        Ok(Vec::new())
    }

    /// What `verify` compares in this file in addition to decoding all of it.
    fn proof(&self) -> Proof {
        Proof::default()
    }

    /// The concrete type, for methods that only this format has.
    fn as_any(&self) -> &dyn Any;
}

/// Yields the units of a split in order. Pruning happens here, and may read indexes.
///
/// Under [`crate::OnError::Skip`], a plan records damage in its request's log and continues. An error that
/// the plan returns ends the scan.
pub trait Plan: Send {
    /// The next unit that may hold matching rows.
    fn next_unit(&mut self) -> Result<Option<Unit>>;

    /// Units skipped so far because statistics, indexes or bloom filters exclude their rows.
    fn pruned(&self) -> u64 {
        0
    }
}

/// The plan for a table without rows, or without rows that may match.
#[derive(Clone, Copy, Debug)]
pub struct NoUnits;

impl Plan for NoUnits {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        Ok(None)
    }
}

/// A byte range of one source to fetch.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The file.
    pub source: Arc<dyn ReadAt>,
    /// Its bytes.
    pub range: Range<u64>,
}

/// The least that can be decoded without the bytes of any other unit: a stripe, a row group, a run of blocks.
pub struct Unit {
    /// The ranges to fetch, all with one request.
    pub fetch: Vec<Fetch>,
    /// The unit's byte range in the file, for damage records.
    pub bytes: Range<u64>,
    /// Number of rows, if known before decoding, for damage records.
    pub rows: Option<u64>,
    /// The unit's name: `row group 3`.
    pub structure: String,
    /// Turns the bytes into batches.
    pub decode: Box<dyn DecodeUnit>,
}

/// Decodes a unit. `decode` only computes: it does no I/O and does not hold Python's GIL.
pub trait DecodeUnit: Send {
    /// `bytes[i]` are the bytes of the unit's `fetch[i]`. Each batch has the columns of the request's
    /// `decode`.
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter>;
}

/// Writes batches into one file.
pub trait BatchWriter: Send {
    /// Appends rows.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Writes the end of the file, without which it is invalid, and flushes it. Returns the file's length in
    /// bytes.
    fn finish(self: Box<Self>) -> Result<u64>;
}

/// The result of `verify`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Number of rows that could be decoded.
    pub rows: u64,
    /// Number of units (stripes, row groups, blocks) read.
    pub units: u64,
    /// The damage that was found.
    pub damage: Vec<Damage>,
    /// Which checksums and other redundant fields were compared.
    pub proof: Proof,
}
