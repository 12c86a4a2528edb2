//! Where the edits of each region are in the logs. The logs are read once to find this, and the result is
//! sent to the readers of splits.
//!
//! ```text
//! WALs/S1/LOG ──┐                    table, region ──▶ (log, place, length, sequence id) ..
//! WALs/S2/LOG ──┴──▶ read once ──▶   logs that cannot be read to the end; logs that end within an edit
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coldframe_core::{Damage, Error, Fault, Limits, ReadAt, Result};

use crate::layout::log::{Edit, LogReader};
use crate::layout::names::TableName;
use crate::layout::proto::LogKey;
use crate::root::Root;
use crate::wal::plain_cells::PlainCells;

/// The location of each region's edits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    files: Vec<LogFile>,
    /// By the encoded name of the region: for each edit the index of the log file, and the location in it.
    by_region: BTreeMap<String, Vec<(usize, Edit)>>,
    /// Logs that cannot be read to the end.
    pub(crate) faults: Vec<Fault>,
    /// Logs that end within an edit, which was not acknowledged to a client: the path of each log, and the
    /// offset at which the edit begins.
    pub(crate) cut: Vec<(String, u64)>,
}

/// A log that was read.
#[derive(Clone, Debug)]
struct LogFile {
    path: String,
    /// The file, or the cells of a compressed one.
    source: Arc<dyn ReadAt>,
    is_compressed: bool,
}

/// What is known about a log apart from its edits.
#[derive(Clone)]
struct ReadLog {
    source: Arc<dyn ReadAt>,
    is_compressed: bool,
    fault: Option<Fault>,
    cut: Option<u64>,
}

pub(crate) fn in_log(e: Error, path: &str) -> Error {
    e.within(format!("write-ahead log {path}"))
}

/// Reads a log, and passes its edits to `with`, which returns whether the cells of a compressed log are kept.
fn read_log(
    root: &Root,
    limits: Limits,
    path: &str,
    mut with: impl FnMut(&LogKey, Edit) -> bool,
) -> Result<ReadLog> {
    let source = root.open(path)?;
    let (mut cut, mut is_compressed) = (None, false);
    let mut kept = PlainCells::new(limits, source.len());
    let mut read = || -> Result<()> {
        let mut log = LogReader::open(source.clone(), limits, path)?;
        is_compressed = log.is_compressed();
        while let Some((key, edit)) = log.next_edit()? {
            if edit.len > 0 && with(&key, edit) && is_compressed {
                kept.add(&edit, log.take_cells())?;
            }
        }
        cut = log.cut_at();
        Ok(())
    };
    let fault = match read().map_err(|e| in_log(e, path)) {
        Ok(()) => None,
        Err(e) if Fault::is(&e) => {
            let at = e.offset().unwrap_or(0);
            Some(Fault::from_error(&e, at..source.len().max(at), None))
        }
        Err(e) => return Err(e),
    };
    let source = if is_compressed { Arc::new(kept) } else { source };
    Ok(ReadLog { source, is_compressed, fault, cut })
}

impl Index {
    /// Adds the edits that a log has of a table.
    pub(crate) fn add(&mut self, root: &Root, limits: Limits, table: &TableName, path: String) -> Result<()> {
        let name = table.to_string();
        let plain = table.plain();
        let file = self.files.len();
        let by_region = &mut self.by_region;
        let log = read_log(root, limits, &path, |key, edit| {
            let is_own = [name.as_bytes(), plain.as_bytes()].contains(&key.table.as_slice());
            if is_own {
                let region = String::from_utf8_lossy(&key.region).into_owned();
                by_region.entry(region).or_default().push((file, edit));
            }
            is_own
        })?;
        self.finish(path, log);
        Ok(())
    }

    fn finish(&mut self, path: String, log: ReadLog) {
        self.faults.extend(log.fault);
        self.cut.extend(log.cut.map(|at| (path.clone(), at)));
        let ReadLog { source, is_compressed, .. } = log;
        self.files.push(LogFile { path, source, is_compressed });
    }

