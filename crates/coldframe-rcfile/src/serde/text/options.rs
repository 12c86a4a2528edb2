//! The table and SerDe properties that determine the text form, under Hive's own names.

use std::collections::BTreeMap;

use coldframe_encoding::{Error, Result};

use crate::hive_type::HiveType;
use crate::serde::{HiveVersion, SerdeOptions};

const EXTEND_NESTING: &str = "hive.serialization.extend.nesting.levels";
const EXTEND_ADDITIONAL_NESTING: &str = "hive.serialization.extend.additional.nesting.levels";

/// The properties of `LazySerDeParameters`, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextOptions {
    /// The separator of each level: 0 between the columns (unused in RCFile), 1 between the elements of a
    /// column, ...
    pub separators: Vec<u8>,
    /// `serialization.null.format`: the text of null.
    pub null_format: Vec<u8>,
    /// `escape.delim`, if set: the escape character.
    pub escape: Option<u8>,
    /// `serialization.escape.crlf`: CR and LF are written as `\r` and `\n`.
    pub escape_crlf: bool,
    /// `serialization.last.column.takes.rest`: the last field of a struct includes all further separators.
    pub last_takes_rest: bool,
    /// `hive.lazysimple.extended_boolean_literal`: `t`, `1`, `f`, `0` are booleans, too.
    pub extended_boolean: bool,
    /// `timestamp.formats`: patterns tried before Hive's own format.
    pub timestamp_formats: Vec<String>,
}

impl From<&SerdeOptions> for TextOptions {
    fn from(options: &SerdeOptions) -> Self {
        let properties = &options.properties;
        let get = |name: &str| properties.get(name).map(String::as_str);
        let is_true = |name: &str| get(name).is_some_and(|v| v.eq_ignore_ascii_case("true"));
        Self {
            separators: separators(properties, options.hive_version),
            null_format: get("serialization.null.format").unwrap_or("\\N").into(),
            escape: get("escape.delim").map(|v| delimiter(Some(v), b'\\')),
            escape_crlf: is_true("serialization.escape.crlf"),
            last_takes_rest: is_true("serialization.last.column.takes.rest"),
            extended_boolean: is_true("hive.lazysimple.extended_boolean_literal"),
            timestamp_formats: get("timestamp.formats").map(split_formats).unwrap_or_default(),
        }
    }
}

impl TextOptions {
    /// Whether there are enough separators for all levels of a column's type.
    pub(crate) fn check_nesting(&self, hive_type: &HiveType) -> Result<()> {
        let needed = separators_needed(hive_type);
        if needed < self.separators.len() {
            return Ok(());
        }
        let raise = if self.separators.len() < 24 { EXTEND_NESTING } else { EXTEND_ADDITIONAL_NESTING };
        Err(Error::unsupported(format!(
            "{hive_type} needs {needed} separators, text has {}; set the SerDe property `{raise}` if the table has it",
            self.separators.len() - 1
        )))
    }
}

/// Number of separators that a column of this type uses: one per level, two for a map.
fn separators_needed(hive_type: &HiveType) -> usize {
    match hive_type {
        HiveType::Array(element) => 1 + separators_needed(element),
        HiveType::Map(key, value) => 2 + separators_needed(key).max(separators_needed(value)),
        HiveType::Struct(fields) => 1 + fields.iter().map(|(_, t)| separators_needed(t)).max().unwrap_or(0),
        HiveType::Union(branches) => 1 + branches.iter().map(separators_needed).max().unwrap_or(0),
        _ => 0,
    }
}

fn separators(properties: &BTreeMap<String, String>, version: HiveVersion) -> Vec<u8> {
    let get = |names: &[&str]| names.iter().find_map(|name| properties.get(*name)).map(String::as_str);
    let is_true = |name: &str| get(&[name]).is_some_and(|v| v.eq_ignore_ascii_case("true"));
    // Hive 3 corrected the spelling of the property; each version writes its own, and tables move between
    // versions.
    let collection = if version <= HiveVersion::V2_3 {
        ["colelction.delim", "collection.delim"]
    } else {
        ["collection.delim", "colelction.delim"]
    };
    let named = [
        delimiter(get(&["field.delim", "serialization.format"]), 1),
        delimiter(get(&collection), 2),
        delimiter(get(&["mapkey.delim"]), 3),
    ];
    // Control characters that are unlikely in text (no tab, LF, FF, CR, ESC), then all non-ASCII bytes.
    let further = (4..=8).chain([11]).chain(14..=26).chain(28..=31).chain(128..=255);
    let levels = if is_true(EXTEND_ADDITIONAL_NESTING) {
        usize::MAX
    } else if is_true(EXTEND_NESTING) {
        24
    } else {
        8
    };
    named.into_iter().chain(further).take(levels).collect()
}

