//! Types are read and printed as Hive writes them and converted from and to Arrow types; invalid text is an
//! error with its position.

use arrow_schema::{DataType, Field};
use coldframe_encoding::Limits;
use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> Vec<(String, HiveType)> {
    ddl::parse_columns(text, &Limits::default()).unwrap()
}

fn refused(text: &str) -> String {
    ddl::parse_columns(text, &Limits::default()).unwrap_err().to_string()
}

#[test]
fn a_column_list_is_read_as_hive_writes_it() {
    let columns = parsed(
        "id BIGINT, `ta``gs` Array<String>, s struct<a:int COMMENT 'x', `b c`: string>, u uniontype<int,string>,\n\
         d decimal(12,2), e dec, n numeric(5), x varchar(10), c char(3) COMMENT 'it''s \\' here', \
         t timestamp with local time zone, p double precision, m map<int,map<string,date>>, i interval year to month",
    );
    let shown: Vec<String> = columns.iter().map(|(n, t)| format!("{n} {t}")).collect();
    assert_eq!(
        shown,
        [
            "id bigint",
            "ta`gs array<string>",
            "s struct<a:int,`b c`:string>",
            "u uniontype<int,string>",
            "d decimal(12,2)",
            "e decimal(10,0)",
            "n decimal(5,0)",
            "x varchar(10)",
            "c char(3)",
            "t timestamp with local time zone",
            "p double",
            "m map<int,map<string,date>>",
            "i interval_year_month",
        ]
    );
    assert!(parsed("").is_empty());
}

#[test]
fn an_error_names_the_position_and_the_expectation() {
    assert_eq!(refused("a int, b blob"), "Hive schema, character 10: expected a Hive type, found `blob`");
    assert_eq!(refused("a array<int"), "Hive schema, character 12: expected `>`, found the end");
    assert_eq!(
        refused("a int b int"),
        "Hive schema, character 7: expected `,` or the end of the column list, found `b int`"
    );
    assert!(
        refused("a decimal(39,2)").contains("character 11: decimal(39,2): expected a precision of 1..=38")
    );
    assert!(refused("a decimal(3,4)").contains("scale of 0..=precision"));
    assert!(refused("a varchar(0)").contains("1..=65535"));
    assert!(refused("a char(256)").contains("1..=255"));
    assert!(refused("`a int").contains("closing"));
    assert!(refused("a map<array<int>,int>").contains("keys are primitive"));
    assert!(refused(", a int").contains("a column name"));
}

#[test]
fn nesting_is_limited() {
    let deep = |n: usize| format!("a {}int{}", "array<".repeat(n), ">".repeat(n));
    assert_eq!(parsed(&deep(127))[0].1.depth(), 128);
    assert!(refused(&deep(128)).contains("max_depth"));
    assert!(refused(&deep(100_000)).contains("max_depth"));
}

#[test]
fn arrow_types_that_hive_lacks_are_refused_by_name() {
    let e = HiveType::from_arrow(&DataType::UInt32).unwrap_err().to_string();
    assert!(e.contains("unsigned") && e.contains("UInt32"), "{e}");
    assert!(HiveType::from_arrow(&DataType::Null).is_err());
    assert!(HiveType::from_arrow(&DataType::Decimal128(5, -1)).is_err());
    assert!(HiveType::from_arrow(&DataType::Decimal256(39, 0)).is_err());
}

#[test]
fn arrow_variants_map_to_one_hive_type() {
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::LargeUtf8));
    assert_eq!(HiveType::from_arrow(&dictionary).unwrap(), HiveType::String);
    assert_eq!(HiveType::from_arrow(&DataType::FixedSizeBinary(4)).unwrap(), HiveType::Binary);
    let list = DataType::FixedSizeList(Arc::new(Field::new("x", DataType::Utf8View, false)), 3);
    assert_eq!(HiveType::from_arrow(&list).unwrap(), HiveType::Array(Box::new(HiveType::String)));
}

/// Any type, except those without an Arrow type of their own.
fn any_type() -> impl Strategy<Value = HiveType> {
    let leaf = prop_oneof![
        Just(HiveType::Boolean),
        Just(HiveType::TinyInt),
        Just(HiveType::SmallInt),
        Just(HiveType::Int),
        Just(HiveType::BigInt),
        Just(HiveType::Float),
        Just(HiveType::Double),
        (1u8..=38, 0u8..=38).prop_map(|(p, s)| HiveType::Decimal { precision: p, scale: s.min(p) }),
        Just(HiveType::String),
        Just(HiveType::Binary),
        Just(HiveType::Date),
        Just(HiveType::Timestamp),
        Just(HiveType::TimestampLocalTz),
        Just(HiveType::IntervalDayTime),
    ];
    leaf.clone().prop_recursive(4, 20, 4, move |inner| {
        prop_oneof![
            inner.clone().prop_map(|t| HiveType::Array(Box::new(t))),
            (
                leaf.clone().prop_filter("not a struct in Arrow", |t| *t != HiveType::IntervalDayTime),
                inner.clone()
            )
                .prop_map(|(k, v)| HiveType::Map(Box::new(k), Box::new(v))),
            prop::collection::vec((".{1,4}", inner.clone()), 1..4).prop_map(HiveType::Struct),
            prop::collection::vec(inner, 1..4).prop_map(HiveType::Union),
        ]
    })
}

proptest! {
    #[test]
    fn displayed_types_parse_back(t in any_type()) {
        prop_assert_eq!(ddl::parse_type(&t.to_string(), &Limits::default()).unwrap(), t);
    }

    #[test]
    fn arrow_types_convert_back(t in any_type()) {
        prop_assert_eq!(HiveType::from_arrow(&t.to_arrow(TimestampUnit::Nanosecond)).unwrap(), t);
    }

    #[test]
    fn any_text_gives_types_or_an_error(text in "\\PC*|[a-z<>,:`'() 0-9]*|((array|map|struct|decimal)[<(]){0,9}") {
        let _ = ddl::parse_columns(&text, &Limits::default());
    }
}

#[test]
fn texts_are_bytes_also_in_nested_types() {
    let parsed =
        ddl::parse_type("map<string,struct<a:array<string>,b:varchar(3)>>", &Limits::default()).unwrap();
    let kind = parsed.with_bytes().to_arrow(TimestampUnit::Microsecond).to_string();
    assert_eq!((kind.matches("Binary").count(), kind.matches("Utf8").count()), (2, 1), "{kind}");
}
