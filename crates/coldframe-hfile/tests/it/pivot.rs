//! The wide table of a damaged file: if a block is lost, no outdated or deleted value may be returned
//! instead.

use crate::support;

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use bytes::Bytes as Buffer;
use coldframe_core::{Node, OnError, Scan, TableFile, Value};
use coldframe_hfile::HFile;
use coldframe_testing::mutate::flipped;
use coldframe_testing::rows;
use support::{cell, open, write};

/// Rows whose versions continue over many blocks, newest first. Every third row begins with a delete of its column;
/// every fourth ends with one version of another column.
fn versions() -> Buffer {
    let mut cells = Vec::new();
    for row in 0..40 {
        let name = format!("row-{row:03}");
        if row % 3 == 0 {
            cells.push(cell(&name, "q", 1000, 12, ""));
        }
        for version in 0..row % 7 + 1 {
            cells.push(cell(&name, "q", 900 - version, 4, &format!("{name} version {version}")));
        }
        if row % 4 == 0 {
            cells.push(cell(&name, "r", 900, 4, "other"));
        }
    }
    write(&cells, &[("block_size", Value::Int(120))])
}

fn pivoted(bytes: Buffer) -> HFile {
    let columns = ["f:q", "f:r"].map(|c| (c.to_owned(), Value::from("string")));
    open(bytes, &[("pivot", Value::Map(columns.to_vec()))]).unwrap()
}

type Rows = BTreeMap<String, (Option<String>, Option<String>)>;

/// Reads the file: returns the rows, and what the damage records state.
fn read(file: &HFile, split: Option<&coldframe_core::Split>, on_error: OnError) -> (Rows, Vec<String>) {
    let scan = Scan { on_error, batch_rows: 7, ..Scan::default() };
    let outcome = rows::scan(file, &scan, split).unwrap();
    assert_eq!(outcome.error.map(|e| e.to_string()), None);
    let column = |i: usize, row: usize| {
        let column = outcome.batch.column(i).as_string::<i32>();
        arrow_array::Array::is_valid(column, row).then(|| column.value(row).to_owned())
    };
    let keys = outcome.batch.column(0).as_binary::<i32>();
    let mut actual = Rows::new();
    for i in 0..outcome.batch.num_rows() {
        let key = String::from_utf8(keys.value(i).to_vec()).unwrap();
        assert!(actual.insert(key, (column(1, i), column(2, i))).is_none(), "a row twice");
    }
    let mut damage: Vec<String> =
        outcome.damage.iter().map(|d| format!("{} {:?} {:?}", d.structure, d.bytes, d.rows_lost)).collect();
    damage.sort();
    (actual, damage)
}

fn data_blocks(node: &Node, blocks: &mut Vec<std::ops::Range<u64>>) {
    if node.name.ends_with("data block") {
        blocks.push(node.bytes.clone());
    }
    node.children.iter().for_each(|child| data_blocks(child, blocks));
}

#[test]
fn a_lost_block_exposes_no_older_value() {
    let whole = versions();
    let file = pivoted(whole.clone());
    let (truth, _) = read(&file, None, OnError::Raise);
    assert_eq!(truth.len(), 30);
    let mut blocks = Vec::new();
    data_blocks(&file.inspect().unwrap(), &mut blocks);
    assert!(blocks.len() > 30);
    for block in &blocks {
        // Damages the cells, the header, or the size in it. After a wrong size the reader must search for the
        // next block.
        for place in [block.start + 40, block.start + 2, block.start + 10] {
            let file = pivoted(flipped(&whole, usize::try_from(place).unwrap(), 0x20));
            for on_error in [OnError::Skip, OnError::Null] {
                let (actual, damage) = read(&file, None, on_error);
                for (row, values) in &actual {
                    assert_eq!(truth.get(row), Some(values), "block {block:?}, row {row}");
                }
                assert!(actual.len() + 6 >= truth.len(), "block {block:?}: {} rows are left", actual.len());
                assert!(!damage.is_empty());
                // Reading by splits loses the same rows, and reports each of them once.
                for target in [200, 1000, 3000] {
                    let (mut parts, mut records) = (Rows::new(), Vec::new());
                    for split in file.splits(target).unwrap() {
                        let (part, damage) = read(&file, Some(&split), on_error);
                        for (row, values) in part {
                            assert!(parts.insert(row, values).is_none(), "a row in two splits");
                        }
                        records.extend(damage);
                    }
                    records.sort();
                    assert_eq!((&parts, &records), (&actual, &damage), "block {block:?}, splits of {target}");
                }
            }
        }
    }
}

#[test]
fn a_damaged_index_loses_no_row() {
    let whole = versions();
    let (truth, _) = read(&pivoted(whole.clone()), None, OnError::Raise);
    let cut = pivoted(whole.slice(..whole.len() - 4096));
    let (actual, damage) = read(&cut, None, OnError::Skip);
    assert_eq!(actual, truth);
    assert_eq!(damage.len(), 1, "{damage:?}");
    // The last data block is also cut off: so its rows are lost, and also the row that begins before it.
    let mut blocks = Vec::new();
    data_blocks(&pivoted(whole.clone()).inspect().unwrap(), &mut blocks);
    let end = usize::try_from(blocks.last().unwrap().start).unwrap() + 50;
    let (actual, _) = read(&pivoted(whole.slice(..end)), None, OnError::Skip);
    assert!(actual.iter().all(|(row, values)| truth.get(row) == Some(values)));
    assert!(actual.len() + 3 >= truth.len());
}
