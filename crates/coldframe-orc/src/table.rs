//! Implements an open ORC file as a table.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::evolved::Evolved;
use coldframe_core::{
    Checksums, ColumnSummary, Damage, Error, Extremes, Matching, Node, Notice, OnError, Plan, PlanRequest,
    Predicate, Proof, ReadAt, Result, Split, StoredDictionary, TableFile, Value,
};

use crate::declared;
use crate::declared::declare;
use crate::layout::encryption::key_unavailable;
use crate::layout::stripe::Stripe;
use crate::open::{Shape, read_tail};
use crate::options::{Masked, Options};
use crate::prune::stripes::StripePruner;
use crate::scan::job::ScanShared;
use crate::scan::plan::StripePlan;
use crate::scan::scout::ScoutShared;
use crate::{calendar, dictionaries, inspect, metadata, statistics, undeclared, verify};

/// An open ORC file.
#[derive(Clone, Debug)]
pub struct OrcFile {
    shape: Arc<Shape>,
}

impl OrcFile {
    /// Reads the tail.
    pub fn open(source: Arc<dyn ReadAt>, options: Options) -> Result<Self> {
        let mut tail = read_tail(source.as_ref(), &options.limits)?;
        // A file of 0 bytes has no columns that could be declared.
        if let Some(spec) = options.declared.as_ref().filter(|_| tail.file_len > 0) {
            declare(&mut tail.footer, spec, options.declares, options.converts, &options.limits)?;
        }
        Self::new(Shape::new(source, tail, options, Vec::new())?)
    }

    /// Opens a file with a known tail.
    pub(crate) fn new(mut shape: Shape) -> Result<Self> {
        undeclared::set_scales(&mut shape)?;
        Ok(Self { shape: Arc::new(shape) })
    }

    /// The file with the types of its Hive table, if such types are declared.
    pub(crate) fn converted(self) -> Result<Arc<dyn TableFile>> {
        let options = &self.shape.options;
        let version = options.hive_version;
        let conversions = match &options.declared {
            Some(spec) if options.converts => declared::conversions(&self.shape, spec, version)?,
            _ => Vec::new(),
        };
        Ok(Evolved::wrap(Arc::new(self), conversions))
    }

    /// The first item of user metadata with this name.
    pub fn user_metadata(&self, name: &str) -> Option<&[u8]> {
        let items = &self.shape.tail.footer.metadata;
        items.iter().find(|item| item.name() == name).map(|item| item.value())
    }

    /// Splits of about `target` bytes with the stripes that `keep` selects.
    fn cut(&self, target: u64, mut keep: impl FnMut(&Stripe) -> Result<bool>) -> Result<Vec<Split>> {
        let end = self.shape.tail.file_len;
        let mut stripes: Vec<&Stripe> = self.shape.stripes.iter().collect();
        stripes.sort_by_key(|s| s.bytes.start);
        let mut splits = Vec::new();
        let (mut current, mut bytes): (Option<Split>, u64) = (None, 0);
        for stripe in stripes {
            let (start, len) = (stripe.bytes.start, stripe.bytes.end - stripe.bytes.start);
            let is_kept = keep(stripe)?;
            let is_full = bytes > 0 && bytes.saturating_add(len) > target;
            // Stripes that begin at the same byte are in one split; this occurs only in damaged files.
            let ends = |split: &mut Split| start > split.range.start && (is_full || !is_kept);
            if let Some(mut split) = current.take_if(ends) {
                split.range.end = start;
                splits.push(split);
                bytes = 0;
            }
            if is_kept {
                let split =
                    current.get_or_insert(Split { part: 0, range: start..end.max(start), rows: Some(0) });
                split.rows = split.rows.map(|rows| rows.saturating_add(stripe.rows));
                bytes = bytes.saturating_add(len);
            }
        }
        splits.extend(current);
        Ok(splits)
    }

    /// With `masked` "error": fails if a requested column is encrypted and its key is missing.
    fn check_keys(&self, scan: &ScanShared) -> Result<()> {
        if self.shape.options.masked == Masked::Read {
            return Ok(());
        }
        for id in &scan.needed {
            if let Some(key) = self.shape.encryption.missing_key(*id) {
                let path = self.shape.tree.get(*id).map_or("", |c| c.path.as_str());
                return Err(key_unavailable(path, key));
            }
        }
        Ok(())
    }
}

