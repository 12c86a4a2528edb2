//! Where each byte of a CFile belongs, and what the file says twice and differently.

use coldframe_core::{Damage, Error, Node, Result};

use crate::block::BlockPointer;
use crate::bloom::BloomBlock;
use crate::column::CFile;
use crate::file::{CFileTable, Kind};
use crate::footer::{CHECKSUM_LEN, FRAME_LEN};
use crate::index::IndexBlock;

/// The file as a tree.
pub(crate) fn tree(table: &CFileTable) -> Result<Node> {
    let file = table.file();
    let footer = file.footer();
    let len = file.source().len();
    let mut root = Node::new("file", 0..len)
        .with("kind", table.kind().name())
        .with("version", footer.version.number())
        .with("num_values", footer.num_values);
    root.push(header(file));
    let mut blocks = Vec::new();
    if let Some(pointer) = footer.positional {
        index(file, pointer, "positional index", "data block", &mut blocks)?;
    }
    if let Some(pointer) = footer.value {
        let leaf = if table.kind() == Kind::Bloom { "bloom block" } else { "data block" };
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
        let found = match IndexBlock::load(file.source().as_ref(), file.format(), pointer, file.blocks_end())
        {
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
                    let key = coldframe_core::Value::Bytes(key.to_vec());
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

/// Checks what a scan does not read: the value index beside a positional one, bloom blocks, bytes of no block.
pub(crate) fn contradictions(table: &CFileTable) -> Result<Vec<Damage>> {
    let file = table.file();
    let mut found = Vec::new();
    for node in tree(table)?.children.iter().filter(|n| n.name == "unknown") {
        let e = Error::corrupt(format!(
            "expected a block that an index leads to, found {} bytes of none",
            node.bytes.end - node.bytes.start
        ));
        found.push(Damage::from_error(&e.within("unknown bytes"), node.bytes.clone(), None));
    }
    if file.footer().value.is_some() {
        let blocks = match file.blocks_by_value() {
            Ok(blocks) => blocks,
            Err(e) if e.is_damage() => {
                found.push(Damage::from_error(&e, 0..file.blocks_end(), None));
                Vec::new()
            }
            Err(e) => return Err(e),
        };
        if table.kind() == Kind::Bloom {
            check_blooms(file, blocks, &mut found)?;
        }
    }
    Ok(found)
}

fn check_blooms(file: &CFile, blocks: Vec<BlockPointer>, found: &mut Vec<Damage>) -> Result<()> {
    for pointer in blocks {
        let stored = file.source().read(pointer.range())?;
        let contents = file.format().open_owned(&stored, pointer.offset);
        let parsed = contents.and_then(|c| BloomBlock::parse(&c, pointer.offset).map(drop));
        match parsed {
            Ok(()) => {}
            Err(e) if e.is_damage() => {
                found.push(Damage::from_error(&e.within("bloom block"), pointer.range(), None));
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
