//! The narrow waist: a format opens a file; a file plans a split; a plan yields units; a unit decodes.
//!
//! The traits ask only what all formats can answer. A file with a footer lists its units from it, one without walks;
//! a sorted one seeks by the predicate's key range; a table of many single-column files plans over all of them. What
//! only one format can do (a point look-up, a seek by ordinal) is a method of its own type, reached by
//! [`TableFile::as_any`].

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use coldframe_encoding::{Error, Limits, Result};

use crate::options::{Kind, OptionSpec, Options as _};
use crate::{Content, Damage, DamageLog, Node, Proof, ReadAt, Scan, Source, StatedColumn, Value};

/// Batches of one unit, in file order.
pub type BatchIter = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// The types of a file that does not hold them.
#[derive(Clone, Debug)]
pub enum SchemaSpec {
    /// As Arrow has them.
    Arrow(SchemaRef),
    /// A column list in the DDL of the format's engine: `id bigint, tags array<string>`.
    Ddl(String),
}

/// Something that knows keys of encrypted files, such as a key server's client.
pub trait KeySource: Debug + Send + Sync {
    /// The key of a name, if there is one that may be had.
    fn key(&self, name: &str) -> Result<Option<Vec<u8>>>;
}

/// What every format may be told when a file is opened.
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// Names and types where the file does not hold them (RCFile), or other ones than it holds.
    pub schema: Option<SchemaSpec>,
    /// Whether stored checksums are not to be compared; they are by default.
    pub skip_checksums: bool,
    /// Keys for encrypted files by name.
    pub keys: BTreeMap<String, Vec<u8>>,
    /// Who is asked for those that are not in `keys`.
    pub key_source: Option<Arc<dyn KeySource>>,
    /// Bounds for what the file may make the reader allocate.
    pub limits: Limits,
    /// Most threads at work on a scan; `None` is what the caller has by default.
    pub threads: Option<usize>,
    /// Whether instants count microseconds unless an option says else ([`Capabilities::unit_option`]): for consumers that know
    /// nothing finer.
    pub microseconds: bool,
    /// The format's own options by name; one it does not know is an error.
    pub extra: BTreeMap<String, Value>,
}

crate::options! {
    /// Options that every format takes: the bounds of [`Limits`], and threads.
    pub struct CommonOptions for OpenOptions {
        /// names and types of the columns where the file does not hold them, such as "id bigint, tags array<string>"; an Arrow schema
        /// in Python and Rust
        schema: Option<String>, as Kind::Schema;
        /// largest block after decompression
        max_block_bytes: u64 = Limits::default().max_block_bytes, as Kind::SIZE;
        /// most columns of a file
        max_columns: u64 = Limits::default().max_columns;
        /// deepest nesting
        max_depth: u64 = Limits::default().max_depth;
        /// largest header, footer, index or key
        max_metadata_bytes: u64 = Limits::default().max_metadata_bytes, as Kind::SIZE;
        /// most rows of a row group, stripe or block
        max_unit_rows: u64 = Limits::default().max_unit_rows;
        /// how many threads may be at work on a read; default all processors, 1 for none but the caller's
        threads: Option<u64>;
    }
}

impl fmt::Debug for OpenOptions {
    /// Of keys only the names are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions")
            .field("schema", &self.schema)
            .field("skip_checksums", &self.skip_checksums)
            .field("keys", &self.keys.keys().collect::<Vec<_>>())
            .field("limits", &self.limits)
            .field("threads", &self.threads)
            .field("microseconds", &self.microseconds)
            .field("extra", &self.extra)
            .finish_non_exhaustive()
    }
}

impl OpenOptions {
    /// The key of a name: given, or asked for.
    pub fn key(&self, name: &str) -> Result<Option<Vec<u8>>> {
        match (self.keys.get(name), &self.key_source) {
            (Some(key), _) => Ok(Some(key.clone())),
            (None, Some(source)) => source.key(name),
            (None, None) => Ok(None),
        }
    }

