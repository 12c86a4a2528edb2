//! What the targets do with their bytes; `cargo test` does the same with mutants of the fixtures, where no nightly
//! compiler is at hand.
//!
//! Seeds: `cargo fuzz run rcfile_open_scan corpus/rcfile_open_scan ../tests/data/rcfile/files`.

pub mod redfile;

use arrow_array::Array;
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use coldframe_cfile::CFileFormat;
use coldframe_core::{Error, ErrorKind, Format, Limits, OnError, OpenOptions, SchemaSpec, TableFile, Value};
use coldframe_encoding::codec::hadoop::HadoopCodec;
use coldframe_encoding::codec::{Algorithm, Compressor, Decompressor};
use coldframe_hfile::HFile;
use coldframe_orc::OrcFormat;
use coldframe_rcfile::RcFile;
use coldframe_rcfile::hive_type::ddl::parse_columns;
use coldframe_rcfile::serde::{
    Cells, ColumnDecoder, HiveVersion, SerdeOptions, TimestampUnit, lazy_binary, text,
};
use coldframe_testing::fixture::source;
use coldframe_testing::{layout, rows};

/// Types for the columns of any file: each kind, shallow and nested.
pub const SCHEMA: &str = "a bigint, b string, c decimal(9,2), d timestamp, e boolean, f array<map<string,int>>, \
     g struct<x:date,y:char(3)>, h uniontype<int,string>, i binary, j varchar(4), k double, l tinyint, m smallint, \
     n float, o int, p timestamp with local time zone, q interval_year_month, r interval_day_time, \
     s map<int,array<struct<t:decimal(38,10),u:uniontype<bigint,array<binary>>>>>";

/// Opens `bytes` three ways: cells as they are, text, binary.
fn opened(bytes: &[u8]) -> impl Iterator<Item = RcFile> {
    [None, Some("text"), Some("binary")].into_iter().filter_map(move |serde| {
        let mut options = OpenOptions { limits: limits(), ..OpenOptions::default() };
        if let Some(serde) = serde {
            options.schema = Some(SchemaSpec::Ddl(SCHEMA.to_owned()));
            options.extra.insert("serde".to_owned(), Value::from(serde));
        }
        RcFile::open(&source(bytes.to_vec()), &options).ok()
    })
}

/// Small enough that what a file may ask for does not run into the fuzzer's own bounds.
fn limits() -> Limits {
    Limits {
        max_block_bytes: 16 << 20,
        max_metadata_bytes: 4 << 20,
        max_unit_rows: 1 << 16,
        ..Limits::default()
    }
}

/// A plain read ends with rows or with an error; all rows are valid Arrow.
pub fn open_scan(bytes: &[u8]) {
    for file in opened(bytes) {
        rows::read(&file, OnError::Raise).unwrap();
        let _ = file.metadata();
    }
}

/// A read that skips damage does not end with an error; each byte of the file has one place.
pub fn salvage(bytes: &[u8]) {
    for file in opened(bytes) {
        for on_error in [OnError::Skip, OnError::Null] {
            let outcome = rows::read(&file, on_error).unwrap();
            assert!(outcome.error.is_none(), "{:?}", outcome.error);
        }
        layout::assert_tiled(&file.inspect().unwrap());
        file.verify_structure().unwrap();
    }
}

/// An HFile in both views, read plainly, with damage skipped, and by key; each byte has one place.
pub fn hfile(bytes: &[u8]) {
    for view in ["cells", "kv"] {
        let mut options = OpenOptions { limits: limits(), ..OpenOptions::default() };
        options.extra.insert("view".to_owned(), Value::from(view));
        let Ok(file) = HFile::open(&source(bytes.to_vec()), &options) else { continue };
        let _ = rows::read(&file, OnError::Raise);
        let outcome = rows::read(&file, OnError::Skip).unwrap();
        // What nobody reads (PREFIX_TREE, LZMA) is no damage.
        let may_end = |e: &Error| matches!(e.kind(), ErrorKind::Unsupported(_));
        assert!(outcome.error.as_ref().is_none_or(may_end), "{:?}", outcome.error);
        let _ = file.get(bytes.get(50..60).unwrap_or_default());
        let _ = file.get_many(&[b"a".to_vec(), bytes.get(60..70).unwrap_or_default().to_vec()]);
        let _ = file.might_contain(b"row", Some(b"q"));
        layout::assert_tiled(&file.inspect().unwrap());
        file.verify_structure().unwrap();
    }
}

/// An ORC file: a plain read ends with rows or an error, one that skips goes on behind damage, all rows are valid Arrow, and
/// each byte has one place.
pub fn orc_scan(bytes: &[u8]) {
    let mut options = OpenOptions { limits: limits(), ..OpenOptions::default() };
    options.extra.insert("timestamp_unit".to_owned(), Value::from("us"));
    let Ok(file) = OrcFormat.open(&source(bytes.to_vec()), &options) else { return };
    for on_error in [OnError::Raise, OnError::Skip, OnError::Null] {
        let outcome = rows::read(file.as_ref(), on_error).unwrap();
        let damage = outcome.error.as_ref().is_some_and(coldframe_core::Error::is_damage);
        assert!(!damage || on_error == OnError::Raise, "{:?}", outcome.error);
    }
    layout::assert_tiled(&file.inspect().unwrap());
    file.metadata().unwrap();
    file.verify_structure().unwrap();
}

