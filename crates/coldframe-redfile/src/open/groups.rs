//! The row groups that footers describe: the file and the byte range of each of their chunks.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use coldframe_core::io::Folder;
use coldframe_core::{Error, ErrorContext, Limits, ReadAt, Result};

use crate::layout::metadata::{ColumnChunk, ColumnMetaData, RowGroup};
use crate::layout::thrift::Reader;
use crate::pages::visit::ChunkPlace;
use crate::schema::Schema;

/// How many bytes of a chunk's own metadata are read first.
const METADATA_GUESS: u64 = 4096;

/// A file of the table.
#[derive(Clone, Debug)]
pub(crate) struct DataFile {
    /// The name of the file; `None` for the file that was opened.
    pub(crate) name: Option<String>,
    /// Its bytes.
    pub(crate) source: Arc<dyn ReadAt>,
    /// The range of the file's footer, if that was read.
    pub(crate) footer: Option<Range<u64>>,
}

/// A column chunk and the file that contains it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Chunk {
    /// The index of the chunk's file.
    pub source: usize,
    /// The bytes from the chunk's first page to the next structure in the file.
    pub range: Range<u64>,
    /// The chunk's metadata, or why there is no metadata.
    pub metadata: Result<ColumnMetaData, String>,
}

impl Chunk {
    /// Where the chunk's pages are; empty if there is no metadata.
    pub(crate) fn place(&self) -> ChunkPlace {
        let values = self.metadata.as_ref().map_or(0, |m| m.num_values);
        ChunkPlace { bytes: self.range.clone(), num_values: u64::try_from(values).unwrap_or(0) }
    }

    /// Subtracts the chunk's bytes from a budget that is larger than all files. A chunk that exceeds the
    /// budget is damaged, because otherwise the same pages could be listed for many chunks and be read for
    /// each of them. Which of two such chunks is wrong can be seen only from the pages.
    fn charge(&mut self, left: &mut u64) {
        if self.metadata.is_err() {
            return;
        }
        match left.checked_sub(self.range.end.saturating_sub(self.range.start)) {
            Some(rest) => *left = rest,
            None => {
                self.metadata = Err("expected pages of one chunk, found pages that chunks share".to_owned());
            }
        }
    }

    /// The uncompressed bytes of the chunk's values according to the metadata, but at most the size to which
    /// the stored bytes can expand.
    pub(crate) fn unpacked(&self) -> u64 {
        /// More than the factor by which any codec of the format can expand data.
        const MAX_EXPANSION: u64 = 1040;
        let stored = self.range.end.saturating_sub(self.range.start);
        let declared = self.metadata.as_ref().map_or(0, |m| m.total_uncompressed_size.unsigned_abs());
        stored.max(declared.min(stored.saturating_mul(MAX_EXPANSION)))
    }
}

/// A row group.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Group {
    /// The group's index in the table.
    pub number: usize,
    /// The index of the file with the group's first chunk.
    pub part: usize,
    /// The offset at which the first chunk begins.
    pub start: u64,
    /// The offset at which the last chunk in that file ends.
    pub end: u64,
    /// Number of rows.
    pub rows: u64,
    /// The chunks, one for each leaf.
    pub chunks: Vec<Chunk>,
}

impl Group {
    /// The group's name in errors.
    pub fn name(&self) -> String {
        format!("row group {}", self.number)
    }
}

/// Collects files and row groups.
pub(super) struct Collect<'a> {
    pub(super) parts: Vec<DataFile>,
    by_name: BTreeMap<String, usize>,
    siblings: Option<&'a dyn Folder>,
    limits: Limits,
    /// The groups, and the file of each of their chunks.
    groups: Vec<(RowGroup, Vec<usize>)>,
}

impl<'a> Collect<'a> {
    pub(super) fn new(siblings: Option<&'a dyn Folder>, limits: Limits) -> Self {
        Self { parts: Vec::new(), by_name: BTreeMap::new(), siblings, limits, groups: Vec::new() }
    }

