//! Phoenix's types.
//!
//! | Phoenix | Arrow |
//! |---|---|
//! | TINYINT, SMALLINT, INTEGER, BIGINT; UNSIGNED_.. INT, LONG (the non-negative values of the signed types) | int8 to int64 |
//! | FLOAT, DOUBLE, UNSIGNED_.. | float32, float64 |
//! | DECIMAL(p, s); DECIMAL | decimal128(p, s); text, as Java prints it |
//! | DATE, TIME, UNSIGNED_.. | timestamp of milliseconds: both have a date and a time |
//! | TIMESTAMP, UNSIGNED_.. | timestamp of microseconds |
//! | CHAR, VARCHAR; BINARY, VARBINARY; BOOLEAN | text; bytes; boolean |

use arrow_schema::{DataType, TimeUnit};

/// A type of Phoenix. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhoenixType {
    Integer {
        width: usize,
        signed: bool,
    },
    Floating {
        width: usize,
        signed: bool,
    },
    /// Precision and scale, if the type has them.
    Decimal(Option<(u8, i8)>),
    Boolean,
    /// A DATE or TIME.
    Date {
        signed: bool,
    },
    Timestamp {
        signed: bool,
    },
    Char(usize),
    Varchar,
    Binary(usize),
    Varbinary,
}

/// Maximum digits of a DECIMAL.
const MAX_DIGITS: u64 = 38;

impl PhoenixType {
    /// Parses the name of a type and the numbers in its parentheses. The error is a message.
    pub(crate) fn parse(name: &str, numbers: &[u64]) -> Result<Self, String> {
        let (signed, plain) = match name.strip_prefix("UNSIGNED_") {
            Some(plain) => (false, plain),
            None => (true, name),
        };
        let length = || match numbers {
            [length] if (1..=u64::from(u32::MAX >> 1)).contains(length) => {
                usize::try_from(*length).map_err(|e| e.to_string())
            }
            _ => Err(format!("expected {name}(length)")),
        };
        let of = match (plain, signed) {
            ("TINYINT", _) => Self::Integer { width: 1, signed },
            ("SMALLINT", _) => Self::Integer { width: 2, signed },
            ("INTEGER", true) | ("INT", false) => Self::Integer { width: 4, signed },
            ("BIGINT", true) | ("LONG", false) => Self::Integer { width: 8, signed },
            ("FLOAT", _) => Self::Floating { width: 4, signed },
            ("DOUBLE", _) => Self::Floating { width: 8, signed },
            ("DATE" | "TIME", _) => Self::Date { signed },
            ("TIMESTAMP", _) => Self::Timestamp { signed },
            ("BOOLEAN", true) => Self::Boolean,
            ("DECIMAL", true) => return decimal(numbers),
            ("VARBINARY", true) => Self::Varbinary,
            // The length of a VARCHAR is only an upper limit, so it is ignored.
            ("VARCHAR", true) => return Ok(Self::Varchar),
            ("CHAR", true) => return length().map(Self::Char),
            ("BINARY", true) => return length().map(Self::Binary),
            _ => return Err(format!("expected a type of Phoenix, found {name}")),
        };
        if numbers.is_empty() { Ok(of) } else { Err(format!("expected {name} without a length")) }
    }

    /// The number of bytes of a value, if it is the same for all values.
    pub(crate) fn width(self) -> Option<usize> {
        match self {
            Self::Integer { width, .. } | Self::Floating { width, .. } => Some(width),
            Self::Char(length) | Self::Binary(length) => Some(length),
            Self::Date { .. } => Some(8),
            Self::Timestamp { .. } => Some(12),
            Self::Boolean => Some(1),
            Self::Decimal(_) | Self::Varchar | Self::Varbinary => None,
        }
    }

    pub(crate) fn arrow(self) -> DataType {
        match self {
            Self::Integer { width: 1, .. } => DataType::Int8,
            Self::Integer { width: 2, .. } => DataType::Int16,
            Self::Integer { width: 4, .. } => DataType::Int32,
            Self::Integer { .. } => DataType::Int64,
            Self::Floating { width: 4, .. } => DataType::Float32,
            Self::Floating { .. } => DataType::Float64,
            Self::Decimal(Some((precision, scale))) => DataType::Decimal128(precision, scale),
            Self::Decimal(None) | Self::Char(_) | Self::Varchar => DataType::Utf8,
            Self::Boolean => DataType::Boolean,
            Self::Date { .. } => DataType::Timestamp(TimeUnit::Millisecond, None),
            Self::Timestamp { .. } => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Binary(_) | Self::Varbinary => DataType::Binary,
        }
    }
}

/// DECIMAL; DECIMAL(precision), which has no fraction; DECIMAL(precision, scale).
fn decimal(numbers: &[u64]) -> Result<PhoenixType, String> {
    let wrong = || {
        format!(
            "expected DECIMAL(precision up to {MAX_DIGITS}, scale up to the precision), found {numbers:?}"
        )
    };
    let (precision, scale) = match numbers {
        [] => return Ok(PhoenixType::Decimal(None)),
        [precision] => (*precision, 0),
        [precision, scale] => (*precision, *scale),
        _ => return Err(wrong()),
    };
    if !(1..=MAX_DIGITS).contains(&precision) || scale > precision {
        return Err(wrong());
    }
    let (precision, scale) = (u8::try_from(precision), i8::try_from(scale));
    Ok(PhoenixType::Decimal(Some((precision.map_err(|_| wrong())?, scale.map_err(|_| wrong())?))))
}
