//! An open Redfile without Arrow: one file, or the files that a metadata file or a summary lists.

pub(crate) mod footer;
pub(crate) mod groups;
pub(crate) mod summary;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use coldframe_core::io::{Folder, Window};
use coldframe_core::{Damage, Error, ErrorContext, ReadAt, Result};
use coldframe_encoding::codec::hadoop::HadoopCodec;

use self::groups::{Chunk, Collect, DataFile, Group};
use crate::layout::dialect::Dialect;
use crate::layout::metadata::{Children, FileMetaData};
use crate::options::Options;
use crate::pages::chunk::{ChunkContext, page_codec};
use crate::pages::detect::Detector;
use crate::pages::visit::{WINDOW, each_page};
use crate::schema::Schema;

/// The metadata of a file: from its footer, or reconstructed.
#[derive(Debug)]
pub(crate) struct FooterContents {
    /// The file's metadata.
    pub(crate) metadata: FileMetaData,
    /// The range of the footer; `None` if the metadata was reconstructed.
    pub(crate) footer: Option<Range<u64>>,
    /// Bytes in which no row group was found, if the file does not end with a footer.
    pub(crate) lost: Option<Vec<Range<u64>>>,
}

/// An open file, or the files of a table.
#[derive(Debug)]
pub(crate) struct RawFile {
    /// The data files.
    pub(crate) parts: Vec<DataFile>,
    /// The footer without its row groups.
    pub(crate) metadata: FileMetaData,
    /// The schema as a tree.
    pub(crate) schema: Schema,
    /// The row groups in order.
    pub(crate) groups: Vec<Arc<Group>>,
    /// The dialect, and whether the bytes do not show the byte order of numbers (little endian is then used).
    /// It is given by the user, or detected from the pages when it is first needed.
    resolved: OnceLock<(Dialect, bool)>,
    /// Whether pages are stored uncompressed, even if the metadata names a codec.
    uncompressed: bool,
    /// Bytes in which no row group was found, if the file does not end with a footer but could be opened
    /// nevertheless.
    pub(crate) lost: Option<Vec<Range<u64>>>,
    /// The user's options.
    pub(crate) options: Options,
}

impl RawFile {
    /// A table of one file, described by `contents`.
    pub(crate) fn single(
        bytes: Arc<dyn ReadAt>,
        siblings: Option<&dyn Folder>,
        contents: FooterContents,
        options: Options,
    ) -> Result<Self> {
        let mut collect = Collect::new(siblings, options.limits);
        let FooterContents { mut metadata, footer, lost } = contents;
        collect.parts.push(DataFile { name: None, source: bytes, footer });
        collect.add(std::mem::take(&mut metadata.row_groups), 0)?;
        Self::new(metadata, collect, options, lost)
    }

    /// The files of a summary, and the Redfiles beside it that a later job has added.
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
        let listed: Vec<_> = files.collect();
        let mut named: Vec<&str> = listed.iter().map(|(path, _)| path.as_str()).collect();
        named.push(&path);
        let unlisted = siblings.map_or(Ok(Vec::new()), |folder| {
            summary::unlisted(folder, &named, &options.limits).within(|| "summary")
        })?;
        for (path, metadata) in listed.into_iter().chain(unlisted) {
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
        // Early writers, which did not compress, stored the size 0 and uncompressed pages.
        let uncompressed =
            with_pages().next().is_some() && with_pages().all(|m| m.total_compressed_size == 0);
        let mut file =
            Self { parts, metadata, schema, groups, resolved: OnceLock::new(), uncompressed, lost, options };
        if let Some(dialect) = file.options.dialect {
            file.resolved = OnceLock::from((dialect, false));
            file.uncompressed |= dialect.never_compresses();
        } else if file.children_listed() {
            // The dialect is detected now, because an ambiguity causes a warning when the file is opened.
            file.dialect()?;
        }
        if file.options.types.text.is_none() {
            let not_text = file.not_text()?;
            file.schema.make_binary(&not_text);
        }
        Ok(file)
    }

    /// Whether the schema lists the indexes of an element's children, as in files of the first two weeks.
    fn children_listed(&self) -> bool {
        self.metadata.schema.iter().any(|e| matches!(e.children, Children::Indices(_)))
    }

    /// The dialect. Reads pages if necessary.
    pub(crate) fn dialect(&self) -> Result<Dialect> {
        if let Some((dialect, _)) = self.resolved.get() {
            return Ok(*dialect);
        }
        let detected = self.detect()?;
        Ok(self.resolved.get_or_init(|| detected).0)
    }

