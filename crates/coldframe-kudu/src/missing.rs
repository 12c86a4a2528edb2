//! What a copy of a server's directories lacks: partitions without a tablet, logs, super blocks.
//!
//! ```text
//! partition start | hash bucket u32 .. | encoded key of the range |      as many buckets as the range's hash schema has
//!
//! consensus-meta/T, no tablet-meta/T    the super block of T is lost
//! tablet-meta/T, no wals/T              the log of T is lost, and with it the rows that were in memory
//! wals/T/wal-2: zeros or no bytes       so are the rows of the newest segment, or the server was killed as it created it
//! ```
//!
//! Another server may hold such a partition, so these losses are damage only if the user requires a complete
//! table.

use std::collections::{BTreeMap, BTreeSet};

use coldframe_cfile::prune::key::encode_cells;
use coldframe_core::io::Folder;
use coldframe_core::{Error, Fault, Result, Value};
use coldframe_encoding::Cursor;

use crate::layout::proto::{Partition, PartitionSchema, RangeWithHashes};
use crate::schema::TableSchema;
use crate::store::roots::{join, name_of};
use crate::tablet::{Server, Tablet, Unreadable};
use crate::wal::{is_set, value};

/// Maximum number of combinations of hash buckets to check, in all ranges together.
const MAX_BUCKETS: u64 = 1 << 16;
/// How many bytes at the start of a segment show whether it has a header.
const HEAD: u64 = 16;
/// `RANGE_LOWER_BOUND`: the only form of a lower bound in which Kudu stores a range.
const LOWER_BOUND: u8 = 6;

/// A partition without a tablet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Absent {
    /// The encoded start of the partition's range; empty for the first range.
    range: Vec<u8>,
    /// Empty if the rows of the range are not hashed.
    buckets: Vec<i32>,
}

impl Absent {
    /// Describes the partition for `metadata`.
    pub(crate) fn describe(&self) -> Value {
        Value::map([
            ("hash_buckets", Value::List(self.buckets.iter().map(|b| Value::from(*b)).collect())),
            ("range_key_start", Value::Bytes(self.range.clone())),
        ])
    }

    /// Describes the partition as a missing tablet, for a table that must be complete.
    pub(crate) fn to_unreadable(&self) -> Unreadable {
        let buckets: Vec<String> = self.buckets.iter().map(ToString::to_string).collect();
        let range = match self.range.as_slice() {
            [] if !buckets.is_empty() => String::new(),
            [] => " of the first range".to_owned(),
            range => format!(" of the range {}", hex(range)),
        };
        let bucket = if buckets.is_empty() {
            String::new()
        } else {
            format!(" of hash bucket {}", buckets.join(", "))
        };
        missing_tablet(
            format!("{bucket}{range}").trim_start(),
            "expected a tablet for each hash bucket, found none: another server may hold it",
        )
    }
}