    /// Total bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |n, p| n.saturating_add(p.source.len()))
    }

    /// The file for a path: it is beside the opened file and has the last component of the path as its name.
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
        self.parts.push(DataFile { name: Some(name.to_owned()), source, footer: None });
        self.by_name.insert(name.to_owned(), self.parts.len() - 1);
        Ok(self.parts.len() - 1)
    }

    /// Adds the row groups of a footer whose chunks without a path are in file `own`.
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

    /// The files, and the row groups with the byte ranges of their chunks.
    pub(super) fn groups(self, schema: &Schema) -> Result<(Vec<DataFile>, Vec<Arc<Group>>)> {
        // A row group takes memory for each leaf, including leaves that it does not mention.
        let leaves = schema.leaves.len();
        let missing = self.groups.iter().map(|(_, parts)| leaves.saturating_sub(parts.len()));
        let missing = missing.fold(0u64, |n, m| n.saturating_add((m * size_of::<Chunk>()) as u64));
        self.limits.decoded("the chunks of row groups", missing, self.bytes())?;
        let mut starts = Starts::new(&self.parts);
        let mut described = Vec::with_capacity(self.groups.len());
        let mut budget = self.bytes().saturating_mul(4).saturating_add(1 << 20);
        let mut pages = self.bytes().saturating_mul(2);
        for (group, parts) in self.groups {
            let mut chunks = Vec::with_capacity(parts.len());
            for (chunk, source) in group.columns.into_iter().zip(parts) {
                let Some(part) = self.parts.get(source) else { continue };
                let file_offset = chunk.file_offset;
                let metadata = chunk_metadata(chunk, part.source.as_ref(), &self.limits, &mut budget)?;
                starts.add(source, file_offset, metadata.as_ref().ok());
                chunks.push(Some(Described { metadata, source }));
            }
            described.push((group.num_rows, chunks));
        }
        let starts = starts.sorted();
        let groups = described.into_iter().enumerate().map(|(number, (rows, chunks))| {
            let rows = u64::try_from(rows)
                .map_err(|_| Error::corrupt(format!("expected 0 rows or more, found {rows}")))
                .within(|| format!("row group {number}"))?;
            let mut chunks = place_chunks(schema, chunks, &starts);
            chunks.iter_mut().for_each(|chunk| chunk.charge(&mut pages));
            let part = chunks.first().map_or(0, |c| c.source);
            let own = || chunks.iter().filter(|c| c.source == part && c.metadata.is_ok());
            let start = own().map(|c| c.range.start).min().unwrap_or(0);
            let end = own().map(|c| c.range.end).max().unwrap_or(start);
            Ok(Arc::new(Group { number, part, start, end, rows, chunks }))
        });
        Ok((self.parts, groups.collect::<Result<_>>()?))
    }
}

/// What a footer states about a chunk.
struct Described {
    metadata: Result<ColumnMetaData, String>,
    source: usize,
}

/// The offsets at which structures begin in each file: a chunk ends where the next structure begins.
struct Starts {
    starts: Vec<Vec<u64>>,
    /// The length of each file.
    ends: Vec<u64>,
}

impl Starts {
    fn new(parts: &[DataFile]) -> Self {
        let end = |p: &DataFile| p.footer.as_ref().map_or(p.source.len(), |f| f.start);
        let ends = parts.iter().map(|p| p.source.len()).collect();
        Self { starts: parts.iter().map(|p| vec![end(p)]).collect(), ends }
    }

    fn add(&mut self, source: usize, file_offset: i64, metadata: Option<&ColumnMetaData>) {
        let (Some(m), Some(starts)) = (metadata, self.starts.get_mut(source)) else { return };
        let places = [Some(m.data_page_offset), m.index_page_offset, Some(file_offset)];
        starts.extend(places.into_iter().flatten().filter_map(|at| u64::try_from(at).ok()));
    }

    fn sorted(mut self) -> Self {
        for starts in &mut self.starts {
            starts.sort_unstable();
            starts.dedup();
        }
        self
    }

    /// The bytes of the structure at `start`; an empty range at the end of the file if `start` is beyond it.
    fn bytes(&self, source: usize, start: u64) -> Range<u64> {
        let start = start.min(self.ends.get(source).copied().unwrap_or(0));
        let starts = self.starts.get(source).map(Vec::as_slice).unwrap_or_default();
        let end = starts.get(starts.partition_point(|at| *at <= start)).copied().unwrap_or(start);
        start..end.min(self.ends.get(source).copied().unwrap_or(0)).max(start)
    }
}

