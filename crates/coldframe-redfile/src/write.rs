//! Writes Redfiles: as the last commit of the reference writes them (`redelm-f`), or as the README of the
//! format describes them (`spec`).
//!
//! ```text
//! file       | "RED1" | row group .. | [sync] FileMetaData | its length u32 LE | "RED1" |
//! row group  | column chunk ..  | [sync FileMetaData length "RED1"] |
//! chunk      | page .. | [ColumnMetaData] |
//! ```
//!
//! | | `redelm-f` | `spec` |
//! |---|---|---|
//! | levels of a page | repetition, then definition with its length | definition, then repetition |
//! | after a chunk | nothing | its ColumnMetaData |
//! | ColumnChunk's `file_offset` | the first page | the ColumnMetaData |
//! | RowGroup's `total_byte_size` | 0 | bytes of the pages before compression |
//! | no rows | one row group without pages | no row group |
//!
//! A `redelm-f` file has the same bytes as the reference writes for the same rows, as far as its codec is
//! deterministic. [`column`] describes where pages end. A row group ends after the row at which a check finds
//! more than `row_group_bytes`; `size_check` describes when checks are made. There is one exception: if the
//! last row ends a row group, the reference appends a row group without rows, which its own reader does not
//! accept.
//!
//! # Intermediate footers
//!
//! `footer_every` implements the README's "Potential extension": after every n row groups the writer adds a sync marker
//! of 16 bytes and a footer of all row groups so far, in the form of the last footer. The file up to the end of any
//! footer is then a complete file, and a reader of a truncated file searches for its last footer. The marker is random
//! for each file. The metadata of each footer states the marker (32 hexadecimal digits under the key
//! `coldframe.sync`), and bytes count as a footer if the marker in their metadata precedes them. Other
//! readers read the last footer and ignore the bytes between row groups.
//!
//! Sources: the README and the Thrift definitions of 2013, the sources of the reference's commit b598378e0 and the
//! bytes of files that it wrote. Only the current row group is held in memory.

mod column;
mod definition;
mod dense;
mod group_varint;
mod options;
mod prepare;
mod shred;
mod size_check;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io::Write;

use arrow_array::{ArrayRef, RecordBatch};
use coldframe_core::BatchWriter;
use coldframe_core::writing::{Failed, check_column_count};
use coldframe_encoding::hash::sync_marker;
use coldframe_encoding::{Error, Limits, Result};

pub use self::options::{Codec, Dialect, Encoding, WriteOptions};

use self::column::{Column, Pages};
use self::shred::{Leaf, Node};
use self::size_check::SizeCheck;
use crate::layout::footer::{MAGIC, SYNC_KEY};
use crate::layout::metadata::{self, FileMetaData, KeyValue, RowGroup};
use crate::schema::{self, NodeKind, Schema};

/// Writes one file.
pub struct Writer<W> {
    sink: W,
    position: u64,
    schema: Schema,
    nodes: Vec<Node>,
    columns: Vec<Column>,
    pages: Pages,
    size_check: SizeCheck,
    /// The number of rows in the current row group.
    rows: u64,
    footer: FileMetaData,
    /// The offset at which the last written footer ends.
    footer_end: u64,
    sync: Option<[u8; 16]>,
    options: WriteOptions,
    failed: Failed,
}

