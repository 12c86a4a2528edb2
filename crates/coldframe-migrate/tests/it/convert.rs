//! Tests converting: rows become files whose pages have checksums, and a failure leaves no file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Int64Array, ListArray, RecordBatch, RecordBatchIterator, RecordBatchReader,
    StringArray, StructArray, TimestampNanosecondArray, UInt32Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use coldframe::store::Mode;
use coldframe::types::Arrangement;
use coldframe::{Dest, Error, PartitionLimits, Result, Value};
use coldframe_migrate::{
    Fingerprint, Names, ParquetOptions, Partitioner, Shape, TargetFile, TargetFormat, WrittenFile, append,
    convert, convert_partitioned, decode,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

struct Folder(PathBuf);

impl Folder {
    fn path(&self, number: usize) -> PathBuf {
        self.0.join(format!("{number}.parquet"))
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = std::fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Names for Folder {
    fn dest(&self, number: usize) -> Result<Dest> {
        Dest::new(self.path(number), &BTreeMap::new(), Mode::Over)
    }

    fn discard(&self, number: usize) -> Result<()> {
        std::fs::remove_file(self.path(number)).map_err(Error::from)
    }
}

/// Batches of 1000 rows with numbers, nulls, repeated texts, lists and structs, and times as readers return them.
fn batches(count: i64) -> Vec<RecordBatch> {
    let made = (0..count).map(|batch| {
        let rows = batch * 1000..batch * 1000 + 1000;
        let numbers: ArrayRef =
            Arc::new(rows.clone().map(|n| (n % 7 > 0).then_some(n)).collect::<Int64Array>());
        let texts: ArrayRef =
            Arc::new(StringArray::from_iter_values(rows.clone().map(|n| format!("{}", n % 90))));
        let times: ArrayRef =
            Arc::new(TimestampNanosecondArray::from_iter_values(rows.clone().map(|n| n * 1_001)));
        let lists = rows.clone().map(|n| (n % 3 > 0).then(|| (0..i32::try_from(n % 4).unwrap()).map(Some)));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
        let within: ArrayRef = Arc::new(StructArray::from(vec![(
            Arc::new(Field::new("text", DataType::Utf8, true)),
            texts.clone(),
        )]));
        let nullable = [("n", numbers), ("s", texts), ("at", times), ("l", lists), ("r", within)];
        RecordBatch::try_from_iter_with_nullable(nullable.map(|(name, array)| (name, array, true))).unwrap()
    });
    made.collect()
}

/// The target's types: times in microseconds, list elements named `element`.
fn target() -> SchemaRef {
    let element = Arc::new(Field::new("element", DataType::Int32, true));
    let text = Field::new("text", DataType::Utf8, true);
    Arc::new(Schema::new(vec![
        Field::new("n", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("l", DataType::List(element), true),
        Field::new("r", DataType::Struct(vec![text].into()), true),
    ]))
}

fn shape() -> Shape {
    let arrangement = Arrangement { target: target(), names: None, constants: BTreeMap::new() };
    Shape { arrangement, verify: true, compared: vec!["n".to_owned()] }
}

fn reader(
    batches: Vec<std::result::Result<RecordBatch, ArrowError>>,
    schema: SchemaRef,
) -> impl RecordBatchReader {
    RecordBatchIterator::new(batches, schema)
}

fn all(count: i64) -> impl RecordBatchReader {
    let batches = batches(count);
    let schema = batches[0].schema();
    reader(batches.into_iter().map(Ok).collect(), schema)
}

fn small_groups() -> TargetFormat {
    TargetFormat::Parquet(ParquetOptions { row_group_rows: 2_000, ..ParquetOptions::default() })
}

fn read(path: &Path) -> (Fingerprint, Vec<i64>) {
    let file = std::fs::File::open(path).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let groups = builder.metadata().row_groups().iter().map(|g| g.num_rows()).collect();
    let mut fingerprint = Fingerprint::new(target());
    builder.build().unwrap().for_each(|batch| fingerprint.add(&batch.unwrap()).unwrap());
    (fingerprint, groups)
}

#[test]
fn files_end_at_their_maximum_size() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder(place.path().to_owned());
    let done = convert(&mut all(10), &shape(), &small_groups(), &folder, Some(64), || Ok(())).unwrap();
    assert_eq!(done.files.iter().map(|file| file.summary.rows).collect::<Vec<_>>(), [2000; 5]);
    assert_eq!(folder.files(), (0..5).map(|n| folder.path(n)).collect::<Vec<_>>());
    for (number, WrittenFile { finished, summary, .. }) in done.files.iter().enumerate() {
        assert_eq!(finished.written.bytes, std::fs::metadata(folder.path(number)).unwrap().len());
        let (fingerprint, groups) = read(&folder.path(number));
        assert_eq!(
            (summary.fingerprint.differences(&fingerprint), groups),
            (Vec::<String>::new(), vec![2000])
        );
    }
    let (_, observed) = done.observed.columns().next().unwrap();
    assert_eq!((observed.values, observed.sum), (8571, Some((0..10_000).filter(|n| n % 7 > 0).sum())));

    let whole = convert(&mut all(10), &shape(), &small_groups(), &folder, None, || Ok(())).unwrap();
    let (fingerprint, groups) = read(&folder.path(0));
    assert_eq!((whole.files.len(), groups), (1, vec![2000; 5]));
    assert_eq!(whole.files[0].summary.fingerprint.differences(&fingerprint), Vec::<String>::new());
}

#[test]
fn each_page_has_a_checksum() {
    for codec in ["none", "snappy", "gzip", "zstd"] {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder(place.path().to_owned());
        let options = BTreeMap::from([("codec".to_owned(), Value::from(codec))]);
        let format = TargetFormat::Parquet(ParquetOptions::from_options(&options).unwrap());
        let done = convert(&mut all(3), &shape(), &format, &folder, None, || Ok(())).unwrap();
        let content = std::fs::read(folder.path(0)).unwrap();
        let file = std::fs::File::open(folder.path(0)).unwrap();
        let metadata = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().metadata().clone();
        let mut detected = 0;
        for column in metadata.row_group(0).columns() {
            let (start, len) = column.byte_range();
            // The last byte of the chunk belongs to a page's data.
            let mut damaged = content.clone();
            damaged[usize::try_from(start + len).unwrap() - 1] ^= 1;
            let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(damaged)).unwrap();
            let e = builder.build().unwrap().find_map(std::result::Result::err).unwrap();
            assert!(e.to_string().to_lowercase().contains("crc"), "{codec}: {e}");
            detected += 1;
        }
        assert_eq!(detected, 5);
        assert_eq!(
            done.files[0].summary.fingerprint.differences(&read(&folder.path(0)).0),
            Vec::<String>::new()
        );
    }
}

#[test]
fn a_failed_conversion_leaves_no_file() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder(place.path().to_owned());
    let mut given: Vec<_> = batches(6).into_iter().map(Ok).collect();
    let schema = target();
    given.push(Err(ArrowError::ExternalError(Box::new(Error::corrupt("torn").at(7)))));
    let mut torn = reader(given, schema);
    let e = convert(&mut torn, &shape(), &small_groups(), &folder, Some(64), || Ok(())).unwrap_err();
    assert!(e.is_damage() && e.offset() == Some(7), "{e}");
    assert_eq!(folder.files(), Vec::<PathBuf>::new());

    let mut ticks = 0;
    let stop = || {
        ticks += 1;
        if ticks == 5 { Err(Error::invalid("stopped")) } else { Ok(()) }
    };
    let e = convert(&mut all(10), &shape(), &small_groups(), &folder, Some(64), stop).unwrap_err();
    assert_eq!(e.to_string(), "stopped");
    assert_eq!(folder.files(), Vec::<PathBuf>::new());
}

#[test]
fn no_file_is_created_without_rows() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder(place.path().to_owned());
    let empty = batches(1)[0].slice(0, 0);
    let mut rows = reader(vec![Ok(empty)], target());
    let done = convert(&mut rows, &shape(), &small_groups(), &folder, None, || Ok(())).unwrap();
    assert!(done.files.is_empty() && folder.files().is_empty());
}

