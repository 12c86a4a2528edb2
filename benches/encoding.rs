//! Benchmarks of the shared code that does not use Arrow: packed bits, varints, codecs, checksums and hashes.

use std::hint::black_box;

use coldframe_benches::{Random, rcfile, table};
use coldframe_encoding::bits::{BitOrder, pack, unpack};
use coldframe_encoding::codec::{Algorithm, Compressor, Decompressor};
use coldframe_encoding::varint::{put_hadoop_vlong, put_uleb128, put_zigzag};
use coldframe_encoding::{Cursor, checksum, hash};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const VALUES: u32 = 65_536;

/// Numbers of 1 to `bits` bits.
fn numbers(bits: u32) -> Vec<u64> {
    let mut random = Random::new(7);
    (0..VALUES).map(|_| random.next_u64() >> (64 - 1 - random.below(bits))).collect()
}

#[expect(clippy::expect_used, reason = "a benchmark that cannot run has to stop")]
fn bits(c: &mut Criterion) {
    for (name, order) in [("lsb", BitOrder::Lsb), ("msb", BitOrder::Msb)] {
        let mut group = c.benchmark_group(format!("bits/{name}"));
        group.throughput(Throughput::Elements(VALUES.into()));
        for width in [1, 3, 8, 13, 24, 40] {
            let values = numbers(width);
            let mut packed = Vec::new();
            pack(order, width, &values, &mut packed).expect("values that fit");
            let mut unpacked = vec![0u64; values.len()];
            group.bench_function(BenchmarkId::new("unpack", width), |b| {
                b.iter(|| unpack(order, width, black_box(&packed), &mut unpacked));
            });
            assert_eq!(unpacked, values);
            group.bench_function(BenchmarkId::new("pack", width), |b| {
                b.iter(|| {
                    packed.clear();
                    pack(order, width, black_box(&values), &mut packed)
                });
            });
        }
        group.finish();
    }
}

type Put = fn(&mut Vec<u8>, u64);
type Get = fn(&mut Cursor<'_>) -> coldframe_encoding::Result<u64>;

#[expect(clippy::expect_used, reason = "a benchmark that cannot run has to stop")]
fn varints(c: &mut Criterion) {
    let grammars: [(&str, Put, Get); 3] = [
        ("uleb128", put_uleb128, |c| c.uleb128()),
        ("zigzag", |out, n| put_zigzag(out, n.cast_signed()), |c| c.zigzag().map(i64::cast_unsigned)),
        (
            "hadoop",
            |out, n| put_hadoop_vlong(out, n.cast_signed()),
            |c| c.hadoop_vlong().map(i64::cast_unsigned),
        ),
    ];
    let mut group = c.benchmark_group("varint");
    group.throughput(Throughput::Elements(VALUES.into()));
    for (name, put, get) in grammars {
        for bits in [7, 28, 60] {
            let values = numbers(bits);
            let mut bytes = Vec::new();
            values.iter().for_each(|n| put(&mut bytes, *n));
            let read = |bytes: &[u8]| {
                let mut cursor = Cursor::new(bytes, 0);
                let mut sum = 0u64;
                while !cursor.is_empty() {
                    sum = sum.wrapping_add(get(&mut cursor)?);
                }
                Ok::<u64, coldframe_encoding::Error>(sum)
            };
            let sum = values.iter().fold(0u64, |sum, n| sum.wrapping_add(*n));
            assert_eq!(read(&bytes).expect("valid varints"), sum);
            group.bench_function(BenchmarkId::new(name, bits), |b| b.iter(|| read(black_box(&bytes))));
        }
    }
    group.finish();
}

#[expect(clippy::expect_used, reason = "a benchmark that cannot run has to stop")]
fn codecs(c: &mut Criterion) {
    // Typical text of cold files: the cells of a table.
    let plain = rcfile(&table(20_000).expect("the table"), "text", "none").expect("a file");
    let size = u64::try_from(plain.len()).unwrap_or(0);
    let mut group = c.benchmark_group("codec");
    group.throughput(Throughput::Bytes(size)).sample_size(10);
    for algorithm in Algorithm::ALL {
        let mut compressor = Compressor::new();
        let mut packed = Vec::new();
        compressor.compress(algorithm, None, &plain, &mut packed).expect("bytes that compress");
        let mut decompressor = Decompressor::new();
        let mut out = Vec::new();
        group.bench_function(BenchmarkId::new("decompress", algorithm.name()), |b| {
            b.iter(|| {
                out.clear();
                decompressor.decompress_exact(algorithm, black_box(&packed), plain.len(), &mut out)
            });
        });
        assert!(out == plain, "{} does not round-trip", algorithm.name());
        group.bench_function(BenchmarkId::new("compress", algorithm.name()), |b| {
            b.iter(|| {
                packed.clear();
                compressor.compress(algorithm, None, black_box(&plain), &mut packed)
            });
        });
    }
    group.finish();
}

fn digests(c: &mut Criterion) {
    type Digest = fn(&[u8]) -> u64;
    let all: [(&str, Digest); 8] = [
        ("crc32", |b| checksum::crc32(b).into()),
        ("crc32c", |b| checksum::crc32c(b).into()),
        ("murmur3_64", |b| hash::murmur3_64(b, 0)),
        ("murmur3_128", |b| hash::murmur3_128(b, 0).into_iter().fold(0, |a, h| a ^ h)),
        ("murmur3_32", |b| hash::murmur3_32(b, 0).into()),
        ("murmur2_32", |b| hash::murmur2_32(b, 0).into()),
        ("jenkins", |b| hash::jenkins(b, 0).into()),
        ("city64", hash::city64),
    ];
    let mut random = Random::new(11);
    let block: Vec<u8> =
        std::iter::repeat_with(|| random.next_u64().to_le_bytes()).take(8192).flatten().collect();
    for (name, length) in [("key of 24", 24), ("block of 65536", block.len())] {
        let mut group = c.benchmark_group(format!("digest/{name}"));
        let bytes = block.get(..length).unwrap_or(&block);
        group.throughput(Throughput::Bytes(u64::try_from(bytes.len()).unwrap_or(0)));
        for (name, digest) in all {
            group.bench_function(name, |b| b.iter(|| digest(black_box(bytes))));
        }
        group.finish();
    }
}

criterion_group!(all, bits, varints, codecs, digests);
criterion_main!(all);
