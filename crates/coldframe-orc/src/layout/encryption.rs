//! Decrypts columns: finds the variant of a column that can be read, and the keys of its streams.
//!
//! ```text
//! Footer.encryption = { masks, keys: [{name, version, algorithm}], variants: [{root, key, encryptedKey, .., fileStatistics}] }
//! local key  = AES-CTR(master key, iv = first 16 bytes of the stored key) of the stored key
//! stream     = AES-CTR(local key of the stripe, iv) of the compressed stream
//! iv         = column (3 bytes) kind (2) stripe (3) counter (8), big-endian
//! ```
//!
//! ORC specification v1, "Column Encryption". A stripe's footer lists the streams and encodings of each
//! variant; a stripe without keys uses the keys of the previous stripe. The stripe's number in the
//! initialisation vector is `encryptStripeId`, or counts from 1; statistics of the file use the number after
//! the last stripe. Local keys are wrapped as in ORC's in-memory key store; if a key server wrapped them, it
//! must unwrap them, and the user gives the result as the key.
//!
//! A column whose key is not given is read from the plain streams, which hold the masked values.

use std::collections::BTreeMap;

use coldframe_encoding::crypt::{AesCtr, BLOCK};
use coldframe_encoding::{Error, ErrorKind, Limits, Result};

use super::compression::Compression;
use super::proto;

/// Largest column and stripe number that fit into the initialisation vector.
const MAX_NUMBER: u64 = 0xff_ffff;

/// `Stream.Kind` of a variant's file statistics.
const FILE_STATISTICS: u32 = 101;

/// The user's key for a name, if there is one.
pub(crate) type KeyNamed<'a> = &'a dyn Fn(&str) -> Result<Option<Vec<u8>>>;

/// The encrypted columns of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encryption {
    variants: Vec<Variant>,
    /// For each column, the variant that is read; `None` for plain columns and for columns without a key.
    readable: Vec<Option<usize>>,
    /// For each column, the name of a key that would decrypt it.
    locked: Vec<Option<String>>,
}

/// The columns that are encrypted with one key.
#[derive(Clone, Debug)]
struct Variant {
    /// The first column of the variant.
    root: usize,
    /// The number of columns from that one on.
    columns: usize,
    /// The name of the key.
    key_name: String,
    /// The key of the file's statistics, if the master key is given.
    footer_key: Option<Vec<u8>>,
    /// The local key of each stripe, if the master key is given.
    stripe_keys: Vec<Vec<u8>>,
}

/// How to decrypt one stream.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StreamKey {
    key: Vec<u8>,
    iv: [u8; BLOCK],
}

impl std::fmt::Debug for StreamKey {
    /// The key is not printed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamKey").finish_non_exhaustive()
    }
}

impl StreamKey {
    /// Decrypts bytes that begin at `position` of the stream, in place.
    pub(crate) fn decrypt(&self, position: u64, bytes: &mut [u8]) -> Result<()> {
        let mut stream = AesCtr::new(&self.key, &self.iv)?;
        stream.seek(position);
        stream.apply(bytes);
        Ok(())
    }
}

impl Encryption {
    /// Parses the encryption in the footer. `ends[c]` is the column after the last column inside column `c`;
    /// `key_named` returns the user's keys.
    pub(crate) fn new(footer: &proto::Footer, ends: &[usize], key_named: KeyNamed<'_>) -> Result<Self> {
        let Some(stored) = &footer.encryption else { return Ok(Self::default()) };
        let mut encryption = Self {
            variants: Vec::with_capacity(stored.variants.len()),
            readable: vec![None; ends.len()],
            locked: vec![None; ends.len()],
        };
        let mut keys = MasterKeys { key_named, requested: BTreeMap::new() };
        for (number, variant) in stored.variants.iter().enumerate() {
            let key =
                usize::try_from(variant.key()).ok().and_then(|k| stored.key.get(k)).ok_or_else(|| {
                    Error::corrupt(format!(
                        "expected one of {} keys, found number {}",
                        stored.key.len(),
                        variant.key()
                    ))
                    .within(format!("encryption variant {number}"))
                })?;
            let root = usize::try_from(variant.root()).unwrap_or(usize::MAX);
            let Some(end) = ends.get(root).copied() else {
                let message = format!("expected one of {} columns, found {root}", ends.len());
                return Err(Error::corrupt(message).within(format!("encryption variant {number}")));
            };
            let mut opened = open_variant(footer, number, variant, key, &mut keys)
                .map_err(|e| e.within(format!("encryption variant {number}")))?;
            opened.columns = end.saturating_sub(root);
            let opens = opened.footer_key.is_some();
            for column in root..end {
                let (Some(readable), Some(locked)) =
                    (encryption.readable.get_mut(column), encryption.locked.get_mut(column))
                else {
                    continue;
                };
                if readable.is_none() && opens {
                    *readable = Some(number);
                } else if locked.is_none() && !opens {
                    *locked = Some(opened.key_name.clone());
                }
            }
            encryption.variants.push(opened);
        }
        Ok(encryption)
    }

