//! The retention settings of families, from their descriptors.

use coldframe_core::{Error, Result};
use coldframe_hfile::Policy;

use super::names::is_path_component;
use super::proto::{BytesPair, ColumnFamilySchema, TableSchema, TextPair};

/// The value of `TTL`, in seconds, that means that cells are kept forever.
const FOR_EVER: i64 = 2_147_483_647;

/// How it is determined which files of a family are current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracker {
    /// All files in the family's folder are current.
    Folder,
    /// The files that a list names are current.
    List,
}

/// A family.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// The name of the family and of its folder.
    pub(crate) name: String,
    /// The attribute `VERSIONS`: how many versions are kept.
    pub(crate) versions: u32,
    /// The attribute `MIN_VERSIONS`: how many versions are kept although they have expired.
    pub(crate) min_versions: u32,
    /// The attribute `TTL` in seconds; `None` means forever.
    pub(crate) ttl: Option<i64>,
    /// Whether the attribute `KEEP_DELETED_CELLS` is TRUE or TTL.
    pub(crate) keeps_deleted: bool,
    /// The attribute `NEW_VERSION_BEHAVIOR`.
    pub(crate) new_versions: bool,
    /// How it is determined which files are current.
    pub(crate) tracker: Tracker,
    /// All attributes in the family's descriptor.
    pub(crate) attributes: Vec<(String, String)>,
}

/// The families of a table, sorted by name.
pub(crate) fn families(schema: &TableSchema) -> Result<Vec<Family>> {
    let mut all: Vec<Family> =
        schema.column_families.iter().map(|family| Family::of(family, schema)).collect::<Result<_>>()?;
    all.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    Ok(all)
}

/// Attributes as text.
pub(crate) fn attributes(pairs: &[BytesPair]) -> impl Iterator<Item = (String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    pairs.iter().map(move |pair| (text(&pair.first), text(&pair.second)))
}

fn attribute<'a>(pairs: &'a [BytesPair], name: &str) -> Option<&'a [u8]> {
    let pair = pairs.iter().find(|pair| pair.first == name.as_bytes());
    pair.map(|pair| pair.second.as_slice())
}

fn setting<'a>(pairs: &'a [TextPair], name: &str) -> Option<&'a [u8]> {
    let pair = pairs.iter().find(|pair| pair.name == name.as_bytes());
    pair.map(|pair| pair.value.as_slice())
}

impl Family {
    fn of(family: &ColumnFamilySchema, table: &TableSchema) -> Result<Self> {
        let name = std::str::from_utf8(&family.name).ok().filter(|name| is_path_component(name));
        let name = name.ok_or_else(|| {
            Error::corrupt(format!("expected a family's name, found \"{}\"", family.name.escape_ascii()))
        })?;
        let number = |key: &str| number(attribute(&family.attributes, key), name, key);
        let is = |key: &str, values: &[&str]| {
            let value = attribute(&family.attributes, key).map(<[u8]>::to_ascii_uppercase);
            value.is_some_and(|value| values.iter().any(|v| v.as_bytes() == value))
        };
        let count = |n: i64| u32::try_from(n).unwrap_or(if n < 0 { 0 } else { u32::MAX });
        Ok(Self {
            name: name.to_owned(),
            versions: number("VERSIONS")?.map_or(1, count),
            min_versions: number("MIN_VERSIONS")?.map_or(0, count),
            ttl: number("TTL")?.filter(|seconds| (0..FOR_EVER).contains(seconds)),
            keeps_deleted: is("KEEP_DELETED_CELLS", &["TRUE", "TTL"]),
            new_versions: is("NEW_VERSION_BEHAVIOR", &["TRUE"]),
            tracker: tracker(family, table)?,
            attributes: attributes(&family.attributes).collect(),
        })
    }

    /// The retention policy for a scan at the time `now` that requests at most `requested` versions with
    /// timestamps in `time_range`.
    pub(crate) fn policy(&self, requested: u32, time_range: Option<(i64, i64)>, now: i64) -> Policy {
        Policy {
            versions: self.versions.min(requested),
            kept: self.versions,
            min_versions: self.min_versions,
            oldest: self.ttl.map_or(i64::MIN, |ttl| now.saturating_sub(ttl.saturating_mul(1000))),
            time_range,
            sees_past_markers: self.keeps_deleted,
        }
    }
}

