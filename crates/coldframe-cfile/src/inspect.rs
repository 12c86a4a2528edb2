//! The layout tree of a CFile.

use std::ops::Range;

use coldframe_core::{Limits, Node, Result, Value};

use crate::layout::block::BlockPointer;
use crate::layout::footer::{CHECKSUM_LEN, FRAME_LEN};
use crate::open::{CFile, Purpose};
use crate::prune::walk::Step;

/// The file as a tree of nodes.
pub(crate) fn tree(file: &CFile, kind: Purpose) -> Result<Node> {
    let footer = file.footer();
    let len = file.source().len();
    let mut root = Node::new("file", 0..len)
        .with("kind", kind.name())
        .with("version", footer.version.number())
        .with("num_values", footer.num_values);
    root.push(header(file));
    let limits = file.format().limits;
    let mut blocks = Nodes { all: Vec::new(), bytes: 0, file_len: len, limits };
    if let Some(pointer) = footer.positional {
        index(file, pointer, "positional index", "data block", &mut blocks)?;
    }
    if let Some(pointer) = footer.value {
        let leaf = if kind == Purpose::Bloom { "bloom block" } else { "data block" };
        index(file, pointer, "value index", leaf, &mut blocks)?;
    }
    if let Some(pointer) = footer.dictionary {
        blocks.all.push(block(file, Node::new("dictionary block", pointer.range())));
    }
    let mut blocks = blocks.all;
    blocks.sort_by_key(|node| (node.bytes.start, node.bytes.end));
    let mut at = footer.header.end;
    for node in blocks {
        // Both indexes list the same data blocks, which are shown only once. If blocks of a damaged file
        // overlap, only the first is shown.
        if node.bytes.start >= at {
            at = node.bytes.end;
            root.push(node);
        } else if let Some(shown) = root.children.last_mut().filter(|shown| shown.bytes == node.bytes) {
            shown.detail.extend(node.detail.into_iter().filter(|(name, _)| name == "damaged"));
        }
    }
    root.push(tail(file));
    root.fill_gaps("unknown");
    Ok(root)
}

fn header(file: &CFile) -> Node {
    let footer = file.footer();
    let (end, sum) = (footer.header.end, if footer.has_checksums() { CHECKSUM_LEN } else { 0 });
    let mut node = Node::new("header", 0..end);
    node.push(Node::new("magic", 0..8));
    node.push(Node::new("length", 8..FRAME_LEN));
    node.push(Node::new("message", FRAME_LEN..end - sum));
    node.push(Node::new("checksum", end - sum..end));
    node
}

fn tail(file: &CFile) -> Node {
    let footer = file.footer();
    let (start, end) = (footer.range.start, footer.range.end);
    let message = start + if footer.has_checksums() { CHECKSUM_LEN } else { 0 };
    let mut node = Node::new("footer", start..end)
        .with("data_type", footer.data_type.name())
        .with("encoding", footer.encoding.name())
        .with("compression", footer.compression.name());
    node.push(Node::new("checksum", start..message));
    node.push(Node::new("message", message..end - FRAME_LEN));
    node.push(Node::new("magic", end - FRAME_LEN..end - 4));
    node.push(Node::new("length", end - 4..end));
    node
}

/// A block and its checksum.
fn block(file: &CFile, mut node: Node) -> Node {
    if file.footer().has_checksums() && node.bytes.end - node.bytes.start >= CHECKSUM_LEN {
        let sum = node.bytes.end - CHECKSUM_LEN;
        let (start, end) = (node.bytes.start, node.bytes.end);
        node.push(Node::new("payload", start..sum));
        node.push(Node::new("checksum", sum..end));
    }
    node
}

/// Collects the blocks that indexes list. The memory of nodes is limited in proportion to the file's length,
/// because a node takes many times the bytes of an index entry.
struct Nodes {
    all: Vec<Node>,
    bytes: u64,
    file_len: u64,
    limits: Limits,
}

impl Nodes {
    fn push(&mut self, node: Node) -> Result<()> {
        let names = node.name.len() + node.detail.iter().map(|(name, _)| name.len() + DETAIL).sum::<usize>();
        let size = size_of::<Node>() * (1 + 2 * node.children.len()) + names;
        self.bytes = self.bytes.saturating_add(size as u64);
        self.limits.decoded("the layout's nodes", self.bytes, self.file_len)?;
        self.all.push(node);
        Ok(())
    }
}

/// The approximate memory of a node's detail: its name and value.
const DETAIL: usize = 96;

/// Adds the blocks of an index and the blocks that it lists. Damage becomes a node, or a detail of a node.
fn index(file: &CFile, root: BlockPointer, name: &str, leaf: &str, nodes: &mut Nodes) -> Result<()> {
    let damaged = |bytes: Range<u64>, e: String| Node::new(format!("{name} block"), bytes).with("damaged", e);
    let mut walk = match file.walk(root) {
        Ok(walk) => walk.lossy().with_index_blocks(),
        Err(e) if e.is_confined() => return nodes.push(damaged(root.range(), e.to_string())),
        Err(e) => return Err(e),
    };
    // A block may have many invalid entries, but is reported as damaged only once.
    let mut last = None;
    while let Some(step) = walk.step()? {
        let node = match step {
            Step::Index { pointer, leaf, entries } => {
                let level = if leaf { "leaf" } else { "inner" };
                let node = Node::new(format!("{name} block"), pointer.range());
                block(file, node.with("level", level).with("entries", entries))
            }
            Step::Block(key, to) => block(file, Node::new(leaf, to.range()).with("key", Value::Bytes(key))),
            Step::Lost { bytes, .. } if last.as_ref() == Some(&bytes) => continue,
            Step::Lost { bytes, error, .. } => {
                last = Some(bytes.clone());
                damaged(bytes, error)
            }
        };
        match nodes.push(node) {
            Err(e) if e.is_confined() => {
                nodes.all.push(damaged(root.range(), e.to_string()));
                return Ok(());
            }
            other => other?,
        }
    }
    Ok(())
}
