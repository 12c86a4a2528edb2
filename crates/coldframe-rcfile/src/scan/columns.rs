//! Creates the decoders of a scan's columns, which all row groups share.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, BinaryArray};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use coldframe_core::{Limits, Result, arrow_error};
use coldframe_encoding::codec::Decompressor;
use coldframe_encoding::codec::hadoop::HadoopCodec;

use crate::layout::key::ColumnKey;
use crate::serde::expansion::empty_bytes;
use crate::serde::{Cells, ColumnDecoder};

/// How one column is decoded.
pub(crate) struct ScanColumn {
    /// The index of the column in the file; `None` for a column that the file lacks, whose values are null.
    pub(crate) in_file: Option<usize>,
    /// The name of the column, for errors.
    pub(crate) name: String,
    /// The Arrow type of the column.
    pub(crate) data_type: DataType,
    /// The decoder of the SerDe.
    pub(crate) decoder: Arc<dyn ColumnDecoder>,
}

impl ScanColumn {
    /// The name of the column in errors.
    pub(super) fn title(&self) -> String {
        match self.in_file {
            Some(i) => format!("column {i} (`{}`)", self.name),
            None => format!("column `{}`", self.name),
        }
    }
}

/// How the requested columns are decoded.
pub(crate) struct Decoders {
    pub(super) columns: Vec<ScanColumn>,
    pub(super) schema: SchemaRef,
    codec: Option<HadoopCodec>,
    pub(super) limits: Limits,
    /// Whether a row group must be decoded in one piece, whatever the batch size.
    pub(super) at_once: bool,
    /// Arrow bytes of a row whose cells are all empty.
    pub(super) row_bytes: u64,
    scratch: Mutex<Scratch>,
}

/// Buffers and codec state, reused from one row group to the next.
#[derive(Default)]
struct Scratch {
    decompressor: Decompressor,
    buffers: Vec<Vec<u8>>,
}

impl Decoders {
    /// Creates the decoders for the columns of `schema`, in its order.
    pub(crate) fn new(
        columns: Vec<ScanColumn>,
        schema: SchemaRef,
        codec: Option<HadoopCodec>,
        limits: Limits,
        at_once: bool,
    ) -> Self {
        // Four bytes for the expanded end of each cell.
        let row_bytes = columns.iter().map(|c| empty_bytes(&c.data_type) + 4).sum::<u64>().max(1);
        Self { columns, schema, codec, limits, at_once, row_bytes, scratch: Mutex::default() }
    }

    /// Whether no column is decoded.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Indexes of the columns in the file, in the order in which they are fetched.
    pub(super) fn file_columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.columns.iter().filter_map(|c| c.in_file)
    }

    /// Whether a changed byte of a column may change many cells and stay unnoticed: the codec has no checksums.
    pub(super) fn spreads_damage(&self) -> bool {
        self.codec.is_some_and(|codec| !codec.is_summed())
    }

    /// Whether the bytes of a column are stored as they are.
    pub(super) fn is_plain(&self) -> bool {
        self.codec.is_none()
    }

    /// Whether a row group may have this many rows.
    pub(super) fn allows_rows(&self, rows: u64) -> bool {
        self.limits.counted_rows("a row group", rows).is_ok()
    }

    /// A column's decompressed bytes.
    pub(super) fn decompress(&self, key: &ColumnKey, disk: &Bytes) -> Result<Buffer> {
        let Some(codec) = &self.codec else { return Ok(Buffer::from(disk.clone())) };
        let most = codec.algorithm.max_expansion(disk.len()) as u64;
        let len = self.limits.unpacked("a column of a row group", key.data_len, most)?;
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = scratch.buffers.pop().unwrap_or_default();
        out.clear();
        codec.decompress_exact(&mut scratch.decompressor, disk, len, &mut out)?;
        Ok(Buffer::from_vec(out))
    }

    /// Keeps a buffer for reuse; a buffer that an array shares is not kept.
    pub(super) fn recycle(&self, buffer: Buffer) {
        if self.codec.is_some()
            && let Ok(bytes) = buffer.into_vec::<u8>()
        {
            self.scratch.lock().unwrap_or_else(PoisonError::into_inner).buffers.push(bytes);
        }
    }
}

/// The raw cells of a file without a SerDe.
pub(crate) struct RawCells;

impl ColumnDecoder for RawCells {
    fn decode(&self, cells: &Cells) -> Result<ArrayRef> {
        let nulls = cells.nulled.then(|| NullBuffer::new_null(cells.offsets.len() - 1));
        let array = BinaryArray::try_new(cells.offsets.clone(), cells.data.clone(), nulls);
        Ok(Arc::new(array.map_err(arrow_error)?))
    }
}
