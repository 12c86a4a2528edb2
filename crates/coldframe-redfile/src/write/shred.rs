//! Converts Arrow columns to levels and values, one column at a time (Dremel's column striping).
//!
//! The code descends a tree of arrays one level of nesting at a time, each level in one pass over all its values. It
//! keeps two lists for each leaf: *entries*, which become the leaf's levels, and *slots*. The slots are positions in
//! the child array, one for each entry with the highest definition level so far:
//!
//! | step | entries | slots |
//! |---|---|---|
//! | root | one per row: repetition 0, definition 0 | all rows |
//! | required | | |
//! | optional | for entries with a slot, the definition level grows by 1 if the slot is valid | slots that are valid |
//! | repeated | an entry with a slot becomes as many as its list has items, at least 1; items have a definition level higher by 1, and those after the first have the repetition level of this node | the items |
//!
//! Source: S. Melnik et al., *Dremel: Interactive Analysis of Web-Scale Datasets*, 2010, sections 4.1 and 4.2.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use coldframe_encoding::bits::{self, BitOrder};
use coldframe_encoding::{Error, Result};

use super::dense::{self, Dense};
use crate::layout::metadata::{CONVERTED_LIST, Repetition};
use crate::schema::{self, NodeKind};

/// How a field of Arrow is converted to levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// Values of one type.
    Leaf,
    /// The fields of a struct.
    Group(Vec<Node>),
    /// The items of a list or map.
    Repeated(Box<Node>),
    /// A value that may be null.
    Optional(Box<Node>),
}

impl Node {
    /// How the field of a schema node is converted to levels.
    pub(super) fn of(node: &schema::Node) -> Self {
        let item = match &node.kind {
            NodeKind::Leaf(..) => Self::Leaf,
            NodeKind::Group(children) => match children.as_slice() {
                [list] if node.converted_type == Some(CONVERTED_LIST) => return Self::list(node, list),
                children => Self::Group(children.iter().map(Self::of).collect()),
            },
        };
        Self::occurring(node.repetition, item)
    }

    fn list(node: &schema::Node, list: &schema::Node) -> Self {
        let items = match &list.kind {
            NodeKind::Group(items) => items.as_slice(),
            NodeKind::Leaf(..) => &[],
        };
        let item = items.first().map_or(Self::Leaf, Self::of);
        Self::occurring(node.repetition, Self::Repeated(Box::new(item)))
    }

    fn occurring(repetition: Repetition, item: Self) -> Self {
        match repetition {
            Repetition::Required => item,
            Repetition::Optional => Self::Optional(Box::new(item)),
            Repetition::Repeated => Self::Repeated(Box::new(item)),
        }
    }
}

/// The entries of a leaf.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leaf<'a> {
    /// The number of entries, including nulls and empty lists.
    pub(super) entries: usize,
    /// The repetition levels of the entries; `None` if all are 0.
    pub(super) repetition: Option<Vec<u8>>,
    /// The definition levels of the entries; `None` if all are 0.
    pub(super) definition: Option<Vec<u8>>,
    /// The values of the entries with the leaf's maximum definition level.
    pub(super) values: Dense<'a>,
}

/// Converts a column, whose first row is row `first` of its batch. The leaves are in the order of the schema.
pub(super) fn shred<'a>(node: &Node, array: &'a ArrayRef, first: usize) -> Result<Vec<Leaf<'a>>> {
    let mut leaves = Vec::new();
    let root = Entries {
        first,
        count: array.len(),
        repetition: None,
        definition: None,
        repeated: 0,
        defined: 0,
        slots: std::iter::once(0..array.len()).collect(),
    };
    root.descend(node, array.as_ref(), &mut leaves)?;
    Ok(leaves)
}

#[derive(Clone)]
struct Entries {
    /// The row of the first entry in the batch, for errors.
    first: usize,
    count: usize,
    repetition: Option<Vec<u8>>,
    definition: Option<Vec<u8>>,
    /// The levels at this point of the tree.
    repeated: u8,
    defined: u8,
    /// Adjacent slots are one range.
    slots: Vec<Range<usize>>,
}

