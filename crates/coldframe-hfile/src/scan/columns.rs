//! Collects cells into Arrow columns, for the views `cells` and `kv`.
//!
//! Each cell is appended to all columns before the next cell, so a block is loaded into the processor's
//! caches only once. A block with an error is removed as a whole.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray, StringViewArray, UInt8Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use coldframe_core::arrays::blocks::{Blocks, MAX_KEPT};
use coldframe_core::projection::prune;
use coldframe_core::{Error, Result, arrow_error};

use crate::layout::cell::{Cell, CellRef, CellSink, Tags};
use crate::layout::kinds::type_name;
use crate::options::View;
use crate::scan::binary::Binary;
use crate::scan::names::names_type;
use crate::scan::strings::{MAX_BYTES, Strings, TagLists, not_text, tag_fields};

/// Bytes after which a batch is returned, even if it has few rows, so that it is still in the processor's
/// caches when the consumer uses it.
const BATCH_BYTES: usize = 4 << 20;

/// Bytes of blocks after which a batch with views is returned, because strings from further blocks would have
/// to be copied.
const MAX_BLOCK_BYTES: usize = MAX_KEPT / 2;

/// The maximum number of cells that are appended together: few enough for the processor's smallest cache.
const MAX_WAITING: usize = 64;

/// The columns of a view, with families and qualifiers as dictionaries if asked for.
pub fn schema_of(view: View, type_names: bool, dictionary: bool) -> SchemaRef {
    let name = || if dictionary { names_type() } else { DataType::Binary };
    let fields = match view {
        View::KeyValue => {
            vec![Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true)]
        }
        View::Cells => vec![
            Field::new("row", DataType::Binary, true),
            Field::new("family", name(), true),
            Field::new("qualifier", name(), true),
            Field::new("timestamp", DataType::Int64, true),
            Field::new("type", if type_names { DataType::Utf8 } else { DataType::UInt8 }, true),
            Field::new("value", DataType::Binary, true),
            Field::new("tags", DataType::new_list(DataType::Struct(tag_fields()), true), true),
            Field::new("sequence_id", DataType::Int64, true),
        ],
    };
    Arc::new(Schema::new(fields))
}

/// The size of a batch: its number of rows and, for each string column, the numbers of bytes and of strings.
#[derive(Clone, Debug, Default)]
pub struct Room {
    rows: usize,
    strings: Vec<(usize, usize)>,
}

/// Collects cells into batches that have some of the columns.
#[derive(Debug)]
pub struct Columns {
    schema: SchemaRef,
    parts: Parts,
    /// Since the last batch: bytes of the cells that were appended as [`CellRef`]s.
    taken: usize,
    /// The number of rows before the last block, and the number of rows of the last block.
    begun: usize,
    last: usize,
    batch_rows: usize,
    /// Whether cells were pushed one by one, without reserving room for them.
    singly: bool,
    /// The number of cells that the caller still has to append.
    waiting: usize,
}

/// The requested columns.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    row: Option<Binary>,
    key: Option<Strings>,
    family: Option<Binary>,
    qualifier: Option<Binary>,
    timestamp: Option<Vec<i64>>,
    kind: Option<Vec<u8>>,
    kind_name: Option<Strings>,
    value: Option<Binary>,
    tags: Option<TagLists>,
    sequence_id: Option<Vec<i64>>,
    rows: usize,
    /// The blocks that views refer to; empty if there are no views.
    blocks: Blocks,
    has_views: bool,
}

impl CellSink for Parts {
    #[inline(always)]
    fn cell(&mut self, cell: &Cell<'_>) -> Result<()> {
        let blocks = &self.blocks;
        if let Some(rows) = &mut self.row {
            rows.push(cell.row, blocks);
        }
        if let Some(keys) = &mut self.key {
            keys.push(cell.row);
        }
        if let Some(families) = &mut self.family {
            families.push(cell.family, blocks);
        }
        if let Some(qualifiers) = &mut self.qualifier {
            qualifiers.push(cell.qualifier, blocks);
        }
        if let Some(timestamps) = &mut self.timestamp {
            timestamps.push(cell.timestamp);
        }
        if let Some(kinds) = &mut self.kind {
            kinds.push(cell.kind);
        }
        if let Some(names) = &mut self.kind_name {
            names.push(name_of(cell.kind)?.as_bytes());
        }
        if let Some(values) = &mut self.value {
            values.push(cell.value, blocks);
        }
        if let Some(tags) = &mut self.tags {
            tags.push(cell.tags)?;
        }
        if let Some(ids) = &mut self.sequence_id {
            ids.push(cell.sequence_id);
        }
        self.rows += 1;
        Ok(())
    }

