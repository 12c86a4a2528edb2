//! Turns the fetched blocks of a unit into batches.
//! If damage is skipped, all blocks are decoded before the first row is returned. If one fails, each block is decoded by
//! itself, and losses divide the unit's ordinals into stretches that either can be read or are lost. So every returned
//! row has been decoded and has its own ordinal.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;
use arrow_select::filter::filter;
use bytes::Bytes;
use coldframe_core::arrays::strings;
use coldframe_core::salvage::{Fate, Loss, Salvage, Stretch, cut_batches, decoded_whole};
use coldframe_core::{BatchIter, DamageLog, DecodeUnit, Error, OnError, PlanRequest, Result, arrow_error};
use coldframe_encoding::limits::UNBACKED_ROWS;

use super::column::ColumnPart;
use super::delta;
use super::reader::ColumnReader;
use crate::encoding::{binary, prefix};
use crate::layout::block::{BlockFormat, BlockPointer};
use crate::layout::delta as entries;
use crate::layout::types::Encoding;
use crate::open::{ORDINAL, Purpose, VALUE};

/// The context that all units of a scan share.
#[derive(Debug)]
pub(crate) struct ScanContext {
    /// The requested columns.
    pub(crate) schema: SchemaRef,
    /// Maximum rows of a batch.
    pub(crate) batch_rows: usize,
    /// How damage is handled.
    pub(crate) on_error: OnError,
    /// The log of damage.
    pub(crate) damage: DamageLog,
    /// Ordinals for which the index lists no block, with the reasons.
    lost: Vec<Loss>,
    /// Which entries of the dictionary pass the filter, if the filter is only on the value column.
    keep: Option<Vec<bool>>,
}

impl ScanContext {
    /// Creates the context for a scan of `request`.
    pub(crate) fn new(request: &PlanRequest) -> Self {
        Self {
            schema: request.decode.clone(),
            batch_rows: request.scan.batch_rows,
            on_error: request.scan.on_error,
            damage: request.damage.clone(),
            lost: Vec::new(),
            keep: None,
        }
    }

    /// Adds the ordinals for which the index lists no block.
    #[must_use]
    pub(crate) fn with_lost(mut self, lost: Vec<Loss>) -> Self {
        self.lost = lost;
        self
    }

    /// Adds the filter's result for the dictionary.
    #[must_use]
    pub(crate) fn with_keep(mut self, keep: Option<Vec<bool>>) -> Self {
        self.keep = keep;
        self
    }

    /// If a loss has no bytes, replaces it by the loss of the index that explains it.
    fn explain(&self, lost: Loss) -> Loss {
        let known =
            self.lost.iter().find(|l| l.rows.start <= lost.rows.start && lost.rows.start < l.rows.end);
        match known {
            Some(known) if lost.bytes.is_empty() => Loss { rows: lost.rows, ..known.clone() },
            _ => lost,
        }
    }
}

/// A unit with at most this many Arrow bytes is decoded completely before its first row is returned. A larger one is
/// decoded twice.
const MAX_WHOLE_BYTES: u64 = 64 << 20;

/// Rows that are decoded at once, however small the user's batches are.
const ROWS_AT_ONCE: usize = 1 << 16;

/// Decodes some ordinals of a column.
#[derive(Clone)]
pub(crate) struct DecodeColumn {
    /// The scan.
    pub(crate) scan: Arc<ScanContext>,
    /// The ordinals and their blocks.
    pub(crate) part: ColumnPart,
    /// Whether values are read, or only ordinals.
    pub(crate) values: bool,
}

impl DecodeUnit for DecodeColumn {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let all = || VecDeque::from([Stretch { rows: self.part.rows(), fate: Fate::Kept }]);
        let most = self.scan.batch_rows;
        if self.scan.on_error == OnError::Raise || !self.values {
            let stretches = all();
            return Ok(Box::new(Batches { unit: *self, bytes, reader: None, stretches, most }));
        }
        if self.part.has_whole_blocks() {
            let whole = Batches {
                unit: Self::clone(&self),
                bytes: bytes.clone(),
                reader: None,
                stretches: all(),
                most: most.max(ROWS_AT_ONCE),
            };
            let most_bytes = MAX_WHOLE_BYTES.min(self.part.context().format.limits.batch_bytes());
            if let Some(whole) = decoded_whole(whole, most_bytes) {
                return Ok(Box::new(cut_batches(whole, most).map(Ok)));
            }
        }
        let stretches = self.survey(&bytes);
        Ok(Box::new(Batches { unit: *self, bytes, reader: None, stretches, most }))
    }
}

