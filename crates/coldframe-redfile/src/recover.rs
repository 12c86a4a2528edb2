//! Reconstructs the row groups of a file whose footer is lost, from its pages and a schema that the user gives.
//!
//! ```text
//! file   | RED1 | [RED1] page page page .. | [RED1] page page .. | rest of the footer |
//!                 '---- segment ---------'
//! chunks   a: page page | b: page | c: page page ..          as many rows in each: a row group
//! ```
//!
//! A page's header states its length, so the pages of a file can be walked ([`walk`]). It does not state which column
//! the page belongs to, nor where a row group ends, except if the writer put `RED1` before each row group (A
//! to C) or metadata after each chunk (`spec`). This follows from the schema: in a row group, the pages of
//! all leaves follow in the order of the leaves, all leaves have the same number of rows, and each page can
//! be parsed as a page of its leaf, with levels and values that end where they should ([`arrange`]). If more
//! than one arrangement is possible, no row is returned: the user must state how many rows a row group has.
//!
//! The README of the format promises nothing for this case ("If the file metadata is corrupt, the file is
//! lost"); this recovers what is possible.

mod arrange;
mod footers;
mod walk;

use std::ops::Range;
use std::sync::Arc;

use coldframe_core::{Error, Limits, ReadAt, Result};
use coldframe_encoding::codec::Decompressor;
use coldframe_encoding::codec::hadoop::HadoopCodec;

pub(crate) use self::footers::last_footer;

use self::arrange::{Arranged, Kinds, Pages};
use self::walk::{LocatedPage, Segment, Walked};
use crate::layout::dialect::Dialect;
use crate::layout::footer::MAGIC;
use crate::layout::metadata::{
    Children, Codec, ColumnChunk, ColumnMetaData, FileMetaData, RowGroup, SchemaElement,
};
use crate::options::Options;
use crate::pages::chunk::page_codec;
use crate::schema::Schema;

/// The row groups reconstructed from a file.
#[derive(Debug)]
pub(crate) struct Rebuilt {
    /// The footer that the file should have had.
    pub(crate) metadata: FileMetaData,
    /// Bytes outside the reconstructed row groups.
    pub(crate) lost: Vec<Range<u64>>,
}

/// Reconstructs the row groups of a file with `schema`. `None` if there are none.
pub(crate) fn rebuild(
    source: &Arc<dyn ReadAt>,
    schema: &arrow_schema::Schema,
    options: &Options,
) -> Result<Option<Rebuilt>> {
    let limits = &options.limits;
    let schema = Schema::from_arrow("schema", schema, limits)?;
    if schema.leaves.is_empty() {
        return Err(Error::schema("a Redfile needs at least one column"));
    }
    let Walked { segments, other } = walk::walk(source, limits)?;
    let marked = segments.first().is_some_and(|s| s.marked);
    let codec = codec(&segments, source.as_ref(), limits)?;
    let mut arrangement: Option<Vec<Arranged>> = None;
    for dialect in candidates(options.dialect, marked) {
        let hadoop = if dialect.never_compresses() { None } else { page_codec(codec)? };
        let groups = arrange_all(source, &schema, &segments, dialect, hadoop, options)?;
        match &arrangement {
            _ if groups.is_empty() => {}
            Some(others) if *others == groups => {}
            Some(_) => {
                return Err(Error::schema(
                    "the pages can be read in more than one dialect: set the option `dialect`",
                ));
            }
            None => arrangement = Some(groups),
        }
    }
    Ok(arrangement.map(|groups| {
        let known = groups.iter().map(|g| g.start()..g.end()).chain(other);
        let lost = gaps(known, source.len());
        Rebuilt { metadata: describe(&schema, marked, codec, &groups), lost }
    }))
}

/// The dialects to try. D equals E if nothing is compressed.
fn candidates(given: Option<Dialect>, marked: bool) -> Vec<Dialect> {
    match (given, marked) {
        (Some(dialect), _) => vec![dialect],
        (None, true) => vec![Dialect::RedelmC, Dialect::RedelmA, Dialect::RedelmB],
        (None, false) => vec![Dialect::RedelmF, Dialect::RedelmE, Dialect::Spec],
    }
}

/// Finds the codec with which the first page that has two different sizes decompresses to the size in its
/// header.
fn codec(segments: &[Segment], source: &dyn ReadAt, limits: &Limits) -> Result<Codec> {
    let pages = segments.iter().flat_map(|s| &s.pages);
    let Some(page) = pages.into_iter().find(|p| p.header.compressed != p.header.uncompressed) else {
        return Ok(Codec::Uncompressed);
    };
    let stored = source.read(page.body())?;
    let size = limits.block("a page", page.header.uncompressed as u64)?;
    let (mut decompressor, mut out) = (Decompressor::new(), Vec::new());
    for codec in [Codec::Snappy, Codec::Gzip, Codec::Lzo] {
        let hadoop = page_codec(codec)?;
        out.clear();
        if hadoop.is_some_and(|h| h.decompress_exact(&mut decompressor, &stored, size, &mut out).is_ok()) {
            return Ok(codec);
        }
    }
    // This cannot be a page of a writer that stated a codec but stored pages uncompressed, since the two
    // sizes of such a page are equal.
    Err(Error::corrupt(format!("expected a page of {size} bytes in a codec of Redfile, found none"))
        .at(page.place.start))
}

