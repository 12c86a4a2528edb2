//! Options as text, from a command line or from Spark.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::Kind;
use crate::Value;

/// Parses a text as a value for an option of this kind. The error is a text that says what was expected.
pub(super) fn parse(kind: Kind, text: &str) -> Result<Value, String> {
    let trimmed = text.trim();
    Ok(match kind {
        Kind::Flag if trimmed.eq_ignore_ascii_case("true") => Value::Bool(true),
        Kind::Flag if trimmed.eq_ignore_ascii_case("false") => Value::Bool(false),
        Kind::Int { .. } => match (trimmed.parse::<i64>(), trimmed.parse::<u64>()) {
            (Ok(number), _) => Value::Int(number),
            (_, Ok(number)) => Value::UInt(number),
            _ => return Err("an integer".to_owned()),
        },
        Kind::Float { .. } => trimmed.parse().map(Value::Float).map_err(|_| "a number")?,
        Kind::Names if trimmed.starts_with('[') => json(trimmed, "a list of names")?,
        Kind::TimeRange => json(trimmed, "two times, such as [\"2020-01-01\", \"2020-02-01\"]")?,
        Kind::Map { .. } => json(trimmed, "a JSON object")?,
        _ => Value::from(text),
    })
}

fn json(text: &str, expected: &str) -> Result<Value, String> {
    let value: InOrder = serde_json::from_str(text).map_err(|e| format!("{expected} as JSON ({e})"))?;
    Ok(value.0)
}

/// A JSON value whose objects keep their order, because an option may list columns in order.
struct InOrder(Value);

impl<'de> Deserialize<'de> for InOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Plain).map(Self)
    }
}

struct Plain;

impl<'de> Visitor<'de> for Plain {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Int(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(Value::from(v))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Value::Float(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::from(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut of: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(InOrder(value)) = of.next_element()? {
            all.push(value);
        }
        Ok(Value::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut of: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some((key, InOrder(value))) = of.next_entry()? {
            all.push((key, value));
        }
        Ok(Value::Map(all))
    }
}

/// A number of bytes such as `1000`, `64m`, `1 GiB`.
pub fn size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text.strip_prefix(digits)?.trim() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}
