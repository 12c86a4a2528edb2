//! An open CFile as a table: a column of values, the entries of a delta file, the keys of an index, or a bloom filter.

use std::any::Any;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use coldframe_core::salvage::Loss;
use coldframe_core::{
    Checksums, Damage, Error, Node, OnError, Op, Plan, PlanRequest, Predicate, Proof, ReadAt, Result, Split,
    StoredDictionary, TableFile, Value, arrow_error,
};

use crate::layout::types::Physical;
use crate::open::{CFile, ORDINAL, Purpose, VALUE};
use crate::options::Options;
use crate::prune::bloom;
use crate::prune::key::{self, KeyBounds, KeyColumn};
use crate::scan::decode::ScanContext;
use crate::scan::delta;
use crate::scan::plan::{BlockPlan, ColumnPlan};

/// An open CFile.
#[derive(Debug)]
pub struct CFileTable {
    file: Arc<CFile>,
    kind: Purpose,
    schema: SchemaRef,
}

impl CFileTable {
    /// Opens a file: reads its metadata.
    pub fn open(source: Arc<dyn ReadAt>, options: Options) -> Result<Self> {
        let file = CFile::open(source, options.verify, options.limits)?;
        let footer = file.footer();
        let kind = Purpose::of(footer)?;
        let own = footer.data_type.arrow();
        let mut to = options.value_type.unwrap_or(own);
        if options.dictionary && footer.data_type.physical() == Physical::Binary && kind == Purpose::Column {
            to = DataType::Dictionary(Box::new(DataType::Int32), Box::new(to));
        }
        footer.data_type.check_arrow(&to)?;
        let schema = if kind == Purpose::Delta {
            delta::schema()
        } else {
            let ordinal = options.ordinal.then(|| Field::new(ORDINAL, DataType::Int64, false));
            let value = Field::new(VALUE, to, footer.nullable);
            Arc::new(Schema::new(ordinal.into_iter().chain([value]).collect::<Vec<_>>()))
        };
        Ok(Self { file: Arc::new(file), kind, schema })
    }

    /// The open file.
    pub fn file(&self) -> &Arc<CFile> {
        &self.file
    }

    /// The file's purpose.
    pub fn kind(&self) -> Purpose {
        self.kind
    }

    /// The split that starts at `ordinal`.
    pub fn seek(&self, ordinal: u64) -> Result<Split> {
        self.check_kind(Purpose::Column, "a seek by ordinal")?;
        let end = self.file.footer().num_values;
        if ordinal > end {
            return Err(Error::invalid(format!("expected an ordinal of at most {end}, found {ordinal}")));
        }
        Ok(Split { part: 0, range: ordinal..end, rows: Some(end - ordinal) })
    }

    fn check_kind(&self, kind: Purpose, what: &str) -> Result<()> {
        if self.kind == kind {
            return Ok(());
        }
        Err(Error::unsupported(format!("{what} in a CFile that is a {} file", self.kind.name())))
    }

    /// The rows whose value equals the value in `value`, with their ordinals. The value index locates their block; a file
    /// without a value index is read completely.
    pub fn lookup(&self, value: &ArrayRef) -> Result<RecordBatch> {
        self.check_kind(Purpose::Column, "a look-up by value")?;
        let footer = self.file.footer();
        let to = self.schema.field_with_name(VALUE).map_err(arrow_error)?.data_type();
        let to = match to {
            DataType::Dictionary(_, value) => value,
            other => other,
        };
        if value.len() != 1 {
            return Err(Error::invalid(format!("expected one value, found {}", value.len())));
        }
        let wanted = key::literal(value, to)?;
        let fields =
            vec![Field::new(ORDINAL, DataType::Int64, false), Field::new(VALUE, to.clone(), footer.nullable)];
        let schema = Arc::new(Schema::new(fields));
        let rows = match key::encode(footer.data_type, &wanted, 0) {
            Some(key) => self.file.rows_between(Some(&key), Some(&[&key[..], &[0]].concat()))?,
            None => 0..footer.num_values,
        };
        let passes = equal_to(wanted);
        let request = PlanRequest {
            scan: coldframe_core::Scan::default(),
            decode: schema.clone(),
            damage: coldframe_core::DamageLog::default(),
        };
        let split = Split { part: 0, range: rows, rows: None };
        let mut plan = self.plan(&request, &split)?;
        let mut batches = Vec::new();
        while let Some(unit) = plan.next_unit()? {
            let ranges: Vec<_> = unit.fetch.iter().map(|f| f.range.clone()).collect();
            let bytes = coldframe_core::io::read_coalesced(self.file.source().as_ref(), &ranges)?;
            for batch in unit.decode.decode(bytes)? {
                let batch = batch?;
                batches.push(filter_record_batch(&batch, &passes.evaluate(&batch)?).map_err(arrow_error)?);
            }
        }
        concat_batches(&schema, &batches).map_err(arrow_error)
    }

