//! Where each byte of a CFile belongs.

use coldframe_core::{Node, Result, Value};

use crate::layout::block::BlockPointer;
use crate::layout::footer::{CHECKSUM_LEN, FRAME_LEN};
use crate::open::{CFile, Purpose};
use crate::prune::walk;

/// The file as a tree.
pub(crate) fn tree(file: &CFile, kind: Purpose) -> Result<Node> {
    let footer = file.footer();
    let len = file.source().len();
    let mut root = Node::new("file", 0..len)
        .with("kind", kind.name())
        .with("version", footer.version.number())
        .with("num_values", footer.num_values);
    root.push(header(file));
    let mut blocks = Vec::new();
    if let Some(pointer) = footer.positional {
        index(file, pointer, "positional index", "data block", &mut blocks)?;
    }
    if let Some(pointer) = footer.value {
        let leaf = if kind == Purpose::Bloom { "bloom block" } else { "data block" };
        index(file, pointer, "value index", leaf, &mut blocks)?;
    }
    if let Some(pointer) = footer.dictionary {
        blocks.push(block(file, Node::new("dictionary block", pointer.range())));
    }
    blocks.sort_by_key(|node| (node.bytes.start, node.bytes.end));
    let mut at = footer.header.end;
    for node in blocks {
        // Both indexes lead to the same data blocks: each is shown once. So is what overlaps in a damaged file.
        if node.bytes.start >= at {
            at = node.bytes.end;
            root.push(node);
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

/// The blocks of an index and those that it leads to. Damage is a node.
fn index(file: &CFile, root: BlockPointer, name: &str, leaf: &str, nodes: &mut Vec<Node>) -> Result<()> {
    let mut open = vec![(root, 1u64)];
    // A tree whose blocks point to each other has no more blocks than the file has bytes for.
    let mut left = file.source().len() / 8 + 1;
    while let Some((pointer, depth)) = open.pop() {
        left = left.saturating_sub(1);
        if left == 0 || depth > file.format().limits.max_depth {
            break;
        }
        let node = Node::new(format!("{name} block"), pointer.range());
        let found = match walk::load(file.source().as_ref(), file.format(), pointer, file.blocks_end()) {
            Ok(found) => found,
            Err(e) if e.is_damage() => {
                nodes.push(node.with("damaged", e.to_string()));
                continue;
            }
            Err(e) => return Err(e),
        };
        let level = if found.leaf { "leaf" } else { "inner" };
        let mut node = node.with("level", level).with("entries", found.len());
        for i in 0..found.len() {
            match found.entry(i) {
                Ok((key, to)) if found.leaf => {
                    let key = Value::Bytes(key.to_vec());
                    nodes.push(block(file, Node::new(leaf, to.range()).with("key", key)));
                }
                Ok((_, to)) => open.push((to, depth + 1)),
                Err(e) => {
                    node = node.with("damaged", e.to_string());
                    break;
                }
            }
        }
        nodes.push(block(file, node));
    }
    Ok(())
}
