//! Directories of transactional Hive tables: the live rows after inserts, deletes and compactions.

use crate::support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields};
use coldframe_core::options::Strings;
use coldframe_core::{
    Format, OnError, Op, OpenOptions, Predicate, Result, Scan, SchemaSpec, Source, TableFile, Value,
};
use coldframe_hive::HiveFormat;
use coldframe_store::LocalFolder;
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::{Dice, fixture, rows};
use support::written;

/// An event: operation, original write, bucket property, row, current write, and values.
type Event = (i32, i64, i32, i64, i64, Option<(i64, String)>);

/// Bucket 0 of statement 0, as Hive 3 encodes it.
const BUCKET: i32 = 0x2000_0000;

fn events(all: &[Event]) -> RecordBatch {
    let int = |f: fn(&Event) -> i32| Arc::new(all.iter().map(f).collect::<Int32Array>()) as ArrayRef;
    let long = |f: fn(&Event) -> i64| Arc::new(all.iter().map(f).collect::<Int64Array>()) as ArrayRef;
    let ids: ArrayRef = Arc::new(all.iter().map(|e| e.5.as_ref().map(|r| r.0)).collect::<Int64Array>());
    let names: ArrayRef =
        Arc::new(all.iter().map(|e| e.5.as_ref().map(|r| r.1.clone())).collect::<StringArray>());
    let fields =
        Fields::from(vec![Field::new("id", DataType::Int64, true), Field::new("name", DataType::Utf8, true)]);
    let nulls: NullBuffer = all.iter().map(|e| e.5.is_some()).collect();
    let row: ArrayRef = Arc::new(StructArray::new(fields, vec![ids, names], Some(nulls)));
    RecordBatch::try_from_iter_with_nullable([
        ("operation", int(|e| e.0), true),
        ("originalTransaction", long(|e| e.1), true),
        ("bucket", int(|e| e.2), true),
        ("rowId", long(|e| e.3), true),
        ("currentTransaction", long(|e| e.4), true),
        ("row", row, true),
    ])
    .unwrap()
}

fn put(folder: &Path, path: &str, batch: &RecordBatch) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let options = [("row_index_stride", Value::Int(50)), ("stripe_rows", Value::Int(150))];
    std::fs::write(path, written(batch, &options)).unwrap();
}

fn open(folder: &Path) -> Result<Arc<dyn TableFile>> {
    let mut options = OpenOptions::default();
    options.extra.insert("acid".into(), Value::Bool(true));
    open_with(folder, &options)
}

fn open_with(folder: &Path, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
    let source = Source::Folder { path: "table".into(), folder: Arc::new(LocalFolder::new(folder)) };
    HiveFormat.open(&source, options)
}

/// The values of `id` in scan order, over every split.
fn ids(table: &dyn TableFile, predicate: Option<Predicate>) -> Vec<i64> {
    let mut ids = Vec::new();
    for split in table.splits(1).unwrap() {
        let scan = Scan { predicate: predicate.clone(), ..Scan::default() };
        let outcome = rows::scan(table, &scan, Some(&split)).unwrap();
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        let column = outcome.batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().clone();
        assert_eq!(column.null_count(), 0);
        ids.extend(column.values().iter().copied());
    }
    ids.sort_unstable();
    ids
}

fn value(n: i64) -> Option<(i64, String)> {
    Some((n, format!("name {n}")))
}