/// Partitions by the number in the first column; nulls have their own partition.
struct PartitionByNumber {
    limits: PartitionLimits,
    partition: fn(i64) -> i64,
    wrong: bool,
}

impl PartitionByNumber {
    fn of(&self, number: Option<i64>) -> u32 {
        number.map_or(999, |n| u32::try_from((self.partition)(n)).unwrap())
    }
}

impl Partitioner for PartitionByNumber {
    fn columns(&self) -> &[usize] {
        &[0]
    }

    fn partitions(&mut self, batch: &RecordBatch) -> Result<UInt32Array> {
        assert_eq!(batch.num_columns(), 1);
        let numbers = batch.column(0).as_primitive::<Int64Type>();
        let skipped = usize::from(self.wrong);
        Ok(numbers.iter().skip(skipped).map(|n| Some(self.of(n))).collect())
    }

    fn limits(&self) -> PartitionLimits {
        self.limits
    }
}

/// The partition of a written file; panics if it has several.
fn partition_of(path: &Path, partitioner: &PartitionByNumber) -> u32 {
    let builder = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap();
    let mut partitions = BTreeSet::new();
    for batch in builder.build().unwrap() {
        partitions
            .extend(batch.unwrap().column(0).as_primitive::<Int64Type>().iter().map(|n| partitioner.of(n)));
    }
    assert_eq!(partitions.len(), 1, "{path:?} has rows of {partitions:?}");
    partitions.pop_first().unwrap()
}

