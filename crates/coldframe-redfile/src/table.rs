//! An open Redfile: one file, or the files that a metadata file or a summary names.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::io::Folder;
use coldframe_core::{
    Damage, Error, ErrorContext, Limits, Node, OnError, OpenOptions, Plan, PlanRequest, ReadAt, Result,
    Source, Split, TableFile, Value,
};

use crate::scan::decode::ScanContext;
use crate::layout::dialect::{Detector, Dialect};
use crate::open::footer::{self, Footer, MAGIC};
use crate::layout::metadata::{Children, ColumnChunk, ColumnMetaData, FileMetaData, KeyValue, RowGroup};
use crate::options::Options;
use crate::scan::plan::GroupPlan;
use crate::recover::rebuild::{Rebuilt, rebuild};
use crate::schema::{Leaf, Schema};
use crate::open::summary;
use crate::layout::thrift::Reader;

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

/// An open Redfile.
#[derive(Debug)]
pub struct RedFile {
    parts: Vec<Part>,
    metadata: FileMetaData,
    schema: Schema,
    groups: Vec<Arc<Group>>,
    dialect: Dialect,
    ambiguous: bool,
    /// Whether pages are as they are, whatever codec is named.
    raw: bool,
    /// What no row group was found in, if the file does not end with a footer.
    lost: Option<Vec<Range<u64>>>,
    options: Options,
}

/// Parts and row groups while they are collected.
struct Collect<'a> {
    parts: Vec<Part>,
    by_name: BTreeMap<String, usize>,
    siblings: Option<&'a dyn Folder>,
    limits: Limits,
    /// Of each group the chunks with their parts.
    groups: Vec<(RowGroup, Vec<usize>)>,
}

