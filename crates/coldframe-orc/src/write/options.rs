//! Defines the writer's options.

use coldframe_core::options::Kind;
use coldframe_encoding::codec::Algorithm;
use coldframe_encoding::{Error, Result};

use super::schema::Length;
use super::stream::MAX_BLOCK;

coldframe_core::choices! {
    /// Compression of streams and footers.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Codec {
        /// Zstandard.
        #[default]
        Zstd = "zstd",
        /// Deflate.
        Zlib = "zlib",
        /// Snappy.
        Snappy = "snappy",
        /// LZ4.
        Lz4 = "lz4",
        /// LZO.
        Lzo = "lzo",
        /// Brotli.
        Brotli = "brotli",
        /// No compression.
        None = "none" | "uncompressed",
    }
}

impl Codec {
    /// The algorithm.
    pub(crate) fn algorithm(self) -> Algorithm {
        match self {
            Self::Zstd => Algorithm::Zstd,
            Self::Zlib => Algorithm::Deflate,
            Self::Snappy => Algorithm::Snappy,
            Self::Lz4 => Algorithm::Lz4,
            Self::Lzo => Algorithm::Lzo,
            Self::Brotli => Algorithm::Brotli,
            Self::None => Algorithm::None,
        }
    }

    /// `CompressionKind`
    pub(super) fn stored(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Zlib => 1,
            Self::Snappy => 2,
            Self::Lzo => 3,
            Self::Lz4 => 4,
            Self::Zstd => 5,
            Self::Brotli => 6,
        }
    }
}

coldframe_core::choices! {
    /// How bit widths of integers are chosen.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum EncodingStrategy {
        /// Round up to widths that decode fastest.
        #[default]
        Speed = "speed",
        /// Use the smallest width.
        Compression = "compression",
    }
}

coldframe_core::choices! {
    /// How to treat values in the last second before 1970 with a fraction of a millisecond or more.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum LastSecond {
        /// Refuse them.
        #[default]
        Refuse = "refuse",
        /// Store them as the C++ writer does.
        Cpp = "cpp",
    }
}

coldframe_core::options! {
    /// How an ORC file is written.
    pub struct WriteOptions for coldframe_core::WriteOptions {
        /// compression of streams and metadata
        codec: Codec, alias "compression";
        /// compression level; default: the codec's own
        compression_level: Option<i32>;
        /// bytes of one compression chunk; default: 4 KiB to 256 KiB, by stripe size and number of columns, as the Java
        /// writer chooses
        compression_block_size: Option<usize>, as Kind::Size { least: 1, most: MAX_BLOCK as u64 };
        /// bytes of memory after which a stripe ends
        stripe_size: usize = 64 << 20, as Kind::size_of_at_least(1);
        /// most rows of a stripe
        stripe_rows: u64 = 1 << 24, as Kind::at_least(1);
        /// rows of a row group; 0 writes no indexes
        row_index_stride: usize = 10_000, as Kind::Int { least: 0, most: i32::MAX as u64 };
        /// largest ratio of distinct values, in the first row group, for which a string column is written with
        /// dictionaries; 0 for never, 1 for always
        dictionary_threshold: f64 = 0.8;
        /// "speed" rounds bit widths of integers up to those that decode fastest; "compression" does not
        encoding_strategy: EncodingStrategy;
        /// columns to write bloom filters for: a list, or names separated by commas; nested columns as a.b
        bloom_filter_columns: Vec<String>;
        /// false positive rate of bloom filters
        bloom_filter_fpp: f64 = 0.01, as Kind::SHARE;
        /// {column: "varchar(n)" or "char(n)"} for string columns, nested ones as a.b: values are cut to n characters;
        /// char is padded with blanks
        types: Vec<(String, String)>;
        /// timestamps in the last second before 1970 with a fraction of a millisecond or more, which the Java reader
        /// gets wrong: "refuse" raises an error, "cpp" stores them as the C++ reader expects
        last_second: LastSecond;
        /// user metadata by name, as text or bytes
        metadata: Vec<(String, Vec<u8>)>;
    }
}

