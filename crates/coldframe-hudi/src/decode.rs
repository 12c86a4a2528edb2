//! Decodes one file group: merges its logs, applies them to its base file, and returns batches.
//!
//! The changes of the logs and one block of the base file are in memory at a time. Keys that occur only in
//! the logs are returned last.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, StructArray, cast::AsArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef, SchemaRef};
use bytes::Bytes;
use coldframe_core::{
    BatchIter, Damage, DamageLog, DecodeUnit, Error, Limits, Notice, OnError, ReadAt, Result, arrow_error,
};

use crate::avro::Schema;
use crate::avro::columns::ColumnBuilder;
use crate::avro::datum::Datum;
use crate::changes::{self, Change, Changes, KeyRange, KeyRanges};
use crate::data::{Lost, Named, missing};
use crate::log::{self, Block, BlockKind};
use crate::merge::{self, Record, Visible};
use crate::slice;
use coldframe_hfile::Options;
use coldframe_hfile::file_info;
use coldframe_hfile::{Cell, CellReader, RawFile};

/// The column of keys.
pub(crate) const KEY: &str = "key";
/// The column with the partition's name, if all partitions are read as one table.
pub(crate) const PARTITION: &str = "partition";
/// Bytes of values after which a batch ends, even if it has few rows.
const BATCH_BYTES: usize = 32 << 20;

/// The state that all groups of a scan share.
#[derive(Debug)]
pub(crate) struct Context {
    /// The schema that records are converted to.
    pub target: Arc<Schema>,
    /// The columns to decode.
    pub columns: SchemaRef,
    /// Maximum rows of a batch.
    pub batch_rows: usize,
    /// How to handle damage.
    pub on_error: OnError,
    /// The records of damage.
    pub damage: DamageLog,
    /// If the filter lists keys: the only keys that can pass.
    pub keys: Option<Arc<BTreeSet<Vec<u8>>>>,
    /// The valid instants.
    pub visible: Arc<Visible>,
    /// How HFiles are read.
    pub options: Options,
    /// Parsed schemas by their JSON: most files of a table have the same one.
    pub schemas: Mutex<HashMap<Vec<u8>, Arc<Schema>>>,
}

impl Context {
    fn limits(&self) -> &Limits {
        &self.options.limits
    }

    fn schema(&self, json: &[u8]) -> Result<Arc<Schema>> {
        let mut known = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = known.get(json) {
            return Ok(schema.clone());
        }
        let schema = Schema::parse(json, self.limits())?;
        let schema = if schema == *self.target { self.target.clone() } else { Arc::new(schema) };
        known.insert(json.to_vec(), schema.clone());
        Ok(schema)
    }

    fn includes(&self, key: &[u8]) -> bool {
        self.keys.as_ref().is_none_or(|keys| keys.contains(key))
    }

    /// Records damage; under `raise`, returns it as an error.
    pub(crate) fn lose(&self, e: Error, bytes: std::ops::Range<u64>, rows: Option<u64>) -> Result<()> {
        let e = self.on_error.weigh(e);
        if self.on_error == OnError::Raise || !e.is_damage() {
            return Err(e);
        }
        self.damage.push(Damage::from_error(&e, bytes, rows));
        Ok(())
    }
}

/// A file group to decode. The fetched bytes are those of the base file (if it is read as a whole) and of the logs.
pub(crate) struct DecodeGroup {
    /// The state that all groups of the scan share.
    pub context: Arc<Context>,
    /// The name of the partition.
    pub partition: Arc<str>,
    /// Names of the files, the base file first.
    pub files: Vec<String>,
    /// The base file, if there is one. It is the first of `files`.
    pub base: Option<BaseFile>,
    /// The files that must be there.
    pub lost: Lost,
}

/// How a base file is read.
pub(crate) enum BaseFile {
    /// As a whole; it is the first of the fetched byte ranges.
    Fetched,
    /// By its index, which selects the blocks to read.
    Searched(Arc<dyn ReadAt>),
}

