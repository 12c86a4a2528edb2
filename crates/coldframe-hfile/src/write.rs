//! Writes HFiles of version 3, minor 3, as HBase 2 does: for loading into a table, or for Hudi.
//!
//! ```text
//! file | data block, leaf index block, bloom chunk .. | meta block .. | intermediate index block .. |
//!      | root data index | meta index | file info | bloom meta .. | trailer, 4096 bytes |
//! ```
//!
//! * A data block ends once its cells have at least `block_size` bytes in plain form, but cells with equal
//!   keys stay in one block. After the block, the index leaf and bloom chunks that are full are written.
//! * Cells always have a sequence id; they have tags if the data has a column of tags.
//! * The index key of a block is a short key between the last key of the previous block and the block's first
//!   key, as in HBase. For Hudi it is the first key, since Hudi's readers locate blocks by the content of the
//!   key.
//! * Rows must be sorted; the first row that is out of order is an error.
//!
//! | module | makes |
//! |---|---|
//! | [`input`] | cells from record batches |
//! | [`key`] | keys and their order |
//! | [`encoder`] | the content of data blocks |
//! | [`blocks`] | header, compression, checksums |
//! | [`index`], [`bloom`], [`info`] | index, bloom filters, file info |
//!
//! The writer keeps in memory one data block and an index entry for each leaf. It follows HBase's
//! `HFileWriterImpl`, `StoreFileWriter` and `HFileOutputFormat2`, and the bytes of files that they wrote.

mod blocks;
mod bloom;
mod encoder;
mod index;
mod info;
mod input;
mod key;
mod options;

use std::cmp::Ordering;
use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use coldframe_core::writing::Failed;
use coldframe_core::{BatchWriter, Error, Result};
use coldframe_encoding::codec::Algorithm;
use prost::Message;

use self::options::Settings;
pub use self::options::{BloomKind, CellEncoding, Checksum, Codec, WriteOptions};

use self::blocks::Blocks;
use self::bloom::Bloom;
use self::encoder::Encoder;
use self::index::{FlatIndex, Index, Summary};
use self::info::Tally;
use self::input::Input;
use self::key::Key;
use crate::layout::block::BlockType;
use crate::layout::cell::Cell;
use crate::layout::proto::FileTrailerProto;
use crate::layout::trailer;
use crate::options::View;

/// The comparator that HBase 2 states for compatibility with HBase 1.
const CELL_COMPARATOR: &str = "org.apache.hadoop.hbase.KeyValue$KVComparator";
/// The comparator in all Hudi files, whichever of Hudi's two writers wrote them.
const HUDI_COMPARATOR: &str = "org.apache.hudi.io.storage.HoodieHBaseKVComparator";
/// The maximum size of a block with equal keys: by default readers accept no larger blocks.
const MAX_BLOCK_BYTES: usize = 1 << 30;

/// The minimum for Hudi. With fewer bytes per checksum, blocks have so many checksums that hudi-io takes them
/// for data, and drops the records at the end of a block.
const HUDI_BYTES_PER_CHECKSUM: usize = 16 << 10;

/// Writes one file.
pub(crate) struct Writer<W> {
    blocks: Blocks<W>,
    input: Arc<Input>,
    encoder: Encoder,
    index: Index,
    /// The filter of rows or columns, followed by the filter of rows with a deleted family.
    blooms: Vec<Bloom>,
    tally: Tally,
    key: Key,
    last: Key,
    /// The index key of the current data block.
    block_key: Vec<u8>,
    bloom_key: Vec<u8>,
    tags: Vec<u8>,
    first_block: Option<u64>,
    last_block: Option<u64>,
    options: Settings,
    failed: Failed,
}

