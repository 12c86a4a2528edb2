//! Cells to Arrow: the columns of both views.
//!
//! A block is taken in two passes: the first has found where the parts of all its cells are ([`CellRef`]), the second
//! copies one column after another into buffers that grow once for each block.

use std::sync::Arc;

use arrow_array::Array as _;
use arrow_array::{
    ArrayRef, BinaryArray, Int64Array, ListArray, RecordBatch, RecordBatchOptions, StringArray, StructArray,
    UInt8Array,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use coldframe_core::{Error, Result, arrow_error};

use crate::cell::{CellRef, Tags, type_name};
use crate::options::View;

/// Bytes after which a batch is handed out, whatever its rows.
const BATCH_BYTES: usize = 32 << 20;
/// Bytes that the offsets of a batch reach.
const MOST_BYTES: usize = 0x7fff_ffff;

/// The columns of a view.
pub fn schema_of(view: View, type_names: bool) -> SchemaRef {
    let fields = match view {
        View::KeyValue => {
            vec![Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true)]
        }
        View::Cells => vec![
            Field::new("row", DataType::Binary, true),
            Field::new("family", DataType::Binary, true),
            Field::new("qualifier", DataType::Binary, true),
            Field::new("timestamp", DataType::Int64, true),
            Field::new("type", if type_names { DataType::Utf8 } else { DataType::UInt8 }, true),
            Field::new("value", DataType::Binary, true),
            Field::new("tags", DataType::new_list(DataType::Struct(tag_fields()), true), true),
            Field::new("sequence_id", DataType::Int64, true),
        ],
    };
    Arc::new(Schema::new(fields))
}

fn tag_fields() -> Fields {
    Fields::from(vec![Field::new("type", DataType::UInt8, true), Field::new("value", DataType::Binary, true)])
}

/// Byte strings while they are collected.
#[derive(Debug)]
struct Strings {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Strings {
    fn new() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }

    /// Appends one part of each cell; the parts are `total` bytes.
    #[inline]
    fn extend<'b>(&mut self, cells: &[CellRef], total: usize, part: impl Fn(&CellRef) -> &'b [u8]) {
        self.bytes.reserve(total);
        self.offsets.reserve(cells.len());
        for cell in cells {
            self.bytes.extend_from_slice(part(cell));
            // A batch ends before its bytes reach what an offset can say.
            self.offsets.push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
        }
    }

    /// Appends one string.
    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.offsets.push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, arrow_buffer::Buffer) {
        let (rows, bytes) = (self.offsets.len(), self.bytes.len());
        let full = std::mem::replace(
            self,
            Self { offsets: Vec::with_capacity(rows), bytes: Vec::with_capacity(bytes) },
        );
        self.offsets.push(0);
        (OffsetBuffer::new(ScalarBuffer::from(full.offsets)), full.bytes.into())
    }

    fn binary(&mut self) -> Result<BinaryArray> {
        let (offsets, bytes) = self.take();
        BinaryArray::try_new(offsets, bytes, None).map_err(arrow_error)
    }

    fn text(&mut self, what: &str) -> Result<StringArray> {
        let (offsets, bytes) = self.take();
        StringArray::try_new(offsets, bytes, None)
            .map_err(|_| Error::corrupt(format!("{what}: expected UTF-8; `view=\"cells\"` shows the bytes")))
    }
}

/// The tags of cells while they are collected.
#[derive(Debug)]
struct TagLists {
    /// Where each cell's tags end among all.
    ends: Vec<i32>,
    kinds: Vec<u8>,
    values: Strings,
}

impl TagLists {
    fn new() -> Self {
        Self { ends: vec![0], kinds: Vec::new(), values: Strings::new() }
    }

