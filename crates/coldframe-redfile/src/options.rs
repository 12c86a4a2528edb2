//! What the user may say of a file when it is opened.

use arrow_schema::SchemaRef;
use coldframe_core::options::{choice, flag, integer, text};
use coldframe_core::{Error, Limits, OpenOptions, OptionDoc, Result, SchemaSpec};

use crate::layout::dialect::Dialect;
use crate::schema::TypeOptions;

/// The options of `open`.
pub(crate) const OPEN_OPTIONS: &[OptionDoc] = &[
    OptionDoc {
        name: "dialect",
        help: "\"auto\" (default) tells it by the pages; \"redelm-a\" .. \"redelm-f\" or \"spec\" where they cannot",
    },
    OptionDoc {
        name: "byte_array",
        help: "\"binary\" or \"string\": what all byte arrays are; default string where the file calls them UTF8 and their first page is",
    },
    OptionDoc { name: "int96", help: "\"binary\" (default) or \"timestamp\": what 96-bit values are" },
    OptionDoc {
        name: "recover",
        help: "true reads a file without a whole footer at its end up to the last cumulative footer inside it; where there is none, by its pages and the `schema` given",
    },
    OptionDoc {
        name: "row_group_rows",
        help: "rows of each row group but the last, where `recover` cannot tell from the pages",
    },
];

/// The options, read.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The dialect; `None` is auto.
    pub(crate) dialect: Option<Dialect>,
    /// Types that the file leaves open.
    pub(crate) types: TypeOptions,
    /// Whether an earlier footer does.
    pub(crate) recover: bool,
    /// What the columns are, if no footer can say.
    pub(crate) schema: Option<SchemaRef>,
    /// Rows of each row group but the last, if no footer can say.
    pub(crate) row_group_rows: Option<u64>,
    /// Whether checksums are compared.
    pub(crate) verify: bool,
    /// Bounds.
    pub(crate) limits: Limits,
}

impl Options {
    /// From what the user said.
    pub(crate) fn new(options: &OpenOptions) -> Result<Self> {
        let extra = &options.extra;
        let dialect = match text(extra, "dialect")? {
            None => None,
            Some(name) if name.eq_ignore_ascii_case("auto") => None,
            Some(name) => Some(name.parse()?),
        };
        let types = TypeOptions {
            text: choice(extra, "byte_array", ["binary", "string"])?,
            int96_timestamp: choice(extra, "int96", ["binary", "timestamp"])?.unwrap_or(false),
        };
        let recover = flag(extra, "recover")?;
        let schema = match &options.schema {
            None => None,
            Some(_) if !recover => {
                return Err(Error::unsupported(
                    "a schema for Redfile, whose files hold their own, without the option `recover`",
                ));
            }
            Some(SchemaSpec::Arrow(schema)) => Some(schema.clone()),
            Some(SchemaSpec::Ddl(_)) => {
                return Err(Error::unsupported("a schema of Redfile as text; a pyarrow.Schema is one"));
            }
        };
        let row_group_rows = integer::<u64>(extra, "row_group_rows")?.filter(|n| *n > 0);
        Ok(Self {
            dialect,
            types,
            recover,
            schema,
            row_group_rows,
            verify: !options.skip_checksums,
            limits: options.limits,
        })
    }
}
