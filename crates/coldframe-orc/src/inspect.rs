//! Describes the layout of a file as a tree: the structure to which each byte belongs.

use coldframe_core::{Node, Result};

use crate::layout::stripe::{StreamKind, Stripe};
use crate::layout::tail::MAGIC;
use crate::metadata::named;
use crate::open::Shape;

/// `ColumnEncoding.kind`.
const ENCODINGS: [&str; 4] = ["DIRECT", "DICTIONARY", "DIRECT_V2", "DICTIONARY_V2"];

/// The layout of the file.
pub(crate) fn tree(shape: &Shape) -> Result<Node> {
    let tail = &shape.tail;
    let (major, minor) = tail.version();
    let mut root = Node::new("file", 0..tail.file_len)
        .with("version", format!("{major}.{minor}"))
        .with("compression", tail.compression.name())
        .with("rows", tail.footer.number_of_rows);
    let mut parts: Vec<Node> = Vec::new();
    let head = shape.source.read(0..tail.file_len.min(3))?;
    if head == MAGIC {
        parts.push(Node::new("magic", 0..3));
    }
    for stripe in &shape.stripes {
        parts.push(stripe_node(shape, stripe)?);
    }
    parts.push(Node::new("stripe statistics", tail.stripe_statistics_bytes.clone()));
    parts.push(Node::new("metadata", tail.metadata_bytes.clone()));
    parts.push(Node::new("footer", tail.footer_bytes.clone()).with("stripes", shape.stripes.len()));
    let last = tail.postscript_bytes.end..tail.file_len;
    parts.push(Node::new("postscript", tail.postscript_bytes.clone()));
    parts.push(Node::new("postscript length", last));
    parts.sort_by_key(|n| n.bytes.start);
    for part in parts {
        push_apart(&mut root, part);
    }
    root.fill_gaps("gap");
    Ok(root)
}

/// Adds a part; a part that overlaps an existing part is ignored, since [`crate::verify`] reports
/// contradictions.
fn push_apart(parent: &mut Node, part: Node) {
    let end = parent.children.last().map_or(parent.bytes.start, |n| n.bytes.end);
    if part.bytes.start >= end && part.bytes.end <= parent.bytes.end {
        parent.push(part);
    }
}

fn stripe_node(shape: &Shape, stripe: &Stripe) -> Result<Node> {
    let mut node = Node::new(stripe.name(), stripe.bytes.clone())
        .with("rows", stripe.rows)
        .with("index_length", stripe.index_length);
    let layout = match shape.layout(stripe) {
        Ok(layout) => layout,
        Err(e) if e.is_confined() => {
            node = node.with("damaged", e.to_string());
            node.push(Node::new("streams", stripe.bytes.start..stripe.footer.start));
            node.push(Node::new("stripe footer", stripe.footer.clone()));
            return Ok(node);
        }
        Err(e) => return Err(e),
    };
    if let Some(zone) = &layout.writer_timezone {
        node = node.with("writer_timezone", zone.clone());
    }
    let mut streams: Vec<_> = layout.streams.iter().collect();
    streams.sort_by_key(|s| s.bytes.start);
    for stream in streams {
        let kind = StreamKind::from_number(stream.kind);
        let name = kind.map_or_else(|| format!("stream of kind {}", stream.kind), |k| k.name().to_owned());
        let path = shape.tree.get(stream.column).map(|c| c.path.clone());
        let mut part = Node::new(name, stream.bytes.clone()).with("column", stream.column).with("path", path);
        if kind == Some(StreamKind::Data) {
            let encoding = layout.encoding(stream.column);
            part = part.with("encoding", named(&ENCODINGS, encoding.kind()));
            if encoding.dictionary_size() > 0 {
                part = part.with("dictionary_size", encoding.dictionary_size());
            }
        }
        if let Some(variant) = stream.variant {
            part = part.with("encryption_variant", variant);
        }
        push_apart(&mut node, part);
    }
    push_apart(&mut node, Node::new("stripe footer", stripe.footer.clone()));
    node.fill_gaps("unused");
    Ok(node)
}