    /// The first column of a variant.
    pub(crate) fn root_of(&self, variant: usize) -> usize {
        self.variants.get(variant).map_or(usize::MAX, |v| v.root)
    }

    /// The variant to read for a column; `None` if its plain streams are read.
    pub(crate) fn variant_of(&self, column: usize) -> Option<usize> {
        self.readable.get(column).copied().flatten()
    }

    /// For each variant whose key is given: its first column, and the file's statistics of its columns. If a
    /// key does not decrypt the statistics, it is the wrong key.
    pub(crate) fn file_statistics(
        &self,
        footer: &proto::Footer,
        compression: Compression,
        limits: &Limits,
        file_len: u64,
    ) -> Result<Vec<(usize, proto::FileStatistics)>> {
        let mut all = Vec::new();
        let stored_variants = footer.encryption.iter().flat_map(|e| &e.variants);
        for (number, (variant, stored_variant)) in self.variants.iter().zip(stored_variants).enumerate() {
            let stripes = footer.stripes.len();
            let key = self.footer_stream_key(number, stripes, variant.root, FILE_STATISTICS)?;
            let (Some(key), Some(stored)) = (key, &stored_variant.file_statistics) else { continue };
            let mut plain = stored.clone();
            key.decrypt(0, &mut plain)?;
            let read = compression.message(&plain, 0, limits, file_len).and_then(|message| {
                proto::decode::<proto::FileStatistics>("file statistics", message, limits, file_len)
            });
            let statistics = read.ok().filter(|s| s.column.len() == variant.columns).ok_or_else(|| {
                let (name, root) = (&variant.key_name, variant.root);
                let message =
                    format!("the key `{name}` is wrong: column {root} was encrypted with another key");
                Error::new(ErrorKind::KeyUnavailable(message))
            })?;
            all.push((variant.root, statistics));
        }
        Ok(all)
    }

    /// The name of the key that a column needs, if only its masked values can be read.
    pub(crate) fn missing_key(&self, column: usize) -> Option<&str> {
        if self.variant_of(column).is_some() {
            return None;
        }
        self.locked.get(column)?.as_deref()
    }

    /// The key of a stream. `stripe` counts from 0; `number` is the stripe's number in the vector.
    pub(crate) fn stream_key(
        &self,
        variant: usize,
        stripe: usize,
        number: u64,
        column: usize,
        kind: u32,
    ) -> Result<StreamKey> {
        let key = self.variants.get(variant).and_then(|v| v.stripe_keys.get(stripe)).ok_or_else(|| {
            Error::corrupt(format!(
                "expected a local key for variant {variant} of stripe {stripe}, found none"
            ))
        })?;
        Ok(StreamKey { key: key.clone(), iv: vector(column, kind, number)? })
    }

    /// The key of the statistics that follow the last of `stripes`: of a variant's `fileStatistics`, or of a column's
    /// statistics of all stripes.
    pub(crate) fn footer_stream_key(
        &self,
        variant: usize,
        stripes: usize,
        column: usize,
        kind: u32,
    ) -> Result<Option<StreamKey>> {
        let Some(key) = self.variants.get(variant).and_then(|v| v.footer_key.as_ref()) else {
            return Ok(None);
        };
        Ok(Some(StreamKey { key: key.clone(), iv: vector(column, kind, stripes as u64 + 1)? }))
    }
}

/// The user's keys; each key is requested once.
struct MasterKeys<'a> {
    key_named: KeyNamed<'a>,
    requested: BTreeMap<(String, u32), Option<Vec<u8>>>,
}

impl MasterKeys<'_> {
    /// The key by its name, or by name and version in ORC's form.
    fn get(&mut self, key: &proto::EncryptionKey) -> Result<Option<Vec<u8>>> {
        let id = (key.key_name().to_owned(), key.key_version());
        if let Some(key_bytes) = self.requested.get(&id) {
            return Ok(key_bytes.clone());
        }
        let key_bytes = match (self.key_named)(&id.0)? {
            Some(key_bytes) => Some(key_bytes),
            None => (self.key_named)(&format!("{}@{}", id.0, id.1))?,
        };
        self.requested.insert(id, key_bytes.clone());
        Ok(key_bytes)
    }
}

