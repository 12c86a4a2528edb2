//! The laws of damage, for each file of a metadata table: losses are reported, and no record is returned in an older or
//! a deleted state.

use crate::support;

use std::sync::Arc;

use coldframe_core::{Error, ErrorKind, Format, OnError, OpenOptions, Source, TableFile};
use coldframe_hudi::HudiFormat;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::laws::{Subject, assert_tolerant};
use coldframe_testing::rows;

/// The instant of the newest files: the table's latest state consists of these files.
const NEWEST: &str = "20261121143920945";

/// Checks the laws: damages each file for which `of` returns true, in `damages` ways.
fn obey(of: impl Fn(&str) -> bool, damages: usize, limit: impl Fn(Subject) -> Subject) {
    let (_dir, table) = support::unpack();
    let folder = MemoryFolder::load(&table.join(".hoodie/metadata"));
    let is_new = |path: &str| path.rsplit('_').any(|part| part[..part.len().min(17)] >= *NEWEST);
    let paths: Vec<String> = folder.files.keys().filter(|p| of(p) && is_new(p)).cloned().collect();
    assert!(paths.len() > 3, "{paths:?}");
    for path in paths {
        let (folder, bytes, at) = (folder.clone(), folder.files[&path].clone(), path.clone());
        let open = move |source: Source| {
            let damaged = source.bytes()?;
            // A writer that dies at once leaves an empty file, which Hudi ignores, too.
            if damaged.is_empty() {
                return Err(Error::corrupt("expected a file of some bytes, found none"));
            }
            let bytes = damaged.read(0..damaged.len())?;
            HudiFormat.open(&folder.with(&at, bytes).source(), &OpenOptions::default())
        };
        limit(Subject::new(path, bytes, open).part_of_table().damages(damages)).obey();
    }
}

#[test]
fn the_laws_hold_for_base_files() {
    obey(|path| path.ends_with(".hfile"), 15, |subject| subject);
}

#[test]
fn the_laws_hold_for_logs() {
    obey(|path| path.contains(".log."), 15, |subject| subject);
}

/// An unsupported block in one log does not affect the other logs.
#[test]
fn a_log_block_of_another_version_loses_only_its_keys() {
    let (_dir, table) = support::unpack();
    let folder = MemoryFolder::load(&table.join(".hoodie/metadata"));
    let all = rows::read(open(&folder).as_ref(), OnError::Raise).unwrap().batch.num_rows();
    let mut refused = 0;
    for (path, log) in folder.files.iter().filter(|(path, log)| path.contains(".log.") && !log.is_empty()) {
        let mut log = log.to_vec();
        assert_eq!(&log[14..18], [0, 0, 0, 1], "{path}");
        log[17] = 2;
        let table = open(&folder.with(path, log));
        assert_tolerant(table.as_ref(), None, &[1 << 11]);
        let plain = rows::read(table.as_ref(), OnError::Raise).unwrap();
        let Some(e) = plain.error else { continue };
        assert!(matches!(e.kind(), ErrorKind::Unsupported(_)) && e.to_string().contains("version 2"), "{e}");
        let left = rows::read(table.as_ref(), OnError::Skip).unwrap();
        assert!(left.damage[0].reason.contains("version 2"), "{:?}", left.damage);
        assert!((1..all).contains(&left.batch.num_rows()), "{path}: {} of {all}", left.batch.num_rows());
        refused += 1;
    }
    assert!(refused > 3, "{refused}");
}

fn open(folder: &MemoryFolder) -> Arc<dyn TableFile> {
    HudiFormat.open(&folder.source(), &OpenOptions::default()).unwrap()
}
