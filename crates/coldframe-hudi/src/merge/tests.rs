//! Merging base files and logs with later records and deletes.

use bytes::Bytes;

use super::*;

const SCHEMA: &str = r#"{"type":"record","name":"HoodieMetadataRecord","fields":[
    {"name":"key","type":"string"},{"name":"type","type":"int"},
    {"name":"filesystemMetadata","type":["null",{"type":"map","values":{"type":"record","name":"FileInfo","fields":[
        {"name":"size","type":"long"},{"name":"isDeleted","type":"boolean"}]}}]},
    {"name":"ColumnStatsMetadata","default":null,"type":["null",{"type":"record","name":"Stats","fields":[
        {"name":"fileName","type":["null","string"]},
        {"name":"minValue","type":["null",{"type":"record","name":"LongWrapper","fields":[{"name":"value","type":"long"}]},
            {"type":"record","name":"DecimalWrapper","fields":[{"name":"value","type":
                {"type":"bytes","logicalType":"decimal","precision":30,"scale":15}}]}]},
        {"name":"maxValue","type":["null","LongWrapper","DecimalWrapper"]},
        {"name":"valueCount","type":["null","long"]},
        {"name":"isDeleted","type":"boolean"},
        {"name":"isTightBound","type":"boolean","default":false}]}]}]}"#;

fn schema() -> Arc<Schema> {
    Arc::new(Schema::parse(SCHEMA.as_bytes(), &Limits::default()).unwrap())
}

fn record(fields: Vec<Datum<'_>>) -> Record {
    let mut datum = Vec::new();
    Datum::Record(fields).encode(&mut datum);
    Record { datum: Bytes::from(datum), schema: schema() }
}

fn null<'a>() -> Datum<'a> {
    Datum::Union(0, Box::new(Datum::Null))
}

