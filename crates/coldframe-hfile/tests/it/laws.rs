//! The laws of every format, on HFiles: damage costs a block, and all of it is reported.

use crate::support;

use std::sync::Arc;

use bytes::Bytes as Buffer;
use coldframe_core::{Format, Node, OpenOptions, Result, Scan, Source, Split, TableFile, Value};
use coldframe_hfile::HFileFormat;
use coldframe_testing::fixture;
use coldframe_testing::laws::{self, AllowedLoss, Damaged, Moved, Subject, Units};
use coldframe_testing::rows;
use support::{block, cell, complete, entry, index_content, plain_cell, write};

fn open(source: Source) -> Result<Arc<dyn TableFile>> {
    HFileFormat.open(&source, &OpenOptions::default())
}

fn data_blocks(node: &Node, blocks: &mut Vec<std::ops::Range<u64>>) {
    if node.name.ends_with("data block") {
        blocks.push(node.bytes.clone());
    }
    node.children.iter().for_each(|child| data_blocks(child, blocks));
}

/// The data blocks, and the number of cells in each block.
fn units(table: &dyn TableFile) -> Units {
    let mut blocks = Vec::new();
    data_blocks(&table.inspect().unwrap(), &mut blocks);
    Units::new(blocks.into_iter().map(|bytes| {
        let split = Split { part: 0, range: bytes.start..bytes.start + 1, rows: None };
        let outcome = rows::scan(table, &Scan::default(), Some(&split)).unwrap();
        (bytes, outcome.batch.num_rows())
    }))
}

/// The unit is the data block: if one is damaged, the other blocks are still found through the index or, if
/// that is damaged, through the headers of blocks. Only damage to the parts after the data blocks may prevent
/// the format from being recognised.
fn obey(name: &str) {
    let all = fixture::files("hfile");
    let file = all.into_iter().find(|f| f.name().ends_with(name)).unwrap();
    let subject = Subject::new(name, file.bytes(), open);
    let units = units(subject.healthy().as_ref());
    assert!(units.parts().len() > 3, "{name}");
    let first = units.parts().iter().map(|(bytes, _)| bytes.end).min().unwrap();
    let loss = move |damaged: &Damaged| {
        let loss = units.allowed_loss(damaged, AllowedLoss::file(), Moved::Kept);
        // If the trailer and the file info are lost, only the first block identifies the format.
        if damaged.moves() && damaged.bytes.start < first { loss.fatal() } else { loss }
    };
    subject.unit(loss).damages(40).obey();
}

#[test]
fn the_laws_hold_for_plain_cells() {
    obey("cells_none.hfile");
}

#[test]
fn the_laws_hold_for_compressed_encoded_cells() {
    obey("cells_fast_diff_lz4.hfile");
}

#[test]
fn the_laws_hold_for_an_index_of_several_levels() {
    obey("cells_deep_index.hfile");
}

/// `n` cells, in blocks of about `block_size` bytes.
fn cells(n: usize, block_size: i64) -> Buffer {
    let cells: Vec<_> = (0..n).map(|i| cell(&format!("row-{i:08}"), "q", 5, 4, "some value")).collect();
    let small = [("block_size", Value::Int(block_size)), ("index_block_size", Value::Int(512))];
    write(&cells, &small)
}

#[test]
fn work_is_linear_in_the_file() {
    let open = laws::opener(open);
    let healthy = |n: usize| cells(n, 1024);
    laws::assert_linear("healthy", &[healthy(10_000), healthy(20_000), healthy(40_000)], &open);
    // Cuts off the trailer, or the trailer and the index.
    let cut = |n: usize| {
        let whole = healthy(n);
        whole.slice(..whole.len() - 4200)
    };
    laws::assert_linear("no trailer", &[cut(10_000), cut(20_000), cut(40_000)], &open);
    // The magic bytes of blocks without a block, headers of empty blocks, and both alternating.
    let begun = || block(b"DATABLK*", &plain_cell("a", "1"));
    let magics = |n: usize| -> Buffer { [begun(), b"DATABLK*".repeat(n)].concat().into() };
    let headers = |n: usize| -> Buffer { [begun(), block(b"METABLKc", b"").repeat(n)].concat().into() };
    let turns = |n: usize| -> Buffer {
        let both = [block(b"METABLKc", b""), b"DATABLK*".to_vec()].concat();
        [begun(), both.repeat(n)].concat().into()
    };
    for (name, made) in
        [("magics", &magics as &dyn Fn(usize) -> Buffer), ("headers", &headers), ("turns", &turns)]
    {
        let files = [made(50_000), made(100_000), made(200_000)];
        laws::assert_linear(name, &files, &open);
        laws::assert_bounded(name, &files[2], &open);
    }
}

/// An index may list the same block many times: in the root, and in each of many index blocks below the root.
#[test]
fn a_block_with_many_index_entries_is_read_once() {
    let open = laws::opener(open);
    let data = block(b"DATABLK*", &plain_cell("a", &"v".repeat(1 << 20)));
    let rows: Vec<String> = (0..20_000).map(|i| format!("{i:06}")).collect();
    let root: Vec<_> = rows.iter().map(|row| entry(0, data.len(), row, true)).collect();
    laws::assert_bounded("one block", &complete(data.clone(), &root, 1, 20_000, (0, 0)), &open);
    let below: Vec<_> = rows.iter().map(|row| entry(0, data.len(), row, false)).collect();
    let leaf = block(b"IDXLEAF2", &index_content(&below));
    let root: Vec<_> = rows.iter().map(|row| entry(data.len(), leaf.len(), row, true)).collect();
    let file = complete([data, leaf].concat(), &root, 2, 20_000, (0, 0));
    laws::assert_bounded("one leaf", &file, &open);
}
