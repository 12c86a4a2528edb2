//! Finds offsets at which a row group may start, within a budget.
//!
//! A record header makes the test cheap and reliable:
//!
//! ```text
//! record length - key length = bytes of all columns, by the key
//! key length                 = length of the key, as parsed or decompressed
//! rows                       = cells of each column
//! ```

use super::GroupWalk;
use crate::layout::key::{KeyBuffer, count_cells};
use crate::layout::row_group::RecordHeader;

/// Length of a record header.
pub(super) const HEADER_LEN: usize = 12;

/// How many bytes the searches of one walk may examine, in addition to four times the file's size: crafted
/// bytes may look like a group at every offset.
const BUDGET: u64 = 4 << 20;

/// The cost of examining an offset, without its key.
const EXAMINE_COST: u64 = 16;

/// The remaining budget, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Budget(u64);

impl Budget {
    pub(super) fn new(file_len: u64) -> Self {
        Self(BUDGET.saturating_add(file_len.saturating_mul(4)))
    }

    pub(super) fn spend(&mut self, bytes: u64) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }

    pub(super) fn refund(&mut self, bytes: u64) {
        self.0 = self.0.saturating_add(bytes);
    }
}

impl GroupWalk {
    /// Whether a self-consistent group without a marker starts at `at`.
    pub(super) fn is_group(&mut self, at: u64) -> bool {
        let Ok(bytes) = self.window.read(at..at.saturating_add(HEADER_LEN as u64)) else { return false };
        self.likely_header(at, &bytes).is_some_and(|header| self.agrees(at, &header).is_some())
    }

    /// The three lengths at `place`, if they are plausible.
    pub(super) fn likely_header(&self, place: u64, bytes: &[u8]) -> Option<RecordHeader> {
        let header = RecordHeader::parse(bytes)?;
        self.is_likely(place + HEADER_LEN as u64, &header).then_some(header)
    }

    /// Whether a header's lengths are plausible for a key at `at`.
    pub(super) fn is_likely(&self, at: u64, header: &RecordHeader) -> bool {
        self.stated_end(at, header).is_some_and(|end| end <= self.file_len())
    }

    /// Where a group with a key at `at` ends by its header, if the header's lengths are plausible except that the group
    /// may be longer than the file.
    pub(super) fn stated_end(&self, at: u64, header: &RecordHeader) -> Option<u64> {
        let length = |n: i64| u64::try_from(n).ok();
        let (key_len, disk_len) = (length(header.key_len.into())?, length(header.key_disk_len.into())?);
        // This rejects most offsets.
        if key_len < self.context.min_key_len() || disk_len > self.file_len() {
            return None;
        }
        let columns = length(i64::from(header.record_len) - i64::from(header.key_len))?;
        let plain = self.context.codec.is_none();
        let plausible = (!plain || key_len == disk_len) && self.check_key_len(key_len).is_ok();
        plausible.then(|| at.saturating_add(disk_len).saturating_add(columns))
    }

    /// Whether the key after a plausible header agrees with it. The budget is charged for the key before it
    /// is read.
    pub(super) fn agrees(&mut self, at: u64, header: &RecordHeader) -> Option<()> {
        let key_len = u64::try_from(header.key_len).ok()?;
        let disk_len = u64::try_from(header.key_disk_len).ok()?;
        if !self.budget.spend(key_len.saturating_add(disk_len).saturating_add(EXAMINE_COST)) {
            return None;
        }
        let start = at + HEADER_LEN as u64;
        let mut bytes = self.window.read(start..start + disk_len).ok()?;
        if let Some(codec) = self.context.codec {
            let mut key = Vec::new();
            let len = usize::try_from(key_len).ok()?;
            codec.decompress_exact(&mut self.decompressor, &bytes, len, &mut key).ok()?;
            bytes = key.into();
        }
        let key = KeyBuffer::parse(&bytes, self.context.columns, start).ok()?;
        let agrees = key.rows > 0
            && key.len as u64 == key_len
            && u64::try_from(header.record_len).ok() == key_len.checked_add(key.disk_len())
            && key.columns.iter().filter(|c| !c.lengths.is_empty()).all(|column| {
                count_cells(&column.lengths)
                    .is_ok_and(|(cells, bytes)| cells == key.rows && bytes == column.data_len)
            });
        agrees.then_some(())
    }
}
