//! What a root directory contains besides what is requested: other tables, snapshots, versions, unflushed
//! cells.
//!
//! Lists folders and reads descriptors, but opens no store file. It leaves out what only a scan could count.

use std::sync::Arc;

use coldframe_core::io::Folder;
use coldframe_core::{Content, ErrorContext, OpenOptions, Result};

use crate::descriptor::Descriptor;
use crate::layout::names::TableName;
use crate::layout::policy::{self, Family};
use crate::layout::{messages, proto::TableSchema};
use crate::open::{Chosen, OpenTable};
use crate::options::{Options, View};
use crate::root::{Opened, Root, SNAPSHOT_INFO, SNAPSHOTS, join};

/// Lists the contents of a folder, and whether `options` select each of them.
pub(crate) fn contents(folder: &Arc<dyn Folder>, options: &OpenOptions) -> Result<Vec<Content>> {
    let options = Options::new(options)?;
    let opened = Opened::new(folder)?;
    let (_, chosen) = OpenTable::choose(&opened, &options)?;
    let mut all = match &opened {
        Opened::Root(root) => {
            let mut all = tables(root, &chosen)?;
            all.extend(snapshots(root, &root.snapshots()?, &chosen, &options)?);
            all.extend(unused_files(root)?);
            all
        }
        Opened::Table(_, name) => {
            let of = name.as_ref().map(ToString::to_string).unwrap_or_default();
            vec![Content::new("table", of, Some(matches!(chosen, Chosen::Table(_))))]
        }
        Opened::Snapshot(root, name) => snapshots(root, std::slice::from_ref(name), &chosen, &options)?,
    };
    let root = match &opened {
        Opened::Root(root) | Opened::Table(root, _) | Opened::Snapshot(root, _) => root,
    };
    match &chosen {
        Chosen::Table(requested) => {
            let Descriptor { table, schema, is_lost } =
                Descriptor::read(root, requested.as_ref(), &options.files.limits)?;
            // A table's folder alone does not state its name.
            let of =
                if all.iter().any(|c| c.of == table.to_string()) { table.to_string() } else { String::new() };
            all.extend(parts(&of, &schema, &options)?);
            if is_lost {
                let content = Content::new("descriptor", &of, Some(false));
                all.push(content.noted("it is missing: the settings of the families are unknown"));
            }
            all.push(edits(root, &of, &options)?);
            let regions = Content::new("regions", &of, None);
            all.push(
                regions.noted(
                    "regions that hbase:meta does not list are not read; reading counts their folders",
                ),
            );
        }
        Chosen::Snapshot(name) => {
            let (_, manifest) = OpenTable::manifest(root, name, &options.files.limits)?;
            all.extend(parts(name, &manifest.schema, &options)?);
        }
        Chosen::None(..) => {}
    }
    Ok(all)
}

fn tables(root: &Root, chosen: &Chosen) -> Result<Vec<Content>> {
    let taken = |table: &TableName| matches!(chosen, Chosen::Table(Some(requested)) if requested == table);
    let (mut all, mut own) = (Vec::new(), 0);
    for table in root.tables()? {
        if table.is_system() {
            own += 1;
            continue;
        }
        let content = Content::new("table", table.to_string(), Some(taken(&table))).named(table.shown());
        all.push(content.counted(root.regions(&table)?.len() as u64, "folders of regions"));
    }
    if own > 0 {
        let content = Content::new("system tables", "", Some(false)).counted(own, "tables").hidden();
        all.push(content.noted("HBase's own tables: regions, namespaces, rights, quotas"));
    }
    Ok(all)
}

fn snapshots(root: &Root, names: &[String], chosen: &Chosen, options: &Options) -> Result<Vec<Content>> {
    let content_of = |name: &String| {
        let taken = matches!(chosen, Chosen::Snapshot(requested) if requested == name);
        let content = Content::new("snapshot", name.as_str(), Some(taken));
        let path = join(&join(SNAPSHOTS, name), SNAPSHOT_INFO);
        let described = root.read(&path, &options.files.limits).and_then(|bytes| {
            messages::snapshot_description(&bytes, &options.files.limits)
                .within(|| format!("snapshot description {path}"))
        });
        Ok(match described {
            Ok(of) => {
                let table = of.table.unwrap_or_default();
                let table = String::from_utf8_lossy(&table);
                content.noted(format!("a snapshot of {table}: cells that the table may no longer have"))
            }
            Err(e) if e.is_confined() || e.is_not_found() => {
                content.noted(format!("its description cannot be read: {e}"))
            }
            Err(e) => return Err(e),
        })
    };
    names.iter().map(content_of).collect()
}

