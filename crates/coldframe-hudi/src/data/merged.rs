//! The log records of a file group by key, and their effect on the rows of the base file.
//!
//! The records of all blocks are in one batch. A merged record is a row of that batch, or a row for each column if
//! it is made of several, or a delete.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use coldframe_core::{Error, Result};

use crate::data::order::{Delete, Order};
use crate::data::rules::{Fill, Rules, Step};
use crate::data::table_schema::META;

/// In place of a row of the logs: the value is that of the base row.
pub(crate) const OLDER: u32 = u32::MAX;

/// Where the values of a record are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cells {
    /// All in one row.
    Row(u32),
    /// In a row for each column.
    Each(Box<[u32]>),
}

impl Cells {
    /// The row of a column's value.
    pub(crate) fn at(&self, column: usize) -> u32 {
        match self {
            Self::Row(row) => *row,
            Self::Each(rows) => rows.get(column).copied().unwrap_or(OLDER),
        }
    }
}

/// The merged log records of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The values; `None` if the key is deleted.
    pub cells: Option<Cells>,
    /// The ordering value.
    pub order: Order,
    /// Whether it is a row that is marked as deleted.
    pub is_flagged: bool,
}

impl Entry {
    /// Whether it deletes whatever the ordering values are.
    fn always_deletes(&self) -> bool {
        self.cells.is_none() && self.order == Order::Natural
    }

    fn is_deleted(&self) -> bool {
        self.cells.is_none() || self.is_flagged
    }
}

/// Which record of a key a row shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The base row.
    Base,
    /// A record of the logs, with the base row's values in cells that are [`OLDER`].
    Cells(Cells),
    /// None.
    Deleted,
}

/// The records of a group's logs by key.
#[derive(Debug)]
pub(crate) struct Merged {
    rules: Rules,
    /// All records of the logs.
    pub records: RecordBatch,
    /// For each column, the values that a winner takes from the other record.
    fills: Vec<Filled>,
    by_key: HashMap<Box<[u8]>, u32>,
    entries: Vec<Entry>,
    /// Whether a base row has the key.
    seen: Vec<bool>,
}

/// How the values of a column are filled.
#[derive(Clone, Debug)]
enum Filled {
    /// Meta columns: the later record's.
    Meta,
    /// Null, or this default.
    Default(Option<ArrayRef>),
}

/// A record of the logs.
pub(crate) struct LogRecord<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its values.
    pub cells: Cells,
    /// Its ordering value.
    pub order: Order,
    /// Whether it is marked as deleted.
    pub is_flagged: bool,
}

impl Merged {
    /// No keys yet. `defaults`: for each column, an array of one row with the schema's default, unless that is null.
    pub(crate) fn new(rules: Rules, records: RecordBatch, defaults: &HashMap<String, ArrayRef>) -> Self {
        let schema = records.schema();
        let fills = schema.fields().iter().map(|f| match META.contains(&f.name().as_str()) {
            true => Filled::Meta,
            false => Filled::Default(defaults.get(f.name()).cloned()),
        });
        let fills = fills.collect();
        Self { rules, records, fills, by_key: HashMap::new(), entries: Vec::new(), seen: Vec::new() }
    }

    /// Merges a record into what came before it.
    pub(crate) fn add(&mut self, record: LogRecord<'_>) -> Result<()> {
        let LogRecord { key, cells, order, is_flagged } = record;
        let new = Entry { cells: Some(cells), order, is_flagged };
        let Some(place) = self.by_key.get(key).copied() else { return self.insert(key, new) };
        let Some(old) = self.entry(place) else { return Ok(()) };
        let step = self.rules.logs;
        // A delete of Hudi 0.x has no order: any later record wins.
        let is_free = old.always_deletes() || (self.rules.deletes_win && old.cells.is_none());
        let keeps = !is_free && step.by_order && beats(&old.order, &new.order, step);
        let merged = match (keeps, step.fill) {
            (true, Fill::None) => return Ok(()),
            (false, Fill::None) => self.over(new, old),
            (true, fill) => self.filled(old, &new, fill, true),
            (false, fill) => self.filled(&new, old, fill, false),
        };
        self.put(place, merged)
    }

    /// Merges a delete into what came before it.
    pub(crate) fn delete(&mut self, delete: Delete) -> Result<()> {
        let Delete { key, order } = delete;
        let new = Entry { cells: None, order, is_flagged: false };
        let Some(place) = self.by_key.get(key.as_slice()).copied() else { return self.insert(&key, new) };
        let is_by_order = self.rules.logs.by_order && new.order != Order::Natural;
        match self.entry(place) {
            Some(old) if is_by_order && old.order.exceeds(&new.order) => Ok(()),
            _ => self.put(place, new),
        }
    }

    fn entry(&self, place: u32) -> Option<&Entry> {
        self.entries.get(usize::try_from(place).ok()?)
    }

    fn insert(&mut self, key: &[u8], entry: Entry) -> Result<()> {
        let place = u32::try_from(self.entries.len()).ok().filter(|place| *place < OLDER);
        let place =
            place.ok_or_else(|| Error::unsupported("more than 2^32 keys in the logs of a file group"))?;
        self.entries.push(entry);
        self.seen.push(false);
        self.by_key.insert(key.into(), place);
        Ok(())
    }

    fn put(&mut self, place: u32, entry: Entry) -> Result<()> {
        if let Some(known) = usize::try_from(place).ok().and_then(|at| self.entries.get_mut(at)) {
            *known = entry;
        }
        Ok(())
    }

