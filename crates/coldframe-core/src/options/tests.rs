//! Declared options: defaults, checks, and values from text.

use super::*;
use crate::OpenOptions;

crate::choices! {
    /// Words.
    #[derive(Default)]
    pub enum Codec {
        /// None.
        #[default]
        None = "none" | "uncompressed",
        /// Zlib.
        Zlib = "zlib",
    }
}

crate::options! {
    /// Some.
    pub struct Part for OpenOptions {
        /// whether it is so
        flag: bool = true;
    }
}

crate::options! {
    /// All kinds.
    pub struct All for OpenOptions {
        flatten part: Part;
        /// how it is compressed,
        /// on two lines
        codec: Codec, alias "compression";
        /// rows
        rows: u32 = 7, as Kind::at_least(1);
        /// bytes
        block: u64 = 1 << 20, as Kind::Size { least: 1, most: 1 << 30 };
        /// a share
        share: f64 = 0.5, as Kind::SHARE;
        /// names
        names: Vec<String>;
        /// text by name
        texts: Vec<(String, String)>;
        /// text or bytes by name
        entries: Vec<(String, Vec<u8>)>;
        /// when
        at: Option<Time>;
        /// from and to
        range: Option<(Time, Time)>;
    }
}

fn given(pairs: &[(&str, Value)]) -> BTreeMap<String, Value> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn refused(name: &str, value: Value) -> String {
    All::read("x", &given(&[(name, value)])).unwrap_err().to_string()
}

#[test]
fn declarations_are_available_as_data() {
    let specs = All::specs();
    let names: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
    assert_eq!(
        names,
        ["flag", "codec", "rows", "block", "share", "names", "texts", "entries", "at", "range"]
    );
    let codec = specs.iter().find(|spec| spec.has_name("compression")).unwrap();
    assert_eq!(codec.help, "how it is compressed, on two lines");
    assert_eq!((codec.kind, &codec.default), (Kind::Choice(Codec::CHOICES), &Value::from("none")));
    let defaults: Vec<&Value> = specs.iter().map(|spec| &spec.default).collect();
    assert_eq!(defaults[2..5], [&Value::Int(7), &Value::Int(1 << 20), &Value::Float(0.5)]);
    assert!(defaults[5..].iter().all(|default| **default == Value::Null));
}

#[test]
fn maps_and_structs_are_equivalent() {
    let all = All {
        part: Part { flag: false },
        codec: Codec::Zlib,
        rows: 3,
        block: 5,
        share: 0.25,
        names: vec!["a".to_owned(), "b".to_owned()],
        texts: vec![("b".to_owned(), "1".to_owned()), ("a".to_owned(), String::new())],
        entries: vec![("k".to_owned(), vec![255])],
        at: Some("2020-01-01".into()),
        range: Some((1_i64.into(), u64::MAX.into())),
    };
    let map = OpenOptions::from(all.clone()).extra;
    assert_eq!(map.len(), All::specs().len());
    assert_eq!(All::read("x", &map).unwrap(), all);
    assert!(OpenOptions::from(All::default()).extra.is_empty());
    let nulls: BTreeMap<_, _> = All::specs().iter().map(|s| (s.name.to_owned(), Value::Null)).collect();
    assert_eq!(All::read("x", &nulls).unwrap(), All::default());
}

