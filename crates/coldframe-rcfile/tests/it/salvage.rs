//! Tests damaged files: `OnError::Skip` yields the remaining rows and reports the losses.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests"
)]

use std::collections::BTreeMap;

use coldframe_core::{Damage, OnError, Result, TableFile};
use coldframe_rcfile::RcFile;
use coldframe_testing::fixture::{self, Fixture, source};
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::rows::{self, Outcome, as_text, in_order};

fn open(case: &Fixture) -> Result<RcFile> {
    RcFile::open(&source(case.bytes()), &case.options())
}

fn truth(base: &Fixture) -> Vec<String> {
    let outcome = rows::read(&open(base).unwrap(), OnError::Raise).unwrap();
    assert!(outcome.error.is_none(), "{}: {:?}", base.name(), outcome.error);
    as_text(&outcome.batch)
}

/// Without skip, a damaged file gives an error or correct values. Cells without a checksum (no codec, snappy, lz4,
/// zstd as Hadoop writes it) may be wrong undetected, but only in the damaged groups.
fn assert_raises_or_right(entry: &Entry, expected: &[String]) {
    let Ok(file) = open(&entry.case) else { return };
    let raised = rows::read(&file, OnError::Raise).unwrap();
    if raised.error.is_some() {
        return;
    }
    let right = in_order(&as_text(&raised.batch), expected);
    let least = if entry.is_checked() { raised.batch.num_rows() } else { entry.undamaged };
    assert!(right >= least, "{}: {right} right rows, {least} wanted, and no error", entry.case.name());
}

fn salvaged(case: &Fixture) -> Outcome {
    let file = open(case).unwrap();
    assert_tiled(&file.inspect().unwrap());
    let outcome = rows::read(&file, OnError::Skip).unwrap();
    assert!(outcome.error.is_none(), "{}: {:?}", case.name(), outcome.error);
    outcome
}

#[test]
fn skip_yields_the_remaining_rows_of_damaged_fixtures() {
    let all = fixture::manifest(&fixture::data().join("rcfile/damaged/MANIFEST.json"));
    assert_eq!(all.len(), 3);
    for case in all {
        let base =
            Fixture { path: case.path.with_file_name(case.entry["base"].as_str().unwrap()), ..case.clone() };
        let truth = truth(&base);
        let outcome = salvaged(&case);
        let mut want = Vec::new();
        for range in case.entry["survive"].as_array().unwrap() {
            let [first, last] = [0, 1].map(|i| usize::try_from(range[i].as_u64().unwrap()).unwrap());
            want.extend_from_slice(&truth[first..last]);
        }
        assert_eq!(as_text(&outcome.batch), want, "{}", case.name());
        assert!(want.len() as u64 >= case.number("hive_rows"));
        assert_eq!(outcome.damage.len(), 1, "{}: {:?}", case.name(), outcome.damage);
        let place = case.entry["damage"]["offset"].as_u64().unwrap();
        let damage = &outcome.damage[0];
        assert!(damage.bytes.contains(&place) || place == case.bytes().len() as u64, "{damage:?} {place}");
        let lost = truth.len() - want.len();
        assert!(damage.rows_lost.is_none_or(|n| n == lost as u64), "{damage:?}: {lost} lost");
        let raised = rows::read(&open(&case).unwrap(), OnError::Raise).unwrap();
        let error = raised.error.unwrap();
        assert!(error.is_damage() && error.offset().is_some(), "{}: {error}", case.name());
        assert_eq!(as_text(&raised.batch), truth[..raised.batch.num_rows()]);
    }
}

/// A damaged file of the larger corpus.
struct Entry {
    case: Fixture,
    base: String,
    /// The rows in undamaged groups.
    undamaged: usize,
    all: usize,
}

impl Entry {
    /// Whether the codec has a checksum.
    fn is_checked(&self) -> bool {
        ["default", "deflate", "gzip", "bzip2"].iter().any(|codec| self.base.contains(codec))
    }
}

fn entries(folder: &std::path::Path, bases: &BTreeMap<String, Fixture>) -> Vec<Entry> {
    let manifest = fixture::json(&folder.join("corrupt.json"));
    let files = manifest["files"].as_array().unwrap();
    files
        .iter()
        .map(|entry| {
            let number = |value: &serde_json::Value| usize::try_from(value.as_u64().unwrap_or(0)).unwrap();
            let base = entry["base"].as_str().unwrap().to_owned();
            let undamaged = number(&entry["rows_in_undamaged_groups"]);
            let mut described = bases[&base].entry.clone();
            described["damage"] = entry["damage"].clone();
            Entry {
                case: Fixture { path: folder.join(entry["file"].as_str().unwrap()), entry: described },
                base,
                undamaged,
                all: number(&entry["base_rows"]),
            }
        })
        .collect()
}

/// The maximum number of rows of a group in the larger corpus.
const GROUP_ROWS: usize = 20;

/// At least the rows of the undamaged groups, except for the group before the damage if nothing proves its
/// end. Hive's reader also hands out such a group, and parts of damaged ones, without proof.
#[test]
fn skip_yields_all_undamaged_groups_of_a_larger_corpus() {
    let Some(folder) = fixture::larger_corpus("rcfile") else { return };
    let bases: BTreeMap<String, Fixture> =
        fixture::manifest(&folder.join("MANIFEST.json")).into_iter().map(|f| (f.name(), f)).collect();
    let mut truths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut recovered, mut undamaged, mut all, mut complaints) = (0, 0, 0, Vec::new());
    for entry in entries(&folder, &bases) {
        let truth = truths.entry(entry.base.clone()).or_insert_with(|| truth(&bases[&entry.base]));
        assert_eq!(truth.len(), entry.all, "{}", entry.base);
        let (name, what) = (entry.case.name(), &entry.case.entry["damage"]);
        assert_raises_or_right(&entry, truth);
        undamaged += entry.undamaged;
        all += entry.all;
        if open(&entry.case).is_err() {
            // A header that cannot be read is an error in every mode.
            if entry.undamaged > 0 {
                complaints.push(format!("{name} ({what}): not opened, {} wanted", entry.undamaged));
            }
            continue;
        }
        let outcome = salvaged(&entry.case);
        let right = in_order(&as_text(&outcome.batch), truth);
        recovered += right;
        let is_open = |d: &Damage| d.reason.starts_with("expected a row group, a sync marker or the end");
        let withheld = if outcome.damage.iter().any(is_open) { GROUP_ROWS } else { 0 };
        let least = entry.undamaged.saturating_sub(withheld);
        if right < least {
            complaints
                .push(format!("{name} ({what}): {right} right rows, {least} wanted; {:?}", outcome.damage));
        }
        let wrong = outcome.batch.num_rows() != truth.len() || (right != truth.len() && entry.is_checked());
        let verified = coldframe_core::scan::verify(&open(&entry.case).unwrap(), |_| Ok(())).unwrap();
        if outcome.damage.is_empty() && verified.damage.is_empty() && wrong {
            complaints.push(format!("{name} ({what}): {right} of {} rows and nothing reported", truth.len()));
        }
        if outcome.damage.is_empty() && outcome.batch.num_rows() < truth.len() {
            complaints.push(format!("{name} ({what}): the scan lost rows without a report"));
        }
    }
    println!("correct rows: {recovered} of {all}; {undamaged} are in undamaged groups");
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
    assert!(recovered >= undamaged);
}
