//! Log files, assembled block by block as Hudi's writer does: complete, cut off and damaged.

use super::*;

/// A block as Hudi's writer frames it.
fn block(kind: i32, header: &[(i32, &str)], content: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(1_i32.to_be_bytes());
    body.extend(kind.to_be_bytes());
    body.extend(i32::try_from(header.len()).unwrap().to_be_bytes());
    for (key, text) in header {
        body.extend(key.to_be_bytes());
        body.extend(i32::try_from(text.len()).unwrap().to_be_bytes());
        body.extend(text.as_bytes());
    }
    body.extend(i64::try_from(content.len()).unwrap().to_be_bytes());
    body.extend(content);
    body.extend(0_i32.to_be_bytes());
    let size = i64::try_from(body.len() + 8).unwrap();
    let mut block = MAGIC.to_vec();
    block.extend(size.to_be_bytes());
    block.extend(body);
    block.extend((size + 6).to_be_bytes());
    block
}

fn kinds(log: &[u8]) -> Vec<(BlockKind, Range<u64>)> {
    let all = blocks(log, &Limits::default());
    all.into_iter().map(|b| (b.kind, b.bytes)).collect()
}

#[test]
fn blocks_and_their_headers_are_read() {
    let mut log = block(4, &[(0, "20250101000000001"), (2, "{}")], b"hfile");
    let second = log.len();
    log.extend(block(0, &[(0, "20250101000000003"), (1, "20250101000000001"), (3, "0")], &[0; 4]));
    let all = blocks(&log, &Limits::default());
    let [data, command] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(
        (data.kind, data.instant(), data.schema()),
        (BlockKind::HFile, Some("20250101000000001"), Some("{}"))
    );
    let content = usize::try_from(data.content.start).unwrap()..usize::try_from(data.content.end).unwrap();
    assert_eq!(&log[content], b"hfile");
    assert_eq!((command.kind, command.target()), (BlockKind::Command, Some("20250101000000001")));
    assert_eq!(command.bytes, second as u64..log.len() as u64);
}

#[test]
fn an_incomplete_block_has_its_instant_if_the_instant_was_written() {
    let whole = block(4, &[(0, "20250101000000001"), (2, "{}")], b"hfile");
    let mut log = whole.clone();
    log.extend(&whole);
    for end in whole.len() + 1..log.len() {
        let all = blocks(&log[..end], &Limits::default());
        let [first, last] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(
            (first.kind, last.kind, last.cut),
            (BlockKind::HFile, BlockKind::Corrupt, true),
            "cut at {end}"
        );
        let header_end = whole.len() + 26 + 8 + 17 + 8 + 2;
        assert_eq!(last.instant().is_some(), end >= header_end, "cut at {end}");
        // A block that was overwritten in the middle does not count as cut off.
        let mut inside = whole.clone();
        inside.extend(b"other bytes");
        inside.extend(&whole);
        assert!(blocks(&inside, &Limits::default()).iter().all(|b| !b.cut));
    }
}

#[test]
fn the_keys_of_a_delete_block_are_read() {
    // Two keys: the first with the ordering value int 0, the second without.
    let list = b"\x04\x02\x04k1\x02\x02p\x04\x00\x02\x04k2\x00\x00\x00";
    let mut content = 3_i32.to_be_bytes().to_vec();
    content.extend(i32::try_from(list.len()).unwrap().to_be_bytes());
    content.extend(list);
    let keys = deleted_keys(&content, 0, &Limits::default()).unwrap();
    assert_eq!(keys, [b"k1".to_vec(), b"k2".to_vec()]);
    for end in 0..content.len() {
        assert!(deleted_keys(&content[..end], 0, &Limits::default()).is_err(), "cut at {end}");
    }
    content[3] = 2;
    let e = deleted_keys(&content, 0, &Limits::default()).unwrap_err();
    assert!(matches!(e.kind(), coldframe_core::ErrorKind::Unsupported(_)), "{e}");
}

#[test]
fn an_incomplete_block_ends_at_the_next_magic() {
    let whole = block(4, &[(0, "20250101000000001")], b"content of a block");
    let n = whole.len();
    for cut in 1..n {
        let mut log = whole.clone();
        log.extend(&whole[..cut]);
        let expected = [(BlockKind::HFile, 0..n as u64), (BlockKind::Corrupt, n as u64..(n + cut) as u64)];
        assert_eq!(kinds(&log), expected, "cut at {cut}");
        log.extend(&whole);
        let all = kinds(&log);
        assert_eq!(
            all.last(),
            Some(&(BlockKind::HFile, (n + cut) as u64..(2 * n + cut) as u64)),
            "cut at {cut}"
        );
    }
}

#[test]
fn no_flip_of_a_byte_panics_or_hangs() {
    let mut log = block(4, &[(0, "20250101000000001"), (2, "{}")], b"hfile");
    log.extend(block(1, &[(0, "20250101000000001")], b"\0\0\0\x03\0\0\0\x01\0"));
    for at in 0..log.len() {
        for bit in 0..8 {
            let mut flipped = log.clone();
            flipped[at] ^= 1 << bit;
            let end = blocks(&flipped, &Limits::default()).iter().fold(0, |at, b| {
                assert_eq!(b.bytes.start, at);
                b.bytes.end
            });
            assert_eq!(end, log.len() as u64);
        }
    }
}

#[test]
fn a_block_of_another_version_is_unknown() {
    let mut log = block(4, &[(0, "20250101000000001")], b"hfile");
    let second = log.len();
    log.extend(block(4, &[(0, "20250101000000003")], b"hfile"));
    log[second + HEAD + 3] = 2;
    let all = blocks(&log, &Limits::default());
    let [first, unknown] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((first.kind, unknown.kind), (BlockKind::HFile, BlockKind::Unknown));
    assert_eq!((unknown.bytes.clone(), unknown.instant()), (second as u64..log.len() as u64, None));
    assert_eq!(unknown.reason, "version 2 of Hudi's log format");
}