impl<W> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("position", &self.position)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Creates a writer, and writes the magic bytes.
    pub fn new(mut sink: W, schema: &arrow_schema::Schema, options: WriteOptions) -> Result<Self> {
        if options.footer_every == Some(0) {
            return Err(Error::invalid("option `footer_every`: expected 1 or more, found 0"));
        }
        let schema = Schema::from_arrow(&options.schema_name, schema, &Limits::default())?;
        if schema.leaves.is_empty() {
            return Err(Error::schema("a Redfile needs at least one column"));
        }
        check_names("the schema", &schema.fields)?;
        let sync = options.footer_every.map(|_| sync_marker(options.sync_seed));
        let pairs = options.metadata.iter().map(|(key, value)| (key.as_str(), value.clone()));
        let pairs = pairs.chain(sync.map(|s| (SYNC_KEY, Some(format!("{:032x}", u128::from_be_bytes(s))))));
        let key_value_metadata = pairs.map(|(key, value)| KeyValue {
            key: key.as_bytes().to_vec(),
            value: value.map(String::into_bytes),
        });
        let footer = FileMetaData {
            version: 1,
            schema: schema.elements(),
            num_rows: 0,
            row_groups: Vec::new(),
            key_value_metadata: key_value_metadata.collect(),
        };
        let columns = schema.leaves.iter().map(|leaf| Column::new(leaf, options.encoding)).collect();
        let pages = Pages::new(&options)?;
        sink.write_all(MAGIC)?;
        Ok(Self {
            sink,
            position: 4,
            nodes: schema.fields.iter().map(Node::of).collect(),
            schema,
            columns,
            pages,
            size_check: SizeCheck::new(options.row_group_bytes),
            rows: 0,
            footer,
            footer_end: 0,
            sync,
            options,
            failed: Failed::default(),
        })
    }

    /// Appends rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.failed.check()?;
        let written = self.write_batch(batch);
        self.failed.keep(written)
    }

    fn write_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        check_column_count(batch, self.nodes.len())?;
        let step = rows_at_once(batch, &self.columns);
        let mut start = 0;
        while start < batch.num_rows() {
            let (arrays, rows) = self.prepare(batch, start, step.min(batch.num_rows() - start))?;
            self.write_rows(&arrays, start, rows)?;
            start += rows;
        }
        Ok(())
    }

    /// Converts the columns of the next `rows` rows to the types that are written. Takes fewer rows if a conversion
    /// fails or exceeds Arrow's offsets, so that an error concerns a single row.
    fn prepare(&self, batch: &RecordBatch, start: usize, mut rows: usize) -> Result<(Vec<ArrayRef>, usize)> {
        loop {
            let fields = self.schema.arrow.fields().iter();
            let arrays = fields.zip(batch.columns()).map(|(field, array)| {
                let slice = if rows == array.len() { array.clone() } else { array.slice(start, rows) };
                prepare::prepare(&slice, field.data_type())
                    .map_err(|e| e.within(format!("column `{}`: row {start} of the batch", field.name())))
            });
            match arrays.collect() {
                Err(_) if rows > 1 => rows /= 2,
                arrays => return arrays.map(|arrays| (arrays, rows)),
            }
        }
    }

    /// Appends all `rows` rows of `arrays`; the first row is row `start` of the batch.
    fn write_rows(&mut self, arrays: &[ArrayRef], start: usize, rows: usize) -> Result<()> {
        let mut leaves = Vec::with_capacity(self.columns.len());
        for ((node, array), field) in self.nodes.iter().zip(arrays).zip(self.schema.arrow.fields()) {
            let shredded = shred::shred(node, array, start);
            leaves.extend(shredded.map_err(|e| e.within(format!("column `{}`", field.name())))?);
        }
        let mut places = vec![LeafPosition::default(); leaves.len()];
        let mut left = rows;
        while left > 0 {
            let step = self.rows_before_check(&leaves, &places, left);
            for ((column, leaf), place) in self.columns.iter_mut().zip(&leaves).zip(&mut places) {
                let entries = place.entry..entry_of_row(leaf, place.entry, step, step == left);
                place.entry = entries.end;
                place.value = column.append(leaf, entries, place.value, &mut self.pages)?;
            }
            left -= step;
            self.rows += step as u64;
            let counted = || self.columns.iter().map(|c| c.counted_bytes() as u64).sum();
            if self.size_check.is_full(self.rows, counted) || self.rows >= self.options.row_group_rows.max(1)
            {
                self.write_row_group()?;
            }
        }
        Ok(())
    }

    /// How many of the next `left` rows may be appended before the next check.
    fn rows_before_check(&self, leaves: &[Leaf<'_>], places: &[LeafPosition], left: usize) -> usize {
        let max = self.options.row_group_rows.saturating_sub(self.rows).max(1);
        let max = usize::try_from(max).unwrap_or(usize::MAX).min(left);
        if let Some(rows) = self.size_check.rows_left(self.rows) {
            return usize::try_from(rows).unwrap_or(usize::MAX).min(max);
        }
        // A check is due after each row; it is left out for rows that certainly do not exceed the limit.
        let counted: u64 = self.columns.iter().map(|c| c.counted_bytes() as u64).sum();
        let room = self.options.row_group_bytes.saturating_sub(counted);
        let mut rows = 1;
        while rows < max && max_added(leaves, places, rows * 2) <= room {
            rows *= 2;
        }
        rows.min(max)
    }

    /// Writes the current row group.
    fn write_row_group(&mut self) -> Result<()> {
        let mut group = RowGroup { num_rows: self.rows.cast_signed(), ..RowGroup::default() };
        for i in 0..self.columns.len() {
            let Some(column) = self.columns.get_mut(i) else { break };
            let metadata = column.finish(self.position, &mut self.pages)?;
            self.sink.write_all(column.chunk())?;
            self.position = self.position.saturating_add(column.chunk().len() as u64);
            column.clear();
            let mut file_offset = metadata.data_page_offset;
            if self.options.dialect == Dialect::Spec {
                file_offset = self.position.cast_signed();
                group.total_byte_size += metadata.total_uncompressed_size;
                self.put(&metadata.encode())?;
            }
            group.columns.push(metadata::ColumnChunk {
                file_path: None,
                file_offset,
                meta_data: Some(metadata),
            });
        }
        self.footer.num_rows += group.num_rows;
        self.footer.row_groups.push(group);
        self.rows = 0;
        if self.options.footer_every.is_some_and(|n| self.footer.row_groups.len().is_multiple_of(n)) {
            self.write_footer()?;
        }
        Ok(())
    }

    fn write_footer(&mut self) -> Result<()> {
        if let Some(sync) = self.sync {
            self.put(&sync)?;
        }
        let footer = self.footer.encode();
        let length = footer_length(footer.len())?;
        self.put(&footer)?;
        self.put(&length.to_le_bytes())?;
        self.put(MAGIC)?;
        self.footer_end = self.position;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write_all(bytes)?;
        self.position = self.position.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Writes the last row group and the footer, and flushes. Returns the sink and the file's length.
    pub fn finish(mut self) -> Result<(W, u64)> {
        self.failed.check()?;
        let none = self.footer.row_groups.is_empty() && self.options.dialect == Dialect::RedelmF;
        if self.rows > 0 || none {
            self.write_row_group()?;
        }
        if self.footer_end != self.position {
            self.write_footer()?;
        }
        self.sink.flush()?;
        Ok((self.sink, self.position))
    }
}

impl<W: Write + Send> BatchWriter for Writer<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        Self::write(self, batch)
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        Self::finish(*self).map(|(_, length)| length)
    }
}

