//! Turns visible cells into rows of a wide table.
//!
//! The cells of a row and the columns are both sorted by family and qualifier, so the column of the next cell
//! is found by moving forward. Units end between two rows.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use coldframe_core::salvage::without_rows;
use coldframe_core::{Damage, DamageLog, Error, OnError, Result, arrow_error};
use coldframe_hfile::{Cell, Values};

use crate::columns::decimal::decimal_text;
use crate::columns::phoenix::{self, KeyPart, PhoenixValues};
use crate::columns::wide::{REST, ROW, Stored, WideTable};

/// Bytes of values after which a batch is returned.
const BATCH_BYTES: usize = 32 << 20;
/// Maximum bytes that the offsets of an array can address.
const MAX_BYTES: usize = 0x7fff_ffff;

/// The values of a column.
#[derive(Debug)]
enum Collected {
    Bytes(Values),
    Decimal(StringBuilder),
    Phoenix(Box<PhoenixValues>),
}

impl Collected {
    fn new(stored: &Stored) -> Result<Self> {
        Ok(match stored {
            Stored::Bytes(of) => Self::Bytes(Values::new(of)?),
            Stored::Decimal => Self::Decimal(StringBuilder::new()),
            Stored::Phoenix(of) => Self::Phoenix(Box::new(PhoenixValues::new(*of, false)?)),
        })
    }

    fn append(&mut self, value: &[u8]) -> bool {
        match self {
            Self::Bytes(values) => values.append(value),
            Self::Decimal(texts) => decimal_text(value).map(|text| texts.append_value(text)).is_some(),
            Self::Phoenix(values) => values.append(value),
        }
    }

    fn append_null(&mut self) {
        match self {
            Self::Bytes(values) => values.append_null(),
            Self::Decimal(texts) => texts.append_null(),
            Self::Phoenix(values) => values.append_null(),
        }
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(match self {
            Self::Bytes(values) => values.finish(),
            Self::Decimal(texts) => Arc::new(texts.finish()),
            Self::Phoenix(values) => values.finish()?,
        })
    }
}

#[derive(Debug)]
struct PivotColumn {
    family: Vec<u8>,
    qualifier: Vec<u8>,
    /// The column's index among the requested columns. `None` if it was not requested; even then, its cells
    /// do not go into `rest`.
    place: Option<usize>,
    values: Collected,
    set: bool,
}

/// The columns made from row keys, with their indexes among the requested columns.
#[derive(Debug)]
enum Keys {
    Row(Option<(usize, BinaryBuilder)>),
    Parts(Vec<(Option<usize>, PhoenixValues)>),
}

impl Keys {
    fn new(table: &WideTable, place: impl Fn(&str) -> Option<usize>) -> Result<Self> {
        let Some(of) = &table.phoenix else {
            return Ok(Self::Row(place(ROW).map(|place| (place, BinaryBuilder::new()))));
        };
        let part = |part: &KeyPart| Ok((place(&part.name), PhoenixValues::new(part.of, part.descending)?));
        of.key.iter().map(part).collect::<Result<_>>().map(Self::Parts)
    }

