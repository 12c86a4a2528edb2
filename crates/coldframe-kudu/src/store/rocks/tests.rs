//! Databases built by the tests: damaged, or with false lengths and counts. `tests/it/directories/logr.rs`
//! shows that real databases are read correctly.

use std::collections::BTreeMap;

use bytes::Bytes;
use coldframe_core::ErrorKind;
use coldframe_encoding::checksum::{crc32c, xxh3_64};
use coldframe_encoding::varint::{put_uleb128, put_zigzag};
use coldframe_testing::folder::MemoryFolder;

use super::*;

const READING: Reading = Reading { checked: true, limits: Limits { max_metadata_bytes: 1 << 20, ..LIMITS } };
const LIMITS: Limits = Limits {
    max_block_bytes: 1 << 20,
    max_columns: 1000,
    max_depth: 8,
    max_metadata_bytes: 1 << 20,
    max_unit_rows: Some(1 << 20),
    memory_limit: 1 << 30,
};

fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_uleb128(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The records as fragments, as RocksDB's writer makes them. `recycled`: the number of the log, for a
/// recycled file.
fn log(records: &[Vec<u8>], recycled: Option<u32>) -> Vec<u8> {
    let mut out = Vec::new();
    let header = if recycled.is_some() { 11 } else { 7 };
    for record in records {
        let (mut rest, mut first) = (&record[..], true);
        loop {
            let left = 32768 - out.len() % 32768;
            if left < header {
                out.resize(out.len() + left, 0);
                continue;
            }
            let n = rest.len().min(left - header);
            let last = n == rest.len();
            let kind = match (first, last) {
                (true, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
                (false, true) => 4,
            };
            let mut covered = vec![kind + if recycled.is_some() { 4 } else { 0 }];
            covered.extend(recycled.into_iter().flat_map(u32::to_le_bytes));
            covered.extend_from_slice(&rest[..n]);
            out.extend(masked(&covered));
            out.extend(u16::try_from(n).unwrap().to_le_bytes());
            out.extend(covered);
            (rest, first) = (&rest[n..], false);
            if last {
                break;
            }
        }
    }
    out
}

/// One batch, in which keys with a value are put and keys without a value are deleted.
fn batch(sequence: u64, operations: &[(&str, Option<&[u8]>)]) -> Vec<u8> {
    let mut out = sequence.to_le_bytes().to_vec();
    out.extend(u32::try_from(operations.len()).unwrap().to_le_bytes());
    for (key, value) in operations {
        out.push(u8::from(value.is_some()));
        string(&mut out, key.as_bytes());
        if let Some(value) = value {
            string(&mut out, value);
        }
    }
    out
}

/// A block whose entries share key prefixes, except for each 16th entry.
fn block(entries: &[(Vec<u8>, Vec<u8>)], sized: bool) -> Vec<u8> {
    let (mut out, mut restarts, mut before) = (Vec::new(), Vec::new(), &[][..]);
    for (i, (key, value)) in entries.iter().enumerate() {
        let mut shared = key.iter().zip(before).take_while(|(a, b)| a == b).count();
        if i % 16 == 0 || !sized {
            restarts.push(u32::try_from(out.len()).unwrap());
            shared = 0;
        }
        put_uleb128(&mut out, shared as u64);
        put_uleb128(&mut out, (key.len() - shared) as u64);
        if sized {
            put_uleb128(&mut out, value.len() as u64);
        }
        out.extend_from_slice(&key[shared..]);
        out.extend_from_slice(value);
        before = key;
    }
    restarts.iter().for_each(|r| out.extend(r.to_le_bytes()));
    out.extend(u32::try_from(restarts.len()).unwrap().to_le_bytes());
    out
}

/// Adds a block with its trailer; returns its handle.
fn add(file: &mut Vec<u8>, content: &[u8], compression: u8, checksum: u8) -> (u64, u64) {
    let at = file.len() as u64;
    file.extend_from_slice(content);
    let sum = if checksum == 1 {
        masked(&[content, &[compression]].concat())
    } else {
        let low = u32::try_from(xxh3_64(content) & 0xffff_ffff).unwrap();
        (low ^ u32::from(compression).wrapping_mul(0x6b90_83d9)).to_le_bytes()
    };
    file.push(compression);
    file.extend(sum);
    (at, content.len() as u64)
}

fn handle((offset, len): (u64, u64)) -> Vec<u8> {
    let mut out = Vec::new();
    put_uleb128(&mut out, offset);
    put_uleb128(&mut out, len);
    out
}

/// A table of the given blocks, whose index `change` may falsify.
fn table_of(blocks: &[(Vec<u8>, u8)], checksum: u8, change: impl Fn(&mut Vec<(u64, u64)>)) -> Vec<u8> {
    let mut file = Vec::new();
    let mut handles: Vec<_> = blocks.iter().map(|(b, c)| add(&mut file, b, *c, checksum)).collect();
    change(&mut handles);
    let index = handles.iter().enumerate().map(|(i, h)| (format!("k{i:05}").into_bytes(), handle(*h)));
    let index = block(&index.collect::<Vec<_>>(), true);
    let kind = (b"rocksdb.block.based.table.index.type".to_vec(), vec![0; 4]);
    let properties = add(&mut file, &block(&[kind], true), 0, checksum);
    let names = block(&[(b"rocksdb.properties".to_vec(), handle(properties))], true);
    let names = add(&mut file, &names, 0, checksum);
    let index = add(&mut file, &index, 0, checksum);
    let mut footer = vec![checksum];
    footer.extend(handle(names));
    footer.extend(handle(index));
    footer.resize(41, 0);
    footer.extend(5u32.to_le_bytes());
    footer.extend(0x88e2_41b7_85f4_cff7_u64.to_le_bytes());
    file.extend(footer);
    file
}

fn records(from: u64, to: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let key = |n: u64| {
        [format!("key {n:06}").as_bytes(), &(n << 8 | u64::from(!n.is_multiple_of(3))).to_le_bytes()].concat()
    };
    (from..to)
        .map(|n| (key(n), if n.is_multiple_of(3) { Vec::new() } else { n.to_le_bytes().to_vec() }))
        .collect()
}

type Contents = BTreeMap<String, (u64, Option<Vec<u8>>)>;

fn keep(contents: &mut Contents) -> impl FnMut(Record<'_>) -> Result<()> {
    |record| {
        let key = String::from_utf8_lossy(record.key).into_owned();
        contents.insert(key, (record.sequence, record.value.map(<[u8]>::to_vec)));
        Ok(())
    }
}

/// Reads a table: returns its contents, the number of losses, and the error that ended the read.
fn read_table(file: &[u8]) -> (Contents, u64, Result<()>) {
    let (mut contents, mut losses) = (Contents::new(), Losses::default());
    let result = table::each_record(file, READING, &mut losses, &mut keep(&mut contents));
    (contents, losses.places, result)
}

fn read_log(bytes: &[u8]) -> (Vec<Vec<u8>>, u64) {
    let (mut contents, mut losses) = (Vec::new(), Losses::default());
    let mut each = |bytes: &[u8]| {
        contents.push(bytes.to_vec());
        Ok(())
    };
    log::each_record(bytes, Some(7), true, &mut losses, &mut each).unwrap();
    (contents, losses.places)
}

#[test]
fn records_over_several_blocks_of_a_log_are_read() {
    let sizes = [10, 40_000, 0, 32_768 - 7, 100_000, 32_750, 3];
    let all: Vec<Vec<u8>> =
        sizes.iter().enumerate().map(|(i, n)| vec![u8::try_from(i + 1).unwrap(); *n]).collect();
    for recycled in [None, Some(7)] {
        let whole = log(&all, recycled);
        assert_eq!(read_log(&whole), (all.clone(), 0));
        // A record that is cut off is an incomplete write, and preallocated space is ignored.
        for cut in (0..whole.len()).step_by(997) {
            let (records, lost) = read_log(&whole[..cut]);
            assert_eq!((&all[..records.len()], lost), (&records[..], 0), "{cut}");
        }
        assert_eq!(read_log(&[&whole[..], &[0; 70_000]].concat()), (all.clone(), 0));
        for at in (0..whole.len()).step_by(499) {
            let mut hurt = whole.clone();
            hurt[at] ^= 0x10;
            let (records, _) = read_log(&hurt);
            assert!(records.iter().all(|record| all.contains(record)), "{at}");
        }
        // If a damaged block is followed by others, its records are lost, which is reported.
        let mut hurt = whole.clone();
        hurt[10] ^= 1;
        let (records, lost) = read_log(&hurt);
        assert_eq!((records.len(), lost), (all.len() - 2, 1));
    }
    // The file was used for another log earlier.
    let mut mixed = log(&all[..1], Some(7));
    mixed.extend(log(&all[..1], Some(6)));
    assert_eq!(read_log(&mixed), (all[..1].to_vec(), 0));
}

#[test]
fn the_blocks_of_a_table_are_read() {
    let blocks: Vec<_> = (0..9).map(|n| (block(&records(n * 40, n * 40 + 40), true), 0)).collect();
    for checksum in [1, 4] {
        let whole = table_of(&blocks, checksum, |_| {});
        let (all, lost, result) = read_table(&whole);
        result.unwrap();
        assert_eq!((all.len(), lost), (360, 0));
        assert_eq!(all["key 000007"], (7, Some(7_u64.to_le_bytes().to_vec())));
        assert_eq!(all["key 000006"], (6, None));
        for at in 0..whole.len() {
            let mut hurt = whole.clone();
            hurt[at] ^= 0x20;
            let (contents, lost, result) = read_table(&hurt);
            let reported = lost > 0 || result.is_err();
            assert!(reported || contents == all, "{at}");
            assert!(contents.iter().all(|(key, value)| all.get(key) == Some(value)), "{at}");
            assert!(lost != 1 || result.is_err() || contents.len() == 320, "{at}: {}", contents.len());
            assert!(result.is_err() || !reported || lost == 1);
        }
        for cut in 0..whole.len() {
            assert!(read_table(&whole[..cut]).2.is_err());
        }
    }
}

#[test]
fn an_index_of_differences_is_read() {
    let mut entries = Vec::new();
    let mut run = |shared: u64, key: &[u8], value: &dyn Fn(&mut Vec<u8>)| {
        put_uleb128(&mut entries, shared);
        put_uleb128(&mut entries, key.len() as u64);
        entries.extend_from_slice(key);
        value(&mut entries);
    };
    run(0, b"aa", &|out| out.extend(handle((0, 1000))));
    run(1, b"b", &|out| put_zigzag(out, -10));
    run(1, b"c", &|out| put_zigzag(out, 300));
    run(0, b"b", &|out| out.extend(handle((9000, 5))));
    run(1, b"", &|out| put_zigzag(out, -6));
    entries.extend([0; 8]);
    entries.extend(2u32.to_le_bytes());
    let mut index = block::Entries::open(&entries).unwrap();
    let mut before = None;
    for expected in [(0, 1000, "aa"), (1005, 990, "ab"), (2000, 1290, "ac"), (9000, 5, "b")] {
        let handle = index.next_handle(before).unwrap().unwrap();
        assert_eq!(
            (handle.offset, handle.len, index.key.as_slice()),
            (expected.0, expected.1, expected.2.as_bytes())
        );
        before = Some(handle);
    }
    assert!(index.next_handle(before).unwrap_err().is_damage());
}

#[test]
fn tables_with_false_claims_are_damage() {
    let blocks = vec![(block(&records(0, 40), true), 0); 3];
    // Indexes that list a block repeatedly, in reverse order, or outside of the file.
    type Change = fn(&mut Vec<(u64, u64)>);
    let changes: [Change; 4] =
        [|h| *h = vec![h[0]; 10_000], |h| h.swap(0, 1), |h| h[1].1 = u64::MAX, |h| h[1].0 = 1 << 40];
    for change in changes {
        let (contents, lost, result) = read_table(&table_of(&blocks, 1, change));
        assert!(contents.len() <= 40 && (result.is_err() || lost > 0));
    }
    // Compressed bytes that claim to expand to four gigabytes.
    let bomb = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
    let (_, lost, result) = read_table(&table_of(&[(bomb.to_vec(), 1)], 4, |_| {}));
    assert_eq!((lost, result.is_ok()), (1, true));
    // The stated restarts, lengths and shared bytes do not exist.
    for content in [
        &b"\xff\xff\xff\x0f"[..],
        b"",
        b"\0\0",
        b"\x05\x01\x01ab\0\0\0\0",
        b"\0\xff\xff\xff\xff\xff\xff\xff\xff\x7f\0a\0\0\0\0",
    ] {
        let (contents, lost, result) = read_table(&table_of(&[(content.to_vec(), 0)], 1, |_| {}));
        assert_eq!((contents.len(), lost, result.is_ok()), (0, 1, true), "{content:?}");
    }
}

#[test]
fn unsupported_features_are_named() {
    let merge = [b"key".as_slice(), &(9_u64 << 8 | 2).to_le_bytes()].concat();
    let merged = block(&[(merge, Vec::new())], true);
    let unsupported = |bytes: &[u8], name: &str| {
        let e = read_table(bytes).2.unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Unsupported(_)) && e.to_string().contains(name), "{e}");
    };
    unsupported(&table_of(&[(merged, 0)], 1, |_| {}), "merges");
    unsupported(&table_of(&[(vec![0; 9], 7)], 1, |_| {}), "compression 7");
    let whole = table_of(&[(block(&records(0, 3), true), 0)], 1, |_| {});
    for (back, bytes, name) in [(53, &[3][..], "checksums of kind 3"), (52, &[0x3e, 0, 0x7a, 0], "version 6")]
    {
        let mut other = whole.clone();
        let (at, version) = (other.len() - back, other.len() - 12);
        other[at..at + bytes.len()].copy_from_slice(bytes);
        other[version] += u8::from(back == 52);
        unsupported(&other, name);
    }
    for (edit, name) in [
        (vec![1, 1, b'x'], "comparator"),
        (vec![0xc8, 1, 3], "column family 3"),
        (vec![0xc9, 1, 1, b'a'], "column families"),
        (vec![77], "tag 77"),
    ] {
        let e = manifest::read(&log(&[edit], None), READING).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Unsupported(_)) && e.to_string().contains(name), "{e}");
    }
    let mut other = batch(5, &[("a", None)]);
    other[12] = 15;
    let e = batch::each_record(&other, &mut |_| Ok(())).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Unsupported(_)) && e.to_string().contains("ranges"), "{e}");
}

