//! The tree that `inspect` returns, in which each byte of the file belongs to one leaf.

use coldframe_core::{Node, Result};

use crate::layout::block::Header;
use crate::open::RawFile;
use crate::recover::walk::{BlockWalk, Step};

/// Approximately how many bytes of memory the nodes of a block take.
const NODE_BYTES: u64 = 1 << 10;

/// The layout of the file as a tree.
pub(crate) fn inspect(file: &RawFile) -> Result<Node> {
    let len = file.source.len();
    let mut root = Node::new("file", 0..len).with("format", "hfile");
    if file.context.major == 1 {
        version_1(file, &mut root);
    } else {
        blocks(file, &mut root)?;
    }
    if file.trailer.major > 0 {
        root.push(trailer_node(file, len)?);
    }
    root.children.sort_by_key(|n| n.bytes.start);
    root.fill_gaps("unknown");
    Ok(root)
}

fn blocks(file: &RawFile, root: &mut Node) -> Result<()> {
    let context = &file.context;
    let mut walk =
        BlockWalk::new(file.source.clone(), context.with_checksums, context.limits, 0..file.trailer_start());
    let load_on_open = if file.damage.is_none() { file.trailer.load_on_open_offset } else { u64::MAX };
    let mut scanned = Node::new("scanned section", 0..0);
    let mut opened = Node::new("load-on-open section", 0..0);
    // The size of the file limits the size of the tree: if a file consists of nothing but headers, only the
    // first blocks are listed.
    let mut room = (1 << 14) + file.source.len() / NODE_BYTES;
    while let Some(step) = walk.step()? {
        room = room.saturating_sub(1);
        if room == 0 {
            let rest = step.start()..file.trailer_start();
            root.push(Node::new("unlisted blocks", rest));
            break;
        }
        let node = match step {
            Step::Block(offset, header) => block_node(offset, &header),
            Step::Damage(range, e) => Node::new("damage", range).with("damaged", e.to_string()),
        };
        let section = if node.bytes.start < load_on_open { &mut scanned } else { &mut opened };
        if section.children.is_empty() {
            section.bytes.start = node.bytes.start;
        }
        section.bytes.end = node.bytes.end;
        section.push(node);
    }
    root.push(scanned);
    root.push(opened);
    Ok(())
}

fn block_node(offset: u64, header: &Header) -> Node {
    let data_at = offset.saturating_add(header.header_len as u64);
    let sums_at = data_at.saturating_add(header.stored as u64);
    let end = offset.saturating_add(header.block_len());
    let mut node = Node::new(header.block_type.name(), offset..end)
        .with("raw_size", header.raw)
        .with("previous_block_offset", header.previous);
    if let Some(checksums) = header.checksums {
        let name = ["NULL", "CRC32", "CRC32C"].get(usize::from(checksums.kind)).copied();
        node = node.with("checksum_type", name).with("bytes_per_checksum", checksums.chunk);
    }
    node.push(Node::new("header", offset..data_at));
    node.push(Node::new("data", data_at..sums_at));
    node.push(Node::new("checksums", sums_at..end));
    node
}

fn version_1(file: &RawFile, root: &mut Node) {
    let trailer = &file.trailer;
    for (blocks, name) in [(&*file.root, "data block"), (&file.meta, "meta block")] {
        for block in blocks.blocks() {
            let node = Node::new(name, file.range_of(block)).with("raw_size", block.size);
            if node.bytes.end <= trailer.file_info_offset {
                root.push(node);
            }
        }
    }
    let end = file.trailer_start();
    let meta = trailer.meta_index_offset.filter(|_| trailer.meta_index_count > 0).unwrap_or(end);
    let index = trailer.load_on_open_offset;
    for (name, range) in [
        ("file info", trailer.file_info_offset..index),
        ("data index", index..meta),
        ("meta index", meta..end),
    ] {
        if range.start <= range.end {
            root.push(Node::new(name, range));
        }
    }
    // If the offsets contradict each other, they cannot form a tree.
    root.children.sort_by_key(|n| n.bytes.start);
    let mut at = 0;
    root.children.retain(|node| {
        let fits = node.bytes.start >= at && node.bytes.end <= end;
        if fits {
            at = node.bytes.end;
        }
        fits
    });
}

fn trailer_node(file: &RawFile, len: u64) -> Result<Node> {
    let start = file.trailer_start();
    let mut node = Node::new("trailer", start..len)
        .with("version", format!("{}.{}", file.trailer.major, file.trailer.minor))
        .with("entry_count", file.trailer.entry_count)
        .with("comparator", file.trailer.comparator.as_str());
    let version_at = len.saturating_sub(4).max(start);
    let fields_at = (start + 8).min(version_at);
    node.push(Node::new("magic", start..fields_at));
    let fields = file.source.read(fields_at..version_at)?;
    let used = fields.iter().rposition(|b| *b != 0).map_or(0, |last| last as u64 + 1);
    node.push(Node::new("fields", fields_at..fields_at + used));
    node.push(Node::new("padding", fields_at + used..version_at));
    node.push(Node::new("version", version_at..len));
    Ok(node)
}
