//! One file group: its logs merged, then over its base file, into batches.
//!
//! The changes that the logs hold are in memory while the base file passes by, one block at a time; what they hold
//! beyond the base file's keys comes last.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, StructArray, cast::AsArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef, SchemaRef};
use bytes::Bytes;
use coldframe_core::{
    BatchIter, Damage, DamageLog, DecodeUnit, Error, Limits, OnError, ReadAt, Result, arrow_error,
};

use crate::avro::Schema;
use crate::avro::columns::Column;
use crate::avro::datum::Datum;
use crate::log::{self, Block, Kind};
use crate::merge::{self, Record, Visible};
use coldframe_hfile::Options;
use coldframe_hfile::file_info;
use coldframe_hfile::{Cell, CellReader, RawFile};

/// The column of keys.
pub(crate) const KEY: &str = "key";
/// The column that names the partition, where all of them are one table.
pub(crate) const PARTITION: &str = "partition";
/// Bytes of values after which a batch is handed out, whatever its rows.
const BATCH_BYTES: usize = 32 << 20;

/// What all groups of a scan share.
#[derive(Debug)]
pub(crate) struct Context {
    /// The schema that records are handed out by.
    pub target: Arc<Schema>,
    /// The columns to decode.
    pub columns: SchemaRef,
    /// Rows of a batch.
    pub batch_rows: usize,
    /// What to do about damage.
    pub on_error: OnError,
    /// Where it is recorded.
    pub damage: DamageLog,
    /// The only keys that are wanted, if the filter says so.
    pub keys: Option<Arc<BTreeSet<Vec<u8>>>>,
    /// Which instants count.
    pub visible: Arc<Visible>,
    /// How HFiles are read.
    pub options: Options,
    /// Schemas by their JSON: the files of a table mostly have one.
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

    fn wants(&self, key: &[u8]) -> bool {
        self.keys.as_ref().is_none_or(|keys| keys.contains(key))
    }

    /// Records damage, or returns it where it is to be raised.
    fn lose(&self, e: Error, bytes: std::ops::Range<u64>, rows: Option<u64>) -> Result<()> {
        if self.on_error == OnError::Raise || !e.is_damage() {
            return Err(e);
        }
        self.damage.push(Damage::from_error(&e, bytes, rows));
        Ok(())
    }
}

/// A group to decode: the bytes are those of the base file, if there is one that is read as a whole, and of the logs.
pub(crate) struct DecodeGroup {
    /// What it shares with others.
    pub context: Arc<Context>,
    /// The partition.
    pub partition: Arc<str>,
    /// Names of the files, the base file first.
    pub files: Vec<String>,
    /// The base file, which is the first one, if there is one.
    pub base: Option<BaseFile>,
}

/// How a base file comes.
pub(crate) enum BaseFile {
    /// As the first of the bytes.
    Fetched,
    /// By itself: what is read of it is decided by its index.
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
        let changes = read_logs(&context, bytes.zip(names).collect())?;
        let base = match base {
            Some((source, name)) => open_base(&context, source, name)?,
            None => None,
        };
        let batch = Batch::new(&context, &self.partition)?;
        Ok(Box::new(Rows { context, base, changes, rest: None, batch, failed: false }))
    }
}

/// The pairs of a base file and their schema.
struct Base {
    cells: CellReader,
    schema: Arc<Schema>,
    name: String,
    len: u64,
}

fn open_base(context: &Context, source: Arc<dyn ReadAt>, name: &str) -> Result<Option<Base>> {
    let len = source.len();
    let open = || -> Result<Base> {
        let raw = Arc::new(coldframe_hfile::open(source, &context.options)?);
        // A file without its trailer or index still has its blocks, though perhaps not its schema.
        let schema = match raw.check() {
            Ok(()) => schema_of(context, &raw)?,
            Err(e) => {
                context.lose(e, 0..len, None)?;
                raw.info()
                    .get(file_info::HUDI_SCHEMA)
                    .map_or(Ok(context.target.clone()), |j| context.schema(j))?
            }
        };
        let cells = match &context.keys {
            Some(keys) => CellReader::near(raw, keys.clone()),
            None => CellReader::new(raw),
        };
        Ok(Base { cells, schema, name: name.to_owned(), len })
    };
    match open().map_err(|e| e.within(format!("base file {name}"))) {
        Ok(base) => Ok(Some(base)),
        Err(e) => context.lose(e, 0..len, None).map(|()| None),
    }
}