fn write_partitioned(
    memory: (usize, usize),
    partition: fn(i64) -> i64,
    max_bytes: Option<u64>,
) -> Vec<(u32, u64)> {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder(place.path().to_owned());
    let limits = PartitionLimits { buffer_bytes: memory.0, open_files: memory.1 };
    let mut partitioner = PartitionByNumber { limits, partition, wrong: false };
    let (shape, format) = (shape(), small_groups());
    let done =
        convert_partitioned(&mut all(10), &shape, &format, &folder, max_bytes, &mut partitioner, || Ok(()))
            .unwrap();
    let expected = (0..done.files.len()).map(|n| folder.path(n)).collect::<BTreeSet<_>>();
    assert_eq!(folder.files().into_iter().collect::<BTreeSet<_>>(), expected);
    let mut all_rows = Fingerprint::new(target());
    let mut written = Vec::new();
    for (number, file) in done.files.iter().enumerate() {
        let path = folder.path(number);
        assert_eq!(file.summary.fingerprint.differences(&read(&path).0), Vec::<String>::new());
        assert_eq!(file.partition, Some(partition_of(&path, &partitioner)));
        all_rows.join(&file.summary.fingerprint).unwrap();
        written.push((file.partition.unwrap(), file.summary.rows));
    }
    let whole = decode(&mut all(10), &shape, u64::MAX, || Ok(())).unwrap();
    assert_eq!(whole.summary.fingerprint.differences(&all_rows), Vec::<String>::new());
    let (_, observed) = done.observed.columns().next().unwrap();
    assert_eq!(observed.values, 8571);
    written
}

