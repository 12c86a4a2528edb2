//! An open RCFile: the header, and the user's options.

use std::sync::Arc;

use coldframe_core::{ErrorContext, Limits, OpenOptions, ReadAt, Result, Source};

use crate::layout::header::Header;
use crate::layout::row_group::FileContext;
use crate::options::Table;
use crate::walk::GroupWalk;

/// Number of bytes that are read first for the header.
const HEADER_GUESS: u64 = 4096;

/// An open RCFile.
#[derive(Debug)]
pub(crate) struct RawFile {
    pub(crate) source: Arc<dyn ReadAt>,
    pub(crate) header: Header,
    pub(crate) context: FileContext,
    pub(crate) table: Table,
}

impl RawFile {
    /// Reads the header.
    pub(crate) fn open(source: &Source, options: &OpenOptions) -> Result<Self> {
        let bytes = source.bytes()?.clone();
        let header = read_header(bytes.as_ref(), &options.limits).within(|| "header")?;
        let codec = header.codec().within(|| "header")?;
        let table = Table::new(options, header.columns)?;
        let context = FileContext {
            sync: header.sync,
            columns: header.columns,
            codec,
            header_end: header.end,
            limits: options.limits,
        };
        Ok(Self { source: bytes, header, context, table })
    }

    /// A walk over the row groups.
    pub(crate) fn walk(&self) -> GroupWalk {
        GroupWalk::new(self.context.clone(), self.source.clone())
    }

    /// Length of the file.
    pub(crate) fn len(&self) -> u64 {
        self.source.len()
    }
}

/// Parses the header from as few bytes as possible.
fn read_header(source: &dyn ReadAt, limits: &Limits) -> Result<Header> {
    let mut want = HEADER_GUESS;
    loop {
        let len = source.len().min(want);
        let bytes = source.read(0..len)?;
        match Header::parse(&bytes, limits) {
            Ok(header) => return Ok(header),
            Err(e) if len == source.len() || len >= limits.max_metadata_bytes || !e.is_confined() => {
                return Err(e);
            }
            Err(_) => want = want.saturating_mul(16),
        }
    }
}
