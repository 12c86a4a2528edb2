//! Computes the SHA-256 of a file while it is written, so that it need not be read again.

use std::fmt::{self, Debug, Write as _};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use coldframe::Result;
use coldframe::store::{Stat, Upload};
use sha2::{Digest, Sha256};

/// The hash so far, which still exists after the upload is finished.
#[derive(Clone, Default)]
pub(crate) struct Hash(Arc<Mutex<Sha256>>);

impl Hash {
    fn add(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).update(bytes);
    }

    /// In hexadecimal digits, as `sha256sum` prints it.
    pub(crate) fn text(&self) -> String {
        let digest = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().finalize();
        digest.iter().fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a `String` cannot fail.
            let _: fmt::Result = write!(text, "{byte:02x}");
            text
        })
    }
}

/// An upload that hashes its bytes.
pub(crate) struct Hashed {
    upload: Box<dyn Upload>,
    hash: Hash,
}

impl Hashed {
    pub(crate) fn over(upload: Box<dyn Upload>) -> (Box<dyn Upload>, Hash) {
        let hash = Hash::default();
        (Box::new(Self { upload, hash: hash.clone() }), hash)
    }
}

impl Debug for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hashed").field("upload", &self.upload).finish_non_exhaustive()
    }
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.upload.write(bytes)?;
        self.hash.add(bytes.get(..taken).unwrap_or(bytes));
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.upload.flush()
    }
}

impl Upload for Hashed {
    fn finish(self: Box<Self>) -> Result<Stat> {
        self.upload.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow_array::{Int64Array, RecordBatch, StringArray};
    use coldframe::store::Mode;
    use coldframe::{Dest, WriteOptions};
    use sha2::{Digest, Sha256};

    use crate::{ParquetOptions, TargetFile, TargetFormat};

    /// For each format, and for files of several row groups or stripes, the hash is equal to the hash of the
    /// stored file.
    #[test]
    fn the_hash_covers_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let ids: Vec<i64> = (0..40_000).map(|n| n * 7919 % 10_007).collect();
        let texts: Vec<String> = ids.iter().map(|id| format!("text {id}")).collect();
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(Int64Array::from(ids)) as _),
            ("text", Arc::new(StringArray::from(texts)) as _),
        ])
        .unwrap();
        let parquet = ParquetOptions { row_group_rows: 10_000, ..ParquetOptions::default() };
        let formats = [
            TargetFormat::Parquet(parquet),
            TargetFormat::Own("orc".to_owned(), WriteOptions::default()),
            TargetFormat::Own("rcfile".to_owned(), WriteOptions::default()),
        ];
        for (number, format) in formats.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            let dest = Dest::new(&path, &BTreeMap::new(), Mode::New).unwrap();
            let mut file = TargetFile::create(&batch.schema(), &dest, format).unwrap();
            for start in (0..batch.num_rows()).step_by(10_000) {
                file.write(&batch.slice(start, 10_000)).unwrap();
            }
            let finished = file.finish().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let expected: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(finished.sha256, expected);
            assert_eq!(finished.written.bytes, bytes.len() as u64);
        }
    }
}
