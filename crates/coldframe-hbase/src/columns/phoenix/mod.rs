//! Tables that Phoenix wrote: row keys, qualifiers and values, decoded according to the `CREATE TABLE` statement.
//!
//! ```text
//! row key    | salt 1 byte, with SALT_BUCKETS | part | [separator] | part ..
//!            part of a fixed width: unchanged;  of variable length: followed by a separator, except the last part
//!            separator: 00; after a value in descending order FF, even after the last one
//! qualifier  COLUMN_ENCODED_BYTES=2: 80 0b, 80 0c ..  for the columns in their order, from 11 on;  =0: their names
//!            00 00 00 00, or `_0`: the row exists
//! value      sorts bytewise; in descending order all bits are inverted. No bytes: null
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `ddl` | the statement |
//! | `types` | Phoenix's types and their Arrow types |
//! | `values` | decoding values to Arrow |
//! | `key` | splitting row keys into parts |
//!
//! Phoenix: `PTableImpl.newKey`, `RowKeySchema`, `PDataType` and its classes, `QualifierEncodingScheme`.

mod ddl;
mod key;
mod types;
mod values;

use coldframe_core::{Error, Result};

use self::ddl::Statement;
pub(crate) use self::key::parts;
pub(crate) use self::types::PhoenixType;
pub(crate) use self::values::PhoenixValues;

/// The family of columns that are declared without a family.
const DEFAULT_FAMILY: &str = "0";
/// The number of the first column.
const FIRST_NUMBER: u32 = 11;
/// The qualifiers of the cell that marks an existing row: first if qualifiers are names, then if they are
/// numbers.
const EMPTY_NAMED: &[u8] = b"_0";
const EMPTY_NUMBERED: &[u8] = &[0; 4];

/// A part of the row key.
#[derive(Clone, Debug)]
pub(crate) struct KeyPart {
    pub(crate) name: String,
    pub(crate) of: PhoenixType,
    pub(crate) descending: bool,
}

/// A column stored as a cell.
#[derive(Clone, Debug)]
pub(crate) struct CellColumn {
    /// The name of the Arrow column: it includes the family if the name alone is ambiguous.
    pub(crate) name: String,
    pub(crate) family: Vec<u8>,
    pub(crate) qualifier: Vec<u8>,
    pub(crate) of: PhoenixType,
}

/// A table as its statement describes it.
#[derive(Clone, Debug)]
pub(crate) struct Phoenix {
    /// Whether row keys begin with a salt byte.
    pub(crate) salted: bool,
    pub(crate) key: Vec<KeyPart>,
    pub(crate) cells: Vec<CellColumn>,
    /// The length of numbered qualifiers; `None` if qualifiers are names.
    encoded: Option<usize>,
}

impl Phoenix {
    /// Parses a statement. Anything unknown or unsupported in it is an error, as it may change the meaning of bytes.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let statement = ddl::parse(text)?;
        statement.check()?;
        let encoded = statement.encoded_bytes()?;
        let family = statement.option("DEFAULT_COLUMN_FAMILY").unwrap_or(DEFAULT_FAMILY);
        let mut number = FIRST_NUMBER;
        let mut cells = Vec::new();
        for column in statement.columns.iter().filter(|c| !statement.is_key(c)) {
            let qualifier = match encoded {
                Some(bytes) => {
                    let given = column.number.unwrap_or(number);
                    number = number.max(given.saturating_add(1));
                    numbered(given, bytes)?
                }
                None => column.name.as_bytes().to_vec(),
            };
            let family = column.family.as_deref().unwrap_or(family);
            let alone = statement.columns.iter().filter(|other| other.name == column.name).count() == 1;
            let name = if alone { column.name.clone() } else { format!("{family}.{}", column.name) };
            cells.push(CellColumn { name, family: family.as_bytes().to_vec(), qualifier, of: column.of });
        }
        let key = key_parts(&statement)?;
        let salted = statement.number("SALT_BUCKETS")?.is_some_and(|buckets| buckets > 0);
        Ok(Self { salted, key, cells, encoded })
    }

    /// Whether a cell only marks its row as existing. Fails if the marker is the one for the other kind of
    /// qualifiers: then the statement is not the one of this table.
    pub(crate) fn is_empty_cell(&self, qualifier: &[u8]) -> Result<bool> {
        let (own, other) = match self.encoded {
            Some(_) => (EMPTY_NUMBERED, EMPTY_NAMED),
            None => (EMPTY_NAMED, EMPTY_NUMBERED),
        };
        if qualifier == other {
            let (expected, actual) = match self.encoded {
                Some(bytes) => (format!("qualifiers of {bytes} bytes"), "names (COLUMN_ENCODED_BYTES=0)"),
                None => ("names as qualifiers".to_owned(), "numbers (COLUMN_ENCODED_BYTES=2 by default)"),
            };
            return Err(Error::schema(format!(
                "option `phoenix`: expected {expected}, the table has {actual}"
            )));
        }
        Ok(qualifier == own)
    }
}

/// A column's number as a qualifier of `bytes` bytes. Numbers of one and two bytes count from the smallest
/// signed value.
fn numbered(number: u32, bytes: usize) -> Result<Vec<u8>> {
    let offset: u32 = match bytes {
        1 => 0x80,
        2 => 0x8000,
        _ => 0,
    };
    let max = u32::MAX.checked_shr(32 - 8 * u32::try_from(bytes).unwrap_or(4)).unwrap_or(0);
    if number > max {
        return Err(Error::invalid(format!("option `phoenix`: column number {number} in {bytes} bytes")));
    }
    // A number of one byte counts from -128, since Phoenix uses signed bytes.
    let all = (number ^ offset).to_be_bytes();
    Ok(all.get(4 - bytes.min(4)..).unwrap_or_default().to_vec())
}

fn key_parts(statement: &Statement) -> Result<Vec<KeyPart>> {
    let mut parts = Vec::with_capacity(statement.key.len());
    for (place, (name, descending)) in statement.key.iter().enumerate() {
        let column = statement.columns.iter().find(|c| c.name == *name);
        let column = column.ok_or_else(|| {
            Error::invalid(format!("option `phoenix`: PRIMARY KEY names {name:?}, which is not a column"))
        })?;
        if column.of == PhoenixType::Varbinary && place + 1 < statement.key.len() {
            return Err(Error::invalid(format!(
                "option `phoenix`: {name:?} is VARBINARY, which is allowed only for the last column of a key"
            )));
        }
        parts.push(KeyPart { name: name.clone(), of: column.of, descending: *descending });
    }
    Ok(parts)
}

#[cfg(test)]
mod tests;
