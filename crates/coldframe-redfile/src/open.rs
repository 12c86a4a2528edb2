//! An open Redfile as data: one file, or the files that a metadata file or a summary names.

pub(crate) mod footer;
pub(crate) mod groups;
pub(crate) mod summary;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use coldframe_core::io::{Folder, Window};
use coldframe_core::{Error, ErrorContext, ReadAt, Result};
use coldframe_encoding::codec::hadoop::HadoopCodec;

use self::groups::{Chunk, Collect, Group, Part};
use crate::layout::dialect::Dialect;
use crate::layout::metadata::{Children, FileMetaData};
use crate::options::Options;
use crate::pages::chunk::{ChunkContext, page_codec};
use crate::pages::detect::Detector;
use crate::pages::visit::{WINDOW, each_page};
use crate::schema::Schema;

/// What says where the row groups of a file are.
#[derive(Debug)]
pub(crate) struct Found {
    /// What the file says of itself.
    pub(crate) metadata: FileMetaData,
    /// Where that stands.
    pub(crate) footer: Option<Range<u64>>,
    /// What no row group was found in, if the file does not end with a footer.
    pub(crate) lost: Option<Vec<Range<u64>>>,
}

/// What is known of an open file.
#[derive(Debug)]
pub(crate) struct RawFile {
    /// Its files.
    pub(crate) parts: Vec<Part>,
    /// What the footer says, without its row groups.
    pub(crate) metadata: FileMetaData,
    /// The tree.
    pub(crate) schema: Schema,
    /// The row groups in order.
    pub(crate) groups: Vec<Arc<Group>>,
    /// The layout of pages: as told by the user, or by the file.
    pub(crate) dialect: Dialect,
    /// Whether the bytes leave open which byte order numbers have; little endian is taken then.
    pub(crate) ambiguous: bool,
    /// Whether pages are as they are, whatever codec is named.
    uncompressed: bool,
    /// Bytes that no row group was found in, if the file does not end with a footer and was opened all the same.
    pub(crate) lost: Option<Vec<Range<u64>>>,
    /// What the user said.
    pub(crate) options: Options,
}

impl RawFile {
    /// One file, of which `found` speaks.
    pub(crate) fn one(
        bytes: Arc<dyn ReadAt>,
        siblings: Option<&dyn Folder>,
        found: Found,
        options: Options,
    ) -> Result<Self> {
        let mut collect = Collect::new(siblings, options.limits);
        let Found { mut metadata, footer, lost } = found;
        collect.parts.push(Part { name: None, source: bytes, footer });
        collect.add(std::mem::take(&mut metadata.row_groups), 0)?;
        Self::new(metadata, collect, options, lost)
    }

    /// The files of a summary.
    pub(crate) fn of_summary(
        bytes: &dyn ReadAt,
        siblings: Option<&dyn Folder>,
        options: Options,
    ) -> Result<Self> {
        let mut collect = Collect::new(siblings, options.limits);
        let mut files = summary::read(bytes, &options.limits).within(|| "summary")?.into_iter();
        let (path, mut first) =
            files.next().ok_or_else(|| Error::corrupt("expected a file, found none").within("summary"))?;
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
        Self::new(first, collect, options, None)
    }

    fn new(
        metadata: FileMetaData,
        collect: Collect<'_>,
        options: Options,
        lost: Option<Vec<Range<u64>>>,
    ) -> Result<Self> {
        let schema = Schema::from_elements(&metadata.schema, options.types, &options.limits, collect.bytes())
            .within(|| "schema")?;
        let (parts, groups) = collect.groups(&schema)?;
        let chunks = || groups.iter().flat_map(|g| &g.chunks).filter_map(|c| c.metadata.as_ref().ok());
        let with_pages = || chunks().filter(|m| m.num_values > 0);
        // Writers before compression left the size at 0, and their pages as they are.
        let uncompressed =
            with_pages().next().is_some() && with_pages().all(|m| m.total_compressed_size == 0);
        let mut file = Self {
            parts,
            metadata,
            schema,
            groups,
            dialect: Dialect::default(),
            ambiguous: false,
            uncompressed,
            lost,
            options,
        };
        match file.options.dialect {
            Some(dialect) => {
                file.dialect = dialect;
                file.uncompressed |= dialect.never_compresses();
            }
            None => (file.dialect, file.ambiguous) = file.detect()?,
        }
        if file.options.types.text.is_none() {
            let not_text = file.not_text()?;
            file.schema.make_binary(&not_text);
        }
        Ok(file)
    }

    /// Leaves that are called text but are not: one page is looked at, and where it is none the next ones, since it may be damaged.
    fn not_text(&self) -> Result<BTreeSet<usize>> {
        let mut found = BTreeSet::new();
        let mut windows = self.windows();
        let Some(group) = self.groups.first() else { return Ok(found) };
        for place in self.schema.text_leaves() {
            let Some(chunk) = group.chunks.get(place).filter(|c| c.metadata.is_ok()) else { continue };
            let Some(window) = windows.get_mut(chunk.source) else { continue };
            let Ok(context) = self.chunk_context(place, chunk) else { continue };
            let (mut text, mut other) = (0, 0);
            each_page(&context, &chunk.place(), window, |page, bytes| {
                match bytes.and_then(|bytes| context.is_text(page.data, &bytes)) {
                    Some(true) => text += 1,
                    Some(false) => other += 1,
                    None => {}
                }
                Ok(text <= other && other < text + 2)
            })?;
            if other > text {
                found.insert(place);
            }
        }
        Ok(found)
    }

    /// Tells the dialect by the pages of leaves that can tell, until they have.
    fn detect(&self) -> Result<(Dialect, bool)> {
        let listed = self.metadata.schema.iter().any(|e| matches!(e.children, Children::Indices(_)));
        let mut detector = Detector::new(listed, self.uncompressed, self.options.limits);
        let mut windows = self.windows();
        for group in &self.groups {
            for (place, (leaf, chunk)) in self.schema.leaves.iter().zip(&group.chunks).enumerate() {
                if !detector.asks_for(leaf) || chunk.metadata.is_err() {
                    continue;
                }
                let Ok(context) = self.chunk_context(place, chunk) else { continue };
                let Some(window) = windows.get_mut(chunk.source) else { continue };
                each_page(&context, &chunk.place(), window, |page, bytes| {
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

    /// A window over each file, for looks at many chunks one behind the other.
    fn windows(&self) -> Vec<Window> {
        self.parts.iter().map(|p| Window::new(p.source.clone(), WINDOW)).collect()
    }

    /// What the pages of a chunk have in common.
    pub(crate) fn chunk_context(&self, place: usize, chunk: &Chunk) -> Result<Arc<ChunkContext>> {
        let codec = match &chunk.metadata {
            Ok(metadata) if !self.uncompressed => page_codec(metadata.codec)?,
            _ => None,
        };
        self.leaf_context(place, codec)
    }

    /// What pages of a leaf have in common.
    pub(crate) fn leaf_context(&self, place: usize, codec: Option<HadoopCodec>) -> Result<Arc<ChunkContext>> {
        let leaf =
            self.schema.leaves.get(place).cloned().ok_or_else(|| Error::schema("a leaf without a place"))?;
        let (dialect, verify, limits) = (self.dialect, self.options.verify, self.options.limits);
        Ok(Arc::new(ChunkContext { leaf, dialect, codec, verify, limits }))
    }

    /// The name of a leaf.
    pub(crate) fn leaf_name(&self, place: usize) -> String {
        self.schema.leaves.get(place).map(crate::schema::Leaf::name).unwrap_or_default()
    }
}
