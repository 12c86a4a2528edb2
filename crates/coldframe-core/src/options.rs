//! The options of formats: an option is declared once, with its name, kind, default and help.
//!
//! A format declares its options as a struct ([`options!`](crate::options!)), and the choices of an option as
//! an enum ([`choices!`](crate::choices!)). The macros derive the typed struct that Rust callers fill in, a
//! reader of maps of [`Value`]s, and the [`OptionSpec`]s for Python, the command line, Spark and the
//! documentation.
//!
//! ```
//! use coldframe_core::options::{Kind, Options, OptionSpec};
//! use coldframe_core::{OpenOptions, Value};
//!
//! coldframe_core::choices! {
//!     /// Unit of timestamps.
//!     #[derive(Default)]
//!     pub enum Unit {
//!         /// Nanoseconds.
//!         #[default]
//!         Ns = "ns",
//!         /// Microseconds.
//!         Us = "us" | "micros",
//!     }
//! }
//!
//! coldframe_core::options! {
//!     /// How a file is opened.
//!     pub struct Open for OpenOptions {
//!         /// unit of timestamps
//!         unit: Unit;
//!         /// most rows of a batch
//!         rows: u32 = 1000, as Kind::at_least(1), alias "batch_rows";
//!     }
//! }
//!
//! let options = OpenOptions::from(Open { unit: Unit::Us, ..Open::default() });
//! assert_eq!(options.extra["unit"], Value::from("us"));
//! let read = Open::read("x", &options.extra)?;
//! assert_eq!((read.unit, read.rows), (Unit::Us, 1000));
//!
//! let bad = OpenOptions::new().option("unit", "days");
//! let error = Open::read("x", &bad.extra).unwrap_err();
//! assert_eq!(error.to_string(), r#"option `unit`: expected "ns" or "us", found "days""#);
//! # Ok::<(), coldframe_core::Error>(())
//! ```

mod declare;
mod field;
mod kind;
mod text;

use std::collections::BTreeMap;

use coldframe_encoding::{Error, ErrorKind, Result};

pub use self::field::{Bytes, Field, Strings, Time, TimestampUnit};
pub use self::kind::{Choice, Kind};
pub use self::text::size;
use crate::Value;

/// The declaration of an option.
#[derive(Clone, Debug)]
pub struct OptionSpec {
    /// The option's name, the same in Rust, in Python, on the command line and in Spark.
    pub name: &'static str,
    /// The kind of the option's value.
    pub kind: Kind,
    /// The value of the option if it is not given. `Null` if the default is no value of the kind: the help
    /// then describes the default.
    pub default: Value,
    /// What the option does, on one line.
    pub help: &'static str,
    /// Other names of the option.
    pub aliases: &'static [&'static str],
}

impl OptionSpec {
    /// Whether this is the name or an alias of the option.
    pub fn has_name(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// A value in normal form: choices by their documented name, sizes as numbers, names as a list.
    pub fn normal(&self, value: &Value) -> Result<Value> {
        self.kind.normal(value).map_err(|expected| unexpected(self.name, &expected, shown(value)))
    }

    /// Parses a text from a command line or from Spark, without checking that the option allows the value.
    pub fn of_text(&self, text: &str) -> Result<Value> {
        text::parse(self.kind, text)
            .map_err(|expected| unexpected(self.name, &expected, format_args!("{text:?}")))
    }

    /// Parses a text, and checks that the option allows the value.
    pub fn parse(&self, text: &str) -> Result<Value> {
        self.normal(&self.of_text(text)?)
    }

    fn read<T: Field>(&self, value: &Value) -> Result<T> {
        T::from_value(self.normal(value)?).map_err(|e| match e.kind() {
            ErrorKind::InvalidArgument(reason) => Error::invalid(format!("option `{}`: {reason}", self.name)),
            _ => e,
        })
    }
}

/// The options declared by a struct.
pub trait Options: Sized + Default {
    /// The declarations.
    fn specs() -> &'static [OptionSpec];

    /// Reads the options from `given`. Options that are not given have the values of `default`. Names that no
    /// option has are ignored.
    fn from_given_or(given: &BTreeMap<String, Value>, default: Self) -> Result<Self>;

    /// Adds the values that differ from the defaults to a map.
    fn put(&self, into: &mut BTreeMap<String, Value>);

    /// Reads the options from `given`. A name that no option has is an error; the error calls the format
    /// `format`.
    fn read(format: &str, given: &BTreeMap<String, Value>) -> Result<Self> {
        check_names(format, given, Self::specs())?;
        Self::from_given_or(given, Self::default())
    }
}

/// The value of an option; `default` if it is not given.
pub fn value_of<T: Field>(
    specs: &[OptionSpec],
    name: &str,
    given: &BTreeMap<String, Value>,
    default: T,
) -> Result<T> {
    let Some(spec) = specs.iter().find(|spec| spec.name == name) else { return Ok(default) };
    let names = std::iter::once(&spec.name).chain(spec.aliases);
    let mut values = names.filter_map(|name| given.get_key_value(*name)).filter(|(_, v)| **v != Value::Null);
    match (values.next(), values.next()) {
        (None, _) => Ok(default),
        (Some((_, value)), None) => spec.read(value),
        (Some((first, _)), Some((second, _))) => Err(Error::invalid(format!(
            "options `{first}` and `{second}` are the same option: expected one of them"
        ))),
    }
}

/// Fails if a name is not the name of an option; the error lists the options.
fn check_names(format: &str, given: &BTreeMap<String, Value>, known: &[OptionSpec]) -> Result<()> {
    match given.keys().find(|name| known.iter().all(|spec| !spec.has_name(name))) {
        None => Ok(()),
        Some(unknown) => {
            let names: Vec<&str> = known.iter().map(|spec| spec.name).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Err(Error::invalid(format!("{format} has no option `{unknown}`; it knows: {names}")))
        }
    }
}

/// The error for a value that an option does not allow.
#[cold]
pub fn unexpected(name: &str, expected: &str, actual: impl std::fmt::Display) -> Error {
    Error::invalid(format!("option `{name}`: expected {expected}, found {actual}"))
}

/// A value as errors print it.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::UInt(u) => u.to_string(),
        Value::Float(f) => format!("{f:?}"),
        Value::Str(s) => format!("{s:?}"),
        Value::Bytes(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
        Value::List(all) => format!("[{}]", all.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::Map(pairs) => {
            let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("{k:?}: {}", shown(v))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
