//! Options for opening and for creating files: common options are fields, a format's own options are values
//! by name.

#![allow(rustdoc::invalid_html_tags, reason = "help texts name types of Hive, such as array<string>")]

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_encoding::{Limits, Result};

use crate::Value;
use crate::options::{Kind, Options as _, Strings};

/// The columns of a file that does not store them.
#[derive(Clone, Debug)]
pub enum SchemaSpec {
    /// An Arrow schema.
    Arrow(SchemaRef),
    /// A column list in the DDL of the format's engine: `id bigint, tags array<string>`.
    Ddl(String),
}

/// A source of keys for encrypted files, such as the client of a key server.
pub trait KeySource: Debug + Send + Sync {
    /// The key with this name; `None` if it does not exist or access is denied.
    fn key(&self, name: &str) -> Result<Option<Vec<u8>>>;
}

/// Options for opening a file of any format.
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// Names and types of the columns, if the file does not store them (RCFile), or to replace the stored
    /// names and types.
    pub schema: Option<SchemaSpec>,
    /// Whether to skip the comparison of stored checksums.
    pub skip_checksums: bool,
    /// Keys for encrypted files by name.
    pub keys: BTreeMap<String, Vec<u8>>,
    /// Supplies keys that are not in `keys`.
    pub key_source: Option<Arc<dyn KeySource>>,
    /// Bounds on what a file may make the reader allocate.
    pub limits: Limits,
    /// Maximum number of threads that a scan may use; `None` uses the caller's default.
    pub threads: Option<usize>,
    /// The layout of strings and binary values, unless a scan sets its own ([`crate::Scan::strings`]); `None`
    /// keeps the format's layout.
    pub strings: Option<Strings>,
    /// Whether timestamps have microseconds, unless an option sets their unit
    /// ([`super::Capabilities::unit_option`]). This is for consumers that support no finer unit.
    pub microseconds: bool,
    /// The zone in which timestamps without a zone are instants, unless an option sets it
    /// ([`super::Capabilities::zone_option`]). This is for consumers such as Spark, whose timestamps are
    /// instants.
    pub timestamps_in: Option<String>,
    /// The format's own options by name; an unknown one is an error.
    pub extra: BTreeMap<String, Value>,
}

crate::options! {
    /// Options of every format: the schema, the bounds of [`Limits`], the layout of strings, and the number
    /// of threads.
    pub struct CommonOptions for OpenOptions {
        /// names and types of the columns, if the file does not store them: "id bigint, tags array<string>",
        /// or an Arrow schema in Python and Rust
        schema: Option<String>, as Kind::Schema;
        /// largest size of a decompressed block
        max_block_bytes: u64 = Limits::default().max_block_bytes, as Kind::SIZE;
        /// largest number of columns
        max_columns: u64 = Limits::default().max_columns;
        /// deepest nesting of columns
        max_depth: u64 = Limits::default().max_depth;
        /// largest size of a header, footer, index or key
        max_metadata_bytes: u64 = Limits::default().max_metadata_bytes, as Kind::SIZE;
        /// largest number of rows in a row group, stripe or block; default: 2147483648, but 134217728 in RCFile,
        /// where rows of empty cells take no bytes
        max_unit_rows: Option<u64>;
        /// decoded bytes that one read may hold, on all threads together: batches are cut to fit, nothing is
        /// refused. Default: 1 GiB for each thread
        memory_limit: Option<u64>, as Kind::SIZE;
        /// "view" returns string and binary columns as Arrow's string_view and binary_view, as polars and
        /// DuckDB use them: a value is copied at most once, and keeps its decoded block in memory
        strings: Strings;
        /// most threads that one read may use; 1 uses only the caller's. Default: one for each processor
        threads: Option<u64>;
    }
}

impl fmt::Debug for OpenOptions {
    /// Shows the names of keys, never the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions")
            .field("schema", &self.schema)
            .field("skip_checksums", &self.skip_checksums)
            .field("keys", &self.keys.keys().collect::<Vec<_>>())
            .field("limits", &self.limits)
            .field("threads", &self.threads)
            .field("strings", &self.strings)
            .field("microseconds", &self.microseconds)
            .field("timestamps_in", &self.timestamps_in)
            .field("extra", &self.extra)
            .finish_non_exhaustive()
    }
}

