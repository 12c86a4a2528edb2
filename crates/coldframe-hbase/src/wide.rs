//! What a wide table consists of: a row for each row key, a column for each qualifier that is named.
//!
//! ```text
//! row | family:qualifier, of a type | .. | rest: map of all other columns, "family:qualifier" to value |
//! decimal   | scale i32 | unscaled value, two's complement, big-endian |       as text, as Java writes it
//! ```
//!
//! Of a table of Phoenix, the parts of its row key instead of `row`. All other types are those of `Bytes` in single HFiles. HBase: `Bytes.toBytes(BigDecimal)`; Java: `BigDecimal.toString`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use coldframe_core::{Error, Result, Value};
use coldframe_hfile::{BYTES_TYPES, bytes_type};

use crate::phoenix::{CellColumn, Phoenix, PhoenixType};

/// The column of row keys.
pub(crate) const ROW: &str = "row";
/// The column of all that is not named.
pub(crate) const REST: &str = "rest";

/// How the values of a column are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// As the type of a single file's column.
    Bytes(DataType),
    /// As a `BigDecimal`.
    Decimal,
    /// As Phoenix stores it.
    Phoenix(PhoenixType),
}

impl Stored {
    /// By the name of a type: of Java, Arrow or SQL.
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

/// A column that is named.
#[derive(Clone, Debug)]
pub(crate) struct WideColumn {
    /// As it is called: of `columns`, `family:qualifier`.
    pub(crate) name: String,
    pub(crate) family: Vec<u8>,
    pub(crate) qualifier: Vec<u8>,
    pub(crate) stored: Stored,
}

/// A wide table.
#[derive(Clone, Debug, Default)]
pub(crate) struct WideTable {
    pub(crate) columns: Vec<WideColumn>,
    /// What Phoenix says of the row key, if it wrote the table.
    pub(crate) phoenix: Option<Phoenix>,
    /// Whether there is a column of all others.
    pub(crate) rest: bool,
}

impl WideTable {
    /// The table of a statement of Phoenix.
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

