//! The context that all readers of a column share.

use std::sync::Arc;

use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType};
use coldframe_core::ReadAt;

use crate::encoding::dict::Dictionary;
use crate::layout::block::BlockFormat;
use crate::layout::types::{Encoding, KuduType};

/// The context that all parts of a scan share.
#[derive(Debug)]
pub struct ColumnContext {
    /// The source of the bytes.
    pub source: Arc<dyn ReadAt>,
    /// How blocks are stored.
    pub format: BlockFormat,
    /// The values' type.
    pub data_type: KuduType,
    /// The values' encoding.
    pub encoding: Encoding,
    /// Whether blocks begin with a null bitmap.
    pub nullable: bool,
    /// The Arrow type in which values are returned.
    pub to: DataType,
    /// The dictionary, if values are code words.
    pub dictionary: Option<Arc<Dictionary>>,
}

impl ColumnContext {
    /// The least number that has too many digits, if the values are decimals.
    pub(super) fn decimal_limit(&self) -> Option<i128> {
        match self.to {
            DataType::Decimal128(precision, _) => 10i128.checked_pow(precision.into()),
            _ => None,
        }
    }

    /// The context with the limit for the maximum number of digits of a decimal.
    pub(super) fn widest(&self) -> Option<Self> {
        let DataType::Decimal128(_, scale) = self.to else { return None };
        let Self { source, format, data_type, encoding, nullable, dictionary, .. } = self;
        Some(Self {
            source: source.clone(),
            format: *format,
            data_type: *data_type,
            encoding: *encoding,
            nullable: *nullable,
            to: DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale),
            dictionary: dictionary.clone(),
        })
    }
}