/// The schema of an HFile's values. One without records may lack it.
fn schema_of(context: &Context, raw: &RawFile) -> Result<Arc<Schema>> {
    match raw.info().get(file_info::HUDI_SCHEMA) {
        Some(json) => context.schema(json),
        None if raw.trailer().entry_count == 0 => Ok(context.target.clone()),
        None => Err(Error::corrupt("expected an Avro `schema` in the file info, found none")),
    }
}

/// What the logs say of each key: its record, or that it went.
type Changes = HashMap<Vec<u8>, Option<Record>>;

fn read_logs(context: &Context, files: Vec<(Bytes, &String)>) -> Result<Changes> {
    let mut found: Vec<(usize, Block)> = Vec::new();
    for (i, (bytes, name)) in files.iter().enumerate() {
        let blocks =
            log::blocks(bytes, context.limits()).map_err(|e| e.within(format!("log file {name}")))?;
        found.extend(blocks.into_iter().map(|block| (i, block)));
    }
    let blocks: Vec<&Block> = found.iter().map(|(_, block)| block).collect();
    let mut changes = Changes::new();
    for place in merge::order(&blocks, &context.visible) {
        let Some((file, block)) = found.get(place) else { continue };
        let Some((bytes, name)) = files.get(*file) else { continue };
        let result = apply_block(context, bytes, block, &mut changes);
        let named = |e: Error| e.within("log block").within(format!("log file {name}"));
        if let Err(e) = result.map_err(named) {
            context.lose(e, block.bytes.clone(), None)?;
        }
    }
    Ok(changes)
}

/// Applies one block. On an error, nothing of it has been applied.
fn apply_block(context: &Context, log: &Bytes, block: &Block, changes: &mut Changes) -> Result<()> {
    let at = block.content.start;
    let place = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(log.len());
    let content = log.slice(place(at)..place(block.content.end));
    let mut news: Vec<(Vec<u8>, Option<Record>)> = Vec::new();
    match block.kind {
        Kind::Delete => {
            let keys = log::deleted_keys(&content, at, context.limits())?;
            news.extend(keys.into_iter().map(|key| (key, None)));
        }
        Kind::HFile => {
            let raw = coldframe_hfile::open(Arc::new(content), &context.options);
            // Places in an HFile count from its own front.
            let raw = Arc::new(raw.map_err(|e| e.within(format!("HFile at byte {at}")))?);
            let schema = schema_of(context, &raw)?;
            raw.check()?;
            let mut cells = CellReader::new(raw);
            while let Some(Cell { row: key, value, .. }) = cells.next()? {
                if context.wants(key) {
                    let datum = Bytes::copy_from_slice(value);
                    news.push((key.to_vec(), Some(Record { datum, schema: schema.clone() })));
                }
            }
        }
        Kind::Avro => {
            let json = block.schema().ok_or_else(|| Error::corrupt("expected a schema in the header"))?;
            let schema = context.schema(json.as_bytes())?;
            for datum in log::avro_datums(&content, at)? {
                let value = Datum::decode(&schema, datum, context.limits())?;
                let Some(Datum::String(key)) = value.field(&schema, schema.root(), KEY) else {
                    return Err(Error::corrupt("expected a record with a `key`, found another one").at(at));
                };
                let record = Record { datum: Bytes::copy_from_slice(datum), schema: schema.clone() };
                news.push((key.as_bytes().to_vec(), Some(record)));
            }
        }
        Kind::Corrupt => return Err(Error::corrupt(block.reason.clone()).at(block.bytes.start)),
        Kind::Parquet | Kind::ChangeData => {
            return Err(Error::unsupported(format!("{} blocks in the logs of metadata", block.kind.name())));
        }
        Kind::Command => {}
    }
    for (key, newer) in news {
        if context.wants(&key) {
            let older = changes.remove(&key).flatten();
            let merged = merge::apply(older, newer, context.limits())?;
            changes.insert(key, merged);
        }
    }
    Ok(())
}

