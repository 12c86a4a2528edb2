//! An open ORC file.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::{
    Damage, Error, ErrorContext, Node, Plan, PlanRequest, ReadAt, Result, Split, TableFile, Value,
};

use crate::column::input::Dialect;
use crate::encryption::{Encryption, Masked, key_unavailable};
use crate::groups::StripePruner;
use crate::options::Options;
use crate::plan::{ScanContext, StripePlan};
use crate::stripe::Stripe;
use crate::tail::Tail;
use crate::types::TypeTree;
use crate::{arrow, calendar, inspect};

/// What is known of a file once it is open.
#[derive(Debug)]
pub struct Shape {
    /// Its bytes.
    pub source: Arc<dyn ReadAt>,
    /// Its tail.
    pub tail: Tail,
    /// Its types.
    pub tree: TypeTree,
    /// The same as Arrow's.
    pub schema: SchemaRef,
    /// Its stripes in order.
    pub stripes: Vec<Stripe>,
    /// Its keys.
    pub encryption: Encryption,
    /// Calendar and decimals.
    pub dialect: Dialect,
    /// What the user said.
    pub options: Options,
    /// What stands in no stripe of a file that lost its tail.
    pub lost: Vec<Damage>,
}

impl Shape {
    /// Rows of a row group; nothing without indexes.
    pub fn stride(&self) -> Option<u64> {
        self.tail.footer.row_index_stride.map(u64::from).filter(|stride| *stride > 0)
    }
}

/// An open ORC file.
#[derive(Clone, Debug)]
pub struct OrcFile {
    shape: Arc<Shape>,
}

impl OrcFile {
    /// Reads the tail.
    pub fn open(source: Arc<dyn ReadAt>, options: Options) -> Result<Self> {
        let tail = Tail::read(source.as_ref(), &options.limits)?;
        Self::new(source, tail, options, Vec::new())
    }

    /// With a tail that is known, or made up for a file that has lost its own.
    pub fn new(source: Arc<dyn ReadAt>, tail: Tail, options: Options, lost: Vec<Damage>) -> Result<Self> {
        let within = || "footer";
        let tree =
            TypeTree::new(&tail.footer.types, &options.limits).at(tail.footer_bytes.start).within(within)?;
        let schema =
            arrow::schema(&tree, &tail.footer, &options).at(tail.footer_bytes.start).within(within)?;
        let encryption = Encryption::new(&tail.footer, &tree.ends(), &options.keys)?;
        // Notices a wrong key before it makes noise of values.
        encryption.file_statistics(&tail.footer, tail.compression, &options.limits)?;
        let mut stripes = Vec::with_capacity(tail.footer.stripes.len());
        let mut rows = 0u64;
        for (number, stated) in tail.footer.stripes.iter().enumerate() {
            let stripe = Stripe::new(number, stated, rows, tail.file_len).at(tail.footer_bytes.start)?;
            rows = rows.saturating_add(stripe.rows);
            stripes.push(stripe);
        }
        let dialect =
            Dialect { hybrid: calendar::is_hybrid(&tail.footer), short_decimals: tail.has_short_decimals() };
        let shape = Shape { source, tail, tree, schema, stripes, encryption, dialect, options, lost };
        Ok(Self { shape: Arc::new(shape) })
    }

    /// What is known of it.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// The names of columns of a request that are only there masked, with the names of their keys.
    fn check_keys(&self, scan: &ScanContext) -> Result<()> {
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

    fn schema(&self) -> &SchemaRef {
        &self.shape.schema
    }

    /// The sum of the stripes: what is read. Some writers leave the file's own number out.
    fn row_count(&self) -> Option<u64> {
        Some(self.shape.stripes.iter().fold(0u64, |n, s| n.saturating_add(s.rows)))
    }

    fn metadata(&self) -> Result<Value> {
        Ok(inspect::metadata(&self.shape))
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let mut stripes: Vec<&Stripe> = self.shape.stripes.iter().collect();
        stripes.sort_by_key(|s| s.bytes.start);
        let mut splits = Vec::new();
        let (mut start, mut bytes, mut rows) = (0u64, 0u64, 0u64);
        for stripe in stripes {
            let len = stripe.bytes.end - stripe.bytes.start;
            if bytes > 0 && stripe.bytes.start > start && bytes.saturating_add(len) > target {
                splits.push(Split { part: 0, range: start..stripe.bytes.start, rows: Some(rows) });
                (start, bytes, rows) = (stripe.bytes.start, 0, 0);
            }
            bytes = bytes.saturating_add(len);
            rows = rows.saturating_add(stripe.rows);
        }
        splits.push(Split { part: 0, range: start..self.shape.tail.file_len.max(start), rows: Some(rows) });
        Ok(splits)
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        if split.part != 0 {
            return Err(Error::invalid(format!("expected part 0 of one file, found part {}", split.part)));
        }
        let scan = ScanContext::new(self.shape.clone(), request)?;
        self.check_keys(&scan)?;
        let inside = |s: &&Stripe| split.range.contains(&s.bytes.start);
        let stripes: VecDeque<Stripe> = self.shape.stripes.iter().filter(inside).cloned().collect();
        let limit = request.scan.limit.filter(|_| request.scan.predicate.is_none());
        let prune = request.scan.predicate.as_ref().map(|predicate| {
            Box::new(StripePruner::new(self.shape.clone(), predicate)) as Box<dyn crate::plan::Prune>
        });
        for lost in self.shape.lost.iter().filter(|d| split.range.contains(&d.bytes.start)) {
            request.damage.push(lost.clone());
        }
        Ok(Box::new(StripePlan::new(scan, stripes, prune, limit)))
    }

    fn statistics(&self) -> Result<Value> {
        crate::statistics::report::statistics(&self.shape)
    }

    fn inspect(&self) -> Result<Node> {
        inspect::tree(&self.shape)
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        inspect::contradictions(&self.shape)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
