//! Guesses which SerDe wrote a file from the cells of its first rows, since the file does not state it.
//!
//! Both SerDes write text unchanged. They differ in nulls (`\N`, and an empty cell), in the empty string (no bytes, and
//! the byte `bf`), and in all types other than text: `ColumnarSerDe` prints them, `LazyBinaryColumnarSerDe` writes
//! their bytes. The user must check the guess.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::{Array, BinaryArray, RecordBatch};
use coldframe_core::{DamageLog, OnError, Plan, PlanRequest, Result, Scan, Value};

use crate::open::RawFile;
use crate::options::raw_schema;
use crate::scan::columns::{Decoders, RawCells, ScanColumn};
use crate::scan::plan::GroupPlan;

/// Number of rows to examine.
const ROWS: usize = 10_000;

/// Counts of the cells that are typical of each SerDe.
#[derive(Debug, Default, PartialEq, Eq)]
struct Votes {
    text: u64,
    binary: u64,
    /// Two or more digits, as numbers are printed. A column of strings may have such cells, too.
    numbers: u64,
}

impl Votes {
    fn add(&mut self, cell: &[u8]) {
        match cell {
            [] => {}
            b"\\N" => self.text += 1,
            // A small number, a boolean, the empty string.
            [0 | 0x0e..=0x1f | 0x80..] => self.binary += 1,
            // Ambiguous: a separator or a small number, a letter or a larger number.
            [_] => {}
            // The first byte of a multi-byte number; text does not begin with it.
            [0x80..=0xbf, ..] => self.binary += 1,
            _ if cell.contains(&0) => self.binary += 1,
            _ => self.numbers += u64::from(is_number(cell)),
        }
    }

    fn guess(&self) -> Option<&'static str> {
        match (self.text, self.binary) {
            (0, 0) => (self.numbers > 0).then_some("text"),
            // If there are ten times as many cells of digits as binary cells, the file may be text with
            // another null format: no guess.
            (0, binary) => (binary.saturating_mul(10) >= self.numbers).then_some("binary"),
            (text, binary) => match text.saturating_add(self.numbers).cmp(&binary) {
                Ordering::Greater => Some("text"),
                Ordering::Less => Some("binary"),
                Ordering::Equal => None,
            },
        }
    }
}

/// Whether a cell is a number or a date , in digits.
fn is_number(cell: &[u8]) -> bool {
    cell.iter().all(|byte| byte.is_ascii_digit() || b"-+.:eE ".contains(byte))
        && cell.iter().any(u8::is_ascii_digit)
}

/// Options that open the file as a table: `serde` is set only if the cells decide it.
pub(crate) fn proposal(file: &RawFile) -> Result<Option<Value>> {
    let schema = raw_schema(file.header.columns);
    let columns = schema.fields().iter().enumerate().map(|(i, field)| ScanColumn {
        in_file: Some(i),
        name: field.name().clone(),
        data_type: field.data_type().clone(),
        decoder: Arc::new(RawCells),
    });
    let decoders =
        Decoders::new(columns.collect(), schema.clone(), file.context.codec, file.context.limits, false);
    let scan = Scan { on_error: OnError::Skip, batch_rows: ROWS, ..Scan::default() };
    let request = PlanRequest { scan, decode: schema.clone(), damage: DamageLog::default() };
    let mut plan = GroupPlan::new(file.walk(), file.source.clone(), decoders, request, 0..file.len())?;
    let (mut votes, mut rows) = (Votes::default(), 0);
    'groups: while let Some(unit) = plan.next_unit()? {
        let bytes = unit.fetch.iter().map(|f| f.source.read(f.range.clone())).collect::<Result<_>>()?;
        for batch in unit.decode.decode(bytes)? {
            rows += add(&batch?, &mut votes);
            if rows >= ROWS {
                break 'groups;
            }
        }
    }
    let names = schema.fields().iter().map(|field| format!("{} string", field.name()));
    let mut options = vec![("schema".to_owned(), Value::from(names.collect::<Vec<_>>().join(", ")))];
    options.extend(votes.guess().map(|serde| ("serde".to_owned(), Value::from(serde))));
    Ok(Some(Value::Map(options)))
}

fn add(batch: &RecordBatch, votes: &mut Votes) -> usize {
    for column in batch.columns() {
        let Some(cells) = column.as_any().downcast_ref::<BinaryArray>() else { continue };
        cells.iter().flatten().for_each(|cell| votes.add(cell));
    }
    batch.num_rows()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(cells: &[&[u8]]) -> Option<&'static str> {
        let mut votes = Votes::default();
        cells.iter().for_each(|cell| votes.add(cell));
        votes.guess()
    }

    #[test]
    fn nulls_as_text_mean_the_text_serde() {
        assert_eq!(guess(&[b"12", b"\\N", b"a"]), Some("text"));
        assert_eq!(guess(&[b"caf\xe9", b"\\N", b"x"]), Some("text"));
    }

    #[test]
    fn numbers_as_digits_mean_the_text_serde() {
        assert_eq!(guess(&[b"12", b"2014-01-01", b"-3.5"]), Some("text"));
    }

    #[test]
    fn numbers_as_bytes_mean_the_binary_serde() {
        assert_eq!(guess(&[b"\x8e\x01\x00", b"abc", b"\xff"]), Some("binary"));
        assert_eq!(guess(&[&1.5_f64.to_be_bytes(), b"abc"]), Some("binary"));
        assert_eq!(guess(&[b"\xbf", b"abc", b""]), Some("binary"));
    }

    #[test]
    fn one_binary_cell_does_not_outweigh_many_digits() {
        let mut cells: Vec<&[u8]> = vec![b"12"; 50];
        cells.push(b"\x00\x01");
        assert_eq!(guess(&cells), None);
        cells.push(b"\\N");
        assert_eq!(guess(&cells), Some("text"));
    }

    #[test]
    fn strings_give_no_guess() {
        assert_eq!(guess(&[b"abc", b"", b"x y"]), None);
        assert_eq!(guess(&[]), None);
    }
}