    /// Appends a row key. If it is invalid, appends nulls for the unknown parts and returns the reason.
    fn append(&mut self, table: &WideTable, row: &[u8]) -> Result<()> {
        let (all, of) = match (self, &table.phoenix) {
            (Self::Parts(all), Some(of)) => (all, of),
            (Self::Row(Some((_, rows))), _) => {
                rows.append_value(row);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let (mut next, mut wrong) = (0, None);
        let parsed = phoenix::parts(of, row, |value| {
            if let Some((_, values)) = all.get_mut(next)
                && !values.append(value)
            {
                values.append_null();
                let name = of.key.get(next).map_or("", |part| part.name.as_str());
                let message = format!("row key \"{}\": {name} is not of its type", row.escape_ascii());
                wrong.get_or_insert_with(|| Error::schema(message));
            }
            next += 1;
            Ok(())
        });
        all.iter_mut().skip(next).for_each(|(_, values)| values.append_null());
        parsed.and(wrong.map_or(Ok(()), Err))
    }
}

type Rest = MapBuilder<BinaryBuilder, BinaryBuilder>;

/// Collects the rows of a wide table.
#[derive(Debug)]
pub(crate) struct Wide {
    schema: SchemaRef,
    table: Arc<WideTable>,
    keys: Keys,
    /// The columns, sorted by family and qualifier.
    columns: Vec<PivotColumn>,
    rest: Option<(usize, Rest)>,
    row: Vec<u8>,
    open: bool,
    /// Whether the row's cells may be outdated because newer cells are lost.
    incomplete: bool,
    /// The first column to which the row's next cell may belong.
    at: usize,
    rows: usize,
    left_out: Vec<usize>,
    /// The number of cells of columns that the table does not have.
    passed: u64,
    bytes: usize,
    batch_rows: usize,
    on_error: OnError,
    damage: DamageLog,
}

impl Wide {
    /// Collects the columns in `schema`, which are some of the table's columns.
    pub(crate) fn new(
        schema: &SchemaRef,
        table: &Arc<WideTable>,
        (batch_rows, on_error, damage): (usize, OnError, DamageLog),
    ) -> Result<Self> {
        let place = |name: &str| schema.fields().iter().position(|f| f.name() == name);
        let mut columns = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            columns.push(PivotColumn {
                family: column.family.clone(),
                qualifier: column.qualifier.clone(),
                place: place(&column.name),
                values: Collected::new(&column.stored)?,
                set: false,
            });
        }
        columns.sort_by(|a, b| (&a.family, &a.qualifier).cmp(&(&b.family, &b.qualifier)));
        Ok(Self {
            keys: Keys::new(table, place)?,
            table: table.clone(),
            rest: place(REST).map(|place| (place, rest_builder())),
            schema: schema.clone(),
            columns,
            row: Vec::new(),
            open: false,
            incomplete: false,
            at: 0,
            rows: 0,
            left_out: Vec::new(),
            passed: 0,
            bytes: 0,
            batch_rows: batch_rows.max(1),
            on_error,
            damage,
        })
    }

    /// Whether a cell belongs to another row than the previous cell.
    pub(crate) fn is_next_row(&self, cell: &Cell<'_>) -> bool {
        !self.open || self.row != cell.row
    }

    /// Whether the batch must be finished before a cell is taken.
    pub(crate) fn is_full(&self, cell: &Cell<'_>) -> bool {
        self.open && (self.rows + 1 >= self.batch_rows || self.bytes >= BATCH_BYTES) && self.row != cell.row
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0 && !self.open
    }

    /// Begins the row of a cell.
    pub(crate) fn begin(&mut self, cell: &Cell<'_>, incomplete: bool) -> Result<()> {
        self.end_row()?;
        self.row.clear();
        self.row.extend_from_slice(cell.row);
        (self.open, self.incomplete, self.at) = (true, incomplete && self.on_error == OnError::Skip, 0);
        Ok(())
    }

    /// Records that cells of the current row are lost.
    pub(crate) fn mark_incomplete(&mut self) {
        self.incomplete |= self.on_error == OnError::Skip;
    }

    /// The current row.
    pub(crate) fn row(&self) -> Option<&[u8]> {
        self.open.then_some(self.row.as_slice())
    }

    /// Takes a visible cell of the current row; a lost value becomes null.
    pub(crate) fn take(&mut self, cell: &Cell<'_>, value: Option<&[u8]>) -> Result<()> {
        let key = (cell.family, cell.qualifier);
        while self.columns.get(self.at).is_some_and(|c| (c.family.as_slice(), c.qualifier.as_slice()) < key) {
            self.at += 1;
        }
        let size = value.map_or(0, <[u8]>::len);
        let column = self.columns.get_mut(self.at);
        if let Some(column) = column.filter(|c| (c.family.as_slice(), c.qualifier.as_slice()) == key) {
            let (Some(_), false) = (column.place, column.set) else { return Ok(()) };
            column.set = value.is_some_and(|value| column.values.append(value));
            self.bytes = self.bytes.saturating_add(size);
            if let (Some(value), false) = (value, column.set) {
                let e = of_another_type(cell, value);
                if self.on_error == OnError::Raise {
                    return Err(e);
                }
                self.damage.push(Damage::from_error(&e, 0..0, Some(0)));
            }
            return Ok(());
        }
        if let Some(of) = &self.table.phoenix
            && of.is_empty_cell(cell.qualifier)?
        {
            return Ok(());
        }
        if let Some((_, rest)) = &mut self.rest {
            let name = [cell.family, b":", cell.qualifier].concat();
            // A row is always in a single batch, however long it is. If the offsets of a row overflowed, the
            // builders would panic.
            let fits = |held: &[u8], more: usize| held.len().saturating_add(more) <= MAX_BYTES;
            if !fits(rest.keys().values_slice(), name.len()) || !fits(rest.values().values_slice(), size) {
                return Err(Error::unsupported("a row whose other columns take more than 2 GiB"));
            }
            rest.keys().append_value(name);
            rest.values().append_option(value);
            self.bytes = self.bytes.saturating_add(size + cell.qualifier.len());
        } else if !self.table.rest {
            self.passed += 1;
        }
        Ok(())
    }

    /// The number of cells, since the last call, for which the table has no column.
    pub(crate) fn take_passed(&mut self) -> u64 {
        std::mem::take(&mut self.passed)
    }

    fn end_row(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.open) {
            return Ok(());
        }
        if let Err(e) = self.keys.append(&self.table, &self.row) {
            if self.on_error == OnError::Raise {
                return Err(e);
            }
            self.damage.push(Damage::from_error(&e, 0..0, Some(0)));
        }
        for column in &mut self.columns {
            if !std::mem::take(&mut column.set) && column.place.is_some() {
                column.values.append_null();
            }
        }
        if let Some((_, rest)) = &mut self.rest {
            rest.append(true).map_err(arrow_error)?;
        }
        if std::mem::take(&mut self.incomplete) {
            self.left_out.push(self.rows);
        }
        self.bytes = self.bytes.saturating_add(self.row.len());
        self.rows += 1;
        Ok(())
    }

