//! Writes files so that they are there whole or not at all.

use std::ffi::OsStr;
use std::io::BufWriter;
use std::path::Path;

use arrow_array::RecordBatchReader;
use coldframe_core::writing::{Intake, stream_error, unfit, unsuitable};
use coldframe_core::{Error, Result, WriteOptions};
use coldframe_store::Location;

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
/// `dest` is a local path, or a `file://` URL of one. `tick` is called after each batch with the rows so far, and may stop
/// the run by an error.
pub fn write_file(
    data: &mut dyn RecordBatchReader,
    dest: impl AsRef<OsStr>,
    format: &str,
    options: &WriteOptions,
    mut tick: impl FnMut(u64) -> Result<()>,
) -> Result<Written> {
    let format = format_named(format)?;
    let dest = match Location::parse(dest.as_ref())? {
        Location::Local(path) => path,
        Location::Url { url, scheme } => {
            return Err(
                Error::unsupported(format!("writing to {scheme}:// URLs; only local paths")).in_file(url)
            );
        }
    };
    let named = |e: Error| e.in_file(dest.display().to_string());
    let folder = dest.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = tempfile::Builder::new()
        .prefix(".coldframe-")
        .tempfile_in(folder)
        .map_err(|e| named(Error::from(e)))?;
    let handle = temporary.reopen().map_err(|e| named(Error::from(e)))?;
    let sink = Box::new(BufWriter::with_capacity(1 << 20, handle));
    let refused = |e: Error| named(unsuitable(e));
    let intake = Intake::new(&data.schema()).map_err(refused)?;
    let mut writer = format.create(sink, intake.schema(), options).map_err(refused)?;
    let mut rows = 0;
    for batch in data {
        let batch = batch.map_err(stream_error)?;
        for piece in intake.pieces(&batch) {
            writer.write(&piece.map_err(refused)?).map_err(|e| named(unfit(e)))?;
        }
        rows += batch.num_rows() as u64;
        tick(rows)?;
    }
    let bytes = writer.finish().map_err(|e| named(unfit(e)))?;
    commit(temporary, &dest).map_err(named)?;
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
