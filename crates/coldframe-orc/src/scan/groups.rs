//! The row groups of a stripe as its footer and indexes state them: where they begin, and their statistics.
//!
//! ```text
//! ROW_INDEX of column 3     | positions, statistics | positions, statistics | ..      one entry for each row group
//! row group                 |           0           |           1           |
//! metadata of the file      statistics of each column in the stripe
//! ```
//!
//! None of this is trusted until the decoded values agree with it: see [`super::anchor`] and [`super::statements`].

use std::collections::HashMap;
use std::sync::Arc;

use coldframe_core::{Notice, OnError, Result};
use coldframe_encoding::codec::Algorithm;

use super::column::name;
use super::job::{Groups, Run, ScanShared};
use super::ranges::VALUES;
use crate::layout::index::{self, Positions};
use crate::layout::proto::{self, PositionIndex};
use crate::layout::stripe::{StreamKind, Stripe, StripeLayout};
use crate::layout::types::{Column, Kind};

/// A stripe as a single row group.
pub(crate) fn single(scan: &ScanShared, rows: u64) -> Groups {
    let located = vec![false; scan.columns.len()];
    Groups { runs: vec![Run::new(0..rows, None)], located, ..Groups::default() }
}

/// Reads the row indexes of the needed columns; `None` if they do not divide the stripe. Under `raise` all
/// columns must be located.
pub(crate) fn read(scan: &ScanShared, stripe: &Stripe, layout: &StripeLayout) -> Result<Option<Groups>> {
    let Some(stride) = scan.shape.stride() else { return Ok(None) };
    let Ok(count) = usize::try_from(stripe.rows.div_ceil(stride)) else { return Ok(None) };
    let indexes = match scan.shape.row_indexes(stripe, layout, &scan.needed) {
        Err(e) if e.is_confined() && scan.on_error == OnError::Raise => return Ok(None),
        Err(e) if e.is_confined() => read_each(scan, stripe, layout)?,
        indexes => indexes?,
    };
    let indexes: HashMap<usize, PositionIndex> =
        scan.needed.iter().copied().zip(indexes).filter_map(|(id, index)| Some((id, index?))).collect();
    // Only an index with as many entries confirms the number of row groups; the stride in the footer may
    // be false.
    if !indexes.values().any(|index| index.entry.len() >= count) {
        return Ok(None);
    }
    let begins = |id: &usize| begins(scan, *id, layout, indexes.get(id), count);
    let mut begins: HashMap<usize, Vec<Vec<_>>> =
        scan.needed.iter().filter_map(|id| Some((*id, begins(id)?))).collect();
    if scan.on_error == OnError::Raise {
        let lie = scan
            .needed
            .iter()
            .find_map(|id| contradiction(scan, *id, layout, indexes.get(id)?, begins.get(id)?));
        if let Some(lie) = lie {
            scan.damage.notify(Notice::WrongIndex(format!("{}: {lie}", stripe.name())));
            return Ok(None);
        }
    }
    let needed = |id: usize| {
        let end = scan.shape.tree.get(id).map_or(id, |column| column.end);
        scan.needed.iter().copied().filter(move |n| (id..end.max(id + 1)).contains(n))
    };
    let is_located = |id: usize| needed(id).all(|id| begins.contains_key(&id));
    let located: Vec<bool> = scan.columns.iter().map(|(id, _)| is_located(*id)).collect();
    let root = scan.needed.iter().take(1).all(|root| begins.contains_key(root));
    if !root || (scan.on_error == OnError::Raise && located.contains(&false)) {
        return Ok(None);
    }
    let mut runs = Vec::with_capacity(count);
    for group in 0..count as u64 {
        let at = usize::try_from(group).unwrap_or(usize::MAX);
        let all = begins.iter_mut().flat_map(|(id, of)| {
            let place = of.get_mut(at).map(std::mem::take).unwrap_or_default();
            place.into_iter().map(|(kind, position)| ((*id, kind), position))
        });
        let positions = Positions::new(all.collect());
        let start = group * stride;
        let rows = start..(start + stride).min(stripe.rows);
        runs.push(Run::new(rows, (group > 0).then(|| Arc::new(positions))));
    }
    let of_groups = indexes.into_iter().filter(|(_, index)| index.entry.len() == count);
    let of_groups = of_groups
        .map(|(id, index)| (id, index.entry.into_iter().map(|entry| entry.statistics).collect()))
        .collect();
    Ok(Some(Groups { runs, located, of_groups, of_stripe: HashMap::new() }))
}