    /// A record over an older one, which supplies the columns that the newer one lacks.
    fn over(&self, new: Entry, old: &Entry) -> Entry {
        let cells = match (&new.cells, &old.cells) {
            (Some(Cells::Each(rows)), Some(below)) if !old.is_flagged => {
                let each = rows.iter().enumerate();
                let each = each.map(|(column, row)| if *row == OLDER { below.at(column) } else { *row });
                Some(Cells::Each(each.collect()))
            }
            (cells, _) => cells.clone(),
        };
        Entry { cells, ..new }
    }

    /// The winner with values of the other. `is_old`: whether the winner is the older one of both.
    fn filled(&self, winner: &Entry, other: &Entry, fill: Fill, is_old: bool) -> Entry {
        let (Some(own), Some(below)) = (&winner.cells, &other.cells) else { return winner.clone() };
        if winner.is_flagged || other.is_flagged {
            return winner.clone();
        }
        let each = (0..self.fills.len()).map(|column| {
            let (row, below) = (own.at(column), below.at(column));
            match self.fills.get(column) {
                Some(Filled::Meta) if is_old && self.rules.by_payload => below,
                Some(Filled::Meta) => row,
                _ if row == OLDER || self.is_filled(column, row, fill) => below,
                _ => row,
            }
        });
        Entry { cells: Some(Cells::Each(each.collect())), ..winner.clone() }
    }

    /// Whether the value in a row of the logs is replaced by the other record's.
    fn is_filled(&self, column: usize, row: u32, fill: Fill) -> bool {
        let (Some(values), Ok(row)) = (self.records.columns().get(column), usize::try_from(row)) else {
            return false;
        };
        self.gives_way(column, values, row, fill)
    }

    fn gives_way(&self, column: usize, values: &ArrayRef, row: usize, fill: Fill) -> bool {
        match fill {
            Fill::None => false,
            Fill::Defaults => match self.fills.get(column) {
                Some(Filled::Default(Some(default))) => values.slice(row, 1).to_data() == default.to_data(),
                _ => values.is_null(row),
            },
            Fill::Unavailable => {
                let text = self.rules.unavailable.as_bytes();
                !values.is_null(row)
                    && match values.data_type() {
                        arrow_schema::DataType::Utf8 => {
                            values.as_string::<i32>().value(row).as_bytes() == text
                        }
                        arrow_schema::DataType::Binary => values.as_binary::<i32>().value(row) == text,
                        _ => false,
                    }
            }
        }
    }

    /// Whether no key is in the logs.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The place of a key's entry.
    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        self.by_key.get(key).copied()
    }

    /// The record that replaces a base row whose key has an entry. `order`: the row's ordering value; `base` and
    /// `row`: its values.
    pub(crate) fn meet(&mut self, place: u32, order: &Order, base: &RecordBatch, row: usize) -> Outcome {
        let at = usize::try_from(place).unwrap_or(usize::MAX);
        if let Some(seen) = self.seen.get_mut(at) {
            *seen = true;
        }
        let Some(entry) = self.entries.get(at) else { return Outcome::Base };
        let step = self.rules.base;
        let is_free = entry.always_deletes()
            || (self.rules.deletes_win && entry.cells.is_none())
            || (self.rules.flags_win && entry.is_flagged);
        let keeps = step.by_order && !is_free && beats(order, &entry.order, step);
        let is_whole = step.fill == Fill::Unavailable && self.rules.by_payload;
        match (&entry.cells, keeps) {
            (Some(cells), true) if step.fill != Fill::None && !entry.is_flagged && !is_whole => {
                Outcome::Cells(self.base_over(cells, base, row, step.fill))
            }
            (_, true) => Outcome::Base,
            (Some(cells), false) if !entry.is_flagged => Outcome::Cells(self.over_base(cells, step.fill)),
            _ => Outcome::Deleted,
        }
    }

    /// A record of the logs over a base row.
    fn over_base(&self, cells: &Cells, fill: Fill) -> Cells {
        if fill == Fill::None {
            return cells.clone();
        }
        let each = (0..self.fills.len()).map(|column| {
            let row = cells.at(column);
            let is_meta = matches!(self.fills.get(column), Some(Filled::Meta));
            if row != OLDER && !is_meta && self.is_filled(column, row, fill) { OLDER } else { row }
        });
        Cells::Each(each.collect())
    }

    /// A base row that wins, with values of the logs where it has none.
    fn base_over(&self, cells: &Cells, base: &RecordBatch, row: usize, fill: Fill) -> Cells {
        let each = (0..self.fills.len()).map(|column| {
            let is_meta = matches!(self.fills.get(column), Some(Filled::Meta));
            let gives = |values: &ArrayRef| self.gives_way(column, values, row, fill);
            // To a payload class, the row was written by the later record.
            if is_meta && !self.rules.by_payload {
                return OLDER;
            }
            if is_meta || base.columns().get(column).is_some_and(gives) { cells.at(column) } else { OLDER }
        });
        Cells::Each(each.collect())
    }

    /// The records whose keys no base row has.
    pub(crate) fn rest(&self) -> Vec<Cells> {
        let pairs = self.entries.iter().zip(&self.seen);
        let rest = pairs.filter(|(entry, seen)| !**seen && !entry.is_deleted());
        rest.filter_map(|(entry, _)| entry.cells.clone()).collect()
    }
}

/// Whether an older record with this ordering value beats a newer one.
fn beats(old: &Order, new: &Order, step: Step) -> bool {
    match old.compare(new) {
        Some(std::cmp::Ordering::Greater) => true,
        Some(std::cmp::Ordering::Equal) => step.first_wins,
        _ => false,
    }
}
