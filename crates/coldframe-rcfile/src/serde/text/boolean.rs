//! Reads `boolean`: `true` and `false` in any case; with `hive.lazysimple.extended_boolean_literal` also `t`,
//! `1`, `f`, `0`.
//!
//! Hive reuses one `LazyBoolean` object for all cells. With that property, a longer cell that is none of these
//! words leaves the object unchanged, so Hive returns the value of the cell before it. To return the same values,
//! this reader does so too, within a row group; such a cell at the start of a row group is null.

use std::cell::Cell as Shared;

use super::cells::Cell;
use super::fixed::Parse;

pub(super) struct Boolean {
    extended: bool,
    /// The value in the object that Hive reuses.
    previous: Shared<Option<bool>>,
}

impl Boolean {
    pub(super) fn new(extended: bool) -> Self {
        Self { extended, previous: Shared::new(None) }
    }

    #[cold]
    fn extended(&self, text: &[u8]) -> Option<bool> {
        match text {
            b"1" | b"t" | b"T" => Some(true),
            b"0" | b"f" | b"F" => Some(false),
            [_] => None,
            _ => self.previous.get(),
        }
    }
}

impl Parse for Boolean {
    type Value = bool;

    #[inline(always)]
    fn parse(&self, cell: Cell<'_>) -> Option<bool> {
        let value = match literal(cell) {
            None if self.extended => self.extended(cell.bytes()),
            value => value,
        };
        if self.extended {
            self.previous.set(value);
        }
        value
    }

    /// Other cells of two bytes or more give the previous value, if there is a previous value.
    fn may_accept(&self, cell: Cell<'_>) -> bool {
        (self.extended && cell.len > 1) || self.parse(cell).is_some()
    }
}

/// The cell, if it is `true` or `false`. Each of the two words has its own length, so no branch depends on
/// which one it is.
#[inline(always)]
fn literal(cell: Cell<'_>) -> Option<bool> {
    const CASE: u32 = 0x2020_2020;
    const PREFIXES: [u32; 6] = [0, 0, 0, 0, u32::from_le_bytes(*b"true"), u32::from_le_bytes(*b"fals")];
    let prefix = u32::from_le_bytes(*cell.rest.first_chunk()?) | CASE;
    let last = cell.rest.get(cell.len.wrapping_sub(1))? | 0x20;
    (prefix == *PREFIXES.get(cell.len)? && last == b'e').then_some(cell.len == 4)
}
