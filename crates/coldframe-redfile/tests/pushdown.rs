//! What is read, and what is not: projections of columns and of nested leaves, counts, limits, filters.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails is to say where")]

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use coldframe_core::{DamageLog, Op, OpenOptions, Predicate, Scan, ScanReader, Source, TableFile, scan};
use coldframe_redfile::RedFile;
use coldframe_redfile::write::{WriteOptions, Writer};
use coldframe_testing::Logged;

const ROWS: i64 = 4000;

/// `id`, `text` and `s { a, b }`, in row groups of 1000.
fn file() -> (Arc<Logged>, RedFile) {
    let ids = || Arc::new(Int64Array::from_iter_values(0..ROWS)) as ArrayRef;
    let text = Arc::new(BinaryArray::from_iter_values((0..ROWS).map(|i| format!("row {i}")))) as ArrayRef;
    let inner: Fields = ["a", "b"].map(|n| Field::new(n, DataType::Int64, false)).to_vec().into();
    let group = StructArray::new(inner.clone(), vec![ids(), ids()], None);
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("text", DataType::Binary, false),
        Field::new("s", DataType::Struct(inner), false),
    ]));
    let batch = RecordBatch::try_new(schema.clone(), vec![ids(), text, Arc::new(group)]).unwrap();
    let options = WriteOptions { row_group_rows: 1000, ..WriteOptions::default() };
    let mut writer = Writer::new(Vec::new(), &schema, options).unwrap();
    writer.write(&batch).unwrap();
    let log = Arc::new(Logged::new(writer.finish().unwrap().0));
    let file = RedFile::open(&Source::file("logged", log.clone()), &OpenOptions::default()).unwrap();
    log.take();
    (log, file)
}

fn read(file: &RedFile, scan: &Scan) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    for split in file.splits(u64::MAX).unwrap() {
        let mut reader = ScanReader::try_new(file, scan, &split, DamageLog::default()).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            batches.push(batch);
        }
    }
    batches
}

fn ranges(log: &Logged) -> Vec<Range<u64>> {
    log.take().into_iter().flatten().filter(|r| !r.is_empty()).collect()
}

/// The chunks of a leaf, one for each row group.
fn chunks(file: &RedFile, leaf: usize) -> Vec<Range<u64>> {
    file.groups().iter().map(|g| g.chunks[leaf].range.clone()).collect()
}

fn columns(names: &[&str]) -> Scan {
    Scan { columns: Some(names.iter().map(|n| (*n).to_owned()).collect()), ..Scan::default() }
}

#[test]
fn only_the_chunks_of_the_wanted_leaves_are_read() {
    let (log, file) = file();
    for (name, leaf) in [("id", 0), ("text", 1), ("s.a", 2), ("s.b", 3)] {
        let rows: usize = read(&file, &columns(&[name])).iter().map(RecordBatch::num_rows).sum();
        assert_eq!(i64::try_from(rows), Ok(ROWS));
        assert_eq!(ranges(&log), chunks(&file, leaf), "{name}");
    }
    assert_eq!(read(&file, &columns(&["s.b"]))[0].column(0).as_struct().num_columns(), 1);
}

#[test]
fn a_count_reads_nothing_and_a_limit_no_more_than_it_takes() {
    let (log, file) = file();
    assert_eq!(scan::count(&file, None).unwrap(), ROWS.unsigned_abs());
    assert_eq!(ranges(&log), Vec::new());
    let batches = read(&file, &Scan { limit: Some(5), ..columns(&["id"]) });
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
    assert_eq!(ranges(&log), chunks(&file, 0)[..1]);
}

/// RED1 has no statistics: all row groups are read, and the rows are filtered all the same.
#[test]
fn filters_are_applied_without_statistics() {
    let (log, file) = file();
    let predicate = Predicate::compare("id", Op::Ge, Arc::new(Int64Array::from(vec![ROWS - 3])));
    let batches = read(&file, &Scan { predicate: Some(predicate), ..columns(&["s.a"]) });
    let found: Vec<i64> = batches
        .iter()
        .flat_map(|b| b.column(0).as_struct().column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    assert_eq!(found, (ROWS - 3..ROWS).collect::<Vec<_>>());
    let mut expected = [chunks(&file, 0), chunks(&file, 2)].concat();
    expected.sort_by_key(|r| r.start);
    assert_eq!(ranges(&log), expected);
}