/// A delimiter as Hive reads it: a signed byte in decimal, else the (low byte of the) first character.
fn delimiter(value: Option<&str>, default: u8) -> u8 {
    let Some(value) = value.filter(|v| !v.is_empty()) else { return default };
    match value.parse::<i8>() {
        Ok(number) => number.to_ne_bytes()[0],
        Err(_) => value.encode_utf16().next().map_or(default, |unit| unit.to_le_bytes()[0]),
    }
}

/// A comma-separated list in which a backslash escapes commas and itself.
fn split_formats(list: &str) -> Vec<String> {
    let mut formats = vec![String::new()];
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next_if(|next| matches!(next, ',' | '\\')) } else { None };
        match (c, escaped) {
            (',', _) => formats.push(String::new()),
            (c, escaped) => formats.last_mut().into_iter().for_each(|f| f.push(escaped.unwrap_or(c))),
        }
    }
    formats.retain(|f| !f.is_empty());
    formats
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(version: HiveVersion, pairs: &[(&str, &str)]) -> TextOptions {
        let properties = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        TextOptions::from(&SerdeOptions { properties, hive_version: version, ..SerdeOptions::default() })
    }

    #[test]
    fn defaults_are_hives() {
        let o = options(HiveVersion::V4_1, &[]);
        assert_eq!(o.separators, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((o.null_format.as_slice(), o.escape), (b"\\N".as_slice(), None));
        assert_eq!(options(HiveVersion::V4_1, &[("serialization.format", "9")]).separators[0], 9);
    }

    #[test]
    fn a_delimiter_is_a_number_or_a_character() {
        let o = options(
            HiveVersion::V4_1,
            &[("field.delim", "|"), ("collection.delim", "44"), ("mapkey.delim", "-2"), ("escape.delim", "")],
        );
        assert_eq!(o.separators[..3], [b'|', b',', 254]);
        assert_eq!(o.escape, Some(b'\\'));
        assert_eq!(options(HiveVersion::V4_1, &[("field.delim", "200")]).separators[0], b'2');
    }

    #[test]
    fn the_misspelt_property_is_an_alias() {
        let both = [("colelction.delim", ";"), ("collection.delim", ",")];
        assert_eq!(options(HiveVersion::V2_3, &both).separators[1], b';');
        assert_eq!(options(HiveVersion::V4_1, &both).separators[1], b',');
        assert_eq!(options(HiveVersion::V4_1, &both[..1]).separators[1], b';');
    }

    #[test]
    fn levels_can_be_extended() {
        assert_eq!(options(HiveVersion::V4_1, &[(EXTEND_NESTING, "true")]).separators.len(), 24);
        let all = options(HiveVersion::V4_1, &[(EXTEND_ADDITIONAL_NESTING, "TRUE")]).separators;
        assert_eq!((all.len(), all.last()), (154, Some(&255)));
        let deep = (0..8).fold(HiveType::Int, |t, _| HiveType::Array(Box::new(t)));
        let e = options(HiveVersion::V4_1, &[]).check_nesting(&deep).unwrap_err().to_string();
        assert!(e.contains(EXTEND_NESTING), "{e}");
        assert!(options(HiveVersion::V4_1, &[(EXTEND_NESTING, "true")]).check_nesting(&deep).is_ok());
    }

    #[test]
    fn formats_are_split_at_commas_that_are_not_escaped() {
        let o = options(HiveVersion::V4_1, &[("timestamp.formats", r"yyyy\,MM,millis,,a\\b")]);
        assert_eq!(o.timestamp_formats, ["yyyy,MM", "millis", r"a\b"]);
    }
}
