//! Guesses the columns and types of a wide table, from the qualifiers and values of some rows.
//!
//! Eight bytes may be an integer, a float or text. The guess is the type for which it is least likely that
//! the values fit it by chance. The user should review the guess.

use std::collections::BTreeMap;

use arrow_array::{Array, BinaryArray, RecordBatch};
use coldframe_core::{DamageLog, Error, OnError, Plan, Result, Value};

use crate::open::{CellRequest, OpenTable, cell_schema};
use crate::options::{Options, View};
use crate::scan::plan::{RegionPlan, Rows};

/// How many cells are examined, per region and in total.
const OF_REGION: u64 = 20_000;
const OF_TABLE: u64 = 200_000;
/// Maximum number of proposed columns, because qualifiers may themselves be data.
const MAX_COLUMNS: usize = 1000;

/// Statistics of a column's values.
#[derive(Debug)]
struct ColumnStats {
    cells: u64,
    /// The length of all values, if all values have the same length.
    len: Option<usize>,
    text: bool,
    flags: bool,
    small: u64,
    float: u64,
}

impl Default for ColumnStats {
    fn default() -> Self {
        Self { cells: 0, len: None, text: true, flags: true, small: 0, float: 0 }
    }
}

impl ColumnStats {
    fn add(&mut self, value: &[u8]) {
        self.len =
            if self.cells == 0 { Some(value.len()) } else { self.len.filter(|len| *len == value.len()) };
        self.cells += 1;
        let printable = |text: &str| !text.chars().any(|c| c.is_control() && !c.is_whitespace());
        self.text &= std::str::from_utf8(value).is_ok_and(printable);
        self.flags &= matches!(value, [0 | 1 | 0xff]);
        let plausible = |n: f64| n == 0.0 || (1e-9..1e15).contains(&n.abs());
        match (<[u8; 8]>::try_from(value), <[u8; 4]>::try_from(value)) {
            (Ok(eight), _) => {
                self.small += u64::from(i64::from_be_bytes(eight).unsigned_abs() < 1 << 50);
                self.float += u64::from(plausible(f64::from_be_bytes(eight)));
            }
            (_, Ok(four)) => {
                self.small += u64::from(i32::from_be_bytes(four).unsigned_abs() < 1 << 27);
                self.float += u64::from(plausible(f64::from(f32::from_be_bytes(four))));
            }
            _ => {}
        }
    }

    fn guess(&self) -> &'static str {
        let mostly = |n: u64| n.saturating_mul(10) >= self.cells.saturating_mul(9);
        match self.len {
            Some(1) if self.flags => "boolean",
            _ if self.text => "string",
            Some(8) if mostly(self.small) => "long",
            Some(8) if mostly(self.float) => "double",
            Some(8) => "long",
            Some(4) if mostly(self.small) => "int",
            Some(4) if mostly(self.float) => "float",
            Some(4) => "int",
            Some(2) => "short",
            _ => "binary",
        }
    }
}

/// Options for a wide table; `None` if the table has no cells to guess from.
pub(crate) fn proposal(table: &OpenTable) -> Result<Option<Value>> {
    let mut seen: BTreeMap<String, ColumnStats> = BTreeMap::new();
    let options = Options { view: View::Latest, versions: 1, ..table.options.clone() };
    let mut all = 0;
    for region in &table.regions {
        let request = CellRequest {
            columns: cell_schema(false),
            on_error: OnError::Skip,
            damage: DamageLog::default(),
            batch_rows: 4096,
        };
        let rows =
            Rows { lower: region.start.clone(), upper: region.upper().map(<[u8]>::to_vec), first: true };
        let families = vec![true; table.shared.families.len()];
        let scanning = table.scanning_by(&options, request);
        let mut plan = RegionPlan::new(table.source(), region.clone(), scanning, families, rows);
        let mut own = 0;
        'region: while let Some(unit) = plan.next_unit()? {
            let bytes = unit.fetch.iter().map(|f| f.source.read(f.range.clone())).collect::<Result<_>>()?;
            for batch in unit.decode.decode(bytes)? {
                own += add(&batch?, &mut seen)?;
                if own >= OF_REGION {
                    break 'region;
                }
            }
        }
        all += own;
        if all >= OF_TABLE {
            break;
        }
    }
    if seen.is_empty() {
        return Ok(None);
    }
    let columns = seen.into_iter().take(MAX_COLUMNS).map(|(name, seen)| (name, Value::from(seen.guess())));
    Ok(Some(Value::map([
        ("table", Value::from(table.shared.table.to_string())),
        ("view", "pivot".into()),
        ("columns", Value::map(columns)),
    ])))
}

fn add(batch: &RecordBatch, seen: &mut BTreeMap<String, ColumnStats>) -> Result<u64> {
    let column = |name: &str| -> Result<&BinaryArray> {
        let array = batch.column_by_name(name).and_then(|c| c.as_any().downcast_ref());
        array.ok_or_else(|| Error::schema(format!("expected the column `{name}`")))
    };
    let (families, qualifiers, values) = (column("family")?, column("qualifier")?, column("value")?);
    for i in 0..batch.num_rows() {
        let name = [families.value(i), b":", qualifiers.value(i)].concat();
        // A qualifier that is not text cannot be the name of a column.
        let Ok(name) = String::from_utf8(name) else { continue };
        if seen.len() < MAX_COLUMNS || seen.contains_key(&name) {
            seen.entry(name).or_default().add(values.value(i));
        }
    }
    Ok(batch.num_rows() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(values: &[&[u8]]) -> &'static str {
        let mut seen = ColumnStats::default();
        values.iter().for_each(|value| seen.add(value));
        seen.guess()
    }

    #[test]
    fn types_are_guessed_from_values() {
        assert_eq!(guess(&[&17_i64.to_be_bytes(), &(-4_i64).to_be_bytes()]), "long");
        assert_eq!(guess(&[&17.25_f64.to_be_bytes(), &(-4e7_f64).to_be_bytes()]), "double");
        assert_eq!(guess(&[&17_i32.to_be_bytes(), &0_i32.to_be_bytes()]), "int");
        assert_eq!(guess(&[&0.5_f32.to_be_bytes()]), "float");
        assert_eq!(guess(&[&300_i16.to_be_bytes()]), "short");
        assert_eq!(guess(&[&[0], &[255]]), "boolean");
        assert_eq!(guess(&[b"caf\xc3\xa9", b"", b"12345678"]), "string");
        assert_eq!(guess(&[b"caf\xc3\xa9", b"\xff"]), "binary");
    }
}
