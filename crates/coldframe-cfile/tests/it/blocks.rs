//! The blocks that Kudu's servers wrote, one by one: columns, deltas, composite keys, bloom filters.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use bytes::Bytes;
use coldframe_cfile::CFileTable;
use coldframe_cfile::open::Purpose;
use coldframe_cfile::options::Options;
use coldframe_cfile::prune::key;
use coldframe_core::{OnError, OpenOptions, TableFile};
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::mutate::shaken;
use coldframe_testing::{Dice, fixture, rows};

/// All files below a folder.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

/// The CFiles of the test directories in which each block is a file.
fn blocks() -> Vec<(PathBuf, CFileTable)> {
    let mut files = Vec::new();
    walk(&fixture::data().join("kudu/files/file_blocks"), &mut files);
    files.sort();
    let mut tables = Vec::new();
    for path in files {
        let bytes = Bytes::from(fs::read(&path).unwrap());
        if bytes.starts_with(b"kuducfl2") {
            let options = Options::new(&OpenOptions::default()).unwrap();
            tables.push((path, CFileTable::open(Arc::new(bytes), options).unwrap()));
        }
    }
    tables
}

#[test]
fn every_block_is_read_and_its_layout_covers_it() {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, table) in blocks() {
        *kinds.entry(table.kind().name()).or_default() += 1;
        let outcome = rows::read(&table, OnError::Raise).unwrap();
        assert!(outcome.error.is_none(), "{}: {:?}", path.display(), outcome.error);
        assert_eq!(Some(outcome.batch.num_rows() as u64), table.row_count(), "{}", path.display());
        assert_tiled(&table.inspect().unwrap());
        assert_eq!(table.verify_structure().unwrap(), [], "{}", path.display());
        if table.kind() == Purpose::Delta {
            let rows = outcome.batch.column(0).as_primitive::<UInt64Type>();
            assert!(rows.values().is_sorted(), "{}", path.display());
        }
    }
    assert_eq!(kinds.keys().copied().collect::<Vec<_>>(), ["bloom", "column", "delta", "index"]);
}

#[test]
fn bloom_filters_have_the_keys_of_their_rowsets() {
    let all = blocks();
    let mut keys: Vec<Vec<Vec<u8>>> = Vec::new();
    for (_, table) in &all {
        let footer = table.file().footer();
        if footer.value.is_none() || !matches!(table.kind(), Purpose::Column | Purpose::Index) {
            continue;
        }
        let values = rows::read(table, OnError::Raise).unwrap().batch.column(0).clone();
        keys.push((0..values.len()).filter_map(|i| key::encode(footer.data_type, &values, i)).collect());
    }
    let blooms: Vec<&CFileTable> =
        all.iter().map(|(_, t)| t).filter(|t| t.kind() == Purpose::Bloom).collect();
    assert!(!blooms.is_empty() && keys.iter().all(|k| !k.is_empty()));
    let mut pairs = 0;
    for rowset in &keys {
        let contains_all = |bloom: &&&CFileTable| rowset.iter().all(|key| bloom.might_contain(key).unwrap());
        assert!(blooms.iter().any(|b| contains_all(&b)), "no filter has the keys of a rowset");
        pairs += blooms.iter().filter(contains_all).count();
    }
    // Filters also exclude keys: the keys of a rowset do not pass the filters of all other rowsets.
    assert!(pairs < keys.len() * blooms.len(), "{pairs}");
    let column = all.iter().map(|(_, t)| t).find(|t| t.kind() == Purpose::Column).unwrap();
    assert!(column.might_contain(b"x").is_err());
}

#[test]
fn the_value_index_finds_keys() {
    let mut looked_up = 0;
    for (path, table) in blocks() {
        if table.kind() != Purpose::Column || table.file().footer().value.is_none() {
            continue;
        }
        let values = rows::read(&table, OnError::Raise).unwrap().batch.column(0).clone();
        for i in 0..values.len() {
            let hit = table.lookup(&values.slice(i, 1)).unwrap();
            assert_eq!(hit.num_rows(), 1, "{}", path.display());
            assert_eq!(hit.column(1).to_data(), values.slice(i, 1).to_data());
            looked_up += 1;
        }
    }
    assert!(looked_up > 0);
}

#[test]
fn mutants_of_kudus_blocks_never_panic() {
    let mut dice = Dice::new(11);
    for (path, table) in blocks() {
        let bytes = fs::read(&path).unwrap();
        for skip_checksums in [false, true, true, true] {
            let hurt = shaken(&bytes, &mut dice);
            let given = OpenOptions { skip_checksums, ..OpenOptions::default() };
            let Ok(mutant) = CFileTable::open(Arc::new(hurt), Options::new(&given).unwrap()) else {
                continue;
            };
            let name = format!("{} ({})", path.display(), table.kind().name());
            drop(rows::read(&mutant, OnError::Raise));
            for on_error in [OnError::Skip, OnError::Null] {
                let outcome = rows::read(&mutant, on_error).unwrap();
                assert!(outcome.error.is_none(), "{name}: {:?}", outcome.error);
            }
            assert_tiled(&mutant.inspect().unwrap());
            mutant.verify_structure().unwrap();
            mutant.metadata().unwrap();
        }
    }
}