/// The offsets and the items of a list, or of a map.
fn items_of(array: &dyn Array) -> Result<(&[i32], &dyn Array)> {
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            Ok((list.value_offsets(), list.values().as_ref()))
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            Ok((map.value_offsets(), map.entries()))
        }
        other => Err(mismatch("a list", other)),
    }
}

impl Entries {
    fn descend<'a>(mut self, node: &Node, array: &'a dyn Array, leaves: &mut Vec<Leaf<'a>>) -> Result<()> {
        match node {
            Node::Leaf => {
                self.expect_valid(array)?;
                leaves.push(Leaf {
                    values: dense::gather(array, &self.slots)?,
                    entries: self.count,
                    repetition: self.repetition,
                    definition: self.definition,
                });
            }
            // In this usual case, the leaf's values are taken without making a list of slots.
            Node::Optional(value) if **value == Node::Leaf && array.null_count() > 0 => {
                let validity = self.optional(array.nulls())?;
                leaves.push(Leaf {
                    values: dense::gather_valid(array, &self.slots, &validity)?,
                    entries: self.count,
                    repetition: self.repetition,
                    definition: self.definition,
                });
            }
            Node::Optional(value) => {
                let validity = self.optional(array.nulls())?;
                self.retain(&validity);
                // The remaining slots have no nulls.
                self.descend(value, array, leaves)?;
            }
            Node::Repeated(item) => {
                self.expect_valid(array)?;
                let (offsets, items) = items_of(array)?;
                self.repeated(offsets)?.descend(item, items, leaves)?;
            }
            Node::Group(children) => {
                self.expect_valid(array)?;
                let Some(group) = array.as_struct_opt() else {
                    return Err(mismatch("a struct", array.data_type()));
                };
                if group.num_columns() != children.len() {
                    let (expected, actual) = (children.len(), group.num_columns());
                    return Err(Error::schema(format!(
                        "expected a struct of {expected} fields, found {actual}"
                    )));
                }
                let Some(((last, before), (last_column, columns))) =
                    children.split_last().zip(group.columns().split_last())
                else {
                    return Err(Error::schema("expected a struct of at least one field, found none"));
                };
                for (child, column) in before.iter().zip(columns) {
                    self.clone().descend(child, column.as_ref(), leaves)?;
                }
                self.descend(last, last_column.as_ref(), leaves)?;
            }
        }
        Ok(())
    }

    /// Fails if a slot is null, since required and repeated values cannot be null.
    fn expect_valid(&self, array: &dyn Array) -> Result<()> {
        let Some(nulls) = array.nulls().filter(|n| n.null_count() > 0) else { return Ok(()) };
        match validity_bytes(Some(nulls), &self.slots)?.iter().position(|valid| *valid == 0) {
            None => Ok(()),
            Some(slot) => {
                let row = self.row_of(slot);
                Err(Error::schema(format!(
                    "expected no nulls in a field that is not nullable, found one in row {row} of the batch"
                )))
            }
        }
    }

    /// The row that a slot belongs to.
    fn row_of(&self, slot: usize) -> usize {
        let definition = self.definition.as_deref();
        let has_slot = |i: &usize| definition.is_none_or(|levels| levels.get(*i) == Some(&self.defined));
        let entry = (0..self.count).filter(has_slot).nth(slot).unwrap_or_default();
        let begun = match &self.repetition {
            Some(levels) => levels.iter().take(entry + 1).filter(|level| **level == 0).count(),
            None => entry + 1,
        };
        self.first + begun.saturating_sub(1)
    }

    /// Adds a definition level to the entries whose slots are valid. Returns a byte for each slot: 1 if it is
    /// valid, otherwise 0.
    fn optional(&mut self, nulls: Option<&NullBuffer>) -> Result<Vec<u8>> {
        let validity = validity_bytes(nulls, &self.slots)?;
        match &mut self.definition {
            None => self.definition = Some(validity.clone()),
            Some(levels) => {
                let mut next = validity.iter();
                // The entries at the current level have a slot each, in the same order.
                if validity.len() == levels.len() {
                    levels.iter_mut().zip(next).for_each(|(level, valid)| *level += valid);
                } else {
                    for level in levels.iter_mut().filter(|l| **l == self.defined) {
                        *level += next.next().copied().unwrap_or_default();
                    }
                }
            }
        }
        self.defined = deeper(self.defined)?;
        Ok(validity)
    }

    /// Drops the slots that are not valid.
    fn retain(&mut self, validity: &[u8]) {
        if !validity.contains(&0) {
            return;
        }
        let mut rest = validity;
        let mut kept = Vec::new();
        for slots in &self.slots {
            let mut start = slots.start;
            while start < slots.end {
                let run = super::definition::run_length(rest).min(slots.end - start).max(1);
                if rest.first() == Some(&1) {
                    push_range(&mut kept, start..start + run);
                }
                rest = rest.get(run..).unwrap_or_default();
                start += run;
            }
        }
        self.slots = kept;
    }

    /// Replaces each slot by the items of its list.
    fn repeated(self, offsets: &[i32]) -> Result<Self> {
        let (defined, repeated) = (deeper(self.defined)?, deeper(self.repeated)?);
        let mut slots = Vec::new();
        let mut lengths: Vec<usize> = Vec::with_capacity(self.slots.iter().map(Range::len).sum());
        let place = |offset: &i32| usize::try_from(*offset).unwrap_or_default(); // offsets are not negative
        for range in &self.slots {
            let offsets = offsets.get(range.start..=range.end).unwrap_or_default();
            if let (Some(first), Some(last)) = (offsets.first(), offsets.last()) {
                push_range(&mut slots, place(first)..place(last));
            }
            let ends = offsets.iter().skip(1);
            lengths
                .extend(offsets.iter().zip(ends).map(|(start, end)| place(end).saturating_sub(place(start))));
        }
        let items: usize = lengths.iter().sum();
        let count = self.count - lengths.len() + lengths.iter().map(|n| (*n).max(1)).sum::<usize>();
        let mut definition = Vec::with_capacity(count);
        let mut repetition = Vec::with_capacity(count);
        let mut lengths = lengths.into_iter();
        let mut put = |r: u8, d: u8| {
            repetition.push(r);
            match if d == self.defined { lengths.next() } else { None } {
                None | Some(0) => definition.push(d),
                Some(length) => {
                    repetition.resize(repetition.len() + length - 1, repeated);
                    definition.resize(definition.len() + length, defined);
                }
            }
        };
        match (&self.repetition, &self.definition) {
            (Some(r), Some(d)) => r.iter().zip(d).for_each(|(r, d)| put(*r, *d)),
            (None, Some(d)) => d.iter().for_each(|d| put(0, *d)),
            (Some(r), None) => r.iter().for_each(|r| put(*r, 0)),
            (None, None) => (0..self.count).for_each(|_| put(0, 0)),
        }
        debug_assert_eq!(items, slots.iter().map(Range::len).sum::<usize>());
        Ok(Self {
            first: self.first,
            count,
            repetition: Some(repetition),
            definition: Some(definition),
            repeated,
            defined,
            slots,
        })
    }
}

