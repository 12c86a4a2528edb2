//! The laws of damage, for each kind of file of a root directory: losses are reported, and no cell is
//! returned that the table did not have. If a block, file or description is lost, no outdated or deleted
//! value may be returned instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int64Array, ListArray, RecordBatch, StructArray, UInt8Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;
use bytes::Bytes;
use coldframe_core::{
    Damage, DamageLog, ErrorKind, Format, OnError, OpenOptions, Result, Scan, ScanReader, Source, Value,
};
use coldframe_hbase::HBaseFormat;
use coldframe_hfile::HFileFormat;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::laws::{AllowedLoss, Subject, assert_tolerant};
use coldframe_testing::mutate::flipped;
use coldframe_testing::{fixture, rows, written};

fn options(more: &[(&str, Value)]) -> OpenOptions {
    let fixed = [("table", Value::from("shop:orders")), ("as_of", Value::Int(1_700_000_000_000))];
    let all = fixed.iter().chain(more).map(|(name, value)| ((*name).to_owned(), value.clone()));
    OpenOptions { extra: all.collect::<BTreeMap<_, _>>(), ..OpenOptions::default() }
}

/// Checks the laws: damages up to `max_files` files of the directory for which `of` returns true, each in
/// `damages` ways.
fn obey(options: &OpenOptions, of: impl Fn(&str) -> bool, max_files: usize, damages: usize) {
    each(options, of, max_files, |subject| subject.damages(damages).obey());
}

fn each(options: &OpenOptions, of: impl Fn(&str) -> bool, max_files: usize, obey: impl Fn(Subject)) {
    each_in("orders", options, of, max_files, obey);
}

fn each_in(
    root: &str,
    options: &OpenOptions,
    of: impl Fn(&str) -> bool,
    max_files: usize,
    obey: impl Fn(Subject),
) {
    let folder = MemoryFolder::load(&fixture::data().join("hbase/files").join(root));
    let paths: Vec<String> = folder.files.keys().filter(|p| of(p)).cloned().collect();
    let step = paths.len().div_ceil(max_files).max(1);
    assert!(!paths.is_empty());
    for path in paths.into_iter().step_by(step) {
        let bytes = folder.files.get(&path).unwrap().clone();
        let (folder, options, at) = (folder.clone(), options.clone(), path.clone());
        let open = move |source: coldframe_core::Source| {
            let damaged = source.bytes()?;
            let bytes = damaged.read(0..damaged.len())?;
            HBaseFormat.open(&folder.with(&at, bytes).source(), &options)
        };
        obey(Subject::new(format!("{root}/{path}"), bytes, open).part_of_table());
    }
}

fn is_store_file(path: &str) -> bool {
    path.starts_with("data/") && (path.contains("/f/") || path.contains("/g/"))
}

#[test]
fn the_laws_hold_for_store_files() {
    obey(&options(&[("wal", Value::Bool(false))]), is_store_file, 8, 25);
}

#[test]
fn the_laws_hold_for_store_files_with_unflushed_edits() {
    obey(&options(&[("view", Value::from("versions"))]), is_store_file, 4, 15);
}

#[test]
fn the_laws_hold_for_store_files_in_the_raw_view() {
    let keyed = ("dictionary", Value::Bool(true));
    let raw = [("view", Value::from("raw")), ("wal", Value::Bool(false)), keyed];
    obey(&options(&raw), is_store_file, 4, 15);
}

#[test]
fn the_laws_hold_for_store_files_of_a_wide_table() {
    let columns = Value::map([("f:note", Value::from("string"))]);
    let wide = [("view", Value::from("pivot")), ("columns", columns), ("wal", Value::Bool(false))];
    obey(&options(&wide), is_store_file, 4, 15);
}

#[test]
fn the_laws_hold_for_region_descriptions() {
    obey(&options(&[("wal", Value::Bool(false))]), |path| path.ends_with(".regioninfo"), 2, 30);
}

#[test]
fn the_laws_hold_for_manifests() {
    let snapshot = [("snapshot", Value::from("kept"))];
    // No checksum covers what a manifest states about families.
    let of = |path: &str| path.starts_with(".hbase-snapshot");
    each(&options(&snapshot), of, 2, |subject| subject.unsummed().damages(40).obey());
}

fn is_log(path: &str) -> bool {
    path.starts_with("WALs/")
}

/// Logs have no checksums, and a log that is cut off looks like one that was being written.
#[test]
fn the_laws_hold_for_logs() {
    let silent = |subject: Subject| subject.unsummed().unit(|_| AllowedLoss::file().silent());
    each(&options(&[]), is_log, 2, |subject| silent(subject).damages(200).obey());
}

#[test]
fn the_laws_hold_for_compressed_logs() {
    let logged = options(&[("table", Value::from("shop:logged"))]);
    let silent = |subject: Subject| subject.unsummed().unit(|_| AllowedLoss::file().silent());
    for root in ["wal_dictionary", "wal_gz", "wal_snappy"] {
        each_in(root, &logged, is_log, 1, |subject| silent(subject).damages(60).obey());
    }
}

