//! The stripes of a split, and of each the streams to fetch.
//!
//! ```text
//! stripe   -- statistics of the stripe --> left out, or its footer is read
//! footer   -- statistics and bloom filters of row groups --> which row groups may match
//! streams of the columns asked for: all of them, or what the row groups take of them
//! ```
//!
//! A unit is a stripe. What a run of row groups takes of a stream begins where the index says and ends where the next group
//! begins, plus the chunks that a run of values may reach into.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, SchemaRef};
use coldframe_core::format::Fetch;
use coldframe_core::{Damage, DamageLog, Error, ErrorContext, OnError, Plan, PlanRequest, Result, Unit};

use crate::decode::DecodeStripe;
use crate::file::Shape;
use crate::groups::end_before;
use crate::index::{self, IndexReader, Positions, is_dictionary};
use crate::proto::PositionIndex;
use crate::stripe::{StreamKind, Stripe, StripeLayout};
use crate::types::{Column, Kind};

/// The streams that hold values.
const VALUES: [StreamKind; 5] = [
    StreamKind::Present,
    StreamKind::Data,
    StreamKind::Length,
    StreamKind::Secondary,
    StreamKind::DictionaryData,
];

/// What a filter can say of stripes and row groups before their values are read.
pub trait Prune: Send {
    /// Whether a stripe may hold matching rows.
    fn stripe(&mut self, stripe: &Stripe) -> Result<bool>;

    /// Which row groups of a stripe may; `None` where that cannot be told.
    fn row_groups(&mut self, stripe: &Stripe, layout: &StripeLayout) -> Result<Option<Vec<bool>>>;
}

/// What all stripes of a scan share.
pub struct ScanContext {
    /// The file.
    pub shape: Arc<Shape>,
    /// What is decoded: columns with their fields.
    pub columns: Vec<(usize, FieldRef)>,
    /// The same as a schema.
    pub schema: SchemaRef,
    /// All columns whose streams are needed.
    pub needed: Vec<usize>,
    /// Most rows of a batch.
    pub batch_rows: usize,
    /// What to do about damage.
    pub on_error: OnError,
    /// Where it is recorded.
    pub damage: DamageLog,
}

impl ScanContext {
    /// Finds the columns of a request.
    pub fn new(shape: Arc<Shape>, request: &PlanRequest) -> Result<Self> {
        let mut columns = Vec::with_capacity(request.decode.fields().len());
        let mut needed = Vec::new();
        if let Some(root) = shape.tree.root() {
            if root.kind == Kind::Struct {
                needed.push(root.id);
                let mut rest = root.children.iter().zip(&root.field_names);
                let stored = request.decode.fields().iter().filter(|_| !root.children.is_empty());
                for field in stored {
                    let found = rest.find(|(_, name)| *name == field.name());
                    let (id, _) =
                        found.ok_or_else(|| Error::schema(format!("no column `{}`", field.name())))?;
                    columns.push((*id, field.clone()));
                }
            } else {
                columns.extend(request.decode.fields().iter().map(|field| (root.id, field.clone())));
            }
        }
        for (id, field) in &columns {
            need(&shape, *id, field.data_type(), &mut needed)?;
        }
        Ok(Self {
            shape,
            columns,
            schema: request.decode.clone(),
            needed,
            batch_rows: request.scan.batch_rows.max(1),
            on_error: request.scan.on_error,
            damage: request.damage.clone(),
        })
    }
}

/// Adds `id` and those columns inside it that `data_type` has.
fn need(shape: &Shape, id: usize, data_type: &DataType, needed: &mut Vec<usize>) -> Result<()> {
    let Some(column) = shape.tree.get(id) else {
        return Err(Error::corrupt(format!("expected a type {id}, found none")));
    };
    needed.push(id);
    let child = |place: usize| column.children.get(place).copied().unwrap_or(usize::MAX);
    match data_type {
        DataType::Struct(fields) => {
            let mut rest = column.children.iter().zip(&column.field_names);
            for field in fields {
                let found = rest.find(|(_, name)| *name == field.name());
                let (id, _) = found.ok_or_else(|| Error::schema(format!("no column `{}`", field.name())))?;
                need(shape, *id, field.data_type(), needed)?;
            }
            Ok(())
        }
        DataType::List(item) => need(shape, child(0), item.data_type(), needed),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                fields.iter().enumerate().try_for_each(|(i, f)| need(shape, child(i), f.data_type(), needed))
            }
            _ => Ok(()),
        },
        DataType::Union(fields, _) => {
            fields.iter().enumerate().try_for_each(|(i, (_, f))| need(shape, child(i), f.data_type(), needed))
        }
        _ => Ok(()),
    }
}

/// Rows of a stripe that are decoded one behind the other.
#[derive(Clone, Debug)]
pub struct Run {
    /// Which rows of the stripe.
    pub rows: Range<u64>,
    /// Where they begin; nothing at the stripe's start.
    pub positions: Option<Arc<Positions>>,
    /// How many of them are not handed out.
    pub skip: u64,
}

