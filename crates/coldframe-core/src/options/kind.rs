//! The kinds of option values, as data.

use crate::Value;

/// A choice of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The documented text.
    pub name: &'static str,
    /// Other texts that select the same choice.
    pub aliases: &'static [&'static str],
}

impl Choice {
    fn is(&self, text: &str) -> bool {
        std::iter::once(&self.name).chain(self.aliases).any(|name| name.eq_ignore_ascii_case(text))
    }
}

/// The kind of an option's value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// An integer within bounds.
    Int {
        /// The smallest allowed value.
        least: i64,
        /// The largest allowed value.
        most: u64,
    },
    /// A number of bytes within bounds, also as text such as `64m`.
    Size {
        /// The smallest allowed value.
        least: u64,
        /// The largest allowed value.
        most: u64,
    },
    /// A number between two bounds, exclusive.
    Float {
        /// The lower bound.
        above: f64,
        /// The upper bound.
        below: f64,
    },
    /// Text.
    Text,
    /// Text or bytes.
    Bytes,
    /// One of the choices, in upper or lower case.
    Choice(&'static [Choice]),
    /// One of the choices, or another text that the help describes.
    OpenChoice(&'static [Choice]),
    /// Names: a list, or a text in which commas separate them.
    Names,
    /// Values by name.
    Map {
        /// Whether the values may be bytes.
        bytes: bool,
        /// Whether the values may be null.
        nulls: bool,
    },
    /// A point in time: text such as `2020-01-31T12:00:00`, or a number in the format's unit.
    Time,
    /// A range of time that includes its start and excludes its end.
    TimeRange,
    /// Columns and their types, in the DDL of the format's engine.
    Schema,
}

impl Kind {
    /// Any number of bytes.
    pub const SIZE: Self = Self::Size { least: 0, most: u64::MAX };
    /// A share: more than 0, less than 1.
    pub const SHARE: Self = Self::Float { above: 0.0, below: 1.0 };

    /// Integers from `least` on.
    pub const fn at_least(least: i64) -> Self {
        Self::Int { least, most: u64::MAX }
    }

    /// A number of bytes from `least` on.
    pub const fn size_of_at_least(least: u64) -> Self {
        Self::Size { least, most: u64::MAX }
    }

    /// The name of the kind in `formats()` in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Int { .. } => "int",
            Self::Size { .. } => "size",
            Self::Float { .. } => "float",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Choice(_) => "choice",
            Self::OpenChoice(_) => "open_choice",
            Self::Names => "names",
            Self::Map { .. } => "map",
            Self::Time => "time",
            Self::TimeRange => "time_range",
            Self::Schema => "schema",
        }
    }

    /// The choices that the kind lists.
    pub fn choices(self) -> &'static [Choice] {
        match self {
            Self::Choice(choices) | Self::OpenChoice(choices) => choices,
            _ => &[],
        }
    }

    /// Whether both kinds parse a text in the same way, so that it can be parsed before the option is known.
    pub fn parses_text_like(self, other: Self) -> bool {
        let as_it_is = |kind| {
            matches!(kind, Self::Text | Self::Choice(_) | Self::OpenChoice(_) | Self::Time | Self::Schema)
        };
        (as_it_is(self) && as_it_is(other)) || self.name() == other.name()
    }

    /// The value in normal form. The error is a text that says what was expected.
    pub(super) fn normal(self, value: &Value) -> Result<Value, String> {
        match (self, value) {
            (Self::Flag, Value::Bool(_))
            | (Self::Text | Self::Schema | Self::Bytes, Value::Str(_))
            | (Self::Bytes, Value::Bytes(_)) => Ok(value.clone()),
            (Self::Time, Value::Str(_) | Value::Int(_) | Value::UInt(_)) => Ok(value.clone()),
            (Self::Int { least, most }, _) => integer(value, least, most),
            (Self::Size { least, most }, _) => size(value, least, most),
            (Self::Float { above, below }, _) => float(value, above, below),
            (Self::Choice(choices) | Self::OpenChoice(choices), Value::Str(text)) => {
                match (choices.iter().find(|word| word.is(text)), self) {
                    (Some(word), _) => Ok(Value::from(word.name)),
                    (None, Self::OpenChoice(_)) => Ok(value.clone()),
                    (None, _) => Err(listed(choices)),
                }
            }
            (Self::Choice(choices), _) => Err(listed(choices)),
            (Self::Names, _) => names(value).ok_or_else(|| "names: a list, or text with commas".to_owned()),
            (Self::Map { bytes, nulls }, Value::Map(pairs)) => map(pairs, bytes, nulls),
            (Self::TimeRange, Value::List(ends)) if ends.len() == 2 => {
                ends.iter().map(|end| Self::Time.normal(end)).collect::<Result<_, _>>().map(Value::List)
            }
            _ => Err(self.expects().to_owned()),
        }
    }

    fn expects(self) -> &'static str {
        match self {
            Self::Flag => "true or false",
            Self::Int { .. } => "an integer",
            Self::Size { .. } => "a number of bytes such as 1000 or 64m",
            Self::Float { .. } => "a number",
            Self::Text | Self::Choice(_) | Self::OpenChoice(_) => "a string",
            Self::Bytes => "text or bytes",
            Self::Names => "a list of names",
            Self::Map { .. } => "a mapping",
            Self::Time => "a date and time, or a number",
            Self::TimeRange => "two times",
            Self::Schema => "columns and types such as \"id bigint, name string\"",
        }
    }
}

