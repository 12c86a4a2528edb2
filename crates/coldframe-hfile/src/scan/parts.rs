//! The columns of a batch while cells are appended to them.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray, StringViewArray, UInt8Array};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use coldframe_core::arrays::blocks::Blocks;
use coldframe_core::projection::prune;
use coldframe_core::{Error, Result};

use crate::layout::cell::{Cell, CellSink, Tags};
use crate::layout::kinds::type_name;
use crate::scan::binary::Binary;
use crate::scan::strings::{MAX_BYTES, Strings, TagLists, not_text};

/// Bytes after which a batch is returned, even if it has few rows, so that it is still in the processor's
/// caches when the consumer uses it.
pub(super) const BATCH_BYTES: usize = 4 << 20;

/// Blocks of more bytes in plain form are appended in parts.
const LARGE: usize = 16 << 20;

/// The size of a batch: its number of rows and, for each string column, the numbers of bytes and of strings.
#[derive(Clone, Debug, Default)]
pub struct Room {
    rows: usize,
    strings: Vec<(usize, usize)>,
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
    pub(super) rows: usize,
    /// The blocks that views refer to; empty if there are no views.
    pub(super) blocks: Blocks,
    pub(super) has_views: bool,
    /// Maximum bytes in plain form of a block that is appended at once.
    most: usize,
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

    fn most(&self) -> usize {
        self.most
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
    pub(crate) fn new(some: &'a mut Parts, all: &'a Parts) -> Self {
        Self { some, all, is_not_text: false }
    }

    /// Fails as the end of a block would for a key that is not text.
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

    fn most(&self) -> usize {
        self.some.most()
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
    /// No columns: cells are only counted.
    pub(super) fn none() -> Self {
        Self { most: usize::MAX, ..Self::default() }
    }

    /// Limits what is appended of a block at once.
    pub(super) fn limit(&mut self, bytes: usize) {
        self.most = LARGE.min(bytes);
    }

    pub(super) fn new(schema: &Schema) -> Result<Self> {
        let mut parts = Self { most: LARGE, ..Self::default() };
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

    /// Appends cells: all of them, or none if it fails.
    #[inline(never)]
    pub(super) fn append(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        let rows = self.rows;
        let appended = self.append_by_column(cells);
        if appended.is_err() {
            self.truncate(rows);
        }
        appended
    }

    /// Appends cells column by column, which is faster than cell by cell: the loop for a column keeps its
    /// state in registers. If it fails, the columns may differ in length.
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

    pub(super) fn binaries(&self) -> impl Iterator<Item = &Binary> {
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
    pub(super) fn truncate(&mut self, rows: usize) {
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
    pub(super) fn reserve_times(&mut self, times: usize) {
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

    pub(super) fn room(&self) -> Room {
        let strings = self.binaries().map(Binary::room).chain(self.texts().map(Strings::room));
        Room { rows: self.rows, strings: strings.collect() }
    }

    /// Reserves room for a batch of this size.
    pub(super) fn reserve(&mut self, Room { rows, strings }: &Room) {
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

    /// The bytes of the column that has the most.
    pub(super) fn widest(&self) -> usize {
        let tags = self.tags.as_ref().map_or(0, TagLists::size);
        let binaries = self.binaries().map(Binary::size).fold(tags, usize::max);
        self.texts().map(Strings::size).fold(binaries, usize::max)
    }

    /// Checks the rows from `row` on, such as whether text is UTF-8.
    pub(super) fn check(&self, row: usize) -> Result<()> {
        if let Some(keys) = &self.key {
            keys.check_text(row, "key")?;
        }
        if self.widest() > MAX_BYTES {
            return Err(Error::unsupported("a block with more than 2 GiB of cells in one column"));
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, field: &Field) -> Result<ArrayRef> {
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
