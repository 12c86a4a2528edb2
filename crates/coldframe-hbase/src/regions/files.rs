//! The store files of a region: which of them are current, where they are, and their order by age.
//!
//! ```text
//! folder of a family ──▶ names ──▶ file | link ──▶ file elsewhere | half ──▶ file elsewhere, rows before or from a row
//!   a tracker's list ──▶   │
//!         a snapshot ──▶   └──▶ opened ──▶ those replaced by a compaction are dropped ──▶ by sequence id
//! ```
//!
//! A store file's sequence id is the sequence id of its newest edit. A bulk-loaded file has its sequence id
//! in its name; this id applies to all cells of the file.
//! HBase: `HStoreFile`, `StoreFileComparators`, `StoreFileListFile`.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use coldframe_core::io::Entry;
use coldframe_core::{Error, ErrorContext, Fault, ReadAt, Result};
use coldframe_encoding::checksum::crc32;
use coldframe_hfile::{HFile, Options as FileOptions, RawFile};
use prost::Message;

use crate::layout::messages;
use crate::layout::names::{
    FileAt, RECOVERED_EDITS, StoreName, TableName, bulk_sequence_id, is_file, is_region,
};
use crate::layout::policy::{Family, Tracker};
use crate::layout::proto::{FileList, TimeRange};
use crate::regions::alive::Region;
use crate::regions::unopened::{FileLocation, FilesOfFamilies, UnopenedFile};
use crate::root::{Root, join, name_of};

/// The file info's key of the newest sequence id in a file.
const MAX_SEQ_ID: &[u8] = b"MAX_SEQ_ID_KEY";
/// The range of the timestamps in a file.
const TIME_RANGE: &[u8] = b"TIMERANGE";
/// The time at which a file was bulk loaded.
const BULK_TIME: &[u8] = b"BULKLOAD_TIMESTAMP";
/// The key for whether the cells of a bulk-loaded file keep their own sequence ids.
const KEEPS_SEQUENCE_IDS: &[u8] = b"SKIP_RESET_SEQ_ID";
/// The key of the names of the files that a compacted file replaced.
const COMPACTED: &[u8] = b"COMPACTION_EVENT_KEY";

/// No list of HBase is longer.
const MAX_LIST_BYTES: i64 = 16 << 20;

/// The folder of store files made from a split log.
const RECOVERED: &str = "recovered.hfiles";

/// An open store file.
#[derive(Debug)]
pub(crate) struct StoreFile {
    /// The file's name in the family's folder.
    pub(crate) name: String,
    /// The path at which the file's bytes are.
    pub(crate) path: String,
    /// The index of the file's family.
    pub(crate) family: usize,
    /// The file.
    pub(crate) hfile: HFile,
    /// The first row to read from the file.
    pub(crate) lower: Vec<u8>,
    /// The end of the rows to read from the file, excluded.
    pub(crate) upper: Option<Vec<u8>>,
    /// The sequence id of the file's newest edit.
    pub(crate) sequence_id: i64,
    /// A sequence id for all cells of the file, which replaces their own.
    pub(crate) of_cells: Option<i64>,
    /// If cells have equal keys and sequence ids, the cell of the file with the greater rank is newer.
    pub(crate) rank: usize,
}

impl StoreFile {
    pub(crate) fn raw(&self) -> &Arc<RawFile> {
        self.hfile.raw()
    }

    fn len(&self) -> u64 {
        self.raw().source().len()
    }

    /// The least and the greatest timestamp of its cells, if it states them: a message, or two integers before HBase 2.
    pub(crate) fn times(&self) -> Option<RangeInclusive<i64>> {
        let stored = self.raw().info().get(TIME_RANGE)?;
        let times = match stored.strip_prefix(b"PBUF") {
            Some(message) => {
                let TimeRange { from, to } = TimeRange::decode(message).ok()?;
                (from?, to?)
            }
            None => {
                let (from, to) = stored.split_first_chunk::<8>()?;
                (u64::from_be_bytes(*from), u64::from_be_bytes(*to.first_chunk()?))
            }
        };
        Some(i64::try_from(times.0).ok()?..=i64::try_from(times.1).ok()?)
    }

    fn bulk_time(&self) -> i64 {
        self.raw().info().integer(BULK_TIME).unwrap_or(i64::MAX)
    }