    fn keeps_blocks(&self) -> bool {
        self.has_views
    }

    fn enter(&mut self, block: &Bytes) {
        self.blocks.enter(block);
    }
}

/// Appends cells to some of the columns, and fails if appending them to all columns would fail. So whether a
/// block counts as damaged does not depend on which cells pass a filter.
pub(crate) struct Checked<'a> {
    some: &'a mut Parts,
    all: &'a Parts,
    /// Whether a key that is not text was seen. Only set if `some` does not check keys.
    is_not_text: bool,
}

impl<'a> Checked<'a> {
    /// Creates a sink that appends the next block to `some` and checks it as `all` would.
    pub(crate) fn new(some: &'a mut Columns, all: &'a Columns) -> Self {
        Self { some: some.begin_block(), all: &all.parts, is_not_text: false }
    }

    /// Fails as [`Columns::end_block`] would for a key that is not text.
    pub(crate) fn end_block(self) -> Result<()> {
        if self.is_not_text { Err(not_text("key")) } else { Ok(()) }
    }
}

impl CellSink for Checked<'_> {
    #[inline(always)]
    fn cell(&mut self, cell: &Cell<'_>) -> Result<()> {
        if self.all.key.is_some() && self.some.key.is_none() {
            self.is_not_text |= simdutf8::basic::from_utf8(cell.row).is_err();
        }
        if self.all.kind_name.is_some() {
            name_of(cell.kind)?;
        }
        if self.all.tags.is_some() && !cell.tags.is_empty() {
            check_tags(cell.tags)?;
        }
        self.some.cell(cell)
    }

    fn keeps_blocks(&self) -> bool {
        self.some.keeps_blocks()
    }

    fn enter(&mut self, block: &Bytes) {
        CellSink::enter(self.some, block);
    }
}

fn check_tags(tags: &[u8]) -> Result<()> {
    let mut tags = Tags::new(tags);
    while tags.next_tag()?.is_some() {}
    Ok(())
}

fn name_of(kind: u8) -> Result<&'static str> {
    type_name(kind).ok_or_else(|| {
        Error::corrupt(format!("expected a cell type, found {kind}; `types=\"code\"` shows numbers"))
    })
}

impl Parts {
    fn new(schema: &Schema) -> Result<Self> {
        let mut parts = Self::default();
        for field in schema.fields() {
            let binary = || Some(Binary::new(field.data_type()));
            parts.has_views |= *field.data_type() == DataType::BinaryView;
            match field.name().as_str() {
                "row" => parts.row = binary(),
                "key" => parts.key = Some(Strings::new()),
                "family" => parts.family = binary(),
                "qualifier" => parts.qualifier = binary(),
                "timestamp" => parts.timestamp = Some(Vec::new()),
                "type" if *field.data_type() != DataType::UInt8 => parts.kind_name = Some(Strings::new()),
                "type" => parts.kind = Some(Vec::new()),
                "value" => parts.value = binary(),
                "tags" => parts.tags = Some(TagLists::new()),
                "sequence_id" => parts.sequence_id = Some(Vec::new()),
                other => return Err(Error::schema(format!("HFile has no column `{other}`"))),
            }
        }
        Ok(parts)
    }

    /// Appends all cells; on failure, appends no cell.
    #[inline(never)]
    fn append(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        let rows = self.rows;
        let appended = self.append_by_column(cells);
        if appended.is_err() {
            self.truncate(rows);
        }
        appended
    }

