//! Unflushed edits from the write-ahead logs and from `recovered.edits`, as they were in a region server's
//! memory.
//!
//! ```text
//! WALs/SERVER/LOG                        all regions of a server; LOG.meta those of hbase:meta
//! data/NS/TABLE/REGION/recovered.edits/NNN   sorted out of logs for a region that no server has opened since
//! ```
//!
//! An edit is unflushed if its sequence id is greater than the sequence ids of all store files of its family.
//! All cells of an edit
//! have its sequence id, and are newer than all cells in store files. HBase: `HRegion.replayRecoveredEdits`.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use coldframe_core::{Damage, Error, Fault, Limits, OnError, Result};
use coldframe_hfile::{Cell, CellLayout, CellSink, Plain, RowOrder};

use crate::layout::log::each_cell;
use crate::layout::names::RECOVERED_EDITS;
use crate::regions::alive::Region;
use crate::regions::files::{OpenRegion, Shared};
use crate::root::{join, name_of};
use crate::wal::index::{Index, in_log};

/// The family name that a server uses for its own markers in a log.
const MARKS: &[u8] = b"METAFAMILY";

/// The sequence id that HBase 2 gives to the first opening of a new region. Closing it gives a greater one.
const CREATED: i64 = 1;

/// The layout of cells in memory.
pub(crate) const LAYOUT: CellLayout = CellLayout { tags: true, sequence_ids: true };

/// The cells of a family in a region that exist only in logs, in order.
#[derive(Clone, Debug)]
pub(crate) struct Edits {
    pub(crate) family: usize,
    cells: Bytes,
    /// The offset of each cell.
    starts: Arc<[u32]>,
}

impl Edits {
    /// The cells of the rows from `lower` up to (not including) `upper`.
    pub(crate) fn of_rows(&self, order: RowOrder, lower: &[u8], upper: Option<&[u8]>) -> Bytes {
        let row = |at: u32| {
            let read = LAYOUT.cell(&self.cells, at as usize);
            read.map_or(&[][..], |(cell, _)| cell.row)
        };
        let before = |bound: &[u8]| self.starts.partition_point(|at| order.compare(row(*at), bound).is_lt());
        let place = |i: usize| self.starts.get(i).map_or(self.cells.len(), |at| *at as usize);
        let start = place(before(lower));
        let end = upper.map_or(self.cells.len(), |upper| place(before(upper)));
        self.cells.slice(start..end.max(start))
    }
}

/// The logs of a root directory, for one table.
#[derive(Debug)]
pub(crate) struct Logs {
    shared: Arc<Shared>,
    /// Where the edits are in the servers' logs; read on first use.
    index: Mutex<Option<Arc<Index>>>,
    /// Whether no server has a log here.
    lacks: OnceLock<bool>,
    /// Whether the root directory lacks its folder of logs.
    lacks_folder: OnceLock<bool>,
    /// The encoded name of a region and the locations of its recovered edits, if these have been read
    /// already.
    own: Option<(String, Arc<Index>)>,
}

/// The locations of edits that are already known.
#[derive(Debug, Default)]
pub(crate) struct KnownLogs {
    pub(crate) servers: Index,
    /// The encoded name of one region, and the locations of its recovered edits.
    pub(crate) own: Option<(String, Index)>,
    pub(crate) lacks: Option<bool>,
}