impl TableFile for OrcFile {
    fn format(&self) -> &'static str {
        "orc"
    }

    fn has_placeholder_names(&self) -> bool {
        let numbers = self.shape.options.row_numbers.as_ref();
        let stored = self.schema().fields().iter().map(|field| field.name());
        let mut stored = stored.filter(|name| Some(*name) != numbers).peekable();
        stored.peek().is_some() && declared::are_placeholders(stored)
    }

    fn schema(&self) -> &SchemaRef {
        &self.shape.schema
    }

    /// The sum over the stripes, which a scan returns. Some writers omit the footer's number.
    fn row_count(&self) -> Option<u64> {
        Some(self.shape.stripes.iter().fold(0u64, |n, s| n.saturating_add(s.rows)))
    }

    /// If stripes may be missing, the number of rows is known only after a read.
    fn counts_by_reading(&self) -> bool {
        !self.shape.lost.is_empty()
    }

    fn metadata(&self) -> Result<Value> {
        Ok(metadata::metadata(&self.shape))
    }

    fn notices(&self) -> Result<Vec<Notice>> {
        let shape = &self.shape;
        let calendar = calendar::ambiguous(shape);
        if shape.options.masked != Masked::Read {
            return Ok(calendar.into_iter().collect());
        }
        let masked = shape.tree.columns().iter().filter_map(|c| {
            let key = shape.encryption.missing_key(c.id)?;
            Some(format!("`{}` (key `{key}`)", c.path))
        });
        let masked: Vec<String> = masked.collect();
        let masked = (!masked.is_empty()).then(|| {
            let columns = masked.join(", ");
            Notice::EncryptedColumns(format!(
                "encrypted columns without a key are read as their mask left them: {columns}"
            ))
        });
        Ok(calendar.into_iter().chain(masked).collect())
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let mut splits = self.cut(target, |_| Ok(true))?;
        // The splits cover the whole file.
        match splits.first_mut() {
            Some(first) => first.range.start = 0,
            None => splits.push(Split { part: 0, range: 0..self.shape.tail.file_len, rows: Some(0) }),
        }
        Ok(splits)
    }

    fn matching_splits(&self, target: u64, filter: &Predicate) -> Result<Option<Matching>> {
        // The losses belong to no stripe, so one of the splits must report them.
        if !self.shape.lost.is_empty() || self.shape.tail.metadata_bytes.is_empty() {
            return Ok(None);
        }
        let mut pruner = StripePruner::new(self.shape.clone(), filter);
        let mut pruned = 0;
        let splits = self.cut(target, |stripe| {
            let is_kept = pruner.stripe(stripe)?;
            pruned += u64::from(!is_kept);
            Ok(is_kept)
        })?;
        Ok(Some(Matching { splits, pruned }))
    }

    fn decodes_views(&self) -> bool {
        true
    }

    fn has_doubtful_rows(&self) -> bool {
        true
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        if split.part != 0 {
            return Err(Error::invalid(format!("expected part 0 of one file, found part {}", split.part)));
        }
        let scan = ScanShared::new(self.shape.clone(), request)?;
        self.check_keys(&scan)?;
        let inside = |s: &&Stripe| split.range.contains(&s.bytes.start);
        let stripes: VecDeque<Stripe> = self.shape.stripes.iter().filter(inside).cloned().collect();
        let limit = request.scan.limit.filter(|_| request.scan.predicate.is_none());
        // Under `skip` and `null` nothing is passed over: a filter must not change what is saved and recorded.
        let predicate = request.scan.predicate.as_ref().filter(|_| request.scan.on_error == OnError::Raise);
        let prune = predicate.map(|predicate| StripePruner::new(self.shape.clone(), predicate));
        let is_last = split.range.end >= self.shape.tail.file_len;
        let is_in_split = |d: &&Damage| {
            split.range.contains(&d.bytes.start) || (is_last && d.bytes.start >= split.range.end)
        };
        let mut raised = None;
        for lost in self.shape.lost.iter().filter(is_in_split) {
            if request.scan.on_error == OnError::Raise {
                raised = raised.or_else(|| Some(lost.to_error()));
            } else {
                request.damage.push(lost.clone());
            }
        }
        let scout = ScoutShared::new(&self.shape, request)?;
        Ok(Box::new(StripePlan::new(scan, scout, stripes, prune, limit, raised)))
    }

    fn statistics(&self) -> Result<Value> {
        statistics::statistics(&self.shape)
    }

    fn dictionaries(&self, column: &str, with: &mut dyn FnMut(StoredDictionary) -> Result<()>) -> Result<()> {
        dictionaries::each(&self.shape, column, with)
    }

    fn split_statistics(&self, split: &Split) -> Result<Value> {
        statistics::stated(&self.shape, &split.range)
    }

    fn column_summaries(&self, split: &Split) -> Result<Vec<Vec<ColumnSummary>>> {
        statistics::column_summaries(&self.shape, &split.range)
    }

    fn extremes(&self, split: &Split, columns: &[String], by_unit: bool) -> Result<Option<Vec<Extremes>>> {
        statistics::extremes::extremes(&self.shape, &split.range, columns, by_unit)
    }

    fn inspect(&self) -> Result<Node> {
        inspect::tree(&self.shape)
    }

    fn proof(&self) -> Proof {
        Proof { checksums: Checksums::None, besides: verify::BESIDES }
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        verify::contradictions(&self.shape)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
