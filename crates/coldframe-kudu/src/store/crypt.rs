//! Encryption at rest: each file has its own AES key, which is encrypted with the server's key.
//!
//! ```text
//! | "kuduenc" | algorithm u8: 0, 1, 2 = AES-128, -192, -256 in counter mode | file key, padded to 32 | zeros up to 64 |
//! file key = AES-ECB(server key)      counter = physical offset / 16, in the low eight bytes, big-endian
//! ```
//!
//! `instance` holds the server's key, encrypted by a key provider. The default provider, which is meant for
//! tests, combines each byte of the key with 42 by XOR and writes the hexadecimal digits of the result. For
//! any other provider the user must give the key (`keys={"server": ..}`).

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_cfile::layout::types::{MAGIC_V1, MAGIC_V2};
use coldframe_core::io::check_range;
use coldframe_core::{Error, ErrorKind, ReadAt, Result};
use coldframe_encoding::crypt::{AesCtr, ecb_decrypt};

use crate::layout::proto::Instance;

const MAGIC: &[u8] = b"kuduenc";
/// Length of the header. Offsets in an encrypted file include the header.
pub(crate) const HEADER: u64 = 64;
/// So many zeros in a row are a hole in the file, and not ciphertext that happens to be zero.
const HOLE: usize = 16;

/// The candidate keys for a server's files.
#[derive(Clone, Default)]
pub(crate) struct ServerKeys {
    keys: Vec<Vec<u8>>,
    /// Whether the server encrypts its files. A server encrypts either all files or none.
    encrypts: bool,
}

impl std::fmt::Debug for ServerKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServerKeys({} keys)", self.keys.len())
    }
}

impl ServerKeys {
    /// The key that the user gave, or else the keys in `instance`, decoded as Kudu's default key provider
    /// encodes them: hexadecimal digits, XOR 42.
    pub(crate) fn new(given: Option<&Vec<u8>>, instance: &Instance) -> Self {
        if let Some(key) = given {
            return Self { keys: vec![key.clone()], encrypts: true };
        }
        let tenants = instance.tenants.iter().filter_map(|t| t.key.as_deref());
        let stored: Vec<&str> = tenants.chain(instance.server_key.as_deref()).collect();
        let keys = stored.iter().copied().filter_map(unmask).collect();
        Self { keys, encrypts: !stored.is_empty() }
    }
}

/// Decodes hexadecimal digits and applies XOR 42.
fn unmask(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let digits = digits.filter(|d| d.len().is_multiple_of(2))?;
    let pairs = digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, d| byte << 4 | d) ^ 42);
    let key: Vec<u8> = pairs.collect();
    matches!(key.len(), 16 | 24 | 32).then_some(key)
}

/// Bytes that a file is known to have once it is decrypted. A key that does not produce these bytes is wrong.
pub(crate) struct Expected<'a> {
    /// The physical offset of the known bytes.
    at: u64,
    /// The possible values of these bytes, all of the same length.
    any: &'a [&'a [u8]],
}

impl Expected<'static> {
    /// The magic bytes of a CFile that begins at offset `at`.
    pub(crate) fn cfile(at: u64) -> Self {
        Self { at, any: &[MAGIC_V2, MAGIC_V1] }
    }
}

impl<'a> Expected<'a> {
    /// Expects one of these values at the start of a file, after the encryption header.
    pub(crate) fn start(any: &'a [&'a [u8]]) -> Self {
        Self { at: HEADER, any }
    }

    /// Whether `clear` has these bytes. If `clear` is too short, its bytes must be the beginning of them.
    fn is_in(&self, clear: &dyn ReadAt) -> Result<bool> {
        let len = self.any.first().map_or(0, |bytes| bytes.len()) as u64;
        let end = self.at.saturating_add(len).min(clear.len());
        let bytes = clear.read(self.at.min(end)..end)?;
        Ok(self.any.iter().any(|expected| expected.starts_with(&bytes)))
    }
}

/// Decrypts `file`, and keeps the space of the header, so that offsets stay the same; returns `file` itself
/// if it is not encrypted. Picks the key that produces the expected bytes. A file that has nothing after its
/// header needs no key, since the server stopped while creating it.
pub(crate) fn decrypted(
    file: Arc<dyn ReadAt>,
    keys: &ServerKeys,
    expected: &Expected<'_>,
) -> Result<(Arc<dyn ReadAt>, u64)> {
    match with_key(file, keys, expected)? {
        (file, start, Some(_)) => Ok((file, start)),
        (_, _, None) => Err(no_key(keys)),
    }
}

/// Like [`decrypted`], for a file of blocks that may be damaged. If no key produces the expected bytes, the
/// first key is used and reading the block reports the damage.
pub(crate) fn decrypted_block(
    file: Arc<dyn ReadAt>,
    keys: &ServerKeys,
    expected: &Expected<'_>,
) -> Result<(Arc<dyn ReadAt>, u64)> {
    let (clear, start, _) = with_key(file, keys, expected)?;
    Ok((clear, start))
}

