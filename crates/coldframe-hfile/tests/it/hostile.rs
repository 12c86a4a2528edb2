//! Malicious files: each read ends soon, either with an error or with the cells that can be read, and uses
//! memory in proportion to the file.

use crate::support;

use std::sync::Arc;

use bytes::Bytes as Buffer;
use coldframe_core::{Node, OnError, OpenOptions, Scan, Source, TableFile, Value};
use coldframe_hfile::{CellReader, HFile, RowQuery};
use coldframe_testing::{Logged, rows};
use support::{block, cell, complete, entry, index_content, open, plain_cell, write};

fn nodes(node: &Node) -> usize {
    1 + node.children.iter().map(nodes).sum::<usize>()
}

/// An index of 64 levels whose only block below the root points to itself twice.
fn cycle() -> Buffer {
    let mut file = block(b"DATABLK*", &plain_cell("a", "1"));
    let at = file.len();
    let twice = |size| index_content(&[entry(at, size, "a", false), entry(at, size, "b", false)]);
    let size = block(b"IDXINTE2", &twice(0)).len();
    file.extend(block(b"IDXINTE2", &twice(size)));
    file.extend(block(b"METABLKc", &[0; 1000]));
    let last = file.len();
    file.extend(block(b"DATABLK*", &plain_cell("b", "2")));
    complete(file, &[entry(at, size, "a", true)], 64, 2, (0, last))
}

#[test]
fn a_cyclic_index_is_an_error() {
    let file = open(cycle(), &[]).unwrap();
    let splits = file.splits(400).unwrap();
    assert!(splits.len() > 1);
    let ends = |scan: &Scan| -> Vec<Option<String>> {
        let each = splits.iter().map(|split| rows::scan(&file, scan, Some(split)).unwrap());
        each.map(|outcome| outcome.error.map(|e| e.to_string())).collect()
    };
    let cycle = ["index block: expected an offset of", "expected a data block after byte"];
    assert!(ends(&Scan::default()).iter().flatten().any(|e| cycle.iter().any(|c| e.contains(c))));
    let skip = Scan { on_error: OnError::Skip, ..Scan::default() };
    assert!(ends(&skip).iter().all(Option::is_none));
    let whole = rows::read(&file, OnError::Skip).unwrap();
    assert!(whole.batch.num_rows() < 3 && !whole.damage.is_empty());
    assert!(file.get(b"b").is_err());
    assert!(file.get_many(&[b"a".to_vec(), b"c".to_vec()]).is_err());
    assert!(
        file.scan_rows(&RowQuery { batch_rows: 10, ..RowQuery::default() }).unwrap().next_batch().is_err()
    );
    let mut cells = CellReader::new(file.raw().clone());
    assert!(cells.next().is_err());
    assert!(nodes(&file.inspect().unwrap()) < 40);
}

/// A block followed by nothing but the magic bytes of blocks.
fn magics(bytes: usize) -> Buffer {
    let mut file = block(b"DATABLK*", &plain_cell("a", "1"));
    file.extend(b"DATABLK*".repeat(bytes / 8));
    file.into()
}

#[test]
fn magic_bytes_without_blocks_give_few_damage_records() {
    for size in [1 << 20, 20 << 20] {
        let logged = Arc::new(Logged::new(magics(size)));
        let file = HFile::open(&Source::file("magics", logged.clone()), &OpenOptions::default()).unwrap();
        let read: u64 = logged.take().iter().flatten().map(|r| r.end - r.start).sum();
        assert!(read < size as u64 + (1 << 20), "{read} bytes read of {size}");
        let outcome = rows::read(&file, OnError::Skip).unwrap();
        assert_eq!(outcome.batch.num_rows(), 1);
        assert!(outcome.damage.len() < 4, "{} records", outcome.damage.len());
        assert!(nodes(&file.inspect().unwrap()) < 20);
        assert!(file.verify_structure().unwrap().len() < 4);
        let read: u64 = logged.take().iter().flatten().map(|r| r.end - r.start).sum();
        assert!(read < 4 * size as u64 + (1 << 20), "{read} bytes read of {size}");
    }
}