    /// The edits of a region: for each edit the path of the log, the log, and the location in it.
    pub(crate) fn of_region(&self, region: &str) -> impl Iterator<Item = (&str, &dyn ReadAt, &Edit)> {
        let edits = self.by_region.get(region).into_iter().flatten();
        edits.filter_map(|(file, edit)| {
            self.files.get(*file).map(|log| (log.path.as_str(), log.source.as_ref(), edit))
        })
    }

    pub(crate) fn knows(&self, region: &str) -> bool {
        self.by_region.contains_key(region)
    }

    /// The index as a message: the part about one region, or all of it.
    pub(crate) fn pack(&self, region: Option<&str>) -> PackedLogs {
        let mut files = PackedFiles::default();
        let regions = match region {
            Some(name) => self.by_region.get_key_value(name).into_iter().collect::<Vec<_>>(),
            None => self.by_region.iter().collect(),
        };
        let regions = regions.into_iter().map(|(name, edits)| {
            let mut packed = PackedEdits { region: name.clone(), ..PackedEdits::default() };
            for (file, edit) in edits {
                if let Some(log) = self.files.get(*file) {
                    packed.files.push(files.place(*file, log));
                }
                packed.at.push(edit.at);
                packed.len.push(edit.len);
                packed.sequence_ids.push(edit.sequence_id);
            }
            packed
        });
        let regions = regions.collect();
        PackedLogs {
            files: files.paths,
            compressed: files.compressed,
            regions,
            faults: self.faults.iter().map(PackedFault::of).collect(),
            cut: self.cut.iter().map(|(log, at)| PackedCut { log: log.clone(), at: *at }).collect(),
        }
    }

    /// Restores an index from its message, and opens the logs that have edits. Compressed ones are read again.
    pub(crate) fn unpack(root: &Root, limits: Limits, packed: PackedLogs) -> Result<Self> {
        let PackedLogs { files, regions, faults, cut, compressed } = packed;
        let open = |(number, path): (usize, String)| {
            let is_compressed = compressed.contains(&u32::try_from(number).unwrap_or(u32::MAX));
            let source = match is_compressed {
                true => Arc::new(PlainCells::of_log(root, limits, &path, &wanted(&regions, number))?),
                false => root.open(&path)?,
            };
            Ok(LogFile { path, source, is_compressed })
        };
        let files = files.into_iter().enumerate().map(open).collect::<Result<_>>()?;
        let of_region = |packed: PackedEdits| {
            let PackedEdits { region, files, at, len, sequence_ids } = packed;
            let places = files.into_iter().map(|file| file as usize);
            let edits = at.into_iter().zip(len).zip(sequence_ids);
            let edits = edits.map(|((at, len), sequence_id)| Edit { at, len, sequence_id });
            (region, places.zip(edits).collect())
        };
        Ok(Self {
            files,
            by_region: regions.into_iter().map(of_region).collect(),
            faults: faults.into_iter().map(PackedFault::into_fault).collect(),
            cut: cut.into_iter().map(|cut| (cut.log, cut.at)).collect(),
        })
    }
}

/// The offsets of the edits in one log.
fn wanted(regions: &[PackedEdits], number: usize) -> BTreeSet<u64> {
    let of_region = |region: &PackedEdits| {
        let places = region.files.iter().zip(&region.at).filter(|(file, _)| **file as usize == number);
        places.map(|(_, at)| *at).collect::<Vec<_>>()
    };
    regions.iter().flat_map(of_region).collect()
}

