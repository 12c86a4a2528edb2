//! The writer's options by name.

use std::collections::BTreeMap;

use coldframe_core::options::{choice, integer, pairs, text, text_or_bytes, unexpected};
use coldframe_core::{OptionDoc, Value};
use coldframe_encoding::codec::Algorithm;
use coldframe_encoding::{Error, Limits, Result};

use super::schema::Length;
use super::stream::MAX_BLOCK;
use super::timestamp::LastSecond;

/// How to write a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WriteOptions {
    /// Compression of streams and footers.
    pub(crate) codec: Algorithm,
    /// The codec's level, its default where absent.
    pub(crate) compression_level: Option<i32>,
    /// Bytes of a stream that are compressed together; as Java chooses by stripe size and columns where absent.
    pub(crate) compression_block_size: Option<usize>,
    /// Memory of streams with which a stripe ends.
    pub(crate) stripe_size: usize,
    /// Most rows of a stripe.
    pub(crate) stripe_rows: u64,
    /// Rows of a row group; 0 for no indexes.
    pub(crate) row_index_stride: usize,
    /// Entries of a dictionary for each value, above which there is none.
    pub(crate) dictionary_threshold: f64,
    /// Whether integers get widths that unpack fast.
    pub(crate) aligned: bool,
    /// The columns that get bloom filters, `a.b.c` for nested ones.
    pub(crate) bloom_filter_columns: Vec<String>,
    /// How many values that are not there a bloom filter may take for one that is.
    pub(crate) bloom_filter_fpp: f64,
    /// Columns of text that are varchar or char, by their paths.
    pub(super) types: Vec<(String, Length)>,
    /// What becomes of values in the last second before 1970.
    pub(super) last_second: LastSecond,
    /// User metadata, in order.
    pub(crate) metadata: Vec<(String, Vec<u8>)>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            codec: Algorithm::Zstd,
            compression_level: None,
            compression_block_size: None,
            stripe_size: 64 << 20,
            stripe_rows: Limits::default().max_unit_rows,
            row_index_stride: 10_000,
            dictionary_threshold: 0.8,
            aligned: true,
            bloom_filter_columns: Vec::new(),
            bloom_filter_fpp: 0.01,
            types: Vec::new(),
            last_second: LastSecond::default(),
            metadata: Vec::new(),
        }
    }
}

/// What the writer takes.
pub(crate) const WRITE_OPTIONS: &[OptionDoc] = &[
    OptionDoc {
        name: "codec",
        help: "zstd (default), zlib, snappy, lz4, lzo, brotli, or none or uncompressed",
    },
    OptionDoc { name: "compression_level", help: "level of the codec; default the codec's own" },
    OptionDoc {
        name: "compression_block_size",
        help: "bytes that are compressed together; default 4 KiB to 256 KiB by stripe size and columns, as Java",
    },
    OptionDoc { name: "stripe_size", help: "bytes of memory with which a stripe ends; default 64 MiB" },
    OptionDoc {
        name: "stripe_rows",
        help: "most rows of a stripe; default 16777216, the most that is read by default",
    },
    OptionDoc { name: "row_index_stride", help: "rows of a row group; default 10000, 0 for no indexes" },
    OptionDoc {
        name: "dictionary_threshold",
        help: "a string column gets dictionaries if at most this part of its first row group's values is distinct; \
               default 0.8, 0 for never, 1 for always",
    },
    OptionDoc {
        name: "encoding_strategy",
        help: "\"speed\" (default) rounds the widths of integers up to those that are read fastest, \"compression\" does not",
    },
    OptionDoc {
        name: "bloom_filter_columns",
        help: "columns that get bloom filters: a list, or names with commas between; nested ones as a.b",
    },
    OptionDoc {
        name: "bloom_filter_fpp",
        help: "part of absent values that a bloom filter lets pass; default 0.01",
    },
    OptionDoc {
        name: "types",
        help: "\"varchar(n)\" or \"char(n)\" by the names of string columns, nested ones as a.b: values are cut to n characters, \
               of char filled up with blanks",
    },
    OptionDoc {
        name: "last_second",
        help: "times in the last second before 1970 with a millisecond or more, which Java cannot read: \"refuse\" (default) ends \
               the writing, \"cpp\" stores them for readers in C++",
    },
    OptionDoc { name: "metadata", help: "the file's user metadata: text or bytes by name" },
];

