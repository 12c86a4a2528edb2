//! The writer's options by name.

use coldframe_core::options::{flag, integer, pairs, text, unexpected};
use coldframe_core::{OptionDoc, Value};
use coldframe_encoding::codec::Algorithm;
use coldframe_encoding::{Error, Result};

use super::{Dialect, Encoding, WriteOptions};
use crate::layout::metadata::Codec;

/// What the writer takes.
pub(crate) const WRITE_OPTIONS: &[OptionDoc] = &[
    OptionDoc {
        name: "dialect",
        help: "\"redelm-f\" (default): as the reference's last commit wrote; \"spec\": as the format's README says",
    },
    OptionDoc { name: "codec", help: "none or uncompressed (default), snappy, gzip or lzo" },
    OptionDoc { name: "compression_level", help: "level of gzip, 0 to 12; default 6" },
    OptionDoc {
        name: "page_bytes",
        help: "levels and values with more than which a page ends; default 8192",
    },
    OptionDoc {
        name: "row_group_bytes",
        help: "pages and values with more than which a row group ends; default 50 MiB",
    },
    OptionDoc {
        name: "row_group_rows",
        help: "most rows of a row group; default 16777216, the most that is read by default",
    },
    OptionDoc { name: "crc", help: "whether pages get a CRC-32 of their stored bytes; default False" },
    OptionDoc {
        name: "encoding",
        help: "of INT32 and INT64: \"plain\" (default) or \"group_var_int\", which the reference cannot read",
    },
    OptionDoc { name: "metadata", help: "the file's key/value metadata; a value may be None" },
    OptionDoc { name: "schema_name", help: "name of the schema's root; default \"schema\"" },
    OptionDoc {
        name: "footer_every",
        help: "row groups after each of which a sync marker and a footer of all so far are written, so that a partly \
               written file can be read; default never",
    },
    OptionDoc { name: "sync_seed", help: "makes the sync marker, and so the file, reproducible" },
];

/// The options with the names of [`WRITE_OPTIONS`].
pub(crate) fn write_options(options: &coldframe_core::WriteOptions) -> Result<WriteOptions> {
    let extra = &options.extra;
    let mut to = WriteOptions::default();
    if let Some(dialect) = text(extra, "dialect")? {
        to.dialect = match dialect.to_ascii_lowercase().as_str() {
            "redelm-f" => Dialect::RedelmF,
            "spec" => Dialect::Spec,
            _ => return Err(unexpected("dialect", "\"redelm-f\" or \"spec\"", dialect)),
        };
    }
    if let Some(codec) = text(extra, "codec")? {
        to.codec = match codec.to_ascii_lowercase().as_str() {
            "none" | "uncompressed" => Algorithm::None,
            "snappy" => Algorithm::Snappy,
            "gzip" => Algorithm::Gzip,
            "lzo" => Algorithm::Lzo,
            _ => return Err(unexpected("codec", "none, snappy, gzip or lzo", codec)),
        };
    }
    if let Some(encoding) = text(extra, "encoding")? {
        to.encoding = match encoding.to_ascii_lowercase().as_str() {
            "plain" => Encoding::Plain,
            "group_var_int" => Encoding::GroupVarInt,
            _ => return Err(unexpected("encoding", "\"plain\" or \"group_var_int\"", encoding)),
        };
    }
    to.crc = flag(extra, "crc")?;
    to.compression_level = integer(extra, "compression_level")?;
    to.page_bytes = integer(extra, "page_bytes")?.unwrap_or(to.page_bytes);
    to.row_group_bytes = integer(extra, "row_group_bytes")?.unwrap_or(to.row_group_bytes);
    to.row_group_rows = integer(extra, "row_group_rows")?.unwrap_or(to.row_group_rows);
    to.footer_every = integer(extra, "footer_every")?;
    to.sync_seed = integer(extra, "sync_seed")?;
    if let Some(name) = text(extra, "schema_name")? {
        name.clone_into(&mut to.schema_name);
    }
    to.metadata = pairs(extra, "metadata", |value| match value {
        Value::Null => Ok(None),
        Value::Str(s) => Ok(Some(s.clone())),
        other => Err(Error::invalid(format!("expected a string, found {other:?}"))),
    })?;
    Ok(to)
}

/// The number of a codec in the file.
pub(super) fn stored_codec(algorithm: Algorithm) -> Result<Codec> {
    match algorithm {
        Algorithm::None => Ok(Codec::Uncompressed),
        Algorithm::Snappy => Ok(Codec::Snappy),
        Algorithm::Gzip => Ok(Codec::Gzip),
        Algorithm::Lzo => Ok(Codec::Lzo),
        other => Err(Error::unsupported(format!("Redfile has no codec {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, Value)]) -> Result<WriteOptions> {
        let extra = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        write_options(&coldframe_core::WriteOptions { extra })
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
        assert_eq!(names, WRITE_OPTIONS.iter().map(|o| o.name).collect::<Vec<_>>());
        let expected = WriteOptions {
            dialect: Dialect::Spec,
            codec: Algorithm::Gzip,
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
            parse(&WRITE_OPTIONS.iter().map(|o| (o.name, Value::Null)).collect::<Vec<_>>()).unwrap(),
            WriteOptions::default()
        );
    }

    #[test]
    fn what_is_not_an_option_s_value_is_refused() {
        for (name, value, message) in [
            (
                "dialect",
                Value::from("redelm-a"),
                "option `dialect`: expected \"redelm-f\" or \"spec\", found \"redelm-a\"",
            ),
            (
                "codec",
                Value::from("zstd"),
                "option `codec`: expected none, snappy, gzip or lzo, found \"zstd\"",
            ),
            ("crc", Value::Int(1), "option `crc`: expected true or false, found Int(1)"),
            ("page_bytes", Value::Int(-1), "option `page_bytes`: -1 is out of range"),
            ("metadata", Value::from("a"), "option `metadata`: expected a mapping, found Str(\"a\")"),
            ("schema_name", Value::Bool(true), "option `schema_name`: expected a string, found Bool(true)"),
        ] {
            assert_eq!(parse(&[(name, value)]).unwrap_err().to_string(), message);
        }
    }
}