/// A stripe and what is read of it.
pub struct StripeJob {
    /// The stripe.
    pub stripe: Stripe,
    /// Its footer.
    pub layout: StripeLayout,
    /// Rows to decode.
    pub runs: VecDeque<Run>,
    /// The row groups one by one, for going on behind damage; empty where the index does not say.
    pub groups: Vec<Run>,
    /// What is fetched.
    pub parts: Vec<PartPlan>,
}

/// Part of a stream to fetch.
#[derive(Clone, Debug)]
pub struct PartPlan {
    /// Its column.
    pub column: usize,
    /// Its kind.
    pub kind: StreamKind,
    /// Where in the stream it begins.
    pub start: u64,
    /// Its bytes in the file.
    pub bytes: Range<u64>,
}

/// Hands out stripes.
pub struct StripePlan {
    scan: Arc<ScanContext>,
    stripes: VecDeque<Stripe>,
    prune: Option<Box<dyn Prune>>,
    /// Rows that are still wanted, if nothing is filtered.
    limit: Option<u64>,
}

impl StripePlan {
    /// A plan over `stripes`. With a filter, `limit` says nothing about what to decode.
    pub fn new(
        scan: ScanContext,
        stripes: VecDeque<Stripe>,
        prune: Option<Box<dyn Prune>>,
        limit: Option<u64>,
    ) -> Self {
        Self { scan: Arc::new(scan), stripes, prune, limit }
    }

    /// The stripe's unit; `None` if no row of it is wanted.
    fn unit(&mut self, stripe: &Stripe) -> Result<Option<Unit>> {
        let shape = self.scan.shape.clone();
        let limits = &shape.options.limits;
        limits.unit_rows("a stripe", stripe.rows).at(stripe.bytes.start)?;
        if let Some(prune) = &mut self.prune
            && !prune.stripe(stripe)?
        {
            return Ok(None);
        }
        let columns = shape.tree.columns().len();
        let source = shape.source.as_ref();
        let layout =
            StripeLayout::read(source, stripe, shape.tail.compression, columns, &shape.encryption, limits)?;
        let wanted = match &mut self.prune {
            Some(prune) => prune.row_groups(stripe, &layout)?,
            None => self.first_rows(stripe),
        };
        if wanted.as_ref().is_some_and(|groups| groups.iter().all(|g| !g)) {
            return Ok(None);
        }
        let mut job = StripeJob {
            stripe: stripe.clone(),
            layout,
            runs: VecDeque::new(),
            groups: Vec::new(),
            parts: Vec::new(),
        };
        let careful = self.scan.on_error != OnError::Raise;
        let groups = if wanted.is_some() || careful { self.groups(&job)? } else { None };
        let wanted = wanted.filter(|w| groups.as_ref().is_some_and(|g| g.len() == w.len()));
        let whole = Run { rows: 0..stripe.rows, positions: None, skip: 0 };
        match (&wanted, &groups) {
            (Some(wanted), Some(groups)) if wanted.iter().any(|w| !w) => {
                job.runs = runs(groups, wanted).map(|(run, _)| run).collect();
                self.parts_of_runs(&mut job, groups, wanted);
            }
            _ => {
                job.runs.push_back(whole);
                self.whole_parts(&mut job);
            }
        }
        if careful {
            job.groups = groups.unwrap_or_default();
            if let Some(wanted) = wanted {
                let mut keep = wanted.into_iter();
                job.groups.retain(|_| keep.next().unwrap_or(true));
            }
        }
        Ok(Some(self.make(job)))
    }

    fn make(&self, job: StripeJob) -> Unit {
        let source = &self.scan.shape.source;
        let fetch =
            job.parts.iter().map(|p| Fetch { source: source.clone(), range: p.bytes.clone() }).collect();
        let rows = job.runs.iter().map(|r| r.rows.end - r.rows.start).sum();
        Unit {
            fetch,
            bytes: job.stripe.bytes.clone(),
            rows: Some(rows),
            structure: job.stripe.name(),
            decode: Box::new(DecodeStripe { scan: self.scan.clone(), job }),
        }
    }

    /// The row groups that the next `limit` rows are in.
    fn first_rows(&mut self, stripe: &Stripe) -> Option<Vec<bool>> {
        let limit = self.limit.as_mut()?;
        let wanted = *limit;
        *limit = limit.saturating_sub(stripe.rows);
        let stride = self.scan.shape.stride()?;
        if wanted >= stripe.rows {
            return None;
        }
        let count = usize::try_from(stripe.rows.div_ceil(stride)).ok()?;
        Some((0..count as u64).map(|group| group * stride < wanted).collect())
    }

    /// Where the row groups begin; nothing if the indexes of the columns needed do not say.
    fn groups(&self, job: &StripeJob) -> Result<Option<Vec<Run>>> {
        let shape = &self.scan.shape;
        let Some(stride) = shape.stride() else { return Ok(None) };
        let reader = IndexReader {
            source: shape.source.as_ref(),
            compression: shape.tail.compression,
            encryption: &shape.encryption,
            limits: &shape.options.limits,
        };
        let indexes = match reader.row_indexes(&job.stripe, &job.layout, &self.scan.needed) {
            Ok(indexes) => indexes,
            // An index only saves work.
            Err(e) if e.is_damage() => return Ok(None),
            Err(e) => return Err(e),
        };
        Ok(self.groups_by(job, &indexes, stride))
    }

