//! Tables that Phoenix wrote: what its `CREATE TABLE` says of row keys, qualifiers and values.
//!
//! ```text
//! row key    | salt 1 byte, with SALT_BUCKETS | part | [separator] | part ..
//!            part of a fixed width: as it is;  of any length: a separator behind it, but for the last
//!            separator: 00; behind a value in descending order FF, behind the last one too
//! qualifier  COLUMN_ENCODED_BYTES=2: 80 0b, 80 0c ..  for the columns in their order, from 11 on;  =0: their names
//!            00 00 00 00, or `_0`: a row is there
//! value      sorts as bytes; in descending order all bits are turned. No bytes: null
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `ddl` | the statement |
//! | `types` | Phoenix's types, what they are in Arrow |
//! | `values` | their bytes to Arrow |
//! | `key` | row keys to their parts |
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

/// The family of columns that name none.
const DEFAULT_FAMILY: &str = "0";
/// The number of the first column.
const FIRST_NUMBER: u32 = 11;
/// That a row is there, where qualifiers are names, and where they are numbers.
const EMPTY_NAMED: &[u8] = b"_0";
const EMPTY_NUMBERED: &[u8] = &[0; 4];

/// A part of the row key.
#[derive(Clone, Debug)]
pub(crate) struct KeyPart {
    pub(crate) name: String,
    pub(crate) of: PhoenixType,
    pub(crate) descending: bool,
}

/// A column that is a cell.
#[derive(Clone, Debug)]
pub(crate) struct CellColumn {
    /// As the column of Arrow is called: the family is there where the name alone would not do.
    pub(crate) name: String,
    pub(crate) family: Vec<u8>,
    pub(crate) qualifier: Vec<u8>,
    pub(crate) of: PhoenixType,
}

/// What a statement says of the table.
#[derive(Clone, Debug)]
pub(crate) struct Phoenix {
    /// Whether row keys begin with a byte that only spreads them.
    pub(crate) salted: bool,
    pub(crate) key: Vec<KeyPart>,
    pub(crate) cells: Vec<CellColumn>,
    /// Bytes of qualifiers that are numbers; none where they are names.
    encoded: Option<usize>,
}

impl Phoenix {
    /// Reads a statement. What of it is not known or not read here is an error, as it may change what the bytes mean.
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

    /// Whether a cell only says that its row is there. One of the other kind of qualifiers means that the statement is not
    /// that of the table.
    pub(crate) fn is_empty_cell(&self, qualifier: &[u8]) -> Result<bool> {
        let (own, other) = match self.encoded {
            Some(_) => (EMPTY_NUMBERED, EMPTY_NAMED),
            None => (EMPTY_NAMED, EMPTY_NUMBERED),
        };
        if qualifier == other {
            let (said, found) = match self.encoded {
                Some(bytes) => (format!("qualifiers of {bytes} bytes"), "names (COLUMN_ENCODED_BYTES=0)"),
                None => ("names as qualifiers".to_owned(), "numbers (COLUMN_ENCODED_BYTES=2 by default)"),
            };
            return Err(Error::schema(format!("option `phoenix`: expected {said}, the table has {found}")));
        }
        Ok(qualifier == own)
    }
}

/// A column's number as qualifier: by so many bytes, from the smallest number of one and two bytes on.
fn numbered(number: u32, bytes: usize) -> Result<Vec<u8>> {
    let offset: u32 = match bytes {
        1 => 0x80,
        2 => 0x8000,
        _ => 0,
    };
    let most = u32::MAX.checked_shr(32 - 8 * u32::try_from(bytes).unwrap_or(4)).unwrap_or(0);
    if number > most {
        return Err(Error::invalid(format!("option `phoenix`: column number {number} in {bytes} bytes")));
    }
    // One byte from -128 on, as bytes are counted there.
    let all = (number ^ offset).to_be_bytes();
    Ok(all.get(4 - bytes.min(4)..).unwrap_or_default().to_vec())
}

fn key_parts(statement: &Statement) -> Result<Vec<KeyPart>> {
    let mut parts = Vec::with_capacity(statement.key.len());
    for (place, (name, descending)) in statement.key.iter().enumerate() {
        let column = statement.columns.iter().find(|c| c.name == *name);
        let column = column.ok_or_else(|| {
            Error::invalid(format!("option `phoenix`: PRIMARY KEY names {name:?}, which is no column"))
        })?;
        if column.of == PhoenixType::Varbinary && place + 1 < statement.key.len() {
            return Err(Error::invalid(format!(
                "option `phoenix`: {name:?} is VARBINARY, which only the last column of a key can be"
            )));
        }
        parts.push(KeyPart { name: name.clone(), of: column.of, descending: *descending });
    }
    Ok(parts)
}

#[cfg(test)]
mod tests;