impl DecodeUnit for DecodeGroup {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let context = self.context.clone();
        let mut bytes = bytes.into_iter();
        let mut names = self.files.iter();
        let base = match self.base {
            None => None,
            Some(BaseFile::Fetched) => bytes.next().map(|bytes| Arc::new(bytes) as Arc<dyn ReadAt>),
            Some(BaseFile::Searched(source)) => Some(source),
        };
        let base = base.and_then(|source| Some((source, names.next()?)));
        let mut lost = KeyRanges::default();
        if let Some(file) = self.lost.missing.iter().find(|file| !file.is_log) {
            context.lose(missing::error(file), 0..0, None)?;
            lost.add(changes::ALL);
        }
        let changes = read_logs(&context, bytes.zip(names).collect(), &self.lost)?;
        let base = match base {
            Some((source, name)) => open_base(&context, source, name, &mut lost)?,
            None => None,
        };
        let batch = Batch::new(&context, &self.partition)?;
        Ok(Box::new(Rows { context, base, changes, lost, rest: None, dropped: 0, batch, failed: false }))
    }
}

/// The key-value pairs of a base file and their schema.
struct Base {
    cells: CellReader,
    schema: Arc<Schema>,
    name: String,
    len: u64,
}

/// Opens a base file. If its trailer or index is lost, keys of unknown number may be lost.
fn open_base(
    context: &Context,
    source: Arc<dyn ReadAt>,
    name: &str,
    lost: &mut KeyRanges,
) -> Result<Option<Base>> {
    let len = source.len();
    let named = |e: Error| e.within(format!("base file {name}"));
    let open = || -> Result<Base> {
        let raw = Arc::new(coldframe_hfile::open(source, &context.options).map_err(named)?);
        // A file without its trailer or index still has its blocks, but may lack its schema.
        let schema = match raw.check() {
            Ok(()) => schema_of(context, &raw, None).map_err(named)?,
            Err(e) => {
                context.lose(named(e), 0..len, None)?;
                lost.add(changes::ALL);
                let json = raw.info().get(file_info::HUDI_SCHEMA);
                json.map_or(Ok(context.target.clone()), |j| context.schema(j)).map_err(named)?
            }
        };
        let cells = match &context.keys {
            Some(keys) => {
                let (cells, lie) = CellReader::near(raw, keys.clone()).map_err(named)?;
                if let Some(lie) = lie {
                    context.damage.notify(Notice::wrong_index(&named(lie)));
                }
                cells
            }
            None => CellReader::new(raw),
        };
        Ok(Base { cells, schema, name: name.to_owned(), len })
    };
    match open() {
        Ok(base) => Ok(Some(base)),
        Err(e) => {
            context.lose(e, 0..len, None)?;
            lost.add(changes::ALL);
            Ok(None)
        }
    }
}

/// The schema of an HFile's values. Before Hudi 0.11, only the header of a log's block has it. A file without records may
/// lack the schema.
fn schema_of(context: &Context, raw: &RawFile, block: Option<&Block>) -> Result<Arc<Schema>> {
    let of_block = || block.and_then(Block::schema).map(str::as_bytes);
    match raw.info().get(file_info::HUDI_SCHEMA).or_else(of_block) {
        Some(json) => context.schema(json),
        None if raw.trailer().entry_count == 0 => Ok(context.target.clone()),
        None => Err(Error::corrupt("expected an Avro `schema` in the file info, found none")),
    }
}

