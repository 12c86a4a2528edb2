//! The checksums that the formats store.

use crate::{Error, ErrorKind, Result};

/// CRC-32 as in gzip and zlib (polynomial 04C11DB7, reflected): HFile, thrift pages.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// CRC-32C (Castagnoli, polynomial 1EDC6F41, reflected), unmasked: Kudu, HFile.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// XXH3 of 64 bits, without a seed: RocksDB.
pub fn xxh3_64(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}

/// The CRC-32C whose masked form is `masked`. LevelDB and RocksDB store a checksum rotated by 15 bits and
/// with an offset added, because a plain CRC is weak for data that itself contains CRCs.
pub fn unmasked_crc32c(masked: u32) -> u32 {
    masked.wrapping_sub(0xa282_ead8).rotate_left(15)
}

/// An error if `stored` is not the CRC-32 of `bytes`.
pub fn check_crc32(stored: u32, bytes: &[u8]) -> Result<()> {
    check("CRC-32", stored, crc32(bytes))
}

/// An error if `stored` is not the CRC-32C of `bytes`.
pub fn check_crc32c(stored: u32, bytes: &[u8]) -> Result<()> {
    check("CRC-32C", stored, crc32c(bytes))
}

/// An error if `stored` is not the low half of the XXH3 of `bytes`.
pub fn check_xxh3_low(stored: u32, bytes: &[u8]) -> Result<()> {
    let [a, b, c, d, ..] = xxh3_64(bytes).to_le_bytes();
    check("XXH3", stored, u32::from_le_bytes([a, b, c, d]))
}

fn check(algorithm: &'static str, expected: u32, computed: u32) -> Result<()> {
    if expected == computed {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Checksum { algorithm, expected, actual: computed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_the_check_values_of_the_crc_catalogue() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        // The checksum of the empty string, from the specification of XXH3.
        assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2);
        assert!(check_xxh3_low(0x38d3_94c2, b"").is_ok());
        // Masks a checksum and removes the mask; the mask is the mask of LevelDB's table format.
        let masked = 0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8);
        assert_eq!(unmasked_crc32c(masked), 0xe306_9283);
        assert!(check_crc32(0xcbf4_3926, b"123456789").is_ok());
        assert!(check_crc32c(0xe306_9283, b"123456789").is_ok());
        assert_eq!(
            check_crc32c(1, b"123456789").unwrap_err().to_string(),
            "CRC-32C mismatch: stored 0x00000001, computed 0xe3069283"
        );
    }
}
