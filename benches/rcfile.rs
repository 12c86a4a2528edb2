//! RCFile: reading all columns and one of nine, and writing, by SerDe and codec. Throughput in rows.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use coldframe::{OpenOptions, Scan, SchemaSpec, Source, Value, open_source};
use coldframe_benches::{DDL, rcfile, table};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const ROWS: u32 = 200_000;
const SERDES: [&str; 2] = ["text", "binary"];
const CODECS: [&str; 3] = ["none", "zlib", "snappy"];

fn read_all(file: &Bytes, serde: &str, columns: Option<&[&str]>) -> coldframe::Result<usize> {
    let mut options = OpenOptions { schema: Some(SchemaSpec::Ddl(DDL.to_owned())), ..OpenOptions::default() };
    options.extra.insert("serde".to_owned(), Value::Str(serde.to_owned()));
    let source = Source::file("memory", Arc::new(file.clone()));
    let file = open_source(source, None, &options, Vec::new())?;
    let columns = columns.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
    let scan = Scan { columns, ..Scan::default() };
    let mut rows = 0;
    for split in file.whole()? {
        let mut reader = file.scan(&scan, &split)?;
        while let Some(batch) = reader.next_batch()? {
            rows += black_box(batch).num_rows();
        }
    }
    Ok(rows)
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
    for (name, columns) in projections {
        let mut group = c.benchmark_group(format!("rcfile/{name}"));
        group.throughput(Throughput::Elements(ROWS.into()));
        for (serde, id, file) in &files {
            let rows = read_all(file, serde, columns).expect("the file reads");
            assert_eq!(u32::try_from(rows), Ok(ROWS));
            group.bench_with_input(BenchmarkId::from_parameter(id), file, |b, file| {
                b.iter(|| read_all(file, serde, columns));
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