/// Reads the changes from a group's logs, given as bytes and names.
fn read_logs(context: &Context, files: Vec<(Bytes, &String)>, lost: &Lost) -> Result<Changes> {
    let mut logged: Vec<(usize, Block)> = Vec::new();
    for (i, (bytes, name)) in files.iter().enumerate() {
        let mut blocks = log::blocks(bytes, context.limits());
        // If a single commit wrote the log, the log's name has the instant of that commit.
        if let (None, Some(instant)) = (&context.visible.appended, slice::log_instant(name)) {
            blocks.iter_mut().for_each(|block| block.set_instant(instant));
        }
        logged.extend(blocks.into_iter().map(|block| (i, block)));
    }
    let blocks: Vec<&Block> = logged.iter().map(|(_, block)| block).collect();
    let (mut changes, mut is_told) = (Changes::default(), false);
    for place in merge::order(&blocks, &context.visible) {
        let Some((file, block)) = logged.get(place) else { continue };
        let Some((bytes, name)) = files.get(*file) else { continue };
        let result = apply_block(context, bytes, (block, name), &mut changes);
        if let Err(e) = result.map_err(|e| in_log(e, name)) {
            context.lose(e, block.bytes.clone(), None)?;
            changes.lose(changes::ALL);
            is_told = true;
        }
    }
    let missing: Vec<Named> = lost.missing.iter().filter(|file| file.is_log).cloned().collect();
    // A damaged block may be the one that a commit wrote.
    match missing::check_blocks(&blocks, &missing, &lost.logged) {
        Err(e) if !is_told => {
            context.lose(e, 0..0, None)?;
            changes.lose(changes::ALL);
        }
        _ => {}
    }
    Ok(changes)
}

fn in_log(e: Error, name: &str) -> Error {
    e.within("log block").within(format!("log file {name}"))
}

/// Applies one block of the log file `name`. If this fails, any key of the block may be lost.
fn apply_block(
    context: &Context,
    log: &Bytes,
    (block, name): (&Block, &str),
    changes: &mut Changes,
) -> Result<()> {
    let place = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(log.len());
    let content = log.slice(place(block.content.start)..place(block.content.end));
    let mut applied = BlockChanges { context, block, name, changes };
    match block.kind {
        BlockKind::Delete => {
            for key in log::deleted_keys(&content, block.content.start, context.limits())? {
                applied.apply(&key, None)?;
            }
            Ok(())
        }
        BlockKind::HFile => applied.of_hfile(content),
        BlockKind::Avro => applied.of_avro(&content),
        BlockKind::Corrupt => Err(Error::corrupt(block.reason.clone()).at(block.bytes.start)),
        BlockKind::Unknown => Err(Error::unsupported(block.reason.clone()).at(block.bytes.start)),
        BlockKind::Parquet | BlockKind::ChangeData => {
            Err(Error::unsupported(format!("{} blocks in the logs of a metadata table", block.kind.name())))
        }
        BlockKind::Command => Ok(()),
    }
}

/// The changes of one block, which are being applied.
struct BlockChanges<'a> {
    context: &'a Context,
    block: &'a Block,
    /// The name of the log file.
    name: &'a str,
    changes: &'a mut Changes,
}

impl BlockChanges<'_> {
    /// Applies a change. If a record cannot be merged, the state of its key is lost.
    fn apply(&mut self, key: &[u8], newer: Option<Record>) -> Result<()> {
        if !self.context.includes(key) {
            return Ok(());
        }
        if let Err(e) = self.changes.apply(key.to_vec(), newer, self.context.limits()) {
            self.lose(e, (key.to_vec(), Some(key.to_vec())))?;
        }
        Ok(())
    }

    fn lose(&mut self, e: Error, keys: KeyRange) -> Result<()> {
        self.context.lose(in_log(e, self.name), self.block.bytes.clone(), None)?;
        self.changes.lose(keys);
        Ok(())
    }

    fn of_hfile(&mut self, content: Bytes) -> Result<()> {
        let raw = coldframe_hfile::open(Arc::new(content), &self.context.options);
        // Offsets in an embedded HFile count from the start of the HFile.
        let raw = raw.map_err(|e| e.within(format!("HFile at byte {}", self.block.content.start)))?;
        let raw = Arc::new(raw);
        let schema = schema_of(self.context, &raw, Some(self.block))?;
        raw.check()?;
        let mut cells = CellReader::new(raw);
        loop {
            match cells.next() {
                Ok(Some(Cell { row: key, value, .. })) => {
                    let datum = Bytes::copy_from_slice(value);
                    self.apply(key, Some(Record { datum, schema: schema.clone() }))?;
                }
                Ok(None) => return Ok(()),
                Err(e) => {
                    self.lose(e, cells.rows_of_block())?;
                    cells.skip_block();
                }
            }
        }
    }

    fn of_avro(&mut self, content: &Bytes) -> Result<()> {
        let at = self.block.content.start;
        let json = self.block.schema().ok_or_else(|| Error::corrupt("expected a schema in the header"))?;
        let schema = self.context.schema(json.as_bytes())?;
        let mut news = Vec::new();
        for datum in log::avro_datums(content, at)? {
            let value = Datum::decode(&schema, datum, self.context.limits())?;
            let Some(Datum::String(key)) = value.field(&schema, schema.root(), KEY) else {
                return Err(Error::corrupt("expected a record with a text field `key`, found none").at(at));
            };
            let record = Record { datum: Bytes::copy_from_slice(datum), schema: schema.clone() };
            news.push(((*key).to_owned(), record));
        }
        for (key, record) in news {
            self.apply(key.as_bytes(), Some(record))?;
        }
        Ok(())
    }
}

