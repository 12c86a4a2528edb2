//! The row groups that footers speak of: which file and which bytes each of their chunks has.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use coldframe_core::io::Folder;
use coldframe_core::{Error, ErrorContext, Limits, ReadAt, Result};

use crate::layout::metadata::{ColumnChunk, ColumnMetaData, RowGroup};
use crate::layout::thrift::Reader;
use crate::pages::visit::ChunkPlace;
use crate::schema::{Leaf, Schema};

/// Byte arrays of a chunk beyond this may be more than the offsets of one batch reach.
const LARGE: u64 = 1 << 30;
/// How much is read at first of metadata that stands at a chunk.
const METADATA_GUESS: u64 = 4096;

/// A file of the table.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name, if it is not the one that was opened.
    pub name: Option<String>,
    /// Its bytes.
    pub source: Arc<dyn ReadAt>,
    /// Where its footer begins, if that was read.
    pub footer: Option<Range<u64>>,
}

/// A column chunk and the part it is in.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Its part.
    pub source: usize,
    /// From its first page to whatever comes next in the file.
    pub range: Range<u64>,
    /// Its metadata, or why there is none.
    pub metadata: Result<ColumnMetaData, String>,
}

impl Chunk {
    /// Where its pages are; nowhere without metadata.
    pub(crate) fn place(&self) -> ChunkPlace {
        let values = self.metadata.as_ref().map_or(0, |m| m.num_values);
        ChunkPlace { bytes: self.range.clone(), num_values: u64::try_from(values).unwrap_or(0) }
    }

    /// Whether its byte arrays may be more than a batch can hold.
    pub fn is_large(&self) -> bool {
        let stated = self.metadata.as_ref().map_or(0, |m| m.total_uncompressed_size.unsigned_abs());
        self.range.end.saturating_sub(self.range.start).max(stated) > LARGE
    }
}

/// A row group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Which of the table.
    pub number: usize,
    /// The part of its first chunk.
    pub part: usize,
    /// Where its first chunk begins.
    pub start: u64,
    /// Where the last chunk in that part ends.
    pub end: u64,
    /// How many rows.
    pub rows: u64,
    /// One for each leaf.
    pub chunks: Vec<Chunk>,
}

impl Group {
    /// Its name in errors.
    pub fn name(&self) -> String {
        format!("row group {}", self.number)
    }
}

/// Parts and row groups while they are collected.
pub(super) struct Collect<'a> {
    pub(super) parts: Vec<Part>,
    by_name: BTreeMap<String, usize>,
    siblings: Option<&'a dyn Folder>,
    pub(super) limits: Limits,
    /// Of each group the chunks with their parts.
    groups: Vec<(RowGroup, Vec<usize>)>,
}

impl<'a> Collect<'a> {
    pub(super) fn new(siblings: Option<&'a dyn Folder>, limits: Limits) -> Self {
        Self { parts: Vec::new(), by_name: BTreeMap::new(), siblings, limits, groups: Vec::new() }
    }

    /// The part that a path names: the file beside the opened one that has its last component.
    pub(super) fn part(&mut self, path: &str) -> Result<usize> {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        if let Some(index) = self.by_name.get(name) {
            return Ok(*index);
        }
        let siblings = self.siblings.ok_or_else(|| {
            Error::unsupported(format!(
                "a table over several files ({name}) opened without the folder they are in"
            ))
        })?;
        let source = siblings.open(name).map_err(|e| e.in_file(name))?;
        self.parts.push(Part { name: Some(name.to_owned()), source, footer: None });
        self.by_name.insert(name.to_owned(), self.parts.len() - 1);
        Ok(self.parts.len() - 1)
    }

    /// Adds the row groups of a footer whose chunks without a path are in part `own`.
    pub(super) fn add(&mut self, groups: Vec<RowGroup>, own: usize) -> Result<()> {
        for group in groups {
            let parts = group.columns.iter().map(|c| match c.file_path.as_deref() {
                None | Some("") => Ok(own),
                Some(path) => self.part(path),
            });
            let parts = parts.collect::<Result<_>>()?;
            self.groups.push((group, parts));
        }
        Ok(())
    }
}

