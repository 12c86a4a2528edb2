//! A directory of the `logr` block manager whose server was killed: the test data has what Kudu reads when it
//! is started on it. `tests/python/test_fixtures.py` checks every value.

use coldframe_core::{OnError, OpenOptions};
use coldframe_testing::fixture::{self, Fixture};
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::mutate::{Dice, flipped, shaken, spread};
use coldframe_testing::rows::{as_text, read, sorted};

use super::folder::{open, table};

const DATABASE: &str = "data/rdb/";

fn fixtures() -> Vec<Fixture> {
    fixture::manifest(&fixture::data().join("kudu_logr/files/MANIFEST.json"))
}

fn whole() -> MemoryFolder {
    MemoryFolder::load(&fixture::data().join("kudu_logr/files/killed"))
}

/// Files of the database, by the end of their names.
fn files(folder: &MemoryFolder, ending: &str) -> Vec<String> {
    folder.files.keys().filter(|p| p.starts_with(DATABASE) && p.ends_with(ending)).cloned().collect()
}

#[test]
fn tables_and_logs_of_the_database_locate_the_blocks() {
    let folder = whole();
    assert!(
        files(&folder, ".sst").iter().chain(&files(&folder, ".log")).all(|p| !folder.files[p].is_empty())
    );
    for fixture in fixtures() {
        let table = open(&folder, &fixture.options()).unwrap();
        assert_eq!(sorted(table.as_ref()).len() as u64, fixture.number("rows"), "{:?}", fixture.entry);
        if fixture.options().extra.contains_key("snapshot") {
            continue;
        }
        assert_tiled(&table.inspect().unwrap());
        let report = coldframe_core::scan::verify(table.as_ref(), |_| Ok(())).unwrap();
        assert_eq!(report.damage, []);
    }
    // The block manager is recognised even without the file that names it.
    let mut copy = folder.clone();
    copy.files.remove("data/block_manager_instance").unwrap();
    let options = table("numbers");
    assert_eq!(
        sorted(open(&copy, &options).unwrap().as_ref()),
        sorted(open(&folder, &options).unwrap().as_ref())
    );
}

/// Checks that the returned rows are correct, that missing rows are reported, and that the read finishes.
fn survives(folder: &MemoryFolder, options: &OpenOptions, truth: &[String], what: &str) -> usize {
    let table = open(folder, options).unwrap();
    let mut least = truth.len();
    for on_error in [OnError::Raise, OnError::Skip] {
        let Ok(outcome) = read(table.as_ref(), on_error) else {
            assert_eq!(on_error, OnError::Raise, "{what}");
            continue;
        };
        let mut rows = as_text(&outcome.batch);
        rows.sort();
        assert!(rows.iter().all(|row| truth.binary_search(row).is_ok()), "{what} under {on_error:?}");
        assert!(rows.windows(2).all(|two| two[0] != two[1]), "{what}: a row twice");
        let reported = !outcome.damage.is_empty() || outcome.error.is_some();
        assert!(rows.len() == truth.len() || reported, "{what}: {} of {}", rows.len(), truth.len());
        least = least.min(rows.len());
    }
    drop(table.inspect().unwrap());
    least
}

/// Whether `verify` reports damage.
fn verify_reports(folder: &MemoryFolder, options: &OpenOptions) -> bool {
    let table = open(folder, options).unwrap();
    !coldframe_core::scan::verify(table.as_ref(), |_| Ok(())).unwrap().damage.is_empty()
}

#[test]
fn a_flipped_byte_or_a_cut_anywhere_in_the_database_is_reported() {
    let (folder, options) = (whole(), table("numbers"));
    let truth = sorted(open(&folder, &options).unwrap().as_ref());
    for path in files(&folder, "") {
        let bytes = &folder.files[&path];
        let mut costs = 0;
        for at in spread(bytes.len(), 60) {
            let hurt = folder.with(&path, flipped(bytes, at, 0x41));
            let left = survives(&hurt, &options, &truth, &format!("{path} byte {at}"));
            let cut = folder.with(&path, bytes.slice(..at));
            costs += usize::from(left < truth.len());
            survives(&cut, &options, &truth, &format!("{path} cut at {at}"));
        }
        // Checksums cover every byte of a log and of an edit, and every byte of a table except the zeros in its footer.
        let at = bytes.len() / 3;
        assert!(verify_reports(&folder.with(&path, flipped(bytes, at, 1)), &options), "{path} byte {at}");
        // The manifest states nothing that the folder does not show, so damage to it costs no rows.
        assert!(costs == 0 || !path.contains("MANIFEST") && !path.contains("CURRENT"), "{path}: {costs}");
    }
}

#[test]
fn missing_files_are_reported() {
    let (folder, options) = (whole(), table("numbers"));
    let truth = sorted(open(&folder, &options).unwrap().as_ref());
    for path in files(&folder, "") {
        let mut hurt = folder.clone();
        hurt.files.remove(&path);
        survives(&hurt, &options, &truth, &path);
        assert!(verify_reports(&hurt, &options), "{path}");
    }
    let mut hurt = folder.clone();
    hurt.files.retain(|path, _| !path.starts_with(DATABASE));
    survives(&hurt, &options, &truth, "no database");
    let e = read(open(&hurt, &options).unwrap().as_ref(), OnError::Raise);
    let e = e.map_or_else(|e| e, |outcome| outcome.error.unwrap());
    assert!(e.is_damage() && e.to_string().contains("rdb"), "{e}");
}

#[test]
fn shaken_databases_without_checksums_cause_no_panic() {
    let (folder, mut options) = (whole(), table("numbers"));
    options.skip_checksums = true;
    let mut dice = Dice::new(11);
    for path in files(&folder, "") {
        for _ in 0..40 {
            let hurt = folder.with(&path, shaken(&folder.files[&path], &mut dice));
            let Ok(table) = open(&hurt, &options) else { continue };
            drop(read(table.as_ref(), OnError::Raise));
            for on_error in [OnError::Skip, OnError::Null] {
                let ended = read(table.as_ref(), on_error).map_or_else(Some, |outcome| outcome.error);
                // A damaged byte may request an unsupported feature, such as another compression; but an
                // error for damage never ends a read under `skip`.
                assert!(ended.as_ref().is_none_or(|e| !e.is_damage()), "{path}: {ended:?}");
            }
            drop(table.inspect());
        }
    }
}
