//! Names of the directories of a Hive ACID table, as Hive's `AcidUtils` parses them.
//!
//! ```text
//! base_W[_vT]                all rows up to the write W; T: the transaction of a compaction
//! delta_A_B[_S][_vT]         rows of the writes A to B; S: one statement of a transaction
//! delete_delta_A_B[_S][_vT]
//! ```

/// A delta, or a delete delta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delta {
    pub(crate) path: String,
    pub(crate) deletes: bool,
    pub(crate) min: i64,
    pub(crate) max: i64,
    /// The statement of the write; -1 if there is none.
    pub(crate) statement: i32,
    /// Whether a compaction of Hive 4 made it.
    pub(crate) compacted: bool,
}

/// Whether a directory has the name of a base or a delta.
pub(crate) fn is_part(path: &str) -> bool {
    parse_base(path).is_some() || parse_delta(path).is_some()
}

/// The last part of a path.
pub(crate) fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Parses digits only. Fails if the number exceeds the type.
pub(crate) fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Parses `base_W[_vT]` into W and T. A base of the very first compaction is `base_-9223372036854775808`.
pub(crate) fn parse_base(path: &str) -> Option<(i64, i64)> {
    let rest = name(path).strip_prefix("base_")?;
    let (write, visible) = visibility(rest)?;
    let write = if write == i64::MIN.to_string() { i64::MIN } else { number(write)? };
    Some((write, visible))
}

/// Divides `.._vT` into the name before it and T.
fn visibility(text: &str) -> Option<(&str, i64)> {
    match text.split_once("_v") {
        None => Some((text, 0)),
        Some((rest, visible)) => Some((rest, number(visible)?)),
    }
}

/// Parses the name of a delta.
pub(crate) fn parse_delta(path: &str) -> Option<Delta> {
    let name = name(path);
    let (deletes, rest) = match name.strip_prefix("delete_delta_") {
        Some(rest) => (true, rest),
        None => (false, name.strip_prefix("delta_")?),
    };
    let (rest, visible) = visibility(rest)?;
    let mut parts = rest.splitn(3, '_');
    let (min, max) = (number(parts.next()?)?, number(parts.next()?)?);
    let statement = parts.next().map_or(Some(-1), number)?;
    Some(Delta { path: path.to_owned(), deletes, min, max, statement, compacted: visible > 0 })
}