#[test]
fn deletes_and_compactions_leave_the_live_rows() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let inserted = |write: i64, rows: std::ops::Range<i64>| {
        rows.map(move |n| (0, write, BUCKET, n, write, value(write * 1000 + n)))
    };
    put(at, "base_0000001/bucket_00000", &events(&inserted(1, 0..400).collect::<Vec<_>>()));
    put(at, "delta_0000002_0000002_0000/bucket_00000_0", &events(&inserted(2, 0..10).collect::<Vec<_>>()));
    let deleted: Vec<Event> = (0..400).step_by(3).map(|n| (2, 1, BUCKET, n, 3, None)).collect();
    put(at, "delete_delta_0000003_0000003_0000/bucket_00000", &events(&deleted));
    put(at, "delete_delta_0000004_0000004_0000/bucket_00000", &events(&[(2, 2, BUCKET, 9, 4, None)]));
    // A file that Hive's path filter hides.
    put(at, "_tmp_space/bucket_00000", &events(&[(0, 9, BUCKET, 0, 9, value(9))]));
    let want: Vec<i64> = (0..400).filter(|n| n % 3 > 0).map(|n| 1000 + n).chain(2000..2009).collect();
    let table = open(at).unwrap();
    assert_eq!(ids(table.as_ref(), None), want);
    assert_eq!(table.row_count(), None);
    assert_eq!(coldframe_core::scan::count(table.as_ref(), None).unwrap(), want.len() as u64);
    let columns: Vec<_> = table.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(columns, ["id", "name"]);
    assert_tiled(&table.inspect().unwrap());
    assert!(table.verify_structure().unwrap().is_empty());
    // Filters apply to the rows' own columns, and prune inside `row`.
    let bound: ArrayRef = Arc::new(Int64Array::from(vec![1390]));
    let filter = Predicate::compare("id", Op::Ge, bound);
    let kept: Vec<i64> = want.iter().copied().filter(|n| *n >= 1390).collect();
    assert_eq!(ids(table.as_ref(), Some(filter)), kept);
    // A compaction changes the files, but not the rows.
    let live = events(
        &want.iter().map(|n| (0, n / 1000, BUCKET, n % 1000, n / 1000, value(*n))).collect::<Vec<_>>(),
    );
    put(at, "base_0000004_v0000077/bucket_00000", &live);
    let table = open(at).unwrap();
    assert_eq!(ids(table.as_ref(), None), want);
    assert!(coldframe_core::scan::count(table.as_ref(), None).unwrap() == want.len() as u64);
}

/// The same rows with the column names that Hive wrote before 2.0.
fn nameless(batch: &RecordBatch) -> RecordBatch {
    let row = batch.column_by_name("row").unwrap().as_struct();
    let fields: Fields = row
        .fields()
        .iter()
        .enumerate()
        .map(|(at, field)| field.as_ref().clone().with_name(format!("_col{at}")))
        .collect();
    let row: ArrayRef = Arc::new(StructArray::new(fields, row.columns().to_vec(), row.nulls().cloned()));
    let schema = batch.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let columns = batch.columns()[..5].iter().cloned().chain([row]);
    RecordBatch::try_from_iter_with_nullable(names.zip(columns).map(|(name, array)| (name, array, true)))
        .unwrap()
}

/// If the table's schema is given, the columns of each file get the table's names, whatever names the other
/// files have.
#[test]
fn columns_without_names_take_the_tables_by_position() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let inserted = |write: i64| -> Vec<Event> {
        (0..10).map(|n| (0, write, BUCKET, n, write, value(write * 1000 + n))).collect()
    };
    put(at, "base_0000001/bucket_00000", &nameless(&events(&inserted(1))));
    put(at, "delta_0000002_0000002_0000/bucket_00000", &events(&inserted(2)));
    put(at, "delta_0000003_0000003_0000/bucket_00000", &nameless(&events(&inserted(3))));
    put(at, "delete_delta_0000004_0000004_0000/bucket_00000", &events(&[(2, 3, BUCKET, 9, 4, None)]));
    let of_table = |schema: &str| {
        let mut options = OpenOptions { schema: Some(SchemaSpec::Ddl(schema.into())), ..Default::default() };
        options.extra.insert("acid".into(), Value::Bool(true));
        options.extra.insert("schema_of".into(), Value::from("hive"));
        open_with(at, &options)
    };
    let table = of_table("id bigint, name string, later int").unwrap();
    let columns: Vec<_> = table.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(columns, ["id", "name"]);
    let want: Vec<i64> = (1000..1010).chain(2000..2010).chain(3000..3009).collect();
    assert_eq!(ids(table.as_ref(), None), want);
    // If the columns of a file do not fit the table, a scan under `raise` fails instead of returning only the
    // rows of the other files.
    let table = of_table("id bigint").unwrap();
    let first = table.splits(u64::MAX).unwrap();
    let read = first.iter().map(|split| rows::scan(table.as_ref(), &Scan::default(), Some(split)));
    let e = read.filter_map(|read| read.map_or_else(Some, |outcome| outcome.error)).next().unwrap();
    assert!(e.to_string().contains("expected at most the 1 columns of the table, found 2"), "{e}");
    let e = of_table("id int, name string").unwrap_err();
    assert!(e.to_string().contains("bigint in the file, int in its table"), "{e}");
    // If the schema is not given, the columns cannot be matched.
    assert!(open(at).unwrap_err().to_string().contains("some files have column names"));
}

