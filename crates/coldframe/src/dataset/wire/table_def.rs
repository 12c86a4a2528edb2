//! Converts definitions of tables to messages and back.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use coldframe_core::Result;
use coldframe_core::types::hive::{HiveVersion, Reader, Rules};
use roaring::RoaringTreemap;

use super::read_parts::{Bound, at, by, known, opening};
use super::{arrow, message, refused, write_parts as write};
use crate::dataset::storage::os_path;
use crate::dataset::table_def::{
    ColumnDef, Columns, Conversion, Deletes, FileDef, FileGroup, Origin, TableDef, constants,
};

/// The parts that groups and files share. Each is written once.
#[derive(Default)]
struct Shared {
    openings: Vec<message::Opening>,
    key_tables: KeyTables,
}

/// The keys of rows that are deleted by value. Each table is written once.
#[derive(Default)]
pub(super) struct KeyTables {
    pub(super) all: Vec<Vec<u8>>,
    /// The numbers of the tables by their addresses.
    numbers: HashMap<usize, u32>,
}

pub(super) fn to_message(def: &TableDef) -> Result<message::TableDef> {
    let mut shared = Shared::default();
    let (from, stated) = match &def.columns {
        Columns::Merged => (0, [].as_slice()),
        Columns::OfFirst => (1, [].as_slice()),
        Columns::Stated(stated) => (2, stated.as_slice()),
    };
    let groups = def.groups.iter().map(|group| shared.group(group)).collect::<Result<_>>()?;
    Ok(message::TableDef {
        name: def.name.clone(),
        columns_from: from,
        columns: Some(columns_to_message(stated)?),
        complete: def.complete,
        file_path: def.origin.file_path.clone(),
        row_index: def.origin.row_index.clone(),
        keys: Some(columns_to_message(&def.keys)?),
        openings: shared.openings,
        key_tables: shared.key_tables.all,
        groups,
    })
}

pub(super) fn columns_to_message(columns: &[ColumnDef]) -> Result<message::Columns> {
    if columns.is_empty() {
        return Ok(message::Columns::default());
    }
    let schema = Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>());
    let declared = columns.iter().map(|column| column.declared.clone().unwrap_or_default());
    Ok(message::Columns { schema: arrow::from_schema(&schema)?, declared: declared.collect() })
}

pub(super) fn columns_of(message: Option<&message::Columns>) -> Result<Vec<ColumnDef>> {
    let Some(message) = message.filter(|message| !message.schema.is_empty()) else { return Ok(Vec::new()) };
    let schema = arrow::to_schema(&message.schema)?;
    if schema.fields().len() != message.declared.len() {
        let (fields, declared) = (schema.fields().len(), message.declared.len());
        return Err(refused(format!("expected {fields} declared types, found {declared}")));
    }
    let of = |(field, declared): (&Arc<Field>, &String)| ColumnDef {
        field: field.clone(),
        declared: Some(declared.clone()).filter(|text| !text.is_empty()),
    };
    Ok(schema.fields().iter().zip(&message.declared).map(of).collect())
}

/// 0: without changing a value. Else 1, plus 1 for the converter of rows, 2 for a hybrid calendar, 4 for each version of Hive.
pub(super) fn conversion_to_message(conversion: Conversion) -> u32 {
    let Conversion::Hive(rules) = conversion else { return 0 };
    let version = VERSIONS.iter().position(|known| *known == rules.version).unwrap_or(0);
    let version = u32::try_from(version).unwrap_or(0);
    1 + u32::from(rules.reader == Reader::Rows) + 2 * u32::from(rules.hybrid) + 4 * version
}

const VERSIONS: [HiveVersion; 4] =
    [HiveVersion::V0_8, HiveVersion::V2_3, HiveVersion::V3_1, HiveVersion::V4_1];

pub(super) fn conversion_of(message: u32) -> Result<Conversion> {
    let Some(rules) = message.checked_sub(1) else { return Ok(Conversion::Lossless) };
    let version = usize::try_from(rules / 4).ok().and_then(|number| VERSIONS.get(number).copied());
    let Some(version) = version else {
        return Err(refused(format!("expected a way to convert values, found {message}")));
    };
    let reader = if rules & 1 == 1 { Reader::Rows } else { Reader::Orc };
    Ok(Conversion::Hive(Rules { version, reader, hybrid: rules & 2 == 2 }))
}

impl Shared {
    fn group(&mut self, group: &FileGroup) -> Result<message::Group> {
        let path = group.files.first().map(|file| os_path(&file.path)).unwrap_or_default();
        let opening = write::opening(&group.opening, group.opening.storage.options(&path))?;
        let (by, key) = write::by(&group.matching);
        let columns = group.constants.schema_ref().fields().iter().map(|field| field.name().clone());
        let columns: Vec<_> = columns.zip(group.constants.columns().iter().cloned()).collect();
        Ok(message::Group {
            opening: write::number(&mut self.openings, opening)?,
            own: Some(columns_to_message(&group.own)?),
            by,
            key,
            conversion: conversion_to_message(group.conversion),
            defaults: arrow::from_columns(&group.defaults)?,
            constants: arrow::from_columns(&columns)?,
            row_numbers: group.row_numbers.clone(),
            files: group.files.iter().map(|file| self.file(file)).collect::<Result<_>>()?,
        })
    }

