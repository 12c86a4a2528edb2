//! Benchmarks of ORC with filters on a sorted column, and on a column that only bloom filters can prune. Each
//! time is the time of a whole scan.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use coldframe::{Op, Predicate, Scan, Value};
use coldframe_benches::{option, scanned, written};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const ROWS: i64 = 2_000_000;

/// Sorted and random integers, few and many distinct texts, floating point numbers.
fn table() -> coldframe::Result<RecordBatch> {
    let mixed = |i: i64| i.wrapping_mul(0x5851_f42d_4c95_7f2d) >> 20;
    let ids: ArrayRef = Arc::new((0..ROWS).collect::<Int64Array>());
    let random: ArrayRef = Arc::new((0..ROWS).map(mixed).collect::<Int64Array>());
    let few: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|i| format!("kind {}", i % 37))));
    let many: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|i| format!("{:x}", mixed(i)))));
    #[expect(clippy::cast_precision_loss, reason = "any number does")]
    let floats: ArrayRef = Arc::new((0..ROWS).map(|i| Some(mixed(i) as f64 / 7.0)).collect::<Float64Array>());
    RecordBatch::try_from_iter([("id", ids), ("random", random), ("few", few), ("many", many), ("f", floats)])
        .map_err(coldframe::arrow_error)
}

fn file(batch: &RecordBatch, codec: &str) -> coldframe::Result<Bytes> {
    let blooms = ("bloom_filter_columns", Value::List(vec!["random".into()]));
    written("orc", batch, [("codec", Value::from(codec)), blooms]).map(Bytes::from)
}

fn scan(file: &Bytes, predicate: Option<&Predicate>) -> coldframe::Result<usize> {
    let scan = Scan { predicate: predicate.cloned(), ..Scan::default() };
    scanned(file, &option("threads", Value::Int(1)), &scan)
}

#[expect(clippy::expect_used, reason = "a benchmark that cannot run has to stop")]
fn benches(c: &mut Criterion) {
    let batch = table().expect("the table");
    let value = |v: i64| Arc::new(Int64Array::from(vec![v])) as ArrayRef;
    // The filter selects one row in a thousand.
    let range = Predicate::And(vec![
        Predicate::compare("id", Op::Ge, value(ROWS / 2)),
        Predicate::compare("id", Op::Lt, value(ROWS / 2 + ROWS / 1000)),
    ]);
    let absent = Predicate::compare("random", Op::Eq, value(1_234_567));
    let filters =
        [("all", None, ROWS), ("sorted_0.1%", Some(&range), ROWS / 1000), ("bloom_absent", Some(&absent), 0)];
    for codec in ["none", "zstd"] {
        let bytes = file(&batch, codec).expect("a file");
        let mut group = c.benchmark_group(format!("orc/pushdown_{codec}"));
        group.throughput(Throughput::Elements(ROWS.unsigned_abs())).sample_size(10);
        for (name, filter, expected) in &filters {
            let rows = scan(&bytes, *filter).expect("the file reads");
            assert_eq!(i64::try_from(rows), Ok(*expected));
            group.bench_function(BenchmarkId::from_parameter(name), |b| b.iter(|| scan(&bytes, *filter)));
        }
        group.finish();
    }
}

criterion_group!(all, benches);
criterion_main!(all);