/// The row groups with the places of their chunks.
pub(super) fn groups(schema: &Schema, collect: &Collect<'_>) -> Result<Vec<Arc<Group>>> {
    let mut metadata = Vec::with_capacity(collect.groups.len());
    let mut starts: Vec<Vec<u64>> = vec![Vec::new(); collect.parts.len()];
    for (group, parts) in &collect.groups {
        let mut found = Vec::with_capacity(group.columns.len());
        for (chunk, part) in group.columns.iter().zip(parts) {
            let Some(part_file) = collect.parts.get(*part) else { continue };
            let own = chunk.meta_data.is_some();
            let chunk_metadata = chunk_metadata(chunk, part_file.source.as_ref(), &collect.limits)?;
            if let (Ok(m), Some(starts)) = (&chunk_metadata, starts.get_mut(*part)) {
                let places = [Some(m.data_page_offset), m.index_page_offset, Some(chunk.file_offset)];
                starts.extend(places.into_iter().flatten().filter_map(|at| u64::try_from(at).ok()));
            }
            found.push((chunk_metadata, *part, own));
        }
        metadata.push(found);
    }
    for (starts, part) in starts.iter_mut().zip(&collect.parts) {
        starts.push(part.footer.as_ref().map_or(part.source.len(), |f| f.start));
        starts.sort_unstable();
        starts.dedup();
    }
    let mut groups = Vec::with_capacity(metadata.len());
    for (number, (found, (group, _))) in metadata.into_iter().zip(&collect.groups).enumerate() {
        let name = || format!("row group {number}");
        let rows = u64::try_from(group.num_rows)
            .map_err(|_| Error::corrupt(format!("expected 0 rows or more, found {}", group.num_rows)))
            .within(name)?;
        let chunks: Vec<Chunk> = place_chunks(schema, found, &starts);
        let part = chunks.first().map_or(0, |c| c.source);
        let own = || chunks.iter().filter(|c| c.source == part && c.metadata.is_ok());
        let start = own().map(|c| c.range.start).min().unwrap_or(0);
        let end = own().map(|c| c.range.end).max().unwrap_or(start);
        groups.push(Arc::new(Group { number, part, start, end, rows, chunks }));
    }
    Ok(groups)
}

type Found = (Result<ColumnMetaData, String>, usize, bool);

/// One chunk for each leaf: by position where paths agree with it, else by path.
fn place_chunks(schema: &Schema, found: Vec<Found>, starts: &[Vec<u64>]) -> Vec<Chunk> {
    let fits = |m: &Result<ColumnMetaData, String>, leaf: &Leaf| {
        m.as_ref().is_ok_and(|m| m.path_in_schema == leaf.path)
    };
    let in_order = found.len() == schema.leaves.len()
        && found.iter().zip(&schema.leaves).all(|((m, ..), leaf)| m.is_err() || fits(m, leaf));
    let chunk = |leaf: &Leaf, found: Option<&Found>| {
        let Some((metadata, source, _)) = found else {
            let metadata = Err(format!("expected a chunk for `{}`, found none", leaf.name()));
            return Chunk { source: 0, range: 0..0, metadata };
        };
        let metadata = metadata.clone().and_then(|m| match m.physical_type == leaf.physical_type {
            true => Ok(m),
            false => Err(format!(
                "expected values of {}, found {}",
                leaf.physical_type.name(),
                m.physical_type.name()
            )),
        });
        let start = metadata.as_ref().map_or(0, |m| m.data_page_offset);
        let metadata =
            metadata.and_then(|m| match u64::try_from(m.data_page_offset).is_ok() && m.num_values >= 0 {
                true => Ok(m),
                false => Err(format!("expected an offset and a count, found {start} and {}", m.num_values)),
            });
        let start = u64::try_from(start).unwrap_or(0);
        let ends = starts.get(*source).map(Vec::as_slice).unwrap_or_default();
        let end = ends.get(ends.partition_point(|at| *at <= start)).copied().unwrap_or(start);
        Chunk { source: *source, range: start..end.max(start), metadata }
    };
    let places = schema.leaves.iter().enumerate();
    places
        .map(|(i, leaf)| {
            let found = if in_order { found.get(i) } else { found.iter().find(|(m, ..)| fits(m, leaf)) };
            chunk(leaf, found)
        })
        .collect()
}

/// A chunk's metadata from the footer or, where that has none, from the chunk. Damage costs only the chunk.
fn chunk_metadata(
    chunk: &ColumnChunk,
    source: &dyn ReadAt,
    limits: &Limits,
) -> Result<Result<ColumnMetaData, String>> {
    if let Some(metadata) = &chunk.meta_data {
        return Ok(Ok(metadata.clone()));
    }
    let start = u64::try_from(chunk.file_offset).unwrap_or(u64::MAX).min(source.len());
    let mut want = METADATA_GUESS;
    loop {
        let end = start.saturating_add(want).min(source.len());
        let bytes = source.read(start..end)?;
        match ColumnMetaData::decode(&mut Reader::new(&bytes, start, limits)) {
            Ok(metadata) => return Ok(Ok(metadata)),
            Err(_) if end < source.len() && want < limits.max_metadata_bytes.min(1 << 20) => want *= 16,
            Err(e) if e.is_damage() => return Ok(Err(format!("column metadata: {e}"))),
            Err(e) => return Err(e),
        }
    }
}
