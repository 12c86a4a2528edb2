//! Writes the key of a row group.
//!
//! ```text
//! key    | VInt rows | column | column .. |
//! column | VInt bytes on disk | VInt bytes of cells | VInt n | lengths of cells: n bytes |
//! ```
//!
//! Each length is a VInt; if `k` further cells have the same length, the VInt `~k` follows it.

use coldframe_encoding::varint::{put_hadoop_text, put_hadoop_vlong};
use coldframe_encoding::{Error, Result};

pub(super) struct Key {
    pub(super) bytes: Vec<u8>,
    lengths: Vec<u8>,
}

impl Key {
    pub(super) fn new(rows: usize) -> Self {
        let mut bytes = Vec::new();
        put_hadoop_vlong(&mut bytes, i64::try_from(rows).unwrap_or(i64::MAX));
        Self { bytes, lengths: Vec::new() }
    }

    /// Appends a column: its bytes on disk, the bytes of its cells, the length of each cell.
    pub(super) fn column(&mut self, stored: usize, plain: usize, lengths: &[u32]) -> Result<()> {
        for n in [stored, plain] {
            let n = i32::try_from(n)
                .map_err(|_| Error::invalid(format!("a column of {n} bytes in a row group")))?;
            put_hadoop_vlong(&mut self.bytes, n.into());
        }
        self.lengths.clear();
        for run in lengths.chunk_by(|a, b| a == b) {
            let further = run.len().saturating_sub(1);
            put_hadoop_vlong(&mut self.lengths, run.first().copied().unwrap_or(0).into());
            if further > 0 {
                put_hadoop_vlong(&mut self.lengths, !i64::try_from(further).unwrap_or(i64::MAX));
            }
        }
        put_hadoop_text(&mut self.bytes, &self.lengths);
        Ok(())
    }
}
