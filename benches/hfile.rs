//! Benchmarks of HFile: scans of pairs and cells by codec and encoding, look-ups of one key and of many keys,
//! and writing. Throughput is in entries.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use coldframe::{OpenOptions, Scan, Source, Value};
use coldframe_benches::{Random, scanned, written};
use coldframe_hfile::HFile;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const ROWS: u32 = 300_000;
/// The number of keys that are looked up together.
const MANY: usize = 10_000;

fn key(i: u64) -> String {
    format!("record-{i:012}")
}

/// Values of 64 random hexadecimal digits, followed by text that is always the same.
fn values() -> BinaryArray {
    let mut random = Random::new(1);
    BinaryArray::from_iter_values((0..ROWS).map(|_| {
        let noise: String = (0..4).map(|_| format!("{:016x}", random.next_u64())).collect();
        noise + "the rest of a value that repeats ..."
    }))
}

fn pairs() -> Vec<(&'static str, ArrayRef)> {
    let keys = StringArray::from_iter_values((0..u64::from(ROWS)).map(key));
    vec![("key", Arc::new(keys)), ("value", Arc::new(values()))]
}

fn cells() -> Vec<(&'static str, ArrayRef)> {
    let rows = StringArray::from_iter_values((0..u64::from(ROWS)).map(key));
    let same = |s: &str| Arc::new(StringArray::from_iter_values((0..ROWS).map(|_| s))) as ArrayRef;
    let times = Int64Array::from_iter_values((0..ROWS).map(|i| 1_700_000_000_000 + i64::from(i % 1000)));
    vec![
        ("row", Arc::new(rows)),
        ("family", same("cf")),
        ("qualifier", same("column")),
        ("timestamp", Arc::new(times)),
        ("value", Arc::new(values())),
    ]
}

fn scan(file: &Bytes) -> coldframe::Result<usize> {
    scanned(file, &OpenOptions::default(), &Scan::default())
}

#[expect(clippy::expect_used, reason = "a benchmark that cannot run has to stop")]
fn benches(c: &mut Criterion) {
    let pairs = RecordBatch::try_from_iter(pairs()).expect("the pairs");
    let cells = RecordBatch::try_from_iter(cells()).expect("the cells");
    let kinds = [
        ("pairs_none", &pairs, "none", "none"),
        ("pairs_gz", &pairs, "gz", "none"),
        ("cells_none", &cells, "none", "none"),
        ("cells_fast_diff", &cells, "none", "fast_diff"),
    ];
    let write = |batch: &RecordBatch, codec: &str, encoding: &str| {
        let options = [("codec", Value::from(codec)), ("encoding", Value::from(encoding))];
        // Pairs have no encoding, so the option is left out.
        written("hfile", batch, options.into_iter().filter(|(_, v)| *v != Value::from("none")))
    };
    let files = kinds.map(|(name, batch, codec, encoding)| {
        (name, Bytes::from(write(batch, codec, encoding).expect("a file")))
    });

    let mut group = c.benchmark_group("hfile/scan");
    group.throughput(Throughput::Elements(ROWS.into()));
    for (name, file) in &files {
        assert_eq!(u32::try_from(scan(file).expect("the file reads")), Ok(ROWS));
        group.bench_with_input(BenchmarkId::from_parameter(name), file, |b, file| b.iter(|| scan(file)));
    }
    group.finish();

    let opened = files.each_ref().map(|(name, bytes)| {
        let source = Source::file("memory", Arc::new(bytes.clone()));
        (name, HFile::open(&source, &OpenOptions::default()).expect("the file opens"))
    });
    let mut group = c.benchmark_group("hfile/get");
    for (name, file) in &opened {
        let mut random = Random::new(2);
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| file.get(key(random.next_u64() % u64::from(ROWS)).as_bytes()));
        });
    }
    group.finish();

    let mut group = c.benchmark_group("hfile/get_many");
    group.throughput(Throughput::Elements(MANY as u64)).sample_size(10);
    let step = u64::from(ROWS) / MANY as u64;
    let keys: Vec<Vec<u8>> = (0..MANY as u64).map(|i| key(i * step).into_bytes()).collect();
    for (name, file) in &opened {
        group.bench_function(BenchmarkId::from_parameter(name), |b| b.iter(|| file.get_many(&keys)));
    }
    group.finish();

    let mut group = c.benchmark_group("hfile/write");
    group.throughput(Throughput::Elements(ROWS.into())).sample_size(10);
    for (name, batch, codec, encoding) in kinds {
        group.bench_function(BenchmarkId::from_parameter(name), |b| b.iter(|| write(batch, codec, encoding)));
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
