//! What the directories of the servers contain besides the requested table: other tables and tablets, and
//! rows that exist only in logs.

use std::collections::BTreeMap;
use std::sync::Arc;

use coldframe_core::io::Folder;
use coldframe_core::{Content, OpenOptions, Result};

use crate::missing::lacks_log;
use crate::open::{ServerTablets, replicas};
use crate::options::Options;
use crate::replicas::{Replicas, by_tablet, incomplete, missing};
use crate::rowset::Reading;
use crate::tablet::Tablet;

/// Lists the contents of a folder, and whether `options` select each of them. Reads super blocks.
pub(crate) fn contents(
    folder: &Arc<dyn Folder>,
    path: &Arc<str>,
    options: &OpenOptions,
) -> Result<Vec<Content>> {
    let own = Options::new(&options.extra)?;
    let ServerTablets { all, unreadable, lost, .. } = replicas(folder, path, options)?;
    let reading = Reading { verify: !options.skip_checksums, limits: options.limits, snapshot: own.snapshot };
    let broken = incomplete(&all);
    let replicas = by_tablet(all, &reading);
    let mut tables: BTreeMap<&str, Vec<&Tablet>> = BTreeMap::new();
    for tablet in replicas.iter().filter_map(Replicas::best) {
        tables.entry(&tablet.table_id).or_default().push(tablet);
    }
    let is_requested = |id: &str, tablets: &[&Tablet]| {
        let by_tablet = own.tablet.as_ref().is_none_or(|id| tablets.iter().any(|t| t.id == *id));
        let by_name = |name: &String| id == name || tablets.iter().any(|t| t.table == *name);
        let named = own.table.as_ref().map_or(own.tablet.is_some() || tables.len() == 1, by_name);
        by_tablet && named
    };
    let mut contents = Vec::new();
    for (id, tablets) in &tables {
        let taken = is_requested(id, tablets);
        let newest = tablets.iter().max_by_key(|t| t.schema_version);
        let table = Content::new("table", *id, Some(taken)).counted(tablets.len() as u64, "tablets");
        contents.push(table.named(newest.map_or(*id, |t| t.table.as_str())));
        if taken {
            contents.extend(parts(id, tablets, &own));
            let absent = missing(tablets, &broken).1.len() as u64;
            if absent > 0 {
                let elsewhere = Content::new("partitions", *id, Some(false)).counted(absent, "hash buckets");
                contents
                    .push(elsewhere.noted("other servers may hold them; this directory does not").hidden());
            }
        }
    }
    if !unreadable.is_empty() {
        let damaged =
            Content::new("damaged tablets", "", Some(false)).counted(unreadable.len() as u64, "tablets");
        contents.push(damaged.noted("their super blocks cannot be read, so their tables are unknown"));
    }
    if !lost.is_empty() {
        let named: Vec<&str> = lost.iter().map(String::as_str).collect();
        let content = Content::new("lost tablets", "", Some(false)).counted(lost.len() as u64, "tablets");
        contents.push(content.noted(format!("they have no super block: {}", named.join(", "))));
    }
    Ok(contents)
}

/// Lists the contents of a table, each with whether the options select all of it.
fn parts(id: &str, tablets: &[&Tablet], own: &Options) -> [Content; 3] {
    let others = tablets.iter().filter(|t| own.tablet.as_ref().is_some_and(|id| *id != t.id)).count();
    let left = Content::new("tablets", id, Some(others == 0));
    let left = match others {
        0 => left,
        _ => left.counted(others as u64, "tablets").noted("only one tablet is read"),
    };
    let times = Content::new("times", id, Some(own.snapshot.is_none()));
    let times = match own.snapshot {
        None => times,
        Some(_) => times.noted("changes after the snapshot's time are left out"),
    };
    let bytes: u64 = tablets.iter().map(|t| t.segments.bytes()).sum();
    let none = tablets.iter().all(|t| t.segments.count() == 0);
    let lacking = tablets.iter().filter(|t| lacks_log(t)).count() as u64;
    let edits = Content::new("edits", id, Some(lacking == 0 && (own.wal || none))).sized(bytes);
    let edits = match (edits.taken, lacking) {
        (Some(false), 0) => edits.noted("rows that were not flushed are left out"),
        (Some(false), _) => edits
            .counted(lacking, "tablets")
            .noted("their logs are missing, with the rows that were not flushed"),
        _ => edits,
    };
    [left, times, edits]
}
