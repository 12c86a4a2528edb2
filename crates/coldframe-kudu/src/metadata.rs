//! What the files of a rowset say of it.

use coldframe_core::{Error, Result, Value};

use crate::prune::rows::key_index;
use crate::rowset::{Reading, open_block, row_count};
use crate::tablet::{RowSet, Tablet};

/// What the files say of a rowset without its rows: how many there are, and the least and the greatest encoded key. What cannot
/// be read is not said, but that it cannot.
pub(crate) fn statistics(tablet: &Tablet, rowset: &RowSet, reading: &Reading) -> Result<Value> {
    let mut damaged = None;
    let mut note = |e: Error| {
        if !e.is_damage() {
            return Err(e);
        }
        damaged = Some(e.to_string());
        Ok(())
    };
    let mut pairs = vec![
        ("tablet".to_owned(), Value::from(tablet.id.as_str())),
        ("rowset".to_owned(), Value::from(rowset.id)),
    ];
    let rows = match row_count(tablet, rowset, reading) {
        Ok(rows) => Value::from(rows),
        Err(e) => note(e).map(|()| Value::Null)?,
    };
    pairs.push(("rows".to_owned(), rows));
    let live = rowset.live_rows.filter(|_| tablet.counts_live_rows);
    pairs.push(("live_rows".to_owned(), Value::from(live)));
    let open = |(id, _)| open_block(tablet, id, "key index", reading);
    let index = match key_index(tablet, rowset).map(open).transpose() {
        Ok(index) => index,
        Err(e) => note(e).map(|()| None)?,
    };
    for name in ["min_key", "max_key"] {
        let found = index.as_ref().and_then(|i| i.file.footer().pair(name).map(<[u8]>::to_vec));
        pairs.push((name.to_owned(), found.map_or(Value::Null, Value::Bytes)));
    }
    pairs.extend(damaged.map(|e| ("damaged".to_owned(), Value::from(e.as_str()))));
    Ok(Value::Map(pairs))
}
