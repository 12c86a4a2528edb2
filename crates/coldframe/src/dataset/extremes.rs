//! `count`, `min` and `max` over a split, if the metadata of its file state them exactly.

use coldframe_core::{Extremes, OnError, Result, Scan};

use super::fragment::Adaptation;
use super::openings::in_parallel;
use super::plan::Split;
use super::scan::{ScanBuilder, opened};
use crate::File;
use crate::opened::Opened;

impl Split {
    /// [`coldframe_core::TableFile::extremes`] for the columns of a request, unit by unit. `None` if the rows must be
    /// decoded, for example because a filter needs their values or because damaged rows would be skipped.
    pub fn extremes(&self, scan: &Scan) -> Result<Option<Vec<Extremes>>> {
        if leaves_rows_out(scan) {
            return Ok(None);
        }
        let (file, cut) = self.open_cut()?;
        let opened = opened(file, self.file.fragment.as_ref(), scan, |_| Ok(cut))?;
        opened.map_or(Ok(Some(Vec::new())), |opened| opened.extremes(false))
    }
}

impl ScanBuilder {
    /// The same for some of the table's files: opens the files, and returns for each one the extremes of the
    /// requested rows, or `None` if it cannot be opened. `by_unit` as in
    /// [`coldframe_core::TableFile::extremes`].
    pub fn extremes(&self, files: &[usize], by_unit: bool) -> Result<Vec<Option<Vec<Extremes>>>> {
        let (this, files, scan) = (self.clone(), files.to_vec(), self.request()?);
        in_parallel(files.len(), move |at| {
            let Some(at) = files.get(at) else { return Ok(None) };
            // The error of a file that cannot be opened is reported when its rows are read.
            let Some(file) = this.dataset().open_or_leave(*at)? else { return Ok(None) };
            let opened = this.opened_whole(file, *at, &scan)?;
            opened.map_or(Ok(Some(Vec::new())), |opened| opened.extremes(by_unit))
        })
    }

    /// Whether the first file's metadata answer the request, so that its rows need not be read. If the
    /// request has no columns, the answer is the number of passing rows; otherwise extremes of its columns
    /// that `is_enough` accepts. False if the file is not from a listing, or cannot be opened.
    pub fn metadata_suffice(&self, is_enough: impl Fn(&[Extremes]) -> bool) -> Result<bool> {
        let scan = self.request()?;
        if leaves_rows_out(&scan) {
            return Ok(false);
        }
        let first = self.matching(&scan)?.first().copied();
        let Some(first) = first.filter(|at| self.known(*at).is_some()) else { return Ok(false) };
        let Some(file) = self.dataset().open_or_leave(first)? else { return Ok(false) };
        let Some(opened) = self.opened_whole(file, first, &scan)? else { return Ok(false) };
        if scan.columns.as_ref().is_some_and(Vec::is_empty) {
            return Ok(!opened.needs_rows() && opened.file.table.row_count().is_some());
        }
        Ok(opened.extremes(false)?.is_some_and(|units| is_enough(&units)))
    }

    fn opened_whole(&self, file: File, at: usize, scan: &Scan) -> Result<Option<Opened>> {
        opened(file, Some(&self.dataset().fragment(at)?), scan, |file| file.table.splits(u64::MAX))
    }
}

/// Whether damage or a limit may leave rows out. If so, only reading shows which rows belong to the result.
fn leaves_rows_out(scan: &Scan) -> bool {
    scan.on_error != OnError::Raise || scan.limit.is_some()
}

impl Opened {
    /// Whether counting the passing rows needs the rows themselves.
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
            let Some(of_split) = table.extremes(split, &columns, by_unit).map_err(|e| self.file.named(e))?
            else {
                return Ok(None);
            };
            units.extend(of_split);
        }
        match adaptation {
            Some(adaptation) => {
                units.iter().map(|unit| adaptation.extremes(unit)).collect::<Result<_>>().map(Some)
            }
            None => Ok(Some(units)),
        }
    }
}