fn some(branch: usize, value: Datum<'_>) -> Datum<'_> {
    Datum::Union(branch, Box::new(value))
}

fn files(list: &[(&'static str, i64, bool)]) -> Record {
    let entry = |(name, size, gone): &(&'static str, i64, bool)| {
        (*name, Datum::Record(vec![Datum::Long(*size), Datum::Boolean(*gone)]))
    };
    let map = Datum::Map(list.iter().map(entry).collect());
    record(vec![Datum::String("p"), Datum::Long(2), some(1, map), null()])
}

fn stats(min: Datum<'_>, max: Datum<'_>, count: i64, deleted: bool, tight: bool) -> Record {
    let stats = Datum::Record(vec![
        some(1, Datum::String("f")),
        min,
        max,
        some(1, Datum::Long(count)),
        Datum::Boolean(deleted),
        Datum::Boolean(tight),
    ]);
    record(vec![Datum::String("k"), Datum::Long(3), null(), some(1, stats)])
}

fn long<'a>(value: i64) -> Datum<'a> {
    some(1, Datum::Record(vec![Datum::Long(value)]))
}

fn merged(old: Record, new: Record) -> Record {
    apply(Some(old), Some(new), &Limits::default()).unwrap().unwrap()
}

#[test]
fn listings_of_files_are_merged() {
    let old = files(&[("a", 10, false), ("b", 20, false), ("c", 0, true)]);
    let new = files(&[("a", 5, false), ("b", 0, true), ("c", 7, false), ("d", 0, true), ("e", 1, false)]);
    assert_eq!(
        merged(old, new),
        files(&[("a", 10, false), ("c", 7, false), ("d", 0, true), ("e", 1, false)])
    );
    let gone = merged(files(&[("a", 0, true)]), files(&[("a", 0, true)]));
    assert_eq!(gone, files(&[("a", 0, true)]));
}

#[test]
fn statistics_of_columns_are_merged() {
    let old = || stats(long(5), long(9), 3, false, false);
    assert_eq!(
        merged(old(), stats(long(-2), long(7), 4, false, false)),
        stats(long(-2), long(9), 7, false, false)
    );
    assert_eq!(
        merged(old(), stats(null(), long(10), 4, false, false)),
        stats(long(5), long(10), 7, false, false)
    );
    for (deleted, tight) in [(true, false), (false, true)] {
        let new = stats(long(6), long(7), 4, deleted, tight);
        assert_eq!(merged(old(), new.clone()), new);
    }
    let gone = stats(null(), null(), 0, true, false);
    assert_eq!(merged(gone, old()), old());
    let other = some(2, Datum::Record(vec![Datum::Bytes(&[1])]));
    let mixed = stats(other.clone(), other, 1, false, false);
    assert!(apply(Some(old()), Some(mixed), &Limits::default()).is_err());
}

#[test]
fn decimals_compare_as_numbers() {
    let dec = |bytes: &'static [u8]| some(2, Datum::Record(vec![Datum::Bytes(bytes)]));
    // -256, -2, -1, 0, 1, 255, 256
    let ascending: [&'static [u8]; 7] =
        [&[0xff, 0], &[0xfe], &[0xff, 0xff], &[0], &[0, 1], &[0, 0xff], &[1, 0]];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            let both = merged(stats(dec(a), dec(a), 0, false, false), stats(dec(b), dec(b), 0, false, false));
            let (min, max) = (ascending[i.min(j)], ascending[i.max(j)]);
            assert_eq!(both, stats(dec(min), dec(max), 0, false, false), "{a:?} {b:?}");
        }
    }
}

#[test]
fn a_deletion_removes_the_record() {
    let limits = Limits::default();
    let record = files(&[("a", 1, false)]);
    assert_eq!(apply(Some(record.clone()), None, &limits).unwrap(), None);
    assert_eq!(apply(None, Some(record.clone()), &limits).unwrap(), Some(record));
}

fn block(kind: BlockKind, header: &[(i32, &str)]) -> Block {
    let header = header.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
    Block { bytes: 0..1, content: 0..1, kind, header, reason: String::new(), cut: false }
}

fn ordered(blocks: &[Block], valid: &[&str]) -> Vec<usize> {
    let valid = valid.iter().map(|v| (*v).to_owned()).collect();
    order(&blocks.iter().collect::<Vec<_>>(), &Visible { valid, appended: None })
}

#[test]
fn incomplete_blocks_of_a_dead_writer_are_ignored() {
    let (old, new) = ("20250101000000001", "20250101000000002");
    let cut = |header: &[(i32, &str)]| Block { cut: true, ..block(BlockKind::Corrupt, header) };
    let good = block(BlockKind::HFile, &[(0, old)]);
    assert_eq!(ordered(&[good.clone(), cut(&[])], &[old]), [0], "no instant");
    assert_eq!(ordered(&[good.clone(), cut(&[(0, new)])], &[old]), [0], "not completed");
    assert_eq!(ordered(&[good.clone(), cut(&[(0, new)])], &[old, new]), [0, 1], "completed: damage");
    assert_eq!(ordered(&[good, block(BlockKind::Corrupt, &[])], &[old]), [0, 1], "overwritten: damage");
}

#[test]
fn a_rollback_removes_its_instant_and_incomplete_blocks() {
    let blocks = [
        block(BlockKind::HFile, &[(0, "1")]),
        block(BlockKind::HFile, &[(0, "2")]),
        block(BlockKind::HFile, &[(0, "3")]),
        block(BlockKind::Corrupt, &[]),
        block(BlockKind::Command, &[(0, "4"), (1, "2")]),
        block(BlockKind::Delete, &[(0, "2")]),
        block(BlockKind::Corrupt, &[]),
    ];
    assert_eq!(ordered(&blocks, &["1", "2", "3"]), [0, 2, 5, 6]);
    assert_eq!(ordered(&blocks, &["1", "2"]), [0, 5, 6], "3 is pending");
}

#[test]
fn a_log_compaction_takes_the_position_of_its_last_block() {
    let blocks = [
        block(BlockKind::HFile, &[(0, "1")]),
        block(BlockKind::HFile, &[(0, "2")]),
        block(BlockKind::HFile, &[(0, "4")]),
        block(BlockKind::HFile, &[(0, "3"), (4, "1,2")]),
        block(BlockKind::HFile, &[(0, "5")]),
    ];
    assert_eq!(ordered(&blocks, &["1", "2", "3", "4", "5"]), [3, 2, 4]);
    // The compaction is not committed, so the original blocks are valid.
    assert_eq!(ordered(&blocks, &["1", "2", "4", "5"]), [0, 1, 2, 4]);
}