/// The merged rows as batches.
struct Rows {
    context: Arc<Context>,
    base: Option<Base>,
    changes: Changes,
    /// Ranges of keys whose records in the base file were lost.
    lost: KeyRanges,
    /// Changes of keys that the base file does not have, sorted by key.
    rest: Option<std::vec::IntoIter<(Vec<u8>, Change)>>,
    /// The number of rows whose newest state was lost.
    dropped: u64,
    batch: Batch,
    failed: bool,
}

impl Rows {
    /// Adds the next row; `false` at the end.
    fn step(&mut self) -> Result<bool> {
        let Some(base) = &mut self.base else { return self.step_after_base() };
        match base.cells.next() {
            Ok(Some(Cell { row: key, value, .. })) => {
                if !self.context.includes(key) {
                    return Ok(true);
                }
                let result = match self.changes.take(key) {
                    None => self.batch.push(&self.context, key, value, &base.schema),
                    Some(Change::Deleted) => Ok(()),
                    Some(Change::Lost) => {
                        self.dropped += 1;
                        Ok(())
                    }
                    Some(Change::Record(newer)) => {
                        let datum = Bytes::copy_from_slice(value);
                        let older = Record { datum, schema: base.schema.clone() };
                        let merged = merge::apply(Some(older), Some(newer), self.context.limits());
                        merged.and_then(|merged| {
                            merged
                                .map_or(Ok(()), |r| self.batch.push(&self.context, key, &r.datum, &r.schema))
                        })
                    }
                };
                if let Err(e) = result {
                    let at = base.cells.block();
                    let e = e.within(format!("base file {}", base.name));
                    self.context.lose(e, at..base.len, Some(1))?;
                }
            }
            Ok(None) => self.base = None,
            Err(e) => {
                let e = e.within(format!("base file {}", base.name));
                let at = e.offset().unwrap_or(0);
                self.context.lose(e, at..base.len.max(at), None)?;
                self.lost.add(base.cells.rows_of_block());
                base.cells.skip_block();
            }
        }
        Ok(true)
    }

    /// Adds the next row after the base file: a key that occurs only in the logs.
    fn step_after_base(&mut self) -> Result<bool> {
        let rest =
            self.rest.get_or_insert_with(|| std::mem::take(&mut self.changes).into_sorted().into_iter());
        let Some((key, change)) = rest.next() else {
            self.report_dropped();
            return Ok(false);
        };
        let result = match change {
            Change::Deleted => Ok(()),
            Change::Lost => {
                self.dropped += 1;
                Ok(())
            }
            Change::Record(r) => match self.is_complete(&key, &r) {
                // The record in the base file, with which it would have to be merged, may be lost.
                Ok(false) => {
                    self.dropped += 1;
                    Ok(())
                }
                Ok(true) => self.batch.push(&self.context, &key, &r.datum, &r.schema),
                Err(e) => Err(e),
            },
        };
        if let Err(e) = result {
            self.context.lose(e.within("log files"), 0..0, Some(1))?;
        }
        Ok(true)
    }

    /// Whether a record of the logs can be returned although the base file's record of this key may be lost.
    fn is_complete(&self, key: &[u8], record: &Record) -> Result<bool> {
        Ok(!self.lost.contains(key) || merge::replaces(record, self.context.limits())?)
    }