/// Reads the servers' logs once for all of these tables.
pub(crate) fn of_tables(
    root: &Root,
    limits: Limits,
    tables: Vec<TableName>,
) -> Result<Vec<(TableName, PackedLogs)>> {
    let mut indexes: Vec<(TableName, Index)> =
        tables.into_iter().map(|table| (table, Index::default())).collect();
    let mut places: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for (i, (table, _)) in indexes.iter().enumerate() {
        places.insert(table.to_string().into_bytes(), i);
        places.insert(table.plain().into_bytes(), i);
    }
    for (file, log) in root.logs()?.into_iter().filter(|log| !log.path.ends_with(".meta")).enumerate() {
        let read = read_log(root, limits, &log.path, |key, edit| {
            let index = places.get(&key.table).and_then(|i| indexes.get_mut(*i));
            if let Some((_, index)) = index {
                let region = String::from_utf8_lossy(&key.region).into_owned();
                index.by_region.entry(region).or_default().push((file, edit));
            }
            false
        })?;
        for (_, index) in &mut indexes {
            index.finish(log.path.clone(), read.clone());
        }
    }
    Ok(indexes.into_iter().map(|(table, index)| (table, index.pack(None))).collect())
}

/// The paths of the log files, in their original order.
#[derive(Default)]
struct PackedFiles {
    paths: Vec<String>,
    /// The numbers of compressed logs.
    compressed: Vec<u32>,
    places: BTreeMap<usize, u32>,
}

impl PackedFiles {
    fn place(&mut self, file: usize, log: &LogFile) -> u32 {
        let Self { paths, compressed, places } = self;
        *places.entry(file).or_insert_with(|| {
            paths.push(log.path.clone());
            let number = u32::try_from(paths.len() - 1).unwrap_or(u32::MAX);
            compressed.extend(log.is_compressed.then_some(number));
            number
        })
    }
}

/// An [`Index`] in serialised form.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PackedLogs {
    #[prost(string, repeated, tag = "1")]
    files: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    regions: Vec<PackedEdits>,
    #[prost(message, repeated, tag = "3")]
    faults: Vec<PackedFault>,
    #[prost(message, repeated, tag = "4")]
    cut: Vec<PackedCut>,
    /// The numbers of compressed logs.
    #[prost(uint32, repeated, tag = "5")]
    compressed: Vec<u32>,
}

/// The edits of a region.
#[derive(Clone, PartialEq, prost::Message)]
struct PackedEdits {
    #[prost(string, tag = "1")]
    region: String,
    #[prost(uint32, repeated, tag = "2")]
    files: Vec<u32>,
    #[prost(uint64, repeated, tag = "3")]
    at: Vec<u64>,
    #[prost(uint64, repeated, tag = "4")]
    len: Vec<u64>,
    #[prost(int64, repeated, tag = "5")]
    sequence_ids: Vec<i64>,
}

/// A log that ends within an edit.
#[derive(Clone, PartialEq, prost::Message)]
struct PackedCut {
    #[prost(string, tag = "1")]
    log: String,
    #[prost(uint64, tag = "2")]
    at: u64,
}

/// A record of damage.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PackedFault {
    #[prost(uint64, tag = "1")]
    start: u64,
    #[prost(uint64, tag = "2")]
    end: u64,
    #[prost(uint64, optional, tag = "3")]
    rows_lost: Option<u64>,
    #[prost(string, tag = "4")]
    structure: String,
    #[prost(string, tag = "5")]
    reason: String,
    #[prost(bool, tag = "6")]
    unsupported: bool,
}

impl PackedFault {
    pub(crate) fn of(fault: &Fault) -> Self {
        let Damage { bytes, rows_lost, structure, reason } = fault.damage.clone();
        let unsupported = fault.is_unsupported();
        Self { start: bytes.start, end: bytes.end, rows_lost, structure, reason, unsupported }
    }

    pub(crate) fn into_fault(self) -> Fault {
        let Self { start, end, rows_lost, structure, reason, unsupported } = self;
        let damage = Damage { bytes: start..end, rows_lost, structure, reason };
        if unsupported { Fault::unsupported(damage) } else { Fault::from(damage) }
    }
}
