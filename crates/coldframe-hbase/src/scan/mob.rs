//! Values that are stored in files of their own (MOB).
//!
//! ```text
//! cell with tag 5   value = length i32 | name of a MOB file |     tag 6 = the table that wrote it, without `default:`
//! MOB file          an HFile with the cell of this row, column and time and its value
//! ```
//!
//! The file is in `mobdir` of the table that wrote it, or in the archive of that table. A cloned table keeps
//! the name of the table that it was cloned from. HBase: `MobUtils`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use coldframe_core::{Error, ErrorContext, Result};
use coldframe_hfile::kinds::PUT;
use coldframe_hfile::{Cell, HFile, Tags};

use crate::layout::names::{FileAt, TableName, is_path_component};
use crate::regions::files::Shared;
use crate::root::name_of;

/// The tag of a cell whose value is in a MOB file.
const REFERENCE_TAG: u8 = 5;
/// The tag with the name of the table that wrote the value.
const TABLE_TAG: u8 = 6;
/// Maximum number of MOB files that are open at a time, with their cached blocks.
const OPEN_FILES: usize = 16;

/// Finds values in MOB files. All units of a table share the finder.
#[derive(Debug)]
pub(crate) struct MobFiles {
    shared: Arc<Shared>,
    open: Mutex<HashMap<(TableName, String, String), Arc<HFile>>>,
    /// The MOB region of each table.
    regions: Mutex<HashMap<TableName, Vec<String>>>,
}

/// For a cell whose value is in a MOB file, the table that wrote the file, if a tag names it. The outer
/// `None` means that the cell is not such a cell.
pub(crate) fn reference<'a>(cell: &Cell<'a>) -> Result<Option<Option<&'a [u8]>>> {
    if cell.tags.is_empty() || cell.kind != PUT {
        return Ok(None);
    }
    let (mut is_reference, mut table) = (false, None);
    let mut tags = Tags::new(cell.tags);
    while let Some((kind, value)) = tags.next_tag()? {
        match kind {
            REFERENCE_TAG => is_reference = true,
            TABLE_TAG => table = Some(value),
            _ => {}
        }
    }
    Ok(is_reference.then_some(table))
}

impl MobFiles {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, open: Mutex::default(), regions: Mutex::default() }
    }

    /// Reads the value of a cell of a family from a MOB file.
    pub(crate) fn value(&self, cell: &Cell<'_>, table: Option<&[u8]>, family: &str) -> Result<Bytes> {
        let name = cell.value.get(4..).and_then(|name| std::str::from_utf8(name).ok());
        let name = name.filter(|name| is_path_component(name)).ok_or_else(|| {
            let text = cell.value.escape_ascii();
            Error::corrupt(format!("expected a length and the name of a MOB file, found \"{text}\""))
        })?;
        let file = self.file(table, family, name)?;
        let mut value = None;
        let look = file.find(cell.row, |other| {
            let same = other.qualifier == cell.qualifier && other.timestamp == cell.timestamp;
            if value.is_none() && same && other.kind == PUT && other.family == cell.family {
                value = Some(Bytes::copy_from_slice(other.value));
            }
            Ok(())
        });
        look.within(|| format!("MOB file {name}"))?;
        value.ok_or_else(|| {
            let (row, column) = (cell.row.escape_ascii(), cell.qualifier.escape_ascii());
            let message = format!("expected a cell of row \"{row}\", column \"{column}\", found none");
            Error::corrupt(message).within(format!("MOB file {name}"))
        })
    }

    fn file(&self, table: Option<&[u8]>, family: &str, name: &str) -> Result<Arc<HFile>> {
        let named = table.and_then(|t| std::str::from_utf8(t).ok()).map(TableName::parse);
        let own = &self.shared.table;
        let mut tables = vec![named.as_ref().unwrap_or(own)];
        if named.as_ref().is_some_and(|named| named != own) {
            tables.push(own);
        }
        let mut missing = None;
        for table in tables {
            if ![&table.namespace, &table.name].into_iter().all(|name| is_path_component(name)) {
                continue;
            }
            let key = (table.clone(), family.to_owned(), name.to_owned());
            let held = self.open.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
            if let Some(held) = held {
                return Ok(held);
            }
            for region in self.regions(table)? {
                let (table, family) = (table.clone(), family.to_owned());
                let at = FileAt { table, region, family, file: name.to_owned() };
                match self.shared.root.open_store_file(&at) {
                    Ok((path, source)) => {
                        let file = HFile::new(source, self.shared.options.clone());
                        let file = Arc::new(file.within(|| format!("MOB file {path}"))?);
                        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                        if open.len() >= OPEN_FILES {
                            open.clear();
                        }
                        open.insert(key, file.clone());
                        return Ok(file);
                    }
                    Err(e) if e.is_damage() => missing = Some(e),
                    Err(e) => return Err(e),
                }
            }
        }
        let none = || {
            Error::corrupt(format!("expected the MOB file {name} in mobdir or archive, found it in neither"))
        };
        Err(missing.unwrap_or_else(none))
    }

    /// The regions that may hold a table's MOB files. This is the table's MOB region, which is found by
    /// listing folders.
    fn regions(&self, table: &TableName) -> Result<Vec<String>> {
        if let Some(known) = self.regions.lock().unwrap_or_else(PoisonError::into_inner).get(table) {
            return Ok(known.clone());
        }
        let mut regions: Vec<String> = Vec::new();
        for prefix in ["mobdir", "archive"] {
            let listed = self.shared.root.list(&format!("{prefix}/{}", table.folder()))?;
            regions.extend(listed.iter().filter(|e| e.is_folder).map(|e| name_of(e).to_owned()));
        }
        regions.sort_unstable();
        regions.dedup();
        let mut known = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(table.clone(), regions.clone());
        Ok(regions)
    }
}
