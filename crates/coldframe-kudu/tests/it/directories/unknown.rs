//! Unsupported versions, features and algorithms in one file of a directory: a read under `raise` fails, a
//! read under `skip` loses the contents of the file, and `inspect` and `verify` still work.

use coldframe_core::{ErrorKind, OnError, OpenOptions, scan};
use coldframe_encoding::checksum::crc32c;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::laws::assert_tolerant;
use coldframe_testing::rows::read;

use super::edit::{fields, message, number};
use super::folder::{ending, open, table, tree};
use super::killed::{latest, segments};
use super::tablets::super_blocks;

/// Reads the table with all values of `on_error`: a read under `raise` fails with `why`, either as
/// unsupported or as damage; other reads and `verify` record it.
fn refuses(hurt: &MemoryFolder, options: &OpenOptions, is_unsupported: bool, why: &str) {
    let table = open(hurt, options).unwrap();
    assert_tolerant(table.as_ref(), None, &[1 << 11, 1 << 14]);
    let e = match read(table.as_ref(), OnError::Raise) {
        Err(e) => e,
        Ok(outcome) => outcome.error.unwrap(),
    };
    assert_eq!(matches!(e.kind(), ErrorKind::Unsupported(_)), is_unsupported, "{e}");
    assert!((is_unsupported || e.is_damage()) && e.to_string().contains(why), "{e}");
    let damage = read(table.as_ref(), OnError::Skip).unwrap().damage;
    assert!(damage.iter().any(|d| d.reason.contains(why)), "{damage:?}");
    let report = scan::verify(table.as_ref(), |_| Ok(())).unwrap();
    assert!(report.damage.iter().any(|d| d.reason.contains(why)), "{:?}", report.damage);
}

/// A container file of another version, whose checksum is right.
fn of_version(container: &[u8], version: u8) -> Vec<u8> {
    let mut bytes = container.to_vec();
    bytes[8] = version;
    let sum = crc32c(&bytes[..12]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// A container file with the header of an encrypted file.
fn encrypted_by(container: &[u8], algorithm: u8) -> Vec<u8> {
    let mut bytes = container.to_vec();
    bytes[..8].copy_from_slice(b"kuduenc\0");
    bytes[7] = algorithm;
    bytes
}

/// The container with most of a table's blocks.
fn largest(folder: &MemoryFolder) -> String {
    let containers = ending(folder, ".metadata");
    containers.into_iter().max_by_key(|path| folder.files[path].len()).unwrap()
}

#[test]
fn an_unsupported_container_of_blocks_is_refused_or_lost() {
    let (whole, options) = (tree("log_blocks"), table("events"));
    let path = largest(&whole);
    let container = &whole.files[&path];
    refuses(&whole.with(&path, of_version(container, 3)), &options, true, "version 3 of protobuf containers");
    let hurt = whole.with(&path, encrypted_by(container, 238));
    refuses(&hurt, &options, false, "expected an encryption algorithm of 0 to 2, found 238");
    let hurt = whole.with(&path, encrypted_by(container, 0));
    refuses(&hurt, &options, false, "as the server has no key");
}

#[test]
fn a_container_whose_key_is_damaged_is_refused_or_lost() {
    let (whole, options) = (tree("encrypted"), table("numbers"));
    let path = largest(&whole);
    let mut container = whole.files[&path].to_vec();
    container[9] ^= 1;
    refuses(&whole.with(&path, container), &options, false, "protobuf container magic");
}

#[test]
fn an_unsupported_super_block_is_refused_or_lost() {
    let (whole, options) = (tree("file_blocks"), table("numbers"));
    let path = &super_blocks(&whole, "numbers")[0];
    let hurt = whole.with(path, of_version(&whole.files[path], 3));
    refuses(&hurt, &options, true, "version 3 of protobuf containers");
    // It is unknown to which server an encrypted super block belongs.
    let whole = tree("encrypted");
    let path = whole.files.keys().find(|path| path.contains("tablet-meta/")).unwrap();
    let mut block = whole.files[path].to_vec();
    block[9] ^= 1;
    refuses(&whole.with(path, block), &options, false, "no key opens it");
}

/// Tests one block of each kind: a column, a delta file, a bloom filter.
#[test]
fn a_block_with_a_feature_of_a_later_kudu_is_refused_or_lost() {
    let (whole, options) = (tree("file_blocks"), table("numbers"));
    let (mut refused, mut tried) = (0, 0);
    for (path, file) in whole.files.iter().filter(|(_, file)| file.starts_with(b"kuducfl2")) {
        let hurt = whole.with(path, with_feature(file));
        let table = open(&hurt, &options).unwrap();
        assert_tolerant(table.as_ref(), None, &[1 << 11]);
        let plain = read(table.as_ref(), OnError::Raise);
        let e = plain.map_or_else(Some, |outcome| outcome.error);
        if let Some(e) = e {
            assert!(matches!(e.kind(), ErrorKind::Unsupported(_)), "{path}: {e}");
            refuses(&hurt, &options, true, "incompatible features 0x4");
            refused += 1;
        }
        tried += 1;
    }
    assert!(refused > 3 && tried > refused, "{refused} of {tried}");
}

/// A CFile whose footer requires an unknown feature, without checksums.
fn with_feature(file: &[u8]) -> Vec<u8> {
    let frame = file.len() - 12;
    let len = u32::from_le_bytes(file[frame + 8..].try_into().unwrap());
    let start = frame - usize::try_from(len).unwrap();
    let mut footer = fields(&file[start..frame]);
    footer.retain(|(field, ..)| *field != FEATURES);
    footer.push(number(FEATURES, 4));
    let footer = message(&footer);
    let len = u32::try_from(footer.len()).unwrap().to_le_bytes();
    [&file[..start], &footer, &file[frame..frame + 8], &len].concat()
}

/// The number of the field `incompatible_features`.
const FEATURES: u64 = 10;

#[test]
fn an_unsupported_segment_of_the_log_is_refused_or_lost() {
    let (whole, options) = latest("lz4", "trips");
    let path = &segments(&whole, &options)[0];
    let segment = &whole.files[path];
    let len = u32::from_le_bytes(segment[8..12].try_into().unwrap());
    let end = 12 + usize::try_from(len).unwrap();
    let mut header = fields(&segment[12..end]);
    header.push(number(10, 1));
    let header = message(&header);
    let len = u32::try_from(header.len()).unwrap().to_le_bytes();
    let hurt = whole.with(path, [&segment[..8], &len, &header, &segment[end..]].concat());
    refuses(&hurt, &options, true, "a log segment with a feature of a later Kudu");
}
