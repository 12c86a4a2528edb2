//! Benchmarks of RCFile by SerDe and codec: reading all columns and one column of nine, and writing.
//! Throughput is in rows.

use bytes::Bytes;
use coldframe::{OpenOptions, SchemaSpec, Value};
use coldframe_benches::{DDL, columns, option, rcfile, scanned, table};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const ROWS: u32 = 200_000;
const SERDES: [&str; 2] = ["text", "binary"];
const CODECS: [&str; 3] = ["none", "zlib", "snappy"];

fn read(file: &Bytes, serde: &str, names: Option<&[&str]>) -> coldframe::Result<usize> {
    let schema = Some(SchemaSpec::Ddl(DDL.to_owned()));
    scanned(file, &OpenOptions { schema, ..option("serde", Value::from(serde)) }, &columns(names))
}

#[expect(clippy::expect_used, reason = "a benchmark that cannot run has to stop")]
fn benches(c: &mut Criterion) {
    let batch = table(ROWS).expect("the table");
    let mut files = Vec::new();
    for serde in SERDES {
        for codec in CODECS {
            let bytes = Bytes::from(rcfile(&batch, serde, codec).expect("a file"));
            files.push((serde, format!("{serde}_{codec}"), bytes));
        }
    }
    let projections: [(&str, Option<&[&str]>); 3] =
        [("read_all", None), ("read_id", Some(&["id"])), ("read_customer", Some(&["customer"]))];
    for (name, names) in projections {
        let mut group = c.benchmark_group(format!("rcfile/{name}"));
        group.throughput(Throughput::Elements(ROWS.into()));
        for (serde, id, file) in &files {
            let rows = read(file, serde, names).expect("the file reads");
            assert_eq!(u32::try_from(rows), Ok(ROWS));
            group.bench_with_input(BenchmarkId::from_parameter(id), file, |b, file| {
                b.iter(|| read(file, serde, names));
            });
        }
        group.finish();
    }
    let mut group = c.benchmark_group("rcfile/write");
    group.throughput(Throughput::Elements(ROWS.into())).sample_size(10);
    for serde in SERDES {
        for codec in CODECS {
            group.bench_function(BenchmarkId::from_parameter(format!("{serde}_{codec}")), |b| {
                b.iter(|| rcfile(&batch, serde, codec));
            });
        }
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