    /// Its columns.
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

/// The columns of the option `columns`.
pub(crate) fn columns(option: &Value) -> Result<Vec<WideColumn>> {
    let wrong = |found: &dyn std::fmt::Debug| {
        Error::invalid(format!(
            "option `columns`: expected {{\"family:qualifier\": \"type\"}}, found {found:?}"
        ))
    };
    let Value::Map(pairs) = option else { return Err(wrong(option)) };
    let column = |(name, of): &(String, Value)| {
        let Value::Str(of) = of else { return Err(wrong(of)) };
        let (family, qualifier) = name.split_once(':').ok_or_else(|| wrong(name))?;
        let stored = Stored::parse(of).ok_or_else(|| {
            Error::invalid(format!(
                "option `columns`: expected a type of {BYTES_TYPES}, decimal, found {of:?}"
            ))
        })?;
        let (family, qualifier) = (family.as_bytes().to_vec(), qualifier.as_bytes().to_vec());
        Ok(WideColumn { name: name.clone(), family, qualifier, stored })
    };
    pairs.iter().map(column).collect()
}

/// The type of the column of all that is not named.
fn rest_type() -> DataType {
    let entry = DataType::Struct(
        vec![Field::new("key", DataType::Binary, false), Field::new("value", DataType::Binary, true)].into(),
    );
    DataType::Map(Arc::new(Field::new("entries", entry, false)), false)
}

/// Most bytes of a number: longer ones take ever more time to write down.
const MOST_DIGITS: usize = 4096;

/// A `BigDecimal` as Java writes it; `None` for bytes that are none.
pub(crate) fn decimal_text(bytes: &[u8]) -> Option<String> {
    let (scale, unscaled) = bytes.split_first_chunk::<4>()?;
    if unscaled.is_empty() || unscaled.len() > MOST_DIGITS {
        return None;
    }
    let (negative, digits) = digits(unscaled);
    java_decimal(negative, &digits, i64::from(i32::from_be_bytes(*scale)))
}

/// Decimal digits, so many of them behind the point, as Java writes them. Longer texts than the digits call for are none.
pub(crate) fn java_decimal(negative: bool, digits: &str, scale: i64) -> Option<String> {
    let sign = if negative { "-" } else { "" };
    let len = i64::try_from(digits.len()).ok()?;
    let exponent = len - 1 - scale;
    if scale == 0 {
        return Some(format!("{sign}{digits}"));
    }
    if scale > 0 && exponent >= -6 {
        let point = usize::try_from(len - scale).ok();
        return Some(match point.filter(|point| *point > 0) {
            Some(point) => {
                let (whole, part) = digits.split_at_checked(point)?;
                format!("{sign}{whole}.{part}")
            }
            None => {
                let zeros = "0".repeat(usize::try_from(scale - len).ok()?);
                format!("{sign}0.{zeros}{digits}")
            }
        });
    }
    let (first, others) = digits.split_at_checked(1)?;
    let point = if others.is_empty() { "" } else { "." };
    let plus = if exponent >= 0 { "+" } else { "" };
    if exponent == 0 {
        return Some(format!("{sign}{first}{point}{others}"));
    }
    Some(format!("{sign}{first}{point}{others}E{plus}{exponent}"))
}

/// The decimal digits of a two's complement, and whether it is negative.
fn digits(bytes: &[u8]) -> (bool, String) {
    const BASE: u64 = 1_000_000_000;
    let negative = bytes.first().is_some_and(|b| *b >= 0x80);
    let mut carry = true;
    let mut magnitude: Vec<u8> = bytes.to_vec();
    if negative {
        for byte in magnitude.iter_mut().rev() {
            let (flipped, over) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (flipped, over);
        }
    }
    // Groups of nine digits, the lowest first.
    let mut groups: Vec<u64> = Vec::new();
    for byte in magnitude {
        let mut carry = u64::from(byte);
        for group in &mut groups {
            let value = (*group << 8) + carry;
            (*group, carry) = (value % BASE, value / BASE);
        }
        if carry > 0 {
            groups.push(carry);
        }
    }
    let Some((highest, lower)) = groups.split_last() else { return (false, "0".to_owned()) };
    let mut text = highest.to_string();
    for group in lower.iter().rev() {
        text.push_str(&format!("{group:09}"));
    }
    (negative, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(scale: i32, unscaled: i128) -> String {
        decimal_text(&[&scale.to_be_bytes()[..], &unscaled.to_be_bytes()].concat()).unwrap()
    }

    #[test]
    fn decimals_are_as_java_writes_them() {
        assert_eq!(text(0, -812_823), "-812823");
        assert_eq!(text(1, 4_034_000_810_670), "403400081067.0");
        assert_eq!(text(4, 5), "0.0005");
        assert_eq!(text(10, -5), "-5E-10");
        assert_eq!(text(-3, 12), "1.2E+4");
        assert_eq!(text(3, 0), "0.000");
        assert_eq!(text(2, i128::MIN), "-1701411834604692317316873037158841057.28");
        assert_eq!(decimal_text(&[0, 0, 0, 0, 0xff]).unwrap(), "-1");
        assert!(decimal_text(&[0, 0, 0, 0]).is_none() && decimal_text(&[0, 0]).is_none());
    }

    #[test]
    fn types_have_several_names() {
        let of = |name: &str, kind: &str| columns(&Value::map([(name, Value::from(kind))]));
        assert_eq!(of("f:a", "long").unwrap()[0].stored, of("f:a", "int64").unwrap()[0].stored);
        let decimal = &of("f:a:b", "BigDecimal").unwrap()[0];
        assert_eq!((decimal.family.as_slice(), decimal.qualifier.as_slice()), (&b"f"[..], &b"a:b"[..]));
        assert!(of("f:a", "money").is_err() && of("a", "long").is_err());
    }
}
