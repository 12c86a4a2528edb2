//! Tests which bytes are read for projections of columns and of nested leaves, counts, limits and filters.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BinaryArray, Int64Array, ListArray, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use coldframe_core::{
    DamageLog, OnError, Op, OpenOptions, Predicate, Scan, ScanReader, Source, TableFile, scan,
};
use coldframe_redfile::RedFile;
use coldframe_redfile::write::{WriteOptions, Writer};
use coldframe_testing::{Logged, rows};

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

/// RED1 has no statistics: all row groups are read, then their rows are filtered.
#[test]
fn filters_are_applied_without_statistics() {
    let (log, file) = file();
    let predicate = Predicate::compare("id", Op::Ge, Arc::new(Int64Array::from(vec![ROWS - 3])));
    let batches = read(&file, &Scan { predicate: Some(predicate), ..columns(&["s.a"]) });
    let ids: Vec<i64> = batches
        .iter()
        .flat_map(|b| b.column(0).as_struct().column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    assert_eq!(ids, (ROWS - 3..ROWS).collect::<Vec<_>>());
    let mut expected = [chunks(&file, 0), chunks(&file, 2)].concat();
    expected.sort_by_key(|r| r.start);
    assert_eq!(ranges(&log), expected);
}

/// A table with nulls and lists, in row groups of 5000 and pages of a few hundred rows.
fn paged() -> (Vec<u8>, RecordBatch) {
    const ROWS: i64 = 20_000;
    let ids = Arc::new(Int64Array::from_iter_values(0..ROWS)) as ArrayRef;
    let number = (0..ROWS).map(|i| (i % 7 != 0).then_some(i * 3)).collect::<Int64Array>();
    let text = (0..ROWS).map(|i| (i % 5 != 0).then(|| format!("row {i}"))).collect::<BinaryArray>();
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(
        (0..ROWS).map(|i| Some((0..i % 4).map(|k| Some(i + k)).collect::<Vec<_>>())),
    );
    let (_, offsets, values, _) = lists.into_parts();
    let item = Arc::new(Field::new("element", DataType::Int64, false));
    let lists = ListArray::new(item.clone(), offsets, values, None);
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("number", DataType::Int64, true),
        Field::new("text", DataType::Binary, true),
        Field::new("list", DataType::List(item), false),
    ]));
    let columns = vec![ids, Arc::new(number) as ArrayRef, Arc::new(text), Arc::new(lists)];
    let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
    let options = WriteOptions { row_group_rows: 5000, page_bytes: 4096, ..WriteOptions::default() };
    let mut writer = Writer::new(Vec::new(), &schema, options).unwrap();
    writer.write(&batch).unwrap();
    (writer.finish().unwrap().0, batch)
}

fn opened(bytes: Vec<u8>) -> RedFile {
    let source = Source::file("paged", Arc::new(bytes::Bytes::from(bytes)));
    RedFile::open(&source, &OpenOptions::default()).unwrap()
}

fn any_of(values: impl IntoIterator<Item = i64>) -> Predicate {
    let equals =
        |value| Predicate::compare("id", Op::Eq, Arc::new(Int64Array::from(vec![value])) as ArrayRef);
    Predicate::Or(values.into_iter().map(equals).collect())
}

/// Rows that pass are complete, whether they are few or many, and wherever pages and batches end.
#[test]
fn passing_rows_are_complete_in_any_batch_size() {
    let file = opened(paged().0);
    let all = read(&file, &Scan::default());
    let all = concat_batches(&all[0].schema(), &all).unwrap();
    let below = |n: i64| Predicate::compare("id", Op::Lt, Arc::new(Int64Array::from(vec![n])) as ArrayRef);
    let filters = [
        any_of([0]),
        any_of([19_999]),
        any_of([299, 300, 4_999, 5_000, 10_299]),
        any_of((0..30).map(|i| 7 + i * 613)),
        below(1),
        below(700),
        !below(19_000),
        below(12_345),
        any_of([-1]),
    ];
    for predicate in filters {
        let keep = predicate.clone().bind(&all.schema()).unwrap().evaluate(&all).unwrap();
        let want = filter_record_batch(&all, &keep).unwrap();
        for batch_rows in [100, 1000, 65_536] {
            let scan = Scan { predicate: Some(predicate.clone()), batch_rows, ..Scan::default() };
            let got = concat_batches(&all.schema(), &read(&file, &scan)).unwrap();
            assert_eq!(got, want, "{predicate:?} in batches of {batch_rows}");
        }
    }
}