    /// Whether the region itself flushed the file, which means that it is neither bulk-loaded nor from
    /// another region.
    pub(crate) fn is_flushed(&self) -> bool {
        let is_own = self.path.rsplit('/').next() == Some(self.name.as_str()) && !self.name.contains('=');
        is_own && self.of_cells.is_none()
    }

    /// Adds this file's path to an error.
    pub(crate) fn named(&self, e: Error) -> Error {
        e.within(format!("store file {}", self.path))
    }
}

/// A damaged file of a family, and the range of rows whose cells it may have had.
#[derive(Clone, Debug)]
pub(crate) struct DamagedFile {
    /// The index of the family.
    pub(crate) family: usize,
    /// The first row.
    pub(crate) lower: Vec<u8>,
    /// The end of the rows, excluded.
    pub(crate) upper: Option<Vec<u8>>,
    /// Why the file cannot be read.
    pub(crate) fault: Fault,
    /// Whether all cells can be read, because only an index or a trailer is damaged.
    pub(crate) cells_intact: bool,
}

/// What the regions of a table share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) root: Root,
    pub(crate) table: TableName,
    pub(crate) families: Vec<Family>,
    pub(crate) options: FileOptions,
    /// Whether to read store files recovered from logs.
    pub(crate) with_logs: bool,
}

/// A region with its files open.
#[derive(Debug, Default)]
pub(crate) struct OpenRegion {
    /// The store files of all families.
    pub(crate) files: Vec<StoreFile>,
    /// Files that are missing or cannot be read.
    pub(crate) damaged: Vec<DamagedFile>,
}

impl Shared {
    /// Opens the files of a region. Damaged and missing files are recorded, and are no error here.
    pub(crate) fn open(&self, region: &Region) -> Result<OpenRegion> {
        let mut open = OpenRegion::default();
        for place in 0..self.families.len() {
            self.open_family(region, place, &mut open)?;
        }
        Ok(open)
    }

    fn open_family(&self, region: &Region, place: usize, open: &mut OpenRegion) -> Result<()> {
        let Some(family) = self.families.get(place) else { return Ok(()) };
        let within = |e: Error| e.within(format!("family {}", family.name)).within(region.describe());
        let mut record = |e: Error, half: Option<&(Vec<u8>, bool)>, cells_intact: bool| -> Result<()> {
            let e = within(e);
            if !Fault::is(&e) {
                return Err(e);
            }
            let (lower, upper) = rows_of(region, half);
            let at = e.offset().unwrap_or(0);
            let fault = Fault::from_error(&e, at..at, cells_intact.then_some(0));
            open.damaged.push(DamagedFile { family: place, lower, upper, fault, cells_intact });
            Ok(())
        };
        let unopened = match self.unopened(region, place) {
            Ok(unopened) => unopened,
            Err(e) => return record(e, None, false),
        };
        let mut files = Vec::with_capacity(unopened.len());
        for entry in unopened {
            let entry = match entry {
                Ok(entry) => entry,
                Err(e) => {
                    record(e, None, false)?;
                    continue;
                }
            };
            match self.open_file(region, place, &entry) {
                Ok((file, damage)) => {
                    if let Some(e) = damage {
                        record(file.named(e), entry.half.as_ref(), true)?;
                    }
                    files.push(file);
                }
                Err(e) => record(e.within(format!("store file {}", entry.name)), entry.half.as_ref(), false)?,
            }
        }
        let mut replaced = BTreeSet::new();
        for file in &files {
            let Some(names) = file.raw().info().get(COMPACTED) else { continue };
            match messages::compacted(names, &self.options.limits) {
                Ok(names) => replaced.extend(names.names),
                // It is then unknown which files this file replaced. If these files are read as well, deleted
                // cells may reappear.
                Err(e) => record(file.named(e.within("compaction event")), None, false)?,
            }
        }
        files.retain(|file| !replaced.contains(file.name.as_bytes()));
        files.sort_by(|a, b| {
            let by_id = a.sequence_id.cmp(&b.sequence_id).then_with(|| b.len().cmp(&a.len()));
            by_id.then_with(|| a.bulk_time().cmp(&b.bulk_time())).then_with(|| a.name.cmp(&b.name))
        });
        for file in files {
            let rank = open.files.len();
            open.files.push(StoreFile { rank, ..file });
        }
        Ok(())
    }