/// After a damaged edit of a compressed log, the dictionaries are not those of the writer: nothing behind it is read.
#[test]
fn a_damaged_edit_ends_a_compressed_log() {
    let logged = options(&[("table", Value::from("shop:logged")), ("view", Value::from("raw"))]);
    for root in ["wal_dictionary", "wal_gz", "wal_snappy"] {
        let folder = MemoryFolder::load(&fixture::data().join("hbase/files").join(root));
        let (path, log) = folder.files.iter().find(|(path, _)| is_log(path)).unwrap();
        let read = |bytes: bytes::Bytes, on_error| {
            let table = HBaseFormat.open(&folder.with(path, bytes).source(), &logged).unwrap();
            rows::read(table.as_ref(), on_error).unwrap()
        };
        let whole = read(log.clone(), OnError::Raise).sorted();
        assert_eq!(whole.len(), 241);
        // A number that no text has, as the region of an edit.
        let at = log.windows(4).rposition(|window| window == [0x0a, 2, 0, 1]).unwrap();
        let unknown = read(flipped(log, at + 2, 0x40), OnError::Skip);
        let reason = &unknown.damage.last().unwrap().reason;
        assert!(reason.contains("one of 2 texts of a dictionary, found number 16385"), "{reason}");
        assert_eq!(unknown.batch.num_rows(), 0, "what the rest may replace is withheld");
        // A log that a server left when it died ends with its last whole edit.
        let cut = read(log.slice(..at + 9), OnError::Raise).sorted();
        assert!(cut.len() < whole.len() && cut.iter().all(|row| whole.contains(row)));
    }
}

/// A tolerant read of an unsupported log withholds the cells that its edits may concern.
#[test]
fn an_unsupported_log_is_an_error_or_skipped() {
    let folder = MemoryFolder::load(&fixture::data().join("hbase/files/wal_gz"));
    let (path, log) = folder.files.iter().find(|(path, _)| is_log(path)).unwrap();
    // The header's last two fields: values are compressed, and by which codec.
    let at = log.windows(4).position(|window| window == [6 << 3, 1, 7 << 3, 1]).unwrap();
    let unnamed = flipped(log, at + 2, 9 << 3 ^ 7 << 3);
    let logged = options(&[("table", Value::from("shop:logged"))]);
    let table = HBaseFormat.open(&folder.with(path, unnamed).source(), &logged).unwrap();
    assert_tolerant(table.as_ref(), None, &[1 << 12]);
    let plain = rows::read(table.as_ref(), OnError::Raise);
    let e = plain.map_or_else(Some, |outcome| outcome.error).unwrap();
    assert!(matches!(e.kind(), ErrorKind::Unsupported(_)) && e.to_string().contains("no codec"), "{e}");
    let left = rows::read(table.as_ref(), OnError::Skip).unwrap();
    // The log's edits may replace or delete any cell.
    assert!(left.batch.num_rows() == 0 && left.damage.iter().any(|d| d.reason.contains("no codec")));
    // The number of cells in the log is unknown.
    let metadata = table.metadata().unwrap();
    assert_eq!(metadata.get("wal").and_then(|wal| wal.get("cells")), Some(&Value::Null));
}

/// Reads the table with one changed file: returns its rows and the recorded damage.
fn read(at: &str, bytes: Vec<u8>, on_error: OnError) -> Result<(Vec<RecordBatch>, Vec<Damage>)> {
    let folder = MemoryFolder::load(&fixture::data().join("hbase/files/orders"));
    let table =
        HBaseFormat.open(&folder.with(at, bytes).source(), &options(&[("wal", Value::Bool(false))]))?;
    let damage = DamageLog::default();
    let mut batches = Vec::new();
    for split in table.splits(u64::MAX)? {
        let scan = Scan { on_error, ..Scan::default() };
        let mut reader = ScanReader::try_new(&*table, &scan, &split, damage.clone())?;
        while let Some(batch) = reader.next_batch()? {
            batches.push(batch);
        }
    }
    Ok((batches, damage.records()))
}