    /// Records the rows that lost blocks may have changed. The blocks themselves are already recorded.
    fn report_dropped(&mut self) {
        if self.dropped > 0 {
            self.context.damage.push(Damage {
                bytes: 0..0,
                rows_lost: Some(std::mem::take(&mut self.dropped)),
                structure: "file group".to_owned(),
                reason: "a lost block may have held a newer state of these rows".to_owned(),
            });
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let most =
            usize::try_from(self.context.limits().batch_bytes()).unwrap_or(usize::MAX).min(BATCH_BYTES);
        while self.batch.rows() < self.context.batch_rows && self.batch.bytes < most {
            if !self.step()? {
                break;
            }
        }
        if self.batch.rows() == 0 { Ok(None) } else { self.batch.finish(&self.context.columns).map(Some) }
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.next_batch().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

/// Collects rows for a batch.
struct Batch {
    partition: Arc<str>,
    offsets: Vec<i32>,
    keys: Vec<u8>,
    /// The requested fields of the records; `None` if only keys are requested.
    records: Option<ColumnBuilder>,
    bytes: usize,
}

impl Batch {
    fn new(context: &Context, partition: &Arc<str>) -> Result<Self> {
        let fields: Vec<FieldRef> =
            context.columns.fields().iter().filter(|f| !is_own(f.name())).cloned().collect();
        let wanted = DataType::Struct(fields.into());
        let any = matches!(&wanted, DataType::Struct(fields) if !fields.is_empty());
        let records = any.then(|| ColumnBuilder::new(&context.target, &wanted)).transpose()?;
        Ok(Self { partition: partition.clone(), offsets: vec![0], keys: Vec::new(), records, bytes: 0 })
    }

    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Adds a row. If this fails, no row is added.
    fn push(&mut self, context: &Context, key: &[u8], datum: &[u8], schema: &Arc<Schema>) -> Result<()> {
        let named = |e: Error| e.within(format!("record \"{}\"", key.escape_ascii()));
        if simdutf8::basic::from_utf8(key).is_err() {
            return Err(named(Error::corrupt("expected a key in UTF-8, found other bytes")));
        }
        let end = i32::try_from(self.keys.len() + key.len())
            .map_err(|_| Error::corrupt("keys of one batch exceed 2 GiB"))?;
        if let Some(records) = &mut self.records {
            if Arc::ptr_eq(schema, &context.target) {
                records.push(schema, datum, context.limits()).map_err(named)?;
            } else {
                let record = Record { datum: Bytes::copy_from_slice(datum), schema: schema.clone() };
                let record = merge::resolve(&record, &context.target, context.limits()).map_err(named)?;
                records.push(&context.target, &record.datum, context.limits()).map_err(named)?;
            }
        }
        self.keys.extend_from_slice(key);
        self.offsets.push(end);
        self.bytes += key.len() + datum.len();
        Ok(())
    }

    fn finish(&mut self, columns: &SchemaRef) -> Result<RecordBatch> {
        let rows = self.rows();
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let keys = Buffer::from_vec(std::mem::take(&mut self.keys));
        let keys: ArrayRef = Arc::new(StringArray::try_new(offsets, keys, None).map_err(arrow_error)?);
        let records = self.records.as_mut().map(ColumnBuilder::finish).transpose()?;
        let records: Option<&StructArray> = records.as_ref().map(|r| r.as_struct());
        self.bytes = 0;
        let arrays = columns.fields().iter().map(|field| match field.name().as_str() {
            KEY => Ok(keys.clone()),
            PARTITION => Ok(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(
                self.partition.as_ref(),
                rows,
            ))) as ArrayRef),
            name => records
                .and_then(|r| r.column_by_name(name))
                .cloned()
                .ok_or_else(|| Error::schema(format!("the metadata has no column `{name}`"))),
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(columns.clone(), arrays, &options).map_err(arrow_error)
    }
}

/// Whether a column is one that coldframe adds, and not a field of the records.
pub(crate) fn is_own(name: &str) -> bool {
    name == KEY || name == PARTITION
}