    /// The files of a region, not opened; `None` if a list of files, a reference or a link is damaged.
    pub(crate) fn find(&self, region: &Region) -> Result<Option<FilesOfFamilies>> {
        let mut all = Vec::with_capacity(self.families.len());
        for place in 0..self.families.len() {
            let files = self.unopened(region, place).and_then(|files| files.into_iter().collect());
            match files {
                Ok(files) => all.push(files),
                Err(e) if Fault::is(&e) => return Ok(None),
                Err(e) => return Err(e),
            }
        }
        Ok(Some(all))
    }

    /// The folder of a family in a region.
    fn folder(&self, region: &str, family: &Family) -> String {
        join(&join(&self.root.table(&self.table), region), &family.name)
    }

    /// Store files that HBase, by an option, made from logs while recovering from a crash, and that no server
    /// has opened yet.
    pub(crate) fn recovered(&self, region: &Region, family: &Family) -> Result<Vec<(String, u64)>> {
        let listed = self.root.list(&join(&self.folder(&region.encoded, family), RECOVERED))?;
        let files = listed.iter().filter(|e| !e.is_folder && e.len > 0 && is_file(name_of(e)));
        Ok(files.map(|e| (e.path.clone(), e.len)).collect())
    }

    /// The parents of a region. The region has references to halves of their files, whose names end with the
    /// parent's name.
    pub(crate) fn parents(&self, region: &str) -> Result<BTreeSet<String>> {
        let mut parents = BTreeSet::new();
        for family in &self.families {
            for entry in self.root.list(&self.folder(region, family))? {
                let parent = name_of(&entry).rsplit_once('.').map(|(_, parent)| parent);
                parents.extend(parent.filter(|name| is_region(name)).map(str::to_owned));
            }
        }
        Ok(parents)
    }

    /// Whether a region's folder has store files or edits of its own, not just references to other files.
    pub(crate) fn has_own(&self, region: &str) -> Result<bool> {
        for family in &self.families {
            for entry in self.root.list(&self.folder(region, family))? {
                let name = StoreName::parse(name_of(&entry), &self.table, &family.name);
                if !entry.is_folder && name == Some(StoreName::Own) {
                    return Ok(true);
                }
            }
        }
        let edits = join(&join(&self.root.table(&self.table), region), RECOVERED_EDITS);
        Ok(self.root.list(&edits)?.iter().any(|e| !e.is_folder && e.len > 0))
    }