/// A store file that lost only its trailer can be restored if its file info and all its blocks exist;
/// otherwise it is unknown which cells it had.
#[test]
fn a_lost_trailer_costs_no_cells() {
    let folder = MemoryFolder::load(&fixture::data().join("hbase/files/orders"));
    for (path, bytes) in folder.files.iter().filter(|(path, _)| is_store_file(path)) {
        let whole = read(path, bytes.to_vec(), OnError::Raise).unwrap().0;
        let trailer = bytes.len() - 4096;
        let mut changed = bytes.to_vec();
        changed[trailer..].fill(0);
        for cut in [changed.clone(), bytes[..trailer].to_vec()] {
            assert!(read(path, cut.clone(), OnError::Raise).is_err(), "{path}");
            let (left, damage) = read(path, cut, OnError::Skip).unwrap();
            assert_eq!(left, whole, "{path}");
            assert_eq!(damage.iter().map(|d| d.rows_lost).collect::<Vec<_>>(), [Some(0)], "{path}");
        }
        // If a block cannot be read either, the whole file is lost, and with it all older cells of its rows.
        let mut block = changed;
        block[40] ^= 1;
        let (left, damage) = read(path, block, OnError::Skip).unwrap();
        let rows = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        assert!(rows(&left) < rows(&whole) && damage.iter().any(|d| d.rows_lost != Some(0)), "{path}");
    }
}

/// A store file without checksums, whose cells have one tag each.
fn tagged(rows: &BinaryArray) -> Bytes {
    let bytes =
        |value: &[u8]| -> ArrayRef { Arc::new(BinaryArray::from_iter_values(rows.iter().map(|_| value))) };
    let tag = StructArray::try_from(vec![
        ("type", Arc::new(UInt8Array::from(vec![1; rows.len()])) as ArrayRef),
        ("value", bytes(b"a tag")),
    ])
    .unwrap();
    let item = Arc::new(Field::new("item", tag.data_type().clone(), false));
    let lengths = OffsetBuffer::from_lengths(std::iter::repeat_n(1, rows.len()));
    let columns: [(&str, ArrayRef); 7] = [
        ("row", Arc::new(rows.clone())),
        ("family", bytes(b"f")),
        ("qualifier", bytes(b"tagged")),
        ("timestamp", Arc::new(Int64Array::from(vec![1_699_999_999_000; rows.len()]))),
        ("type", Arc::new(UInt8Array::from(vec![4; rows.len()]))),
        ("value", bytes(b"a value")),
        ("tags", Arc::new(ListArray::new(item, lengths, Arc::new(tag), None))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let options = [("checksum", Value::from("null")), ("block_size", Value::Int(1))];
    written(&HFileFormat, &[batch], &options).unwrap()
}

/// A cell's tags are parsed only when the scan decides on the cell. If they are invalid, the block is lost,
/// but not the other blocks.
#[test]
fn invalid_tags_cost_only_their_block() {
    let folder = MemoryFolder::load(&fixture::data().join("hbase/files/orders"));
    let path = folder.files.keys().find(|path| is_store_file(path)).unwrap();
    let stored = Source::file("stored", Arc::new(folder.files[path].clone()));
    let cells =
        rows::read(HFileFormat.open(&stored, &OpenOptions::default()).unwrap().as_ref(), OnError::Raise);
    let mut keys: Vec<Vec<u8>> =
        cells.unwrap().batch.column(0).as_binary::<i32>().iter().map(|row| row.unwrap().to_vec()).collect();
    keys.dedup();
    let file = tagged(&BinaryArray::from_iter_values(&keys));
    let at = format!("{}/{}", path.rsplit_once('/').unwrap().0, "0123456789abcdef".repeat(2));
    let count = |batches: &[RecordBatch]| {
        let of = |b: &RecordBatch| {
            b.column_by_name("qualifier")
                .unwrap()
                .as_binary::<i32>()
                .iter()
                .filter(|q| *q == Some(b"tagged"))
                .count()
        };
        batches.iter().map(of).sum::<usize>()
    };
    let (whole, _) = read(&at, file.to_vec(), OnError::Raise).unwrap();
    assert_eq!((count(&whole), keys.len() > 3), (keys.len(), true));
    let tag = file.windows(5).rposition(|w| w == b"a tag").unwrap();
    let hurt = flipped(&file, tag - 2, 0x40).to_vec();
    assert!(read(&at, hurt.clone(), OnError::Raise).unwrap_err().is_damage());
    let (left, damage) = read(&at, hurt, OnError::Skip).unwrap();
    assert_eq!((count(&left), damage.len()), (keys.len() - 1, 1), "{damage:?}");
}

/// A limit is no damage: a block with a length above it is an error under each `on_error`.
#[test]
fn a_block_above_the_size_limit_is_an_error_and_not_lost() {
    let folder = MemoryFolder::load(&fixture::data().join("hbase/files/orders"));
    let mut options = options(&[("wal", Value::Bool(false))]);
    let open = |options: &OpenOptions| HBaseFormat.open(&folder.source(), options).unwrap();
    options.limits.max_block_bytes = 700;
    let table = open(&options);
    for on_error in [OnError::Raise, OnError::Skip, OnError::Null] {
        let read = rows::read(table.as_ref(), on_error).unwrap();
        let e = read.error.unwrap();
        assert!(e.is_limit() && read.damage.is_empty(), "{e}");
        let text = e.to_string();
        assert!(text.contains("max_block_bytes") && text.contains("store file data/"), "{text}");
    }
}
