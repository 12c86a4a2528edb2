//! What an RCFile says twice without agreeing.

use std::ops::Range;

use coldframe_core::{Damage, Result};

use crate::layout::key::count_cells;
use crate::open::RawFile;
use crate::walk::Met;

/// Most contradictions that are told one by one.
const MOST: usize = 10_000;

/// What the file says twice and differently. No row is lost by it: readers only use one of the two.
pub(crate) fn contradictions(file: &RawFile) -> Result<Vec<Damage>> {
    let (mut found, mut number, mut more) = (Vec::new(), 0u64, None::<(Range<u64>, u64)>);
    file.walk().each(|met| {
        if let Met::Group(group) = met {
            let bytes = group.header_offset..group.key_bytes.start;
            let mut report = |what: String, expected: i128, stated: i128| {
                if expected == stated {
                    return;
                }
                if found.len() >= MOST {
                    let (range, count) = more.get_or_insert((bytes.clone(), 0));
                    range.end = bytes.end;
                    *count += 1;
                } else {
                    found.push(Damage {
                        bytes: bytes.clone(),
                        rows_lost: Some(0),
                        structure: format!("row group {number}: {what}"),
                        reason: format!("expected {expected}, found {stated}"),
                    });
                }
            };
            let key_len = group.key.len as i128;
            report("key length".to_owned(), key_len, group.header.key_len.into());
            let record_len = key_len + i128::from(group.key.disk_len());
            report("record length".to_owned(), record_len, group.header.record_len.into());
            for (i, column) in group.key.columns.iter().enumerate().filter(|(_, c)| !c.lengths.is_empty()) {
                let cells = count_cells(&column.lengths).map_or(0, |(cells, _)| cells);
                report(format!("column {i}: cells"), group.key.rows.into(), cells.into());
            }
        }
        number += 1;
        Ok(())
    })?;
    if let Some((bytes, count)) = more {
        let (structure, reason) = ("row groups".to_owned(), format!("{count} further contradictions"));
        found.push(Damage { bytes, rows_lost: Some(0), structure, reason });
    }
    Ok(found)
}
