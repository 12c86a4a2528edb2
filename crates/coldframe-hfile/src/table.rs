//! An open HFile as a table.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use coldframe_core::{
    Damage, DamageLog, Error, KeyRange, Node, Notice, OpenOptions, Plan, PlanRequest, Proof, ReadAt, Result,
    Source, Split, TableFile, Value,
};

use crate::layout::cell::{Cell, row_of};
use crate::layout::file_info;
use crate::lookup::Lookups;
use crate::lookup::rows::{RowQuery, RowScan};
use crate::open::RawFile;
use crate::options::{Options, View};
use crate::prune::bloom::Which;
use crate::prune::prove;
use crate::recover;
use crate::scan::columns::schema_of;
use crate::scan::pivot::{self, PivotPlan};
use crate::scan::plan::BlockPlan;

/// The minimum size of a split. Few blocks are smaller than this, and a split in which no block begins only
/// costs time.
const SMALLEST_SPLIT: u64 = 256;

/// An open HFile.
#[derive(Debug)]
pub struct HFile {
    raw: Arc<RawFile>,
    view: View,
    schema: SchemaRef,
    /// The columns of the file's view. Look-ups always return these columns.
    cells: SchemaRef,
    options: Options,
    lookups: Lookups,
    /// The same file with an index of its blocks, if its own index contradicts them; `None` if none can be built.
    reindexed: OnceLock<Option<Arc<RawFile>>>,
    /// What look-ups met.
    notices: DamageLog,
}

impl HFile {
    /// Opens a file: reads the trailer, the root indexes and the file info.
    pub fn open(source: &Source, options: &OpenOptions) -> Result<Self> {
        Self::new(source.bytes()?.clone(), Options::new(options)?)
    }

    /// Opens the file with parsed options. Used by tables of many files.
    pub fn new(source: Arc<dyn ReadAt>, options: Options) -> Result<Self> {
        let raw = recover::open(source, &options)?;
        let view = options.view.unwrap_or_else(|| view_of(&raw));
        let cells = schema_of(view, options.type_names, options.dictionary);
        let schema = match (options.pivot.as_slice(), view) {
            ([], _) => cells.clone(),
            (columns, View::Cells) => pivot::schema_of(columns)?,
            (_, View::KeyValue) => return Err(Error::unsupported("`pivot` with `view=\"kv\"`")),
        };
        Ok(Self::of(Arc::new(raw), view, (schema, cells), options))
    }

    /// The same file with a rebuilt index over all its cells, if only the trailer or the index is damaged.
    /// Reads all blocks.
    ///
    /// # Errors
    ///
    /// Returns the damage if cells may be missing or the file info is lost.
    pub fn restored(&self) -> Result<Self> {
        let raw = Arc::new(recover::restore::indexed(&self.raw, &self.options)?);
        let (schema, cells, options) = (self.schema.clone(), self.cells.clone(), self.options.clone());
        Ok(Self::of(raw, self.view, (schema, cells), options))
    }

    fn of(raw: Arc<RawFile>, view: View, (schema, cells): (SchemaRef, SchemaRef), options: Options) -> Self {
        let (lookups, reindexed, notices) = (Lookups::default(), OnceLock::new(), DamageLog::default());
        Self { raw, view, schema, cells, options, lookups, reindexed, notices }
    }

    /// The contradiction between the index and the blocks at the ends of a range of rows, if there is one. Blocks
    /// beside the range that cannot be read contradict nothing.
    pub fn contradiction(&self, rows: &KeyRange) -> Result<Option<Error>> {
        prove::contradiction(&self.raw, rows)
    }

    /// Runs a look-up. If the index contradicts the blocks, reads all blocks once and builds a new index from them,
    /// which this look-up and all later ones use.
    fn looked_up<T>(&self, mut look_up: impl FnMut(&Arc<RawFile>) -> Result<T>) -> Result<T> {
        if let Some(Some(raw)) = self.reindexed.get() {
            return look_up(raw);
        }
        match look_up(&self.raw) {
            Err(e) if e.is_damage() && self.raw.damage.is_none() => {
                let reindexed = self.reindexed.get_or_init(|| {
                    let raw = recover::restore::indexed(&self.raw, &self.options).ok()?;
                    self.notices.notify(Notice::wrong_index(&e));
                    Some(Arc::new(raw))
                });
                reindexed.as_ref().map_or(Err(e), look_up)
            }
            other => other,
        }
    }

    /// The open file without Arrow.
    pub fn raw(&self) -> &Arc<RawFile> {
        &self.raw
    }

    /// The view in which the file is read.
    pub fn view(&self) -> View {
        self.view
    }

    /// The columns that look-ups return.
    pub fn cell_schema(&self) -> &SchemaRef {
        &self.cells
    }

    /// The user's options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The name of the column that the file is sorted by.
    pub fn key_column(&self) -> &'static str {
        match self.view {
            View::KeyValue => "key",
            View::Cells => "row",
        }
    }
}

