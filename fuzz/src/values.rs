//! Targets for the smallest parts: codecs, cells, Avro values, and combining losses in a salvage.

use std::sync::Arc;

use arrow_array::{BinaryArray, RecordBatch, StringArray};
use coldframe::salvage::{Fate, Loss, Ranges, Salvage};
use coldframe::{DamageLog, OnError, SchemaSpec, Value, WriteOptions};
use coldframe_encoding::codec::hadoop::HadoopCodec;
use coldframe_encoding::codec::{Algorithm, Compressor, Decompressor};
use coldframe_encoding::varint::{put_hadoop_text, put_hadoop_vlong};
use coldframe_testing::fixture::source;
use coldframe_testing::rows;

use crate::files::{SCHEMA, options};
use crate::roundtrip::written;

/// Any bytes are decompressed within the requested size, or are an error. Compressed data is decompressed to
/// the original data.
pub fn codec(bytes: &[u8]) {
    let Some(([kind, sizes @ ..], src)) = bytes.split_first_chunk::<3>() else { return };
    let algorithm = Algorithm::ALL[usize::from(kind >> 1) % Algorithm::ALL.len()];
    let expected = usize::from(u16::from_be_bytes(*sizes)) * 16;
    let (mut decompressor, mut compressor) = (Decompressor::new(), Compressor::new());
    let mut out = b"before".to_vec();
    if kind & 1 == 0 {
        let exact = decompressor.decompress_exact(algorithm, src, expected, &mut out);
        assert_eq!(out.len(), 6 + exact.map_or(0, |()| expected));
        out.truncate(6);
        let bounded = decompressor.decompress_bounded(algorithm, src, expected, &mut out);
        assert!(bounded.unwrap_or(0) <= expected);
        let mut packed = Vec::new();
        compressor.compress(algorithm, None, src, &mut packed).unwrap();
        out.clear();
        decompressor.decompress_exact(algorithm, &packed, src.len(), &mut out).unwrap();
        assert_eq!(out, src);
    } else {
        let codec = HadoopCodec::framed(algorithm);
        let exact = codec.decompress_exact(&mut decompressor, src, expected, &mut out);
        assert_eq!(out.len(), 6 + exact.map_or(0, |()| expected));
        out.truncate(6);
        let bounded = codec.decompress_bounded(&mut decompressor, src, expected, &mut out);
        assert!(bounded.unwrap_or(0) <= expected);
    }
}

/// An RCFile of one column with these cells, in one row group.
fn single_column_file(data: &[u8], cells: &[usize]) -> Vec<u8> {
    let mut file = b"RCF\x01\x00\x00\x00\x00\x01".to_vec();
    for text in [b"hive.io.rcfile.column.number", &b"1"[..]] {
        put_hadoop_text(&mut file, text);
    }
    file.extend([7; 16]);
    let mut lengths = Vec::new();
    cells.iter().for_each(|len| put_hadoop_vlong(&mut lengths, *len as i64));
    let mut key = Vec::new();
    for n in [cells.len(), data.len(), data.len(), lengths.len()] {
        put_hadoop_vlong(&mut key, n as i64);
    }
    key.extend(lengths);
    for len in [key.len() + data.len(), key.len(), key.len()] {
        file.extend(u32::try_from(len).unwrap().to_be_bytes());
    }
    file.extend(key);
    file.extend_from_slice(data);
    file
}

