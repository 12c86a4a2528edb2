//! Writes files so that they are there whole or not at all.

use std::ffi::OsStr;
use std::io::BufWriter;
use std::path::Path;

use arrow_array::RecordBatchReader;
use arrow_schema::ArrowError;
use coldframe_core::{Error, ErrorKind, Result, WriteOptions, arrow_error};
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
    let unsuitable = |e: Error| named(unsuitable(e));
    let folder = dest.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = tempfile::Builder::new()
        .prefix(".coldframe-")
        .tempfile_in(folder)
        .map_err(|e| named(Error::from(e)))?;
    let handle = temporary.reopen().map_err(|e| named(Error::from(e)))?;
    let sink = Box::new(BufWriter::with_capacity(1 << 20, handle));
    let mut writer = format.create(sink, &data.schema(), options).map_err(unsuitable)?;
    let mut rows = 0;
    for batch in data {
        let batch = batch.map_err(source_failed)?;
        writer.write(&batch).map_err(unsuitable)?;
        rows += batch.num_rows() as u64;
        tick(rows)?;
    }
    let bytes = writer.finish().map_err(unsuitable)?;
    commit(temporary, &dest).map_err(named)?;
    Ok(Written { rows, bytes })
}

/// A writer has no corrupt file before it: what it finds broken, or too large, is in the data that it was given.
fn unsuitable(e: Error) -> Error {
    match e.kind() {
        ErrorKind::Corrupt(_) | ErrorKind::Checksum { .. } | ErrorKind::LimitExceeded { .. } => {
            let (structure, schema) = (e.structure(), Error::schema(e.reason()));
            if structure.is_empty() { schema } else { schema.within(structure) }
        }
        _ => e,
    }
}

/// The caller's stream failed, which says nothing of the file to write.
fn source_failed(e: ArrowError) -> Error {
    match e {
        ArrowError::ExternalError(_) => arrow_error(e),
        other => Error::new(ErrorKind::Foreign(Box::new(other))),
    }
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