/// An edit that adds tables with these numbers and lengths, and removes others.
fn edit(first_log: u64, added: impl IntoIterator<Item = (u64, u64)>, removed: &[u64]) -> Vec<u8> {
    let mut out = vec![2];
    put_uleb128(&mut out, first_log);
    for (number, len) in added {
        out.extend([103, 0]);
        put_uleb128(&mut out, number);
        put_uleb128(&mut out, len);
        string(&mut out, b"smallest");
        string(&mut out, b"largest");
        out.extend([1, 9, 5, 1, 0, 1]);
    }
    for number in removed {
        out.extend([6, 0]);
        put_uleb128(&mut out, *number);
    }
    out
}

fn disk(files: &[(&str, &[u8])]) -> MemoryFolder {
    let named = files.iter().map(|(n, b)| (format!("rdb/{n}"), Bytes::copy_from_slice(b)));
    MemoryFolder { files: named.collect() }
}

fn read_all(disk: &MemoryFolder) -> (Contents, Vec<Damage>) {
    let mut contents = Contents::new();
    let database = Database::open(disk, "rdb", READING).unwrap();
    let damage = database.each_record(&mut keep(&mut contents)).unwrap();
    (contents, damage)
}

#[test]
fn the_manifest_selects_files_and_without_it_all_are_read() {
    let table = |from| table_of(&[(block(&records(from, from + 10), true), 0)], 4, |_| {});
    let (a, b, c) = (table(0), table(100), table(200));
    let len = |t: &[u8]| t.len() as u64;
    let manifest = log(&[edit(1, [(4, len(&a)), (5, len(&b))], &[]), edit(8, [(6, len(&c))], &[4])], None);
    let (old, new) =
        (log(&[batch(50, &[("old", Some(b"1"))])], None), log(&[batch(60, &[("new", Some(b"2"))])], None));
    let files = [
        ("CURRENT", &b"MANIFEST-000009\n"[..]),
        ("MANIFEST-000009", &manifest),
        ("000004.sst", &a),
        ("000005.sst", &b),
        ("000006.sst", &c),
        ("000007.log", &old),
        ("000008.log", &new),
    ];
    let whole = disk(&files);
    let (contents, damage) = read_all(&whole);
    assert_eq!((contents.len(), damage), (21, vec![]));
    assert_eq!(contents["new"], (60, Some(b"2".to_vec())));
    // Missing files are reported. If the manifest cannot be read, that is reported too, and all files are
    // read.
    for (name, left, text) in [
        ("000005.sst", 11, "000005.sst"),
        ("000008.log", 20, "expected a log with the number 8"),
        ("CURRENT", 32, "CURRENT"),
        ("MANIFEST-000009", 32, "MANIFEST-000009"),
    ] {
        let (contents, damage) =
            read_all(&disk(&files.iter().copied().filter(|f| f.0 != name).collect::<Vec<_>>()));
        assert_eq!((contents.len(), damage.len()), (left, 1), "{name}: {damage:?}");
        assert!(damage[0].to_error().to_string().contains(text), "{damage:?}");
    }
    for at in 0..manifest.len() {
        let mut hurt = manifest.clone();
        hurt[at] ^= 2;
        let mut files = files;
        files[1].1 = &hurt;
        let (contents, damage) = read_all(&disk(&files));
        // Damage to the last edit may make it look like an incomplete write.
        let earlier = contents.len() == 22 && contents.contains_key("old");
        assert!(earlier || contents.len() == 32 && !damage.is_empty(), "{at}: {} {damage:?}", contents.len());
    }
    let outside = disk(&[("CURRENT", b"MANIFEST-../../x\n")]);
    assert_eq!(read_all(&outside).1.len(), 1);
}

#[test]
fn many_missing_tables_are_one_damage_record() {
    let manifest = log(&[edit(0, (0..200_000).map(|n| (n, 9)), &[])], None);
    let reading = Reading { limits: Limits::default(), ..READING };
    let disk = disk(&[("CURRENT", b"MANIFEST-1\n"), ("MANIFEST-1", &manifest)]);
    let damage = Database::open(&disk, "rdb", reading).unwrap().each_record(&mut |_| Ok(())).unwrap();
    assert_eq!(damage.len(), 1);
    assert!(damage[0].to_error().to_string().contains("200000 of its tables"), "{damage:?}");
}