/// Strings read as views are equal to plain strings, whether no row, a few rows or most rows are deleted, and
/// with any filter.
#[test]
fn views_have_the_values_of_plain_strings() {
    let name = |n: i64| format!("a name of more bytes than a view has, {n}");
    let inserted: Vec<Event> = (0..400).map(|n| (0, 1, BUCKET, n, 1, Some((n, name(n))))).collect();
    let none_few_most: [fn(&i64) -> bool; 3] = [|_| false, |n| n % 10 == 0, |n| n % 10 > 0];
    for is_deleted in none_few_most {
        let dir = tempfile::tempdir().unwrap();
        let deleted: Vec<Event> = (0..400).filter(is_deleted).map(|n| (2, 1, BUCKET, n, 2, None)).collect();
        put(dir.path(), "delta_0000001_0000001_0000/bucket_00000", &events(&inserted));
        put(dir.path(), "delete_delta_0000002_0000002_0000/bucket_00000", &events(&deleted));
        let table = open(dir.path()).unwrap();
        let bound: ArrayRef = Arc::new(StringArray::from(vec![name(390)]));
        let filters = [
            None,
            Some(Predicate::compare("id", Op::Ge, Arc::new(Int64Array::from(vec![200])))),
            Some(Predicate::compare("name", Op::Le, bound)),
        ];
        for predicate in filters {
            let scan = Scan { predicate, ..Scan::default() };
            let plain = rows::scan(table.as_ref(), &scan, None).unwrap().batch;
            let scan = Scan { strings: Some(Strings::View), ..scan };
            let views = rows::scan(table.as_ref(), &scan, None).unwrap().batch;
            assert_eq!(views.schema().field(1).data_type(), &DataType::Utf8View);
            assert!(plain.num_rows() > 0);
            assert_eq!(rows::as_text(&views), rows::as_text(&plain), "{:?}", scan.predicate);
        }
    }
}