/// A damage record of a tablet that is not here.
pub(crate) fn missing_tablet(tablet: &str, why: &str) -> Unreadable {
    let e = Error::corrupt(why.to_owned()).within(format!("tablet {tablet}"));
    Unreadable { tablet: tablet.to_owned(), fault: Fault::from_error(&e, 0..0, None) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The numbers of buckets of each hash, by the encoded start of the range.
type HashSchemas = BTreeMap<Vec<u8>, Vec<i32>>;

/// The partitions without a tablet. They are missing buckets of ranges that have other tablets here, and all
/// buckets of ranges with their own hash schemas, which the tablets name.
pub(crate) fn absent(tablets: &[&Tablet], known: &[&Partition]) -> Vec<Absent> {
    let newest = tablets.iter().max_by_key(|t| t.schema_version);
    let Some(default) = newest.and_then(|t| t.partition_schema.as_ref()) else { return Vec::new() };
    let mut own = HashSchemas::new();
    for tablet in tablets {
        let Some(schema) = &tablet.partition_schema else { continue };
        own.extend(schema.custom.iter().filter_map(|range| {
            // Rows are read without the bound: if a bound cannot be read, the only effect is that missing
            // tablets are not noticed.
            let start = range_start(range, schema, &tablet.schema).ok()??;
            Some((start, range.hash.iter().map(|h| h.buckets).collect()))
        }));
    }
    empty_buckets(&default.hash.iter().map(|h| h.buckets).collect::<Vec<_>>(), own, known)
}

/// The encoded start of a range; `None` if only some of its columns have a bound.
fn range_start(
    range: &RangeWithHashes,
    schema: &PartitionSchema,
    table: &TableSchema,
) -> Result<Option<Vec<u8>>> {
    let Some(bounds) = &range.bounds else { return Ok(None) };
    let mut cursor = Cursor::new(&bounds.rows, 0);
    let bytes = table.columns.len().div_ceil(8);
    let has_nullable = table.columns.iter().any(|c| c.nullable);
    while !cursor.is_empty() {
        let kind = cursor.u8()?;
        let given = cursor.take(bytes)?;
        let null = if has_nullable { cursor.take(bytes)? } else { &[] };
        let mut cells = BTreeMap::new();
        for (i, column) in table.columns.iter().enumerate() {
            if is_set(given, i) && !is_set(null, i) {
                cells.insert(column.id, (column.data_type, value(&mut cursor, &bounds.indirect, column)?));
            }
        }
        if kind != LOWER_BOUND {
            continue;
        }
        if cells.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let columns = schema.range.iter().flat_map(|r| &r.columns).map(|c| {
            let named = table.columns.iter().find(|k| Some(k.id) == c.id || Some(&k.name) == c.name.as_ref());
            named.and_then(|column| cells.get(&column.id).copied())
        });
        return Ok(columns.collect::<Option<Vec<_>>>().map(encode_cells));
    }
    Ok(None)
}

/// The combinations of buckets that have no tablet, in each range that has a tablet or a hash schema of its own.
fn empty_buckets(default: &[i32], own: HashSchemas, known: &[&Partition]) -> Vec<Absent> {
    let mut ranges: BTreeMap<Vec<u8>, BTreeSet<&[i32]>> =
        own.keys().map(|start| (start.clone(), BTreeSet::new())).collect();
    for partition in known {
        let start = partition.start.as_deref().unwrap_or_default();
        let range = start.get(4 * partition.hash_buckets.len()..).unwrap_or_default().to_vec();
        ranges.entry(range).or_default().insert(&partition.hash_buckets);
    }
    let mut empty = Vec::new();
    for (range, present) in ranges {
        let counts = own.get(&range).map_or(default, Vec::as_slice);
        let all = counts.iter().try_fold(1u64, |n, count| n.checked_mul(u64::try_from(*count).ok()?));
        let Some(all) = all.filter(|n| (1..=MAX_BUCKETS).contains(n)) else { continue };
        // A tablet with another number of buckets contradicts the schema, which then tells nothing.
        if present.len() as u64 >= all || present.iter().any(|buckets| buckets.len() != counts.len()) {
            continue;
        }
        if all.saturating_add(empty.len() as u64) > MAX_BUCKETS {
            break;
        }
        let mut buckets = vec![0; counts.len()];
        for _ in 0..all {
            if !present.contains(buckets.as_slice()) {
                empty.push(Absent { range: range.clone(), buckets: buckets.clone() });
            }
            for (bucket, count) in buckets.iter_mut().zip(counts).rev() {
                *bucket += 1;
                if *bucket < *count {
                    break;
                }
                *bucket = 0;
            }
        }
    }
    empty
}

/// The tablets of a server that left traces but have no super block: the tablets with consensus metadata or a
/// log. `described` are the tablets with a super block.
pub(crate) fn without_super_block(
    server: &Server,
    folder: &dyn Folder,
    described: &BTreeSet<String>,
) -> Result<BTreeSet<String>> {
    let mut lost = BTreeSet::new();
    let consensus = join(&server.dirs.metadata, "consensus-meta");
    let logs = server.dirs.wals.as_ref().map(|root| join(root, "wals"));
    for (path, of_folders) in [(Some(consensus), false), (logs, true)] {
        let Some(path) = path else { continue };
        let entries = match folder.list(&path) {
            Err(e) if e.is_not_found() => continue,
            entries => entries?,
        };
        let named = entries.iter().filter(|e| e.is_folder == of_folders).map(|e| name_of(&e.path));
        // Temporary files have a dot, and a log that is being replayed ends in `.recovery`.
        let ids = named.map(|name| name.strip_suffix(".recovery").unwrap_or(name));
        lost.extend(ids.filter(|id| is_tablet_id(id) && !described.contains(*id)).map(str::to_owned));
    }
    Ok(lost)
}

fn is_tablet_id(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether a tablet must have a log but has no log, or only empty files: a server writes to the log before
/// anything else, and keeps its newest segment. Only a tablet that was just created has no log.
pub(crate) fn lacks_log(tablet: &Tablet) -> bool {
    tablet.segments.bytes() == 0 && !tablet.is_new()
}

/// Whether the newest of several segments has no header. A server that is killed between the creation of a segment and its
/// first write leaves one, and so does a copy that lost the contents of the file.
pub(crate) fn lacks_end_of_log(tablet: &Tablet, folder: &dyn Folder) -> Result<bool> {
    let newest = tablet.segments.iter().next_back().filter(|_| tablet.segments.count() > 1);
    let Some((_, path, len)) = newest else { return Ok(false) };
    Ok(len == 0 || folder.open(path)?.read(0..len.min(HEAD))?.iter().all(|byte| *byte == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(buckets: &[i32], range: &[u8]) -> Partition {
        let prefix = buckets.iter().flat_map(|b| b.to_be_bytes());
        let start = prefix.chain(range.iter().copied()).collect();
        Partition { hash_buckets: buckets.to_vec(), start: Some(start), end: None }
    }

    #[test]
    fn each_range_has_the_buckets_of_its_own_hash_schema() {
        let own: HashSchemas = [(b"k".to_vec(), vec![3]), (b"p".to_vec(), Vec::new())].into();
        let all = [
            partition(&[0, 0], b""),
            partition(&[0, 1], b""),
            partition(&[0], b"k"),
            partition(&[1], b"k"),
            partition(&[2], b"k"),
            partition(&[], b"p"),
        ];
        let without = |gone: usize| {
            let some: Vec<&Partition> =
                all.iter().enumerate().filter(|(i, _)| *i != gone).map(|(_, p)| p).collect();
            empty_buckets(&[1, 2], own.clone(), &some)
        };
        assert!(without(all.len()).is_empty());
        let absent =
            |range: &[u8], buckets: &[i32]| vec![Absent { range: range.to_vec(), buckets: buckets.to_vec() }];
        assert_eq!(without(1), absent(b"", &[0, 1]));
        assert_eq!(without(3), absent(b"k", &[1]));
        // A range that is not hashed has one tablet.
        assert_eq!(without(5), absent(b"p", &[]));
    }

    #[test]
    fn a_schema_that_contradicts_the_tablets_tells_nothing() {
        let only = partition(&[0, 0], b"k");
        assert!(empty_buckets(&[4], HashSchemas::new(), &[&only]).is_empty());
        assert!(empty_buckets(&[i32::MAX, i32::MAX], HashSchemas::new(), &[&only]).is_empty());
        assert!(empty_buckets(&[-1, 2], HashSchemas::new(), &[&only]).is_empty());
    }
}