impl Collect<'_> {
    /// The part that a path names: the file beside the opened one that has its last component.
    fn part(&mut self, path: &str) -> Result<usize> {
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
    fn add(&mut self, groups: Vec<RowGroup>, own: usize) -> Result<()> {
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

/// What says where row groups are.
struct Opened {
    metadata: FileMetaData,
    footer: Option<Range<u64>>,
    lost: Option<Vec<Range<u64>>>,
}

impl Opened {
    /// The footer at the end; where that is damaged and it is asked for, the last one before it, or what the pages tell.
    fn read(bytes: &Arc<dyn ReadAt>, options: &Options) -> Result<Self> {
        let limits = &options.limits;
        let e = match footer::read(bytes.as_ref(), limits) {
            Ok(Footer { metadata, start, end }) => {
                return Ok(Self { metadata, footer: Some(start..end), lost: None });
            }
            Err(e) if options.recover && e.is_damage() => e,
            Err(e) => return Err(e),
        };
        if let Some(Footer { metadata, start, end }) = footer::find_last(bytes.as_ref(), limits)? {
            let lost = std::iter::once(end..bytes.len()).collect();
            return Ok(Self { metadata, footer: Some(start..end), lost: Some(lost) });
        }
        let Some(schema) = &options.schema else { return Err(e) };
        match rebuild(bytes, schema, options)? {
            Some(Rebuilt { metadata, lost }) => Ok(Self { metadata, footer: None, lost: Some(lost) }),
            None => Err(e),
        }
    }
}

impl RedFile {
    /// Reads the metadata.
    pub fn open(source: &Source, options: &OpenOptions) -> Result<Self> {
        let limits = options.limits;
        let options = Options::new(options)?;
        let (bytes, siblings) = match source {
            Source::File { bytes, siblings, .. } => (bytes.clone(), siblings.clone()),
            Source::Folder { folder, .. } => (folder.open(summary::NAME)?, Some(folder.clone())),
        };
        let mut collect = Collect {
            parts: Vec::new(),
            by_name: BTreeMap::new(),
            siblings: siblings.as_deref(),
            limits,
            groups: Vec::new(),
        };
        let head = bytes.read(0..bytes.len().min(summary::PROBE_LEN))?;
        if !head.starts_with(MAGIC) && summary::probe(&head) {
            let mut files = summary::read(bytes.as_ref(), &limits).within(|| "summary")?.into_iter();
            let (path, mut first) = files
                .next()
                .ok_or_else(|| Error::corrupt("expected a file, found none").within("summary"))?;
            let own = collect.part(&path)?;
            collect.add(std::mem::take(&mut first.row_groups), own)?;
            for (path, metadata) in files {
                if metadata.schema != first.schema {
                    return Err(Error::schema(format!(
                        "{path} has another schema than the summary's first file"
                    )));
                }
                let own = collect.part(&path)?;
                collect.add(metadata.row_groups, own)?;
            }
            return Self::new(first, collect, options, None);
        }
        let Opened { mut metadata, footer, lost } = Opened::read(&bytes, &options)?;
        collect.parts.push(Part { name: None, source: bytes, footer });
        collect.add(std::mem::take(&mut metadata.row_groups), 0)?;
        Self::new(metadata, collect, options, lost)
    }

    fn new(
        metadata: FileMetaData,
        collect: Collect<'_>,
        options: Options,
        lost: Option<Vec<Range<u64>>>,
    ) -> Result<Self> {
        let limits = collect.limits;
        let schema = Schema::from_elements(&metadata.schema, options.types, &limits).within(|| "schema")?;
        let groups = groups(&schema, &collect)?;
        let chunks = || groups.iter().flat_map(|g| &g.chunks).filter_map(|c| c.metadata.as_ref().ok());
        let with_pages = || chunks().filter(|m| m.num_values > 0);
        // Writers before compression left the size at 0, and their pages as they are.
        let uncompressed =
            with_pages().next().is_some() && with_pages().all(|m| m.total_compressed_size == 0);
        let mut file = Self {
            parts: collect.parts,
            metadata,
            schema,
            groups,
            dialect: Dialect::default(),
            ambiguous: false,
            raw: uncompressed,
            lost,
            options,
        };
        match file.options.dialect {
            Some(dialect) => {
                file.dialect = dialect;
                file.raw |= dialect.never_compresses();
            }
            None => (file.dialect, file.ambiguous) = file.detect()?,
        }
        if file.options.types.text.is_none() {
            let not_text = file.not_text()?;
            file.schema.make_binary(&not_text);
        }
        Ok(file)
    }

    /// Leaves that are called text but whose first page is not: one page is looked at, as it is for the dialect.
    fn not_text(&self) -> Result<Vec<usize>> {
        let mut found = Vec::new();
        let scan = self.look();
        for place in self.schema.text_leaves() {
            let of_group = |g: &Arc<Group>| g.chunks.get(place).filter(|c| c.metadata.is_ok()).cloned();
            let Some(chunk) = self.groups.first().and_then(of_group) else { continue };
            let Some(part) = self.parts.get(chunk.source) else { continue };
            let Ok(context) = scan.chunk_context(place, &chunk) else { continue };
            crate::inspect::each_page(&context, &chunk, part.source.as_ref(), true, |page, bytes| {
                if bytes.is_some_and(|bytes| context.is_text(page.data, &bytes) == Some(false)) {
                    found.push(place);
                }
                Ok(false)
            })?;
        }
        Ok(found)
    }

    /// Tells the dialect by the pages of leaves that can tell, until they have.
    fn detect(&self) -> Result<(Dialect, bool)> {
        let listed = self.metadata.schema.iter().any(|e| matches!(e.children, Children::Indices(_)));
        let mut detector = Detector::new(listed, self.raw, self.options.limits);
        let scan = self.scan_context(None);
        for group in &self.groups {
            for (place, (leaf, chunk)) in self.schema.leaves.iter().zip(&group.chunks).enumerate() {
                if !detector.asks_for(leaf) || chunk.metadata.is_err() {
                    continue;
                }
                let Ok(context) = scan.chunk_context(place, chunk) else { continue };
                let Some(part) = self.parts.get(chunk.source) else { continue };
                crate::inspect::each_page(&context, chunk, part.source.as_ref(), true, |page, bytes| {
                    if let Some(bytes) = bytes {
                        detector.observe(leaf, page.data, &bytes);
                    }
                    Ok(detector.asks_for(leaf))
                })?;
            }
        }
        let (dialect, open) = detector.decide(&self.schema.leaves);
        Ok((dialect, open && self.groups.iter().any(|g| g.rows > 0)))
    }

    /// For a scan of `request`, or to look at pages.
    fn scan_context(&self, request: Option<&PlanRequest>) -> ScanContext {
        ScanContext {
            columns: Vec::new(),
            leaves: self.schema.leaves.clone(),
            schema: request.map_or_else(|| self.schema.arrow.clone(), |r| r.decode.clone()),
            dialect: self.dialect,
            raw: self.raw,
            verify: self.options.verify,
            limits: self.options.limits,
            batch_rows: request.map_or(1, |r| r.scan.batch_rows),
            on_error: request.map(|r| r.scan.on_error).unwrap_or_default(),
            damage: request.map(|r| r.damage.clone()).unwrap_or_default(),
        }
    }

    /// For looking at pages without a scan.
    pub(crate) fn look(&self) -> ScanContext {
        self.scan_context(None)
    }

    /// The files of the table.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The row groups in order.
    pub fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    /// The schema.
    pub fn tree(&self) -> &Schema {
        &self.schema
    }

    /// The layout of pages: as told by the user, or by the file.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether the bytes leave open which byte order numbers have; little endian is taken then.
    pub fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }

    /// Bytes that no row group was found in, if the file does not end with a footer and was opened all the same.
    pub(crate) fn lost(&self) -> Option<&[Range<u64>]> {
        self.lost.as_deref()
    }
}

/// The row groups with the places of their chunks.
fn groups(schema: &Schema, collect: &Collect<'_>) -> Result<Vec<Arc<Group>>> {
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

/// Names and values as the file has them.
pub(crate) fn describe_pairs(pairs: &[KeyValue]) -> Value {
    let entry = |pair: &KeyValue| {
        let value = pair.value.as_deref().map_or(Value::Null, Value::text_or_bytes);
        (String::from_utf8_lossy(&pair.key).into_owned(), value)
    };
    Value::Map(pairs.iter().map(entry).collect())
}

impl TableFile for RedFile {
    fn format(&self) -> &'static str {
        "redfile"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema.arrow
    }

    /// The sum of the groups: the file's own number wraps over at 2^31.
    fn row_count(&self) -> Option<u64> {
        Some(self.groups.iter().fold(0u64, |n, g| n.saturating_add(g.rows)))
    }

    fn metadata(&self) -> Result<Value> {
        Ok(crate::inspect::metadata(self, &self.metadata))
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let mut splits = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            let number = u32::try_from(index).map_err(|_| Error::unsupported("a table of 2^32 files"))?;
            let mut groups: Vec<&Arc<Group>> = self.groups.iter().filter(|g| g.part == index).collect();
            if groups.is_empty() && !(index == 0 && self.groups.is_empty()) {
                continue;
            }
            groups.sort_by_key(|g| g.start);
            let (mut start, mut bytes, mut rows) = (0u64, 0u64, 0u64);
            for group in groups {
                let len = group.end.saturating_sub(group.start);
                if bytes > 0 && group.start > start && bytes.saturating_add(len) > target {
                    splits.push(Split { part: number, range: start..group.start, rows: Some(rows) });
                    (start, bytes, rows) = (group.start, 0, 0);
                }
                bytes = bytes.saturating_add(len);
                rows = rows.saturating_add(group.rows);
            }
            // Open at the end: a group said to begin behind the file's end is in it.
            splits.push(Split { part: number, range: start..part.source.len().max(start), rows: Some(rows) });
        }
        Ok(splits)
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        let mut scan = self.scan_context(Some(request));
        for wanted in request.decode.fields() {
            let same = |n: &&crate::schema::Node| n.name == *wanted.name();
            let node = self.schema.fields.iter().find(same);
            let node = node.ok_or_else(|| Error::schema(format!("no column `{}`", wanted.name())))?;
            scan.columns.push(node.prune(wanted)?);
        }
        let part = usize::try_from(split.part).unwrap_or(usize::MAX);
        let len = self.parts.get(part).map_or(0, |p| p.source.len());
        let last = split.range.end >= len;
        let inside =
            |g: &&Arc<Group>| g.part == part && (split.range.contains(&g.start) || (last && g.start >= len));
        let groups = self.groups.iter().filter(inside).cloned().collect();
        let sources = self.parts.iter().map(|p| p.source.clone()).collect();
        if request.scan.on_error != OnError::Raise && part == 0 && split.range.start == 0 {
            crate::inspect::lost(self).into_iter().for_each(|damage| request.damage.push(damage));
        }
        Ok(Box::new(GroupPlan::new(scan, groups, sources)))
    }

    fn inspect(&self) -> Result<Node> {
        crate::inspect::tree(self)
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        crate::inspect::contradictions(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
