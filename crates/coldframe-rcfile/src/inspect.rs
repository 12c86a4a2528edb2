//! Where each byte of an RCFile belongs, and what the file says twice without agreeing.

use std::ops::Range;

use coldframe_core::{Damage, Error, Node, Result, Value};

use crate::file::RcFile;
use crate::header::SYNC_LEN;
use crate::key_buffer::count_cells;
use crate::row_group::{RowGroup, Walk};

/// What a walk over the whole file meets.
enum Met {
    Group(Box<RowGroup>),
    Damaged(Range<u64>, Error),
}

/// Walks the whole file; behind damage it goes on at the next readable group.
fn walk(file: &RcFile, mut each: impl FnMut(Met) -> Result<()>) -> Result<()> {
    let mut walk: Walk = file.walk();
    let mut at = file.header().end;
    while at < file.len() {
        match walk.read_group(at) {
            Ok(group) => {
                at = group.end();
                each(Met::Group(Box::new(group)))?;
            }
            Err(e) if e.is_damage() => {
                let (next, _) = walk.resume(at)?;
                each(Met::Damaged(at..next, e))?;
                at = next;
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// One entry for each row group, and their rows together.
pub(crate) fn row_groups(file: &RcFile) -> Result<(Vec<Value>, u64)> {
    let (mut groups, mut rows) = (Vec::new(), 0u64);
    walk(file, |met| {
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
pub(crate) fn tree(file: &RcFile) -> Result<Node> {
    let mut root = Node::new("file", 0..file.len());
    root.push(header_node(file));
    let mut number = 0;
    walk(file, |met| {
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

fn header_node(file: &RcFile) -> Node {
    let header = file.header();
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

/// What the file says twice and differently. No row is lost by it: readers only use one of the two.
pub(crate) fn contradictions(file: &RcFile) -> Result<Vec<Damage>> {
    let (mut found, mut number) = (Vec::new(), 0u64);
    walk(file, |met| {
        if let Met::Group(group) = met {
            let bytes = group.header_offset..group.key_bytes.start;
            let mut report = |what: String, expected: i128, stated: i128| {
                if expected != stated {
                    found.push(Damage {
                        bytes: bytes.clone(),
                        rows_lost: Some(0),
                        structure: format!("row group {number}: {what}"),
                        reason: format!("expected {expected}, found {stated}"),
                    });
                }
            };
            let key_len = group.key.len as i128;
            report("key length".to_owned(), key_len, group.header.key_len.into());
            let record_len = key_len + i128::from(group.key.disk_len());
            report("record length".to_owned(), record_len, group.header.record_len.into());
            for (i, column) in group.key.columns.iter().enumerate().filter(|(_, c)| !c.lengths.is_empty()) {
                let cells = count_cells(&column.lengths).map_or(0, |(cells, _)| cells);
                report(format!("column {i}: cells"), group.key.rows.into(), cells.into());
            }
        }
        number += 1;
        Ok(())
    })?;
    Ok(found)
}