impl OpenOptions {
    /// The key with this name, from `keys` or from the key source.
    pub fn key(&self, name: &str) -> Result<Option<Vec<u8>>> {
        match (self.keys.get(name), &self.key_source) {
            (Some(key), _) => Ok(Some(key.clone())),
            (None, Some(source)) => source.key(name),
            (None, None) => Ok(None),
        }
    }

    /// Moves the options of [`CommonOptions`] from `extra` to the fields of this struct.
    pub fn take_common(&mut self) -> Result<()> {
        let limits = self.limits;
        let current = CommonOptions {
            schema: None,
            max_block_bytes: limits.max_block_bytes,
            max_columns: limits.max_columns,
            max_depth: limits.max_depth,
            max_metadata_bytes: limits.max_metadata_bytes,
            max_unit_rows: limits.max_unit_rows,
            memory_limit: None,
            strings: self.strings.unwrap_or_default(),
            threads: self.threads.map(|threads| threads as u64),
        };
        let given = CommonOptions::from_given_or(&self.extra, current)?;
        self.extra.retain(|name, _| !CommonOptions::specs().iter().any(|spec| spec.has_name(name)));
        self.strings = Some(given.strings).filter(|strings| *strings != Strings::default());
        // 0 means the default.
        self.threads = given.threads.and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
        let sharing = self.threads.unwrap_or_else(crate::threads::all).max(1) as u64;
        self.limits = Limits {
            max_block_bytes: given.max_block_bytes,
            max_columns: given.max_columns,
            max_depth: given.max_depth,
            max_metadata_bytes: given.max_metadata_bytes,
            max_unit_rows: given.max_unit_rows,
            memory_limit: given.memory_limit.map_or(limits.memory_limit, |all| all / sharing),
        };
        if let Some(columns) = given.schema {
            self.schema = Some(SchemaSpec::Ddl(columns));
        }
        Ok(())
    }

    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a format's own options, given as its typed struct: `coldframe::hive::OpenOptions { .. }`.
    #[must_use]
    pub fn with(mut self, of_format: impl Into<Self>) -> Self {
        self.extra.extend(of_format.into().extra);
        self
    }

    /// Sets one of the format's own options by name.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(name.into(), value.into());
        self
    }

    /// Sets the names and types of the columns.
    #[must_use]
    pub fn schema(mut self, schema: SchemaRef) -> Self {
        self.schema = Some(SchemaSpec::Arrow(schema));
        self
    }

    /// Sets the names and types of the columns in the DDL of the format's engine: `id bigint, tags
    /// array<string>`.
    #[must_use]
    pub fn schema_ddl(mut self, columns: impl Into<String>) -> Self {
        self.schema = Some(SchemaSpec::Ddl(columns.into()));
        self
    }

    /// Sets whether stored checksums are compared.
    #[must_use]
    pub fn verify_checksums(mut self, verify: bool) -> Self {
        self.skip_checksums = !verify;
        self
    }

    /// Adds a key for encrypted files.
    #[must_use]
    pub fn with_key(mut self, name: impl Into<String>, key: impl Into<Vec<u8>>) -> Self {
        self.keys.insert(name.into(), key.into());
        self
    }

    /// Sets the maximum number of threads that a scan may use.
    #[must_use]
    pub fn threads(mut self, most: usize) -> Self {
        self.threads = Some(most);
        self
    }

    /// Sets the bounds on what a file may make the reader allocate.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// Options for writing a file. Every option belongs to its format.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Options by name; an unknown one is an error.
    pub extra: BTreeMap<String, Value>,
}

impl WriteOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a format's own options, given as its typed struct: `coldframe::hive::WriteOptions { .. }`.
    #[must_use]
    pub fn with(mut self, of_format: impl Into<Self>) -> Self {
        self.extra.extend(of_format.into().extra);
        self
    }

    /// Sets one option by name.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(name.into(), value.into());
        self
    }
}
