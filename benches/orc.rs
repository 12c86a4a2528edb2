//! Benchmarks of ORC by codec: reading all columns and one column of nine, decompression alone, and writing;
//! and of runs of integers by encoding. Throughput is in rows and in values.

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use bytes::Bytes;
use coldframe::{OpenOptions, Result, Source, Value, open_source};
use coldframe_benches::{Random, columns, option, scanned, table, written};
use coldframe_encoding::codec::{Algorithm, Decompressor};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const ROWS: u32 = 200_000;
/// Rows of a column of integers: enough that opening the file does not matter.
const INTEGERS: u32 = 2_000_000;
const CODECS: [&str; 5] = ["none", "snappy", "lz4", "zstd", "zlib"];

fn orc(batch: &RecordBatch, codec: &str) -> Result<Vec<u8>> {
    written("orc", batch, [("codec", Value::from(codec))])
}

fn read(file: &Bytes, names: Option<&[&str]>) -> Result<usize> {
    scanned(file, &option("threads", Value::Int(1)), &columns(names))
}

/// The chunks of a file's values, and whether each chunk is stored uncompressed.
fn chunks(file: &Bytes) -> Result<Vec<(bool, Bytes)>> {
    let source = Source::file("memory", Arc::new(file.clone()));
    let tree = open_source(source, None, &OpenOptions::default(), Vec::new())?.table.inspect()?;
    let stripes = tree.children.iter().filter(|n| n.name.starts_with("stripe "));
    let streams = stripes.flat_map(|stripe| &stripe.children);
    let values = streams.filter(|s| !matches!(s.name.as_str(), "ROW_INDEX" | "stripe footer"));
    let mut chunks = Vec::new();
    for stream in values {
        let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let mut rest = file.slice(at(stream.bytes.start)..at(stream.bytes.end));
        while let Some([a, b, c]) = rest.first_chunk().copied() {
            let header = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
            let mut chunk = rest.split_off(3);
            rest = chunk.split_off(header >> 1);
            chunks.push((header & 1 == 1, chunk));
        }
    }
    Ok(chunks)
}

/// Decompresses all values of a file without decoding them.
fn decompress(algorithm: Algorithm, chunks: &[(bool, Bytes)]) -> Result<usize> {
    const MAX_CHUNK: usize = 256 << 10;
    let mut codec = Decompressor::new();
    let (mut out, mut all) = (Vec::new(), 0);
    for (original, chunk) in chunks {
        out.clear();
        if *original {
            out.extend_from_slice(chunk);
        } else {
            codec.decompress_bounded(algorithm, chunk, MAX_CHUNK, &mut out)?;
        }
        all += black_box(&out).len();
    }
    Ok(all)
}

/// Columns of integers, for each of which the writer chooses one encoding.
fn integers() -> Vec<(String, Int64Array)> {
    let mut r = Random::new(7);
    let mut columns = Vec::new();
    for bits in [1u32, 4, 8, 16, 24, 32, 48] {
        let values = (0..INTEGERS).map(|_| (r.next_u64() >> (64 - bits)).cast_signed());
        columns.push((format!("direct, {bits} bits"), values.collect::<Int64Array>()));
    }
    let mut wide =
        |n: u32| if n.is_multiple_of(50) { i64::from(r.below(u32::MAX)) << 8 } else { r.below(200).into() };
    columns.push(("patched base".to_owned(), (0..INTEGERS).map(&mut wide).collect()));
    let mut sum = 0;
    let mut rising = |_: u32| {
        sum += i64::from(r.below(9));
        sum
    };
    columns.push(("delta".to_owned(), (0..INTEGERS).map(&mut rising).collect()));
    columns.push(("fixed delta".to_owned(), (0..INTEGERS).map(|n| i64::from(n) * 3).collect()));
    columns
        .push(("short repeat".to_owned(), (0..INTEGERS).map(|n| i64::from(n / 7 * 7919 % 1000)).collect()));
    columns
}

#[expect(clippy::expect_used, reason = "a benchmark that cannot run has to stop")]
fn benches(c: &mut Criterion) {
    let batch = table(ROWS).expect("the table");
    let files: Vec<(&str, Bytes)> =
        CODECS.iter().map(|codec| (*codec, orc(&batch, codec).expect("a file").into())).collect();
    let projections: [(&str, Option<&[&str]>); 3] =
        [("read_all", None), ("read_id", Some(&["id"])), ("read_customer", Some(&["customer"]))];
    for (name, columns) in projections {
        let mut group = c.benchmark_group(format!("orc/{name}"));
        group.throughput(Throughput::Elements(ROWS.into()));
        for (codec, file) in &files {
            let rows = read(file, columns).expect("the file reads");
            assert_eq!(u32::try_from(rows), Ok(ROWS));
            group.bench_with_input(BenchmarkId::from_parameter(codec), file, |b, file| {
                b.iter(|| read(file, columns));
            });
        }
        group.finish();
    }
    let mut group = c.benchmark_group("orc/codec_alone");
    group.throughput(Throughput::Elements(ROWS.into()));
    for (codec, file) in files.iter().filter(|(codec, _)| *codec != "none") {
        let algorithm = if *codec == "zlib" { Algorithm::Deflate } else { codec.parse().expect("a codec") };
        let chunks = chunks(file).expect("the file's streams");
        group.bench_function(BenchmarkId::from_parameter(codec), |b| {
            b.iter(|| decompress(algorithm, &chunks).expect("whole chunks"));
        });
    }
    group.finish();
    let mut group = c.benchmark_group("orc/write");
    group.throughput(Throughput::Elements(ROWS.into())).sample_size(10);
    for codec in CODECS {
        group.bench_function(BenchmarkId::from_parameter(codec), |b| b.iter(|| orc(&batch, codec)));
    }
    group.finish();
    let columns = integers();
    for (name, is_read) in [("orc/read_integers", true), ("orc/write_integers", false)] {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(INTEGERS.into())).sample_size(20);
        for (id, column) in &columns {
            let batch = RecordBatch::try_from_iter([("n", Arc::new(column.clone()) as ArrayRef)]);
            let batch = batch.expect("a batch");
            let file = Bytes::from(orc(&batch, "none").expect("a file"));
            group.bench_function(BenchmarkId::from_parameter(id), |b| {
                b.iter(|| if is_read { read(&file, None) } else { orc(&batch, "none").map(|f| f.len()) });
            });
        }
        group.finish();
    }
}

criterion_group!(all, benches);
criterion_main!(all);
