//! The table of the tests.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::PathBuf;

use coldframe_encoding::codec::{Algorithm, Decompressor};
use tempfile::TempDir;

/// The folder of test tables.
pub(crate) const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/hudi");

/// Unpacks the table into a new folder.
pub(crate) fn unpack() -> (TempDir, PathBuf) {
    let packed = std::fs::read(format!("{DATA}/lab-1.1.1.tar.gz")).unwrap();
    let mut tar = Vec::new();
    Decompressor::new().decompress_bounded(Algorithm::Gzip, &packed, 64 << 20, &mut tar).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let text = |b: &[u8]| std::str::from_utf8(b).unwrap().trim_matches(['\0', ' ']).to_owned();
    let mut at = 0;
    while tar[at] != 0 {
        let header = &tar[at..at + 512];
        let (name, prefix) = (text(&header[..100]), text(&header[345..500]));
        let size = usize::from_str_radix(&text(&header[124..136]), 8).unwrap();
        let path = dir.path().join(prefix).join(name);
        if header[156] == b'5' {
            std::fs::create_dir_all(&path).unwrap();
        } else {
            std::fs::write(&path, &tar[at + 512..at + 512 + size]).unwrap();
        }
        at += 512 + size.div_ceil(512) * 512;
    }
    let table = dir.path().join("lab");
    (dir, table)
}
