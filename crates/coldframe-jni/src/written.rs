//! A file that the JVM writes: rows come from Java, and the bytes of the file go back to it, which stores them where the
//! session's Hadoop configuration says.
//!
//! ```text
//! {"options": {"as": "orc", "codec": "zstd", ..}, "schema": {"type": "struct", "fields": [..]}}
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use arrow_schema::SchemaRef;
use bytes::{Buf, BytesMut};
use coldframe::load::SaveOptions;
use coldframe::store::{Stat, Upload};
use coldframe::{Error, FileWriter, Result, WriteOptions, format_named};
use serde_json::Value as Json;

use crate::handles::locked;
use crate::{notes, rows, types};

/// The most bytes that go to Java at once.
const PIECE: usize = 1 << 20;

/// A file being written.
pub struct Written {
    schema: SchemaRef,
    writer: Option<FileWriter>,
    made: Made,
}

impl Written {
    /// Begins a file. The columns are those of the rows, also if the option `schema` says how to read them.
    pub fn begin(request: &[u8]) -> Result<Self> {
        let (options, schema) = parse(request)?;
        let made = Made::default();
        let upload = made.clone();
        let write = WriteOptions { extra: options.extra };
        let upload = || Ok(Box::new(upload) as Box<dyn Upload>);
        let writer = FileWriter::begin(&schema, upload, &options.path, &options.format, &write)?;
        Ok(Self { schema, writer: Some(writer), made })
    }

    /// Checks a request, and returns the ending of the names of its files.
    pub fn check(request: &[u8]) -> Result<String> {
        let (options, _) = parse(request)?;
        Self::begin(request)?;
        let format = format_named(&options.format)?;
        let ending = format.capabilities().endings.first().copied();
        Ok(format!(".{}", ending.unwrap_or_else(|| format.name())))
    }

    /// Adds rows in the form of [`crate::rows`].
    pub fn add(&mut self, bytes: &[u8], rows: usize) -> Result<()> {
        let batch = rows::batch(&self.schema, bytes, rows)?;
        self.writer.as_mut().ok_or_else(is_finished)?.write(&batch)
    }

    /// Completes the file.
    pub fn finish(&mut self) -> Result<()> {
        self.writer.take().ok_or_else(is_finished)?.finish().map(drop)
    }

    /// The next bytes of the file; none if there are no more for now.
    pub fn piece(&self) -> Vec<u8> {
        let mut made = locked(&self.made.0);
        let count = made.len().min(PIECE);
        made.copy_to_bytes(count).to_vec()
    }
}

fn is_finished() -> Error {
    Error::invalid("a file that is complete")
}

fn parse(request: &[u8]) -> Result<(SaveOptions, SchemaRef)> {
    let request: Json = serde_json::from_slice(request)
        .map_err(|why| Error::invalid(format!("a request that is not JSON: {why}")))?;
    let given = request.get("options").and_then(Json::as_object).into_iter().flatten();
    let given: BTreeMap<String, String> =
        given.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect();
    let schema = request.get("schema").ok_or_else(|| Error::invalid("expected columns, found none"))?;
    let (options, schema) = (SaveOptions::parse(&given, None)?, types::from_spark(schema)?);
    let schema = if options.format == "orc" { notes::stored(&schema) } else { schema };
    Ok((options, Arc::new(schema)))
}

/// The bytes of a file that Java has not yet got.
#[derive(Clone, Default)]
struct Made(Arc<Mutex<BytesMut>>);

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Made({} bytes)", locked(&self.0).len())
    }
}

impl Write for Made {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        locked(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Upload for Made {
    fn finish(self: Box<Self>) -> Result<Stat> {
        Ok(Stat::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(format: &str, more: &str) -> Vec<u8> {
        let fields = r#"{"name":"i","type":"integer","nullable":true,"metadata":{}}"#;
        let options = format!(r#"{{"as":"{format}","path":"/t"{more}}}"#);
        format!(r#"{{"options":{options},"schema":{{"type":"struct","fields":[{fields}]}}}}"#).into_bytes()
    }

    #[test]
    fn rows_become_the_bytes_of_a_file() {
        for (format, magic, ending) in [("orc", &b"ORC"[..], ".orc"), ("rcfile", b"RCF", ".rc")] {
            let request = request(format, "");
            assert_eq!(Written::check(&request).unwrap(), ending);
            let mut file = Written::begin(&request).unwrap();
            let rows: Vec<u8> =
                (0..3i32).flat_map(|i| [vec![1], i.to_le_bytes().to_vec()].concat()).collect();
            file.add(&rows, 3).unwrap();
            file.finish().unwrap();
            let mut whole = Vec::new();
            while let piece = file.piece()
                && !piece.is_empty()
            {
                whole.extend(piece);
            }
            assert!(whole.starts_with(magic), "{format}");
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("file");
            std::fs::write(&path, &whole).unwrap();
            let opened = coldframe::open(&path, None, &coldframe::OpenOptions::default()).unwrap();
            assert_eq!(opened.table.format(), format);
            assert!(file.add(&rows, 3).is_err());
        }
    }

    #[test]
    fn wrong_options_are_errors_before_any_row() {
        let unknown = Written::check(&request("orc", r#","codek":"zstd""#)).unwrap_err().to_string();
        assert!(unknown.contains("codek"), "{unknown}");
        assert!(Written::check(&request("parquet", "")).is_err());
    }
}
