//! Accidental damage to real files: truncation and a flipped bit at every byte, and random changes. Reads
//! give an error or the correct cells; salvaged cells are some of the written cells, in order; `inspect`
//! still assigns each byte to one leaf.

use std::collections::BTreeSet;

use bytes::Bytes;
use coldframe_core::{Error, ErrorKind, Node, OnError, OpenOptions, TableFile};
use coldframe_hfile::HFile;
use coldframe_testing::fixture::{distinct, files, source};
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::mutate::{flipped, shaken, spread};
use coldframe_testing::{Dice, rows};

fn fixtures() -> Vec<(String, Bytes)> {
    let fixtures: Vec<_> = distinct(files("hfile")).iter().map(|f| (f.name(), f.bytes())).collect();
    assert!(fixtures.len() > 8);
    fixtures
}

/// HBase's files whose blocks have checksums.
fn with_checksums() -> impl Iterator<Item = (String, Bytes)> {
    let has = |bytes: &Bytes| {
        let layout = format!("{:?}", open(bytes.clone()).unwrap().inspect().unwrap());
        !layout.contains("Str(\"NULL\")")
    };
    fixtures().into_iter().filter(move |(name, bytes)| name.contains("cells") && has(bytes))
}

/// Whether a scan that skips damage may end with this error: an unsupported encoding is no damage, even if a flip
/// caused it.
fn may_end(error: Option<&Error>) -> bool {
    error.is_none_or(|e| matches!(e.kind(), ErrorKind::Unsupported(_)))
}

fn fixture(name: &str) -> Bytes {
    fixtures().into_iter().find(|(n, _)| n.ends_with(name)).unwrap().1
}

fn open(bytes: Bytes) -> coldframe_core::Result<HFile> {
    HFile::open(&source(bytes), &OpenOptions::default())
}

fn truth(bytes: &Bytes) -> Vec<String> {
    rows::as_text(&rows::read(&open(bytes.clone()).unwrap(), OnError::Raise).unwrap().batch)
}

/// Reads with `OnError::Raise`; `None` if the read ends with an error.
fn plain(bytes: Bytes) -> Option<Vec<String>> {
    let outcome = rows::read(&open(bytes).ok()?, OnError::Raise).ok()?;
    outcome.error.is_none().then(|| rows::as_text(&outcome.batch))
}

/// Reads with `OnError::Skip`, and checks that the result is cells of `truth` in order, with a damage record
/// if some are missing.
fn salvage(bytes: Bytes, truth: &[String]) -> Option<usize> {
    let file = open(bytes).ok()?;
    let outcome = rows::read(&file, OnError::Skip).unwrap();
    assert!(may_end(outcome.error.as_ref()), "{:?}", outcome.error);
    let got = rows::as_text(&outcome.batch);
    assert_eq!(rows::in_order(&got, truth), got.len(), "cells that were never written");
    assert!(got.len() == truth.len() || !outcome.damage.is_empty(), "cells are gone without a record");
    assert_tiled(&file.inspect().unwrap());
    file.verify_structure().unwrap();
    Some(got.len())
}

/// The data blocks of a layout.
fn data_blocks(node: &Node, blocks: &mut Vec<std::ops::Range<u64>>) {
    if node.name.ends_with("data block") {
        blocks.push(node.bytes.clone());
    }
    node.children.iter().for_each(|child| data_blocks(child, blocks));
}

#[test]
fn a_truncated_file_is_an_error_and_its_whole_blocks_are_salvaged() {
    for name in ["cells_none.hfile", "cells_deep_index.hfile", "pairs_gzip.hfile"] {
        let whole = fixture(name);
        let cells = truth(&whole);
        let mut blocks = Vec::new();
        data_blocks(&open(whole.clone()).unwrap().inspect().unwrap(), &mut blocks);
        let mut last = 0;
        let salvaged: BTreeSet<usize> = spread(whole.len(), 300).collect();
        for len in 0..whole.len() {
            let cut = whole.slice(..len);
            assert_eq!(plain(cut.clone()), None, "{name} cut to {len} bytes");
            if !salvaged.contains(&len) {
                continue;
            }
            let complete = blocks.iter().filter(|b| b.end <= len as u64).count();
            let saved = salvage(cut, &cells).unwrap_or(0);
            assert!(saved >= last && (saved > 0 || complete == 0), "{name} cut to {len}: {saved} cells");
            last = saved;
        }
        assert_eq!(last, cells.len(), "{name}: without the last byte of the trailer all cells are saved");
    }
}

#[test]
fn every_flip_in_a_data_block_is_reported() {
    for (name, whole) in with_checksums() {
        let cells = truth(&whole);
        let mut blocks = Vec::new();
        data_blocks(&open(whole.clone()).unwrap().inspect().unwrap(), &mut blocks);
        let places: Vec<u64> = blocks.into_iter().flatten().collect();
        for i in spread(places.len(), 900) {
            let Some(at) = places.get(i).and_then(|at| usize::try_from(*at).ok()) else { continue };
            let mutant = flipped(&whole, at, 1 << (at % 8));
            // The flip may change the checksum type to "none". In that case the cells must still be correct.
            let got = plain(mutant.clone());
            assert!(got.is_none() || got.as_ref() == Some(&cells), "{name}: byte {at}");
            assert!(
                got.is_none() || matches!(whole.get(at), Some(1 | 2)),
                "{name}: byte {at} is not reported"
            );
            if i % 8 == 0 {
                salvage(mutant, &cells).unwrap();
            }
        }
    }
}

#[test]
fn a_flip_is_an_error_or_harmless() {
    for (name, whole) in with_checksums() {
        let cells = truth(&whole);
        for at in spread(whole.len(), 400) {
            let mutant = flipped(&whole, at, 0x10);
            let got = plain(mutant.clone());
            // Trailers have no checksum: if damage changes the comparator to Hudi's, the file is opened as
            // one of Hudi's.
            let alike = got.as_ref().is_none_or(|got| got.len() == cells.len() || got.is_empty());
            assert!(alike || at + 4096 >= whole.len(), "{name}: byte {at}");
            if at + 4096 < whole.len() {
                assert!(got.is_none_or(|got| got == cells), "{name}: byte {at}");
                salvage(mutant, &cells);
            }
        }
    }
}

#[test]
fn random_damage_gives_valid_arrow_or_an_error() {
    let mut dice = Dice::new(4);
    for (_, whole) in fixtures() {
        for _ in 0..120 {
            let Ok(file) = open(shaken(&whole, &mut dice)) else { continue };
            let _ = rows::read(&file, OnError::Raise);
            let skipped = rows::read(&file, OnError::Skip).unwrap();
            assert!(may_end(skipped.error.as_ref()), "{:?}", skipped.error);
            let _ = file.get(b"row-00010");
            let _ = file.get_many(&[b"a".to_vec(), b"row-00100".to_vec()]);
            let _ = file.might_contain(b"row", Some(b"q"));
            let _ = file.metadata().unwrap();
            let _ = file.statistics().unwrap();
            assert_tiled(&file.inspect().unwrap());
        }
    }
}
