//! What the files of a rowset say of it.

use coldframe_core::{Result, Value};

use crate::prune::rows::key_index;
use crate::rowset::{Reading, open_block, row_count};
use crate::tablet::{RowSet, Tablet};

/// What the files say of a rowset without its rows: how many there are, and the least and the greatest encoded key.
pub(crate) fn statistics(tablet: &Tablet, rowset: &RowSet, reading: &Reading) -> Result<Value> {
    let index =
        key_index(tablet, rowset).map(|(id, _)| open_block(tablet, id, "key index", reading)).transpose()?;
    let pair = |name: &str| {
        let found = index.as_ref().and_then(|i| i.file.footer().pair(name).map(<[u8]>::to_vec));
        found.map_or(Value::Null, Value::Bytes)
    };
    Ok(Value::map([
        ("tablet", Value::from(tablet.id.as_str())),
        ("rowset", Value::from(rowset.id)),
        ("rows", Value::from(row_count(tablet, rowset, reading)?)),
        ("live_rows", Value::from(rowset.live_rows.filter(|_| tablet.counts_live_rows))),
        ("min_key", pair("min_key")),
        ("max_key", pair("max_key")),
    ]))
}
