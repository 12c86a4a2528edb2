//! Defines the writer's options.

use coldframe_core::options::{Choice, Field, Kind};
use coldframe_core::{Error, Result, Value};
use coldframe_encoding::codec::Algorithm;
use coldframe_encoding::codec::hadoop::HadoopCodec;

use super::Settings;
use crate::hive_type::ddl;
use crate::layout::header::Magic;
use crate::options::TableOptions;

/// Compression of keys and columns.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Codec {
    /// No compression.
    #[default]
    None,
    /// Hadoop's codec for an algorithm.
    Of(Algorithm),
    /// The Hadoop codec class of this name.
    Class(String),
}

impl Codec {
    fn hadoop(&self) -> Result<Option<HadoopCodec>> {
        match self {
            Self::None | Self::Of(Algorithm::None) => Ok(None),
            Self::Of(algorithm) => HadoopCodec::from_algorithm(*algorithm).map(Some),
            Self::Class(name) => HadoopCodec::from_class_name(name).map(Some),
        }
    }
}

/// Hadoop's deflate codec: it writes zlib streams.
const DEFLATE: &str = "org.apache.hadoop.io.compress.DeflateCodec";

impl Field for Codec {
    const KIND: Kind = Kind::OpenChoice(&[
        Choice { name: "none", aliases: &["uncompressed"] },
        Choice { name: "zlib", aliases: &[] },
        Choice { name: "deflate", aliases: &[] },
        Choice { name: "gzip", aliases: &[] },
        Choice { name: "bzip2", aliases: &[] },
        Choice { name: "snappy", aliases: &[] },
        Choice { name: "lz4", aliases: &[] },
        Choice { name: "zstd", aliases: &[] },
        Choice { name: "lzo", aliases: &[] },
    ]);

    fn from_value(value: Value) -> Result<Self> {
        let name = String::from_value(value)?;
        if name.contains('.') {
            return Ok(Self::Class(name));
        }
        match name.to_ascii_lowercase().parse::<Algorithm>()? {
            Algorithm::None => Ok(Self::None),
            Algorithm::Deflate => Ok(Self::Class(DEFLATE.to_owned())),
            algorithm => Ok(Self::Of(algorithm)),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::None => Value::from("none"),
            Self::Of(algorithm) => Value::from(algorithm.to_string()),
            Self::Class(name) => Value::from(name.as_str()),
        }
    }
}

coldframe_core::choices! {
    /// The variant of a file's header.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Header {
        /// RCFile's own header.
        #[default]
        Rcf1 = "RCF1",
        /// A SequenceFile's, as Hive before 0.9 wrote it.
        Seq6 = "SEQ6",
    }
}

coldframe_core::options! {
    /// How an RCFile is written.
    pub struct WriteOptions for coldframe_core::WriteOptions {
        flatten table: TableOptions;
        /// Hive column types, if they differ from those that follow from the Arrow types: "id bigint, name varchar(20)"
        schema: Option<String>, as Kind::Schema;
        /// compression of keys and columns: one of these names (deflate is Hadoop's other name for zlib), or the class
        /// name of a Hadoop codec
        codec: Codec, alias "compression";
        /// compression level; default: the codec's own
        compression_level: Option<i32>;
        /// file version: "RCF1", or "SEQ6" (Hive before 0.9)
        header: Header;
        /// bytes of cells after which a row group ends
        row_group_bytes: usize = 4 << 20, as Kind::SIZE;
        /// maximum rows of a row group; default: no limit
        record_interval: Option<usize>, as Kind::at_least(1);
        /// more entries of the header's metadata
        metadata: Vec<(String, String)>;
        /// seed of the sync marker: makes the file reproducible
        sync_seed: Option<u64>;
    }
}

impl TryFrom<WriteOptions> for Settings {
    type Error = Error;

    fn try_from(given: WriteOptions) -> Result<Self> {
        let serde_options = given.table.serde_options()?;
        let types = match &given.schema {
            None => None,
            Some(columns) => {
                let columns = ddl::parse_columns(columns, &serde_options.limits)?;
                Some(columns.into_iter().map(|(_, of)| of).collect())
            }
        };
        let codec = given.codec.hadoop()?;
        if given.compression_level.is_some() && codec.is_none() {
            return Err(Error::invalid("option `compression_level` needs a `codec`"));
        }
        let default = Self::default();
        Ok(Self {
            serde: given.table.serde.unwrap_or(default.serde),
            serde_options,
            codec,
            compression_level: given.compression_level,
            header: match given.header {
                Header::Rcf1 => Magic::Rcf1,
                Header::Seq6 => Magic::Seq6,
            },
            row_group_bytes: given.row_group_bytes,
            record_interval: given.record_interval.unwrap_or(default.record_interval),
            metadata: given.metadata.into_iter().collect(),
            sync_seed: given.sync_seed,
            types,
        })
    }
}