    fn groups_by(&self, job: &StripeJob, indexes: &[Option<PositionIndex>], stride: u64) -> Option<Vec<Run>> {
        let shape = &self.scan.shape;
        let count = usize::try_from(job.stripe.rows.div_ceil(stride)).ok()?;
        let mut groups = Vec::with_capacity(count);
        for group in 0..count {
            let mut all = Vec::new();
            for (id, index) in self.scan.needed.iter().zip(indexes).filter(|_| group > 0) {
                let column = shape.tree.get(*id)?;
                if has_no_streams(column, &job.layout) {
                    continue;
                }
                let numbers = &index.as_ref()?.entry.get(group)?.positions;
                let short = shape.dialect.short_decimals;
                let found =
                    index::positions(column, &job.layout, shape.tail.compression, short, numbers).ok()?;
                all.extend(found.into_iter().map(|(kind, position)| ((*id, kind), position)));
            }
            let start = group as u64 * stride;
            let rows = start..(start + stride).min(job.stripe.rows);
            groups.push(Run { rows, positions: (group > 0).then(|| Arc::new(Positions::new(all))), skip: 0 });
        }
        Some(groups)
    }

    /// All streams of the columns needed.
    fn whole_parts(&self, job: &mut StripeJob) {
        for id in &self.scan.needed {
            for kind in VALUES {
                if let Some(place) = job.layout.stream(*id, kind) {
                    job.parts.push(PartPlan { column: *id, kind, start: 0, bytes: place.bytes.clone() });
                }
            }
        }
    }

    /// What the wanted row groups take of them.
    fn parts_of_runs(&self, job: &mut StripeJob, groups: &[Run], wanted: &[bool]) {
        let compression = self.scan.shape.tail.compression;
        let mut parts = Vec::new();
        for id in &self.scan.needed {
            let dictionary = is_dictionary(&job.layout.encoding(*id));
            for kind in VALUES {
                let Some(place) = job.layout.stream(*id, kind) else { continue };
                let whole = kind == StreamKind::DictionaryData || (dictionary && kind == StreamKind::Length);
                if whole {
                    parts.push(PartPlan { column: *id, kind, start: 0, bytes: place.bytes.clone() });
                    continue;
                }
                let length = place.bytes.end - place.bytes.start;
                let at = |group: &Run| group.positions.as_ref().map(|p| p.of(*id, kind)).unwrap_or_default();
                for (_, range) in runs(groups, wanted) {
                    let start = groups.get(range.start).map_or(0, |first| at(first).chunk).min(length);
                    let later = groups.iter().skip(range.end).map(|group| at(group).chunk);
                    let end = groups
                        .get(range.end)
                        .map_or(length, |next| end_before(at(next), later, compression).min(length));
                    let end = end.clamp(start, length);
                    let bytes = place.bytes.start + start..place.bytes.start + end;
                    parts.push(PartPlan { column: *id, kind, start, bytes });
                }
            }
        }
        job.parts = parts;
    }
}

/// Whether a column has nothing in a stripe that an index could say more about.
fn has_no_streams(column: &Column, layout: &StripeLayout) -> bool {
    VALUES.iter().all(|kind| layout.stream(column.id, *kind).is_none_or(|p| p.bytes.is_empty()))
}

/// The runs of wanted groups, with which groups they are.
fn runs<'a>(groups: &'a [Run], wanted: &'a [bool]) -> impl Iterator<Item = (Run, Range<usize>)> + 'a {
    let mut at = 0;
    std::iter::from_fn(move || {
        let is = |i: usize| wanted.get(i).copied().unwrap_or(false);
        while at < groups.len() && !is(at) {
            at += 1;
        }
        let first = groups.get(at)?;
        let start = at;
        while is(at) {
            at += 1;
        }
        let last = groups.get(at - 1)?;
        let run = Run { rows: first.rows.start..last.rows.end, positions: first.positions.clone(), skip: 0 };
        Some((run, start..at))
    })
}

impl Plan for StripePlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        while let Some(stripe) = self.stripes.pop_front() {
            if stripe.rows == 0 || self.limit == Some(0) {
                continue;
            }
            match self.unit(&stripe) {
                Ok(Some(unit)) => return Ok(Some(unit)),
                Ok(None) => {}
                Err(e) if self.scan.on_error != OnError::Raise && e.is_damage() => {
                    let e = e.within(stripe.name());
                    self.scan.damage.push(Damage::from_error(&e, stripe.bytes.clone(), Some(stripe.rows)));
                }
                Err(e) => return Err(e.within(stripe.name()).at(stripe.bytes.start)),
            }
        }
        Ok(None)
    }
}
