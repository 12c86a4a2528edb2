//! The data that is sent with a split, so that its reader needs to open only the files of one region.
//!
//! ```text
//! piece 0 = PackedSplit   table, region, its files, rows a..b, where its edits are in the logs, what the table lacks
//! piece 1 = PackedLogs    where the edits of a table are in the logs of all servers, which are read once for all tables
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::io::Folder;
use coldframe_core::{Error, Fault, OpenOptions, Piece, Result, Split};
use prost::Message;

use crate::layout::names::{FileAt, TableName};
use crate::layout::proto::{FamilyFiles, TableSchema};
use crate::open::{OpenTable, SnapshotInfo, tables};
use crate::options::Options;
use crate::regions::alive::Region;
use crate::regions::unopened::{FileLocation, FilesOfFamilies, UnopenedFile};
use crate::root::{Opened, Root};
use crate::scan::plan::Rows;
use crate::splits;
use crate::splits::parallel::map_each;
use crate::wal::edits::{KnownLogs, Logs};
use crate::wal::index::{self, Index, PackedFault, PackedLogs};

/// The numbers of the pieces.
const SPLIT: u64 = 0;
const LOGS: u64 = 1;

/// The only split of a table that was opened from the data sent with a split.
#[derive(Debug)]
pub(crate) struct OnlySplit {
    pub(crate) part: u32,
    pub(crate) range: Range<u64>,
    /// The rows to read; `None` if the split is for a missing part of the table.
    pub(crate) rows: Option<Rows>,
}

/// The bytes of the piece with this number.
fn piece(recorded: &[Piece], number: u64) -> Option<&Bytes> {
    recorded.iter().find(|(of, _)| *of == number).map(|(_, bytes)| bytes)
}

fn decoded<M: Message + Default>(bytes: &Bytes) -> Result<M> {
    M::decode(bytes.clone()).map_err(|e| Error::invalid(format!("the data of an HBase split: {e}")))
}

/// For each table name, where its edits are in the logs of all servers; empty if the options exclude logs.
pub(crate) fn shared(
    folder: &Arc<dyn Folder>,
    options: &OpenOptions,
) -> Result<BTreeMap<String, Vec<Piece>>> {
    let options = Options::new(options)?;
    let root = match Opened::new(folder)? {
        Opened::Root(root) if options.wal && options.snapshot.is_none() => root,
        _ => return Ok(BTreeMap::new()),
    };
    let all = index::of_tables(&root, options.files.limits, tables(folder)?)?;
    let piece = |packed: &PackedLogs| vec![(LOGS, Bytes::from(packed.encode_to_vec()))];
    Ok(all.iter().map(|(table, packed)| (table.to_string(), piece(packed))).collect())
}

/// The data that the splits of one region share.
struct RegionData {
    files: Option<FilesOfFamilies>,
    own: Option<PackedLogs>,
    servers: Option<PackedLogs>,
    /// The rows at which splits divide the region, if any.
    cuts: Vec<Vec<u8>>,
}

/// For each split, the data to send with it.
pub(crate) fn recorded(table: &OpenTable, splits: &[Split]) -> Result<Vec<Vec<Piece>>> {
    let place = |split: &Split| usize::try_from(split.part).unwrap_or(usize::MAX);
    let parts: BTreeSet<usize> = splits.iter().map(place).filter(|i| *i < table.regions.len()).collect();
    let parts: Vec<usize> = parts.into_iter().collect();
    let cut: BTreeSet<usize> = splits.iter().filter(|s| !splits::is_whole(&s.range)).map(place).collect();
    let source = table.source();
    let servers = source.logs.as_ref().map(|logs| logs.index()).transpose()?;
    let of_regions = map_each(&parts, |part| {
        let region =
            table.regions.get(*part).ok_or_else(|| Error::invalid("a part that the table does not have"))?;
        Ok(RegionData {
            files: table.shared.find(region)?,
            own: source.logs.as_ref().map(|logs| logs.own(region)).transpose()?.map(|own| own.pack(None)),
            servers: servers.as_ref().map(|index| index.pack(Some(&region.encoded))),
            cuts: if cut.contains(part) { splits::cuts(&table.shared, region)?.0 } else { Vec::new() },
        })
    })?;
    let of_parts: BTreeMap<usize, RegionData> = parts.into_iter().zip(of_regions).collect();
    let lacks = source.logs.as_ref().map(|logs| logs.are_lacking()).transpose()?;
    let common = PackedSplit::of(table, lacks);
    splits
        .iter()
        .map(|split| {
            let mut packed = common.clone();
            (packed.part, packed.start, packed.end) = (split.part, split.range.start, split.range.end);
            match (table.regions.get(place(split)), of_parts.get(&place(split))) {
                (Some(region), Some(of)) => packed.take_region(region, of, &split.range),
                _ => packed.take_missing(table, place(split))?,
            }
            Ok(vec![(SPLIT, Bytes::from(packed.encode_to_vec()))])
        })
        .collect()
}