impl Logs {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (lacks, lacks_folder) = (OnceLock::new(), OnceLock::new());
        Self { shared, index: Mutex::new(None), lacks, lacks_folder, own: None }
    }

    /// Creates the logs of a table whose edits have been located already.
    pub(crate) fn known(shared: Arc<Shared>, known: KnownLogs) -> Self {
        let KnownLogs { servers, own, lacks } = known;
        Self {
            shared,
            index: Mutex::new(Some(Arc::new(servers))),
            lacks: lacks.map(OnceLock::from).unwrap_or_default(),
            lacks_folder: OnceLock::new(),
            own: own.map(|(region, index)| (region, Arc::new(index))),
        }
    }

    /// The paths and lengths of the servers' logs.
    pub(crate) fn of_servers(&self) -> Result<Vec<(String, u64)>> {
        let of_meta = self.shared.table.is_meta();
        let logs = self.shared.root.logs()?.into_iter();
        Ok(logs.filter(|log| log.path.ends_with(".meta") == of_meta).map(|log| (log.path, log.len)).collect())
    }

    /// If no server has a log here, why a region may need one: edits after its last flush may be missing. Where the
    /// folder of logs exists, or only a table's folder was copied, the region must prove it. This is not damage: a
    /// copy of a running server's table looks like this.
    pub(crate) fn missing(&self, region: &Region, open: &OpenRegion) -> Result<Option<String>> {
        if !self.are_lacking()? {
            return Ok(None);
        }
        if let Some(known) = self.never_closed(region, open)? {
            return Ok(Some(known));
        }
        Ok(self
            .lacks_folder()?
            .then(|| format!("{}: it may have been written to since its last flush", region.describe())))
    }

    /// The proof that a region was not closed since it was opened, so that its log must be here.
    fn never_closed(&self, region: &Region, open: &OpenRegion) -> Result<Option<String>> {
        let root = &self.shared.root;
        let folder = join(&join(&root.table(&self.shared.table), &region.encoded), RECOVERED_EDITS);
        // HBase writes a file with a sequence id whenever a region is opened or closed; all edits up to that
        // id are in store files.
        let listed = root.list(&folder)?;
        let mark = |e| name_of(e).strip_suffix("seqid")?.trim_end_matches(['.', '_']).parse::<i64>().ok();
        let Some(mark) = listed.iter().filter_map(mark).max() else { return Ok(None) };
        // HBase has sorted the log of the region's server into these. Before 1.0, only opening a region left a mark
        // (`N_seqid`), so a region that was closed properly may look as if it was open.
        let tells_closing = listed.iter().any(|entry| name_of(entry).ends_with(".seqid"));
        if !self.recovered(region)?.is_empty() || !(tells_closing || self.lacks_folder()?) {
            return Ok(None);
        }
        let newest = open.files.iter().filter(|file| file.is_flushed()).map(|file| file.sequence_id).max();
        let region = region.describe();
        Ok(match newest {
            Some(newest) if newest > mark => {
                Some(format!("{region}: flushed at {newest}, and not closed since it was opened at {mark}"))
            }
            None if mark == CREATED => Some(format!("{region}: not flushed or closed since it was created")),
            _ => None,
        })
    }

    /// Notes that no edits are missing, even if the logs are: the table was closed, and so all of it was flushed.
    pub(crate) fn are_needless(&self) {
        self.lacks.get_or_init(|| false);
    }

    /// Whether no server has a log here.
    pub(crate) fn are_lacking(&self) -> Result<bool> {
        if let Some(lacks) = self.lacks.get() {
            return Ok(*lacks);
        }
        let lacks = self.shared.root.lacks_logs()?;
        Ok(*self.lacks.get_or_init(|| lacks))
    }

    /// Whether the root directory lacks the folder of all logs.
    pub(crate) fn lacks_folder(&self) -> Result<bool> {
        if let Some(lacks) = self.lacks_folder.get() {
            return Ok(*lacks);
        }
        let lacks = self.shared.root.lacks_log_folder()?;
        Ok(*self.lacks_folder.get_or_init(|| lacks))
    }

    /// Like [`missing`](Self::missing), for several regions: the result is for the first region that
    /// certainly needs the logs, or else for the first region.
    pub(crate) fn first_missing(&self, regions: &[Arc<Region>]) -> Result<Option<String>> {
        if !self.are_lacking()? {
            return Ok(None);
        }
        let mut first = None;
        for region in regions {
            let open = match self.shared.open(region) {
                Ok(open) => open,
                // Reading the region reports the error.
                Err(e) if Fault::is(&e) => continue,
                Err(e) => return Err(e),
            };
            if let Some(known) = self.never_closed(region, &open)? {
                return Ok(Some(known));
            }
            first = first.or(self.missing(region, &open)?);
        }
        Ok(first)
    }

    /// The `recovered.edits` files of a region.
    pub(crate) fn recovered(&self, region: &Region) -> Result<Vec<(String, u64)>> {
        let root = &self.shared.root;
        let folder = join(&join(&root.table(&self.shared.table), &region.encoded), RECOVERED_EDITS);
        let listed = root.list(&folder)?;
        let is_log = |name: &str| {
            let digits = name.strip_prefix('-').unwrap_or(name);
            !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        };
        let logs = listed.iter().filter(|e| !e.is_folder && e.len > 0 && is_log(name_of(e)));
        Ok(logs.map(|e| (e.path.clone(), e.len)).collect())
    }

    /// The locations of the edits in the servers' logs.
    pub(crate) fn index(&self) -> Result<Arc<Index>> {
        let mut held = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = held.as_ref() {
            return Ok(index.clone());
        }
        let mut index = Index::default();
        for (path, _) in self.of_servers()? {
            self.add(&mut index, path)?;
        }
        let index = Arc::new(index);
        *held = Some(index.clone());
        Ok(index)
    }

    /// The locations of a region's recovered edits.
    pub(crate) fn own(&self, region: &Region) -> Result<Arc<Index>> {
        if let Some((_, known)) = self.own.as_ref().filter(|(of, _)| *of == region.encoded) {
            return Ok(known.clone());
        }
        let mut own = Index::default();
        for (path, _) in self.recovered(region)? {
            self.add(&mut own, path)?;
        }
        Ok(Arc::new(own))
    }

    fn add(&self, index: &mut Index, path: String) -> Result<()> {
        let Shared { root, table, options, .. } = self.shared.as_ref();
        index.add(root, options.limits, table, path)
    }

    /// Logs that end within an edit, each with the offset at which that edit begins.
    pub(crate) fn cut(&self) -> Result<Vec<(String, u64)>> {
        Ok(self.index()?.cut.clone())
    }

    /// The number of cells of these regions that exist only in logs. Ignores damaged parts; fails if a log is
    /// unsupported.
    pub(crate) fn count(&self, regions: &[Arc<Region>], order: RowOrder) -> Result<usize> {
        let servers = self.index()?;
        let readable = |index: &Index| {
            index
                .faults
                .iter()
                .find(|fault| fault.is_unsupported())
                .map_or(Ok(()), |fault| Err(fault.to_error()))
        };
        readable(&servers)?;
        let mut cells = 0;
        for region in regions {
            readable(self.own(region)?.as_ref())?;
            if !servers.knows(&region.encoded) && self.recovered(region)?.is_empty() {
                continue;
            }
            let open = self.shared.open(region)?;
            let (edits, _) = self.edits(region, &open, order, OnError::Skip)?;
            cells += edits.iter().map(|e| e.starts.len()).sum::<usize>();
        }
        Ok(cells)
    }

    /// The unflushed edits of an open region. Damage to a log is either an error or recorded, depending on
    /// `on_error`.
    pub(crate) fn edits(
        &self,
        region: &Region,
        open: &OpenRegion,
        order: RowOrder,
        on_error: OnError,
    ) -> Result<(Vec<Edits>, Vec<Damage>)> {
        let servers = self.index()?;
        let own = self.own(region)?;
        let mut faults: Vec<Fault> = servers.faults.iter().chain(&own.faults).cloned().collect();
        if let Some(first) = faults.first().filter(|_| on_error == OnError::Raise) {
            return Err(first.to_error());
        }
        // Cells before the first cell that cannot be read are kept, as for a log that is cut off.
        let mut record = |e: Error, bytes: Range<u64>| -> Result<()> {
            if on_error == OnError::Raise || !Fault::is(&e) {
                return Err(e);
            }
            faults.push(Fault::from_error(&e, bytes, None));
            Ok(())
        };
        let mut by_family: Vec<Collected> =
            self.shared.families.iter().map(|_| Collected::default()).collect();
        for index in [&servers, &own] {
            for (path, source, edit) in index.of_region(&region.encoded) {
                let read = each_cell(source, edit, |cell| {
                    let family = self.shared.families.iter().position(|f| f.name.as_bytes() == cell.family);
                    let Some((place, collected)) = family.and_then(|i| Some((i, by_family.get_mut(i)?)))
                    else {
                        return Ok(());
                    };
                    if edit.sequence_id > flushed(open, place) { collected.take(cell) } else { Ok(()) }
                });
                if let Err(e) = read {
                    record(in_log(e, path), edit.at..edit.at.saturating_add(edit.len))?;
                }
            }
        }
        let limits = &self.shared.options.limits;
        let mut edits = Vec::new();
        for (family, collected) in by_family.into_iter().enumerate() {
            match collected.sorted(family, order, limits) {
                Ok(sorted) => edits.extend(sorted),
                Err(e) => record(e.within("write-ahead logs").within(region.describe()), 0..0)?,
            }
        }
        Ok((edits, faults.into_iter().map(|fault| fault.damage).collect()))
    }
}

