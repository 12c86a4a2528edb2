//! Nested values for metadata, for the properties of a layout's nodes and for statistics.

/// A nested value. Maps keep their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer, whatever width it has in a file.
    Int(i64),
    /// An unsigned integer that is too large for `i64`.
    UInt(u64),
    /// A floating point number.
    Float(f64),
    /// Text.
    Str(String),
    /// Bytes that are not text.
    Bytes(Vec<u8>),
    /// Values in order.
    List(Vec<Value>),
    /// Named values in order.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// A map from pairs.
    pub fn map<K: Into<String>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::Map(pairs.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }

    /// Text if the bytes are UTF-8, the bytes otherwise.
    pub fn text_or_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(s) => Self::Str(s.to_owned()),
            Err(_) => Self::Bytes(bytes.to_vec()),
        }
    }

    /// The value under `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Map(pairs) => pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($type:ty => |$v:ident| $value:expr;)*) => {$(
        impl From<$type> for Value {
            fn from($v: $type) -> Self { $value }
        }
    )*};
}

from! {
    bool => |v| Value::Bool(v);
    i32 => |v| Value::Int(v.into());
    u32 => |v| Value::Int(v.into());
    i64 => |v| Value::Int(v);
    u64 => |v| i64::try_from(v).map_or(Value::UInt(v), Value::Int);
    usize => |v| Value::from(v as u64);
    f64 => |v| Value::Float(v);
    &str => |v| Value::Str(v.to_owned());
    String => |v| Value::Str(v);
    Vec<Value> => |v| Value::List(v);
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Self {
        v.map_or(Value::Null, Into::into)
    }
}