    /// Whether a region's folder has a file, a reference or a link of each of these families, by index.
    pub(crate) fn has_files(&self, region: &str, families: &BTreeSet<usize>) -> Result<bool> {
        for family in families.iter().filter_map(|i| self.families.get(*i)) {
            let listed = self.root.list(&self.folder(region, family))?;
            let is_file = |e: &Entry| !e.is_folder && self.names_file(name_of(e), family);
            if !listed.iter().any(is_file) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn names_file(&self, name: &str, family: &Family) -> bool {
        StoreName::parse(name, &self.table, &family.name).is_some()
    }

    /// Whether a region was opened once, which leaves a mark, or has edits of its own.
    pub(crate) fn was_opened(&self, region: &str) -> Result<bool> {
        let folder = join(&join(&self.root.table(&self.table), region), RECOVERED_EDITS);
        Ok(!self.root.list(&folder)?.is_empty())
    }

    /// The unopened files of a family.
    pub(crate) fn unopened(&self, region: &Region, place: usize) -> Result<Vec<Result<UnopenedFile>>> {
        if let Some(known) = &region.known {
            return Ok(known.get(place).into_iter().flatten().cloned().map(Ok).collect());
        }
        let Some(family) = self.families.get(place) else { return Ok(Vec::new()) };
        if let Some(listed) = &region.listed {
            return Ok(self.of_manifest(region, listed, family));
        }
        let folder = self.folder(&region.encoded, family);
        let names: Vec<(String, Option<u64>)> = match family.tracker {
            Tracker::List => self.listed(&folder, family)?.into_iter().map(|name| (name, None)).collect(),
            Tracker::Folder => {
                let listed = self.root.list(&folder)?;
                // HBase ignores empty files. This reader reports empty files as damage.
                let files = listed.iter().filter(|e| !e.is_folder);
                files.map(|e| (name_of(e).to_owned(), Some(e.len))).collect()
            }
        };
        let all = names.into_iter().filter_map(|(name, len)| {
            let parsed = StoreName::parse(&name, &self.table, &family.name)?;
            Some(self.locate(region, join(&folder, &name), parsed, len))
        });
        let mut all: Vec<_> = all.collect();
        if self.with_logs {
            let own = |(path, len): (String, u64)| {
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                Ok(UnopenedFile { name, place: FileLocation::Own(path), half: None, len: Some(len) })
            };
            all.extend(self.recovered(region, family)?.into_iter().map(own));
        }
        Ok(all)
    }

    /// `path`: the file in the region's folder.
    fn locate(
        &self,
        region: &Region,
        path: String,
        parsed: StoreName,
        len: Option<u64>,
    ) -> Result<UnopenedFile> {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(match parsed {
            StoreName::Own => UnopenedFile { name, place: FileLocation::Own(path), half: None, len },
            // The length in the listing is the length of the link itself, not of the file.
            StoreName::Link(at) => {
                UnopenedFile { name, place: FileLocation::Elsewhere(at), half: None, len: None }
            }
            StoreName::Half(at) => {
                let bytes = self.root.read(&path, &self.options.limits).map_err(Error::of_named_file)?;
                let reference = messages::reference(&bytes, &self.options.limits);
                let half = reference.and_then(|r| r.half().map(|(row, top)| (row.to_vec(), top)));
                let half = half.and_then(|half| self.check_half(region, &at, &half).map(|()| half));
                let half = half.within(|| format!("reference {path}"))?;
                UnopenedFile { name, place: FileLocation::Elsewhere(at), half: Some(half), len: None }
            }
        })
    }

    /// The files in a snapshot. Such files are located in the same way as the targets of links.
    fn of_manifest(
        &self,
        region: &Region,
        listed: &[crate::layout::proto::FamilyFiles],
        family: &Family,
    ) -> Vec<Result<UnopenedFile>> {
        let files = listed.iter().filter(|f| f.name == family.name.as_bytes()).flat_map(|f| &f.files);
        let all = files.map(|file| {
            let name = String::from_utf8_lossy(&file.name).into_owned();
            let own = || FileAt {
                table: self.table.clone(),
                region: region.encoded.clone(),
                family: family.name.clone(),
                file: name.clone(),
            };
            let place = match StoreName::parse(&name, &self.table, &family.name) {
                Some(StoreName::Own) => own(),
                Some(StoreName::Link(at) | StoreName::Half(at)) => at,
                None => {
                    return Err(Error::corrupt(format!("expected the name of a store file, found {name:?}"))
                        .within("snapshot manifest"));
                }
            };
            let half = file.reference.as_ref().map(|r| r.half().map(|(row, top)| (row.to_vec(), top)));
            let half = half.transpose().within(|| "snapshot manifest")?;
            if let Some(half) = &half {
                self.check_half(region, &place, half).within(|| "snapshot manifest")?;
            }
            let len = file.size.filter(|_| half.is_none());
            Ok(UnopenedFile { name, place: FileLocation::Elsewhere(place), half, len })
        });
        all.collect()
    }

    /// The names in a tracker's newest list.
    fn listed(&self, folder: &str, family: &Family) -> Result<Vec<String>> {
        let lists = self.root.list(&join(folder, ".filelist"))?;
        let mut numbered: Vec<(u64, String)> = lists.iter().filter_map(numbered_list).collect();
        numbered.sort_unstable_by(|a, b| b.cmp(a));
        let mut unfinished = None;
        for same in numbered.chunk_by(|a, b| a.0 == b.0) {
            let mut newest: Option<FileList> = None;
            for (_, path) in same {
                let bytes = self.root.read(path, &self.options.limits)?;
                if is_unfinished(&bytes) {
                    unfinished.get_or_insert((path, bytes.len()));
                    continue;
                }
                let list = messages::file_list(&bytes, &self.options.limits);
                let list = list.within(|| format!("file list {path}"))?;
                if newest.as_ref().is_none_or(|n| n.timestamp <= list.timestamp) {
                    newest = Some(list);
                }
            }
            if let Some(newest) = newest {
                let name = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
                return Ok(newest.files.iter().map(|f| name(&f.name)).collect());
            }
        }
        if let Some((path, len)) = unfinished {
            let e = Error::corrupt(format!("expected a whole list, found only its first {len} bytes"));
            return Err(e.at(0).within(format!("file list {path}")));
        }
        // A family without a list is new and empty. HBase shows none of these files either.
        let files = self.root.list(folder)?.into_iter().filter(|e| !e.is_folder);
        let files = files.filter(|e| self.names_file(name_of(e), family)).count();
        if files > 0 {
            let message = format!(
                "expected a list of the store files in {folder}/.filelist, found none that is whole, but {files} store files"
            );
            return Err(Error::corrupt(message));
        }
        Ok(Vec::new())
    }

    /// Where a store file's bytes are: the path and the open file.
    pub(crate) fn source(&self, place: &FileLocation) -> Result<(String, Arc<dyn ReadAt>)> {
        match place {
            FileLocation::Own(path) => {
                Ok((path.clone(), self.root.open(path).map_err(Error::of_named_file)?))
            }
            FileLocation::Elsewhere(at) => self.root.open_store_file(at),
        }
    }

    /// Opens a store file. Also returns damage through which no cells are lost.
    fn open_file(
        &self,
        region: &Region,
        family: usize,
        entry: &UnopenedFile,
    ) -> Result<(StoreFile, Option<Error>)> {
        let (path, source) = self.source(&entry.place)?;
        let target = match &entry.place {
            FileLocation::Own(_) => &entry.name,
            FileLocation::Elsewhere(at) => &at.file,
        };
        let mut hfile = HFile::new(source, self.options.clone())?;
        let damage = hfile.raw().check().err();
        if let Some(e) = &damage {
            // The index is rebuilt from the blocks. This fails if the file info is lost, because the file's
            // age is then unknown, or if a block is missing, because then its rows are missing, too.
            hfile = hfile.restored().map_err(|_| Error::corrupt(e.reason()).within(e.structure()))?;
        }
        let bulk = bulk_sequence_id(target);
        let info = hfile.raw().info();
        // The upper half counts as newer, which matters if a merge brings both halves into one region.
        let top = i64::from(entry.half.as_ref().is_some_and(|(_, top)| *top));
        let sequence_id = bulk.or(info.integer(MAX_SEQ_ID)).unwrap_or(0).saturating_add(top);
        let keeps = info.get(KEEPS_SEQUENCE_IDS).is_some_and(|v| v.first().is_some_and(|b| *b != 0));
        let loaded = bulk.is_some() || info.get(BULK_TIME).is_some();
        let (lower, upper) = rows_of(region, entry.half.as_ref());
        let file = StoreFile {
            name: entry.name.clone(),
            path,
            family,
            of_cells: (loaded && !keeps).then_some(sequence_id),
            hfile,
            lower,
            upper,
            sequence_id,
            rank: 0,
        };
        Ok((file, damage))
    }
}

/// The rows that a file may contribute to a region.
fn rows_of(region: &Region, half: Option<&(Vec<u8>, bool)>) -> (Vec<u8>, Option<Vec<u8>>) {
    let (mut lower, mut upper) = (region.start.clone(), region.upper().map(<[u8]>::to_vec));
    match half {
        Some((row, true)) => lower = lower.max(row.clone()),
        Some((row, false)) => upper = Some(upper.map_or_else(|| row.clone(), |upper| upper.min(row.clone()))),
        None => {}
    }
    (lower, upper)
}

/// The number of a tracker's list, and its path.
fn numbered_list(entry: &Entry) -> Option<(u64, String)> {
    let name = name_of(entry);
    let number = match name.split_once('.') {
        Some(("f1" | "f2", number)) => number.parse().ok()?,
        None if matches!(name, "f1" | "f2") => 0,
        _ => return None,
    };
    (!entry.is_folder).then(|| (number, entry.path.clone()))
}

/// Whether a list was only partly written, so that the other list is valid. A list with its checksum is whole, and its
/// length is damaged.
fn is_unfinished(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return true };
    let length = i64::from(i32::from_be_bytes(*length));
    let ends_with_checksum =
        rest.split_last_chunk::<4>().is_some_and(|(list, sum)| crc32(list) == u32::from_be_bytes(*sum));
    let is_short = i64::try_from(rest.len()).is_ok_and(|len| len < length + 4);
    is_short && length <= MAX_LIST_BYTES && (rest.len() <= 4 || !ends_with_checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_its_checksum_is_not_unfinished() {
        let list = b"the names of files";
        let length = u32::try_from(list.len()).unwrap().to_be_bytes();
        let whole = [&length[..], list, &crc32(list).to_be_bytes()].concat();
        assert!(!is_unfinished(&whole));
        assert!((0..whole.len()).all(|len| is_unfinished(&whole[..len])));
        // Zeros, and lengths that no writer writes, are damage.
        assert!(!is_unfinished(&vec![0; whole.len()]));
        for byte in 0..4 {
            let mut damaged = whole.clone();
            damaged[byte] ^= 0x80;
            assert!(!is_unfinished(&damaged), "byte {byte}");
        }
    }
}