/// The options with the names of [`WRITE_OPTIONS`].
pub(crate) fn write_options(options: &coldframe_core::WriteOptions) -> Result<WriteOptions> {
    let extra = &options.extra;
    let mut to = WriteOptions::default();
    if let Some(codec) = text(extra, "codec")? {
        to.codec = match codec.to_ascii_lowercase().as_str() {
            "none" | "uncompressed" => Algorithm::None,
            "zlib" => Algorithm::Deflate,
            "snappy" => Algorithm::Snappy,
            "lz4" => Algorithm::Lz4,
            "lzo" => Algorithm::Lzo,
            "zstd" => Algorithm::Zstd,
            "brotli" => Algorithm::Brotli,
            _ => {
                return Err(unexpected("codec", "none, zlib, snappy, lzo, lz4, zstd or brotli", codec));
            }
        };
    }
    to.compression_level = integer(extra, "compression_level")?;
    if let (Some(level), None) = (to.compression_level, to.codec.levels()) {
        return Err(Error::invalid(format!(
            "option `compression_level`: {} has none, found {level}",
            to.codec
        )));
    }
    to.compression_block_size = at_least_one(extra, "compression_block_size")?;
    if let Some(size) = to.compression_block_size.filter(|size| *size > MAX_BLOCK) {
        return Err(unexpected("compression_block_size", &format!("at most {MAX_BLOCK}"), size));
    }
    to.stripe_size = at_least_one(extra, "stripe_size")?.unwrap_or(to.stripe_size);
    to.stripe_rows = at_least_one(extra, "stripe_rows")?.map_or(to.stripe_rows, |rows| rows as u64);
    let stride = integer::<i32>(extra, "row_index_stride")?;
    if let Some(stride) = stride {
        to.row_index_stride =
            usize::try_from(stride).map_err(|_| unexpected("row_index_stride", "0 or more", stride))?;
    }
    to.dictionary_threshold = number(extra, "dictionary_threshold")?.unwrap_or(to.dictionary_threshold);
    if let Some(strategy) = text(extra, "encoding_strategy")? {
        to.aligned = match strategy.to_ascii_lowercase().as_str() {
            "speed" => true,
            "compression" => false,
            _ => return Err(unexpected("encoding_strategy", "\"speed\" or \"compression\"", strategy)),
        };
    }
    to.bloom_filter_columns = names(extra, "bloom_filter_columns")?;
    if let Some(fpp) = number(extra, "bloom_filter_fpp")? {
        if !(fpp > 0.0 && fpp < 1.0) {
            return Err(unexpected("bloom_filter_fpp", "a number between 0 and 1", fpp));
        }
        to.bloom_filter_fpp = fpp;
    }
    let types = pairs(extra, "types", text_or_bytes)?.into_iter();
    to.types =
        types.map(|(path, of)| Ok((path, String::from_utf8_lossy(&of).parse()?))).collect::<Result<_>>()?;
    if choice(extra, "last_second", ["refuse", "cpp"])? == Some(true) {
        to.last_second = LastSecond::Cpp;
    }
    to.metadata = pairs(extra, "metadata", text_or_bytes)?;
    Ok(to)
}

fn at_least_one(extra: &BTreeMap<String, Value>, name: &str) -> Result<Option<usize>> {
    match integer(extra, name)? {
        Some(0) => Err(unexpected(name, "1 or more", 0)),
        other => Ok(other),
    }
}

fn number(extra: &BTreeMap<String, Value>, name: &str) -> Result<Option<f64>> {
    match extra.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Float(f)) if !f.is_nan() => Ok(Some(*f)),
        Some(Value::Int(i)) => Ok(i32::try_from(*i).ok().map(f64::from)),
        Some(other) => Err(unexpected(name, "a number", other)),
    }
}