#[test]
fn each_file_has_rows_of_one_partition() {
    // With one buffer for all rows, there is one file for each partition.
    let written = write_partitioned((1 << 30, 4), |n| n % 3, None);
    assert_eq!(written.iter().map(|(partition, _)| *partition).collect::<Vec<_>>(), [0, 1, 2, 999]);
    assert_eq!(written.iter().map(|(_, rows)| rows).sum::<u64>(), 10_000);
    // With a limit of one byte, each batch is a buffer of its own. As long as all files may stay open, the
    // result is the same.
    assert_eq!(write_partitioned((1, 4), |n| n % 3, None), written);
    // If only one file may stay open, the others are closed after each of the ten buffers.
    let files = write_partitioned((1, 1), |n| n % 3, None).len();
    assert!((31..40).contains(&files), "{files}");
    // If rows are in the order of their partitions, few files are written, even if few may be open.
    assert_eq!(write_partitioned((1, 2), |n| n / 5000, None).len(), 3);
    // Files end at their maximum size, with row groups of 2000 rows; each batch has about 857 rows.
    assert_eq!(write_partitioned((1 << 30, 4), |_| 7, Some(64)).len(), 5);
    // There are more partitions than files may be open.
    assert_eq!(write_partitioned((1 << 30, 1), |n| n % 500, None).len(), 501);
}

#[test]
fn failed_partitioning_leaves_no_file() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder(place.path().to_owned());
    let limits = PartitionLimits { buffer_bytes: 1, open_files: 1 };
    let mut partitioner = PartitionByNumber { limits, partition: |n| n % 3, wrong: false };
    let mut ticks = 0;
    let stop = || {
        ticks += 1;
        if ticks == 12 { Err(Error::invalid("stopped")) } else { Ok(()) }
    };
    let (shape, format) = (shape(), small_groups());
    let e = convert_partitioned(&mut all(10), &shape, &format, &folder, None, &mut partitioner, stop)
        .unwrap_err();
    assert_eq!(e.to_string(), "stopped");
    assert_eq!(folder.files(), Vec::<PathBuf>::new());
    partitioner.wrong = true;
    let e = convert_partitioned(&mut all(1), &shape, &format, &folder, None, &mut partitioner, || Ok(()))
        .unwrap_err();
    assert!(e.to_string().contains("expected 1000 numbers, found 999"), "{e}");
}

#[test]
fn small_sources_share_a_file() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder(place.path().to_owned());
    let mut file = TargetFile::create(&target(), &folder.dest(0).unwrap(), &small_groups()).unwrap();
    let mut fingerprint = Fingerprint::new(target());
    for count in [1, 2] {
        let decoded = decode(&mut all(count), &shape(), u64::MAX, || Ok(())).unwrap();
        assert_eq!(decoded.summary.rows, 1000 * count.unsigned_abs());
        fingerprint.join(&decoded.summary.fingerprint).unwrap();
        decoded.batches.iter().flatten().for_each(|batch| file.write(batch).unwrap());
    }
    // Rows that would take too much memory are decoded again.
    let decoded = decode(&mut all(3), &shape(), 1000, || Ok(())).unwrap();
    assert!(decoded.batches.is_none());
    let again = append(&mut all(3), &shape(), &mut file, || Ok(())).unwrap();
    assert_eq!((again.rows, decoded.summary.rows), (3000, 3000));
    assert_eq!(again.fingerprint.differences(&decoded.summary.fingerprint), Vec::<String>::new());
    fingerprint.join(&again.fingerprint).unwrap();
    assert!(folder.files().iter().all(|path| path.extension().is_none_or(|e| e != "parquet")));
    assert_eq!(file.finish().unwrap().written.rows, 6000);
    assert_eq!(fingerprint.differences(&read(&folder.path(0)).0), Vec::<String>::new());
}

#[test]
fn rows_of_another_schema_are_errors() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder(place.path().to_owned());
    let mut file = TargetFile::create(&target(), &folder.dest(0).unwrap(), &small_groups()).unwrap();
    assert!(file.write(&batches(1)[0]).unwrap_err().to_string().contains("expected batches of"));
    let keys: DictionaryArray<Int32Type> = ["a", "b"].into_iter().collect();
    let dictionary = RecordBatch::try_from_iter([("n", Arc::new(keys) as ArrayRef)]).unwrap();
    assert!(file.write(&dictionary).is_err());
    drop(file);
    assert_eq!(folder.files(), Vec::<PathBuf>::new());
    let unknown = BTreeMap::from([("codec".to_owned(), Value::from("lzo"))]);
    assert!(ParquetOptions::from_options(&unknown).is_err());
}