impl DecodeColumn {
    /// Records losses, and returns the fates of the rows.
    fn survey(&self, bytes: &[Bytes]) -> VecDeque<Stretch> {
        let nullable = self.scan.schema.field_with_name(VALUE).is_ok_and(|f| f.is_nullable());
        let mut salvage = Salvage::new(self.scan.on_error, [nullable], self.scan.damage.clone());
        for (loss, exist) in self.part.counted_losses(bytes) {
            let mut loss = self.scan.explain(loss);
            let Range { start, end } = loss.rows;
            loss.structure = format!("{} (ordinals {start}..{end})", loss.structure);
            // A footer may claim any number of rows. If a loss has too many rows, they are dropped instead of
            // becoming nulls. In place of a larger block, nothing would limit the number of nulls. Rows that the block
            // itself denies do not become nulls either.
            let may_be_null = exist && end - start <= UNBACKED_ROWS;
            if may_be_null { salvage.lose(0, loss) } else { salvage.lose_rows(loss) }
        }
        let mut stretches = salvage.stretches(self.part.rows());
        stretches.retain(|stretch| stretch.fate != Fate::Dropped && !stretch.rows.is_empty());
        stretches
    }
}

/// The batches of a unit.
struct Batches {
    unit: DecodeColumn,
    bytes: Vec<Bytes>,
    reader: Option<ColumnReader>,
    stretches: VecDeque<Stretch>,
    /// Maximum rows of a batch.
    most: usize,
}

impl Batches {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(stretch) = self.stretches.front().cloned() else { return Ok(None) };
        let left = usize::try_from(stretch.rows.end - stretch.rows.start).unwrap_or(usize::MAX);
        let mut rows = left.min(self.most);
        let (mut value, mut selected) = (None, None);
        if self.unit.values {
            let (array, which) = match stretch.fate {
                Fate::Kept => self.read(stretch.rows.start, &mut rows)?,
                _ => (new_null_array(&self.unit.part.context().to, rows), None),
            };
            (value, selected) = (Some(array), which.map(|bits| BooleanArray::new(bits, None)));
        }
        let start = stretch.rows.start;
        match self.stretches.front_mut() {
            Some(front) if rows < left => front.rows.start += rows as u64,
            _ => drop(self.stretches.pop_front()),
        }
        let schema = &self.unit.scan.schema;
        let column = |name: &str| -> Result<ArrayRef> {
            match (name, &value) {
                (ORDINAL, _) => {
                    let first = i64::try_from(start).unwrap_or(i64::MAX);
                    let last = first.saturating_add(i64::try_from(rows).unwrap_or(i64::MAX));
                    let all = Int64Array::from_iter_values(first..last);
                    match &selected {
                        Some(which) => filter(&all, which).map_err(arrow_error),
                        None => Ok(Arc::new(all)),
                    }
                }
                (_, Some(value)) => Ok(value.clone()),
                (name, None) => Err(Error::schema(format!("no column `{name}`"))),
            }
        };
        let columns = schema.fields().iter().map(|f| column(f.name())).collect::<Result<Vec<_>>>()?;
        let rows = selected.as_ref().map_or(rows, BooleanArray::true_count);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(arrow_error).map(Some)
    }

    /// Reads the next `rows` values from `start` on, or as many as fit in a batch. Returns the values that
    /// can pass the filter, and the numbers of their rows.
    fn read(&mut self, start: u64, rows: &mut usize) -> Result<(ArrayRef, Option<BooleanBuffer>)> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => self.reader.insert(self.unit.part.open(self.bytes.clone())?),
        };
        let behind = start.saturating_sub(reader.rows().start);
        reader.skip(usize::try_from(behind).unwrap_or(usize::MAX));
        if let Some(keep) = &self.unit.scan.keep {
            let (array, which) = reader.read_where(*rows, keep)?;
            *rows = which.len();
            return Ok((array, Some(which)));
        }
        let array = reader.read_some(*rows)?;
        *rows = array.len();
        Ok((array, None))
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        if next.is_err() {
            self.stretches.clear();
        }
        next.transpose()
    }
}