    /// Whether the bloom filter may have `key`, which is in encoded form: `false` only if it was not added.
    pub fn might_contain(&self, key: &[u8]) -> Result<bool> {
        bloom::might_contain(&self.file, key)
    }

    /// Blocks in the order of the value index, for files without a positional index.
    fn block_plan(&self, scan: ScanContext, range: Range<u64>) -> Result<BlockPlan> {
        let mut lost = Vec::new();
        let blocks = match (self.kind, scan.on_error) {
            (Purpose::Bloom, _) => Vec::new(),
            (_, OnError::Raise) => self.file.blocks_by_value()?,
            _ => self.file.blocks_by_value_lossy(&mut lost)?,
        };
        for Loss { bytes, structure, reason, .. } in lost {
            // If an index block is lost, it is unknown which data blocks and rows it listed.
            scan.damage.push(Damage { bytes, rows_lost: None, structure, reason });
        }
        let wanted = |(i, _): &(usize, _)| range.contains(&(*i as u64));
        let blocks: VecDeque<_> = blocks.into_iter().enumerate().filter(wanted).collect();
        Ok(BlockPlan::new(Arc::new(scan), self.file.clone(), self.kind, blocks))
    }
}

/// The filter for rows with the requested value: `value = wanted`, or `value is null`. With the filter, a
/// look-up treats signed zeros and NaN like a scan with a filter.
fn equal_to(wanted: ArrayRef) -> Predicate {
    let column = VALUE.to_owned();
    if wanted.is_null(0) {
        return Predicate::Null { column, negated: false };
    }
    Predicate::Compare { column, op: Op::Eq, value: wanted, negated: false }
}