/// A numeric attribute; `FOREVER` means [`FOR_EVER`].
fn number(value: Option<&[u8]>, family: &str, key: &str) -> Result<Option<i64>> {
    let Some(value) = value else { return Ok(None) };
    let text = std::str::from_utf8(value).unwrap_or_default().trim();
    if text.eq_ignore_ascii_case("forever") {
        return Ok(Some(FOR_EVER));
    }
    let wrong = || {
        let text = value.escape_ascii();
        Error::corrupt(format!("family {family:?}: expected a number as {key}, found \"{text}\""))
    };
    text.parse().map(Some).map_err(|_| wrong())
}

/// `hbase.store.file-tracker.impl`, taken from the most specific descriptor that sets it.
fn tracker(family: &ColumnFamilySchema, table: &TableSchema) -> Result<Tracker> {
    let value_of = |key: &str| {
        setting(&family.configuration, key)
            .or_else(|| attribute(&family.attributes, key))
            .or_else(|| setting(&table.configuration, key))
            .or_else(|| attribute(&table.attributes, key))
            .map(|value| value.to_ascii_uppercase())
    };
    let mut chosen = value_of("hbase.store.file-tracker.impl");
    if chosen.as_deref() == Some(b"MIGRATION") {
        // During a migration from one tracker to another, the old tracker is still valid.
        chosen = value_of("hbase.store.file-tracker.migration.src.impl");
    }
    match chosen.as_deref() {
        None | Some(b"DEFAULT") => Ok(Tracker::Folder),
        Some(b"FILE") => Ok(Tracker::List),
        Some(other) => {
            Err(Error::unsupported(format!("the store file tracker \"{}\"", other.escape_ascii())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(first: &str, second: &str) -> BytesPair {
        BytesPair { first: first.into(), second: second.into() }
    }

    fn family(attributes: Vec<BytesPair>) -> Result<Family> {
        let family = ColumnFamilySchema { name: b"f".to_vec(), attributes, configuration: Vec::new() };
        Family::of(&family, &TableSchema::default())
    }

    #[test]
    fn the_retention_of_a_family_follows_its_attributes() {
        let f = family(vec![pair("VERSIONS", "3"), pair("TTL", "86400"), pair("MIN_VERSIONS", "1")]).unwrap();
        let policy = f.policy(5, None, 100_000_000);
        assert_eq!((policy.versions, policy.min_versions, policy.oldest), (3, 1, 13_600_000));
        assert_eq!(f.policy(1, None, 0).versions, 1);
        let f = family(vec![pair("TTL", "2147483647"), pair("KEEP_DELETED_CELLS", "ttl")]).unwrap();
        let policy = f.policy(5, None, 100);
        assert_eq!((policy.versions, policy.oldest, policy.sees_past_markers), (1, i64::MIN, true));
        assert!(family(vec![pair("VERSIONS", "many")]).is_err());
    }

    #[test]
    fn the_most_specific_tracker_wins() {
        let table = TableSchema {
            attributes: vec![pair("hbase.store.file-tracker.impl", "FILE")],
            ..TableSchema::default()
        };
        let mut family = ColumnFamilySchema { name: b"f".to_vec(), ..ColumnFamilySchema::default() };
        assert_eq!(tracker(&family, &table).unwrap(), Tracker::List);
        let setting = |name: &str, value: &str| TextPair { name: name.into(), value: value.into() };
        family.configuration = vec![
            setting("hbase.store.file-tracker.impl", "MIGRATION"),
            setting("hbase.store.file-tracker.migration.src.impl", "DEFAULT"),
        ];
        assert_eq!(tracker(&family, &table).unwrap(), Tracker::Folder);
        family.configuration = vec![setting("hbase.store.file-tracker.impl", "com.example.Own")];
        assert!(tracker(&family, &table).is_err());
    }
}