/// Rows and deletes of a write are ignored if the metastore lists the write as open, aborted or too new.
#[test]
fn invisible_writes_are_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let row = |write: i64, n: i64| (0, write, BUCKET, n, write, value(write * 1000 + n));
    put(at, "base_0000001/bucket_00000", &events(&(0..5).map(|n| row(1, n)).collect::<Vec<_>>()));
    put(at, "delta_0000002_0000002_0000/bucket_00000", &events(&[row(2, 0)]));
    put(at, "delete_delta_0000003_0000003_0000/bucket_00000", &events(&[(2, 1, BUCKET, 0, 3, None)]));
    // One file has several writes: it was streamed, or compacted while one of these writes was open.
    put(at, "delta_0000004_0000006/bucket_00000", &events(&[row(4, 0), row(5, 0), row(6, 0)]));
    let deletes = [(2, 1, BUCKET, 1, 4, None), (2, 1, BUCKET, 2, 5, None)];
    put(at, "delete_delta_0000004_0000006/bucket_00000", &events(&deletes));
    let read = |list: Option<&str>| {
        let mut options = OpenOptions::default();
        options.extra.insert("acid".into(), Value::Bool(true));
        options.extra.extend(list.map(|list| ("acid_valid_write_ids".to_owned(), Value::from(list))));
        let table = open_with(at, &options).unwrap();
        assert_eq!(table.row_count(), None);
        let live = ids(table.as_ref(), None);
        assert_eq!(coldframe_core::scan::count(table.as_ref(), None).unwrap(), live.len() as u64);
        live
    };
    assert_eq!(read(None), [1003, 1004, 2000, 4000, 5000, 6000]);
    assert_eq!(read(Some("db.t:6:9223372036854775807::")), read(None));
    assert_eq!(read(Some("db.t:5:5:5:3")), [1000, 1002, 1003, 1004, 2000, 4000]);
    assert_eq!(read(Some("db.t:1:9223372036854775807::")), [1000, 1001, 1002, 1003, 1004]);
    let mut options = OpenOptions::default();
    options.extra.insert("acid_valid_write_ids".into(), Value::from("5"));
    let e = open_with(at, &options).map(|_| ()).unwrap_err();
    assert!(e.to_string().starts_with("option `acid_valid_write_ids`: expected"), "{e}");
}

/// A table without a visible write has no rows, but it has its columns.
#[test]
fn a_table_without_a_visible_write_has_columns() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    put(at, "delta_0000001_0000001_0000/bucket_00000", &events(&[(0, 1, BUCKET, 0, 1, value(3))]));
    for list in ["db.t:0:9223372036854775807::", "db.t:1:1:1:", "db.t:1:9223372036854775807::1"] {
        let mut options = OpenOptions::default();
        options.extra.insert("acid".into(), Value::Bool(true));
        options.extra.insert("acid_valid_write_ids".into(), Value::from(list));
        let table = open_with(at, &options).unwrap();
        let names: Vec<&str> = table.schema().fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(names, ["id", "name"]);
        assert!(ids(table.as_ref(), None).is_empty());
    }
}

/// Before Hive 2.2, deltas held updates and deletes beside inserts, sorted by identity, newest first.
#[test]
fn deltas_before_hive_2_2_may_have_updates_and_deletes() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    put(at, "base_5/bucket_00001", &events(&(0..5).map(|n| (0, 5, 1, n, 5, value(n))).collect::<Vec<_>>()));
    put(at, "delta_6_6_0/bucket_00001", &events(&[(1, 5, 1, 0, 6, value(100)), (2, 5, 1, 1, 6, None)]));
    put(at, "delta_6_6_1/bucket_00001", &events(&[(1, 5, 1, 0, 6, value(101)), (0, 6, 1, 0, 6, value(60))]));
    put(at, "delta_7_7_0/bucket_00001", &events(&[(1, 5, 1, 2, 7, value(102)), (1, 6, 1, 0, 7, value(61))]));
    assert_eq!(ids(open(at).unwrap().as_ref(), None), [3, 4, 61, 101, 102]);
}

/// Rows from before the table was transactional are identified by file and number; the numbers continue over
/// stripes and files.
#[test]
fn original_files_are_numbered_over_stripes_and_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let plain = |rows: std::ops::Range<i64>| {
        let ids: ArrayRef = Arc::new(rows.clone().collect::<Int64Array>());
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(rows.map(|n| format!("name {n}"))));
        RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("name", names, true)]).unwrap()
    };
    put(at, "000000_0", &plain(0..500));
    put(at, "000000_0_copy_1", &plain(500..600));
    put(at, "000001_0", &plain(1000..1010));
    put(at, "delta_0000008_0000008_0000/000000_0", &plain(2000..2005));
    let property = |bucket: i32| BUCKET | bucket << 16;
    let deleted = [
        (2, 0, property(0), 499, 9, None),
        (2, 0, property(0), 500, 9, None),
        (2, 0, property(1), 3, 9, None),
        // In Hive 2 the property is the bucket itself.
        (2, 0, 0, 160, 9, None),
        (2, 8, property(0), 4, 9, None),
    ];
    put(at, "delete_delta_0000009_0000009_0000/bucket_00000", &events(&deleted));
    let gone = [499, 500, 1003, 160, 2004];
    let all = (0..600).chain(1000..1010).chain(2000..2005);
    let want: Vec<i64> = all.filter(|n| !gone.contains(n)).collect();
    let table = open(at).unwrap();
    assert_eq!(ids(table.as_ref(), None), want);
    let bound: ArrayRef = Arc::new(Int64Array::from(vec![498]));
    let kept: Vec<i64> = want.iter().copied().filter(|n| *n >= 498).collect();
    assert_eq!(ids(table.as_ref(), Some(Predicate::compare("id", Op::Ge, bound))), kept);
}