#[test]
fn the_layout_tree_of_empty_blocks_is_bounded() {
    let mut file = block(b"DATABLK*", &plain_cell("a", "1"));
    file.extend(block(b"METABLKc", b"").repeat(60_000));
    let len = file.len();
    let file = open(file, &[]).unwrap();
    let tree = file.inspect().unwrap();
    coldframe_testing::layout::assert_tiled(&tree);
    assert!(nodes(&tree) < 5 * ((1 << 14) + len / 1024), "{}", nodes(&tree));
}

#[test]
fn opening_without_a_trailer_reads_the_file_once_in_small_parts() {
    let cells: Vec<_> =
        (0..40_000).map(|i| cell(&format!("row-{i:06}"), "q", 5, 4, &"x".repeat(100))).collect();
    let whole = write(&cells, &[]);
    let cut = whole.slice(..whole.len() - 5000);
    let logged = Arc::new(Logged::new(cut.clone()));
    let file = HFile::open(&Source::file("cut", logged.clone()), &OpenOptions::default()).unwrap();
    let reads: Vec<u64> = logged.take().iter().flatten().map(|r| r.end - r.start).collect();
    assert!(reads.iter().all(|n| *n <= 256 << 10), "{reads:?}");
    assert!(reads.iter().sum::<u64>() < cut.len() as u64 + (1 << 20));
    assert_eq!(rows::read(&file, OnError::Skip).unwrap().batch.num_rows(), cells.len());
}

#[test]
fn a_wide_gap_between_blocks_is_checked() {
    let gap = |between: Vec<u8>| {
        let mut file = block(b"DATABLK*", &plain_cell("a", "1"));
        let first = file.len();
        file.extend(between);
        let at = file.len();
        file.extend(block(b"DATABLK*", &plain_cell("c", "3")));
        let size = file.len() - at;
        let root = [entry(0, first, "a", true), entry(at, size, "c", true)];
        complete(file, &root, 1, 2, (0, at))
    };
    // Many bloom chunks between two data blocks are not damage.
    let healthy = gap(block(b"BLMFBLK2", &vec![0; 1 << 20]).repeat(3));
    let outcome = rows::read(&open(healthy, &[]).unwrap(), OnError::Raise).unwrap();
    assert_eq!((outcome.batch.num_rows(), outcome.error.map(|e| e.to_string())), (2, None));
    // A block that is not in the index, and bytes that belong to no block.
    let mut unknown = block(b"BLMFBLK2", &vec![0; 3 << 20]);
    unknown.extend(block(b"DATABLK*", &plain_cell("b", "2")));
    for between in [vec![7; 3 << 20], unknown] {
        let file = open(gap(between), &[]).unwrap();
        assert!(rows::read(&file, OnError::Raise).unwrap().error.is_some());
        let outcome = rows::read(&file, OnError::Skip).unwrap();
        assert_eq!((outcome.batch.num_rows(), outcome.damage.len()), (2, 1), "{:?}", outcome.damage);
        assert!(outcome.damage.iter().all(|d| d.bytes.end > 3 << 20));
    }
}

/// Changes the number of cells in the trailer: 500 and 244 differ in one byte of a varint.
fn with_count(bytes: &Buffer, from: [u8; 3], to: [u8; 3]) -> Buffer {
    let mut bytes = bytes.to_vec();
    let at = bytes.len() - 4096;
    let offset = bytes[at..].windows(3).position(|w| w == from).unwrap();
    bytes[at + offset..at + offset + 3].copy_from_slice(&to);
    bytes.into()
}

