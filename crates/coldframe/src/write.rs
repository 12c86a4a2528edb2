//! Writes files so that they are there whole or not at all.

use std::io::BufWriter;
use std::path::Path;

use arrow_array::RecordBatchReader;
use coldframe_core::{Error, Result, WriteOptions, arrow_error};

use crate::format_named;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
}

/// Writes all batches of `data` to `dest`: first under a temporary name beside it, which takes its place at the end.
/// `tick` is called after each batch with the rows so far, and may stop the run by an error.
pub fn write_file(
    data: &mut dyn RecordBatchReader,
    dest: &Path,
    format: &str,
    options: &WriteOptions,
    mut tick: impl FnMut(u64) -> Result<()>,
) -> Result<Written> {
    let format = format_named(format)?;
    let named = |e: Error| e.in_file(dest.display().to_string());
    let folder = dest.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = tempfile::Builder::new()
        .prefix(".coldframe-")
        .tempfile_in(folder)
        .map_err(|e| named(Error::from(e)))?;
    let handle = temporary.reopen().map_err(|e| named(Error::from(e)))?;
    let sink = Box::new(BufWriter::with_capacity(1 << 20, handle));
    let mut writer = format.create(sink, &data.schema(), options).map_err(named)?;
    let mut rows = 0;
    for batch in data {
        let batch = batch.map_err(arrow_error)?;
        writer.write(&batch).map_err(named)?;
        rows += batch.num_rows() as u64;
        tick(rows)?;
    }
    let bytes = writer.finish().map_err(named)?;
    commit(temporary, dest).map_err(named)?;
    Ok(Written { rows, bytes })
}

/// Gives the finished file its name. Others may read it, as any file that the process creates.
fn commit(temporary: tempfile::NamedTempFile, dest: &Path) -> Result<()> {
    temporary.as_file().sync_all()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        temporary.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    temporary.persist(dest).map_err(|e| Error::from(e.error))?;
    Ok(())
}
