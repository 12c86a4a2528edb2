//! The logs of a file group: which blocks are valid, and their records as batches of the table's columns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Fields, SchemaRef};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use coldframe_core::{Error, ErrorContext, Limits, Result, arrow_error};
use coldframe_hfile::{CellReader, file_info};

use crate::avro::Schema;
use crate::avro::columns::ColumnBuilder;
use crate::data::conform::conform_batch;
use crate::data::deletes;
use crate::data::files::Named;
use crate::data::history::History;
use crate::data::keys::Keys;
use crate::data::merged::{Cells, LogRecord, Merged, OLDER};
use crate::data::missing;
use crate::data::order::{Delete, Order, orders};
use crate::data::parquet_file::ParquetFile;
use crate::data::rules::Rules;
use crate::log::{self, Block, BlockKind};
use crate::merge;

/// A column that marks a row as deleted.
pub(crate) const IS_DELETED: &str = "_hoodie_is_deleted";
/// A column with the operation of a row, as Flink writes it.
pub(crate) const OPERATION: &str = "_hoodie_operation";
/// Maximum rows of a batch that a block of Parquet is decoded to.
const BLOCK_ROWS: usize = 65536;

/// What is needed to read logs.
#[derive(Debug)]
pub(crate) struct LogContext {
    /// The columns of the batches.
    pub schema: SchemaRef,
    /// How records are merged.
    pub rules: Rules,
    /// Where their keys are.
    pub keys: Keys,
    /// The columns' names in older files.
    pub history: Arc<History>,
    /// The defaults of columns, unless they are null.
    pub defaults: Arc<HashMap<String, ArrayRef>>,
    /// How HFiles are read, and the limits.
    pub options: coldframe_hfile::Options,
    /// Parsed schemas.
    schemas: Mutex<HashMap<String, Arc<Schema>>>,
}

/// The content of a block that counts.
enum Content {
    Records { batch: RecordBatch, present: Option<Vec<bool>> },
    Deletes(Vec<Delete>),
}

impl LogContext {
    /// A context without schemas.
    pub(crate) fn new(
        (schema, keys): (SchemaRef, Keys),
        rules: Rules,
        history: Arc<History>,
        defaults: Arc<HashMap<String, ArrayRef>>,
        options: coldframe_hfile::Options,
    ) -> Self {
        Self { schema, rules, keys, history, defaults, options, schemas: Mutex::default() }
    }

    fn limits(&self) -> &Limits {
        &self.options.limits
    }

    fn avro_schema(&self, json: &str) -> Result<Arc<Schema>> {
        let known = self.schemas.lock().unwrap_or_else(PoisonError::into_inner).get(json).cloned();
        if let Some(schema) = known {
            return Ok(schema);
        }
        let schema = Arc::new(Schema::parse(json.as_bytes(), self.limits())?);
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        schemas.insert(json.to_owned(), schema.clone());
        Ok(schema)
    }

    /// The merged records of all logs, by key. `files`: bytes and paths, in the order of their writes; `counts`:
    /// whether the blocks of an instant count.
    pub(crate) fn merged(
        &self,
        files: &[(Bytes, String)],
        (missing, logged): (&[Named], &[Named]),
        counts: &dyn Fn(&str) -> bool,
    ) -> Result<Merged> {
        let mut blocks: Vec<(usize, Block)> = Vec::new();
        for (file, (bytes, _)) in files.iter().enumerate() {
            blocks.extend(log::blocks(bytes, self.limits()).into_iter().map(|block| (file, block)));
        }
        let all: Vec<&Block> = blocks.iter().map(|(_, block)| block).collect();
        missing::check_blocks(&all, missing, logged)?;
        let mut contents = Vec::new();
        for place in order(&all, counts) {
            let Some((bytes, path, block)) = blocks
                .get(place)
                .and_then(|(file, block)| files.get(*file).map(|(bytes, path)| (bytes, path, block)))
            else {
                continue;
            };
            let content = self.content(bytes, block);
            let content = content.map_err(|e| e.within(format!("log block at byte {}", block.bytes.start)));
            contents.extend(content.map_err(|e| e.in_file(path.clone()))?);
        }
        self.merge(contents)
    }