/// The merged rows as batches.
struct Rows {
    context: Arc<Context>,
    base: Option<Base>,
    changes: Changes,
    /// What the base file does not have, by key.
    rest: Option<std::collections::btree_map::IntoIter<Vec<u8>, Option<Record>>>,
    batch: Batch,
    failed: bool,
}

impl Rows {
    /// Adds the next row; `false` at the end.
    fn step(&mut self) -> Result<bool> {
        if let Some(base) = &mut self.base {
            let named = |e: Error, name: &str| e.within(format!("base file {name}"));
            match base.cells.next() {
                Ok(Some(Cell { row: key, value, .. })) => {
                    if !self.context.wants(key) {
                        return Ok(true);
                    }
                    let result = match self.changes.remove(key) {
                        None => self.batch.push(&self.context, key, value, &base.schema),
                        Some(change) => {
                            let datum = Bytes::copy_from_slice(value);
                            let older = Record { datum, schema: base.schema.clone() };
                            merge::apply(Some(older), change, self.context.limits()).and_then(|merged| {
                                merged.map_or(Ok(()), |r| {
                                    self.batch.push(&self.context, key, &r.datum, &r.schema)
                                })
                            })
                        }
                    };
                    if let Err(e) = result {
                        let at = base.cells.block();
                        self.context.lose(named(e, &base.name), at..base.len, Some(1))?;
                    }
                    return Ok(true);
                }
                Ok(None) => self.base = None,
                Err(e) => {
                    base.cells.skip_block();
                    let at = e.offset().unwrap_or(0);
                    self.context.lose(named(e, &base.name), at..base.len.max(at), None)?;
                    return Ok(true);
                }
            }
        }
        let rest = self.rest.get_or_insert_with(|| {
            let sorted: BTreeMap<_, _> = std::mem::take(&mut self.changes).into_iter().collect();
            sorted.into_iter()
        });
        let Some((key, record)) = rest.next() else { return Ok(false) };
        if let Some(record) = record
            && let Err(e) = self.batch.push(&self.context, &key, &record.datum, &record.schema)
        {
            self.context.lose(e.within("log files"), 0..0, Some(1))?;
        }
        Ok(true)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.batch.rows() < self.context.batch_rows && self.batch.bytes < BATCH_BYTES {
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

/// Rows while they are collected.
struct Batch {
    partition: Arc<str>,
    offsets: Vec<i32>,
    keys: Vec<u8>,
    /// The wanted fields of the records; none if only keys are wanted.
    records: Option<Column>,
    bytes: usize,
}

impl Batch {
    fn new(context: &Context, partition: &Arc<str>) -> Result<Self> {
        let fields: Vec<FieldRef> =
            context.columns.fields().iter().filter(|f| !is_own(f.name())).cloned().collect();
        let wanted = DataType::Struct(fields.into());
        let any = matches!(&wanted, DataType::Struct(fields) if !fields.is_empty());
        let records = any.then(|| Column::new(&context.target, &wanted)).transpose()?;
        Ok(Self { partition: partition.clone(), offsets: vec![0], keys: Vec::new(), records, bytes: 0 })
    }

    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Adds a row; on an error none is added.
    fn push(&mut self, context: &Context, key: &[u8], datum: &[u8], schema: &Arc<Schema>) -> Result<()> {
        let named = |e: Error| e.within(format!("record \"{}\"", key.escape_ascii()));
        if simdutf8::basic::from_utf8(key).is_err() {
            return Err(named(Error::corrupt("expected a key of UTF-8, found other bytes")));
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
        let records = self.records.as_mut().map(Column::finish).transpose()?;
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

/// Whether a column is no field of the records' schema as it is written.
pub(crate) fn is_own(name: &str) -> bool {
    name == KEY || name == PARTITION
}
