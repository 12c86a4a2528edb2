//! Decodes version 1 of integer RLE.
//!
//! ```text
//! run       | n in 0..=127 | delta i8 | base varint |      n + 3 values, base, base + delta, ..
//! literals  | -n as i8 | n varints |                       n in 1..=128
//! ```

use coldframe_encoding::Result;

use super::{Progress, Word, narrow, short, signed_varint};

/// Maximum number of bytes of a run.
pub(super) const MAX_BYTES: usize = 1 + 128 * 10;

/// The header of a run.
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

/// Decodes runs from the front of `bytes` while `out` has room and `bytes` has the longest possible run, or
/// the rest of the stream.
pub(super) fn runs<W: Word>(bytes: &[u8], signed: bool, out: &mut [W]) -> Progress {
    let last = bytes.len() < MAX_BYTES;
    let (mut used, mut filled) = (0, 0);
    let mut next = || -> Result<bool> {
        let rest = bytes.get(used..).unwrap_or_default();
        if filled == out.len() || (used > 0 && !last && rest.len() < MAX_BYTES) {
            return Ok(false);
        }
        let head = head(rest)?;
        let Some(now) = out.get_mut(filled..filled + head.count) else { return Ok(false) };
        used += run(rest, head, signed, now)?;
        filled += head.count;
        Ok(true)
    };
    let result = loop {
        match next() {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(e) => break Err(e),
        }
    };
    Progress { used, filled, result }
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