/// Files of older schemas lack columns; a column whose type changed is refused.
#[test]
fn columns_that_were_added_later_are_null_in_older_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let old: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    put(at, "000000_0", &RecordBatch::try_from_iter_with_nullable([("id", old, true)]).unwrap());
    put(at, "delta_0000001_0000001_0000/bucket_00000", &events(&[(0, 1, BUCKET, 0, 1, value(3))]));
    let table = open(at).unwrap();
    let all = rows::read(table.as_ref(), OnError::Raise).unwrap().batch;
    assert_eq!((all.num_rows(), all.column_by_name("name").unwrap().null_count()), (3, 2));
    let null = Predicate::Null { column: "name".into(), negated: false };
    assert_eq!(ids(table.as_ref(), Some(null)), [1, 2]);
    let other: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    put(at, "000001_0", &RecordBatch::try_from_iter_with_nullable([("id", other, true)]).unwrap());
    let e = open(at).unwrap_err();
    assert!(e.to_string().contains("changed its type"), "{e}");
}

/// Compares random histories with a table in memory.
#[test]
fn random_histories_give_the_rows_of_a_table_in_memory() {
    for seed in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        let mut dice = Dice::new(seed);
        let mut live: BTreeMap<(i64, i32, i64), i64> = BTreeMap::new();
        let (mut next, mut write) = (0i64, 0i64);
        for _ in 0..6 {
            write += 1;
            if dice.below(3) == 0 && !live.is_empty() {
                let keys: Vec<_> = live.keys().copied().filter(|_| dice.below(3) == 0).collect();
                let gone: Vec<Event> = keys.iter().map(|(w, b, r)| (2, *w, *b, *r, write, None)).collect();
                live.retain(|k, _| !keys.contains(k));
                if !gone.is_empty() {
                    let path = format!("delete_delta_{write:07}_{write:07}_0000/bucket_00000");
                    put(dir.path(), &path, &events(&gone));
                }
            } else {
                let count = 1 + i64::try_from(dice.below(300)).unwrap();
                for bucket in 0..2 {
                    let property = BUCKET | bucket << 16;
                    let new: Vec<Event> =
                        (0..count).map(|r| (0, write, property, r, write, value(next + r))).collect();
                    live.extend((0..count).map(|r| ((write, property, r), next + r)));
                    next += count;
                    put(
                        dir.path(),
                        &format!("delta_{write:07}_{write:07}_0000/bucket_0000{bucket}_0"),
                        &events(&new),
                    );
                }
            }
            if dice.below(4) == 0 && !live.is_empty() {
                let all: Vec<Event> =
                    live.iter().map(|((w, b, r), id)| (0, *w, *b, *r, *w, value(*id))).collect();
                put(dir.path(), &format!("base_{write:07}_v00000{write}/bucket_00000"), &events(&all));
            }
        }
        let mut want: Vec<i64> = live.values().copied().collect();
        want.sort_unstable();
        assert_eq!(ids(open(dir.path()).unwrap().as_ref(), None), want, "seed {seed}");
    }
}