#[test]
fn values_have_several_forms() {
    let map = given(&[
        ("compression", Value::from("UNCOMPRESSED")),
        ("block", Value::from("4 KiB")),
        ("names", Value::from(" a, b.c ,")),
        ("texts", Value::map([("t", Value::Bool(true)), ("n", Value::Int(1))])),
        ("entries", Value::map([("t", Value::from("x"))])),
    ]);
    let read = All::read("x", &map).unwrap();
    assert_eq!((read.codec, read.block), (Codec::None, 4096));
    assert_eq!(read.names, ["a", "b.c"]);
    let texts = [("t", "true"), ("n", "1")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(read.texts, texts);
    assert_eq!(read.entries, [("t".to_owned(), b"x".to_vec())]);
}

#[test]
fn invalid_values_are_refused() {
    for (name, value, message) in [
        ("flag", Value::Int(1), "option `flag`: expected true or false, found 1"),
        ("codec", Value::from("rar"), "option `codec`: expected \"none\" or \"zlib\", found \"rar\""),
        ("rows", Value::Int(0), "option `rows`: expected 1 or more, found 0"),
        (
            "rows",
            Value::Int(1 << 40),
            "option `rows`: expected an integer that is in range, found 1099511627776",
        ),
        ("rows", Value::from("1"), "option `rows`: expected an integer, found \"1\""),
        (
            "block",
            Value::UInt(u64::MAX),
            "option `block`: expected 1 to 1073741824, found 18446744073709551615",
        ),
        (
            "block",
            Value::from("1 parsec"),
            "option `block`: expected a number of bytes such as 1000 or 64m, found \"1 parsec\"",
        ),
        ("share", Value::Float(1.0), "option `share`: expected a number between 0 and 1, found 1.0"),
        ("share", Value::Float(f64::NAN), "option `share`: expected a number between 0 and 1, found NaN"),
        ("texts", Value::from("a"), "option `texts`: expected a mapping, found \"a\""),
        (
            "texts",
            Value::map([("k", Value::Null)]),
            "option `texts`: expected a string for `k`, found {\"k\": nothing}",
        ),
        ("at", Value::Bool(true), "option `at`: expected a date and time, or a number, found true"),
        ("range", Value::List(vec![Value::Int(1)]), "option `range`: expected two times, found [1]"),
        (
            "colour",
            Value::Null,
            "x has no option `colour`; it knows: flag, codec, rows, block, share, names, texts, entries, at, range",
        ),
    ] {
        assert_eq!(refused(name, value), message);
    }
    let both = given(&[("codec", Value::from("zlib")), ("compression", Value::from("zlib"))]);
    let message = "options `codec` and `compression` are the same option: expected one of them";
    assert_eq!(All::read("x", &both).unwrap_err().to_string(), message);
}

#[test]
fn text_is_parsed_by_the_kind_of_the_option() {
    let parse = |name: &str, text: &str| {
        let specs = All::specs();
        specs.iter().find(|spec| spec.name == name).unwrap().parse(text).map_err(|e| e.to_string())
    };
    assert_eq!(parse("flag", "TRUE"), Ok(Value::Bool(true)));
    assert_eq!(parse("rows", "12"), Ok(Value::Int(12)));
    assert_eq!(parse("block", "64k"), Ok(Value::Int(65536)));
    assert_eq!(parse("share", "1e-3"), Ok(Value::Float(0.001)));
    assert_eq!(parse("codec", "Zlib"), Ok(Value::from("zlib")));
    assert_eq!(parse("names", "[\"a\", \"b,c\"]"), Ok(Value::List(vec!["a".into(), "b,c".into()])));
    // The order is kept: for a wide table it is the order of the columns.
    let pairs = Value::map([("z", Value::from("1")), ("a", Value::from("2"))]);
    assert_eq!(parse("texts", "{\"z\": \"1\", \"a\": 2}"), Ok(pairs));
    assert_eq!(parse("at", "17"), Ok(Value::from("17")));
    assert_eq!(
        parse("range", "[1, \"2020-01-01\"]"),
        Ok(Value::List(vec![1_i64.into(), "2020-01-01".into()]))
    );
    assert_eq!(parse("flag", "yes").unwrap_err(), "option `flag`: expected true or false, found \"yes\"");
    assert_eq!(parse("rows", "1.5").unwrap_err(), "option `rows`: expected an integer, found \"1.5\"");
    assert!(parse("texts", "{").unwrap_err().starts_with("option `texts`: expected a JSON object as JSON ("));
}
