//! Both headers; each truncated header and each wrong number is an error with its position.

use super::*;
use coldframe_encoding::varint::put_hadoop_text;

fn rcf1(entries: &[(&str, &str)], codec: Option<&str>) -> Vec<u8> {
    let mut b = b"RCF\x01".to_vec();
    b.push(codec.is_some().into());
    if let Some(codec) = codec {
        put_hadoop_text(&mut b, codec.as_bytes());
    }
    b.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    for (k, v) in entries {
        put_hadoop_text(&mut b, k.as_bytes());
        put_hadoop_text(&mut b, v.as_bytes());
    }
    b.extend([7; SYNC_LEN]);
    b
}

#[test]
fn both_variants_of_the_header_are_parsed() {
    let b = rcf1(&[(COLUMN_NUMBER, "3"), ("writer", "me")], Some("org.apache.hadoop.io.compress.GzipCodec"));
    let h = Header::parse(&b, &Limits::default()).unwrap();
    assert_eq!((h.magic, h.columns, h.sync, h.end), (Magic::Rcf1, 3, [7; 16], b.len() as u64));
    assert!(h.codec().unwrap().is_some());
    assert!(Header::probe(&b));

    let mut s = b"SEQ\x06".to_vec();
    put_hadoop_text(&mut s, b"org.apache.hadoop.hive.ql.io.RCFile$KeyBuffer");
    put_hadoop_text(&mut s, b"org.apache.hadoop.hive.ql.io.RCFile$ValueBuffer");
    s.extend([0, 0]);
    s.extend(&rcf1(&[(COLUMN_NUMBER, "1")], None)[5..]);
    let h = Header::parse(&s, &Limits::default()).unwrap();
    assert_eq!((h.magic, h.columns, h.end), (Magic::Seq6, 1, s.len() as u64));
    assert!(Header::probe(&s));
    assert!(!Header::probe(b"SEQ\x06\x19org.apache.hadoop.io.Text"));
}

#[test]
fn truncations_and_false_fields_are_errors_with_an_offset() {
    let b = rcf1(&[(COLUMN_NUMBER, "3")], None);
    for n in 0..b.len() {
        assert!(Header::parse(&b[..n], &Limits::default()).is_err(), "cut at {n}");
    }
    let mut bomb = b.clone();
    bomb[5..9].copy_from_slice(&0x7fff_ffffu32.to_be_bytes());
    let e = Header::parse(&bomb, &Limits::default()).unwrap_err().to_string();
    assert!(e.starts_with("byte 5: metadata: expected a count of at most"), "{e}");
    let e =
        Header::parse(&rcf1(&[(COLUMN_NUMBER, "many")], None), &Limits::default()).unwrap_err().to_string();
    assert!(e.contains("expected a number, found \"many\""), "{e}");
    let e = Header::parse(&rcf1(&[(COLUMN_NUMBER, "4000000000")], None), &Limits::default()).unwrap_err();
    assert!(e.to_string().contains("`max_columns`"), "{e}");
    let mut version = b;
    version[3] = 9;
    assert!(matches!(
        Header::parse(&version, &Limits::default()).unwrap_err().kind(),
        coldframe_core::ErrorKind::Unsupported(_)
    ));
}