    /// Whether the bytes do not show the byte order of numbers. That is possible only if children are listed
    /// by index, and then the pages are examined when the file is opened.
    pub(crate) fn ambiguous(&self) -> bool {
        self.resolved.get().is_some_and(|(_, ambiguous)| *ambiguous)
    }

    /// The chunks with values that begin after the end of their file.
    pub(crate) fn cut_chunks(&self) -> impl Iterator<Item = Damage> {
        self.groups.iter().flat_map(|group| {
            let is_cut = |chunk: &&Chunk| {
                chunk.range.is_empty() && chunk.metadata.as_ref().is_ok_and(|known| known.num_values > 0)
            };
            group.chunks.iter().filter(is_cut).take(1).map(|chunk| {
                let part = self.parts.get(chunk.source);
                let (name, len) = part.map_or((None, 0), |part| (part.name.as_ref(), part.source.len()));
                let name = name.map_or_else(String::new, |name| format!(" of {name}"));
                let e = Error::corrupt(format!("expected pages, found the end{name} after {len} bytes"));
                Damage::from_error(&e.within(group.name()), len..len, Some(group.rows))
            })
        })
    }

    /// The leaves that are declared text but are not UTF-8. One page of each such leaf is examined. If that
    /// is not UTF-8, further pages are examined, since the page may be damaged.
    fn not_text(&self) -> Result<BTreeSet<usize>> {
        let mut leaves = BTreeSet::new();
        let mut windows = self.windows();
        let Some(group) = self.groups.first() else { return Ok(leaves) };
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
                leaves.insert(place);
            }
        }
        Ok(leaves)
    }

    /// Detects the dialect from the pages of suitable leaves, until it is clear.
    fn detect(&self) -> Result<(Dialect, bool)> {
        let mut detector = Detector::new(self.children_listed(), self.uncompressed, self.options.limits);
        let mut windows = self.windows();
        for group in &self.groups {
            for (place, (leaf, chunk)) in self.schema.leaves.iter().zip(&group.chunks).enumerate() {
                if !detector.needs(leaf) || chunk.metadata.is_err() {
                    continue;
                }
                // Pages are located and decompressed the same way in every dialect.
                let Ok(codec) = self.codec(chunk) else { continue };
                let context = self.context(place, codec, Dialect::default())?;
                let Some(window) = windows.get_mut(chunk.source) else { continue };
                each_page(&context, &chunk.place(), window, |page, bytes| {
                    if let Some(bytes) = bytes {
                        detector.observe(leaf, page.data, &bytes);
                    }
                    Ok(detector.needs(leaf))
                })?;
            }
        }
        let (dialect, open) = detector.decide(&self.schema.leaves);
        Ok((dialect, open && self.groups.iter().any(|g| g.rows > 0)))
    }

    /// A window for each file, with which many chunks are read one after another.
    fn windows(&self) -> Vec<Window> {
        self.parts.iter().map(|p| Window::new(p.source.clone(), WINDOW)).collect()
    }

    /// The context of a chunk's pages.
    pub(crate) fn chunk_context(&self, place: usize, chunk: &Chunk) -> Result<Arc<ChunkContext>> {
        self.context(place, self.codec(chunk)?, self.dialect()?)
    }

    /// The context of a leaf's pages.
    pub(crate) fn leaf_context(&self, place: usize, codec: Option<HadoopCodec>) -> Result<Arc<ChunkContext>> {
        self.context(place, codec, self.dialect()?)
    }

    fn codec(&self, chunk: &Chunk) -> Result<Option<HadoopCodec>> {
        match &chunk.metadata {
            Ok(metadata) if !self.uncompressed => page_codec(metadata.codec),
            _ => Ok(None),
        }
    }

    fn context(
        &self,
        place: usize,
        codec: Option<HadoopCodec>,
        dialect: Dialect,
    ) -> Result<Arc<ChunkContext>> {
        let leaf =
            self.schema.leaves.get(place).cloned().ok_or_else(|| Error::schema("a leaf without an index"))?;
        let (verify, limits) = (self.options.verify, self.options.limits);
        Ok(Arc::new(ChunkContext { leaf, dialect, codec, verify, limits }))
    }

    /// The name of a leaf.
    pub(crate) fn leaf_name(&self, place: usize) -> String {
        self.schema.leaves.get(place).map(crate::schema::Leaf::name).unwrap_or_default()
    }
}
