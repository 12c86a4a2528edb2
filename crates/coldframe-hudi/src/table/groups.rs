//! The file groups of a metadata table, and what they lack.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coldframe_core::io::Folder;
use coldframe_core::{ErrorContext, Limits, Result};

use crate::data::missing::{self, Lost, OfMetadata};
use crate::slice::{self, GroupFile, Slice};
use crate::timeline::Timeline;

/// A file group of a metadata table.
#[derive(Debug)]
pub(crate) struct FileGroup {
    /// The name of its partition.
    pub(crate) partition: Arc<str>,
    /// Its latest committed files.
    pub(crate) slice: Slice,
    /// If a hash distributes the keys: the group's number, and the number of groups in its partition.
    pub(crate) number: Option<(u32, u32)>,
    /// The files that must be there.
    pub(crate) lost: Lost,
}

impl FileGroup {
    /// Its files, the base file first.
    pub(crate) fn files(&self) -> impl Iterator<Item = &GroupFile> {
        self.slice.base.iter().chain(&self.slice.logs)
    }

    /// The bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files().map(|f| f.len).fold(0, u64::saturating_add)
    }

    /// Whether the group can have one of these keys.
    pub(crate) fn may_hold(&self, keys: &BTreeSet<Vec<u8>>) -> bool {
        self.number.is_none_or(|(number, of)| {
            keys.iter().any(|key| std::str::from_utf8(key).is_ok_and(|key| group_of(key, of) == number))
        })
    }
}

/// The group of a key, out of `of` groups. Hudi uses the hash of Java's strings.
fn group_of(key: &str, of: u32) -> u32 {
    let hash = key.encode_utf16().fold(0_i32, |h, c| h.wrapping_mul(31).wrapping_add(i32::from(c)));
    // In Java, the absolute value of the smallest integer is negative, and a remainder of a division of it is
    // negative, too.
    let hash = i64::from(hash.wrapping_abs());
    u32::try_from((hash % i64::from(of.max(1))).abs()).unwrap_or(0)
}

/// The groups of the partitions `names`, and what the table seems to lack. `ready`: further partitions that must have all
/// groups that a commit names.
pub(crate) fn read(
    root: &dyn Folder,
    names: Vec<String>,
    (timeline, version): (&Timeline, u32),
    ready: &dyn Fn(&str) -> bool,
    limits: &Limits,
) -> Result<(Vec<FileGroup>, Vec<String>)> {
    let mut instants = BTreeSet::new();
    let mut partitions = BTreeMap::new();
    for name in names {
        let slices = slice::latest(root, &name, (timeline, version), &mut instants)?;
        partitions.insert(name, slices);
    }
    let (mut lost, lacking) = lost(root, &partitions, &instants, limits).within(|| "timeline")?;
    for (partition, file_id) in lost.keys() {
        let slices = match partitions.get_mut(partition) {
            Some(slices) => slices,
            None if ready(partition) => partitions.entry(partition.clone()).or_default(),
            None => continue,
        };
        if !slices.iter().any(|slice| slice.file_id == *file_id) {
            slices.push(Slice { file_id: file_id.clone(), base: None, logs: Vec::new() });
            slices.sort_by(|a, b| a.file_id.cmp(&b.file_id));
        }
    }
    let mut groups = Vec::new();
    for (name, slices) in partitions {
        let partition: Arc<str> = name.as_str().into();
        let of = group_count(&name, &slices);
        for (i, slice) in slices.into_iter().enumerate() {
            let number = of.and_then(|of| Some((u32::try_from(i).ok()?, of)));
            let lost = lost.remove(&(name.clone(), slice.file_id.clone())).unwrap_or_default();
            groups.push(FileGroup { partition: partition.clone(), slice, number, lost });
        }
    }
    Ok((groups, lacking))
}

/// The files that commits name and that are not there, by partition and group, and what else the table seems to lack.
fn lost(
    root: &dyn Folder,
    partitions: &BTreeMap<String, Vec<Slice>>,
    instants: &BTreeSet<String>,
    limits: &Limits,
) -> Result<(BTreeMap<(String, String), Lost>, Vec<String>)> {
    let slices =
        || partitions.iter().flat_map(|(name, slices)| slices.iter().map(move |slice| (name, slice)));
    let files = slices().flat_map(|(_, slice)| slice.base.iter().chain(&slice.logs));
    let bases = slices().filter_map(|(name, slice)| {
        Some(((name.clone(), slice.file_id.clone()), slice.base.as_ref()?.instant.clone()))
    });
    let files = OfMetadata {
        there: files.map(|file| file.path.as_str()).collect(),
        bases: bases.collect(),
        instants: instants.iter().map(String::as_str).collect(),
    };
    missing::of_metadata(root, &files, limits)
}

/// The number of groups in a partition, if the hash of a key selects its group. A hash selects the group in a
/// record index that is not divided by partitions of the table.
fn group_count(partition: &str, slices: &[Slice]) -> Option<u32> {
    let of = u32::try_from(slices.len()).ok()?;
    let numbered = slices.iter().enumerate().all(|(i, slice)| {
        let rest = slice.file_id.strip_prefix("record-index-");
        rest.and_then(|r| r.split('-').next()) == Some(format!("{i:04}").as_str())
    });
    (partition == "record_index" && numbered).then_some(of)
}