    /// Appends cells column by column, which is faster than cell by cell: the loop for a column keeps its
    /// state in registers. If the function fails, the columns may differ in length.
    fn append_by_column(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        let blocks = &self.blocks;
        if let Some(names) = &mut self.kind_name {
            cells.iter().try_for_each(|cell| name_of(cell.kind).map(|name| names.push(name.as_bytes())))?;
        }
        if let Some(tags) = &mut self.tags {
            cells.iter().try_for_each(|cell| tags.push(cell.tags))?;
        }
        if let Some(rows) = &mut self.row {
            rows.extend(cells.iter().map(|cell| cell.row), blocks);
        }
        if let Some(keys) = &mut self.key {
            keys.extend(cells.iter().map(|cell| cell.row));
        }
        if let Some(families) = &mut self.family {
            families.extend(cells.iter().map(|cell| cell.family), blocks);
        }
        if let Some(qualifiers) = &mut self.qualifier {
            qualifiers.extend(cells.iter().map(|cell| cell.qualifier), blocks);
        }
        if let Some(timestamps) = &mut self.timestamp {
            timestamps.extend(cells.iter().map(|cell| cell.timestamp));
        }
        if let Some(kinds) = &mut self.kind {
            kinds.extend(cells.iter().map(|cell| cell.kind));
        }
        if let Some(values) = &mut self.value {
            values.extend(cells.iter().map(|cell| cell.value), blocks);
        }
        if let Some(ids) = &mut self.sequence_id {
            ids.extend(cells.iter().map(|cell| cell.sequence_id));
        }
        self.rows += cells.len();
        Ok(())
    }

    fn binaries(&self) -> impl Iterator<Item = &Binary> {
        [&self.row, &self.family, &self.qualifier, &self.value].into_iter().flatten()
    }

    fn binaries_mut(&mut self) -> impl Iterator<Item = &mut Binary> {
        let Self { row, family, qualifier, value, .. } = self;
        [row, family, qualifier, value].into_iter().flatten()
    }

    fn texts(&self) -> impl Iterator<Item = &Strings> {
        [&self.key, &self.kind_name].into_iter().flatten()
    }

    fn texts_mut(&mut self) -> impl Iterator<Item = &mut Strings> {
        [&mut self.key, &mut self.kind_name].into_iter().flatten()
    }

    /// Keeps the first `rows` rows.
    fn truncate(&mut self, rows: usize) {
        self.binaries_mut().for_each(|column| column.truncate(rows));
        self.texts_mut().for_each(|column| column.truncate(rows));
        for numbers in [&mut self.timestamp, &mut self.sequence_id].into_iter().flatten() {
            numbers.truncate(rows);
        }
        if let Some(kinds) = &mut self.kind {
            kinds.truncate(rows);
        }
        if let Some(tags) = &mut self.tags {
            tags.truncate(rows);
        }
        self.rows = rows;
    }

    /// Reserves room for `times` the current number of rows.
    fn reserve_times(&mut self, times: usize) {
        self.binaries_mut().for_each(|column| column.reserve_times(times, BATCH_BYTES));
        self.texts_mut().for_each(|column| column.reserve_times(times, BATCH_BYTES));
        let rows = self.rows.saturating_mul(times).min(BATCH_BYTES);
        for numbers in [&mut self.timestamp, &mut self.sequence_id].into_iter().flatten() {
            numbers.reserve(rows);
        }
        if let Some(kinds) = &mut self.kind {
            kinds.reserve(rows);
        }
        if let Some(tags) = &mut self.tags {
            tags.reserve(rows);
        }
    }

    fn room(&self) -> Room {
        let strings = self.binaries().map(Binary::room).chain(self.texts().map(Strings::room));
        Room { rows: self.rows, strings: strings.collect() }
    }

    /// Reserves room for a batch of this size.
    fn reserve(&mut self, Room { rows, strings }: &Room) {
        let rows = *rows;
        let mut strings = strings.iter();
        self.binaries_mut().zip(strings.by_ref()).for_each(|(column, room)| column.reserve(*room));
        self.texts_mut().zip(strings).for_each(|(column, room)| column.reserve(*room));
        for numbers in [&mut self.timestamp, &mut self.sequence_id].into_iter().flatten() {
            numbers.reserve(rows);
        }
        if let Some(kinds) = &mut self.kind {
            kinds.reserve(rows);
        }
    }

    /// The largest number of bytes in a column.
    fn widest(&self) -> usize {
        let tags = self.tags.as_ref().map_or(0, TagLists::size);
        let binaries = self.binaries().map(Binary::size).fold(tags, usize::max);
        self.texts().map(Strings::size).fold(binaries, usize::max)
    }

    /// Checks the rows from `row` on, such as whether text is UTF-8.
    fn check(&self, row: usize) -> Result<()> {
        if let Some(keys) = &self.key {
            keys.check_text(row, "key")?;
        }
        if self.widest() > MAX_BYTES {
            return Err(Error::unsupported("a block with more than 2 GiB of cells in one column"));
        }
        Ok(())
    }

