//! Many files as one table: for every way of reading, rows come in the order of the files, and an error comes
//! at the position of its file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, RecordBatchIterator};
use arrow_schema::{DataType, Field, Schema};
use coldframe::dataset::wire::Bound;
use coldframe::dataset::{
    ColumnsBy, Dataset, Given, Opening, Part, Plan, Rows, ScanBuilder, Split, TableOptions,
};
use coldframe::store::Mode;
use coldframe::{Dest, Error, Extremes, OnError, WriteOptions, scan, write_file};

fn write(path: &Path, columns: &[(&str, ArrayRef)], options: &[(&str, i64)]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let batch = RecordBatch::try_from_iter(columns.iter().cloned()).unwrap();
    let dest = Dest::new(path, &BTreeMap::new(), Mode::Over).unwrap();
    let extra = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    let mut rows = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    write_file(&mut rows, &dest, "orc", &WriteOptions { extra }, |_| Ok(())).unwrap();
}

fn longs(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// 30 files of 100 rows in the partitions p = 0, 1, 2. The rows are numbered across all files.
fn many(dir: &Path) {
    for number in 0..30 {
        let path = dir.join(format!("p={}/{number:02}.orc", number / 10));
        write(&path, &[("n", longs(number * 100..(number + 1) * 100))], &[]);
    }
}

fn numbers(mut rows: Rows) -> Result<Vec<i64>, (Vec<i64>, Error)> {
    let mut values = Vec::new();
    loop {
        match rows.next_batch() {
            Ok(Some(batch)) => values.extend(batch.column(0).as_primitive::<Int64Type>().values()),
            Ok(None) => return Ok(values),
            Err(e) => return Err((values, e)),
        }
    }
}

#[test]
fn threads_return_rows_in_the_order_of_the_files() {
    let dir = tempfile::tempdir().unwrap();
    many(dir.path());
    let request = scan(dir.path()).unwrap().columns(["n"]).batch_rows(30);
    for threads in [1, 2, 3, 16] {
        let values = numbers(request.clone().threads(threads).read().unwrap()).unwrap();
        assert!(values.iter().copied().eq(0..3000), "{threads} threads");
    }
    let some = request.clone().filter("p = 1 and n >= 1995").threads(2).read().unwrap();
    assert_eq!(numbers(some).unwrap(), [1995, 1996, 1997, 1998, 1999]);
    for limit in [0, 1, 150] {
        let values = numbers(request.clone().limit(limit).read().unwrap()).unwrap();
        assert!(values.iter().copied().eq(0..i64::try_from(limit).unwrap()));
    }
    assert_eq!(request.dataset().count(None).unwrap(), 3000);
}

/// One file of many stripes between two small files: the threads share its splits.
#[test]
fn splits_of_a_large_file_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let noise = |n: i64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed());
    write(&dir.path().join("a.orc"), &[("n", longs(0..10))], &[]);
    write(&dir.path().join("b.orc"), &[("n", longs((0..3_000_000).map(noise)))], &[("stripe_size", 1 << 20)]);
    write(&dir.path().join("c.orc"), &[("n", longs(0..10))], &[]);
    let want: Vec<i64> = (0..10).chain((0..3_000_000).map(noise)).chain(0..10).collect();
    for threads in [2, 4] {
        let values = numbers(scan(dir.path()).unwrap().threads(threads).read().unwrap()).unwrap();
        assert!(values == want, "{threads} threads");
        // A single file is divided as well.
        let alone = scan(dir.path().join("b.orc")).unwrap().threads(threads).read().unwrap();
        assert!(numbers(alone).unwrap() == want[10..3_000_010]);
    }
}

#[test]
fn errors_come_at_the_position_of_their_file() {
    let dir = tempfile::tempdir().unwrap();
    many(dir.path());
    let broken = dir.path().join("p=1/15.orc");
    std::fs::write(&broken, b"ORC and nothing else").unwrap();
    for threads in [1, 4] {
        let rows = scan(dir.path()).unwrap().threads(threads).read().unwrap();
        let (before, e) = numbers(rows).unwrap_err();
        assert!(before.iter().copied().eq(0..1500), "{threads} threads");
        assert!(e.to_string().contains("15.orc"), "{e}");
    }
    let mut rows = scan(dir.path()).unwrap().on_error(OnError::Skip).read().unwrap();
    let mut rows_read = 0;
    while let Some(batch) = rows.next_batch().unwrap() {
        rows_read += batch.num_rows();
    }
    assert_eq!(rows_read, 2900);
    let lost = rows.damage();
    assert_eq!((lost.len(), lost[0].path.as_str()), (1, broken.to_str().unwrap()));
    assert_eq!((lost[0].damage.bytes.clone(), lost[0].damage.rows_lost), (0..20, None));
}

/// A reader that is dropped early leaves no thread waiting, and several readers may take turns.
#[test]
fn readers_may_be_dropped_and_take_turns() {
    let dir = tempfile::tempdir().unwrap();
    many(dir.path());
    let request = scan(dir.path()).unwrap().threads(2).batch_rows(7);
    let mut several: Vec<Rows> = (0..20).map(|_| request.read().unwrap()).collect();
    for taken in 0..20 {
        for rows in several.iter_mut().skip(taken) {
            assert!(rows.next_batch().unwrap().is_some());
        }
    }
    drop(several);
    assert_eq!(numbers(request.read().unwrap()).unwrap().len(), 3000);
}

