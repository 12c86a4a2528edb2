//! Writes the damage that was skipped because of `DROPMALFORMED`, as JSON lines in a folder:
//! `spark.read.json(..)` reads them as a table. The file of a split is named after the split, so a repeated
//! task replaces its file.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use coldframe::Result;
use coldframe::dataset::{FileDamage, Part, Split};
use coldframe::store::{Mode, Store};
use md5::{Digest, Md5};
use serde_json::json;

/// Writes the damage of a split. If there is none, deletes the file of an earlier run.
pub fn record(
    folder: &str,
    storage: &BTreeMap<String, String>,
    split: &Split,
    damage: &[FileDamage],
) -> Result<()> {
    let store = Store::new(OsStr::new(folder), storage)?;
    let name = format!("damage-{}.jsonl", identity(split));
    if damage.is_empty() {
        return match store.delete(&name) {
            Err(e) if !e.is_not_found() => Err(e),
            _ => Ok(()),
        };
    }
    let (start, stop) = match &split.part {
        Part::Cut(cut) => (cut.range.start, cut.range.end),
        Part::Share { .. } => (0, split.file_bytes().unwrap_or(0)),
    };
    let mut lines = String::new();
    for file_damage in damage {
        let lost = &file_damage.damage;
        let record = json!({
            "path": file_damage.path,
            "format": split.file.opening.format,
            "split_start": start,
            "split_stop": stop,
            "offset": lost.bytes.start,
            "length": lost.bytes.end.saturating_sub(lost.bytes.start),
            "rows_lost": lost.rows_lost,
            "structure": lost.structure,
            "reason": lost.reason,
        });
        lines.push_str(&record.to_string());
        lines.push('\n');
    }
    store.put(&name, lines.as_bytes(), &Mode::Over).map(drop)
}

fn identity(split: &Split) -> String {
    let digest = Md5::digest(format!("{}\0{:?}", split.file.path, split.part));
    digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}
