//! Finds contradictions between fields that an RCFile stores twice.

use std::fmt::Arguments;

use coldframe_core::{Damage, DamageLog, Result};

use crate::layout::key::count_cells;
use crate::open::RawFile;
use crate::walk::WalkItem;

/// The fields that are stored twice with different values. No row is lost: readers use only one of the two.
pub(crate) fn contradictions(file: &RawFile) -> Result<Vec<Damage>> {
    let (damage, mut number) = (DamageLog::default(), 0u64);
    file.walk().each(|item| {
        if let WalkItem::Group(group) = item {
            let report = |what: Arguments<'_>, expected: i128, stored: i128| {
                if expected != stored {
                    damage.push(Damage {
                        bytes: group.header_offset..group.key_bytes.start,
                        rows_lost: Some(0),
                        structure: format!("row group {number}: {what}"),
                        reason: format!("expected {expected}, found {stored}"),
                    });
                }
            };
            let key_len = group.key.len as i128;
            report(format_args!("key length"), key_len, group.header.key_len.into());
            let record_len = key_len + i128::from(group.key.disk_len());
            report(format_args!("record length"), record_len, group.header.record_len.into());
            for (i, column) in group.key.columns.iter().enumerate() {
                if file.context.codec.is_none() {
                    let title = format_args!("column {i}: bytes decompressed");
                    report(title, column.disk_len.into(), column.data_len.into());
                }
                if column.lengths.is_empty() {
                    continue;
                }
                let cells = count_cells(&column.lengths).map_or(0, |(cells, _)| cells);
                report(format_args!("column {i}: cells"), group.key.rows.into(), cells.into());
            }
        }
        number += 1;
        Ok(())
    })?;
    Ok(damage.records())
}