/// The greatest sequence id of a family's files.
fn flushed(open: &OpenRegion, family: usize) -> i64 {
    let ids = open.files.iter().filter(|f| f.family == family).map(|f| f.sequence_id);
    ids.max().unwrap_or(i64::MIN)
}

/// Collects the cells that a family has in logs.
#[derive(Debug)]
struct Collected {
    plain: Plain,
    starts: Vec<usize>,
}

impl Default for Collected {
    fn default() -> Self {
        Self { plain: Plain::new(LAYOUT), starts: Vec::new() }
    }
}

impl Collected {
    fn take(&mut self, cell: &Cell<'_>) -> Result<()> {
        if cell.family == MARKS {
            return Ok(());
        }
        self.starts.push(self.plain.bytes.len());
        self.plain.cell(cell)
    }

    /// Sorts the cells. If cells are equal, the one that was written later is newer.
    fn sorted(self, family: usize, order: RowOrder, limits: &Limits) -> Result<Option<Edits>> {
        if self.starts.is_empty() {
            return Ok(None);
        }
        let bytes = self.plain.bytes;
        limits.block("edits that were not flushed", bytes.len() as u64)?;
        let mut cells = Vec::with_capacity(self.starts.len());
        for at in self.starts {
            cells.push(LAYOUT.cell(&bytes, at)?.0);
        }
        cells.reverse();
        cells.sort_by(|a, b| compare(order, a, b));
        let mut sorted = Plain::new(LAYOUT);
        let mut starts = Vec::with_capacity(cells.len());
        for cell in &cells {
            let at = u32::try_from(sorted.bytes.len());
            starts.push(at.map_err(|_| Error::unsupported("4 GiB of unflushed edits of one region"))?);
            sorted.cell(cell)?;
        }
        Ok(Some(Edits { family, cells: Bytes::from(sorted.bytes), starts: starts.into() }))
    }
}

/// The order of cells within one family, whichever file they are in.
pub(crate) fn compare(order: RowOrder, a: &Cell<'_>, b: &Cell<'_>) -> Ordering {
    let rows = order.compare(a.row, b.row);
    if rows != Ordering::Equal {
        return rows;
    }
    RowOrder::Bytes
        .compare(a.family, b.family)
        .then_with(|| RowOrder::Bytes.compare(a.qualifier, b.qualifier))
        .then_with(|| b.timestamp.cmp(&a.timestamp))
        .then_with(|| b.kind.cmp(&a.kind))
        .then_with(|| b.sequence_id.cmp(&a.sequence_id))
}