    fn finish(&mut self, field: &Field) -> Result<ArrayRef> {
        let required = |array: Option<ArrayRef>| {
            array.ok_or_else(|| Error::schema(format!("HFile has no column `{}`", field.name())))
        };
        let blocks = &self.blocks;
        let binary = |column: &mut Option<Binary>| -> Result<Option<ArrayRef>> {
            column.as_mut().map(|column| column.finish(blocks)).transpose()
        };
        let text = |strings: &mut Option<Strings>, what| -> Result<Option<ArrayRef>> {
            let Some(strings) = strings else { return Ok(None) };
            Ok(Some(text_of(strings.text(what)?, field.data_type())))
        };
        let numbers = |values: &mut Option<Vec<i64>>| {
            values.as_mut().map(|v| Arc::new(Int64Array::from(std::mem::take(v))) as ArrayRef)
        };
        required(match field.name().as_str() {
            "row" => binary(&mut self.row)?,
            "key" => text(&mut self.key, "key")?,
            "family" => binary(&mut self.family)?,
            "qualifier" => binary(&mut self.qualifier)?,
            "timestamp" => numbers(&mut self.timestamp),
            "type" if self.kind_name.is_some() => text(&mut self.kind_name, "type")?,
            "type" => self.kind.as_mut().map(|v| Arc::new(UInt8Array::from(std::mem::take(v))) as ArrayRef),
            "value" => binary(&mut self.value)?,
            "tags" => {
                let lists = self.tags.as_mut().map(TagLists::finish).transpose()?;
                lists.map(|lists| prune(&(Arc::new(lists) as ArrayRef), field.data_type())).transpose()?
            }
            _ => numbers(&mut self.sequence_id),
        })
    }
}

/// Converts text to the layout of its column.
fn text_of(text: StringArray, data_type: &DataType) -> ArrayRef {
    match data_type {
        DataType::Utf8View => Arc::new(StringViewArray::from(&text)),
        _ => Arc::new(text),
    }
}

impl Columns {
    /// Collects the columns of `schema`, in batches of at most `batch_rows` rows.
    pub fn new(schema: SchemaRef, batch_rows: usize) -> Result<Self> {
        let parts = Parts::new(&schema)?;
        let batch_rows = batch_rows.max(1);
        Ok(Self { schema, parts, taken: 0, begun: 0, last: 0, batch_rows, singly: false, waiting: 0 })
    }

    /// Begins a block: returns the sink for its cells.
    pub(crate) fn begin_block(&mut self) -> &mut Parts {
        self.begun = self.parts.rows;
        &mut self.parts
    }

    /// Ends a block. Fails if the columns cannot represent the cells of the block.
    pub(crate) fn end_block(&mut self) -> Result<()> {
        self.last = self.parts.rows - self.begun;
        self.parts.check(self.begun)
    }

    /// The number of rows of the block that ended last.
    pub(crate) fn last_rows(&self) -> usize {
        self.last
    }

    /// Removes the rows of the current block.
    pub(crate) fn drop_block(&mut self) {
        self.parts.truncate(self.begun);
        self.last = 0;
    }

    /// Reserves room for `blocks` more blocks of the size of the last block.
    pub(crate) fn expect_blocks(&mut self, blocks: usize) {
        self.parts.reserve_times(blocks);
    }

    /// Checks some cells of a block in the same way as appending them would.
    pub(crate) fn check(&self, block: &[u8], cells: &[CellRef]) -> Result<()> {
        let mut checked = Checked { some: &mut Parts::default(), all: &self.parts, is_not_text: false };
        cells.iter().try_for_each(|cell| checked.cell(&cell.cell(block)))?;
        checked.end_block()
    }

    /// Appends as many cells of a block as still fit in the batch, and returns their number. If no cell fits,
    /// the batch is full.
    pub(crate) fn append(&mut self, block: &[u8], cells: &[CellRef]) -> Result<usize> {
        let most = self.batch_rows.saturating_sub(self.parts.rows).min(cells.len());
        for (taken, cell) in cells.iter().take(most).enumerate() {
            let size = cell.key_len as usize + cell.value_len as usize + usize::from(cell.tags_len);
            // The values of a huge block are split over several batches, so that 32-bit offsets suffice.
            if self.parts.rows > 0 && self.taken.saturating_add(size) > BATCH_BYTES.max(block.len()) {
                self.taken = self.taken.max(BATCH_BYTES);
                return Ok(taken);
            }
            self.parts.cell(&cell.cell(block))?;
            self.taken = self.taken.saturating_add(size);
        }
        Ok(most)
    }

