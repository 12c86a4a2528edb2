//! Selects the valid log blocks, and merges two records with the same key.
//!
//! | payload | the merge of an older and a newer record |
//! |---|---|
//! | `filesystemMetadata` | the files of both lists; for a file in both, the larger size; files that the newer list marks as deleted are removed or, if the older list lacks them, stay marked as deleted |
//! | `ColumnStatsMetadata` | the newer record, if either is deleted or the newer record has tight bounds;
//! otherwise the smaller minimum, the larger maximum and the sums of counts and sizes |
//! | others | the newer record |
//!
//! As in Hudi, the logs are merged first, then the result is merged with the base file. With another order, a file
//! that was deleted and added again between two compactions would get a wrong size.

mod stats;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coldframe_core::{Limits, Result};

use crate::avro::Schema;
use crate::avro::datum::Datum;
use crate::log::{Block, BlockKind};
use crate::timeline::Timeline;

/// The instants that are valid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visible {
    /// Instants whose blocks are valid.
    pub valid: BTreeSet<String>,
    /// The metadata table's own timeline, if several commits append to the same log.
    pub appended: Option<Timeline>,
}

impl Visible {
    fn includes(&self, instant: &str) -> bool {
        self.valid.contains(instant) && self.appended.as_ref().is_none_or(|t| t.is_committed(instant))
    }
}

/// The valid blocks, in merge order, as indexes into `blocks`, the blocks of all logs of a slice. Corrupt
/// blocks are included if no rollback covers them, since they are damage. Blocks that a dying writer left
/// incomplete are not included. Blocks of an unknown version are included, except if the instant in the
/// file's name is not valid.
pub(crate) fn order(blocks: &[&Block], visible: &Visible) -> Vec<usize> {
    let mut queue: Vec<usize> = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        match block.kind {
            BlockKind::Command => {
                let target = block.target();
                queue.retain(|q| {
                    let taken =
                        blocks.get(*q).is_some_and(|b| b.kind == BlockKind::Corrupt || b.instant() == target);
                    !taken
                });
            }
            BlockKind::Corrupt
                if !block.instant().map_or(!block.cut, |instant| visible.includes(instant)) => {}
            BlockKind::Corrupt => queue.push(i),
            BlockKind::Unknown if block.instant().is_none_or(|instant| visible.includes(instant)) => {
                queue.push(i)
            }
            _ if block.instant().is_some_and(|instant| visible.includes(instant)) => queue.push(i),
            _ => {}
        }
    }
    if queue.iter().any(|q| blocks.get(*q).is_some_and(|b| b.compacted().is_some())) {
        return log_compacted(blocks, &queue);
    }
    queue
}

/// Orders blocks if some hold the merged records of others: such a block takes the position of the last block
/// that it replaces.
pub(crate) fn log_compacted(blocks: &[&Block], queue: &[usize]) -> Vec<usize> {
    let (mut instants, mut of_instant) = (Vec::new(), BTreeMap::<&str, Vec<usize>>::new());
    // A lost block with an unknown instant may be newer than any other block.
    let mut unplaced: Vec<usize> = Vec::new();
    for q in queue {
        let Some(instant) = blocks.get(*q).and_then(|b| b.instant()) else {
            unplaced.push(*q);
            continue;
        };
        let all = of_instant.entry(instant).or_default();
        if all.is_empty() {
            instants.push(instant);
        }
        all.push(*q);
    }
    let (mut merged_by, mut included) = (BTreeMap::<&str, &str>::new(), BTreeSet::new());
    let (mut chosen, mut outermost) = (Vec::new(), Vec::new());
    for (place, instant) in instants.iter().copied().enumerate().rev() {
        let first = of_instant.get(instant).and_then(|all| blocks.get(*all.first()?));
        let last = merged_by.get(instant).copied();
        if let Some(originals) = first.and_then(|b| b.compacted()) {
            if last.is_none() {
                outermost.push((place, instant));
            }
            merged_by.extend(originals.into_iter().map(|original| (original, last.unwrap_or(instant))));
            continue;
        }
        let last = last.unwrap_or(instant);
        if included.insert(last) {
            chosen.push((place, last));
        }
    }
    // The blocks for which these stand are not in the queue: their instants are outside the shown range, or they are torn.
    chosen.extend(outermost.into_iter().filter(|(_, instant)| !included.contains(instant)));
    chosen.sort_unstable();
    let places = chosen.into_iter().filter_map(|(_, instant)| of_instant.get(instant)).flatten().copied();
    places.chain(unplaced).collect()
}

/// An encoded record and the schema that it was written with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// The datum.
    pub datum: bytes::Bytes,
    /// The writer's schema.
    pub schema: Arc<Schema>,
}

/// Merges a key's record with a newer record, or with its deletion (`None`).
pub(crate) fn apply(older: Option<Record>, newer: Option<Record>, limits: &Limits) -> Result<Option<Record>> {
    match (older, newer) {
        (Some(old), Some(new)) => combine(old, new, limits).map(Some),
        (_, newer) => Ok(newer),
    }
}

/// The names of the fields with payloads that need merging.
const FILES: &str = "filesystemMetadata";
const STATS: &str = "ColumnStatsMetadata";

/// Whether the schema has a payload that needs merging. Otherwise the newer record replaces the older record,
/// and neither is decoded.
fn merges(schema: &Schema) -> bool {
    schema.fields().iter().any(|f| f.name == FILES || f.name == STATS)
}

