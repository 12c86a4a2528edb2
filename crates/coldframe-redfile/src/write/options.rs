//! The writer's options.

use coldframe_core::options::Kind;
use coldframe_encoding::codec::Algorithm;

use crate::layout::metadata;

coldframe_core::choices! {
    /// How pages and chunks are laid out.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Dialect {
        /// As the last commit of the reference wrote them.
        #[default]
        RedelmF = "redelm-f",
        /// As the README says.
        Spec = "spec",
    }
}

coldframe_core::choices! {
    /// How integers are stored.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Encoding {
        /// In 4 or 8 bytes.
        #[default]
        Plain = "plain",
        /// By their significant bytes. The reference reads such integers wrongly.
        GroupVarInt = "group_var_int",
    }
}

coldframe_core::choices! {
    /// Compression of pages.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Codec {
        /// No compression.
        #[default]
        None = "none" | "uncompressed",
        /// Snappy.
        Snappy = "snappy",
        /// Gzip.
        Gzip = "gzip",
        /// LZO.
        Lzo = "lzo",
    }
}

impl Codec {
    /// The algorithm.
    pub(super) fn algorithm(self) -> Algorithm {
        match self {
            Self::None => Algorithm::None,
            Self::Snappy => Algorithm::Snappy,
            Self::Gzip => Algorithm::Gzip,
            Self::Lzo => Algorithm::Lzo,
        }
    }

    /// The number of the codec in the file.
    pub(super) fn stored(self) -> metadata::Codec {
        match self {
            Self::None => metadata::Codec::Uncompressed,
            Self::Snappy => metadata::Codec::Snappy,
            Self::Gzip => metadata::Codec::Gzip,
            Self::Lzo => metadata::Codec::Lzo,
        }
    }
}

coldframe_core::options! {
    /// How a Redfile is written.
    pub struct WriteOptions for coldframe_core::WriteOptions {
        /// layout of the pages. "redelm-f": as the last commit of the reference wrote them; "spec": as the README of
        /// the format says
        dialect: Dialect;
        /// compression of pages
        codec: Codec, alias "compression";
        /// compression level of gzip, 0 to 12; default: 6
        compression_level: Option<i32>;
        /// bytes of levels and values after which a page ends
        page_bytes: usize = 8 << 10, as Kind::SIZE;
        /// bytes of pages and values after which a row group ends
        row_group_bytes: u64 = 50 << 20, as Kind::SIZE;
        /// maximum rows of a row group
        row_group_rows: u64 = 1 << 24;
        /// whether pages get a CRC-32 of their stored bytes
        crc: bool;
        /// encoding of INT32 and INT64: "plain", or "group_var_int", which the reference cannot read
        encoding: Encoding;
        /// key/value metadata of the file; a value may be None
        metadata: Vec<(String, Option<String>)>;
        /// name of the root of the schema
        schema_name: String = "schema".to_owned();
        /// number of row groups after which a sync marker and a cumulative footer are written, so that a partly written
        /// file can be read; default: never
        footer_every: Option<usize>, as Kind::at_least(1);
        /// seed of the sync marker: makes the file reproducible
        sync_seed: Option<u64>;
    }
}

#[cfg(test)]
mod tests {
    use coldframe_core::{Options, Result, Value};

    use super::*;

    fn parse(pairs: &[(&str, Value)]) -> Result<WriteOptions> {
        let extra = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        WriteOptions::read("redfile", &extra)
    }

    #[test]
    fn every_option_is_taken() {
        let metadata = Value::map([("b", Value::from("1")), ("a", Value::Null)]);
        let given = [
            ("dialect", Value::from("spec")),
            ("codec", Value::from("GZIP")),
            ("compression_level", Value::Int(9)),
            ("page_bytes", Value::Int(1)),
            ("row_group_bytes", Value::Int(2)),
            ("row_group_rows", Value::Int(3)),
            ("crc", Value::Bool(true)),
            ("encoding", Value::from("group_var_int")),
            ("metadata", metadata),
            ("schema_name", Value::from("m")),
            ("footer_every", Value::Int(4)),
            ("sync_seed", Value::Int(5)),
        ];
        let names: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, WriteOptions::specs().iter().map(|o| o.name).collect::<Vec<_>>());
        let expected = WriteOptions {
            dialect: Dialect::Spec,
            codec: Codec::Gzip,
            compression_level: Some(9),
            page_bytes: 1,
            row_group_bytes: 2,
            row_group_rows: 3,
            crc: true,
            encoding: Encoding::GroupVarInt,
            metadata: vec![("b".to_owned(), Some("1".to_owned())), ("a".to_owned(), None)],
            schema_name: "m".to_owned(),
            footer_every: Some(4),
            sync_seed: Some(5),
        };
        assert_eq!(parse(&given).unwrap(), expected);
        assert_eq!(parse(&[]).unwrap(), WriteOptions::default());
        assert_eq!(
            parse(&WriteOptions::specs().iter().map(|o| (o.name, Value::Null)).collect::<Vec<_>>()).unwrap(),
            WriteOptions::default()
        );
    }

    #[test]
    fn invalid_option_values_are_refused() {
        for (name, value, message) in [
            (
                "dialect",
                Value::from("redelm-a"),
                "option `dialect`: expected \"redelm-f\" or \"spec\", found \"redelm-a\"",
            ),
            (
                "codec",
                Value::from("zstd"),
                "option `codec`: expected \"none\", \"snappy\", \"gzip\" or \"lzo\", found \"zstd\"",
            ),
            ("crc", Value::Int(1), "option `crc`: expected true or false, found 1"),
            ("page_bytes", Value::Int(-1), "option `page_bytes`: expected 0 or more, found -1"),
            ("metadata", Value::from("a"), "option `metadata`: expected a mapping, found \"a\""),
            ("schema_name", Value::Bool(true), "option `schema_name`: expected a string, found true"),
        ] {
            assert_eq!(parse(&[(name, value)]).unwrap_err().to_string(), message);
        }
    }
}