    /// The size of the rows appended since the last batch.
    pub fn room(&self) -> Room {
        self.parts.room()
    }

    /// Reserves room for a batch of this size. Growing step by step would copy the columns at each step.
    pub fn reserve(&mut self, room: &Room) {
        self.parts.reserve(room);
    }

    /// Appends one cell. If the batch [is full](Self::is_full), it must be finished first.
    pub fn push(&mut self, cell: &Cell<'_>) -> Result<()> {
        self.count_bytes(cell)?;
        self.singly = true;
        self.parts.cell(cell)
    }

    /// Puts a cell into `waiting`, a buffer of the caller, so that several cells are appended together later.
    /// The caller must [append](Self::append_waiting) the buffer before it appends anything else, and before
    /// it finishes the batch.
    #[inline(always)]
    pub fn push_later<'a>(&mut self, cell: &Cell<'a>, waiting: &mut Vec<Cell<'a>>) -> Result<()> {
        self.count_bytes(cell)?;
        waiting.push(*cell);
        self.waiting = waiting.len();
        if self.waiting < MAX_WAITING { Ok(()) } else { self.append_waiting(waiting) }
    }

    /// Appends and clears the cells in `waiting`.
    pub fn append_waiting(&mut self, waiting: &mut Vec<Cell<'_>>) -> Result<()> {
        if waiting.is_empty() {
            return Ok(());
        }
        self.singly = true;
        self.waiting = 0;
        let appended = self.parts.append(waiting);
        waiting.clear();
        appended
    }

    /// Whether values refer to blocks, in which case `waiting` must not mix cells of two blocks.
    pub fn has_views(&self) -> bool {
        self.parts.has_views
    }

    #[inline(always)]
    fn count_bytes(&mut self, cell: &Cell<'_>) -> Result<()> {
        let key = cell.row.len() + cell.family.len() + cell.qualifier.len();
        let size = key.saturating_add(cell.value.len()).saturating_add(cell.tags.len());
        if size > MAX_BYTES - 2 * BATCH_BYTES {
            return Err(Error::unsupported("a cell of 2 GiB"));
        }
        self.taken = self.taken.saturating_add(size);
        Ok(())
    }

    /// Announces that the next cells lie in `block`, so that views can refer to it. Values outside the block
    /// are copied.
    #[inline]
    pub fn enter(&mut self, block: &Bytes) {
        if self.parts.has_views {
            self.parts.blocks.enter(block);
        }
    }

    /// The columns of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether the batch must be finished before more is appended.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.parts.rows + self.waiting >= self.batch_rows || self.taken >= BATCH_BYTES
    }

    /// Whether the batch must be finished before a block of at most `bytes` in plain form is appended.
    pub(crate) fn is_full_for(&self, bytes: usize) -> bool {
        let rows = self.parts.rows;
        if rows == 0 {
            return false;
        }
        let widest = self.parts.widest();
        rows.saturating_add(self.last) > self.batch_rows
            || widest >= BATCH_BYTES
            || self.parts.blocks.bytes() >= MAX_BLOCK_BYTES
            || widest.saturating_add(bytes) > MAX_BYTES
    }

    /// Whether nothing was appended since the last batch.
    pub fn is_empty(&self) -> bool {
        self.parts.rows + self.waiting == 0
    }

    /// The maximum rows of a batch.
    pub(crate) fn batch_rows(&self) -> usize {
        self.batch_rows
    }

    /// Returns the cells since the last batch, if no more cells will follow.
    pub fn finish_last(&mut self) -> Result<RecordBatch> {
        self.singly = false;
        self.finish()
    }

    /// Returns the cells since the last batch.
    pub fn finish(&mut self) -> Result<RecordBatch> {
        let fields = self.schema.fields();
        // The next batch is usually as large as this one, so room for it is reserved; growing step by step
        // would copy the columns at each step.
        let room = self.singly.then(|| self.parts.room());
        let long = self.parts.binaries().map(Binary::long).fold(0, usize::saturating_add);
        self.parts.blocks.weigh(long);
        let arrays = fields.iter().map(|f| self.parts.finish(f)).collect::<Result<Vec<_>>>()?;
        self.parts.blocks.clear();
        if let Some(room) = &room {
            self.parts.reserve(room);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.parts.rows));
        (self.parts.rows, self.taken) = (0, 0);
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options).map_err(arrow_error)
    }
}