    /// Moves the options of [`CommonOptions`] from `extra` to their fields.
    pub fn take_common(&mut self) -> Result<()> {
        let Limits { max_block_bytes, max_columns, max_depth, max_metadata_bytes, max_unit_rows } =
            self.limits;
        let now = CommonOptions {
            schema: None,
            max_block_bytes,
            max_columns,
            max_depth,
            max_metadata_bytes,
            max_unit_rows,
            threads: self.threads.map(|threads| threads as u64),
        };
        let CommonOptions {
            schema,
            max_block_bytes,
            max_columns,
            max_depth,
            max_metadata_bytes,
            max_unit_rows,
            threads,
        } = CommonOptions::from_given_or(&self.extra, now)?;
        self.extra.retain(|name, _| !CommonOptions::specs().iter().any(|spec| spec.is_called(name)));
        self.limits = Limits { max_block_bytes, max_columns, max_depth, max_metadata_bytes, max_unit_rows };
        // 0 is the default in words.
        self.threads = threads.and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
        if let Some(columns) = schema {
            self.schema = Some(SchemaSpec::Ddl(columns));
        }
        Ok(())
    }

    /// Options at their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also a format's own options, as the struct that declares them: `coldframe::orc::OpenOptions { .. }`.
    #[must_use]
    pub fn with(mut self, of_format: impl Into<Self>) -> Self {
        self.extra.extend(of_format.into().extra);
        self
    }

    /// Also one option of the format's own by its name.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(name.into(), value.into());
        self
    }

    /// Names and types of the columns.
    #[must_use]
    pub fn schema(mut self, schema: SchemaRef) -> Self {
        self.schema = Some(SchemaSpec::Arrow(schema));
        self
    }

    /// Names and types of the columns as the format's engine writes them: `id bigint, tags array<string>`.
    #[must_use]
    pub fn schema_ddl(mut self, columns: impl Into<String>) -> Self {
        self.schema = Some(SchemaSpec::Ddl(columns.into()));
        self
    }

    /// Whether stored checksums are compared.
    #[must_use]
    pub fn verify_checksums(mut self, verify: bool) -> Self {
        self.skip_checksums = !verify;
        self
    }

    /// A key for encrypted files.
    #[must_use]
    pub fn with_key(mut self, name: impl Into<String>, key: impl Into<Vec<u8>>) -> Self {
        self.keys.insert(name.into(), key.into());
        self
    }

    /// Most threads at work on a scan.
    #[must_use]
    pub fn threads(mut self, most: usize) -> Self {
        self.threads = Some(most);
        self
    }

    /// Bounds for what a file may make the reader allocate.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// What a writer may be told. Every option is the format's own.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Options by name; one the format does not know is an error.
    pub extra: BTreeMap<String, Value>,
}

impl WriteOptions {
    /// Options at their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also a format's own options, as the struct that declares them: `coldframe::orc::WriteOptions { .. }`.
    #[must_use]
    pub fn with(mut self, of_format: impl Into<Self>) -> Self {
        self.extra.extend(of_format.into().extra);
        self
    }

    /// Also one option by its name.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(name.into(), value.into());
        self
    }
}

/// What a format has beside scans, and what it needs: as data, so that nobody above has to know formats by their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Rows are found by their keys (`get`, `get_many`, `scan` of a range).
    pub keys: bool,
    /// Rows are found by their number (`seek`).
    pub seek: bool,
    /// Rows are found by a value (`lookup`).
    pub lookup: bool,
    /// A filter may say that a key is not there (`might_contain`).
    pub might_contain: bool,
    /// The files hold no types: those of the columns are the user's to say.
    pub needs_schema: bool,
    /// A folder may be one table.
    pub folders: bool,
    /// A folder may be several tables: the option `table` says which, [`Format::tables`] names them.
    pub tables: bool,
    /// Files can be written.
    pub written: bool,
    /// How the names of its files end, without the dot; the usual ending first.
    pub endings: &'static [&'static str],
    /// Whether a file without bytes is one of this format, if its name has one of `endings`.
    pub empty_files: bool,
    /// The file format whose folders are tables of this one: a folder opened under that name is opened under this one.
    pub tables_of: Option<&'static str>,
    /// The flag of `open` that says that a folder is one table. Without it, `scan` takes the folder for its files.
    pub folder_option: Option<&'static str>,
    /// Whether folders of it that lie side by side are one source: those of servers, which hold replicas of the same rows.
    pub side_by_side: bool,
    /// Hive's input formats for its files: how the names of their classes end.
    pub input_formats: &'static [&'static str],
    /// The option of `open` that sets the unit of timestamps, `"ns"` or `"us"`: for consumers that have only one.
    pub unit_option: Option<&'static str>,
}

/// A file format: recognises, opens and creates files.
pub trait Format: Send + Sync {
    /// Lower-case name, as in `format="orc"`.
    fn name(&self) -> &'static str;