    fn content(&self, log: &Bytes, block: &Block) -> Result<Option<Content>> {
        let place = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(log.len());
        let content = log.slice(place(block.content.start)..place(block.content.end));
        let at = block.content.start;
        let batch = match block.kind {
            BlockKind::Delete => {
                return Ok(Some(Content::Deletes(deletes::deletes(&content, at, self.limits())?)));
            }
            BlockKind::Avro => {
                let schema = self.avro_schema(required_schema(block)?)?;
                let datums = log::avro_datums(&content, at)?;
                self.of_datums(&schema, datums.into_iter())?
            }
            BlockKind::HFile => self.of_hfile(content, block)?,
            BlockKind::Parquet => self.of_parquet(content)?,
            BlockKind::Unknown => return Err(Error::unsupported(block.reason.clone()).at(block.bytes.start)),
            BlockKind::Command | BlockKind::Corrupt | BlockKind::ChangeData => return Ok(None),
        };
        let instant = block.instant().unwrap_or_default();
        let name_in = |name: &str| self.history.name_in(name, instant);
        let present = block.is_partial().then(|| {
            let fields = self.schema.fields().iter();
            let has = |name: &str| name_in(name).is_some_and(|own| batch.column_by_name(&own).is_some());
            fields.map(|f| has(f.name())).collect()
        });
        let batch = conform_batch(&batch, &self.schema, &name_in)?;
        Ok(Some(Content::Records { batch, present }))
    }

    /// Records of Avro, with those columns that are needed.
    fn of_datums<'a>(&self, schema: &Schema, datums: impl Iterator<Item = &'a [u8]>) -> Result<RecordBatch> {
        let DataType::Struct(fields) = schema.arrow(self.limits())? else {
            return Err(Error::corrupt("expected a record as the schema of a log block"));
        };
        let kept: Fields =
            fields.iter().filter(|f| self.history.may_be(f.name(), &self.schema)).cloned().collect();
        let mut column = ColumnBuilder::new(schema, &DataType::Struct(kept))?;
        for (row, datum) in datums.enumerate() {
            column.push(schema, datum, self.limits()).within(|| format!("record {row}"))?;
        }
        let array = column.finish()?;
        let own: &StructArray = array.as_struct();
        Ok(RecordBatch::from(own.clone()))
    }

    fn of_hfile(&self, content: Bytes, block: &Block) -> Result<RecordBatch> {
        let raw = Arc::new(coldframe_hfile::open(Arc::new(content), &self.options)?);
        let schema = match raw.info().get(file_info::HUDI_SCHEMA) {
            Some(json) => self.avro_schema(&String::from_utf8_lossy(json))?,
            None => self.avro_schema(required_schema(block)?)?,
        };
        let values = hfile_values(raw)?;
        self.of_datums(&schema, values.iter().map(Vec::as_slice))
    }

    fn of_parquet(&self, content: Bytes) -> Result<RecordBatch> {
        let file = ParquetFile::open(Arc::new(content), self.limits())?;
        let kept = file.schema().fields().iter().filter(|f| self.history.may_be(f.name(), &self.schema));
        let kept: Vec<String> = kept.map(|f| f.name().clone()).collect();
        let mut batches = Vec::new();
        for unit in file.units(&kept, &(0..u64::MAX), BLOCK_ROWS)? {
            let mut bytes = Vec::new();
            for fetch in &unit.fetch {
                bytes.push(fetch.source.read(fetch.range.clone())?);
            }
            for batch in unit.decode.decode(bytes)? {
                batches.push(batch?);
            }
        }
        match batches.first() {
            Some(first) => concat_batches(&first.schema(), &batches).map_err(arrow_error),
            None => {
                let fields = file.schema().fields().iter().filter(|f| kept.contains(f.name())).cloned();
                let schema = arrow_schema::Schema::new(fields.collect::<Fields>());
                Ok(RecordBatch::new_empty(Arc::new(schema)))
            }
        }
    }

    /// Merges the contents of all blocks, in their order.
    fn merge(&self, contents: Vec<Content>) -> Result<Merged> {
        let batches = contents.iter().filter_map(|content| match content {
            Content::Records { batch, .. } => Some(batch),
            Content::Deletes(_) => None,
        });
        let all = concat_batches(&self.schema, batches).map_err(arrow_error)?;
        let orders = self.orders(&all)?;
        let flags = self.flags(&all)?;
        let keys = self.keys.of(&all)?;
        let mut merged = Merged::new(self.rules.clone(), all, &self.defaults);
        let mut next = 0_usize;
        let (mut orders, mut flags) = (orders.into_iter(), flags.into_iter());
        for content in contents {
            match content {
                Content::Deletes(all) => all.into_iter().try_for_each(|delete| merged.delete(delete))?,
                Content::Records { batch, present } => {
                    for row in next..next + batch.num_rows() {
                        let order = orders.next().unwrap_or(Order::Natural);
                        let is_flagged = flags.next().unwrap_or(false);
                        if keys.is_null(row) {
                            return Err(Error::corrupt("expected a key in each record of a log, found null"));
                        }
                        let at = u32::try_from(row).ok().filter(|at| *at < OLDER);
                        let at = at.ok_or_else(|| Error::unsupported("logs of more than 2^32 records"))?;
                        let cells = match &present {
                            None => Cells::Row(at),
                            Some(present) => {
                                Cells::Each(present.iter().map(|has| if *has { at } else { OLDER }).collect())
                            }
                        };
                        merged.add(LogRecord {
                            key: keys.value(row).as_bytes(),
                            cells,
                            order,
                            is_flagged,
                        })?;
                    }
                    next += batch.num_rows();
                }
            }
        }
        Ok(merged)
    }

    /// The ordering values of a batch.
    pub(crate) fn orders(&self, batch: &RecordBatch) -> Result<Vec<Order>> {
        if !self.rules.needs_order() {
            return Ok(vec![Order::Natural; batch.num_rows()]);
        }
        let columns = self.rules.ordering.iter().filter_map(|name| batch.column_by_name(name));
        orders(&columns.collect::<Vec<_>>(), batch.num_rows())
    }

    /// Which rows are marked as deleted.
    fn flags(&self, batch: &RecordBatch) -> Result<Vec<bool>> {
        let mut flags = vec![false; batch.num_rows()];
        let mut mark = |column: Option<&ArrayRef>, is: &dyn Fn(&ArrayRef, usize) -> bool| {
            if let Some(column) = column {
                for (row, flag) in flags.iter_mut().enumerate() {
                    *flag |= !column.is_null(row) && is(column, row);
                }
            }
        };
        let deleted = batch.column_by_name(IS_DELETED).filter(|c| *c.data_type() == DataType::Boolean);
        mark(deleted, &|column, row| column.as_boolean().value(row));
        let operation = batch.column_by_name(OPERATION).filter(|c| *c.data_type() == DataType::Utf8);
        mark(operation, &|column, row| matches!(column.as_string::<i32>().value(row), "D" | "-U"));
        if let Some((name, marker)) = &self.rules.marker
            && let Some(column) = batch.column_by_name(name)
        {
            let text = arrow_cast::cast(column, &DataType::Utf8).map_err(arrow_error)?;
            mark(Some(&text), &|column, row| column.as_string::<i32>().value(row) == marker);
        }
        Ok(flags)
    }
}

