//! What is written is read back, unknown fields of each type are skipped, and invalid counts and depths are
//! errors.

use super::*;

fn reader(bytes: &[u8]) -> Reader<'_> {
    Reader::new(bytes, 100, &Limits::default())
}

#[test]
fn written_structures_are_read_back() {
    let mut w = Writer::new();
    w.structure(|w| {
        w.i32(1, -7);
        w.i64(20, i64::MIN);
        w.binary(21, b"abc");
        w.list(22, ThriftType::I32, &(0..20).collect::<Vec<i32>>(), |w, v| w.element_i32(*v));
        w.struct_field(23, |w| w.i32(1, 5));
    });
    let bytes = w.finish();
    let (mut a, mut b, mut c, mut d, mut e) = (0, 0, vec![], vec![], 0);
    let mut r = reader(&bytes);
    r.structure(|r, f| {
        match f.id {
            1 => a = r.i32(f)?,
            20 => b = r.i64(f)?,
            21 => c = r.binary(f)?.to_vec(),
            22 => d = r.list(f, ThriftType::I32, |r, f| r.i32(f))?,
            _ => r.struct_field(f, |r, f| {
                e = r.i32(f)?;
                Ok(())
            })?,
        }
        Ok(())
    })
    .unwrap();
    assert!(r.cursor().is_empty());
    assert_eq!((a, b, c.as_slice(), d.len(), e), (-7, i64::MIN, &b"abc"[..], 20, 5));
    let mut r = reader(&bytes);
    r.structure(|r, f| r.skip(f)).unwrap();
    assert!(r.cursor().is_empty());
    for n in 0..bytes.len() {
        assert!(reader(&bytes[..n]).structure(|r, f| r.skip(f)).is_err());
    }
}

#[test]
fn all_types_are_skipped() {
    let bytes = [
        0x11, 0x12, 0x13, 9, 0x14, 1, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, // true, false, byte, i16, double
        0x1a, 0x21, 1, 2, // set of two booleans
        0x1b, 1, 0x58, 2, 1, b'x', // map i32 -> binary
        0x1b, 0, // empty map
        0x19, 0x1c, 0x15, 4, 0, 0, // list of one struct
    ];
    let mut r = reader(&bytes);
    r.structure(|r, f| r.skip(f)).unwrap();
    assert!(r.cursor().is_empty());
}

#[test]
fn invalid_counts_types_and_depths_are_errors() {
    let e = reader(&[0x19, 0xf5, 0xff, 0xff, 3, 0]).structure(|r, f| r.skip(f)).unwrap_err();
    assert_eq!(e.to_string(), "byte 101: expected at most 1 elements, found 65535");
    let e = reader(&[0x1d]).structure(|r, f| r.skip(f)).unwrap_err();
    assert_eq!(e.to_string(), "byte 100: expected a thrift type of 1 to 12, found 13");
    let e = reader(&[0x1c; 200]).structure(|r, f| r.skip(f)).unwrap_err();
    assert!(e.to_string().contains("max_depth"), "{e}");
    let e = reader(&[0x15, 2]).structure(|r, f| r.i64(f).map(drop)).unwrap_err();
    assert_eq!(e.to_string(), "byte 101: field 1: expected I64, found I32");
}