    /// What it has and needs.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Whether a file that begins with `head` and ends with `tail` (at least 64 bytes each, where the file has them)
    /// is of this format.
    fn probe(&self, head: &[u8], tail: &[u8]) -> bool;

    /// Whether a folder is one table of this format.
    fn probe_folder(&self, _folder: &dyn crate::io::Folder) -> Result<bool> {
        Ok(false)
    }

    /// The tables of a folder: what the option `table` takes, and the name of each.
    fn tables(&self, _source: &Source, _options: &OpenOptions) -> Result<Vec<(String, String)>> {
        Err(Error::unsupported(format!("several tables in one folder of {}", self.name())))
    }

    /// What could be read from a source, each with whether these options take all of it. Nothing where there is only what
    /// [`Self::open`] opens. Reads no rows.
    fn contents(&self, _source: &Source, _options: &OpenOptions) -> Result<Vec<Content>> {
        Ok(Vec::new())
    }

    /// Reads the metadata.
    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>>;

    /// The same of a folder of which others know a part: what [`Self::shared`] gave for the table, or [`TableFile::recorded`] for
    /// one split, which is then all that can be read.
    fn open_recorded(
        &self,
        source: &Source,
        options: &OpenOptions,
        recorded: &[Piece],
    ) -> Result<Arc<dyn TableFile>> {
        let _ = recorded;
        self.open(source, options)
    }

    /// What opening or reading any of the tables of a folder would read again, read once: by what the option `table` takes.
    /// Nothing where these options do without it.
    fn shared(&self, source: &Source, options: &OpenOptions) -> Result<BTreeMap<String, Vec<Piece>>> {
        let _ = (source, options);
        Ok(BTreeMap::new())
    }

    /// Starts a new file.
    fn create(
        &self,
        _sink: Box<dyn Write + Send>,
        _schema: &SchemaRef,
        _options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        Err(Error::unsupported(format!("writing {}", self.name())))
    }

    /// What [`OpenOptions::extra`] may hold beside [`CommonOptions`].
    fn open_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// What [`WriteOptions::extra`] may hold.
    fn write_options(&self) -> &'static [OptionSpec] {
        &[]
    }
}

/// Bytes that were read to open something, or say what was found in it, for opening it again: by their offset in a file, by
/// numbers of the format's own in a folder.
pub type Piece = (u64, Bytes);

/// A part of a table that one task reads. Plain numbers: it is pickled to Spark executors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Which of the parts a table consists of; 0 for a single file.
    pub part: u32,
    /// What of the part: bytes for a file (a unit belongs to the split that holds its start, as the format defines
    /// it), ordinals where the format counts rows.
    pub range: Range<u64>,
    /// Rows in it, if known.
    pub rows: Option<u64>,
}

impl Split {
    /// What [`TableFile::byte_split`] says of a table of many files.
    pub fn not_of_bytes() -> Error {
        Error::unsupported("a byte range of a table of many files: take one of its `splits()`")
    }
}

/// What a plan is made from.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// What the user asked for. Predicates are bound to the file's schema; there is none where nothing may be left out.
    pub scan: Scan,
    /// The columns to decode, in this order: those asked for and those the filter needs. Structs may hold only
    /// some of their children; a format may then decode whole columns, the scan prunes them.
    pub decode: SchemaRef,
    /// Where damage is recorded when it is not raised.
    pub damage: DamageLog,
}

/// Something that a user of an open file should hear of, though it is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The bytes do not tell which of several layouts they are in; one was assumed.
    AmbiguousDialect(String),
    /// Columns are encrypted, and read as a mask has left them.
    EncryptedColumns(String),
    /// Parts of the table are not here, and nothing says that they should be.
    PartialTable(String),
}

/// An open table.
pub trait TableFile: Send + Sync + Debug {
    /// The format's name, as in `format="orc"`.
    fn format(&self) -> &'static str;

    /// All columns.
    fn schema(&self) -> &SchemaRef;

    /// Whether its columns are called by their places alone, so that their real names are the user's to say.
    fn has_placeholder_names(&self) -> bool {
        false
    }

    /// Rows in the file, where the metadata says so.
    fn row_count(&self) -> Option<u64>;

    /// Whether [`Self::row_count`] stands in one place of the file, so that nothing but reading shows whether it is true:
    /// whoever counts rows reads them then.
    fn counts_by_reading(&self) -> bool {
        false
    }

    /// Everything the file says of itself.
    fn metadata(&self) -> Result<Value>;

