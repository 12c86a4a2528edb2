//! Where each byte of an RCFile belongs.

use coldframe_core::{Node, Result, Value};

use crate::layout::header::SYNC_LEN;
use crate::layout::row_group::RowGroup;
use crate::open::RawFile;
use crate::walk::Met;

/// One entry for each row group, and their rows together.
pub(crate) fn row_groups(file: &RawFile) -> Result<(Vec<Value>, u64)> {
    let (mut groups, mut rows) = (Vec::new(), 0u64);
    file.walk().each(|met| {
        groups.push(match met {
            Met::Group(g) => {
                rows = rows.saturating_add(g.key.rows);
                Value::map([
                    ("offset", Value::from(g.start())),
                    ("length", Value::from(g.end() - g.start())),
                    ("rows", Value::from(g.key.rows)),
                    ("sync", Value::from(g.sync.is_some())),
                ])
            }
            Met::Damaged(range, e) => Value::map([
                ("offset", Value::from(range.start)),
                ("length", Value::from(range.end - range.start)),
                ("damaged", Value::from(e.to_string())),
            ]),
        });
        Ok(())
    })?;
    Ok((groups, rows))
}

/// The whole file as a tree.
pub(crate) fn tree(file: &RawFile) -> Result<Node> {
    let mut root = Node::new("file", 0..file.len());
    root.push(header_node(file));
    let mut number = 0;
    file.walk().each(|met| {
        root.push(match met {
            Met::Group(g) => group_node(number, &g),
            Met::Damaged(range, e) => Node::new("damaged", range).with("reason", e.to_string()),
        });
        number += 1;
        Ok(())
    })?;
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

fn group_node(number: u64, group: &RowGroup) -> Node {
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
            .with("length", key.data_len)
            .with("nulled", key.lengths.is_empty() && group.key.rows > 0);
        node.push(column);
    }
    node
}
