//! Benchmarks of CFile: reading and writing a column of each encoding. Throughput is in bytes of Arrow.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use bytes::Bytes;
use coldframe::{OpenOptions, Scan, Value};
use coldframe_benches::{scanned, written};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const ROWS: i64 = 1_000_000;

/// Deterministic pseudo-random numbers (`splitmix64`).
fn random(i: i64) -> u64 {
    let mut z = i.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn below(i: i64, n: u64) -> i64 {
    i64::try_from(random(i) % n).unwrap_or(0)
}

/// The names, encodings and values of the columns.
fn columns() -> Vec<(&'static str, &'static str, ArrayRef)> {
    let rows = || 0..ROWS;
    let int64 =
        |f: &dyn Fn(i64) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(rows().map(f))) };
    let small = |i: i64| i32::try_from(below(i, 100_000)).unwrap_or(0);
    let category = |i: i64| format!("category {:03}", below(i, 500));
    vec![
        ("int64_sequence", "bit_shuffle", int64(&|i| i * 7 + 1_000_000)),
        ("int64_random", "bit_shuffle", int64(&|i| below(i, u64::MAX / 2))),
        ("int32_100k", "bit_shuffle", Arc::new(Int32Array::from_iter_values(rows().map(small)))),
        (
            "int64_nulls",
            "bit_shuffle",
            Arc::new(Int64Array::from_iter(rows().map(|i| (below(i, 10) > 0).then_some(i)))),
        ),
        ("int64_plain", "plain", int64(&|i| i)),
        ("int64_runs", "rle", int64(&|i| below(i / 50, 1000))),
        ("int64_short_runs", "rle", int64(&|i| below(i / 12, 1000))),
        ("dict", "dict", Arc::new(StringArray::from_iter_values(rows().map(category)))),
        (
            "text_plain",
            "plain",
            Arc::new(StringArray::from_iter_values(rows().map(|i| format!("row {:x}", random(i))))),
        ),
        (
            "text_prefix",
            "prefix",
            Arc::new(StringArray::from_iter_values(rows().map(|i| format!("user/{i:012}")))),
        ),
    ]
}

fn write(values: &ArrayRef, encoding: &str) -> coldframe::Result<Bytes> {
    let field = Field::new("value", values.data_type().clone(), values.is_nullable());
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![values.clone()]);
    let batch = batch.map_err(coldframe::arrow_error)?;
    written("cfile", &batch, [("encoding", Value::from(encoding))]).map(Bytes::from)
}

fn read(bytes: &Bytes) -> coldframe::Result<usize> {
    scanned(bytes, &OpenOptions::default(), &Scan::default())
}

#[expect(clippy::expect_used, reason = "a benchmark that cannot run has to stop")]
fn benches(c: &mut Criterion) {
    let columns = columns();
    let mut group = c.benchmark_group("cfile/read");
    for (name, encoding, values) in &columns {
        let bytes = write(values, encoding).expect("a file");
        assert_eq!(i64::try_from(read(&bytes).expect("the file reads")), Ok(ROWS));
        let size: usize = values.to_data().buffers().iter().map(|b| b.len()).sum();
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_with_input(BenchmarkId::from_parameter(name), &bytes, |b, bytes| b.iter(|| read(bytes)));
    }
    group.finish();
    let mut group = c.benchmark_group("cfile/write");
    group.sample_size(10);
    for (name, encoding, values) in &columns {
        let size: usize = values.to_data().buffers().iter().map(|b| b.len()).sum();
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(BenchmarkId::from_parameter(name), |b| b.iter(|| write(values, encoding)));
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