/// The decrypted file, the offset at which its content starts, and `Some` if the key is known to be right.
type Clear = (Arc<dyn ReadAt>, u64, Option<()>);

fn with_key(file: Arc<dyn ReadAt>, keys: &ServerKeys, expected: &Expected<'_>) -> Result<Clear> {
    let Some(header) = encryption_header(file.as_ref())? else { return Ok((file, 0, Some(()))) };
    if file.len() == HEADER {
        return Ok((file, HEADER, Some(())));
    }
    let mut first = None;
    for key in &keys.keys {
        let Ok(file_key) = header.file_key(key) else { continue };
        let clear: Arc<dyn ReadAt> = Arc::new(Decrypted { inner: file.clone(), key: file_key });
        if expected.is_in(clear.as_ref())? {
            return Ok((clear, HEADER, Some(())));
        }
        first.get_or_insert(clear);
    }
    first.map(|clear| (clear, HEADER, None)).ok_or_else(|| no_key(keys))
}

fn no_key(keys: &ServerKeys) -> Error {
    if !keys.encrypts {
        return Error::corrupt(
            "expected an unencrypted file, as the server has no key, found an encrypted one",
        );
    }
    let what =
        if keys.keys.is_empty() { "the server key is held by a key provider" } else { "no key opens it" };
    Error::new(ErrorKind::KeyUnavailable(format!(
        "the file is encrypted and {what}; give the server's key as keys={{\"server\": ..}}"
    )))
}

struct Header {
    key_len: usize,
    key: [u8; 32],
}

fn encryption_header(file: &dyn ReadAt) -> Result<Option<Header>> {
    if file.len() < HEADER {
        return Ok(None);
    }
    let bytes = file.read(0..HEADER)?;
    let Some(rest) = bytes.strip_prefix(MAGIC) else { return Ok(None) };
    let (Some((algorithm, rest)), at) = (rest.split_first(), MAGIC.len() as u64) else { return Ok(None) };
    let key_len = match algorithm {
        0 => 16,
        1 => 24,
        2 => 32,
        n => {
            return Err(
                Error::corrupt(format!("expected an encryption algorithm of 0 to 2, found {n}")).at(at)
            );
        }
    };
    let key = rest.first_chunk::<32>().copied().unwrap_or_default();
    Ok(Some(Header { key_len, key }))
}

impl Header {
    fn file_key(&self, server_key: &[u8]) -> Result<Vec<u8>> {
        let mut key = self.key;
        let stored = if self.key_len == 16 { 16 } else { 32 };
        ecb_decrypt(server_key, key.get_mut(..stored).unwrap_or_default())?;
        Ok(key.get(..self.key_len).unwrap_or_default().to_vec())
    }
}

/// Decrypts an encrypted file; offsets refer to the stored file.
struct Decrypted {
    inner: Arc<dyn ReadAt>,
    key: Vec<u8>,
}

impl std::fmt::Debug for Decrypted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decrypted({:?})", self.inner)
    }
}

impl ReadAt for Decrypted {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let stored = self.inner.read_ranges(ranges)?;
        stored
            .into_iter()
            .zip(ranges)
            .map(|(bytes, range)| {
                // Preallocated or freed space reads as zeros and must not be decrypted.
                let zeros = bytes.iter().rev().take_while(|b| **b == 0).count();
                let written = bytes.len() - if zeros >= HOLE { zeros } else { 0 };
                let mut bytes = Vec::from(bytes);
                let mut stream = AesCtr::new(&self.key, &[0; 16])?;
                stream.seek(range.start);
                stream.apply(bytes.get_mut(..written).unwrap_or_default());
                Ok(Bytes::from(bytes))
            })
            .collect()
    }

    fn worthwhile_gap(&self) -> u64 {
        self.inner.worthwhile_gap()
    }
}

/// A part of a file that is read as a file of its own: a block in a container, or the bytes after the
/// encryption header.
#[derive(Debug)]
pub(crate) struct Section {
    inner: Arc<dyn ReadAt>,
    start: u64,
    len: u64,
}

impl Section {
    /// The range `range` of `inner`. The range must exist.
    pub(crate) fn of(inner: Arc<dyn ReadAt>, range: &Range<u64>) -> Result<Arc<dyn ReadAt>> {
        check_range(range, inner.len())?;
        if range.start == 0 && range.end == inner.len() {
            return Ok(inner);
        }
        Ok(Arc::new(Self { inner, start: range.start, len: range.end - range.start }))
    }
}

impl ReadAt for Section {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let moved = ranges
            .iter()
            .map(|r| {
                check_range(r, self.len)?;
                Ok(r.start + self.start..r.end + self.start)
            })
            .collect::<Result<Vec<_>>>()?;
        self.inner.read_ranges(&moved)
    }

    fn worthwhile_gap(&self) -> u64 {
        self.inner.worthwhile_gap()
    }
}