    /// What its user should hear of.
    fn notices(&self) -> Result<Vec<Notice>> {
        Ok(Vec::new())
    }

    /// Cuts the table into parts of about `target` bytes that together hold each row once.
    fn splits(&self, target: u64) -> Result<Vec<Split>>;

    /// What whoever opens the table only for one of these splits need not find again, for [`Format::open_recorded`].
    fn recorded(&self, splits: &[Split]) -> Result<Vec<Vec<Piece>>> {
        Ok(vec![Vec::new(); splits.len()])
    }

    /// The split that a byte range of the file stands for: ranges that tile the file give each row once. A format whose
    /// splits are no byte ranges translates, and a table of many files has none.
    fn byte_split(&self, bytes: Range<u64>) -> Result<Split> {
        Ok(Split { part: 0, range: bytes, rows: None })
    }

    /// Starts a scan of one part.
    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>>;

    /// Options of `open` that would show more of it, where those can be guessed from its values: for people to look over.
    fn proposal(&self) -> Result<Option<Value>> {
        Ok(None)
    }

    /// Statistics as the format stores them; `Null` if it stores none.
    fn statistics(&self) -> Result<Value> {
        Ok(Value::Null)
    }

    /// What the file states of the columns of a part, for whoever holds the values that it decoded against that: a list of
    /// columns as in [`Self::statistics`] for each unit of the part, or one for all of them. `Null` if it states nothing.
    fn stated(&self, split: &Split) -> Result<Value> {
        let _ = split;
        Ok(Value::Null)
    }

    /// The same of the columns at the top of its rows, as far as it is certain: for each unit of the part, or once for all of them.
    /// Nothing if the file states nothing.
    fn stated_columns(&self, split: &Split) -> Result<Vec<Vec<StatedColumn>>> {
        let _ = split;
        Ok(Vec::new())
    }

    /// The physical layout: each byte belongs to a leaf. Damage is a node, not an error.
    fn inspect(&self) -> Result<Node>;

    /// Checks what a scan of all columns does not: checksums of what it skips, agreement of counts, unused bytes.
    /// Damage is returned.
    fn verify_structure(&self) -> Result<Vec<Damage>> {
        Ok(Vec::new())
    }

    /// What `verify` compares in this file besides decoding all of it: nothing where a format does not say so.
    fn proof(&self) -> Proof {
        Proof::default()
    }

    /// The concrete type, for what only this format can do.
    fn as_any(&self) -> &dyn Any;
}

/// Finds the units of a split one after another; prunes here; may read indexes.
///
/// With [`crate::OnError::Skip`], a plan records damage in its request's log and goes on behind it; an error it
/// returns ends the scan.
pub trait Plan: Send {
    /// The next unit that may hold matching rows.
    fn next_unit(&mut self) -> Result<Option<Unit>>;
}

/// The plan of what has no rows, or none that may match.
#[derive(Clone, Copy, Debug)]
pub struct NoUnits;

impl Plan for NoUnits {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        Ok(None)
    }
}

/// A range of one source to fetch.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The file.
    pub source: Arc<dyn ReadAt>,
    /// Its bytes.
    pub range: Range<u64>,
}

/// What can be decoded without any other unit's bytes: a stripe, a row group, a run of blocks.
pub struct Unit {
    /// To fetch, together.
    pub fetch: Vec<Fetch>,
    /// Where it stands in the file: for damage records.
    pub bytes: Range<u64>,
    /// Rows it holds, if known before decoding: for damage records.
    pub rows: Option<u64>,
    /// Its name: `row group 3`.
    pub structure: String,
    /// Turns the bytes into batches.
    pub decode: Box<dyn DecodeUnit>,
}

/// CPU work only: no I/O, no GIL.
pub trait DecodeUnit: Send {
    /// `bytes[i]` are the bytes of the unit's `fetch[i]`. Each batch has the request's decoded columns.
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter>;
}

/// Writes batches into one file.
pub trait BatchWriter: Send {
    /// Appends rows.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Writes what comes last and flushes; a file without it is invalid. Returns the file's length in bytes.
    fn finish(self: Box<Self>) -> Result<u64>;
}

/// What `verify` found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows that decode.
    pub rows: u64,
    /// Units (stripes, row groups, blocks) that were read.
    pub units: u64,
    /// What does not.
    pub damage: Vec<Damage>,
    /// What was compared.
    pub proof: Proof,
}