fn listed(choices: &[Choice]) -> String {
    let quoted: Vec<String> = choices.iter().map(|word| format!("{:?}", word.name)).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}

fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Int(i) => Some((*i).into()),
        Value::UInt(u) => Some((*u).into()),
        _ => None,
    }
}

fn integer(value: &Value, least: i64, most: u64) -> Result<Value, String> {
    let Some(given) = number(value) else { return Err(Kind::Int { least, most }.expects().to_owned()) };
    within(given, least.into(), most.into()).map(|()| value.clone())
}

fn within(value: i128, least: i128, most: i128) -> Result<(), String> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(match (least == i128::from(i64::MIN), most >= i128::from(i64::MAX)) {
        (false, true) => format!("{least} or more"),
        (true, false) => format!("at most {most}"),
        _ => format!("{least} to {most}"),
    })
}

fn size(value: &Value, least: u64, most: u64) -> Result<Value, String> {
    let parsed = match value {
        Value::Str(text) => super::text::size(text).map(Value::from),
        _ => Some(value.clone()),
    };
    let bytes = parsed.as_ref().and_then(number).ok_or_else(|| Kind::SIZE.expects().to_owned())?;
    within(bytes, least.into(), most.into())?;
    u64::try_from(bytes).map(Value::from).map_err(|_| Kind::SIZE.expects().to_owned())
}

fn float(value: &Value, above: f64, below: f64) -> Result<Value, String> {
    let number = match value {
        Value::Float(f) => Some(*f),
        Value::Int(i) => i32::try_from(*i).ok().map(f64::from),
        _ => None,
    };
    match number {
        Some(f) if f > above && f < below => Ok(Value::Float(f)),
        _ if above.is_finite() => Err(format!("a number between {above} and {below}")),
        _ => Err("a number".to_owned()),
    }
}

fn names(value: &Value) -> Option<Value> {
    let trimmed = |name: &str| Value::from(name.trim());
    match value {
        Value::Str(all) => {
            let all = all.split(',').filter(|name| !name.trim().is_empty());
            Some(Value::List(all.map(trimmed).collect()))
        }
        Value::List(all) => {
            let name = |item: &Value| match item {
                Value::Str(name) => Some(trimmed(name)),
                _ => None,
            };
            all.iter().map(name).collect::<Option<_>>().map(Value::List)
        }
        _ => None,
    }
}

fn map(pairs: &[(String, Value)], bytes: bool, nulls: bool) -> Result<Value, String> {
    let entry = |(key, value): &(String, Value)| match value {
        Value::Str(_) => Ok((key.clone(), value.clone())),
        Value::Bytes(_) if bytes => Ok((key.clone(), value.clone())),
        Value::Null if nulls => Ok((key.clone(), value.clone())),
        Value::Bool(b) => Ok((key.clone(), Value::from(b.to_string()))),
        Value::Int(i) => Ok((key.clone(), Value::from(i.to_string()))),
        _ => Err(format!("{} for `{key}`", if bytes { "text or bytes" } else { "a string" })),
    };
    pairs.iter().map(entry).collect::<Result<_, _>>().map(Value::Map)
}