fn push_range(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ if range.is_empty() => {}
        _ => ranges.push(range),
    }
}

fn deeper(level: u8) -> Result<u8> {
    level.checked_add(1).ok_or_else(|| Error::unsupported("nesting of more than 255 levels"))
}

fn mismatch(expected: &str, actual: &DataType) -> Error {
    Error::schema(format!("expected {expected}, found {actual}"))
}

/// A byte for each slot: 1 if it is valid, otherwise 0.
fn validity_bytes(nulls: Option<&NullBuffer>, slots: &[Range<usize>]) -> Result<Vec<u8>> {
    let count = slots.iter().map(Range::len).sum();
    let Some(nulls) = nulls.filter(|n| n.null_count() > 0) else { return Ok(vec![1; count]) };
    let mut bytes = Vec::with_capacity(count);
    for range in slots {
        let first = nulls.offset() + range.start;
        // Unpacking begins at a byte boundary of the bitmap.
        let skipped = first % 8;
        let source = nulls.validity().get(first / 8..).unwrap_or_default();
        let mut unpacked = vec![0u8; skipped + range.len()];
        bits::unpack(BitOrder::Lsb, 1, source, &mut unpacked)?;
        bytes.extend_from_slice(unpacked.get(skipped..).unwrap_or_default());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