/// Look-ups of cells and pairs by key.
impl HFile {
    /// The cells of one row (the pairs of one key), in file order.
    pub fn get(&self, row: &[u8]) -> Result<Vec<RecordBatch>> {
        self.looked_up(|raw| self.lookups.get(raw, &self.cells, row))
    }

    /// Passes the cells of one row (the pairs of one key) to `with`, in file order, without copying them.
    pub fn find(&self, row: &[u8], mut with: impl FnMut(&Cell<'_>) -> Result<()>) -> Result<()> {
        self.looked_up(|raw| self.lookups.find(raw, row, &mut with))
    }

    /// The cells of many rows, each row once, in file order, in a single pass over the index and the blocks.
    pub fn get_many(&self, rows: &[Vec<u8>]) -> Result<Vec<RecordBatch>> {
        self.looked_up(|raw| self.lookups.get_many(raw, &self.cells, rows))
    }

    /// Whether the file may contain a row or column: `false` only if the bloom filter rules it out. `true` if
    /// there is no filter.
    pub fn might_contain(&self, row: &[u8], qualifier: Option<&[u8]>) -> Result<bool> {
        self.lookups.might_contain(&self.raw, Which::General, row, qualifier)
    }

    /// Whether the file may delete a family in this row: `false` only if the filter of deleted families rules
    /// it out.
    pub fn might_delete_family(&self, row: &[u8]) -> Result<bool> {
        self.lookups.might_contain(&self.raw, Which::DeleteFamily, row, None)
    }

    /// The cells that `query` selects.
    pub fn scan_rows(&self, query: &RowQuery) -> Result<RowScan> {
        self.looked_up(|raw| RowScan::new(raw, self.view, &self.cells, query))
    }
}

/// Recognises Hudi's files by their comparator, by Hudi's entries in the file info, or by the last key, which
/// has no family and no qualifier and, if HBase's writer stored it as a cell key, the maximal timestamp.
fn view_of(raw: &RawFile) -> View {
    let info = &raw.info;
    let hudi = raw.pairs
        || raw.trailer.comparator.contains("hudi")
        || info.get(file_info::HUDI_MIN_KEY).is_some()
        || info.get(file_info::LAST_KEY).is_some_and(is_hudi_key);
    if hudi { View::KeyValue } else { View::Cells }
}

fn is_hudi_key(key: &[u8]) -> bool {
    const BEHIND_ROW: [u8; 10] = [0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 4];
    let row = row_of(key).map_or(usize::MAX, <[u8]>::len);
    key.get(row.saturating_add(2)..).is_some_and(|behind| behind.is_empty() || behind == BEHIND_ROW)
}

impl TableFile for HFile {
    fn format(&self) -> &'static str {
        "hfile"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn row_count(&self) -> Option<u64> {
        let known = self.raw.damage.is_none() && self.options.pivot.is_empty();
        known.then_some(self.raw.trailer.entry_count)
    }

    fn take_notices(&self) -> Vec<Notice> {
        self.notices.take_notices()
    }

    fn decodes_views(&self) -> bool {
        self.options.pivot.is_empty()
    }

    fn counts_by_reading(&self) -> bool {
        true
    }

    fn metadata(&self) -> Result<Value> {
        Ok(crate::describe::metadata(&self.raw))
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let len = self.raw.source.len();
        let trailer = &self.raw.trailer;
        let end = match trailer.last_data_block {
            Some(last) if self.raw.damage.is_none() => last.saturating_add(1).min(len),
            _ => len,
        };
        let parts = end.div_ceil(target.max(SMALLEST_SPLIT)).clamp(1, 1 << 20);
        let bound =
            |i: u64| u64::try_from(u128::from(end) * u128::from(i) / u128::from(parts)).unwrap_or(end);
        Ok((0..parts)
            .map(|i| Split {
                part: 0,
                range: bound(i)..if i + 1 == parts { len } else { bound(i + 1) },
                rows: None,
            })
            .collect())
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        let keys = match &request.scan.predicate {
            Some(predicate) => predicate.key_range(self.key_column()),
            None => KeyRange::default(),
        };
        let (raw, request, split) = (self.raw.clone(), request.clone(), split.range.clone());
        if self.options.pivot.is_empty() {
            return Ok(Box::new(BlockPlan::new(raw, request, split, keys)?.scouted()?));
        }
        Ok(Box::new(PivotPlan::new(raw, request, split, keys)?))
    }

    fn statistics(&self) -> Result<Value> {
        Ok(crate::describe::statistics(&self.raw))
    }

    fn lengths(&self, tick: &mut dyn FnMut(u64) -> Result<()>) -> Result<Value> {
        crate::lengths::lengths(&self.raw, self.view, tick)
    }

    fn inspect(&self) -> Result<Node> {
        crate::inspect::inspect(&self.raw)
    }

    fn proof(&self) -> Proof {
        let besides = &["indexes and bloom filters", "counts in the trailer"];
        Proof { checksums: self.raw.context.checksums().if_compared(self.options.verify), besides }
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        crate::verify::verify(&self.raw)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
