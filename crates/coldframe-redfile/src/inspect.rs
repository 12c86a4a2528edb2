//! Describes a Redfile: to which structure each byte belongs, and what the file states about itself.

use std::ops::Range;
use std::sync::Arc;

use coldframe_core::io::Window;
use coldframe_core::{Node, Result, Value};

use crate::layout::footer::{FRAME_LEN, MAGIC};
use crate::layout::metadata::{Children, ColumnMetaData, GROUP_VAR_INT, KeyValue, PLAIN};
use crate::layout::page::{DATA_PAGE, PageHeader};
use crate::layout::thrift::Reader;
use crate::open::groups::{Chunk, Group};
use crate::open::{RawFile, footer};

/// How many bytes are read to parse a page header.
const HEADER_GUESS: u64 = 1024;
/// How many bytes are read at a time when pages are visited one after another.
const WINDOW: u64 = 64 << 10;
/// Maximum length of the metadata after a chunk.
const METADATA_GUESS: u64 = 1 << 20;

/// Names and values as the file has them.
fn describe_pairs(pairs: &[KeyValue]) -> Value {
    let entry = |pair: &KeyValue| {
        let value = pair.value.as_deref().map_or(Value::Null, Value::text_or_bytes);
        (String::from_utf8_lossy(&pair.key).into_owned(), value)
    };
    Value::Map(pairs.iter().map(entry).collect())
}

/// All fields of the footer.
pub(crate) fn metadata(file: &RawFile) -> Result<Value> {
    let footer = &file.metadata;
    let listed = footer.schema.iter().any(|e| matches!(e.children, Children::Indices(_)));
    let leaves = file.schema.leaves.iter().map(|leaf| {
        Value::map([
            ("path", Value::from(leaf.name())),
            ("type", Value::from(leaf.physical_type.name())),
            ("max_definition_level", Value::from(u32::from(leaf.max_definition))),
            ("max_repetition_level", Value::from(u32::from(leaf.max_repetition))),
        ])
    });
    let mut all = vec![
        ("format".to_owned(), Value::from("redfile")),
        ("version".to_owned(), Value::from(footer.version)),
        ("dialect".to_owned(), Value::from(file.dialect()?.name())),
        ("ambiguous".to_owned(), Value::from(file.ambiguous())),
        ("recovered".to_owned(), Value::from(file.lost.is_some())),
        ("children".to_owned(), Value::from(if listed { "children_indices" } else { "num_children" })),
        ("schema_name".to_owned(), Value::from(file.schema.name.as_str())),
        ("leaves".to_owned(), Value::List(leaves.collect())),
        ("num_rows".to_owned(), Value::from(footer.num_rows)),
        ("metadata".to_owned(), describe_pairs(&footer.key_value_metadata)),
    ];
    let files: Vec<Value> = file.parts.iter().filter_map(|p| p.name.as_deref()).map(Value::from).collect();
    if !files.is_empty() {
        all.push(("files".to_owned(), Value::List(files)));
    }
    all.push(("row_groups".to_owned(), Value::List(file.groups.iter().map(|g| group(file, g)).collect())));
    Ok(Value::Map(all))
}

fn group(file: &RawFile, group: &Group) -> Value {
    let columns = group.chunks.iter().zip(&file.schema.leaves).map(|(chunk, leaf)| {
        let mut column = vec![
            ("path".to_owned(), Value::from(leaf.name())),
            ("offset".to_owned(), Value::from(chunk.range.start)),
        ];
        if let Some(name) = file.parts.get(chunk.source).and_then(|p| p.name.as_deref()) {
            column.push(("file".to_owned(), Value::from(name)));
        }
        match &chunk.metadata {
            Err(e) => column.push(("damaged".to_owned(), Value::from(e.as_str()))),
            Ok(m) => {
                column.push(("codec".to_owned(), Value::from(m.codec.name())));
                let encodings = m.encodings.iter().map(|e| Value::from(encoding(*e))).collect();
                column.push(("encodings".to_owned(), Value::List(encodings)));
                column.push(("num_values".to_owned(), Value::from(m.num_values)));
                column.push(("total_uncompressed_size".to_owned(), Value::from(m.total_uncompressed_size)));
                column.push(("total_compressed_size".to_owned(), Value::from(m.total_compressed_size)));
                column.push(("index_page_offset".to_owned(), Value::from(m.index_page_offset)));
                column.push(("metadata".to_owned(), describe_pairs(&m.key_value_metadata)));
            }
        }
        Value::Map(column)
    });
    Value::map([
        ("offset", Value::from(group.start)),
        ("length", Value::from(group.end.saturating_sub(group.start))),
        ("rows", Value::from(group.rows)),
        ("columns", Value::List(columns.collect())),
    ])
}

fn encoding(code: i32) -> String {
    match code {
        PLAIN => "PLAIN".to_owned(),
        GROUP_VAR_INT => "GROUP_VAR_INT".to_owned(),
        other => other.to_string(),
    }
}

