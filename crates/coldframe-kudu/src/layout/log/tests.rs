//! Segments of every layout: intact, cut off and damaged.

use prost::Message;

use super::*;
use crate::layout::operations::{Commit, EntryBatch, LogEntry, OpId};

/// A record with one commit entry that has this index.
fn batch(index: i64) -> Vec<u8> {
    let commit = Commit { op_type: 3, id: Some(OpId { term: 1, index }), result: None };
    EntryBatch { entries: vec![LogEntry { replicate: None, commit: Some(commit) }] }.encode_to_vec()
}

fn segment(codec: i32, old: bool, closed: bool, indexes: &[i64]) -> Vec<u8> {
    let header = SegmentHeader {
        sequence: 1,
        codec: Some(codec),
        old_version: old.then_some(1),
        ..SegmentHeader::default()
    };
    let message = header.encode_to_vec();
    let mut out = [MAGIC, &u32::try_from(message.len()).unwrap().to_le_bytes(), &message].concat();
    for index in indexes {
        let contents = batch(*index);
        let stored = match codec {
            3 => {
                let mut stored = Vec::new();
                let mut compressor = coldframe_encoding::codec::Compressor::new();
                compressor.compress(Algorithm::Lz4, None, &contents, &mut stored).unwrap();
                stored
            }
            _ => contents.clone(),
        };
        let word = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
        let mut head = word(stored.len()).to_vec();
        if !old {
            head.extend(word(contents.len()));
        }
        head.extend(crc32c(&stored).to_le_bytes());
        head.extend(crc32c(&head.clone()).to_le_bytes());
        out.extend(head);
        out.extend(stored);
    }
    if closed {
        let footer = SegmentFooter { entries: Some(i64::try_from(indexes.len()).unwrap()) }.encode_to_vec();
        out.extend(&footer);
        out.extend(CLOSED);
        out.extend(u32::try_from(footer.len()).unwrap().to_le_bytes());
    }
    out
}

/// Reads a segment: returns the indexes of the entries, and the number of broken ranges.
fn read(bytes: &[u8]) -> Result<(Vec<i64>, usize)> {
    let Some(segment) = Segment::open(Bytes::copy_from_slice(bytes), true, &Limits::default())? else {
        return Ok((Vec::new(), 0));
    };
    let (mut indexes, mut broken) = (Vec::new(), 0);
    let mut records = segment.records();
    while let Some(record) = records.next_record()? {
        match record {
            Record::Whole(contents, _) => {
                let batch = EntryBatch::decode(contents).unwrap();
                indexes.extend(batch.entries.iter().filter_map(|e| e.commit.as_ref()?.id).map(|id| id.index));
            }
            Record::Broken(bytes, reason) => {
                assert!(bytes.start < bytes.end && !reason.is_empty());
                broken += 1;
            }
        }
    }
    Ok((indexes, broken))
}

const INDEXES: [i64; 4] = [1000, 2000, 3000, 4000];

#[test]
fn records_of_both_layouts_are_read() {
    for (codec, old) in [(1, false), (3, false), (1, true)] {
        for closed in [false, true] {
            let whole = segment(codec, old, closed, &INDEXES);
            assert_eq!(read(&whole).unwrap(), (INDEXES.to_vec(), 0), "{codec} {old} {closed}");
        }
        let padded = [segment(codec, old, false, &INDEXES), vec![0; 5000]].concat();
        assert_eq!(read(&padded).unwrap(), (INDEXES.to_vec(), 0));
    }
}

#[test]
fn a_write_that_was_cut_short_ends_an_open_segment() {
    for codec in [1, 3] {
        let whole = segment(codec, false, false, &INDEXES);
        let three = segment(codec, false, false, &INDEXES[..3]).len();
        for cut in three..whole.len() {
            assert_eq!(read(&whole[..cut]).unwrap(), (INDEXES[..3].to_vec(), 0), "{cut}");
            // Some pages of the record were written into preallocated space.
            let mut padded = whole[..cut].to_vec();
            padded.resize(whole.len() + 100, 0);
            let (indexes, broken) = read(&padded).unwrap();
            assert!(indexes == INDEXES[..3] && (broken == 0 || cut + 4 > whole.len()), "{cut} {broken}");
        }
        // In a closed segment such a record is damage.
        let closed = segment(codec, false, true, &INDEXES);
        let mut hurt = closed[..three].to_vec();
        hurt.resize(whole.len(), 0);
        hurt.extend(&closed[whole.len()..]);
        assert_eq!(read(&hurt).unwrap(), (INDEXES[..3].to_vec(), 1));
    }
}

#[test]
fn a_flipped_byte_costs_only_its_record() {
    for (codec, closed) in [(1, false), (3, false), (1, true)] {
        let whole = segment(codec, false, closed, &INDEXES);
        let end = segment(codec, false, false, &INDEXES).len();
        let start = segment(codec, false, false, &[]).len();
        for at in start..end {
            let mut hurt = whole.clone();
            hurt[at] ^= 0x41;
            let (indexes, broken) = read(&hurt).unwrap();
            assert_eq!((indexes.len(), broken), (3, 1), "{codec} {closed} byte {at}");
        }
        for at in 0..start {
            let mut hurt = whole.clone();
            hurt[at] ^= 0x41;
            drop(read(&hurt));
        }
    }
}

#[test]
fn files_that_were_never_written_to_are_no_segments() {
    for bytes in [&[][..], &[0; 12], &[0; 4096]] {
        assert!(Segment::open(Bytes::copy_from_slice(bytes), true, &Limits::default()).unwrap().is_none());
    }
    assert!(read(b"kuduLOGF\0\0\0\0").unwrap_err().is_damage());
    assert!(read(&[0, 1]).unwrap_err().is_damage());
}
