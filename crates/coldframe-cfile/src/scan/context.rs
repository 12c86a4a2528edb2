//! What all readers of a column have in common.

use std::sync::Arc;

use arrow_schema::DataType;
use coldframe_core::ReadAt;

use crate::encoding::dict::Dictionary;
use crate::layout::block::BlockFormat;
use crate::layout::types::{Encoding, KuduType};

/// What all parts of a scan have in common.
#[derive(Debug)]
pub struct ColumnContext {
    /// Where the bytes come from.
    pub source: Arc<dyn ReadAt>,
    /// How blocks are stored.
    pub format: BlockFormat,
    /// The values' type.
    pub data_type: KuduType,
    /// How they are encoded.
    pub encoding: Encoding,
    /// Whether blocks begin with a bitmap.
    pub nullable: bool,
    /// The Arrow type they come out as.
    pub to: DataType,
    /// What code words stand for.
    pub dictionary: Option<Arc<Dictionary>>,
}