/// The opened file as a tree. For a table of several files, the first file.
pub(crate) fn tree(file: &RawFile) -> Result<Node> {
    let Some(part) = file.parts.first() else { return Ok(Node::new("file", 0..0)) };
    let len = part.source.len();
    let mut root = Node::new("file", 0..len).with("dialect", file.dialect()?.name());
    if part.source.read(0..len.min(4))?.as_ref() == MAGIC {
        root.push(Node::new("magic", 0..4));
    }
    let footer = part.footer.clone().or_else(|| {
        let footer = footer::read(part.source.as_ref(), &file.options.limits).ok()?;
        Some(footer.start..footer.end)
    });
    let data_end = footer.as_ref().map_or(len, |f| f.start);
    let start_of = |group: &&Arc<Group>| {
        let first = group.chunks.iter().filter(|c| c.source == 0).map(first_page).min();
        first.unwrap_or(group.start)
    };
    let mut groups: Vec<_> = file.groups.iter().filter(|g| g.part == 0).collect();
    groups.sort_by_cached_key(start_of);
    let mut ends: Vec<u64> = groups.iter().skip(1).map(start_of).collect();
    ends.push(data_end);
    let mut at = 4;
    let mut window = Window::new(part.source.clone(), WINDOW);
    for (group, end) in groups.into_iter().zip(ends) {
        // Row groups overlap only in damaged files. Bytes that are listed twice are shown once.
        let (start, end) = (start_of(&group).max(at).min(len), end.min(len));
        if start >= end {
            continue;
        }
        if start >= at + 4 && window.read(start - 4..start)?.as_ref() == MAGIC {
            root.push(Node::new("row group marker", start - 4..start));
        }
        root.push(group_node(file, &mut window, group, start..end)?);
        at = end;
    }
    if let Some(footer) = footer.filter(|f| f.start >= at) {
        let frame = footer.end - FRAME_LEN;
        root.push(Node::new("metadata", footer.start..frame).with("num_rows", file_rows(file)));
        root.push(Node::new("metadata length", frame..frame + 4));
        root.push(Node::new("magic", frame + 4..footer.end));
    }
    root.fill_gaps("unknown");
    Ok(root)
}

/// The offset of a chunk's first page of any type.
fn first_page(chunk: &Chunk) -> u64 {
    let index = chunk.metadata.as_ref().ok().and_then(|m| m.index_page_offset);
    let index = index.and_then(|at| u64::try_from(at).ok());
    index.map_or(chunk.range.start, |at| at.min(chunk.range.start))
}

fn file_rows(file: &RawFile) -> u64 {
    file.groups.iter().fold(0, |n, g| n.saturating_add(g.rows))
}

fn group_node(file: &RawFile, window: &mut Window, group: &Group, bytes: Range<u64>) -> Result<Node> {
    let mut node = Node::new(group.name(), bytes.clone()).with("rows", group.rows);
    let mut chunks: Vec<_> =
        group.chunks.iter().zip(&file.schema.leaves).filter(|(c, _)| c.source == 0).collect();
    chunks.retain(|(c, _)| c.metadata.is_ok());
    chunks.sort_by_key(|(c, _)| first_page(c));
    let mut ends: Vec<u64> = chunks.iter().skip(1).map(|(c, _)| first_page(c)).collect();
    ends.push(bytes.end);
    let mut at = bytes.start;
    for ((chunk, leaf), end) in chunks.into_iter().zip(ends) {
        let (start, end) = (first_page(chunk).max(at), end.min(bytes.end));
        if start >= end {
            continue;
        }
        let name = format!("column chunk `{}`", leaf.name());
        node.push(chunk_node(file, window, chunk, Node::new(name, start..end).with("path", leaf.name()))?);
        at = end;
    }
    node.fill_gaps("unknown");
    Ok(node)
}

/// The pages of a chunk, of any type.
fn chunk_node(file: &RawFile, window: &mut Window, chunk: &Chunk, mut node: Node) -> Result<Node> {
    let Ok(metadata) = &chunk.metadata else { return Ok(node) };
    node = node.with("codec", metadata.codec.name()).with("num_values", metadata.num_values);
    let limits = file.options.limits;
    let mut left = u64::try_from(metadata.num_values).unwrap_or(0);
    let (mut at, mut number) = (node.bytes.start, 0u64);
    while left > 0 && at < node.bytes.end {
        let max = node.bytes.end - at;
        let bytes = window.read(at..at + max.min(HEADER_GUESS))?;
        let header = match PageHeader::parse(&bytes, at, &limits) {
            Ok(header) => header,
            Err(e) => {
                node.push(Node::new("damage", at..node.bytes.end).with("damaged", e.to_string()));
                at = node.bytes.end;
                break;
            }
        };
        let body = at + header.len as u64;
        let end = body.saturating_add(header.compressed as u64).min(node.bytes.end);
        let mut page = Node::new(page_name(&header, number), at..end);
        page.push(Node::new("page header", at..body));
        let mut stored = Node::new("page data", body..end).with("uncompressed", header.uncompressed);
        if let Some(data) = header.data {
            stored = stored.with("num_values", data.num_values).with("encoding", encoding(data.encoding));
            left = left.saturating_sub(data.num_values as u64);
            number += 1;
        }
        if let Some(crc) = header.crc {
            stored = stored.with("crc", crc);
        }
        page.push(stored);
        node.push(page);
        at = end;
    }
    // After the pages there may be the metadata of the chunk, earlier footers, and the marker of the next row
    // group.
    if at < node.bytes.end {
        let bytes = window.read_up_to(at, (node.bytes.end - at).min(METADATA_GUESS))?;
        let mut reader = Reader::new(&bytes, at, &limits);
        if ColumnMetaData::decode(&mut reader).is_ok() {
            node.push(Node::new("column metadata", at..reader.offset()));
            at = reader.offset();
        }
        let rest = node.bytes.end - at;
        let ends_marked = window.read(node.bytes.end - rest.min(4)..node.bytes.end)?.as_ref() == MAGIC;
        let name = match (ends_marked, rest) {
            (true, 4) => "row group marker",
            (true, _) => "cumulative footer",
            _ => "unknown",
        };
        node.push(Node::new(name, at..node.bytes.end));
    }
    Ok(node)
}

fn page_name(header: &PageHeader, number: u64) -> String {
    match header.page_type {
        DATA_PAGE => format!("page {number}"),
        1 => "index page".to_owned(),
        other => format!("page of type {other}"),
    }
}