/// One chunk for each leaf: assigned by position if the paths agree, otherwise by path; leaves with the same
/// path get their chunks in order.
fn place_chunks(schema: &Schema, mut chunks: Vec<Option<Described>>, starts: &Starts) -> Vec<Chunk> {
    let path = |d: &Option<Described>| {
        d.as_ref().and_then(|d| d.metadata.as_ref().ok()).map(|m| m.path_in_schema.clone())
    };
    let in_order = chunks.len() == schema.leaves.len()
        && chunks.iter().zip(&schema.leaves).all(|(d, leaf)| match d {
            Some(Described { metadata: Ok(m), .. }) => m.path_in_schema == leaf.path,
            _ => true,
        });
    let mut by_path: BTreeMap<Vec<String>, VecDeque<usize>> = BTreeMap::new();
    if !in_order {
        for (i, described) in chunks.iter().enumerate() {
            by_path.entry(path(described).unwrap_or_default()).or_default().push_back(i);
        }
    }
    let chunk = |(i, leaf): (usize, &crate::schema::Leaf)| {
        let i = if in_order { Some(i) } else { by_path.get_mut(&leaf.path).and_then(VecDeque::pop_front) };
        let Some(Described { metadata, source }) = i.and_then(|i| chunks.get_mut(i)?.take()) else {
            let metadata = Err(format!("expected a chunk for `{}`, found none", leaf.name()));
            return Chunk { source: 0, range: 0..0, metadata };
        };
        let start = metadata.as_ref().map_or(0, |m| m.data_page_offset);
        let metadata = metadata.and_then(|m| match m.physical_type == leaf.physical_type {
            true => Ok(m),
            false => Err(format!(
                "expected values of {}, found {}",
                leaf.physical_type.name(),
                m.physical_type.name()
            )),
        });
        let metadata = metadata.and_then(|m| match start >= 0 && m.num_values >= 0 {
            true => Ok(m),
            false => Err(format!("expected an offset and a count, found {start} and {}", m.num_values)),
        });
        let start = u64::try_from(start).unwrap_or(0);
        let start = if metadata.is_ok() { start } else { 0 };
        Chunk { source, range: starts.bytes(source, start), metadata }
    };
    schema.leaves.iter().enumerate().map(chunk).collect()
}

/// A chunk's metadata from the footer or, if the footer has no metadata of it, from the chunk. If the
/// metadata is damaged, only this chunk is lost. `budget`: how many bytes of metadata may still be read. It
/// is needed because the same metadata could be listed for many chunks, and would be read for each of them.
fn chunk_metadata(
    chunk: ColumnChunk,
    source: &dyn ReadAt,
    limits: &Limits,
    budget: &mut u64,
) -> Result<Result<ColumnMetaData, String>> {
    if let Some(metadata) = chunk.meta_data {
        return Ok(Ok(metadata));
    }
    let start = u64::try_from(chunk.file_offset).unwrap_or(u64::MAX).min(source.len());
    let mut want = METADATA_GUESS;
    loop {
        if *budget == 0 {
            return Ok(Err(
                "column metadata: expected it to belong to one chunk, found chunks that share it".to_owned(),
            ));
        }
        let end = start.saturating_add(want).min(source.len());
        let bytes = source.read(start..end)?;
        let mut reader = Reader::new(&bytes, start, limits);
        let decoded = ColumnMetaData::decode(&mut reader);
        // For the first read only the parsed bytes are counted, since that read may be longer than the
        // metadata.
        let cost = if want == METADATA_GUESS { reader.offset() - start } else { end - start };
        *budget = budget.saturating_sub(cost);
        match decoded {
            Ok(metadata) => return Ok(Ok(metadata)),
            Err(_) if end < source.len() && want < limits.max_metadata_bytes.min(1 << 20) => want *= 4,
            Err(e) if e.is_damage() => return Ok(Err(format!("column metadata: {e}"))),
            Err(e) => return Err(e),
        }
    }
}
