//! The rows of a write, as the client sent them.
//!
//! ```text
//! row  | operation u8 | which columns are given: a bit each | which are null: a bit each, if any column can be | value of each that is given |
//! value| as many bytes as its type has, little-endian;     string, binary: offset u64, length u64 in the indirect data |
//! ```
//!
//! The columns are the columns of the client's schema. It has no ids, so they are matched by name with the
//! columns that the tablet had when the write was made (`row_operations.proto`).

use coldframe_cfile::layout::delta::put_cell;
use coldframe_cfile::layout::types::Physical;
use coldframe_cfile::prune::key::encode_cells;
use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;

use crate::layout::proto::{self, RowOperations};
use crate::schema::{Column, TableSchema};

/// The operation on a row. Kinds that only differ in ignoring errors are treated as equal, since the commit
/// message states the errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowOpKind {
    Insert,
    Upsert,
    Update,
    Delete,
}

impl RowOpKind {
    /// The operation, and whether it ignores changes to immutable columns.
    fn of(number: u8) -> Result<(Self, bool)> {
        Ok(match number {
            1 => (Self::Insert, false),
            2 => (Self::Update, false),
            3 => (Self::Delete, false),
            5 => (Self::Upsert, false),
            10 => (Self::Insert, true),
            11 => (Self::Update, true),
            12 => (Self::Delete, true),
            13 => (Self::Upsert, true),
            n => return Err(Error::unsupported(format!("the row operation with the number {n}"))),
        })
    }
}

/// The value that the client gives for a column of a row.
#[derive(Clone, Copy, Debug)]
enum Given<'a> {
    Nothing,
    Null,
    Value(&'a [u8]),
}

/// A row of a write.
#[derive(Clone, Debug)]
pub(crate) struct RowOp<'a> {
    pub(crate) kind: RowOpKind,
    /// For each of the tablet's columns, the value that is given.
    cells: Vec<Given<'a>>,
    /// The value of the auto-incrementing column that the server generates if the row is inserted.
    number: [u8; 8],
}

/// Reads the rows of a write.
pub(crate) struct RowOps<'a> {
    cursor: Cursor<'a>,
    indirect: &'a [u8],
    tablet: &'a TableSchema,
    /// For each of the client's columns, the position of the tablet's column.
    places: Vec<usize>,
    has_nullable: bool,
    /// The auto-incrementing column.
    numbered: Option<usize>,
    /// The last value that the server generated.
    counter: i64,
}

impl<'a> RowOps<'a> {
    /// Reads the rows in `operations`, from a client with the columns `client`, for the tablet schema `tablet`.
    pub(crate) fn new(
        operations: &'a RowOperations,
        client: &proto::Schema,
        tablet: &'a TableSchema,
        counter: i64,
    ) -> Result<Self> {
        let place = |c: &proto::ColumnSchema| {
            let same = |t: &Column| t.name == c.name && t.data_type.number() == c.data_type;
            let position = tablet.columns.iter().position(same);
            position
                .ok_or_else(|| Error::corrupt(format!("expected a column of the tablet, found `{}`", c.name)))
        };
        Ok(Self {
            cursor: Cursor::new(&operations.rows, 0),
            indirect: &operations.indirect,
            tablet,
            places: client.columns.iter().map(place).collect::<Result<_>>()?,
            numbered: tablet.columns.iter().position(|c| c.auto_incrementing),
            has_nullable: client.columns.iter().any(|c| c.is_nullable),
            counter,
        })
    }

