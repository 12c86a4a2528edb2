//! A wide table: one row for each row key, and a column for each qualifier that the options name.
//!
//! ```text
//! row | family:qualifier, of a type | .. | rest: map of all other columns, "family:qualifier" to value |
//! ```
//!
//! In a Phoenix table, the parts of the row key replace `row`. In other tables, types are encoded as in
//! HBase's `Bytes`, as in single HFiles.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use coldframe_core::{Error, Result};
use coldframe_hfile::{BYTES_TYPES, bytes_type};

use crate::columns::phoenix::{CellColumn, Phoenix, PhoenixType};

/// The column of row keys.
pub(crate) const ROW: &str = "row";
/// The column that holds all columns without a column of their own.
pub(crate) const REST: &str = "rest";

/// The encoding of a column's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// In the encoding of HBase's `Bytes`, as in the pivot of a single file.
    Bytes(DataType),
    /// A serialised `BigDecimal`.
    Decimal,
    /// Phoenix's encoding of the type.
    Phoenix(PhoenixType),
}

impl Stored {
    /// The type with this name in Java, Arrow or SQL.
    fn parse(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        Some(match lower.as_str() {
            "decimal" | "bigdecimal" => Self::Decimal,
            "int64" | "bigint" => Self::Bytes(DataType::Int64),
            "int32" | "integer" => Self::Bytes(DataType::Int32),
            "int16" | "smallint" => Self::Bytes(DataType::Int16),
            "float64" => Self::Bytes(DataType::Float64),
            "float32" => Self::Bytes(DataType::Float32),
            "bool" => Self::Bytes(DataType::Boolean),
            other => Self::Bytes(bytes_type(other)?),
        })
    }

    pub(crate) fn arrow(&self) -> DataType {
        match self {
            Self::Bytes(of) => of.clone(),
            Self::Decimal => DataType::Utf8,
            Self::Phoenix(of) => of.arrow(),
        }
    }
}

/// A named column.
#[derive(Clone, Debug)]
pub(crate) struct WideColumn {
    /// The column's name; `family:qualifier` if it comes from the option `columns`.
    pub(crate) name: String,
    pub(crate) family: Vec<u8>,
    pub(crate) qualifier: Vec<u8>,
    pub(crate) stored: Stored,
}

/// A wide table.
#[derive(Clone, Debug, Default)]
pub(crate) struct WideTable {
    pub(crate) columns: Vec<WideColumn>,
    /// If Phoenix wrote the table: its description, which defines the row key.
    pub(crate) phoenix: Option<Phoenix>,
    /// Whether the column `rest` exists.
    pub(crate) rest: bool,
}

impl WideTable {
    /// The wide table of a Phoenix statement.
    pub(crate) fn of_phoenix(statement: &str, rest: bool) -> Result<Self> {
        let phoenix = Phoenix::parse(statement)?;
        let column = |c: &CellColumn| WideColumn {
            name: c.name.clone(),
            family: c.family.clone(),
            qualifier: c.qualifier.clone(),
            stored: Stored::Phoenix(c.of),
        };
        let columns: Vec<WideColumn> = phoenix.cells.iter().map(column).collect();
        let mut names = BTreeSet::from_iter(rest.then_some(REST));
        let keys = phoenix.key.iter().map(|part| part.name.as_str());
        for name in keys.chain(columns.iter().map(|c| c.name.as_str())) {
            if !names.insert(name) {
                return Err(Error::invalid(format!("option `phoenix`: two columns are called {name:?}")));
            }
        }
        Ok(Self { columns, rest, phoenix: Some(phoenix) })
    }

    /// The schema of the wide table.
    pub(crate) fn schema(&self) -> SchemaRef {
        let mut fields = match &self.phoenix {
            Some(of) => of.key.iter().map(|part| Field::new(&part.name, part.of.arrow(), true)).collect(),
            None => vec![Field::new(ROW, DataType::Binary, true)],
        };
        fields.extend(self.columns.iter().map(|c| Field::new(&c.name, c.stored.arrow(), true)));
        if self.rest {
            fields.push(Field::new(REST, rest_type(), true));
        }
        Arc::new(Schema::new(fields))
    }
}

/// The columns that the option `columns` names.
pub(crate) fn columns(option: &[(String, String)]) -> Result<Vec<WideColumn>> {
    let column = |(name, of): &(String, String)| {
        let (family, qualifier) = name.split_once(':').ok_or_else(|| {
            Error::invalid(format!(
                "option `columns`: expected {{\"family:qualifier\": \"type\"}}, found {name:?}"
            ))
        })?;
        let stored = Stored::parse(of).ok_or_else(|| {
            Error::invalid(format!(
                "option `columns`: expected a type of {BYTES_TYPES}, decimal, found {of:?}"
            ))
        })?;
        let (family, qualifier) = (family.as_bytes().to_vec(), qualifier.as_bytes().to_vec());
        Ok(WideColumn { name: name.clone(), family, qualifier, stored })
    };
    option.iter().map(column).collect()
}

/// The type of the column `rest`.
fn rest_type() -> DataType {
    let entry = DataType::Struct(
        vec![Field::new("key", DataType::Binary, false), Field::new("value", DataType::Binary, true)].into(),
    );
    DataType::Map(Arc::new(Field::new("entries", entry, false)), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_may_be_given_by_several_names() {
        let of = |name: &str, kind: &str| columns(&[(name.to_owned(), kind.to_owned())]);
        assert_eq!(of("f:a", "long").unwrap()[0].stored, of("f:a", "int64").unwrap()[0].stored);
        let decimal = &of("f:a:b", "BigDecimal").unwrap()[0];
        assert_eq!((decimal.family.as_slice(), decimal.qualifier.as_slice()), (&b"f"[..], &b"a:b"[..]));
        assert!(of("f:a", "money").is_err() && of("a", "long").is_err());
    }
}
