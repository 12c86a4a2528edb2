//! Finds the structure to which each byte of an RCFile belongs.

use arrow_schema::Fields;
use coldframe_core::{Node, Result, Value};

use crate::layout::header::SYNC_LEN;
use crate::layout::row_group::RowGroup;
use crate::open::RawFile;
use crate::walk::WalkItem;

/// Maximum number of row groups that are listed individually, since the description of a small group takes
/// more memory than the group. The other groups are one entry.
const MAX_GROUPS: u64 = 1 << 16;

/// Maximum number of nodes of a tree.
const MAX_NODES: u64 = 1 << 18;

/// Sums of the row groups and the damage that are not listed individually.
#[derive(Default)]
struct Rest {
    bytes: Option<std::ops::Range<u64>>,
    groups: u64,
    rows: u64,
    damaged: u64,
}

impl Rest {
    fn add(&mut self, item: &WalkItem) {
        let range = match item {
            WalkItem::Group(group) => {
                self.groups += 1;
                self.rows = self.rows.saturating_add(group.key.rows);
                group.start()..group.end()
            }
            WalkItem::Damaged(range, _) => {
                self.damaged += 1;
                range.clone()
            }
        };
        let start = self.bytes.as_ref().map_or(range.start, |all| all.start);
        self.bytes = Some(start..range.end);
    }
}

/// One entry for each row group.
pub(crate) fn row_groups(file: &RawFile) -> Result<Vec<Value>> {
    let (mut groups, mut rest) = (Vec::new(), Rest::default());
    file.walk().each(|item| {
        if groups.len() as u64 >= MAX_GROUPS {
            rest.add(&item);
            return Ok(());
        }
        groups.push(match item {
            WalkItem::Group(g) => Value::map([
                ("offset", Value::from(g.start())),
                ("length", Value::from(g.end() - g.start())),
                ("rows", Value::from(g.key.rows)),
                ("sync", Value::from(g.sync.is_some())),
            ]),
            WalkItem::Damaged(range, e) => Value::map([
                ("offset", Value::from(range.start)),
                ("length", Value::from(range.end - range.start)),
                ("damaged", Value::from(e.to_string())),
            ]),
        });
        Ok(())
    })?;
    if let Some(bytes) = &rest.bytes {
        groups.push(Value::map([
            ("offset", Value::from(bytes.start)),
            ("length", Value::from(bytes.end - bytes.start)),
            ("rows", Value::from(rest.rows)),
            ("row_groups", Value::from(rest.groups)),
            ("damaged_places", Value::from(rest.damaged)),
        ]));
    }
    Ok(groups)
}

/// The whole file as a tree.
pub(crate) fn tree(file: &RawFile, names: &Fields) -> Result<Node> {
    let mut root = Node::new("file", 0..file.len());
    root.push(header_node(file));
    let (mut number, mut nodes, mut rest) = (0, 0, Rest::default());
    let each_group = file.header.columns as u64 + 4;
    file.walk().each(|item| {
        nodes += each_group;
        if nodes > MAX_NODES && number > 0 {
            rest.add(&item);
            return Ok(());
        }
        root.push(match item {
            WalkItem::Group(g) => group_node(number, &g, names),
            WalkItem::Damaged(range, e) => Node::new("damage", range).with("damaged", e.to_string()),
        });
        number += 1;
        Ok(())
    })?;
    if let Some(bytes) = rest.bytes {
        let node = Node::new("further row groups", bytes).with("rows", rest.rows);
        root.push(node.with("row_groups", rest.groups).with("damaged_places", rest.damaged));
    }
    root.fill_gaps("unknown");
    Ok(root)
}

fn header_node(file: &RawFile) -> Node {
    let header = &file.header;
    let sync_start = header.end - SYNC_LEN as u64;
    let mut node = Node::new("header", 0..header.end);
    node.detail = header.describe();
    node.push(Node::new("magic and codec", 0..header.metadata_offset));
    node.push(Node::new("metadata", header.metadata_offset..sync_start));
    node.push(Node::new("sync", sync_start..header.end));
    node
}

fn group_node(number: u64, group: &RowGroup, names: &Fields) -> Node {
    let mut node =
        Node::new(format!("row group {number}"), group.start()..group.end()).with("rows", group.key.rows);
    if let Some(sync) = &group.sync {
        node.push(Node::new("sync marker", sync.clone()));
    }
    let header = Node::new("record header", group.header_offset..group.key_bytes.start)
        .with("record_length", group.header.record_len)
        .with("key_length", group.header.key_len)
        .with("key_length_on_disk", group.header.key_disk_len);
    node.push(header);
    node.push(Node::new("key buffer", group.key_bytes.clone()).with("length", group.key.len));
    for (i, (range, key)) in group.column_ranges().zip(&group.key.columns).enumerate() {
        let column = Node::new(format!("column {i}"), range)
            .with("path", names.get(i).map(|field| field.name().clone()))
            .with("length", key.data_len)
            .with("nulled", key.lengths.is_empty() && group.key.rows > 0);
        node.push(column);
    }
    node
}
