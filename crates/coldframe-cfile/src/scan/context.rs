//! The context that all readers of a column share.

use std::sync::Arc;

use arrow_schema::DataType;
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