/// Cells of the type that the first byte selects give valid arrays or an error; under `null` and `skip`, rows and
/// reported losses add up to the number of cells.
fn cells(bytes: &[u8], serde: &str) {
    let Some(([kind, how, cut], data)) = bytes.split_first_chunk::<3>() else { return };
    let types: Vec<&str> = columns().collect();
    let ddl = format!("c {}", types[usize::from(*kind) % types.len()]);
    let step = usize::from(cut % 32) + 1;
    let cells: Vec<usize> = data.chunks(step).map(<[u8]>::len).collect();
    let version = ["0.8", "2.3", "3.1", "4.1"][usize::from(how & 3)];
    let unit = ["ns", "us"][usize::from(how >> 2 & 1)];
    let mut options = options([
        ("serde", Value::from(serde)),
        ("hive_version", Value::from(version)),
        ("timestamp_unit", Value::from(unit)),
    ]);
    options.schema = Some(SchemaSpec::Ddl(ddl.clone()));
    let rcfile = coldframe::format_named("rcfile").unwrap();
    let table = rcfile
        .open(&source(single_column_file(data, &cells)), &options)
        .unwrap_or_else(|e| panic!("{ddl}: {e}"));
    rows::read(table.as_ref(), OnError::Raise).unwrap();
    for on_error in [OnError::Skip, OnError::Null] {
        let read = rows::read(table.as_ref(), on_error).unwrap();
        assert!(read.error.is_none(), "{ddl}: {:?}", read.error);
        let lost: u64 = read.damage.iter().map(|d| d.rows_lost.unwrap()).sum();
        assert_eq!(read.batch.num_rows() as u64 + lost, cells.len() as u64, "{ddl}: {:?}", read.damage);
    }
}

/// The types of [`SCHEMA`].
fn columns() -> impl Iterator<Item = &'static str> {
    let mut depth = 0;
    let parts = SCHEMA.split(move |c| {
        depth += i32::from(c == '<' || c == '(') - i32::from(c == '>' || c == ')');
        c == ',' && depth == 0
    });
    parts.map(|column| column.trim().split_once(' ').unwrap().1)
}

/// Any text cells give valid arrays of their type.
pub fn text_cells(bytes: &[u8]) {
    cells(bytes, "text");
}

/// Any LazyBinary cells give valid arrays of their type, or an error.
pub fn lazy_binary_cells(bytes: &[u8]) {
    cells(bytes, "binary");
}

