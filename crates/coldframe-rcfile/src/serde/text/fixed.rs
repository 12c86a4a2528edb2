//! Decodes columns of fixed-size values: a parser, and the loop that calls it.

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{BooleanArray, PrimitiveArray};
use coldframe_encoding::Result;

use super::cells::{Cell, CellSource, Validity};

/// Parses one value.
pub(super) trait Parse {
    /// The type of the value.
    type Value: Copy + Default;

    /// The value, or `None` where Hive gives null.
    fn parse(&self, cell: Cell<'_>) -> Option<Self::Value>;

    /// The error that concerns the column as a whole, after all cells are parsed.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Whether this parser may accept the cell, whatever it has read before; it accepts values out of range.
    /// The call may
    /// change the parser's state.
    fn may_accept(&self, cell: Cell<'_>) -> bool {
        self.parse(cell).is_some() || self.check().is_err()
    }
}

/// The null format. Cells are compared with it only if it parses as a value (such as `-1`): otherwise parsing gives
/// null.
struct NullFormat<'a> {
    text: &'a [u8],
    /// Longer than every cell if no comparison is needed.
    len: usize,
}

impl<'a> NullFormat<'a> {
    /// `parser` must not be the parser that reads the cells, because the null format would change its state.
    fn new(text: &'a [u8], parser: &impl Parse) -> Self {
        let compared = parser.may_accept(Cell { rest: text, len: text.len() });
        Self { text, len: if compared { text.len() } else { usize::MAX } }
    }

    #[inline(always)]
    fn is(&self, cell: Cell<'_>) -> bool {
        cell.len == self.len && cell.bytes() == self.text
    }
}

/// An array of the parsed values, made in blocks of 64.
///
/// This is a separate function for each type, so that its loop can use all registers.
#[inline(never)]
pub(super) fn primitive<T: ArrowPrimitiveType, S: CellSource, P: Parse<Value = T::Native>>(
    source: &S,
    null_format: &[u8],
    make: impl Fn() -> P,
) -> Result<PrimitiveArray<T>> {
    let null = NullFormat::new(null_format, &make());
    let parser = make();
    let mut values = Vec::with_capacity(source.len());
    let mut validity = Validity::with_capacity(source.len());
    let mut cells = source.cells();
    let mut block = [T::Native::default(); 64];
    loop {
        let (mut valid, mut len) = (0u64, 0);
        for (slot, cell) in block.iter_mut().zip(&mut cells) {
            let value = cell.filter(|c| !null.is(*c)).and_then(|c| parser.parse(c));
            valid |= u64::from(value.is_some()) << (len & 63);
            *slot = value.unwrap_or_default();
            len += 1;
        }
        values.extend_from_slice(block.get(..len).unwrap_or_default());
        validity.push_block(valid, len);
        if len < block.len() {
            break;
        }
    }
    parser.check()?;
    Ok(PrimitiveArray::new(values.into(), validity.finish()))
}

/// An array of booleans, made in blocks of 64.
#[inline(never)]
pub(super) fn boolean<S: CellSource, P: Parse<Value = bool>>(
    source: &S,
    null_format: &[u8],
    make: impl Fn() -> P,
) -> BooleanArray {
    let null = NullFormat::new(null_format, &make());
    let parser = make();
    let (mut values, mut validity) =
        (Validity::with_capacity(source.len()), Validity::with_capacity(source.len()));
    let mut cells = source.cells();
    loop {
        let (mut bits, mut valid, mut len) = (0u64, 0u64, 0);
        for cell in cells.by_ref().take(64) {
            let value = cell.filter(|c| !null.is(*c)).and_then(|c| parser.parse(c));
            valid |= u64::from(value.is_some()) << (len & 63);
            bits |= u64::from(value.unwrap_or_default()) << (len & 63);
            len += 1;
        }
        values.push_block(bits, len);
        validity.push_block(valid, len);
        if len < 64 {
            return BooleanArray::new(values.into_bits(), validity.finish());
        }
    }
}
