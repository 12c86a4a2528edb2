//! What the user may say of a file when it is opened.

use std::collections::BTreeMap;

use coldframe_core::options::{choice, integer};
use coldframe_core::{Error, Limits, OpenOptions, OptionDoc, Result, Value};

/// The options of `open`.
pub const OPEN_OPTIONS: [OptionDoc; 4] = [
    OptionDoc { name: "view", help: "\"cells\" (HBase) or \"kv\" (Hudi); default what the file says it is" },
    OptionDoc {
        name: "types",
        help: "\"code\" (default) or \"name\": whether a cell's type is a number or a word",
    },
    OptionDoc {
        name: "pivot",
        help: "{\"family:qualifier\": type}: one row per row key with the latest visible value of these columns; types are HBase's Bytes: binary, string, long, int, short, float, double, boolean",
    },
    OptionDoc { name: "block_cache_bytes", help: "decoded blocks that look-ups keep; default 256 MiB" },
];

/// How a file shows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Row, family, qualifier, timestamp, type, value, tags, sequence id.
    Cells,
    /// Key and value.
    KeyValue,
}

/// The options, read.
#[derive(Clone, Debug)]
pub struct Options {
    /// How the file is shown; `None` as it says.
    pub view: Option<View>,
    /// Whether types are words.
    pub type_names: bool,
    /// Columns of a wide table and what their values are.
    pub pivot: Vec<(String, String)>,
    /// Bytes of decoded blocks to keep.
    pub cache_bytes: u64,
    /// Whether checksums are compared.
    pub verify: bool,
    /// Master keys by alias.
    pub keys: BTreeMap<String, Vec<u8>>,
    /// Bounds.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            view: None,
            type_names: false,
            pivot: Vec::new(),
            cache_bytes: 256 << 20,
            verify: true,
            keys: BTreeMap::new(),
            limits: Limits::default(),
        }
    }
}

impl Options {
    /// From what the user said.
    pub fn new(options: &OpenOptions) -> Result<Self> {
        let extra = &options.extra;
        if options.schema.is_some() {
            return Err(Error::unsupported(
                "a schema for HFile, whose columns are fixed; `pivot` gives values their types",
            ));
        }
        let view = choice(extra, "view", ["cells", "kv"])?;
        let defaults = Self::default();
        Ok(Self {
            view: view.map(|second| if second { View::KeyValue } else { View::Cells }),
            type_names: choice(extra, "types", ["code", "name"])?.unwrap_or(false),
            pivot: pivot(extra)?,
            cache_bytes: integer(extra, "block_cache_bytes")?.unwrap_or(defaults.cache_bytes),
            verify: !options.skip_checksums,
            keys: options.keys.clone(),
            limits: options.limits,
        })
    }
}

/// The columns of `pivot` in the order given.
fn pivot(extra: &BTreeMap<String, Value>) -> Result<Vec<(String, String)>> {
    let wrong = |found: &Value| {
        Error::invalid(format!(
            "option `pivot`: expected {{\"family:qualifier\": \"type\"}}, found {found:?}"
        ))
    };
    match extra.get("pivot") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Map(pairs)) => {
            let column = |(name, of): &(String, Value)| match of {
                Value::Str(of) => Ok((name.clone(), of.clone())),
                other => Err(wrong(other)),
            };
            pairs.iter().map(column).collect()
        }
        Some(other) => Err(wrong(other)),
    }
}