/// Opens a table from the data sent with a split; `None` if that data has no piece that this format wrote.
pub(crate) fn open(
    folder: &Arc<dyn Folder>,
    options: &OpenOptions,
    recorded: &[Piece],
) -> Result<Option<(OpenTable, Option<OnlySplit>)>> {
    if let Some(bytes) = piece(recorded, SPLIT) {
        let (table, only) = decoded::<PackedSplit>(bytes)?.open(folder, options)?;
        return Ok(Some((table, Some(only))));
    }
    let Some(bytes) = piece(recorded, LOGS) else { return Ok(None) };
    let mut table = OpenTable::open(folder, options)?;
    if table.snapshot.is_none() {
        let servers = Index::unpack(&table.shared.root, table.shared.options.limits, decoded(bytes)?)?;
        let known = KnownLogs { servers, ..KnownLogs::default() };
        table.logs = Some(Arc::new(Logs::known(table.shared.clone(), known)));
    }
    Ok(Some((table, None)))
}

/// A split and all data that its reader needs.
#[derive(Clone, PartialEq, prost::Message)]
struct PackedSplit {
    #[prost(string, tag = "1")]
    table: String,
    #[prost(message, required, tag = "2")]
    schema: TableSchema,
    /// The number of levels from the opened folder up to the root directory.
    #[prost(uint32, tag = "3")]
    levels: u32,
    #[prost(bool, tag = "4")]
    alone: bool,
    #[prost(string, optional, tag = "5")]
    snapshot: Option<String>,
    /// The time at which the expiry of cells is judged.
    #[prost(int64, tag = "6")]
    now: i64,
    #[prost(uint32, tag = "7")]
    part: u32,
    #[prost(uint64, tag = "8")]
    start: u64,
    #[prost(uint64, tag = "9")]
    end: u64,
    /// The region to read; absent if the split is for a missing part.
    #[prost(message, optional, tag = "10")]
    region: Option<PackedRegion>,
    #[prost(message, optional, tag = "11")]
    servers: Option<PackedLogs>,
    #[prost(message, optional, tag = "12")]
    own: Option<PackedLogs>,
    #[prost(bool, optional, tag = "13")]
    lacks_logs: Option<bool>,
    /// The missing part that this split is for; otherwise the first missing part of the table.
    #[prost(message, optional, tag = "14")]
    missing: Option<PackedFault>,
    #[prost(uint64, tag = "15")]
    skipped_regions: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PackedRegion {
    #[prost(string, tag = "1")]
    encoded: String,
    #[prost(uint64, tag = "2")]
    id: u64,
    #[prost(bytes = "vec", tag = "3")]
    start: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    end: Vec<u8>,
    /// Whether the region's files are known.
    #[prost(bool, tag = "5")]
    is_known: bool,
    #[prost(message, repeated, tag = "6")]
    files: Vec<PackedFile>,
    #[prost(bytes = "vec", tag = "7")]
    lower: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "8")]
    upper: Option<Vec<u8>>,
    #[prost(bool, tag = "9")]
    first: bool,
    /// What a snapshot lists, if not all of its files can be located.
    #[prost(bool, tag = "10")]
    is_listed: bool,
    #[prost(message, repeated, tag = "11")]
    listed: Vec<FamilyFiles>,
}

/// A store file.
#[derive(Clone, PartialEq, prost::Message)]
struct PackedFile {
    /// The index of the family.
    #[prost(uint32, tag = "1")]
    family: u32,
    #[prost(string, tag = "2")]
    name: String,
    /// The file's path in the folder of its region.
    #[prost(string, optional, tag = "3")]
    path: Option<String>,
    /// The file's location if it is elsewhere: table, region, family, file.
    #[prost(string, repeated, tag = "4")]
    elsewhere: Vec<String>,
    #[prost(bytes = "vec", optional, tag = "5")]
    half: Option<Vec<u8>>,
    #[prost(bool, tag = "6")]
    top: bool,
}

impl PackedFile {
    fn of(family: usize, file: &UnopenedFile) -> Self {
        let (path, elsewhere) = match &file.place {
            FileLocation::Own(path) => (Some(path.clone()), Vec::new()),
            FileLocation::Elsewhere(FileAt { table, region, family, file }) => {
                (None, vec![table.to_string(), region.clone(), family.clone(), file.clone()])
            }
        };
        Self {
            family: u32::try_from(family).unwrap_or(u32::MAX),
            name: file.name.clone(),
            path,
            elsewhere,
            half: file.half.as_ref().map(|(row, _)| row.clone()),
            top: file.half.as_ref().is_some_and(|(_, top)| *top),
        }
    }