    /// The next row.
    pub(crate) fn next_row(&mut self) -> Result<Option<RowOp<'a>>> {
        if self.cursor.is_empty() {
            return Ok(None);
        }
        let (kind, ignores) = RowOpKind::of(self.cursor.u8()?)?;
        let bytes = self.places.len().div_ceil(8);
        let given = self.cursor.take(bytes)?;
        let null = if self.has_nullable { self.cursor.take(bytes)? } else { &[] };
        let mut cells = vec![Given::Nothing; self.tablet.columns.len()];
        for (i, place) in self.places.iter().enumerate() {
            if !is_set(given, i) {
                continue;
            }
            let Some(column) = self.tablet.columns.get(*place) else { continue };
            // A null in a non-nullable column is an error of the row; a value follows nevertheless.
            let is_null = is_set(null, i);
            let stored = if is_null && column.nullable {
                None
            } else {
                Some(value(&mut self.cursor, self.indirect, column)?)
            };
            let cell = stored.filter(|_| !is_null);
            if ignores && kind != RowOpKind::Insert && column.immutable {
                continue;
            }
            if let Some(given) = cells.get_mut(*place) {
                *given = cell.map_or(Given::Null, Given::Value);
            }
        }
        self.count(kind, &cells);
        Ok(Some(RowOp { kind, cells, number: self.counter.to_le_bytes() }))
    }

    /// Advances the counter: a row without a value gets the next value; a value that a client gives is never
    /// generated later.
    fn count(&mut self, kind: RowOpKind, cells: &[Given<'_>]) {
        let Some(place) = self.numbered.filter(|_| matches!(kind, RowOpKind::Insert | RowOpKind::Upsert))
        else {
            return;
        };
        let given = if let Some(Given::Value(cell)) = cells.get(place) { cell.first_chunk() } else { None };
        self.counter = match given {
            Some(given) => self.counter.max(i64::from_le_bytes(*given)),
            None => self.counter.saturating_add(1),
        };
    }
}

/// Whether a bit of a row's bitmap is set.
pub(crate) fn is_set(bits: &[u8], i: usize) -> bool {
    bits.get(i / 8).is_some_and(|b| b >> (i % 8) & 1 == 1)
}

/// The value of a column at the cursor, in a row.
pub(crate) fn value<'a>(cursor: &mut Cursor<'a>, indirect: &'a [u8], column: &Column) -> Result<&'a [u8]> {
    match column.data_type.physical() {
        Physical::Bool => cursor.take(1),
        Physical::Fixed(n) => cursor.take(n),
        Physical::Binary => {
            let (offset, length) = (cursor.u64_le()?, cursor.u64_le()?);
            let place = |n: u64| usize::try_from(n).ok();
            let value = place(offset)
                .zip(place(length))
                .and_then(|(offset, length)| indirect.get(offset..offset.checked_add(length)?));
            value.ok_or_else(|| {
                let all = indirect.len();
                Error::corrupt(format!("expected a value inside {all} bytes, found {length} at {offset}"))
            })
        }
    }
}

impl RowOp<'_> {
    /// A column's value in a new row: the one that the client gives, the one that the server generates, or
    /// the default.
    fn new_cell<'c>(&'c self, place: usize, column: &'c Column) -> Result<Option<&'c [u8]>> {
        match (self.cells.get(place), &column.write_default) {
            (Some(Given::Value(cell)), _) => Ok(Some(cell)),
            (Some(Given::Null), _) => Ok(None),
            _ if column.auto_incrementing => Ok(Some(&self.number)),
            (_, Some(default)) => Ok(Some(default)),
            _ if column.nullable => Ok(None),
            _ => Err(Error::corrupt(format!("expected a value of column `{}`, found none", column.name))),
        }
    }

    /// The row's key, encoded.
    pub(crate) fn key(&self, tablet: &TableSchema) -> Result<Vec<u8>> {
        let mut cells = Vec::new();
        for (place, column) in tablet.key().into_iter().enumerate() {
            let cell = self.new_cell(place, column)?;
            let cell = cell.ok_or_else(|| {
                Error::corrupt(format!("expected a value of key column `{}`, found null", column.name))
            })?;
            cells.push((column.data_type, cell));
        }
        Ok(encode_cells(cells))
    }

    /// All cells of a new row, including the key's, in the form of deltas.
    pub(crate) fn row(&self, tablet: &TableSchema) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for (place, column) in tablet.columns.iter().enumerate() {
            put_cell(column.id, self.new_cell(place, column)?, &mut out);
        }
        Ok(out)
    }

    /// The cells that change, in the form of deltas.
    pub(crate) fn changes(&self, tablet: &TableSchema) -> Vec<u8> {
        let mut out = Vec::new();
        for (column, given) in tablet.columns.iter().zip(&self.cells).filter(|(column, _)| !column.key) {
            match given {
                Given::Nothing => {}
                Given::Null => put_cell(column.id, None, &mut out),
                Given::Value(cell) => put_cell(column.id, Some(cell), &mut out),
            }
        }
        out
    }
}