impl WriteOptions {
    /// Returns an error if options contradict each other.
    pub(super) fn check(&self) -> Result<()> {
        match (self.compression_level, self.codec.algorithm()) {
            (Some(level), codec) if codec.levels().is_none() => {
                Err(Error::invalid(format!("option `compression_level`: {codec} has none, found {level}")))
            }
            _ => Ok(()),
        }
    }

    /// Whether bit widths are rounded up to the widths that unpack fast.
    pub(super) fn aligned(&self) -> bool {
        self.encoding_strategy == EncodingStrategy::Speed
    }

    /// The columns to write as varchar or char, by path.
    pub(super) fn lengths(&self) -> Result<Vec<(String, Length)>> {
        self.types.iter().map(|(path, of)| Ok((path.clone(), of.parse()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use coldframe_core::{Options, Value};

    use super::*;

    fn parse(pairs: &[(&str, Value)]) -> Result<WriteOptions> {
        let extra = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        let read = WriteOptions::read("orc", &extra)?;
        read.check().map(|()| read)
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
        assert_eq!(known, WriteOptions::specs().iter().map(|o| o.name).collect::<Vec<_>>());
        let expected = WriteOptions {
            codec: Codec::Zlib,
            compression_level: Some(9),
            compression_block_size: Some(1),
            stripe_size: 2,
            stripe_rows: 3,
            row_index_stride: 0,
            dictionary_threshold: 1.0,
            encoding_strategy: EncodingStrategy::Compression,
            bloom_filter_columns: vec!["a".to_owned(), "b.c".to_owned()],
            bloom_filter_fpp: 0.5,
            types: vec![("t".to_owned(), "char(5)".to_owned())],
            last_second: LastSecond::Cpp,
            metadata: vec![("b".to_owned(), b"1".to_vec()), ("a".to_owned(), vec![255])],
        };
        assert_eq!(parse(&given).unwrap(), expected);
        assert_eq!(expected.lengths().unwrap(), [("t".to_owned(), Length::Exactly(5))]);
        let none: Vec<_> = WriteOptions::specs().iter().map(|o| (o.name, Value::Null)).collect();
        assert_eq!(parse(&none).unwrap(), WriteOptions::default());
        let list = Value::List(vec![Value::from("a"), Value::from("b.c")]);
        let columns = parse(&[("bloom_filter_columns", list)]).unwrap().bloom_filter_columns;
        assert_eq!(columns, expected.bloom_filter_columns);
    }

    #[test]
    fn values_that_do_not_fit_an_option_are_refused() {
        for (name, value, message) in [
            (
                "codec",
                Value::from("gzip"),
                "option `codec`: expected \"zstd\", \"zlib\", \"snappy\", \"lz4\", \"lzo\", \"brotli\" or \"none\", found \"gzip\"",
            ),
            (
                "compression_block_size",
                Value::Int(1 << 23),
                "option `compression_block_size`: expected 1 to 8388607, found 8388608",
            ),
            ("stripe_rows", Value::Int(0), "option `stripe_rows`: expected 1 or more, found 0"),
            (
                "row_index_stride",
                Value::Int(-1),
                "option `row_index_stride`: expected 0 to 2147483647, found -1",
            ),
            (
                "bloom_filter_fpp",
                Value::Float(1.0),
                "option `bloom_filter_fpp`: expected a number between 0 and 1, found 1.0",
            ),
            ("metadata", Value::from("a"), "option `metadata`: expected a mapping, found \"a\""),
        ] {
            assert_eq!(parse(&[(name, value)]).unwrap_err().to_string(), message);
        }
        let snappy = parse(&[("codec", Value::from("snappy")), ("compression_level", Value::Int(1))]);
        assert_eq!(snappy.unwrap_err().to_string(), "option `compression_level`: snappy has none, found 1");
    }
}