impl<W> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("cells", &self.tally.cells).finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// A writer that has not written anything yet.
    pub(crate) fn new(sink: W, schema: &Schema, mut options: Settings) -> Result<Self> {
        let input = Arc::new(Input::new(schema, &options)?);
        options.view = Some(input.view);
        let mut blooms = Vec::new();
        if input.view == View::KeyValue {
            check_hudi(&options)?;
        } else if options.bloom != BloomKind::None {
            let (size, rate) = (options.bloom_block_size, options.bloom_error_rate);
            let of_columns = options.bloom == BloomKind::RowColumn;
            blooms.push(Bloom::new(BlockType::BloomMeta, of_columns, size, rate)?);
            if !of_columns {
                blooms.push(Bloom::new(BlockType::DeleteFamilyBloomMeta, false, size, rate)?);
            }
        }
        Ok(Self {
            encoder: Encoder::new(options.encoding, input.with_tags),
            index: Index::new(options.index_block_size, options.index_min_entries),
            blocks: Blocks::new(sink, options.clone()),
            input,
            blooms,
            tally: Tally::new(),
            key: Key::default(),
            last: Key::default(),
            block_key: Vec::new(),
            bloom_key: Vec::new(),
            tags: Vec::new(),
            first_block: None,
            last_block: None,
            options,
            failed: Failed::default(),
        })
    }

    /// Appends rows.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.failed.check()?;
        let input = Arc::clone(&self.input);
        let mut tags = std::mem::take(&mut self.tags);
        let written = input.cells(batch).and_then(|cells| {
            (0..batch.num_rows()).try_for_each(|i| {
                let row = self.tally.cells;
                let cell = cells.get(i, &mut tags).map_err(|e| e.within(format!("row {row}")))?;
                self.push(&cell)
            })
        });
        self.tags = tags;
        self.failed.keep(written)
    }

    fn push(&mut self, cell: &Cell<'_>) -> Result<()> {
        std::mem::swap(&mut self.key, &mut self.last);
        let row = self.tally.cells;
        self.key.set(cell).map_err(|e| e.within(format!("row {row}")))?;
        if row > 0 {
            let order = self.last.order(&self.key);
            self.check_order(order)?;
            if order != Ordering::Equal && self.encoder.plain_bytes() >= self.options.block_size {
                self.end_block(false)?;
            } else if self.encoder.plain_bytes() > MAX_BLOCK_BYTES {
                let key = self.key.describe();
                return Err(Error::invalid(format!("row {row}: cells of equal keys fill 1 GiB: {key}")));
            }
        }
        if self.encoder.is_empty() {
            self.block_key = match self.is_hudi() || row == 0 {
                true => self.key.bytes().to_vec(),
                false => key::between(&self.last, &self.key)?,
            };
        }
        self.encoder.push(cell, &self.key, &self.last)?;
        self.tally.push(cell, &self.key);
        self.push_blooms(cell);
        Ok(())
    }

    fn is_hudi(&self) -> bool {
        self.options.view == Some(View::KeyValue)
    }

    fn check_order(&self, order: Ordering) -> Result<()> {
        let row = self.tally.cells;
        if order == Ordering::Greater {
            let (key, last) = (self.key.describe(), self.last.describe());
            let rule = "row, family, qualifier, newest timestamp first, highest type first";
            return Err(Error::invalid(format!(
                "row {row} is out of order: {key} sorts before row {}, {last}; cells are ordered by {rule}",
                row - 1
            )));
        }
        if self.encoder.single_family() && self.key.family() != self.last.family() {
            let families = [&self.last, &self.key].map(|k| k.family().escape_ascii().to_string());
            return Err(Error::invalid(format!(
                "row {row} has the family {:?} after {:?}: this encoding allows one family per file",
                families[1], families[0]
            )));
        }
        Ok(())
    }

    fn push_blooms(&mut self, cell: &Cell<'_>) {
        let mut blooms = self.blooms.iter_mut();
        match (blooms.next(), self.options.bloom) {
            (Some(bloom), BloomKind::RowColumn) => {
                self.bloom_key.clear();
                key::put_column_key(cell.row, cell.qualifier, &mut self.bloom_key);
                bloom.push(&self.bloom_key);
            }
            (Some(bloom), _) => bloom.push(cell.row),
            (None, _) => {}
        }
        if let Some(bloom) = blooms.next().filter(|_| info::deletes_family(cell.kind)) {
            bloom.push(cell.row);
        }
    }

    /// Writes the current data block, then the index leaf and the bloom chunks that are full.
    fn end_block(&mut self, last: bool) -> Result<()> {
        if !self.encoder.is_empty() {
            let block_type = self.encoder.block_type();
            let place = self.blocks.write(block_type, self.encoder.end()?)?;
            self.first_block.get_or_insert(place.offset);
            self.last_block = Some(place.offset);
            self.index.push(std::mem::take(&mut self.block_key), place);
            self.encoder.begin();
        }
        self.index.write_leaf(&mut self.blocks, last)?;
        self.blooms.iter_mut().try_for_each(|bloom| bloom.write_chunks(&mut self.blocks, last))
    }

    /// Writes everything that follows the cells, and flushes. Returns the sink and the file's length.
    pub(crate) fn finish(mut self) -> Result<(W, u64)> {
        self.failed.check()?;
        self.end_block(true)?;
        let mut meta_index = FlatIndex::default();
        for (name, content) in &self.options.meta_blocks {
            let place = self.blocks.write(BlockType::Meta, content)?;
            meta_index.push(name.clone(), place);
        }
        let index = self.index.finish(&mut self.blocks)?;
        let mut content = Vec::new();
        meta_index.put(&mut content);
        self.blocks.write(BlockType::RootIndex, &content)?;
        let last = (self.tally.cells > 0).then_some(&self.key);
        let info = self.tally.to_block(last, &self.options, self.input.with_tags, self.blooms.first())?;
        let info = self.blocks.write(BlockType::FileInfo, &info)?;
        self.blooms.iter().try_for_each(|bloom| bloom.write_meta(&mut self.blocks))?;
        let message = FileTrailerProto {
            file_info_offset: Some(info.offset),
            first_data_block_offset: Some(self.first_block.unwrap_or(u64::MAX)),
            last_data_block_offset: Some(self.last_block.unwrap_or(u64::MAX)),
            entry_count: Some(self.tally.cells),
            meta_index_count: u32::try_from(meta_index.len()).ok(),
            total_uncompressed_bytes: Some(self.blocks.raw_bytes().saturating_add(trailer::MAX_LEN)),
            compression_codec: Some(self.options.codec_ordinal()),
            comparator_class_name: Some(match self.input.view {
                View::KeyValue => HUDI_COMPARATOR.to_owned(),
                View::Cells => CELL_COMPARATOR.to_owned(),
            }),
            ..of_index(&index)
        };
        self.blocks.finish(&trailer_of(&message)?)
    }
}