fn arrange_all(
    source: &Arc<dyn ReadAt>,
    schema: &Schema,
    segments: &[Segment],
    dialect: Dialect,
    codec: Option<HadoopCodec>,
    options: &Options,
) -> Result<Vec<Arranged>> {
    let kinds = Kinds::new(schema, dialect, codec, options);
    let mut groups = Vec::new();
    for segment in segments {
        let pages = Pages::new(source.clone(), &kinds, &segment.pages, options.limits)?;
        groups.extend(pages.arrange(segment, options.row_group_rows)?);
    }
    Ok(groups)
}

/// The gaps between the ranges, from the end of the magic bytes to the end of the file.
fn gaps(known: impl Iterator<Item = Range<u64>>, len: u64) -> Vec<Range<u64>> {
    let mut known: Vec<Range<u64>> = known.collect();
    known.sort_unstable_by_key(|r| r.start);
    let mut at = MAGIC.len() as u64;
    let mut gaps = Vec::new();
    for range in known.into_iter().chain(std::iter::once(len..len)) {
        if at < range.start {
            gaps.push(at..range.start);
        }
        at = at.max(range.end);
    }
    gaps
}

/// The footer that describes the row groups.
fn describe(schema: &Schema, marked: bool, codec: Codec, groups: &[Arranged]) -> FileMetaData {
    let row_groups: Vec<RowGroup> = groups.iter().map(|g| row_group(schema, codec, g)).collect();
    let mut elements = schema.elements();
    if marked {
        list_children(&mut elements);
    }
    FileMetaData {
        version: 1,
        schema: elements,
        num_rows: row_groups.iter().map(|g| g.num_rows).fold(0, i64::saturating_add),
        row_groups,
        key_value_metadata: Vec::new(),
    }
}

fn row_group(schema: &Schema, codec: Codec, group: &Arranged) -> RowGroup {
    let columns = schema.leaves.iter().zip(&group.chunks).map(|(leaf, pages)| {
        let first = pages.first().map_or(0, |p| p.place.start).cast_signed();
        let sum = |of: fn(&LocatedPage) -> usize| {
            pages.iter().map(|p| i64::try_from(of(p)).unwrap_or(i64::MAX)).fold(0, i64::saturating_add)
        };
        let mut encodings: Vec<i32> = pages.iter().map(|p| p.data.encoding).collect();
        encodings.sort_unstable();
        encodings.dedup();
        let metadata = ColumnMetaData {
            physical_type: leaf.physical_type,
            encodings,
            path_in_schema: leaf.path.clone(),
            codec,
            num_values: sum(|p| p.data.num_values),
            total_uncompressed_size: sum(|p| p.header.uncompressed),
            total_compressed_size: sum(|p| p.header.compressed),
            data_page_offset: first,
            index_page_offset: None,
            key_value_metadata: Vec::new(),
        };
        ColumnChunk { file_path: None, file_offset: first, meta_data: Some(metadata) }
    });
    RowGroup {
        columns: columns.collect(),
        total_byte_size: 0,
        num_rows: i64::try_from(group.rows).unwrap_or(i64::MAX),
    }
}

/// Makes the elements list their children by index, as the dialects A to C do; the reader also uses this to
/// detect the dialect.
fn list_children(elements: &mut [SchemaElement]) {
    // The order is depth first: the first child of an element follows the element, and each other child
    // follows the descendants of the child before it.
    let counts: Vec<i32> = elements
        .iter()
        .map(|e| match e.children {
            Children::Count(n) => n,
            _ => 0,
        })
        .collect();
    let mut lists: Vec<Vec<i32>> = vec![Vec::new(); elements.len()];
    let mut open: Vec<(usize, i32)> = Vec::new();
    for (at, count) in counts.iter().enumerate() {
        if let Some((parent, left)) = open.last_mut() {
            *left -= 1;
            if let Some(list) = lists.get_mut(*parent) {
                list.push(i32::try_from(at).unwrap_or(i32::MAX));
            }
        }
        if *count > 0 {
            open.push((at, *count));
        } else {
            while open.last().is_some_and(|(_, left)| *left == 0) {
                open.pop();
            }
        }
    }
    for (element, list) in elements.iter_mut().zip(lists) {
        if matches!(element.children, Children::Count(_)) {
            element.children = Children::Indices(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_children_become_indexes() {
        let element = |children| SchemaElement { children, ..SchemaElement::default() };
        let (leaf, group) = (Children::None, Children::Count);
        // root { a, b { c, d { e } }, f }
        let tree = [group(3), leaf.clone(), group(2), leaf.clone(), group(1), leaf.clone(), leaf];
        let mut elements: Vec<SchemaElement> = tree.into_iter().map(element).collect();
        list_children(&mut elements);
        let lists: Vec<Children> =
            elements.into_iter().map(|e| e.children).filter(|c| *c != Children::None).collect();
        let list = |places: &[i32]| Children::Indices(places.to_vec());
        assert_eq!(lists, [list(&[1, 2, 6]), list(&[3, 4]), list(&[5])]);
    }
}
