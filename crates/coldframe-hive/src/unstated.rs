//! Rows of a streamed delta that lie after the last length in its side file.
//!
//! ```text
//! bucket_00000                rows, footer | rows, footer | rows, footer
//! bucket_00000_flush_length           8 bytes | 8 bytes           the last rows are not committed, or the side file was cut
//! ```
//!
//! A writer flushes the rows first, and then states the length. Hive does not read the rows in between, and neither does this
//! reader; but a side file that lost its end looks the same.

use std::sync::Arc;

use coldframe_core::io::Folder;
use coldframe_core::{Error, Fault, Notice, Result, TableFile};
use coldframe_orc::{Front, Options, OrcFile};

use crate::state::DataFile;

/// Rows of a file that are not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnstatedRows {
    path: String,
    stated_bytes: u64,
    rows: u64,
}

/// The files that end with complete rows after the last stated length.
pub(crate) fn unstated_rows(
    folder: &dyn Folder,
    files: &[DataFile],
    options: &Options,
) -> Result<Vec<UnstatedRows>> {
    let mut all = Vec::new();
    for file in files {
        let Some(stated) = file.valid_len.filter(|len| *len < file.len) else { continue };
        match rows_after(folder, &file.path, stated, options) {
            Ok(0) => {}
            Ok(rows) => all.push(UnstatedRows { path: file.path.clone(), stated_bytes: stated, rows }),
            // The file ends within a write, which is not committed.
            Err(e) if Fault::is(&e) => {}
            Err(e) => return Err(e.in_file(file.path.clone())),
        }
    }
    Ok(all)
}

fn rows_after(folder: &dyn Folder, path: &str, stated: u64, options: &Options) -> Result<u64> {
    let source = folder.open(path)?;
    let rows = |file: OrcFile| file.row_count().ok_or_else(|| Error::corrupt("expected a number of rows"));
    let all = rows(OrcFile::open(source.clone(), options.clone())?)?;
    let counted = match stated {
        0 => 0,
        len => rows(OrcFile::open(Arc::new(Front { source, len }), options.clone())?)?,
    };
    Ok(all.saturating_sub(counted))
}

impl UnstatedRows {
    pub(crate) fn notice(&self) -> Notice {
        let Self { path, stated_bytes, rows } = self;
        Notice::PartialTable(format!(
            "{path} has {rows} rows after the {stated_bytes} bytes that its side file states: they were not committed, or the \
             side file is damaged. Hive does not read them either (complete=False accepts it)"
        ))
    }
}