    /// Returns the rows since the last batch.
    pub(crate) fn finish(&mut self) -> Result<RecordBatch> {
        self.end_row()?;
        let mut arrays: Vec<Option<ArrayRef>> = vec![None; self.schema.fields().len()];
        let mut put = |place: usize, array: ArrayRef| {
            if let Some(slot) = arrays.get_mut(place) {
                *slot = Some(array);
            }
        };
        match &mut self.keys {
            Keys::Row(rows) => rows.iter_mut().for_each(|(place, rows)| put(*place, Arc::new(rows.finish()))),
            Keys::Parts(parts) => {
                for (place, values) in parts {
                    let array = values.finish()?;
                    place.iter().for_each(|place| put(*place, array.clone()));
                }
            }
        }
        if let Some((place, rest)) = &mut self.rest {
            put(*place, Arc::new(rest.finish()));
        }
        for column in &mut self.columns {
            if let Some(place) = column.place {
                put(place, column.values.finish()?);
            }
        }
        let missing = || Error::schema("the table has no such column");
        let arrays = arrays.into_iter().map(|a| a.ok_or_else(missing)).collect::<Result<Vec<_>>>()?;
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options);
        let batch = batch.map_err(arrow_error)?;
        let left_out = std::mem::take(&mut self.left_out);
        if left_out.is_empty() {
            return Ok(batch);
        }
        self.damage.push(Damage {
            bytes: 0..0,
            rows_lost: Some(left_out.len() as u64),
            structure: "rows".to_owned(),
            reason: "the remaining cells of these rows may be older than the lost cells".to_owned(),
        });
        without_rows(batch, &left_out)
    }
}

fn rest_builder() -> Rest {
    let (entry, key, value) = ("entries".to_owned(), "key".to_owned(), "value".to_owned());
    MapBuilder::new(Some(MapFieldNames { entry, key, value }), BinaryBuilder::new(), BinaryBuilder::new())
}

fn of_another_type(cell: &Cell<'_>, value: &[u8]) -> Error {
    Error::schema(format!(
        "row \"{}\", column \"{}:{}\": {} bytes are not of its type",
        cell.row.escape_ascii(),
        cell.family.escape_ascii(),
        cell.qualifier.escape_ascii(),
        value.len()
    ))
}
