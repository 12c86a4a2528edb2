//! AES as storage formats use it: counter mode for data, single blocks for keys.
//!
//! ```text
//! counter block = IV (16 bytes, big-endian) + byte position / 16
//! plain byte    = stored byte XOR AES(key, counter block)[position % 16]
//! ```
//!
//! NIST SP 800-38A, section 6.5 (CTR) and 6.1 (ECB). Counter mode is its own inverse: [`AesCtr::apply`] both
//! encrypts and decrypts. It does not authenticate the data: a wrong key gives wrong bytes, which the caller
//! must detect.

use aes::cipher::{Block, BlockCipherDecrypt, KeyInit, KeyIvInit, StreamCipher, StreamCipherSeek};
use aes::{Aes128, Aes192, Aes256};

use crate::{Error, Result};

/// The number of bytes of a cipher block, and of an initialisation vector.
pub const BLOCK: usize = 16;

/// A key stream of AES in counter mode with a 128-bit big-endian counter.
pub struct AesCtr(Stream);

enum Stream {
    Aes128(ctr::Ctr128BE<Aes128>),
    Aes192(ctr::Ctr128BE<Aes192>),
    Aes256(ctr::Ctr128BE<Aes256>),
}

impl AesCtr {
    /// The key stream of `key` (16, 24 or 32 bytes) from the counter block `iv`.
    pub fn new(key: &[u8], iv: &[u8; BLOCK]) -> Result<Self> {
        Ok(Self(match key.len() {
            16 => Stream::Aes128(ctr::Ctr128BE::new_from_slices(key, iv).map_err(|_| bad_key(key))?),
            24 => Stream::Aes192(ctr::Ctr128BE::new_from_slices(key, iv).map_err(|_| bad_key(key))?),
            32 => Stream::Aes256(ctr::Ctr128BE::new_from_slices(key, iv).map_err(|_| bad_key(key))?),
            _ => return Err(bad_key(key)),
        }))
    }

    /// Moves to byte `position` of the key stream.
    pub fn seek(&mut self, position: u64) {
        match &mut self.0 {
            Stream::Aes128(stream) => stream.seek(position),
            Stream::Aes192(stream) => stream.seek(position),
            Stream::Aes256(stream) => stream.seek(position),
        }
    }

    /// Encrypts or decrypts `bytes` in place and advances by their number.
    pub fn apply(&mut self, bytes: &mut [u8]) {
        match &mut self.0 {
            Stream::Aes128(stream) => stream.apply_keystream(bytes),
            Stream::Aes192(stream) => stream.apply_keystream(bytes),
            Stream::Aes256(stream) => stream.apply_keystream(bytes),
        }
    }
}

/// Decrypts whole blocks one by one (ECB), in place.
pub fn ecb_decrypt(key: &[u8], blocks: &mut [u8]) -> Result<()> {
    if !blocks.len().is_multiple_of(BLOCK) {
        return Err(Error::corrupt(format!(
            "AES: expected a multiple of {BLOCK} bytes, found {}",
            blocks.len()
        )));
    }
    match key.len() {
        16 => decrypt_blocks::<Aes128>(key, blocks),
        24 => decrypt_blocks::<Aes192>(key, blocks),
        32 => decrypt_blocks::<Aes256>(key, blocks),
        _ => Err(bad_key(key)),
    }
}

fn decrypt_blocks<C: KeyInit + BlockCipherDecrypt>(key: &[u8], blocks: &mut [u8]) -> Result<()> {
    let cipher = C::new_from_slice(key).map_err(|_| bad_key(key))?;
    for block in blocks.chunks_exact_mut(BLOCK) {
        let Ok(block) = <&mut Block<C>>::try_from(block) else { continue };
        cipher.decrypt_block(block);
    }
    Ok(())
}

fn bad_key(key: &[u8]) -> Error {
    Error::invalid(format!("AES key: expected 16, 24 or 32 bytes, found {}", key.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
    }

    /// NIST SP 800-38A, F.5.1 (CTR-AES128) and F.5.5 (CTR-AES256), first two blocks.
    #[test]
    fn counter_mode_matches_the_published_vectors() {
        let iv: [u8; 16] = hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff").try_into().unwrap();
        let plain = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        let cases = [
            (
                "2b7e151628aed2a6abf7158809cf4f3c",
                "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff",
            ),
            (
                "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
                "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5",
            ),
        ];
        for (key, stored) in cases {
            let key = hex(key);
            let mut bytes = plain.clone();
            AesCtr::new(&key, &iv).unwrap().apply(&mut bytes);
            assert_eq!(bytes, hex(stored));
            let mut stream = AesCtr::new(&key, &iv).unwrap();
            stream.seek(19);
            stream.apply(&mut bytes[19..]);
            assert_eq!(bytes[19..], plain[19..]);
        }
    }

    /// FIPS 197, appendix C.1.
    #[test]
    fn single_blocks_match_the_published_vectors() {
        let key = hex("000102030405060708090a0b0c0d0e0f");
        let mut block = hex("69c4e0d86a7b0430d8cdb78070b4c55a");
        ecb_decrypt(&key, &mut block).unwrap();
        assert_eq!(block, hex("00112233445566778899aabbccddeeff"));
        assert!(ecb_decrypt(&key, &mut block[..5]).is_err());
        assert!(ecb_decrypt(&key[..3], &mut block).is_err());
        assert!(AesCtr::new(&key[..3], &[0; 16]).is_err());
    }
}
