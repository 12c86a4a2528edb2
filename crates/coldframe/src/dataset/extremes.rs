//! What `count`, `min` and `max` over a split give, as far as its file's metadata say it exactly.

use coldframe_core::{Extremes, OnError, Result, Scan};

use super::fragment::Adaptation;
use super::openings::side_by_side;
use super::plan::Split;
use super::scan::{ScanBuilder, opened};
use crate::File;
use crate::opened::Opened;

impl Split {
    /// The same as [`coldframe_core::TableFile::extremes`] for the columns of a request, unit by unit. `None` where the rows have
    /// to be decoded: also where a filter needs their values, and where damaged rows would be left out.
    pub fn extremes(&self, scan: &Scan) -> Result<Option<Vec<Extremes>>> {
        if leaves_rows_out(scan) {
            return Ok(None);
        }
        let (file, cut) = self.open_cut()?;
        let found = opened(file, self.file.fragment.as_ref(), scan, |_| Ok(cut))?;
        found.map_or(Ok(Some(Vec::new())), |found| found.extremes(false))
    }
}

impl ScanBuilder {
    /// The same of some of the table's files, all of which are opened: for each file what is known of the rows that are asked
    /// for, and nothing of a file that cannot be opened. `by_unit` as in [`coldframe_core::TableFile::extremes`].
    pub fn extremes(&self, files: &[usize], by_unit: bool) -> Result<Vec<Option<Vec<Extremes>>>> {
        let (asked, files, scan) = (self.clone(), files.to_vec(), self.request()?);
        side_by_side(files.len(), move |at| {
            let Some(at) = files.get(at) else { return Ok(None) };
            // Reported when its rows are read.
            let Some(file) = asked.dataset().open_or_leave(*at)? else { return Ok(None) };
            let found = asked.opened_whole(file, *at, &scan)?;
            found.map_or(Ok(Some(Vec::new())), |found| found.extremes(by_unit))
        })
    }

    /// Whether the metadata of the first file answer without its rows: how many of them pass, if the request has no columns;
    /// otherwise extremes of its columns that `is_enough` accepts. False if no listing has found the file, or if it cannot be opened.
    pub fn first_says(&self, is_enough: impl Fn(&[Extremes]) -> bool) -> Result<bool> {
        let scan = self.request()?;
        if leaves_rows_out(&scan) {
            return Ok(false);
        }
        let first = self.matching(&scan)?.first().copied();
        let Some(first) = first.filter(|at| self.known(*at).is_some()) else { return Ok(false) };
        let Some(file) = self.dataset().open_or_leave(first)? else { return Ok(false) };
        let Some(found) = self.opened_whole(file, first, &scan)? else { return Ok(false) };
        if scan.columns.as_ref().is_some_and(Vec::is_empty) {
            return Ok(!found.needs_rows() && found.file.table.row_count().is_some());
        }
        Ok(found.extremes(false)?.is_some_and(|units| is_enough(&units)))
    }

    fn opened_whole(&self, file: File, at: usize, scan: &Scan) -> Result<Option<Opened>> {
        opened(file, Some(&self.dataset().fragment(at)?), scan, |file| file.table.splits(u64::MAX))
    }
}

/// Whether damage or a limit may leave rows out: then only reading shows which ones count.
fn leaves_rows_out(scan: &Scan) -> bool {
    scan.on_error != OnError::Raise || scan.limit.is_some()
}

impl Opened {
    /// Whether only the rows themselves can tell which of them there are, and pass.
    fn needs_rows(&self) -> bool {
        let filters =
            self.scan.predicate.is_some() || self.adaptation.as_ref().is_some_and(Adaptation::filters);
        filters || self.file.table.counts_by_reading()
    }

    fn extremes(&self, by_unit: bool) -> Result<Option<Vec<Extremes>>> {
        let (table, adaptation) = (&self.file.table, self.adaptation.as_ref());
        if self.needs_rows() {
            return Ok(None);
        }
        let all = || table.schema().fields().iter().map(|field| field.name().clone()).collect();
        let columns = self.scan.columns.clone().unwrap_or_else(all);
        let mut units = Vec::new();
        for split in &self.splits {
            let Some(found) = table.extremes(split, &columns, by_unit).map_err(|e| self.file.named(e))?
            else {
                return Ok(None);
            };
            units.extend(found);
        }
        match adaptation {
            Some(adaptation) => {
                units.iter().map(|unit| adaptation.extremes(unit)).collect::<Result<_>>().map(Some)
            }
            None => Ok(Some(units)),
        }
    }
}