fn of_index(index: &Summary) -> FileTrailerProto {
    FileTrailerProto {
        load_on_open_data_offset: Some(index.root),
        uncompressed_data_index_size: Some(index.raw_bytes),
        data_index_count: u32::try_from(index.root_entries).ok(),
        num_data_index_levels: Some(index.levels),
        ..FileTrailerProto::default()
    }
}

/// The trailer of version 3, minor 3.
fn trailer_of(message: &FileTrailerProto) -> Result<Vec<u8>> {
    const VERSION: u32 = 3 << 24 | 3;
    let len = usize::try_from(trailer::MAX_LEN).unwrap_or(4096);
    let mut out = Vec::with_capacity(len);
    out.extend_from_slice(trailer::MAGIC);
    message.encode_length_delimited(&mut out).map_err(|e| Error::invalid(format!("trailer: {e}")))?;
    out.resize(len - 4, 0);
    out.extend_from_slice(&VERSION.to_be_bytes());
    Ok(out)
}

/// Fails if Hudi's readers could not read the file.
fn check_hudi(options: &Settings) -> Result<()> {
    if let Some(codec) = options.codec.filter(|c| c.algorithm != Algorithm::Gzip) {
        return Err(Error::unsupported(format!(
            "codec {} in a file for Hudi, which reads gz only",
            codec.algorithm
        )));
    }
    if options.bytes_per_checksum < HUDI_BYTES_PER_CHECKSUM {
        let bytes = options.bytes_per_checksum;
        let message = format!(
            "{bytes} bytes per checksum in a file for Hudi, which loses records with fewer than 16384"
        );
        return Err(Error::unsupported(message));
    }
    if let Some(encoding) = options.encoding {
        let message = format!("encoding {} in a file for Hudi, which reads none", encoding.name());
        return Err(Error::unsupported(message));
    }
    Ok(())
}

impl<W: Write + Send> BatchWriter for Writer<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        Self::write(self, batch)
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        Self::finish(*self).map(|(_, length)| length)
    }
}
