//! The values of a format's own options, by their types.

use std::collections::BTreeMap;

use coldframe_encoding::{Error, Result};

use crate::Value;

/// The text of an option; `None` where it is not given.
pub fn text<'a>(extra: &'a BTreeMap<String, Value>, name: &str) -> Result<Option<&'a str>> {
    match extra.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Str(s)) => Ok(Some(s)),
        Some(other) => Err(Error::invalid(format!("option `{name}`: expected a string, found {other:?}"))),
    }
}

/// The integer of an option; `None` where it is not given.
pub fn integer<T: TryFrom<i64>>(extra: &BTreeMap<String, Value>, name: &str) -> Result<Option<T>> {
    match extra.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Int(i)) => T::try_from(*i)
            .map(Some)
            .map_err(|_| Error::invalid(format!("option `{name}`: {i} is out of range"))),
        Some(other) => Err(Error::invalid(format!("option `{name}`: expected an integer, found {other:?}"))),
    }
}

/// A truth value; false where it is not given.
pub fn flag(extra: &BTreeMap<String, Value>, name: &str) -> Result<bool> {
    match extra.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(b)) => Ok(*b),
        Some(other) => {
            Err(Error::invalid(format!("option `{name}`: expected true or false, found {other:?}")))
        }
    }
}

/// Whether the second of two words was chosen; `None` if neither was.
pub fn choice(extra: &BTreeMap<String, Value>, name: &str, of: [&str; 2]) -> Result<Option<bool>> {
    let [first, second] = of;
    match text(extra, name)? {
        None => Ok(None),
        Some(chosen) if chosen == first => Ok(Some(false)),
        Some(chosen) if chosen == second => Ok(Some(true)),
        Some(other) => Err(Error::invalid(format!(
            "option `{name}`: expected \"{first}\" or \"{second}\", found {other:?}"
        ))),
    }
}
