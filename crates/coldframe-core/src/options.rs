//! The values of a format's own options, by their types.

use std::collections::BTreeMap;

use coldframe_encoding::{Error, Result};

use crate::Value;

/// The text of an option; `None` where it is not given.
pub fn text<'a>(extra: &'a BTreeMap<String, Value>, name: &str) -> Result<Option<&'a str>> {
    match extra.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Str(s)) => Ok(Some(s)),
        Some(other) => Err(unexpected(name, "a string", other)),
    }
}

/// The integer of an option; `None` where it is not given.
pub fn integer<T: TryFrom<i64>>(extra: &BTreeMap<String, Value>, name: &str) -> Result<Option<T>> {
    match extra.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Int(i)) => T::try_from(*i)
            .map(Some)
            .map_err(|_| Error::invalid(format!("option `{name}`: {i} is out of range"))),
        Some(other) => Err(unexpected(name, "an integer", other)),
    }
}

/// A truth value; false where it is not given.
pub fn flag(extra: &BTreeMap<String, Value>, name: &str) -> Result<bool> {
    Ok(boolean(extra, name)?.unwrap_or(false))
}

/// A truth value; `None` where it is not given.
pub fn boolean(extra: &BTreeMap<String, Value>, name: &str) -> Result<Option<bool>> {
    match extra.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(b)) => Ok(Some(*b)),
        Some(other) => Err(unexpected(name, "true or false", other)),
    }
}

/// The keys and values of a mapping, each value taken by `of`; none where it is not given.
pub fn pairs<T>(
    extra: &BTreeMap<String, Value>,
    name: &str,
    of: impl Fn(&Value) -> Result<T>,
) -> Result<Vec<(String, T)>> {
    let pairs = match extra.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Map(pairs)) => pairs,
        Some(other) => return Err(unexpected(name, "a mapping", other)),
    };
    let pairs = pairs.iter().map(|(key, value)| {
        let value =
            of(value).map_err(|e| Error::invalid(format!("option `{name}`, `{key}`: {}", e.reason())))?;
        Ok((key.clone(), value))
    });
    pairs.collect()
}

/// Text as UTF-8, or bytes: for [`pairs`].
pub fn text_or_bytes(value: &Value) -> Result<Vec<u8>> {
    match value {
        Value::Str(s) => Ok(s.clone().into_bytes()),
        Value::Bytes(b) => Ok(b.clone()),
        other => Err(Error::invalid(format!("expected text or bytes, found {other:?}"))),
    }
}

/// An option with a value that it cannot have.
#[cold]
pub fn unexpected(name: &str, expected: &str, found: impl std::fmt::Debug) -> Error {
    Error::invalid(format!("option `{name}`: expected {expected}, found {found:?}"))
}

/// Whether the second of two words was chosen; `None` if neither was.
pub fn choice(extra: &BTreeMap<String, Value>, name: &str, of: [&str; 2]) -> Result<Option<bool>> {
    let [first, second] = of;
    match text(extra, name)? {
        None => Ok(None),
        Some(chosen) if chosen == first => Ok(Some(false)),
        Some(chosen) if chosen == second => Ok(Some(true)),
        Some(other) => Err(unexpected(name, &format!("\"{first}\" or \"{second}\""), other)),
    }
}
