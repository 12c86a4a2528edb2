//! Checks for contradictions between parts of a file, and decodes indexes, which a scan without a filter does
//! not read.

use std::collections::VecDeque;
use std::ops::Range;

use std::sync::Arc;

use arrow_array::ArrayRef;
use coldframe_core::io::read_coalesced;
use coldframe_core::{Damage, DamageLog, Error, OnError, PlanRequest, Result, Scan};

use crate::layout::proto::{BloomFilterIndex, RowIndex};
use crate::layout::stripe::{StreamKind, StreamPlace, Stripe, StripeLayout};
use crate::open::Shape;
use crate::prune::checks::Checks;
use crate::scan::column::input::StoredStreams;
use crate::scan::decode::StripeBatches;
use crate::scan::fetched;
use crate::scan::groups;
use crate::scan::job::{Run, ScanShared, StripeJob};
use crate::scan::ranges;

/// What the check covers besides values.
pub(crate) const BESIDES: &[&str] = &[
    "places of stripes and streams",
    "counts of rows",
    "ends of streams",
    "indexes",
    "statistics",
    "bloom filters",
];

/// Contradictions between parts of the file. The scan reports wrong numbers of rows.
pub(crate) fn contradictions(shape: &Arc<Shape>) -> Result<Vec<Damage>> {
    let (mut damage, mut indexes) = (Vec::new(), Vec::new());
    let mut add = |bytes: Range<u64>, e: Error| damage.push(Damage::from_error(&e, bytes, None));
    let tail = &shape.tail;
    let mut stripes: Vec<&Stripe> = shape.stripes.iter().collect();
    stripes.sort_by_key(|s| s.bytes.start);
    let data_end = tail.stripe_statistics_bytes.start;
    let mut end = 0;
    for stripe in stripes {
        if stripe.bytes.start < end || stripe.bytes.end > data_end {
            let e = Error::corrupt(format!(
                "expected a stripe in {end}..{data_end}, found it in {}..{}",
                stripe.bytes.start, stripe.bytes.end
            ));
            add(stripe.bytes.clone(), e.within(stripe.name()));
        }
        end = end.max(stripe.bytes.end);
        match shape.layout(stripe) {
            Ok(layout) => {
                let used = layout.streams.iter().map(|s| s.bytes.end).max().unwrap_or(stripe.bytes.start);
                if used < stripe.footer.start {
                    let e = Error::corrupt(format!(
                        "expected streams to byte {}, found them to byte {used}",
                        stripe.footer.start
                    ));
                    add(used..stripe.footer.start, e.within(stripe.name()));
                }
                for stream in &layout.streams {
                    if let Err(e) = check_index(shape, stripe, stream) {
                        if !e.is_damage() {
                            return Err(e);
                        }
                        add(stream.bytes.clone(), e.within(stripe.name()));
                    }
                }
                wrong_indexes(shape, stripe, &layout, &mut indexes)?;
            }
            // The scan has already reported this damage.
            Err(e) if e.is_damage() => {}
            Err(e) => return Err(e),
        }
    }
    if let Err(e) = shape.metadata() {
        if !e.is_damage() {
            return Err(e);
        }
        add(tail.metadata_bytes.clone(), e);
    }
    damage.extend(indexes);
    Ok(damage)
}

/// Adds the contradictions between the indexes of a stripe and its values: positions, statistics, bloom filters.
/// One column is in memory at a time.
fn wrong_indexes(
    shape: &Arc<Shape>,
    stripe: &Stripe,
    layout: &StripeLayout,
    into: &mut Vec<Damage>,
) -> Result<()> {
    let scan = Scan { on_error: OnError::Skip, ..Scan::default() };
    // The scan reports damage of the values themselves.
    let unused = DamageLog::default();
    let request = PlanRequest { decode: shape.schema.clone(), scan, damage: unused };
    let scan = Arc::new(ScanShared::new(shape.clone(), &request)?);
    let Some(groups) = groups::read(&scan, stripe, layout)?.filter(|_| stripe.rows > 0) else {
        return Ok(());
    };
    let count = groups.runs.len();
    let groups = groups::with_stripe(groups, &scan, stripe)?;
    let job = StripeJob {
        stripe: stripe.clone(),
        layout: layout.clone(),
        runs: [Run::new(0..stripe.rows, None)].into(),
        candidates: VecDeque::new(),
        groups: Some(Arc::new(groups)),
        of_scout: None,
        parts: ranges::whole(&scan, layout),
        deferred: None,
    };
    let (of_root, of_columns): (Vec<_>, Vec<_>) =
        job.parts.iter().cloned().partition(|part| part.column == 0);
    // In the order of the columns.
    let mut parts = of_columns.into_iter().peekable();
    let mut batches = StripeBatches::new(scan.clone(), job.clone(), StoredStreams::new());
    for (place, (id, field)) in scan.columns.iter().enumerate() {
        let Some(column) = shape.tree.get(*id) else { continue };
        let mut own = of_root.clone();
        while let Some(part) = parts.next_if(|part| part.column < column.end) {
            own.push(part);
        }
        let ranges: Vec<_> = own.iter().map(|part| part.bytes.clone()).collect();
        let mut streams = StoredStreams::new();
        fetched::add(&scan, &job, &own, read_coalesced(shape.source.as_ref(), &ranges)?, &mut streams)?;
        batches.set_streams(streams);
        let checks = Checks::read(shape, stripe, layout, (column, field), count)?;
        let also = |group: usize, values: &ArrayRef| match &checks {
            Some(checks) => checks.check(group, values),
            None => Ok(()),
        };
        into.extend(batches.wrong_index(place, &also)?);
    }
    Ok(())
}

/// Fails if an index stream does not decode.
fn check_index(shape: &Shape, stripe: &Stripe, stream: &StreamPlace) -> Result<()> {
    let readable = stream.variant == shape.encryption.variant_of(stream.column) || stream.variant.is_none();
    if !readable || stream.bytes.is_empty() {
        return Ok(());
    }
    match StreamKind::from_number(stream.kind) {
        Some(StreamKind::RowIndex) => shape.index_streams::<RowIndex>(stripe, &[stream]).map(drop),
        Some(StreamKind::BloomFilter | StreamKind::BloomFilterUtf8) => {
            shape.index_streams::<BloomFilterIndex>(stripe, &[stream]).map(drop)
        }
        _ => Ok(()),
    }
}