fn open_variant(
    footer: &proto::Footer,
    number: usize,
    variant: &proto::EncryptionVariant,
    key: &proto::EncryptionKey,
    keys: &mut MasterKeys<'_>,
) -> Result<Variant> {
    let mut opened = Variant {
        root: usize::try_from(variant.root()).unwrap_or(usize::MAX),
        columns: 0,
        key_name: key.key_name().to_owned(),
        footer_key: None,
        stripe_keys: Vec::new(),
    };
    let Some(master) = &keys.get(key)? else { return Ok(opened) };
    // AES_CTR_128 is 1, AES_CTR_256 is 2.
    let length = match key.algorithm() {
        1 => 16,
        2 => 32,
        other => return Err(Error::unsupported(format!("encryption algorithm {other}"))),
    };
    if master.len() != length {
        return Err(Error::invalid(format!(
            "key `{}`: expected {length} bytes, found {}",
            key.key_name(),
            master.len()
        )));
    }
    opened.footer_key = Some(unwrap(master, length, variant.encrypted_key())?);
    let mut last: Option<&Vec<u8>> = None;
    for (stripe, info) in footer.stripes.iter().enumerate() {
        let stored =
            if info.encrypted_local_keys.is_empty() { last } else { info.encrypted_local_keys.get(number) };
        let stored = stored
            .ok_or_else(|| Error::corrupt(format!("expected a local key for stripe {stripe}, found none")))?;
        let same = last.is_some_and(|l| l == stored);
        let local = match opened.stripe_keys.last().filter(|_| same) {
            Some(key) => key.clone(),
            None => unwrap(master, length, stored)?,
        };
        opened.stripe_keys.push(local);
        last = Some(stored);
    }
    Ok(opened)
}

/// Decrypts a stored local key.
fn unwrap(master: &[u8], length: usize, stored: &[u8]) -> Result<Vec<u8>> {
    let Some(iv) = stored.first_chunk::<BLOCK>().filter(|_| stored.len() == length) else {
        return Err(Error::corrupt(format!(
            "expected a local key of {length} bytes, found {}",
            stored.len()
        )));
    };
    let mut key = stored.to_vec();
    AesCtr::new(master, iv)?.apply(&mut key);
    Ok(key)
}

fn vector(column: usize, kind: u32, stripe: u64) -> Result<[u8; BLOCK]> {
    let column = column as u64;
    let kind = u16::try_from(kind).ok();
    let (Some(kind), true, true) = (kind, column <= MAX_NUMBER, (1..=MAX_NUMBER).contains(&stripe)) else {
        let message = format!("expected a column and a stripe of 24 bits, found {column} and {stripe}");
        return Err(Error::corrupt(message).within("encryption"));
    };
    let [_, _, _, _, _, c0, c1, c2] = column.to_be_bytes();
    let [_, _, _, _, _, s0, s1, s2] = stripe.to_be_bytes();
    let [k0, k1] = kind.to_be_bytes();
    Ok([c0, c1, c2, k0, k1, s0, s1, s2, 0, 0, 0, 0, 0, 0, 0, 0])
}

/// The error for an encrypted column whose key is missing.
pub(crate) fn key_unavailable(column: &str, key: &str) -> Error {
    Error::new(ErrorKind::KeyUnavailable(format!("column `{column}` is encrypted; it needs the key `{key}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initialisation_vectors_are_big_endian() {
        let iv = vector(0x01_0203, 0x0405, 0x06_0708).unwrap();
        assert_eq!(iv, [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(vector(1 << 24, 0, 1).is_err() && vector(0, 0, 0).is_err() && vector(0, 1 << 16, 1).is_err());
    }

    #[test]
    fn local_keys_are_wrapped_by_their_own_bytes() {
        let (master, stored) = ([7u8; 32], (0..32).collect::<Vec<u8>>());
        let key = unwrap(&master, 32, &stored).unwrap();
        let mut again = key.clone();
        AesCtr::new(&master, stored.first_chunk().unwrap()).unwrap().apply(&mut again);
        assert_eq!(again, stored);
        assert!(unwrap(&master, 32, &stored[..20]).is_err());
    }
}
