//! HFiles of HBase and of Hudi: sorted cells in blocks, an index of the blocks, and a trailer at the end.
//!
//! ```text
//! file, version 2 and 3
//!   scanned     | data block ... with leaf index blocks and bloom chunks between them |
//!   non-scanned | meta block ... | intermediate index block ... |
//!   on open     | root data index | root meta index | file info | bloom meta ... |
//!   trailer     | "TRABLK\"$" | offsets and counts | version |
//!
//! data block  | header 33 | cell ... | checksums |
//! cell        | key length i32 | value length i32 | key | value | [tags length u16 | tag ...] | [sequence id VLong] |
//! key         | row length u16 | row | family length u8 | family | qualifier | timestamp i64 | type u8 |
//! tag         | length u16 | type u8 | bytes |
//! ```
//!
//! Each module uses only modules above it in this table:
//!
//! | module | holds |
//! |---|---|
//! | `layout` | bytes to plain structs: trailer, file info, blocks, cells, the index |
//! | `open`, `cache` | an open file, without Arrow; a cache of blocks for look-ups |
//! | `recover` | walking from block to block without an index; opening without a trailer |
//! | `prune` | the index cursor, bloom filters |
//! | `scan` | reading the blocks of a split: their cells one by one, as Arrow, or as a wide table |
//! | `lookup` | cells by row and by ranges of rows |
//! | `table` | the file as a `TableFile`: [`HFile`] |
//! | `write`, `inspect`, `verify`, `describe` | the writer; the layout tree; structural checks; metadata |
//! | `lengths` | the lengths of keys, values and rows |
//! | `format`, `options` | the format as it is registered; the user's options |
//!
//! Tables of many HFiles have crates of their own, which open files with [`open`] and merge the cells of
//! their [`CellReader`]s.
//!
//! `docs/formats/hfile.md` describes the format as its writers produce it.

mod cache;
mod describe;
mod format;
mod inspect;
mod layout;
mod lengths;
mod lookup;
mod open;
mod options;
mod prune;
mod recover;
mod scan;
mod table;
mod verify;
mod write;

pub use format::HFileFormat;
pub use layout::cell::{Cell, CellLayout, CellSink, Coordinates, Tags, row_of};
pub use layout::codec::Codec as BlockCodec;
pub use layout::content::{BlockReader, Cells};
pub use layout::encoding::Plain;
pub use layout::file_info::{self, FileInfo};
pub use layout::index::BlockRef;
pub use layout::kinds;
pub use layout::order::RowOrder;
pub use layout::trailer::Trailer;
pub use lookup::rows::{RowQuery, RowScan, successor};
pub use open::RawFile;
pub use options::{CellTypes, OpenOptions, Options, View};
pub use prune::cursor::{Entry, IndexCursor};
pub use recover::open;
pub use scan::cells::CellReader;
pub use scan::columns::{Columns, schema_of};
pub use scan::parts::Room;
pub use scan::values::{BYTES_TYPES, Values, bytes_type};
pub use scan::visible::{Passed, Policy, Step, Visibility};
pub use table::HFile;
pub use write::{BloomKind, CellEncoding, Checksum, Codec, WriteOptions};