/// The length of a footer; an error if readers do not accept that length by default, which limits the number
/// of row groups of a file.
fn footer_length(len: usize) -> Result<u32> {
    let max = Limits::default().max_metadata_bytes;
    let length = u32::try_from(len).ok().filter(|len| u64::from(*len) <= max);
    length.ok_or_else(|| {
        Error::invalid(format!(
            "a footer of {len} bytes, but readers accept only {max} by default: larger row groups make it shorter"
        ))
    })
}

/// Fails for columns or struct fields with the same name, because readers of the format identify them by
/// name.
fn check_names(parent: &str, nodes: &[schema::Node]) -> Result<()> {
    let mut names = HashSet::new();
    for node in nodes {
        if !names.insert(node.name.as_str()) {
            return Err(Error::schema(format!(
                "{parent}: expected columns of different names, found two of the name `{}`",
                node.name
            )));
        }
        if let NodeKind::Group(children) = &node.kind {
            check_names(&format!("column `{}`", node.name), children)?;
        }
    }
    Ok(())
}

/// How much of a leaf has been written.
#[derive(Clone, Copy, Debug, Default)]
struct LeafPosition {
    entry: usize,
    value: usize,
}

/// The index of the entry after the next `rows` rows, which begin with entry `from`.
fn entry_of_row(leaf: &Leaf<'_>, from: usize, rows: usize, all: bool) -> usize {
    match &leaf.repetition {
        _ if all => leaf.entries,
        None => (from + rows).min(leaf.entries),
        Some(levels) => {
            let levels = levels.get(from..).unwrap_or_default();
            let mut starts = levels.iter().enumerate().filter(|(_, level)| **level == 0);
            starts.nth(rows).map_or(leaf.entries, |(i, _)| from + i)
        }
    }
}

/// An upper bound for how much the next `rows` rows increase the counted size.
fn max_added(leaves: &[Leaf<'_>], places: &[LeafPosition], rows: usize) -> u64 {
    let leaves = leaves.iter().zip(places).map(|(leaf, place)| {
        let entries = entry_of_row(leaf, place.entry, rows, false) - place.entry;
        let last = (place.value + entries).min(leaf.values.len());
        (entries + 1) * column::PAGE_OVERHEAD + leaf.values.end(last) - leaf.values.end(place.value)
    });
    leaves.sum::<usize>() as u64
}

/// How many rows are converted to levels together: few enough that the levels stay in the processor's cache.
/// If there are no levels, values are only copied, and it is best to fill whole pages.
fn rows_at_once(batch: &RecordBatch, columns: &[Column]) -> usize {
    if columns.iter().all(Column::is_copied) {
        return batch.num_rows().max(1);
    }
    const MAX_ROWS: usize = 16 << 10;
    const BYTES: usize = 16 << 20;
    let repeated: usize = batch.columns().iter().map(|array| prepare::longest_repeated(array)).sum();
    let row = batch.get_array_memory_size() / batch.num_rows().max(1) + repeated;
    (BYTES / row.max(1)).clamp(1, MAX_ROWS)
}
