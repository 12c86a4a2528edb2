//! Converts the bytes of a cell to a value and back, as Hive does: ColumnarSerDe (text),
//! LazyBinaryColumnarSerDe (binary).

mod bounds;
pub(crate) mod expansion;
pub(crate) mod lazy_binary;
pub(crate) mod text;

use arrow_buffer::{Buffer, OffsetBuffer};
pub use coldframe_core::options::TimestampUnit;
pub use coldframe_core::types::hive::HiveVersion;

coldframe_core::choices! {
    /// The SerDe that wrote the cells.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Serde {
        /// ColumnarSerDe
        Text = "text" | "ColumnarSerDe" | "org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe",
        /// LazyBinaryColumnarSerDe, Hive's default.
        #[default]
        Binary = "binary" | "LazyBinaryColumnarSerDe" | "org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe",
    }
}

/// The options of both SerDes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SerdeOptions {
    /// Table and SerDe properties under Hive's own names.
    pub properties: std::collections::BTreeMap<String, String>,
    /// `hive_version`
    pub hive_version: HiveVersion,
    /// `timezone`: the zone of the writing session; needed by LazyBinary timestamps of Hive 2.x (default UTC).
    pub timezone: Option<chrono_tz::Tz>,
    /// `timestamp_unit`
    pub timestamp_unit: TimestampUnit,
    /// The limits on nesting.
    pub limits: coldframe_encoding::Limits,
    /// Counts the values that decoding changes.
    pub changes: coldframe_core::Changes,
}

/// The cells of one column of one row group: cell `i` is `data[offsets[i]..offsets[i + 1]]`.
///
/// Both parts are shared buffers so that a decoder can pass them on as an Arrow array without a copy.
/// Invariant: the offsets do not decrease and the last is at most `data.len()`.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// The column's bytes, decompressed.
    pub data: Buffer,
    /// The offsets of the cells, and the end of the last cell.
    pub offsets: OffsetBuffer<i32>,
    /// A column removed by `TRUNCATE TABLE .. COLUMNS`: every cell is null, whatever its length.
    pub nulled: bool,
    /// The first cell's row in its row group, for errors.
    pub first_row: u64,
}

/// Converts the cells of a column to an array. A file has one decoder for each column.
///
/// `decode` returns an array of the data type that `HiveType::to_arrow(..)` gives, with one value for each
/// cell.
pub(crate) trait ColumnDecoder: Send + Sync {
    /// How many bytes the elements of nested cells may take, beyond the bytes of the cells. This number may
    /// be too high if the cells belong to several rows.
    fn element_bytes(&self, _cells: &Cells) -> u64 {
        0
    }

    /// One value per cell.
    fn decode(&self, cells: &Cells) -> coldframe_encoding::Result<arrow_array::ArrayRef>;
}

/// Converts the values of an array to cells, appended to `data`, and each cell's length to `lengths`.
pub(crate) trait ColumnEncoder: Send + Sync {
    /// Appends the cells of rows `start..end` of `array`.
    fn encode(
        &self,
        array: &dyn arrow_array::Array,
        rows: std::ops::Range<usize>,
        data: &mut Vec<u8>,
        lengths: &mut Vec<u32>,
    ) -> coldframe_encoding::Result<()>;
}