fn names(extra: &BTreeMap<String, Value>, name: &str) -> Result<Vec<String>> {
    let of = |value: &Value| match value {
        Value::Str(s) => Ok(s.trim().to_owned()),
        other => Err(unexpected(name, "names", other)),
    };
    match extra.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Str(all)) => {
            Ok(all.split(',').map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect())
        }
        Some(Value::List(all)) => all.iter().map(of).collect(),
        Some(other) => of(other).map(|n| vec![n]),
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
        let given = [
            ("codec", Value::from("ZLIB")),
            ("compression_level", Value::Int(9)),
            ("compression_block_size", Value::Int(1)),
            ("stripe_size", Value::Int(2)),
            ("stripe_rows", Value::Int(3)),
            ("row_index_stride", Value::Int(0)),
            ("dictionary_threshold", Value::Int(1)),
            ("encoding_strategy", Value::from("compression")),
            ("bloom_filter_columns", Value::from("a, b.c")),
            ("bloom_filter_fpp", Value::Float(0.5)),
            ("types", Value::map([("t", Value::from("char(5)"))])),
            ("last_second", Value::from("cpp")),
            ("metadata", Value::map([("b", Value::from("1")), ("a", Value::Bytes(vec![255]))])),
        ];
        let known: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
        assert_eq!(known, WRITE_OPTIONS.iter().map(|o| o.name).collect::<Vec<_>>());
        let expected = WriteOptions {
            codec: Algorithm::Deflate,
            compression_level: Some(9),
            compression_block_size: Some(1),
            stripe_size: 2,
            stripe_rows: 3,
            row_index_stride: 0,
            dictionary_threshold: 1.0,
            aligned: false,
            bloom_filter_columns: vec!["a".to_owned(), "b.c".to_owned()],
            bloom_filter_fpp: 0.5,
            types: vec![("t".to_owned(), Length::Exactly(5))],
            last_second: LastSecond::Cpp,
            metadata: vec![("b".to_owned(), b"1".to_vec()), ("a".to_owned(), vec![255])],
        };
        assert_eq!(parse(&given).unwrap(), expected);
        let none: Vec<_> = WRITE_OPTIONS.iter().map(|o| (o.name, Value::Null)).collect();
        assert_eq!(parse(&none).unwrap(), WriteOptions::default());
        let list = Value::List(vec![Value::from("a"), Value::from("b.c")]);
        let found = parse(&[("bloom_filter_columns", list)]).unwrap().bloom_filter_columns;
        assert_eq!(found, expected.bloom_filter_columns);
    }

    #[test]
    fn what_is_not_an_option_s_value_is_refused() {
        for (name, value, message) in [
            (
                "codec",
                Value::from("gzip"),
                "option `codec`: expected none, zlib, snappy, lzo, lz4, zstd or brotli, found \"gzip\"",
            ),
            (
                "compression_block_size",
                Value::Int(1 << 23),
                "option `compression_block_size`: expected at most 8388607, found 8388608",
            ),
            ("stripe_rows", Value::Int(0), "option `stripe_rows`: expected 1 or more, found 0"),
            ("row_index_stride", Value::Int(-1), "option `row_index_stride`: expected 0 or more, found -1"),
            (
                "bloom_filter_fpp",
                Value::Float(1.0),
                "option `bloom_filter_fpp`: expected a number between 0 and 1, found 1.0",
            ),
            ("metadata", Value::from("a"), "option `metadata`: expected a mapping, found Str(\"a\")"),
        ] {
            assert_eq!(parse(&[(name, value)]).unwrap_err().to_string(), message);
        }
        let snappy = parse(&[("codec", Value::from("snappy")), ("compression_level", Value::Int(1))]);
        assert_eq!(snappy.unwrap_err().to_string(), "option `compression_level`: snappy has none, found 1");
    }
}
