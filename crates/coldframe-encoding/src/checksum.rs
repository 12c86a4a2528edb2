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

/// An error if `stored` is not the CRC-32 of `bytes`.
pub fn check_crc32(stored: u32, bytes: &[u8]) -> Result<()> {
    check("CRC-32", stored, crc32(bytes))
}

/// An error if `stored` is not the CRC-32C of `bytes`.
pub fn check_crc32c(stored: u32, bytes: &[u8]) -> Result<()> {
    check("CRC-32C", stored, crc32c(bytes))
}

fn check(algorithm: &'static str, expected: u32, found: u32) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Checksum { algorithm, expected, found }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_values_of_the_crc_catalogue() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert!(check_crc32(0xcbf4_3926, b"123456789").is_ok());
        assert!(check_crc32c(0xe306_9283, b"123456789").is_ok());
        assert_eq!(
            check_crc32c(1, b"123456789").unwrap_err().to_string(),
            "CRC-32C mismatch: stored 0x00000001, computed 0xe3069283"
        );
    }
}
