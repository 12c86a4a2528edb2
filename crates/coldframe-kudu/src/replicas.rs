//! Which of several replicas of a tablet is read, and which tablets of a table are not there.

use std::collections::{BTreeMap, BTreeSet};

use coldframe_core::{Damage, Error};

use crate::rowset::{Reading, newest_operation};
use crate::tablet::{Tablet, Unreadable};

/// Most combinations of hash buckets that are looked for.
const MOST_BUCKETS: u64 = 1 << 16;

/// Of each tablet the best replica, in order of tables and partitions. Where super blocks and Raft groups say nothing, the one with
/// the newest operation in its delta files is: each flushed row has one there, that of its insertion.
pub(crate) fn best_replicas(all: Vec<Tablet>, reading: &Reading) -> Vec<Tablet> {
    let mut replicas: BTreeMap<String, Vec<Tablet>> = BTreeMap::new();
    for tablet in all.into_iter().filter(Tablet::ready) {
        replicas.entry(tablet.id.clone()).or_default().push(tablet);
    }
    let mut best: Vec<Tablet> = Vec::with_capacity(replicas.len());
    for mut of_one in replicas.into_values() {
        let top = of_one.iter().map(Tablet::rank).max();
        of_one.retain(|t| Some(t.rank()) == top);
        if of_one.len() > 1 {
            // Of equal ones the first: the sort is stable.
            of_one.sort_by_cached_key(|t| std::cmp::Reverse((newest_operation(t, reading), t.term())));
        }
        best.extend(of_one.into_iter().next());
    }
    best.sort_by(|a, b| order(a).cmp(&order(b)));
    best
}

fn order(tablet: &Tablet) -> (&str, &str, &[u8], &[i32], &str) {
    let start = tablet.partition.start.as_deref().unwrap_or_default();
    (&tablet.table, &tablet.table_id, start, &tablet.partition.hash_buckets, &tablet.id)
}

/// Replicas whose data is not whole: id, table's id, why.
pub(crate) fn incomplete(all: &[Tablet]) -> Vec<(String, String, &'static str)> {
    let of = |t: &Tablet| t.incomplete().map(|why| (t.id.clone(), t.table_id.clone(), why));
    all.iter().filter_map(of).collect()
}

/// The tablets of a table of which no whole replica is there: those with one that is not whole, and buckets of hash
/// partitions without a tablet.
pub(crate) fn missing(tablets: &[Tablet], incomplete: &[(String, String, &'static str)]) -> Vec<Unreadable> {
    let Some(first) = tablets.first() else { return Vec::new() };
    let whole: BTreeSet<&str> = tablets.iter().map(|t| t.id.as_str()).collect();
    let mut seen = BTreeSet::new();
    let mut missing = Vec::new();
    for (id, table, found) in incomplete {
        if *table == first.table_id && !whole.contains(id.as_str()) && seen.insert(id) {
            missing.push(not_there(id, &format!("expected a replica whose data is whole, found {found}")));
        }
    }
    // Of those that are not whole the partition is not looked at: one tablet is not reported twice.
    for (range, buckets) in empty_buckets(tablets).into_iter().skip(missing.len()) {
        let buckets: Vec<String> = buckets.iter().map(ToString::to_string).collect();
        let range = if range.is_empty() { String::new() } else { format!(" of the range {}", hex(&range)) };
        let name = format!("of hash bucket {}{range}", buckets.join(", "));
        let why = "expected a tablet for each hash bucket, found none: another server may hold it";
        missing.push(not_there(&name, why));
    }
    missing
}

fn not_there(tablet: &str, why: &str) -> Unreadable {
    let e = Error::corrupt(why.to_owned()).within(format!("tablet {tablet}"));
    Unreadable { tablet: tablet.to_owned(), damage: Damage::from_error(&e, 0..0, None) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// For each range of the table that has a tablet: the combinations of buckets that have none.
fn empty_buckets(tablets: &[Tablet]) -> Vec<(Vec<u8>, Vec<i32>)> {
    let newest = tablets.iter().max_by_key(|t| t.schema_version);
    let Some(schema) = newest.and_then(|t| t.partition_schema.as_ref()) else { return Vec::new() };
    let counts: Vec<i32> = schema.hash.iter().map(|h| h.buckets).collect();
    let all = counts.iter().try_fold(1u64, |n, count| n.checked_mul(u64::try_from(*count).ok()?));
    let known = schema.custom.is_empty() && !counts.is_empty();
    let Some(all) = all.filter(|n| known && (1..=MOST_BUCKETS).contains(n)) else { return Vec::new() };
    let mut ranges: BTreeMap<Vec<u8>, BTreeSet<&[i32]>> = BTreeMap::new();
    for tablet in tablets {
        let (partition, hashed) = (&tablet.partition, 4 * counts.len());
        let start = partition.start.as_deref().unwrap_or_default();
        let range = start.get(hashed..).unwrap_or_default().to_vec();
        if partition.hash_buckets.len() != counts.len() {
            return Vec::new();
        }
        ranges.entry(range).or_default().insert(&partition.hash_buckets);
    }
    let mut empty = Vec::new();
    for (range, there) in ranges {
        if there.len() as u64 >= all {
            continue;
        }
        let mut buckets = vec![0; counts.len()];
        for _ in 0..all {
            if !there.contains(buckets.as_slice()) {
                empty.push((range.clone(), buckets.clone()));
            }
            for (bucket, count) in buckets.iter_mut().zip(&counts).rev() {
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