#[test]
fn a_wrong_count_in_the_trailer_is_damage() {
    let cells: Vec<_> = (0..500).map(|i| cell(&format!("row-{i:04}"), "q", 5, 4, "v")).collect();
    let right = write(&cells, &[("block_size", Value::Int(512))]);
    assert_eq!(rows::read(&open(right.clone(), &[]).unwrap(), OnError::Raise).unwrap().damage.len(), 0);
    let wrong = with_count(&right, [0x38, 0xf4, 0x03], [0x38, 0xf4, 0x01]);
    for extra in [vec![], vec![("pivot", Value::Map(vec![("f:q".into(), Value::from("binary"))]))]] {
        let file = open(wrong.clone(), &extra).unwrap();
        let outcome = rows::read(&file, OnError::Raise).unwrap();
        let e = outcome.error.unwrap().to_string();
        assert!(e.contains("expected 244 cells, found 500"), "{e}");
        let outcome = rows::read(&file, OnError::Skip).unwrap();
        assert_eq!((outcome.batch.num_rows(), outcome.damage.len()), (500, 1));
        let report = coldframe_core::scan::verify(&file, |_| Ok(())).unwrap();
        assert_eq!((report.rows, report.damage.len()), (500, 1));
        // Counting reads the cells, so that its result never contradicts a read; for the same reason no split
        // states a number of rows.
        let counted = coldframe_core::scan::count(&file, None);
        assert!(counted.unwrap_err().to_string().contains("expected 244 cells, found 500"));
        assert!(file.splits(u64::MAX).unwrap().iter().all(|split| split.rows.is_none()));
    }
    assert_eq!(coldframe_core::scan::count(&open(right.clone(), &[]).unwrap(), None).unwrap(), 500);
    // If a block was lost, a number of cells below the trailer's is no further damage.
    let mut lost = right.to_vec();
    lost[100] ^= 1;
    let outcome = rows::read(&open(lost, &[]).unwrap(), OnError::Skip).unwrap();
    assert_eq!(outcome.damage.len(), 1, "{:?}", outcome.damage);
    // A scan with a filter on the key reads only some of the cells, so the counts are not compared.
    let some = coldframe_core::Predicate::Compare {
        column: "row".into(),
        op: coldframe_core::Op::Ge,
        value: Arc::new(arrow_array::BinaryArray::from_iter_values([b"row-0400"])),
        negated: false,
    };
    let scan = Scan { predicate: Some(some), ..Scan::default() };
    let outcome = rows::scan(&open(wrong, &[]).unwrap(), &scan, None).unwrap();
    assert_eq!((outcome.batch.num_rows(), outcome.error.map(|e| e.to_string())), (100, None));
}

#[test]
fn damage_between_two_splits_is_recorded_by_one_of_them() {
    // An index leaf after each data block, and invalid bytes between the first leaf and the second data block.
    let mut file = block(b"DATABLK*", &plain_cell("a", "1"));
    let size = file.len();
    let leaf = |at, row| block(b"IDXLEAF2", &index_content(&[entry(at, size, row, false)]));
    let first = (file.len(), leaf(0, "a"));
    file.extend(&first.1);
    let junk = file.len()..file.len() + 1033;
    file.extend(vec![b'?'; junk.len()]);
    let data = file.len();
    file.extend(block(b"DATABLK*", &plain_cell("b", "2")));
    let second = (file.len(), leaf(data, "b"));
    file.extend(&second.1);
    let root = [(first, "a"), (second, "b")].map(|((at, leaf), row)| entry(at, leaf.len(), row, true));
    let file = open(complete(file, &root, 2, 2, (0, data)), &[]).unwrap();
    let skip = Scan { on_error: OnError::Skip, ..Scan::default() };
    let expected = junk.start as u64..junk.end as u64;
    for target in [u64::MAX, 700, 256] {
        let splits = file.splits(target).unwrap();
        let outcomes = splits.iter().map(|split| rows::scan(&file, &skip, Some(split)).unwrap());
        let (mut rows, mut damage) = (0, Vec::new());
        for outcome in outcomes {
            rows += outcome.batch.num_rows();
            damage.extend(outcome.damage.into_iter().map(|d| d.bytes));
        }
        assert_eq!(rows, 2);
        let holds = |bytes: &std::ops::Range<u64>| bytes.start <= expected.start && expected.end <= bytes.end;
        assert!(matches!(damage.as_slice(), [bytes] if holds(bytes)), "{} splits: {damage:?}", splits.len());
    }
}
