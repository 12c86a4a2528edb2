//! Statements and what they declare; keys and their parts; invalid statements and keys.

use super::key::parts;
use super::*;

fn phoenix(text: &str) -> Result<Phoenix> {
    Phoenix::parse(text)
}

const ORDERS: &str = "create table if not exists s.orders (region char(2) not null, ordered date not null,
    customer varchar, number bigint not null, note varchar, total decimal(10, 2), d.\"Paid\" boolean
    constraint pk primary key (region, ordered desc, customer desc, number, note)) SALT_BUCKETS=4, d.TTL=5, VERSIONS=1
    SPLIT ON ('a')";

fn split(of: &Phoenix, row: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    parts(of, row, |part| {
        all.push(part.to_vec());
        Ok(())
    })?;
    Ok(all)
}

#[test]
fn a_statement_gives_the_row_key_and_the_cells() {
    let of = phoenix(ORDERS).unwrap();
    let names: Vec<&str> = of.key.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["REGION", "ORDERED", "CUSTOMER", "NUMBER", "NOTE"]);
    assert_eq!(
        of.key.iter().map(|part| part.descending).collect::<Vec<_>>(),
        [false, true, true, false, false]
    );
    let cells: Vec<_> =
        of.cells.iter().map(|c| (c.name.as_str(), c.family.as_slice(), c.qualifier.as_slice())).collect();
    assert_eq!(cells, [("TOTAL", &b"0"[..], &[0x80, 11][..]), ("Paid", b"D", &[0x80, 12])]);
    assert!(of.salted);
}

#[test]
fn qualifiers_are_names_or_numbers() {
    let qualifiers = |encoded: &str| {
        let text = format!(
            "CREATE TABLE t (k VARCHAR PRIMARY KEY, a INTEGER, b INTEGER ENCODED_QUALIFIER 300) {encoded}"
        );
        phoenix(&text).map(|of| of.cells.iter().map(|c| c.qualifier.clone()).collect::<Vec<_>>())
    };
    assert_eq!(qualifiers("COLUMN_ENCODED_BYTES = NONE").unwrap(), [b"A", b"B"]);
    assert_eq!(qualifiers("").unwrap(), [[0x80, 11], [0x81, 44]]);
    assert_eq!(qualifiers("COLUMN_ENCODED_BYTES=3").unwrap(), [[0, 0, 11], [0, 1, 44]]);
    assert_eq!(qualifiers("COLUMN_ENCODED_BYTES='4'").unwrap(), [[0, 0, 0, 11], [0, 0, 1, 44]]);
    assert!(qualifiers("COLUMN_ENCODED_BYTES=1").is_err(), "300 does not fit one byte");
    assert!(qualifiers("COLUMN_ENCODED_BYTES=5").is_err());
}

#[test]
fn ambiguous_names_include_the_family() {
    let of = phoenix("CREATE TABLE t (k VARCHAR PRIMARY KEY, a.x INTEGER, b.x INTEGER, y INTEGER)").unwrap();
    assert_eq!(of.cells.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["A.X", "B.X", "Y"]);
}

#[test]
fn keys_are_split_into_parts() {
    let of = phoenix(ORDERS).unwrap();
    let row = b"\x02DE\x7f\xff\xfe\x88\x04\x5f\x05\xe7\xbe\x91\x91\x9e\xff\x80\0\0\0\0\0\0\x11first";
    let all = split(&of, row).unwrap();
    assert_eq!(all[0], b"DE");
    assert_eq!(all[2], b"\xbe\x91\x91\x9e");
    assert_eq!(all[4], b"first");
    // A null in the middle of a key is just a separator, and at the end it is not stored.
    let all = split(&of, b"\x00F \x80\0\0I|^\xcb\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff").unwrap();
    assert_eq!((all[2].as_slice(), all[3].len(), all[4].len()), (&[][..], 8, 0));
}