    fn into_file(self) -> Result<UnopenedFile> {
        let Self { name, path, elsewhere, half, top, .. } = self;
        let place = match (path, <[String; 4]>::try_from(elsewhere)) {
            (Some(path), _) => FileLocation::Own(path),
            (None, Ok([table, region, family, file])) => {
                FileLocation::Elsewhere(FileAt { table: TableName::parse(&table), region, family, file })
            }
            (None, Err(_)) => {
                return Err(Error::invalid(format!("an HBase split without the location of {name}")));
            }
        };
        Ok(UnopenedFile { name, place, half: half.map(|row| (row, top)), len: None })
    }
}

impl PackedSplit {
    /// The data common to all splits of a table.
    fn of(table: &OpenTable, lacks_logs: Option<bool>) -> Self {
        let (levels, alone) = table.shared.root.place();
        Self {
            table: table.shared.table.to_string(),
            schema: table.schema.clone(),
            levels: u32::try_from(levels).unwrap_or(0),
            alone,
            snapshot: table.snapshot.as_ref().map(|s| s.name.clone()),
            now: table.options.now,
            lacks_logs,
            missing: table.missing.first().map(|damage| PackedFault::of(&Fault::from(damage.clone()))),
            skipped_regions: table.skipped_regions,
            ..Self::default()
        }
    }

    fn take_region(&mut self, region: &Region, of: &RegionData, range: &Range<u64>) {
        let Rows { lower, upper, first } = splits::rows_between(region, range, &of.cuts);
        let by_family = of.files.iter().flatten().enumerate();
        let listed = region.listed.as_ref().filter(|_| of.files.is_none());
        self.region = Some(PackedRegion {
            encoded: region.encoded.clone(),
            id: region.id,
            start: region.start.clone(),
            end: region.end.clone(),
            is_known: of.files.is_some(),
            files: by_family.flat_map(|(i, files)| files.iter().map(move |f| PackedFile::of(i, f))).collect(),
            lower,
            upper,
            first,
            is_listed: listed.is_some(),
            listed: listed.cloned().unwrap_or_default(),
        });
        (self.servers, self.own) = (of.servers.clone(), of.own.clone());
    }

    /// Fills in a split for a missing part. These splits come after the splits of the regions.
    fn take_missing(&mut self, table: &OpenTable, part: usize) -> Result<()> {
        let missing = part.checked_sub(table.regions.len()).and_then(|i| table.missing.get(i));
        let missing =
            missing.ok_or_else(|| Error::invalid(format!("part {part}, which the table does not have")))?;
        self.missing = Some(PackedFault::of(&Fault::from(missing.clone())));
        Ok(())
    }

    fn open(self, folder: &Arc<dyn Folder>, options: &OpenOptions) -> Result<(OpenTable, OnlySplit)> {
        let options = Options { now: self.now, ..Options::new(options)? };
        let root = Root::reopen(folder, usize::try_from(self.levels).unwrap_or(0), self.alone)?;
        let mut table = OpenTable::new(root, TableName::parse(&self.table), self.schema, options)?;
        table.snapshot = self.snapshot.map(|name| SnapshotInfo { name, created: None });
        table.skipped_regions = self.skipped_regions;
        table.missing = self.missing.map(|fault| fault.into_fault().damage).into_iter().collect();
        table.logs = None;
        let mut rows = None;
        if let Some(packed) = self.region {
            let encoded = packed.encoded.clone();
            let (region, of) = packed.into_region(table.shared.families.len())?;
            table.regions = vec![Arc::new(region)];
            rows = Some(of);
            if let Some(servers) = self.servers {
                let (root, limits) = (&table.shared.root, table.shared.options.limits);
                let own = self.own.map(|own| Index::unpack(root, limits, own)).transpose()?;
                let known = KnownLogs {
                    servers: Index::unpack(root, limits, servers)?,
                    own: own.map(|own| (encoded, own)),
                    lacks: self.lacks_logs,
                };
                table.logs = Some(Arc::new(Logs::known(table.shared.clone(), known)));
            }
        }
        Ok((table, OnlySplit { part: self.part, range: self.start..self.end, rows }))
    }
}

impl PackedRegion {
    fn into_region(self, families: usize) -> Result<(Region, Rows)> {
        let Self { encoded, id, start, end, is_known, files, lower, upper, first, is_listed, listed } = self;
        let mut known: FilesOfFamilies = vec![Vec::new(); families];
        for file in files {
            let family = usize::try_from(file.family).ok().and_then(|i| known.get_mut(i));
            let family = family.ok_or_else(|| Error::invalid("an HBase split with an unknown family"))?;
            family.push(file.into_file()?);
        }
        let known = is_known.then(|| Arc::new(known));
        let listed = is_listed.then_some(listed);
        let region = Region { id, start, end, known, listed, ..Region::whole(&encoded) };
        Ok((region, Rows { lower, upper, first }))
    }
}