#[test]
fn a_folder_of_base_and_delta_folders_is_the_table() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "base_1/bucket_00000", &events(&[(0, 1, BUCKET, 0, 1, value(3))]));
    let folder = LocalFolder::new(dir.path());
    assert!(HiveFormat.probe_folder(&folder).unwrap());
    let table = open_with(dir.path(), &OpenOptions::default()).unwrap();
    assert_eq!(ids(table.as_ref(), None), ids(open(dir.path()).unwrap().as_ref(), None));
    // Opened alone, a file of the table returns its rows as stored.
    let bytes = std::fs::read(dir.path().join("base_1/bucket_00000")).unwrap();
    let file = HiveFormat.open(&fixture::source(bytes), &OpenOptions::default()).unwrap();
    assert_eq!(file.schema().fields().len(), 6);
}

/// A table written by Java.
#[test]
fn the_table_that_java_wrote_is_read() {
    let at = fixture::data().join("orc/files/acid_table");
    let table = open(&at).unwrap();
    let all = rows::read(table.as_ref(), OnError::Raise).unwrap();
    assert!(all.error.is_none(), "{:?}", all.error);
    let ids = all.batch.column_by_name("id").unwrap().as_primitive::<Int32Type>();
    assert_eq!((all.batch.num_rows(), ids.null_count()), (5, 0));
}

/// A streamed delta without a flush has no rows, and the table keeps the columns of its other files.
#[test]
fn a_delta_without_a_flush_has_no_rows() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "delta_2_9/bucket_00000", &events(&[(0, 2, BUCKET, 0, 2, value(7))]));
    std::fs::write(dir.path().join("delta_2_9/bucket_00000_flush_length"), 0u64.to_be_bytes()).unwrap();
    let alone = open(dir.path()).unwrap();
    let names: Vec<&str> = alone.schema().fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["id", "name"]);
    assert!(ids(alone.as_ref(), None).is_empty());
    let notices = alone.notices().unwrap();
    assert!(
        notices[0].text().contains("has 1 rows after the 0 bytes that its side file states"),
        "{notices:?}"
    );
    put(dir.path(), "base_1/bucket_00000", &events(&[(0, 1, BUCKET, 0, 1, value(3))]));
    let table = open(dir.path()).unwrap();
    assert_eq!(table.schema().fields().len(), 2);
    assert_eq!(ids(table.as_ref(), None), [3]);
}

/// Hive's writer ends every bucket of a base or delta with a footer, so that an empty one is damage.
#[test]
fn a_bucket_without_bytes_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "base_1/bucket_00000", &events(&[(0, 1, BUCKET, 0, 1, value(3))]));
    put(dir.path(), "delta_2_2/bucket_00000", &events(&[(0, 2, BUCKET, 0, 2, value(7))]));
    std::fs::write(dir.path().join("delta_2_2/bucket_00000"), b"").unwrap();
    let table = open(dir.path()).unwrap();
    let e = rows::read(table.as_ref(), OnError::Raise).unwrap_err().to_string();
    assert!(e.contains("delta_2_2/bucket_00000") && e.contains("found 0 bytes"), "{e}");
    assert_eq!(table.verify_structure().unwrap().len(), 1);
    let kept = rows::read(table.as_ref(), OnError::Skip).unwrap();
    // It may have replaced the row of the base.
    assert_eq!((kept.batch.num_rows(), kept.damage.len()), (0, 2));
    // The writer of a stream has created the file, and flushed nothing.
    std::fs::create_dir(dir.path().join("delta_3_9")).unwrap();
    std::fs::write(dir.path().join("delta_3_9/bucket_00000"), b"").unwrap();
    std::fs::write(dir.path().join("delta_3_9/bucket_00000_flush_length"), b"").unwrap();
    std::fs::remove_dir_all(dir.path().join("delta_2_2")).unwrap();
    let table = open(dir.path()).unwrap();
    assert_eq!(ids(table.as_ref(), None), [3]);
    assert!(table.notices().unwrap().is_empty());
}
