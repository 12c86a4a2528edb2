//! Benchmarks of Redfile by codec and page size: reading all columns and one column of seven, and writing.
//! Throughput is in rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, ListArray, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use bytes::Bytes;
use coldframe::{OpenOptions, Result, Value, arrow_error};
use coldframe_benches::{Random, columns, scanned, table, written};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const ROWS: u32 = 200_000;
const CODECS: [&str; 3] = ["none", "snappy", "gzip"];
const PAGES: [(&str, i64); 2] = [("8 KiB", 8 << 10), ("1 MiB", 1 << 20)];

/// The columns of the table whose types Redfile supports, and lists.
fn batch() -> Result<RecordBatch> {
    let kept = table(ROWS)?.project(&[0, 1, 2, 3, 6, 7]).map_err(arrow_error)?;
    let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
    for (field, column) in kept.schema().fields().iter().zip(kept.columns()) {
        columns.push((field.name().clone(), column.clone(), field.is_nullable()));
    }
    columns.push(("items".to_owned(), Arc::new(lists()?), false));
    RecordBatch::try_from_iter_with_nullable(columns).map_err(arrow_error)
}

/// Lists of zero to five numbers, one for each row.
fn lists() -> Result<ListArray> {
    let mut random = Random::new(3);
    let lengths: Vec<usize> = (0..ROWS).map(|_| usize::try_from(random.below(6)).unwrap_or(0)).collect();
    let items: usize = lengths.iter().sum();
    let values = Int64Array::from_iter_values((0..items).map(|_| i64::from(random.below(1 << 30))));
    let item = Arc::new(Field::new("element", DataType::Int64, false));
    ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), Arc::new(values), None).map_err(arrow_error)
}

fn redfile(batch: &RecordBatch, codec: &str, page_bytes: i64) -> Result<Vec<u8>> {
    written("redfile", batch, [("codec", Value::from(codec)), ("page_bytes", Value::Int(page_bytes))])
}

#[expect(clippy::expect_used, reason = "a benchmark that cannot run has to stop")]
fn benches(c: &mut Criterion) {
    let batch = batch().expect("the table");
    let kinds = || CODECS.into_iter().flat_map(|codec| PAGES.map(|(name, bytes)| (codec, name, bytes)));
    let options = OpenOptions::default();
    let files: Vec<(String, Bytes)> = kinds()
        .map(|(codec, page, bytes)| {
            (format!("{codec}, {page}"), redfile(&batch, codec, bytes).expect("a file").into())
        })
        .collect();
    let projections: [(&str, Option<&[&str]>); 4] = [
        ("read_all", None),
        ("read_id", Some(&["id"])),
        ("read_customer", Some(&["customer"])),
        ("read_items", Some(&["items"])),
    ];
    for (name, names) in projections {
        let mut group = c.benchmark_group(format!("redfile/{name}"));
        group.throughput(Throughput::Elements(ROWS.into()));
        for (id, file) in &files {
            let rows = scanned(file, &options, &columns(names)).expect("the file reads");
            assert_eq!(u32::try_from(rows), Ok(ROWS));
            group.bench_with_input(BenchmarkId::from_parameter(id), file, |b, file| {
                b.iter(|| scanned(file, &options, &columns(names)));
            });
        }
        group.finish();
    }
    let mut group = c.benchmark_group("redfile/write");
    group.throughput(Throughput::Elements(ROWS.into())).sample_size(10);
    for (codec, page, bytes) in kinds() {
        group.bench_function(BenchmarkId::from_parameter(format!("{codec}, {page}")), |b| {
            b.iter(|| redfile(&batch, codec, bytes));
        });
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