/// A CFile of any kind: a plain read ends with rows or an error, one that skips damage with rows.
pub fn cfile(bytes: &[u8]) {
    for skip_checksums in [true, false] {
        let options = OpenOptions { limits: limits(), skip_checksums, ..OpenOptions::default() };
        let Ok(file) = CFileFormat.open(&source(bytes.to_vec()), &options) else { continue };
        let _ = rows::read(file.as_ref(), OnError::Raise);
        for on_error in [OnError::Skip, OnError::Null] {
            let outcome = rows::read(file.as_ref(), on_error).unwrap();
            assert!(outcome.error.is_none(), "{:?}", outcome.error);
        }
        layout::assert_tiled(&file.inspect().unwrap());
        file.verify_structure().unwrap();
        file.metadata().unwrap();
    }
}

/// Any bytes are decompressed or refused, within the size that was asked for; what was compressed comes back.
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

/// Cuts `bytes` into cells of the type that its first byte chooses, and decodes them.
fn cells(
    bytes: &[u8],
    decoder: impl Fn(&coldframe_rcfile::hive_type::HiveType, &SerdeOptions) -> Option<Box<dyn ColumnDecoder>>,
) {
    let Some(([kind, how, cut], data)) = bytes.split_first_chunk::<3>().map(|(a, b)| (*a, b)) else { return };
    let types = parse_columns(SCHEMA, &Limits::default()).unwrap();
    let (_, hive_type) = &types[usize::from(kind) % types.len()];
    let options = SerdeOptions {
        hive_version: [HiveVersion::V0_8, HiveVersion::V2_3, HiveVersion::V3_1, HiveVersion::V4_1]
            [usize::from(how & 3)],
        timestamp_unit: if how & 4 == 0 { TimestampUnit::Nanosecond } else { TimestampUnit::Microsecond },
        limits: limits(),
        ..SerdeOptions::default()
    };
    let Some(decoder) = decoder(hive_type, &options) else { return };
    let step = usize::from(cut % 32) + 1;
    let mut ends: Vec<i32> = (0..=data.len()).step_by(step).map(|end| i32::try_from(end).unwrap()).collect();
    ends.push(i32::try_from(data.len()).unwrap());
    let rows = ends.len() - 1;
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
    let cells = Cells { data: Buffer::from(data.to_vec()), offsets, nulled: how & 8 != 0, first_row: 0 };
    if let Ok(array) = decoder.decode(&cells) {
        assert_eq!(array.len(), rows);
        assert_eq!(array.data_type(), &hive_type.to_arrow(options.timestamp_unit));
        array.to_data().validate_full().unwrap();
    }
}

/// Any cells of text become valid arrays of their type.
pub fn text_cells(bytes: &[u8]) {
    cells(bytes, |hive_type, options| text::decoder(hive_type, options).ok());
}

/// Any cells of LazyBinary become valid arrays of their type, or an error.
pub fn lazy_binary_cells(bytes: &[u8]) {
    cells(bytes, |hive_type, options| lazy_binary::decoder(hive_type, options).ok());
}

/// All targets by name.
pub const TARGETS: [(&str, fn(&[u8])); 9] = [
    ("cfile_open_scan", cfile),
    ("rcfile_open_scan", open_scan),
    ("rcfile_salvage", salvage),
    ("redfile_open_scan", redfile::open_scan),
    ("codec", codec),
    ("text_cells", text_cells),
    ("lazy_binary_cells", lazy_binary_cells),
    ("hfile_open_scan", hfile),
    ("orc_scan", orc_scan),
];

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_testing::{Dice, fixture, mutate};
    use std::time::{Duration, Instant};

    /// The CFiles in the Kudu directory whose blocks are files.
    fn cfiles() -> Vec<bytes::Bytes> {
        let (mut open, mut found) = (vec![fixture::data().join("kudu/files/file_blocks")], Vec::new());
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
                open.sort();
            } else {
                found.push(bytes::Bytes::from(std::fs::read(&path).unwrap()));
            }
        }
        found.retain(|b| b.starts_with(b"kuducfl2") && b.len() < 20_000);
        found
    }

    /// Mutants of the fixtures, and for the targets of cells bytes that their lead chooses, for `FUZZ_SECONDS` (2) each.
    #[test]
    fn mutants_of_the_fixtures() {
        let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2);
        let seed = std::env::var("FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
        let seeds_of = |format: &str| -> Vec<_> {
            if format == "cfile" {
                return cfiles();
            }
            let files = fixture::distinct(fixture::files(format)).into_iter().filter(|f| f.path.is_file());
            files.map(|f| f.bytes()).filter(|b| b.len() < 20_000).collect()
        };
        for (name, target) in TARGETS {
            // Targets of whole files are named after their format.
            let format = name.split_once('_').map(|(format, _)| format).filter(|f| f.ends_with("file") || *f == "orc");
            let seeds = seeds_of(format.unwrap_or("rcfile"));
            assert!(!seeds.is_empty(), "{name}");
            let (mut dice, start, mut runs) = (Dice::new(seed), Instant::now(), 0u64);
            while start.elapsed() < Duration::from_secs(seconds) {
                let of = &seeds[dice.below(seeds.len())];
                let mut bytes = if format.is_some() {
                    mutate::shaken(of, &mut dice)
                } else {
                    let from = dice.below(of.len());
                    mutate::shaken(&of[from..(from + 1 + dice.below(400)).min(of.len())], &mut dice)
                }
                .to_vec();
                if format.is_none() {
                    bytes.splice(0..0, [dice.byte(), dice.byte(), dice.byte()]);
                }
                let one = Instant::now();
                let ended = std::panic::catch_unwind(|| target(&bytes));
                if ended.is_err() || one.elapsed() > Duration::from_secs(5) {
                    let path = std::env::temp_dir().join(format!("coldframe-{name}-{runs}"));
                    std::fs::write(&path, &bytes).unwrap();
                    panic!("{name}: run {runs} of seed {seed}: {:?}; see {}", one.elapsed(), path.display());
                }
                runs += 1;
            }
            println!("{name}: {runs} runs");
        }
    }
}
