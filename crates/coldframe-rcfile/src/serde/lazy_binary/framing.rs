//! Finds where a value inside another value ends.

use coldframe_encoding::{Cursor, Result};

/// How the end of a nested value is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// A fixed number of bytes.
    Fixed(usize),
    /// One VInt.
    VInt,
    /// Two VInts.
    TwoVInts,
    /// A VInt length and that many bytes.
    Length,
    /// A 4-byte length and that many bytes.
    Size,
    /// VInt scale, VInt length and that many bytes.
    Decimal,
    /// Four bytes and up to two VInts.
    Timestamp,
}

impl Framing {
    /// Takes the bytes of the next value, without its length prefix.
    pub(super) fn take<'a>(self, bytes: &mut Cursor<'a>) -> Result<&'a [u8]> {
        let whole = bytes.rest();
        let before = bytes.remaining();
        match self {
            Self::Fixed(n) => return bytes.take(n),
            Self::Length => return bytes.hadoop_text(),
            Self::Size => {
                let n = bytes.i32_be()?;
                return bytes.take_signed(n.into());
            }
            Self::VInt => bytes.hadoop_vlong().map(drop)?,
            Self::TwoVInts => {
                bytes.hadoop_vlong()?;
                bytes.hadoop_vlong()?;
            }
            Self::Decimal => {
                bytes.hadoop_vint()?;
                bytes.hadoop_text()?;
            }
            Self::Timestamp => skip_timestamp(bytes)?,
        }
        Ok(whole.get(..before - bytes.remaining()).unwrap_or_default())
    }
}

/// Skips a timestamp.
fn skip_timestamp(bytes: &mut Cursor<'_>) -> Result<()> {
    if bytes.u32_be()? >> 31 == 1 && bytes.hadoop_vlong()? < 0 {
        bytes.hadoop_vlong()?;
    }
    Ok(())
}