/// An HFile as Hudi writes it: the input up to a zero byte is the Avro schema, the rest consists of values,
/// each preceded by its length.
pub fn avro(bytes: &[u8]) {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let (schema, mut rest) = bytes.split_at(end);
    let mut values = Vec::new();
    rest = rest.get(1..).unwrap_or_default();
    while let [len, tail @ ..] = rest {
        let (value, behind) = tail.split_at(usize::from(*len).min(tail.len()));
        values.push(value);
        rest = behind;
    }
    let keys: Vec<String> = (0..values.len()).map(|n| format!("{n:06}")).collect();
    let columns: [(&str, arrow_array::ArrayRef); 2] = [
        ("key", Arc::new(StringArray::from(keys))),
        ("value", Arc::new(BinaryArray::from_iter_values(values))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let metadata = Value::map([("schema", Value::Bytes(schema.to_vec()))]);
    let extra = [("view", Value::from("kv")), ("metadata", metadata)];
    let extra = extra.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    let Ok(file) = written("hfile", &batch.schema(), &[batch], &WriteOptions { extra }) else { return };
    let options = options([("decode", Value::from("avro"))]);
    let Ok(table) = coldframe::format_named("hfile").unwrap().open(&source(file.clone()), &options) else {
        return;
    };
    coldframe_testing::laws::assert_tolerant(table.as_ref(), Some(file.len() as u64), &[1]);
}

/// Seeds: schemas of each kind with one or two values.
pub fn avro_seeds() -> Vec<Vec<u8>> {
    let seeds: [(&str, &[u8]); 6] = [
        (r#""string""#, b"\x04\x06abc\x01\x00"),
        (
            r#"{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"b","type":["null","double"]}]}"#,
            b"\x02\x02\x00\x0a\x02\x02\0\0\0\0\0\0\xf0\x3f",
        ),
        (
            r#"{"type":"record","name":"r","fields":[{"name":"m","type":{"type":"map","values":"long"}},{"name":"s","type":{"type":"array","items":"bytes"}}]}"#,
            b"\x09\x02\x02a\x04\x00\x02\x02x\x00",
        ),
        (
            r#"{"type":"record","name":"n","fields":[{"name":"next","type":["null","n"]}]}"#,
            b"\x03\x02\x02\x00",
        ),
        (
            r#"{"type":"record","name":"e","fields":[{"name":"k","type":{"type":"enum","name":"c","symbols":["A","B"]}},{"name":"f","type":{"type":"fixed","name":"x","size":2}}]}"#,
            b"\x03\x02\x01\x02",
        ),
        (
            r#"{"type":"record","name":"d","fields":[{"name":"t","type":{"type":"long","logicalType":"timestamp-millis"}},{"name":"p","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},{"name":"day","type":{"type":"int","logicalType":"date"}}]}"#,
            b"\x05\x02\x04\x01\x02\x02",
        ),
    ];
    seeds.iter().map(|(schema, values)| [schema.as_bytes(), &[0], values].concat()).collect()
}

/// The laws of [`Salvage`], for losses that the input determines: `null` keeps all rows that `skip` keeps, dropped rows count
/// once, stretches cover the rows without gap or overlap, and each stretch agrees with a simple model of each row.
pub fn salvage(bytes: &[u8]) {
    const ROWS: u64 = 256;
    let Some(([nullable, ..], losses)) = bytes.split_first_chunk::<1>() else { return };
    let nullable: Vec<bool> = (0..3).map(|i| nullable >> i & 1 == 1).collect();
    let mut kept: Vec<Vec<bool>> = Vec::new();
    for on_error in [OnError::Skip, OnError::Null] {
        let log = DamageLog::default();
        let mut salvage = Salvage::new(on_error, nullable.iter().copied(), log.clone());
        // For each row, the columns that are null; `None` if the row is dropped.
        let mut naive: Vec<Option<Vec<bool>>> = vec![Some(vec![false; 3]); 256];
        let mut made = 0;
        for choice in losses.chunks_exact(3).take(40) {
            let (column, start, end) =
                (usize::from(choice[0] % 4), u64::from(choice[1]), u64::from(choice[2]));
            let rows = start.min(end)..start.max(end);
            let loss =
                Loss { rows: rows.clone(), bytes: 0..1, structure: "part".into(), reason: "lost".into() };
            made += 1;
            let null = column < 3 && nullable[column] && on_error == OnError::Null;
            if column < 3 {
                salvage.lose(column, loss)
            } else {
                salvage.lose_rows(loss)
            }
            for row in rows {
                let row = &mut naive[usize::try_from(row).unwrap()];
                match row {
                    Some(columns) if null => columns[column] = true,
                    _ => *row = None,
                }
            }
        }
        assert_eq!(log.len(), made);
        let dropped = naive.iter().filter(|r| r.is_none()).count() as u64;
        assert_eq!(log.records().iter().map(|d| d.rows_lost.unwrap()).sum::<u64>(), dropped);
        let mut at = 0;
        for stretch in salvage.stretches(0..ROWS) {
            assert!(stretch.rows.start == at && stretch.rows.end > at);
            for row in stretch.rows.clone() {
                let want = &naive[usize::try_from(row).unwrap()];
                match &stretch.fate {
                    Fate::Dropped => assert!(want.is_none()),
                    Fate::Kept => assert_eq!(want, &Some(vec![false; 3])),
                    Fate::Null(columns) => assert_eq!(want.as_deref(), Some(&columns[..])),
                }
            }
            at = stretch.rows.end;
        }
        assert_eq!(at, ROWS);
        kept.push(naive.iter().map(Option::is_some).collect());
    }
    assert!(kept[0].iter().zip(&kept[1]).all(|(skip, null)| !skip || *null));
    ranges(losses);
}

/// [`Ranges`] contains the added ranges, and `add` returns how many positions of a range are new.
fn ranges(bytes: &[u8]) {
    let mut ranges = Ranges::default();
    let mut naive = [false; 512];
    for pair in bytes.chunks_exact(2).take(60) {
        let (start, len) = (usize::from(pair[0]), usize::from(pair[1]));
        let new = naive[start..start + len].iter().filter(|held| !**held).count() as u64;
        naive[start..start + len].fill(true);
        assert_eq!(ranges.add(start as u64..(start + len) as u64), new);
    }
    assert_eq!(ranges.len(), naive.iter().filter(|held| **held).count() as u64);
    assert!((0..512).all(|at| ranges.contains(at as u64) == naive[at]));
}