    fn extend(&mut self, block: &[u8], cells: &[CellRef]) -> Result<()> {
        if cells.iter().all(|c| c.tags_len == 0) {
            let end = self.ends.last().copied().unwrap_or(0);
            self.ends.resize(self.ends.len() + cells.len(), end);
            return Ok(());
        }
        for cell in cells {
            let mut tags = Tags::new(if cell.tags_len == 0 { &[] } else { cell.tags(block) });
            while let Some((kind, value)) = tags.next_tag()? {
                self.kinds.push(kind);
                self.values.push(value);
            }
            self.ends.push(i32::try_from(self.kinds.len()).unwrap_or(i32::MAX));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<ListArray> {
        let Self { ends, kinds, mut values } = std::mem::replace(self, Self::new());
        let columns: Vec<ArrayRef> = vec![Arc::new(UInt8Array::from(kinds)), Arc::new(values.binary()?)];
        let tags = StructArray::try_new(tag_fields(), columns, None).map_err(arrow_error)?;
        let item = Arc::new(Field::new_list_field(tags.data_type().clone(), true));
        let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
        ListArray::try_new(item, ends, Arc::new(tags), None).map_err(arrow_error)
    }
}

#[derive(Debug)]
enum Column {
    Row(Strings),
    Family(Strings),
    Qualifier(Strings),
    Timestamp(Vec<i64>),
    Type(Vec<u8>),
    TypeName(Strings),
    Value(Strings),
    Tags(TagLists),
    SequenceId(Vec<i64>),
    Key(Strings),
}

impl Column {
    fn new(name: &str, data_type: &DataType) -> Result<Self> {
        Ok(match name {
            "row" => Self::Row(Strings::new()),
            "family" => Self::Family(Strings::new()),
            "qualifier" => Self::Qualifier(Strings::new()),
            "timestamp" => Self::Timestamp(Vec::new()),
            "type" if *data_type == DataType::Utf8 => Self::TypeName(Strings::new()),
            "type" => Self::Type(Vec::new()),
            "value" => Self::Value(Strings::new()),
            "tags" => Self::Tags(TagLists::new()),
            "sequence_id" => Self::SequenceId(Vec::new()),
            "key" => Self::Key(Strings::new()),
            other => return Err(Error::schema(format!("HFile has no column `{other}`"))),
        })
    }

    fn extend(&mut self, block: &[u8], cells: &[CellRef]) -> Result<()> {
        let total = |len: fn(&CellRef) -> usize| cells.iter().map(len).sum();
        match self {
            Self::Row(strings) | Self::Key(strings) => {
                strings.extend(cells, total(|c| c.row_len.into()), |c| c.row(block));
            }
            Self::Family(strings) => {
                strings.extend(cells, total(|c| c.family_len.into()), |c| c.family(block))
            }
            Self::Qualifier(strings) => {
                strings.extend(cells, total(|c| c.key_len as usize), |c| c.qualifier(block))
            }
            Self::Value(strings) => {
                strings.extend(cells, total(|c| c.value_len as usize), |c| c.value(block))
            }
            Self::Timestamp(values) => values.extend(cells.iter().map(|c| c.timestamp(block))),
            Self::SequenceId(values) => values.extend(cells.iter().map(|c| c.sequence_id)),
            Self::Type(values) => values.extend(cells.iter().map(|c| c.kind(block))),
            Self::TypeName(strings) => {
                if let Some(kind) = cells.iter().map(|c| c.kind(block)).find(|k| type_name(*k).is_none()) {
                    return Err(Error::corrupt(format!(
                        "expected a cell type, found {kind}; `types=\"code\"` shows numbers"
                    )));
                }
                let word = |c: &CellRef| type_name(c.kind(block)).unwrap_or_default().as_bytes();
                strings.extend(cells, cells.len() * 4, word);
            }
            Self::Tags(lists) => lists.extend(block, cells)?,
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(match self {
            Self::Row(s) | Self::Family(s) | Self::Qualifier(s) | Self::Value(s) => Arc::new(s.binary()?),
            Self::Key(s) => Arc::new(s.text("key")?),
            Self::TypeName(s) => Arc::new(s.text("type")?),
            Self::Timestamp(v) | Self::SequenceId(v) => Arc::new(Int64Array::from(std::mem::take(v))),
            Self::Type(v) => Arc::new(UInt8Array::from(std::mem::take(v))),
            Self::Tags(lists) => Arc::new(lists.finish()?),
        })
    }
}

/// Collects cells into batches of some columns.
#[derive(Debug)]
pub struct Columns {
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
    /// Bytes of the cells taken since the last batch.
    bytes: usize,
    batch_rows: usize,
}

impl Columns {
    /// For the columns of `schema`, in batches of at most `batch_rows` rows.
    pub fn new(schema: SchemaRef, batch_rows: usize) -> Result<Self> {
        let column = |f: &Arc<Field>| Column::new(f.name(), f.data_type());
        let columns = schema.fields().iter().map(column).collect::<Result<_>>()?;
        Ok(Self { schema, columns, rows: 0, bytes: 0, batch_rows: batch_rows.max(1) })
    }

    /// Checks what copying would find wrong with the cells of a block.
    pub fn check(&self, block: &[u8], cells: &[CellRef]) -> Result<()> {
        for column in &self.columns {
            match column {
                Column::Key(_) if cells.iter().any(|c| simdutf8::basic::from_utf8(c.row(block)).is_err()) => {
                    return Err(Error::corrupt("key: expected UTF-8; `view=\"cells\"` shows the bytes"));
                }
                Column::Tags(_) => {
                    for cell in cells.iter().filter(|c| c.tags_len > 0) {
                        let mut tags = Tags::new(cell.tags(block));
                        while tags.next_tag()?.is_some() {}
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Appends cells of one block, as many as the batch takes; returns how many. None fit only into a batch that is
    /// full then.
    pub fn append(&mut self, block: &[u8], cells: &[CellRef]) -> Result<usize> {
        let most = self.batch_rows.saturating_sub(self.rows).min(cells.len());
        let mut taken = cells.get(..most).unwrap_or_default();
        let size = |cells: &[CellRef]| -> usize {
            cells.iter().map(|c| c.key_len as usize + c.value_len as usize + usize::from(c.tags_len)).sum()
        };
        let mut bytes = size(taken);
        // The values of a huge block are cut so that offsets of 32 bits reach.
        while taken.len() > 1
            && self.bytes.saturating_add(bytes) > BATCH_BYTES.max(block.len().min(BATCH_BYTES * 4)) * 2
        {
            taken = taken.get(..taken.len() / 2).unwrap_or_default();
            bytes = size(taken);
        }
        if self.rows > 0 && self.bytes.saturating_add(bytes) > MOST_BYTES {
            self.bytes = MOST_BYTES;
            return Ok(0);
        }
        for column in &mut self.columns {
            column.extend(block, taken)?;
        }
        self.rows += taken.len();
        self.bytes += bytes;
        Ok(taken.len())
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether a batch is to be handed out before more is appended.
    pub fn is_full(&self) -> bool {
        self.rows >= self.batch_rows || self.bytes >= BATCH_BYTES
    }

    /// Whether nothing was appended since the last batch.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The cells since the last batch.
    pub fn finish(&mut self) -> Result<RecordBatch> {
        let arrays = self.columns.iter_mut().map(Column::finish).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.bytes) = (0, 0);
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options).map_err(arrow_error)
    }
}
