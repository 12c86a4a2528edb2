//! Metadata of logs, and statistics of rowsets.

use coldframe_core::{Error, Fault, Result, Value};

use crate::prune::rows::key_index;
use crate::rowset::{Reading, open_block, row_count};
use crate::tablet::{RowSet, Tablet};
use crate::wal::Summary;

/// Metadata of the logs of a table's tablets: what was recovered from them.
pub(crate) fn log_metadata(logs: &[Result<Summary>]) -> Vec<(String, Value)> {
    let read = || logs.iter().filter_map(|log| log.as_ref().ok());
    let sum = |of: &dyn Fn(&Summary) -> u64| Value::from(read().map(of).sum::<u64>());
    let mut pairs = vec![
        ("operations".to_owned(), sum(&|log| log.operations)),
        ("uncommitted_operations".to_owned(), sum(&|log| log.uncommitted)),
        ("rows".to_owned(), sum(&|log| log.rows)),
        ("changes".to_owned(), sum(&|log| log.changes)),
    ];
    let broken =
        read().flat_map(|log| &log.broken).map(|f| format!("{}: {}", f.damage.structure, f.damage.reason));
    let failed = logs.iter().filter_map(|log| log.as_ref().err()).map(ToString::to_string);
    let damage: Vec<Value> = broken.chain(failed).map(|text| Value::from(text.as_str())).collect();
    if !damage.is_empty() {
        pairs.push(("damage".to_owned(), Value::List(damage)));
    }
    pairs
}

/// Statistics of a rowset, without reading its rows: the number of rows, and the smallest and the largest encoded key.
/// A value that cannot be read is null, and `damaged` has the reason.
pub(crate) fn statistics(tablet: &Tablet, rowset: &RowSet, reading: &Reading) -> Result<Value> {
    let mut damaged = None;
    let mut note = |e: Error| {
        if !Fault::is(&e) {
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
        let value = index.as_ref().and_then(|i| i.file.footer().pair(name).map(<[u8]>::to_vec));
        pairs.push((name.to_owned(), value.map_or(Value::Null, Value::Bytes)));
    }
    pairs.extend(damaged.map(|e| ("damaged".to_owned(), Value::from(e.as_str()))));
    Ok(Value::Map(pairs))
}