/// Adds the statistics of the stripe's columns in the file's metadata. For encrypted columns, those describe masked
/// values; the statistics of the values are encrypted, too.
pub(crate) fn with_stripe(mut groups: Groups, scan: &ScanShared, stripe: &Stripe) -> Result<Groups> {
    let stated = scan.shape.stated(stripe)?.into_iter().enumerate();
    let is_plain = |id: usize| scan.shape.encryption.variant_of(id).is_none();
    groups.of_stripe = stated.filter(|(id, _)| is_plain(*id)).collect();
    groups.of_stripe.extend(scan.shape.stated_of_encrypted(stripe)?);
    Ok(groups)
}

/// The indexes of the needed columns, each read alone: a damaged index does not affect the other indexes.
fn read_each(
    scan: &ScanShared,
    stripe: &Stripe,
    layout: &StripeLayout,
) -> Result<Vec<Option<PositionIndex>>> {
    let of = |id: &usize| match scan.shape.row_indexes(stripe, layout, &[*id]) {
        Err(e) if e.is_confined() => Ok(None),
        index => index.map(|mut index| index.pop().flatten()),
    };
    scan.needed.iter().map(of).collect()
}

/// Where a row group begins in each stream of a column.
type Begins = Vec<(StreamKind, index::IndexPosition)>;

/// Where each row group after the first begins in the streams of a column; `None` if that is not stated.
fn begins(
    scan: &ScanShared,
    id: usize,
    layout: &StripeLayout,
    index: Option<&PositionIndex>,
    count: usize,
) -> Option<Vec<Begins>> {
    let column = scan.shape.tree.get(id)?;
    if has_no_streams(column, layout) {
        return Some(vec![Vec::new(); count]);
    }
    let (compression, short) = (scan.shape.tail.compression, scan.shape.quirks.short_decimals);
    let mut all = vec![Vec::new()];
    for group in 1..count {
        let numbers = &index?.entry.get(group)?.positions;
        all.push(index::positions(column, layout, compression, short, numbers).ok()?);
    }
    Some(all)
}

/// A contradiction between positions and statistics of an index: without a codec, the values of a row group
/// begin in DATA after the total length of all earlier values.
fn contradiction(
    scan: &ScanShared,
    id: usize,
    layout: &StripeLayout,
    index: &PositionIndex,
    begins: &[Begins],
) -> Option<String> {
    let (column, quirks) = (scan.shape.tree.get(id)?, scan.shape.quirks);
    let is_text = matches!(column.kind, Kind::String | Kind::Varchar | Kind::Binary);
    let is_direct = !index::is_dictionary(&layout.encoding(id));
    let is_plain = scan.shape.tail.compression.algorithm == Algorithm::None;
    if !(is_text && is_direct && is_plain && quirks.statements && quirks.string_statistics) {
        return None;
    }
    let mut length = 0u64;
    for (entry, begin) in index.entry.iter().zip(begins) {
        let data =
            begin.iter().find(|(kind, _)| *kind == StreamKind::Data).map(|(_, position)| position.chunk);
        if let Some(at) = data.filter(|at| *at != length) {
            let name = name(column);
            return Some(format!("{name}: expected a position of {length} in DATA, found {at}"));
        }
        let stats = entry.statistics.as_ref().and_then(proto::statistics)?;
        let texts = stats.string_statistics.and_then(|s| s.sum);
        let sum = texts.or(stats.binary_statistics.and_then(|s| s.sum));
        // A row group of nulls has no sum.
        let sum = sum.or((stats.number_of_values == Some(0)).then_some(0))?;
        length = length.checked_add(u64::try_from(sum).ok()?)?;
    }
    None
}

/// Whether a column has no stored values in a stripe, and so needs no positions.
fn has_no_streams(column: &Column, layout: &StripeLayout) -> bool {
    VALUES.iter().all(|kind| layout.stream(column.id, *kind).is_none_or(|p| p.bytes.is_empty()))
}
