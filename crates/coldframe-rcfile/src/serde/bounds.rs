//! Checks that Hive will read a written value as the same value.

use coldframe_encoding::{Error, Result};

/// An error for text of more than `max` code points.
pub(super) fn check_characters(name: &str, max: u32, text: &str) -> Result<()> {
    let limit = usize::try_from(max).unwrap_or(usize::MAX);
    if text.len() <= limit || text.chars().nth(limit).is_none() {
        return Ok(());
    }
    let length = text.chars().count();
    Err(Error::invalid(format!(
        "expected text of at most {max} characters for {name}({max}), found {length}"
    )))
}

/// An error for a decimal of more than `precision` digits: it would read as null.
pub(super) fn check_digits(unscaled: i128, precision: u8) -> Result<()> {
    if unscaled.unsigned_abs() < 10u128.pow(precision.min(38).into()) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "expected a decimal of at most {precision} digits, found the digits {unscaled}"
    )))
}

/// An error for a timestamp whose microseconds exceed 64 bits: it could not be read back in any unit.
pub(super) fn check_instant(seconds: i64, nanos: i64) -> Result<()> {
    let micros = i128::from(seconds) * 1_000_000 + i128::from(nanos / 1000);
    if i64::try_from(micros).is_ok() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the timestamp {seconds} s from 1970: expected a year from -290307 to 294246, others could not be read back"
    )))
}