/// The values of an HFile, in the order of their keys.
pub(crate) fn hfile_values(raw: Arc<coldframe_hfile::RawFile>) -> Result<Vec<Vec<u8>>> {
    raw.check()?;
    let mut cells = CellReader::new(raw);
    let mut values = Vec::new();
    while let Some(cell) = cells.next()? {
        values.push(cell.value.to_vec());
    }
    Ok(values)
}

fn required_schema(block: &Block) -> Result<&str> {
    block.schema().ok_or_else(|| Error::corrupt("expected a schema in the header of a log block"))
}

/// The blocks that count, in the order in which they are merged, as indexes into `blocks`. A rollback drops the blocks of
/// its target that were read before it, whatever its own instant is. A block that a writer left incomplete, when it died
/// or was killed, never counts: its task or a later one wrote it again, or its instant was rolled back.
fn order(blocks: &[&Block], counts: &dyn Fn(&str) -> bool) -> Vec<usize> {
    let mut queue: Vec<usize> = Vec::new();
    for (place, block) in blocks.iter().enumerate() {
        match block.kind {
            BlockKind::Command => {
                let target = block.target();
                queue.retain(|q| blocks.get(*q).is_some_and(|b| b.instant() != target));
            }
            BlockKind::Corrupt | BlockKind::ChangeData => {}
            BlockKind::Unknown => queue.push(place),
            _ if block.instant().is_some_and(counts) => queue.push(place),
            _ => {}
        }
    }
    match queue.iter().any(|q| blocks.get(*q).is_some_and(|b| b.compacted().is_some())) {
        true => merge::log_compacted(blocks, &queue),
        false => queue,
    }
}