/// Pages of the other columns in which no row passes are not opened, so an error in them does not end a scan
/// of other rows.
#[test]
fn other_columns_are_opened_where_a_row_passes() {
    let mut bytes = paged().0;
    // Makes the length of a value larger than its page.
    let at = bytes.windows(9).position(|w| w == b"row 10001").unwrap();
    bytes[at - 4..at].copy_from_slice(&[0xff; 4]);
    let file = opened(bytes);
    let rows = |predicate: Predicate| {
        let scan = Scan { predicate: Some(predicate), ..Scan::default() };
        let mut reader =
            ScanReader::try_new(&file, &scan, &file.splits(u64::MAX).unwrap()[0], DamageLog::default())?;
        let mut rows = 0;
        while let Some(batch) = reader.next_batch()? {
            rows += batch.num_rows();
        }
        Ok::<_, coldframe_core::Error>(rows)
    };
    assert_eq!(rows(any_of([3, 9_000, 12_000, 19_000])).unwrap(), 4);
    let e = rows(any_of([10_001])).unwrap_err().to_string();
    assert!(e.contains("column `text`"), "{e}");
    let many = Predicate::compare("id", Op::Ge, Arc::new(Int64Array::from(vec![10_000])) as ArrayRef);
    assert!(rows(many).is_err());
}

/// A row group that takes more than its share of the memory is read in windows, and gives the same rows and losses.
#[test]
fn a_long_row_group_is_read_in_windows() {
    const ROWS: i64 = 100_000;
    let ids = Arc::new(Int64Array::from_iter_values(0..ROWS)) as ArrayRef;
    let texts = Arc::new(BinaryArray::from_iter_values((0..ROWS).map(|i| format!("row {i}")))) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
    let mut writer = Writer::new(Vec::new(), &batch.schema(), WriteOptions::default()).unwrap();
    writer.write(&batch).unwrap();
    let healthy = writer.finish().unwrap().0;
    let mut damaged = healthy.clone();
    // Half of the file lies in the middle of its second column.
    let at = healthy.len() * 3 / 4;
    damaged[at..at + 1000].fill(0xff);
    for bytes in [healthy, damaged] {
        let outcome = |memory_limit, on_error| {
            let mut options = OpenOptions::default();
            options.limits.memory_limit = memory_limit;
            let log = Arc::new(Logged::new(bytes.clone()));
            let file = RedFile::open(&Source::file("logged", log.clone()), &options).unwrap();
            log.take();
            let outcome = rows::read(&file, on_error).unwrap();
            let longest = ranges(&log).iter().map(|range| range.end - range.start).max().unwrap();
            (outcome, longest)
        };
        for on_error in [OnError::Raise, OnError::Skip, OnError::Null] {
            let (whole, _) = outcome(1 << 30, on_error);
            let (windows, longest) = outcome(1 << 20, on_error);
            // An error comes after all batches before it, which are shorter where there is less memory.
            if whole.error.is_none() {
                assert_eq!(windows.batch, whole.batch);
            }
            assert_eq!(windows.damage, whole.damage);
            assert_eq!(windows.error.map(|e| e.to_string()), whole.error.map(|e| e.to_string()));
            assert!(on_error != OnError::Raise || longest <= 256 << 10, "{longest}");
        }
    }
}