/// Decodes a block of a file that has no ordinals.
pub(crate) struct DecodeBlocks {
    /// The scan.
    pub(crate) scan: Arc<ScanContext>,
    /// How blocks are stored.
    pub(crate) format: BlockFormat,
    /// The values' encoding.
    pub(crate) encoding: Encoding,
    /// The purpose of the file.
    pub(crate) kind: Purpose,
    /// The block.
    pub(crate) block: BlockPointer,
}

impl DecodeUnit for DecodeBlocks {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let at = self.block.offset;
        let stored = bytes.into_iter().next().unwrap_or_default();
        let contents = self.format.open_owned(&stored, at)?;
        let batch = match (self.kind, self.encoding) {
            (Purpose::Delta, Encoding::Plain) => {
                let mut places = Vec::new();
                let values: Vec<&[u8]> = entries::entries(&contents, at, &mut places)?.collect();
                let all = delta::batch(&values, at, &delta::schema())?;
                let names = self.scan.schema.fields().iter().map(|f| all.schema().index_of(f.name()));
                let places = names.collect::<std::result::Result<Vec<_>, _>>().map_err(arrow_error)?;
                all.project(&places).map_err(arrow_error)?
            }
            (Purpose::Delta, other) => {
                return Err(Error::unsupported(format!("a delta file encoded by {other}")));
            }
            _ => self.keys(&contents)?,
        };
        let rows = self.scan.batch_rows;
        let starts = (0..batch.num_rows()).step_by(rows);
        let batches: Vec<_> =
            starts.map(|from| Ok(batch.slice(from, rows.min(batch.num_rows() - from)))).collect();
        Ok(Box::new(batches.into_iter()))
    }
}

impl DecodeBlocks {
    /// The keys of an index, with their ordinals.
    fn keys(&self, contents: &Bytes) -> Result<RecordBatch> {
        let (mut data, mut offsets) = (Vec::new(), Vec::new());
        let max_bytes = usize::try_from(self.format.limits.max_block_bytes).unwrap_or(usize::MAX);
        let at = self.block.offset;
        let head = match self.encoding {
            Encoding::Prefix => prefix::decode(contents, max_bytes, &mut data, &mut offsets),
            Encoding::Plain => binary::offsets(contents, &mut offsets).inspect(|_| {
                data = contents.to_vec();
            }),
            other => Err(Error::unsupported(format!("{other} in a file without a positional index"))),
        };
        let head = head.map_err(|e| e.at(at))?;
        let first = offsets.first().copied().unwrap_or(0) as usize;
        let end = offsets.last().copied().unwrap_or(0) as usize;
        let values = data.get(first..end).unwrap_or_default().to_vec();
        let place = |o: &u32| {
            i32::try_from(*o as usize - first)
                .map_err(|_| Error::batch_too_long("the keys of a block", end as u64))
        };
        let offsets = offsets.iter().map(place).collect::<Result<Vec<i32>>>()?;
        let values = strings(offsets, values, None, false).map_err(|e| e.at(at))?;
        let ordinal = i64::from(head.ordinal);
        let schema = &self.scan.schema;
        let column = |name: &str, to: &arrow_schema::DataType| -> Result<ArrayRef> {
            match name {
                ORDINAL => {
                    Ok(Arc::new(Int64Array::from_iter_values(ordinal..ordinal + i64::from(head.count))))
                }
                _ => arrow_cast::cast(&values, to).map_err(arrow_error),
            }
        };
        let columns =
            schema.fields().iter().map(|f| column(f.name(), f.data_type())).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(head.count as usize));
        RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(arrow_error)
    }
}
