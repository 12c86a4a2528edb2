//! Options for opening a file.

use arrow_schema::SchemaRef;
use coldframe_core::options::Options as _;
use coldframe_core::{Error, Limits, Result, SchemaSpec};

use crate::layout::dialect::Dialect;
use crate::schema::TypeOptions;

coldframe_core::choices! {
    /// How the pages of a file are laid out.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum OpenDialect {
        /// Detected from the pages.
        #[default]
        Auto = "auto",
        /// Written on 5 and 6 February 2013.
        RedelmA = "redelm-a",
        /// Written on 8 February 2013.
        RedelmB = "redelm-b",
        /// Written on 8 February 2013.
        RedelmC = "redelm-c",
        /// Written on 8 February 2013.
        RedelmD = "redelm-d",
        /// Written from 11 to 19 February 2013.
        RedelmE = "redelm-e",
        /// Written on 19 and 20 February 2013.
        RedelmF = "redelm-f",
        /// As the README describes it.
        Spec = "spec",
    }
}

coldframe_core::choices! {
    /// The type of byte arrays.
    #[non_exhaustive]
    pub enum ByteArray {
        /// Bytes.
        Binary = "binary",
        /// Text.
        String = "string",
    }
}

coldframe_core::choices! {
    /// The type of 96-bit values.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Int96 {
        /// Bytes.
        #[default]
        Binary = "binary",
        /// Nanoseconds of the day, then the Julian day.
        Timestamp = "timestamp",
    }
}

coldframe_core::options! {
    /// How a Redfile is opened.
    pub struct OpenOptions for coldframe_core::OpenOptions {
        /// layout of the pages: "auto" detects it; "redelm-a" .. "redelm-f" or "spec" if it cannot be detected
        dialect: OpenDialect;
        /// type of all byte arrays; default: string if the file calls them UTF8 and their first page is valid UTF-8
        byte_array: Option<ByteArray>;
        /// type of 96-bit values
        int96: Int96;
        /// true reads a file that has lost its footer: up to the last cumulative footer inside it or, if there is none,
        /// from its pages and the given `schema`. Since nothing proves how many row groups there were, `on_error` must be
        /// "skip" or "null"
        recover: bool;
        /// for `recover`: rows of each row group but the last, if the pages do not show it
        row_group_rows: Option<u64>;
    }
}

/// The parsed options.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The dialect; `None` to detect it.
    pub(crate) dialect: Option<Dialect>,
    /// Types that the file does not determine.
    pub(crate) types: TypeOptions,
    /// Whether to use an earlier footer if the last is lost.
    pub(crate) recover: bool,
    /// The columns, if there is no footer that has them.
    pub(crate) schema: Option<SchemaRef>,
    /// Rows of each row group except the last, if there is no footer that states them.
    pub(crate) row_group_rows: Option<u64>,
    /// Whether checksums are compared.
    pub(crate) verify: bool,
    /// The limits on memory.
    pub(crate) limits: Limits,
}

impl Options {
    /// Parses the user's options.
    pub(crate) fn new(options: &coldframe_core::OpenOptions) -> Result<Self> {
        let OpenOptions { dialect, byte_array, int96, recover, row_group_rows } =
            OpenOptions::read("redfile", &options.extra)?;
        let dialect = if dialect == OpenDialect::Auto { None } else { Some(dialect.name().parse()?) };
        let types = TypeOptions {
            text: byte_array.map(|of| of == ByteArray::String),
            int96_timestamp: int96 == Int96::Timestamp,
        };
        let schema = match &options.schema {
            None => None,
            Some(_) if !recover => {
                return Err(Error::unsupported(
                    "a schema for Redfile without the option `recover`: the files hold their own",
                ));
            }
            Some(SchemaSpec::Arrow(schema)) => Some(schema.clone()),
            Some(SchemaSpec::Ddl(_)) => {
                return Err(Error::unsupported("a schema of Redfile as text: pass a pyarrow.Schema"));
            }
        };
        Ok(Self {
            dialect,
            types,
            recover,
            schema,
            row_group_rows: row_group_rows.filter(|n| *n > 0),
            verify: !options.skip_checksums,
            limits: options.limits,
        })
    }
}
