//! The layout of a data directory: its files in path order, and in them the table's blocks, shown as CFiles.

use std::collections::{BTreeMap, HashMap};

use coldframe_cfile::CFileTable;
use coldframe_cfile::options::Options;
use coldframe_core::io::Entry;
use coldframe_core::{Fault, Node, Result, TableFile};

use crate::open::LocatedTable;
use crate::store::crypt::HEADER;
use crate::tablet::{RowSet, Tablet};

/// Files are listed down to this depth below the folder, because links can form cycles.
const DEPTH: usize = 16;

/// A block of the table: its number and its purpose.
pub(crate) struct Block<'a> {
    pub(crate) tablet: &'a Tablet,
    pub(crate) name: String,
    pub(crate) id: u64,
    /// The table column that the block holds, if any.
    pub(crate) column: Option<&'a str>,
    /// Whether a scan of the latest snapshot reads all of the block.
    pub(crate) scanned: bool,
}

/// All blocks of the table.
pub(crate) fn blocks(table: &LocatedTable) -> Vec<Block<'_>> {
    let mut all = Vec::new();
    for tablet in &table.tablets {
        let names = tablet.schema.columns.iter().map(|c| (c.id, c.name.as_str())).collect();
        for rowset in &tablet.rowsets {
            of_rowset(tablet, &names, rowset, &mut all);
        }
    }
    all
}

fn of_rowset<'a>(
    tablet: &'a Tablet,
    names: &HashMap<i32, &'a str>,
    rowset: &RowSet,
    all: &mut Vec<Block<'a>>,
) {
    let mut add = |name: &str, id: u64, column: Option<&'a str>, scanned: bool| {
        let name = format!("tablet {}: rowset {}: {name} (block {id})", tablet.id, rowset.id);
        all.push(Block { tablet, name, id, column, scanned });
    };
    for (number, id) in &rowset.columns {
        match names.get(number) {
            Some(name) => add(&format!("column `{name}`"), *id, Some(*name), true),
            None => add(&format!("dropped column number {number}"), *id, None, false),
        }
    }
    rowset.redo.iter().for_each(|id| add("REDO deltas", *id, None, true));
    rowset.undo.iter().for_each(|id| add("UNDO deltas", *id, None, false));
    rowset.bloom.iter().for_each(|id| add("bloom filter", *id, None, false));
    rowset.adhoc_index.iter().for_each(|id| add("ad hoc index", *id, None, false));
}

/// Shows each file as a node, with the table's blocks inside.
pub(crate) fn folder(table: &LocatedTable) -> Result<Node> {
    let mut parts: BTreeMap<String, Vec<Node>> = BTreeMap::new();
    for block in blocks(table) {
        match tree(table, &block) {
            Ok((path, node)) => parts.entry(path).or_default().push(node),
            // The tree cannot show a missing block; `verify` reports it.
            Err(e) if Fault::is(&e) => {}
            Err(e) => return Err(e),
        }
    }
    let mut at = 0;
    let mut root = Node::new("Kudu data directory", 0..0);
    for entry in files(table)? {
        root.push(file(entry, at, &mut parts));
        at = root.children.last().map_or(at, |n| n.bytes.end.max(at));
    }
    root.bytes = 0..at;
    Ok(root)
}

fn files(table: &LocatedTable) -> Result<Vec<Entry>> {
    let mut files = Vec::new();
    let mut open = vec![String::new()];
    while let Some(path) = open.pop() {
        for entry in table.folder.list(&path)? {
            if !entry.is_folder {
                files.push(entry);
            } else if entry.path.split('/').count() < DEPTH {
                open.push(entry.path);
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn file(entry: Entry, at: u64, parts: &mut BTreeMap<String, Vec<Node>>) -> Node {
    let mut node = Node::new(entry.path.clone(), at..at.saturating_add(entry.len));
    let mut own = parts.remove(&entry.path).unwrap_or_default();
    own.sort_by_key(|n| n.bytes.start);
    let mut reached = 0;
    for part in own {
        // Two blocks that overlap are damage; only the first is shown.
        if part.bytes.start >= reached && part.bytes.end <= entry.len {
            reached = part.bytes.end;
            node.push(moved(part, at));
        }
    }
    let encrypted = node.children.first().is_some_and(|n| n.bytes.start == at + HEADER);
    if encrypted {
        node.children.insert(0, Node::new("encryption header", at..at + HEADER));
    }
    if !node.children.is_empty() {
        node.fill_gaps("free, or a block of another table");
    }
    node
}

fn moved(mut node: Node, by: u64) -> Node {
    node.bytes = node.bytes.start + by..node.bytes.end + by;
    node.children = node.children.into_iter().map(|n| moved(n, by)).collect();
    node
}

/// Options for opening the table's CFiles.
pub(crate) fn options(table: &LocatedTable) -> Options {
    let reading = &table.reading;
    Options {
        ordinal: false,
        value_type: None,
        dictionary: false,
        verify: reading.verify,
        limits: reading.limits,
    }
}

/// Returns the path of the file that holds a block, and the block's node at its offset there.
fn tree(table: &LocatedTable, block: &Block<'_>) -> Result<(String, Node)> {
    let open = block.tablet.server.store.open(block.id)?;
    let end = open.offset.saturating_add(open.bytes.len());
    let node = match CFileTable::open(open.bytes, options(table)).and_then(|file| file.inspect()) {
        Ok(node) => moved(node, open.offset),
        Err(e) if Fault::is(&e) => Node::new("", open.offset..end).with("damaged", e.to_string()),
        Err(e) => return Err(e),
    };
    let mut node = Node { name: block.name.clone(), ..node };
    if let Some(column) = block.column {
        node = node.with("path", column);
    }
    Ok((open.path, node))
}