impl TableFile for CFileTable {
    fn format(&self) -> &'static str {
        "cfile"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn decodes_views(&self) -> bool {
        self.kind == Purpose::Column
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.file.footer().num_values)
    }

    fn metadata(&self) -> Result<Value> {
        Ok(crate::metadata::metadata(&self.file, self.kind))
    }

    /// For a column, splits are ranges of ordinals; for other files, they are ranges of positions in the
    /// value index.
    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let footer = self.file.footer();
        if self.kind != Purpose::Column || footer.positional.is_none() {
            let blocks = if self.kind == Purpose::Bloom { 0 } else { u64::MAX };
            return Ok(vec![Split { part: 0, range: 0..blocks, rows: Some(footer.num_values) }]);
        }
        let all = footer.num_values;
        let len = self.file.source().len();
        if len <= target || all == 0 {
            return Ok(vec![Split { part: 0, range: 0..all, rows: Some(all) }]);
        }
        let mut lost = Vec::new();
        let (mut splits, mut start, mut bytes) = (Vec::new(), 0, 0u64);
        for block in self.file.blocks_lossy(0..all, &mut lost)? {
            let size = u64::from(block.pointer.size);
            if bytes > 0 && bytes.saturating_add(size) > target && block.rows.start > start {
                splits.push(Split {
                    part: 0,
                    range: start..block.rows.start,
                    rows: Some(block.rows.start - start),
                });
                (start, bytes) = (block.rows.start, 0);
            }
            bytes = bytes.saturating_add(size);
        }
        splits.push(Split { part: 0, range: start..all, rows: Some(all - start) });
        Ok(splits)
    }

    fn byte_split(&self, bytes: Range<u64>) -> Result<Split> {
        let range = self.first_at(bytes.start)?..self.first_at(bytes.end)?;
        Ok(Split { part: 0, range, rows: None })
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        let scan = ScanContext::new(request);
        if self.kind != Purpose::Column {
            return Ok(Box::new(self.block_plan(scan, split.range.clone())?));
        }
        let footer = self.file.footer();
        let mut rows = split.range.start..split.range.end.min(footer.num_values);
        if rows.start >= rows.end {
            rows = 0..0;
        }
        let mut lost = Vec::new();
        let blocks = if rows.is_empty() {
            Vec::new()
        } else if request.scan.on_error == OnError::Raise {
            rows = self.narrow(request, rows)?;
            self.file.blocks(rows.clone())?
        } else {
            self.file.blocks_lossy(rows.clone(), &mut lost)?
        };
        Ok(Box::new(ColumnPlan::new(scan, &self.file, blocks, rows, lost, request)?))
    }

    fn statistics(&self) -> Result<Value> {
        Ok(crate::metadata::statistics(&self.file))
    }

    fn dictionaries(&self, column: &str, with: &mut dyn FnMut(StoredDictionary) -> Result<()>) -> Result<()> {
        if column != VALUE {
            return Err(Error::schema(format!(
                "no column `{column}` with a dictionary; a CFile has only the column `{VALUE}`"
            )));
        }
        let (Some(dictionary), Some(place)) = (self.file.dictionary()?, self.file.footer().dictionary) else {
            return Ok(());
        };
        let values = dictionary.values().clone();
        with(StoredDictionary { part: "file".to_owned(), bytes: place.range(), values })
    }

    fn inspect(&self) -> Result<Node> {
        crate::inspect::tree(&self.file, self.kind)
    }

    fn proof(&self) -> Proof {
        let format = self.file.format();
        let stored = if format.checksums { Checksums::All } else { Checksums::None };
        let besides = &["both indexes", "bloom filters", "that no bytes are left over"];
        Proof { checksums: stored.if_compared(format.verify), besides }
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        crate::verify::contradictions(&self.file, self.kind)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl CFileTable {
    /// The ordinal (or the position in the value index) of the first block at or after `offset`. Ordinals for
    /// which the index lists no block belong to the block before them, so that each ordinal is in one byte
    /// range.
    fn first_at(&self, offset: u64) -> Result<u64> {
        let all = self.all_ordinals();
        if offset == 0 {
            return Ok(0);
        }
        if offset >= self.file.source().len() || self.kind == Purpose::Bloom {
            return Ok(all);
        }
        let mut lost = Vec::new();
        if self.kind == Purpose::Column {
            let blocks = self.file.blocks_lossy(0..all, &mut lost)?;
            let first = blocks.iter().find(|b| b.pointer.offset >= offset);
            return Ok(first.map_or(all, |b| b.rows.start));
        }
        let blocks = self.file.blocks_by_value_lossy(&mut lost)?;
        Ok(blocks.iter().position(|b| b.offset >= offset).map_or(all, |at| at as u64))
    }

    /// The end of the ordinals, or of the positions in the value index.
    fn all_ordinals(&self) -> u64 {
        if self.kind == Purpose::Column { self.file.footer().num_values } else { u64::MAX }
    }

    /// Narrows `rows` to the rows whose keys can pass the filter.
    fn narrow(&self, request: &PlanRequest, rows: Range<u64>) -> Result<Range<u64>> {
        let footer = self.file.footer();
        let own =
            self.schema.field_with_name(VALUE).is_ok_and(|f| *f.data_type() == footer.data_type.arrow());
        let Some(predicate) = request.scan.predicate.as_ref().filter(|_| own && footer.value.is_some())
        else {
            return Ok(rows);
        };
        let arrow = footer.data_type.arrow();
        let column = KeyColumn { name: VALUE, data_type: footer.data_type, arrow: &arrow };
        let bounds = KeyBounds::new(predicate, &[column]);
        if bounds.is_empty() {
            return Ok(rows);
        }
        let matching = self.file.rows_between(bounds.lower.as_deref(), bounds.upper.as_deref())?;
        let start = rows.start.max(matching.start);
        Ok(start..rows.end.min(matching.end).max(start))
    }
}