    fn file(&mut self, file: &FileDef) -> Result<message::FileDef> {
        Ok(message::FileDef {
            path: file.path.clone(),
            known: file.known.as_ref().map(write::known),
            listed: file.listed,
            constants: file.constants,
            defaults: arrow::from_columns(&file.defaults)?,
            rows: file.rows,
            first_row: file.first_row,
            deletes: self.key_tables.deletes(file.deletes.as_deref())?,
        })
    }
}

impl KeyTables {
    /// The deletes of a file.
    pub(super) fn deletes(&mut self, deletes: Option<&Deletes>) -> Result<Option<message::Deletes>> {
        let Some(deletes) = deletes else { return Ok(None) };
        let mut keys = Vec::with_capacity(deletes.keys.len());
        for table in &deletes.keys {
            keys.push(self.number(table)?);
        }
        Ok(Some(message::Deletes { positions: positions_to_bytes(deletes)?, keys }))
    }

    fn number(&mut self, table: &Arc<RecordBatch>) -> Result<u32> {
        let address = Arc::as_ptr(table).addr();
        if let Some(number) = self.numbers.get(&address) {
            return Ok(*number);
        }
        let number = write::number(&mut self.all, key_table_to_bytes(table)?)?;
        self.numbers.insert(address, number);
        Ok(number)
    }
}

fn positions_to_bytes(deletes: &Deletes) -> Result<Option<Vec<u8>>> {
    let Some(positions) = &deletes.positions else { return Ok(None) };
    let mut bytes = Vec::with_capacity(positions.serialized_size());
    positions.serialize_into(&mut bytes)?;
    Ok(Some(bytes))
}

fn key_table_to_bytes(table: &RecordBatch) -> Result<Vec<u8>> {
    let names = table.schema_ref().fields().iter().map(|field| field.name().clone());
    arrow::from_columns(&names.zip(table.columns().iter().cloned()).collect::<Vec<_>>())
}

pub(super) fn from_message(message: &message::TableDef, bound: &Bound) -> Result<TableDef> {
    let openings = message.openings.iter().map(|message| opening(message, bound).map(Arc::new));
    let openings = openings.collect::<Result<Vec<_>>>()?;
    let key_tables = key_tables(&message.key_tables)?;
    let group = |message: &message::Group| {
        Ok(FileGroup {
            opening: at(&openings, message.opening, "ways to open a file")?.clone(),
            own: columns_of(message.own.as_ref())?,
            matching: by(message.by, &message.key)?,
            conversion: conversion_of(message.conversion)?,
            defaults: arrow::to_row(&message.defaults)?,
            constants: batch(&message.constants)?,
            row_numbers: message.row_numbers.clone(),
            files: message.files.iter().map(|file| of_file(file, &key_tables)).collect::<Result<_>>()?,
        })
    };
    Ok(TableDef {
        name: message.name.clone(),
        complete: message.complete,
        origin: Origin { file_path: message.file_path.clone(), row_index: message.row_index.clone() },
        columns: match message.columns_from {
            0 => Columns::Merged,
            1 => Columns::OfFirst,
            2 => Columns::Stated(columns_of(message.columns.as_ref())?),
            other => return Err(refused(format!("expected where columns come from, found {other}"))),
        },
        keys: columns_of(message.keys.as_ref())?,
        groups: message.groups.iter().map(group).collect::<Result<_>>()?,
    })
}

fn of_file(message: &message::FileDef, key_tables: &[Arc<RecordBatch>]) -> Result<FileDef> {
    let deletes = message.deletes.as_ref().map(|message| deletes_of(message, key_tables)).transpose()?;
    Ok(FileDef {
        path: message.path.clone(),
        known: message.known.as_ref().map(known),
        listed: message.listed,
        constants: message.constants,
        defaults: arrow::to_row(&message.defaults)?,
        rows: message.rows,
        first_row: message.first_row,
        deletes: deletes.map(Arc::new),
    })
}

pub(super) fn key_tables(all: &[Vec<u8>]) -> Result<Vec<Arc<RecordBatch>>> {
    all.iter().map(|bytes| batch(bytes).map(Arc::new)).collect()
}

pub(super) fn deletes_of(message: &message::Deletes, key_tables: &[Arc<RecordBatch>]) -> Result<Deletes> {
    let positions = message.positions.as_deref().map(positions_of).transpose()?;
    let keys = message.keys.iter().map(|number| at(key_tables, *number, "tables of keys").cloned());
    Ok(Deletes { positions: positions.map(Arc::new), keys: keys.collect::<Result<_>>()? })
}

fn positions_of(mut bytes: &[u8]) -> Result<RoaringTreemap> {
    let positions = RoaringTreemap::deserialize_from(&mut bytes)
        .map_err(|e| refused(format!("expected deleted positions as a roaring bitmap: {e}")))?;
    if bytes.is_empty() { Ok(positions) } else { Err(refused("expected the end of deleted positions")) }
}

/// A batch from its named columns; without columns if there are no bytes.
fn batch(bytes: &[u8]) -> Result<RecordBatch> {
    let columns = arrow::to_columns(bytes)?;
    let rows = columns.first().map_or(0, |(_, array)| array.len());
    let of = |(name, array): (String, ArrayRef)| (Field::new(name, array.data_type().clone(), true), array);
    constants(columns.into_iter().map(of).collect(), rows)
}
