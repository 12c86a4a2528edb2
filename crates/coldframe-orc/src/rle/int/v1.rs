//! Version 1.
//!
//! ```text
//! run       | n in 0..=127 | delta i8 | base varint |      n + 3 values, base, base + delta, ..
//! literals  | -n as i8 | n varints |                       n in 1..=128
//! ```

use coldframe_encoding::Result;

use super::{Word, narrow, short, signed_varint};

/// Most bytes of a run.
pub(super) const MAX_BYTES: usize = 1 + 128 * 10;

/// What the first byte says.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) count: usize,
    literal: bool,
}

pub(super) fn head(bytes: &[u8]) -> Result<Head> {
    let first = *bytes.first().ok_or_else(short)?;
    Ok(if first < 0x80 {
        Head { count: usize::from(first) + 3, literal: false }
    } else {
        Head { count: 256 - usize::from(first), literal: true }
    })
}

/// Decodes the run at the front of `bytes` into `out`; returns its length in bytes.
pub(super) fn run<W: Word>(bytes: &[u8], head: Head, signed: bool, out: &mut [W]) -> Result<usize> {
    if head.literal {
        let mut at = 1;
        for to in out {
            let (value, used) = signed_varint(bytes.get(at..).unwrap_or_default(), signed)?;
            *to = narrow(value)?;
            at += used;
        }
        return Ok(at);
    }
    let delta = i64::from(bytes.get(1).ok_or_else(short)?.cast_signed());
    let (mut value, used) = signed_varint(bytes.get(2..).unwrap_or_default(), signed)?;
    for to in out {
        *to = narrow(value)?;
        value = value.wrapping_add(delta);
    }
    Ok(2 + used)
}