#[test]
fn plans_are_read_from_their_bytes() {
    let dir = tempfile::tempdir().unwrap();
    many(dir.path());
    let request = scan(dir.path()).unwrap().columns(["n"]).filter("p > 0 and n < 2500").split_bytes(200);
    let cut = request.splits().unwrap();
    let shares = request.plan().unwrap();
    assert!(cut.splits.iter().all(|split| matches!(split.part, Part::Cut(_))));
    assert!(shares.splits.iter().all(|split| matches!(split.part, Part::Share { of: 2.., .. })));
    // The plan leaves out the files of p = 0.
    assert_eq!(cut.splits.len(), 20);
    for plan in [cut, shares] {
        let there = Plan::from_bytes(&plan.to_bytes().unwrap(), &Bound::default()).unwrap();
        assert!(numbers(there.read()).unwrap().iter().copied().eq(1000..2500));
        let one_by_one = there.splits.iter().flat_map(|split| {
            let alone = Split::from_bytes(&split.to_bytes().unwrap(), &Bound::default()).unwrap();
            numbers(alone.read(&there.scan).unwrap()).unwrap()
        });
        assert!(one_by_one.eq(1000..2500));
    }
}

#[test]
fn plans_leave_out_units_that_metadata_exclude() {
    let dir = tempfile::tempdir().unwrap();
    many(dir.path());
    write(&dir.path().join("p=3/0.orc"), &[("n", longs(3000..5000))], &[("stripe_rows", 100)]);
    let request = scan(dir.path()).unwrap().columns(["n"]).split_bytes(200);
    let request = request.filter("n in (1999, 2000, 3950, 4149) or n > 4980");
    let shares = request.clone().max_opened(30).plan().unwrap();
    assert!(shares.splits.iter().all(|split| matches!(split.part, Part::Share { .. })));
    let (few, pruned) = request.clone().max_opened(31).plan_and_pruned().unwrap();
    assert_eq!(pruned, 28 + 17, "the other files of one stripe each, and the other stripes");
    assert!(few.splits.iter().all(|split| matches!(split.part, Part::Cut(_))));
    assert_eq!(few.splits.len(), 5, "two files, and three stripes of another");
    for plan in [shares, few] {
        let there = Plan::from_bytes(&plan.to_bytes().unwrap(), &Bound::default()).unwrap();
        let values = numbers(there.read()).unwrap();
        assert!(values.into_iter().eq([1999, 2000, 3950, 4149].into_iter().chain(4981..5000)));
    }
    let nothing = request.clone().filter("p = 3 and n < 3000").max_opened(31).plan().unwrap();
    assert!(nothing.splits.is_empty());
    // A file that cannot be opened causes an error when its rows are read.
    std::fs::write(dir.path().join("p=1/15.orc"), b"ORC and nothing else").unwrap();
    let request = scan(dir.path()).unwrap().columns(["n"]).split_bytes(200).filter("n = 2500");
    let plan = request.max_opened(31).plan().unwrap();
    let (_, e) = numbers(plan.read()).unwrap_err();
    assert!(e.to_string().contains("15.orc"), "{e}");
}

#[test]
fn the_first_file_shows_whether_metadata_suffice() {
    let dir = tempfile::tempdir().unwrap();
    many(dir.path());
    let all = scan(dir.path()).unwrap();
    let suffice = |request: &ScanBuilder| {
        let ends = |units: &[Extremes]| units.iter().flat_map(|unit| &unit.columns).all(|c| c.ends.is_some());
        request.metadata_suffice(ends).unwrap()
    };
    let (rows, numbers) = (all.clone().columns::<&str>([]), all.clone().columns(["n"]));
    assert!(suffice(&rows) && suffice(&numbers));
    assert!(suffice(&rows.clone().filter("p > 0")), "folders alone decide which rows pass");
    for other in [
        rows.clone().filter("n > 5"),
        rows.clone().filter("p > 99"),
        rows.clone().on_error(OnError::Skip),
        rows.clone().limit(5),
        numbers.clone().limit(5),
    ] {
        assert!(!suffice(&other), "{other:?}");
    }
    assert!(!numbers.metadata_suffice(|_| false).unwrap());
    std::fs::write(dir.path().join("p=0/00.orc"), b"ORC and nothing else").unwrap();
    assert!(!suffice(&scan(dir.path()).unwrap().columns::<&str>([])), "reported when its rows are read");
}

#[test]
fn a_file_changed_since_planning_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    many(dir.path());
    let plan = scan(dir.path()).unwrap().plan().unwrap();
    write(&dir.path().join("p=0/00.orc"), &[("n", longs(0..5))], &[]);
    let (_, e) = numbers(plan.read()).unwrap_err();
    assert!(e.to_string().contains("was changed since it was listed"), "{e}");
}

/// Columns are matched by position, as Hive does for files without column names, and have defaults, as in
/// Iceberg for columns that older files lack.
#[test]
fn columns_are_matched_by_position_and_filled_with_defaults() {
    let dir = tempfile::tempdir().unwrap();
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![7, 8]));
    write(&dir.path().join("p=3/a.orc"), &[("_col0", ints), ("_col1", longs([1, 2]))], &[]);
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("p", DataType::Int64, true),
        Field::new("amount", DataType::Int64, true),
        Field::new("more", DataType::Int64, true),
    ]);
    let options = TableOptions {
        schema: Some(schema.into()),
        by: ColumnsBy::Position,
        defaults: vec![("more".to_owned(), longs([42]))],
        ..TableOptions::default()
    };
    let given = vec![Given::Path(dir.path().as_os_str().to_owned())];
    let table = Dataset::new(given, Opening::default(), options).unwrap();
    let mut rows = table.scan().filter("id = 8 and more = 42").read().unwrap();
    let batch = rows.next_batch().unwrap().unwrap();
    let values: Vec<i64> =
        batch.columns().iter().map(|column| column.as_primitive::<Int64Type>().value(0)).collect();
    assert_eq!((values, batch.num_rows()), (vec![8, 3, 2, 42], 1));
}