/// Files that no view shows: the archive, old and corrupt logs.
fn unused_files(root: &Root) -> Result<Vec<Content>> {
    let mut all = Vec::new();
    let mut regions = 0_u64;
    for namespace in root.list("archive/data")?.iter().filter(|e| e.is_folder) {
        for table in root.list(&namespace.path)?.iter().filter(|e| e.is_folder) {
            regions += root.list(&table.path)?.iter().filter(|e| e.is_folder).count() as u64;
        }
    }
    if regions > 0 {
        let note = "files that tables no longer use; snapshots and clones may need them";
        let content = Content::new("archive", "", Some(false)).counted(regions, "folders of regions");
        all.push(content.noted(note).hidden());
    }
    let old = "logs whose edits have all been flushed";
    let corrupt = "logs that HBase could not read and set aside";
    for (kind, folder, note) in [("old logs", "oldWALs", old), ("corrupt logs", "corrupt", corrupt)] {
        let listed = root.list(folder)?;
        let files: Vec<u64> = listed.iter().filter(|e| !e.is_folder).map(|e| e.len).collect();
        if !files.is_empty() {
            let bytes = files.iter().copied().fold(0, u64::saturating_add);
            let content = Content::new(kind, "", Some(false)).counted(files.len() as u64, "files");
            all.push(content.sized(bytes).noted(note).hidden());
        }
    }
    Ok(all)
}

/// Lists the contents of a table or a snapshot, and for each whether the view shows all of it.
fn parts(of: &str, schema: &TableSchema, options: &Options) -> Result<Vec<Content>> {
    let families = policy::families(schema)?;
    let is_read = |f: &&Family| options.families.as_ref().is_none_or(|only| only.contains(&f.name));
    let raw = options.view == View::Raw;
    let known = |holds: bool| holds.then_some(true);
    let mut all = Vec::new();

    let more: Vec<&Family> =
        families.iter().filter(is_read).filter(|f| f.versions > options.versions).collect();
    let whole = if raw { options.versions == u32::MAX } else { more.is_empty() };
    let keep = |f: &&Family| format!("family {:?} keeps {} versions", f.name, f.versions);
    let kept: Vec<String> = more.iter().map(keep).collect();
    let versions = Content::new("versions", of, known(whole));
    all.push(match whole {
        true => versions,
        false => versions.noted(format!(
            "{}; the newest {} are read, and reading counts the others",
            if kept.is_empty() { "columns may have several".to_owned() } else { kept.join(", ") },
            options.versions
        )),
    });

    let times = Content::new("times", of, known(options.time_range.is_none()));
    all.push(match options.time_range {
        None => times,
        Some((from, to)) => times.noted(format!(
            "only cells with timestamps from {from} to before {to} are read; reading counts the others"
        )),
    });

    let left: Vec<&str> = families.iter().filter(|f| !is_read(f)).map(|f| f.name.as_str()).collect();
    let content = Content::new("families", of, Some(left.is_empty()));
    all.push(match left.as_slice() {
        [] => content,
        names => {
            let note = format!("not read: {}", names.join(", "));
            content.counted(names.len() as u64, "families").noted(note)
        }
    });

    let pivot = options.view == View::Pivot;
    let columns = Content::new("columns", of, known(!pivot || options.wide.rest));
    all.push(match columns.taken {
        Some(_) => columns,
        None => columns.noted("cells of unnamed columns are left out; reading counts them"),
    });
    let timestamps = Content::new("timestamps", of, Some(!pivot));
    all.push(if pivot { timestamps.noted("a wide table has no timestamps") } else { timestamps });

    let deleted = Content::new("deleted", of, known(raw && options.versions == u32::MAX)).hidden();
    all.push(deleted.noted("deleted and expired cells, and delete markers: see view=\"raw\""));
    Ok(all)
}

/// The unflushed edits in the logs.
fn edits(root: &Root, of: &str, options: &Options) -> Result<Content> {
    let lacks = root.lacks_logs()?;
    // If the logs are missing, it is unknown whether reading gets all edits.
    let content = Content::new("edits", of, if options.wal { (!lacks).then_some(true) } else { Some(false) });
    if lacks {
        let note =
            "no server has a log; reading counts the regions that were not closed since they were opened";
        return Ok(content.noted(note));
    }
    let bytes = root.logs()?.iter().filter(|log| !log.path.ends_with(".meta")).map(|log| log.len).sum();
    let content = content.sized(bytes);
    Ok(match options.wal {
        true => content,
        false => content.noted("edits that were not flushed are left out"),
    })
}
