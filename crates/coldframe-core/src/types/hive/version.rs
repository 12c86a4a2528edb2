//! The versions of Hive that read files differently.

use crate::options::{Choice, Field, Kind};
use crate::{Error, Result, Value};

/// The Hive version whose conversions, lenient parsing and calendar apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum HiveVersion {
    /// 0.8 .. 0.14
    V0_8,
    /// 1.x and 2.x
    V2_3,
    /// 3.x
    V3_1,
    /// 4.x
    #[default]
    V4_1,
}

impl Field for HiveVersion {
    const KIND: Kind = Kind::OpenChoice(&[
        Choice { name: "4.1", aliases: &[] },
        Choice { name: "3.1", aliases: &[] },
        Choice { name: "2.3", aliases: &[] },
        Choice { name: "0.8", aliases: &[] },
    ]);

    fn from_value(value: Value) -> Result<Self> {
        let version = String::from_value(value)?;
        let mut parts = version.split('.').map(|p| p.parse::<u32>().ok());
        match (parts.next().flatten(), parts.next().flatten()) {
            (Some(0), _) => Ok(Self::V0_8),
            (Some(1 | 2), _) => Ok(Self::V2_3),
            (Some(3), _) => Ok(Self::V3_1),
            (Some(4), _) => Ok(Self::V4_1),
            _ => Err(Error::invalid(format!(
                "expected a version of Hive such as \"2.3\" or \"4.1\", found {version:?}"
            ))),
        }
    }

    fn to_value(&self) -> Value {
        Value::from(match self {
            Self::V0_8 => "0.8",
            Self::V2_3 => "2.3",
            Self::V3_1 => "3.1",
            Self::V4_1 => "4.1",
        })
    }
}