#[test]
fn keys_of_another_table_are_errors() {
    let of = phoenix(ORDERS).unwrap();
    for row in [&b""[..], b"\x01D", b"\x01DE\x7f\xff"] {
        assert!(split(&of, row).is_err(), "{row:?}");
    }
    let single = phoenix("CREATE TABLE t (k INTEGER PRIMARY KEY DESC, a INTEGER)").unwrap();
    assert!(split(&single, b"\x80\0\0\0\0").is_err());
    let text = phoenix("CREATE TABLE t (k VARCHAR PRIMARY KEY DESC, a INTEGER)").unwrap();
    assert_eq!(split(&text, b"\x90\x91\xff").unwrap(), [b"\x90\x91"]);
}

#[test]
fn truncated_keys_are_split_or_rejected() {
    let of = phoenix(ORDERS).unwrap();
    let row = b"\x02DE\x7f\xff\xfe\x88\x04\x5f\x05\xe7\xbe\x91\x91\x9e\xff\x80\0\0\0\0\0\0\x11first";
    for end in 0..row.len() {
        let result = split(&of, &row[..end]);
        assert!(result.is_err() || result.is_ok_and(|parts| parts.len() == 5), "{end}");
    }
}

#[test]
fn unsupported_statements_are_rejected() {
    let unsupported = |text: &str| {
        let e = phoenix(text).unwrap_err();
        matches!(e.kind(), coldframe_core::ErrorKind::Unsupported(_))
    };
    let column = |of: &str| format!("CREATE TABLE t (k VARCHAR PRIMARY KEY, a {of})");
    assert!(unsupported(&column("INTEGER ARRAY")));
    assert!(unsupported(&column("VARCHAR[]")));
    assert!(unsupported(&column("INTEGER DEFAULT 5")));
    assert!(unsupported("CREATE VIEW v AS SELECT * FROM t"));
    assert!(unsupported("CREATE IMMUTABLE TABLE t (k VARCHAR PRIMARY KEY, a INTEGER)"));
    assert!(unsupported("CREATE TABLE t (k VARCHAR PRIMARY KEY, a INTEGER) TRANSACTIONAL=true"));
    let by_column = "IMMUTABLE_STORAGE_SCHEME=ONE_CELL_PER_COLUMN";
    assert!(
        phoenix(&format!("CREATE IMMUTABLE TABLE t (k VARCHAR PRIMARY KEY, a INTEGER) {by_column}")).is_ok()
    );
}

#[test]
fn invalid_statements_are_errors_with_a_position() {
    let table =
        "CREATE TABLE t (k VARCHAR PRIMARY KEY, a DECIMAL(10, 2) NULL DEFAULT NULL) VERSIONS=1, TTL=-1";
    assert!(phoenix(table).is_ok());
    for end in 0..table.find(") VERSIONS").unwrap() {
        assert!(phoenix(&table[..end]).is_err(), "{}", &table[..end]);
    }
    let of = |column: &str| phoenix(&format!("CREATE TABLE t (k VARCHAR PRIMARY KEY, {column})"));
    for wrong in [
        "a MONEY",
        "a CHAR",
        "a CHAR(0)",
        "a DECIMAL(39)",
        "a DECIMAL(5, 6)",
        "a INTEGER(3)",
        "k INTEGER",
        "a",
    ] {
        assert!(of(wrong).is_err(), "{wrong}");
    }
    assert!(
        phoenix("CREATE TABLE t (a VARBINARY NOT NULL, b VARCHAR CONSTRAINT pk PRIMARY KEY (a, b))").is_err()
    );
    assert!(phoenix("CREATE TABLE t (a VARCHAR CONSTRAINT pk PRIMARY KEY (b))").is_err());
    assert!(phoenix("CREATE TABLE t (a VARCHAR)").is_err(), "no key");
    assert!(phoenix("CREATE TABLE t (a VARCHAR PRIMARY KEY) SALT_BUCKETS=many").is_err());
    let e = of("a MONEY").unwrap_err().to_string();
    assert!(e.contains("position 42") && e.contains("MONEY"), "{e}");
}