/// Whether a record replaces all older records of its key.
pub(crate) fn replaces(record: &Record, limits: &Limits) -> Result<bool> {
    let schema = &record.schema;
    if !merges(schema) {
        return Ok(true);
    }
    let datum = Datum::decode(schema, &record.datum, limits)?;
    let absent = |name| datum.field(schema, schema.root(), name).is_none_or(|v| matches!(v, Datum::Null));
    Ok(absent(FILES) && absent(STATS))
}

fn combine(old: Record, new: Record, limits: &Limits) -> Result<Record> {
    if !merges(&new.schema) {
        return Ok(new);
    }
    let schema = new.schema.clone();
    let mut newer = Datum::decode(&schema, &new.datum, limits)?;
    let payload = |datum: &Datum<'_>, name: &str| {
        datum.field(&schema, schema.root(), name).is_some_and(|v| !matches!(v, Datum::Null))
    };
    let (files, stats) = (payload(&newer, FILES), payload(&newer, STATS));
    if !files && !stats {
        return Ok(new);
    }
    let old = resolve(&old, &schema, limits)?;
    let older = Datum::decode(&schema, &old.datum, limits)?;
    let merged = if files {
        merge_field(&schema, FILES, &older, &mut newer, |_, old, new| Ok(merged_files(old, new)))?
    } else {
        merge_field(&schema, STATS, &older, &mut newer, stats::merge)?
    };
    if !merged {
        return Ok(new);
    }
    let mut datum = Vec::with_capacity(new.datum.len());
    newer.encode(&mut datum);
    Ok(Record { datum: datum.into(), schema })
}

/// Converts the record to another schema.
pub(crate) fn resolve(record: &Record, to: &Arc<Schema>, limits: &Limits) -> Result<Record> {
    if Arc::ptr_eq(&record.schema, to) || record.schema == *to {
        return Ok(record.clone());
    }
    let value = Datum::decode(&record.schema, &record.datum, limits)?;
    let value = value.resolve((&record.schema, record.schema.root()), (to, to.root()))?;
    let mut datum = Vec::with_capacity(record.datum.len());
    value.encode(&mut datum);
    Ok(Record { datum: datum.into(), schema: to.clone() })
}

/// Puts the merged value of a field into the newer record; `false` if the newer record stays unchanged.
fn merge_field<'a>(
    schema: &Schema,
    name: &str,
    older: &Datum<'a>,
    newer: &mut Datum<'a>,
    merge: impl FnOnce((&Schema, usize), &Datum<'a>, &Datum<'a>) -> Result<Option<Datum<'a>>>,
) -> Result<bool> {
    let Some(index) = schema.fields().iter().position(|f| f.name == name) else { return Ok(false) };
    let of = schema.fields().get(index).map_or(schema.root(), |f| f.of);
    let (Datum::Record(old), Datum::Record(new)) = (older, newer) else { return Ok(false) };
    let (Some(old), Some(place)) = (old.get(index), new.get_mut(index)) else { return Ok(false) };
    if matches!(old.unwrap_union(), Datum::Null) {
        return Ok(false);
    }
    let branch = match place {
        Datum::Union(branch, _) => Some(*branch),
        _ => None,
    };
    let of = match (branch, schema.get(of)) {
        (Some(branch), crate::avro::schema::Type::Union(branches)) => {
            branches.get(branch).copied().unwrap_or(of)
        }
        _ => of,
    };
    let Some(merged) = merge((schema, of), old.unwrap_union(), place.unwrap_union())? else {
        return Ok(false);
    };
    *place = match branch {
        Some(branch) => Datum::Union(branch, Box::new(merged)),
        None => merged,
    };
    Ok(true)
}

/// The size of a file in a listing, and whether it was deleted, in the field order of `HoodieMetadataFileInfo`.
fn file_info(datum: &Datum<'_>) -> Option<(i64, bool)> {
    match datum.unwrap_union() {
        Datum::Record(fields) => match fields.as_slice() {
            [Datum::Long(size), Datum::Boolean(deleted)] => Some((*size, *deleted)),
            _ => None,
        },
        _ => None,
    }
}

/// Merges two listings; `None` if they are not listings. The result is sorted by name, since Java's map has
/// no order.
fn merged_files<'a>(old: &Datum<'a>, new: &Datum<'a>) -> Option<Datum<'a>> {
    let (Datum::Map(old), Datum::Map(new)) = (old, new) else { return None };
    let mut files: BTreeMap<&str, (i64, bool)> = BTreeMap::new();
    for (name, info) in old {
        files.insert(name, file_info(info)?);
    }
    for (name, info) in new {
        let (size, deleted) = file_info(info)?;
        match files.get(name).copied() {
            Some((_, false)) if deleted => {
                files.remove(name);
            }
            Some((_, true)) if deleted => {
                files.insert(name, (size, true));
            }
            Some((old_size, _)) => {
                files.insert(name, (size.max(old_size), false));
            }
            None => {
                files.insert(name, (size, deleted));
            }
        }
    }
    let entry =
        |(name, (size, deleted))| (name, Datum::Record(vec![Datum::Long(size), Datum::Boolean(deleted)]));
    Some(Datum::Map(files.into_iter().map(entry).collect()))
}

#[cfg(test)]
mod tests;
