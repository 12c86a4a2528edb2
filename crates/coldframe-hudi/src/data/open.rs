//! Opens a table: reads its properties, its timeline and the names of its files, and no rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use coldframe_core::io::Folder;
use coldframe_core::{Error, ErrorContext, Limits, Result};
use serde_json::Value as Json;

use crate::data::archive;
use crate::data::base::Base;
use crate::data::bootstrap::{self, Sources};
use crate::data::files::{self, Groups, Slice};
use crate::data::history::History;
use crate::data::keys::Keys;
use crate::data::missing;
use crate::data::options::{HudiReader, OpenOptions};
use crate::data::partition;
use crate::data::properties::Properties;
use crate::data::rules::{Reading, Rules};
use crate::data::table_schema::Columns;
use crate::data::timeline::{Instant, Timeline};
use crate::data::view::{Commits, Shown, Visible};
use crate::log;
use crate::slice::{FileName, parse_name};

/// The last table version that is known.
const LAST_VERSION: u32 = 9;
/// The first table version of Hudi 1.x.
const FIRST_NEW: u32 = 8;

/// The properties, timeline and files of an open table.
#[derive(Debug)]
pub(crate) struct Opened {
    pub properties: Properties,
    pub timeline: Timeline,
    pub shown: Shown,
    pub slices: Vec<Arc<Slice>>,
    pub columns: Columns,
    pub rules: Rules,
    pub reading: Reading,
    pub keys: Keys,
    pub history: Arc<History>,
    /// The files of a bootstrap's source.
    pub sources: Sources,
    /// What seems to be missing, without proof that it existed.
    pub lacking: Vec<String>,
}

/// Opens the table in `folder`.
pub(crate) fn open(
    folder: &Arc<dyn Folder>,
    given: &OpenOptions,
    options: &coldframe_core::OpenOptions,
) -> Result<Opened> {
    let limits = options.limits;
    let properties = Properties::read(folder.as_ref(), &limits)?
        .ok_or_else(|| Error::not_found("`.hoodie/hoodie.properties` of a Hudi table"))?;
    check_version(&properties)?;
    let shown = given.shown()?;
    let mut timeline = Timeline::read(folder.as_ref(), &properties, &limits).within(|| "timeline")?;
    let groups = files::groups(folder.as_ref())?;
    if timeline.by_completion && groups.values().any(|group| group.needs_archive(&timeline)) {
        let archived = archive::completions(folder.as_ref(), &properties, &limits);
        timeline.set_archived(archived.within(|| "archived timeline")?);
    }
    let visible = Visible::new(&timeline, &shown);
    let (commits, unrecorded) = visible.commits(folder.as_ref(), &limits)?;
    let slices = slices(&groups, &timeline, &visible, &commits)?;
    check_cleaned(folder.as_ref(), (&properties, &timeline, &shown), &slices, &limits)?;
    let reading = match (given.hudi_reader, is_new(&properties)) {
        (HudiReader::New, _) | (_, true) => Reading::New,
        _ => Reading::Old,
    };
    let mut lacking = missing::lacking(folder.as_ref(), &groups, &visible, &unrecorded)?;
    lacking.extend(
        properties.is_cut().then(|| "its `hoodie.properties` ends in the middle of a line".to_owned()),
    );
    lacking.extend(hidden_dates(&properties, &shown, &slices, reading));
    let merges = !matches!(shown, Shown::ReadOptimized { .. }) && slices.iter().any(|s| !s.logs.is_empty());
    // A table that is read without logs merges nothing, whatever its rules are.
    let (rules, keys) = match merges {
        true => (Rules::new(&properties, reading)?, Keys::new(&properties)?),
        false => (Rules::none(), Keys::Stored),
    };
    let columns = columns(folder.as_ref(), &properties, &commits, &slices, options)?;
    let columns = with_partitions(columns, &properties)?;
    let history = history(folder.as_ref(), &timeline, &commits, &limits)?;
    let files = coldframe_core::OpenOptions { extra: Default::default(), ..options.clone() };
    let sources = match slices
        .iter()
        .filter_map(|slice| slice.base.as_ref())
        .any(|b| b.instant == bootstrap::INSTANT)
    {
        true => bootstrap::sources(folder.as_ref(), &coldframe_hfile::Options::new(&files)?)?,
        false => Sources::new(),
    };
    let slices = slices.into_iter().map(Arc::new).collect();
    let history = Arc::new(history);
    Ok(Opened {
        properties,
        timeline,
        shown,
        slices,
        columns,
        rules,
        reading,
        keys,
        history,
        sources,
        lacking,
    })
}

/// The dates that Hudi hides by nulls, if there are any.
fn hidden_dates(
    properties: &Properties,
    shown: &Shown,
    slices: &[Slice],
    reading: Reading,
) -> Option<String> {
    let lost = partition::lost_by_merging(properties, reading);
    let count = slices.iter().filter(|slice| slice.has_logs).count();
    let is_hidden = !lost.is_empty() && count > 0 && !matches!(shown, Shown::ReadOptimized { .. });
    is_hidden.then(|| {
        format!(
            "{} is null in {count} of its file groups, as in Hudi's reader, which loses this column where a payload class \
             merges logs. The files have the values",
            lost.join(", ")
        )
    })
}

fn check_version(properties: &Properties) -> Result<()> {
    let version = properties.number("hoodie.table.version").unwrap_or(0);
    if version > LAST_VERSION {
        return Err(Error::unsupported(format!("version {version} of Hudi's tables")));
    }
    match properties.get("hoodie.table.base.file.format").unwrap_or("PARQUET") {
        "PARQUET" | "ORC" | "HFILE" => Ok(()),
        other => Err(Error::unsupported(format!("base files of the format {other} in a Hudi table"))),
    }
}

/// Whether Hudi 1.x made the table or has written its properties: only it knows these.
fn is_new(properties: &Properties) -> bool {
    let keys = [
        "hoodie.record.merge.mode",
        "hoodie.record.merge.strategy.id",
        "hoodie.table.initial.version",
        "hoodie.table.ordering.fields",
        "hoodie.timeline.history.path",
    ];
    properties.number("hoodie.table.version").unwrap_or(0) >= FIRST_NEW || properties.first(&keys).is_some()
}

/// A state is shown only if none of its files was cleaned. Hudi 0.9 also shows states whose files are gone.
fn check_cleaned(
    folder: &dyn Folder,
    (properties, timeline, shown): (&Properties, &Timeline, &Shown),
    slices: &[Slice],
    limits: &Limits,
) -> Result<()> {
    let (Shown::Snapshot { as_of: Some(as_of) } | Shown::ReadOptimized { as_of: Some(as_of) }) = shown else {
        return Ok(());
    };
    let cleans = timeline.of(&["clean"]);
    let Some(last) = cleans.last() else { return Ok(()) };
    let json = timeline.content(folder, last, limits)?;
    let kept = json.as_ref().and_then(|json| json.get("earliestCommitToRetain")?.as_str());
    let first = timeline.commits().next().map(|i| i.time.as_str());
    let Some(kept) = kept.filter(|kept| !kept.is_empty()).or(first).filter(|kept| as_of.as_str() < *kept)
    else {
        return Ok(());
    };
    let version = properties.number("hoodie.table.version").unwrap_or(0);
    let is_shown = version <= 2 && first.is_some_and(|first| as_of.as_str() >= first);
    if is_shown && !any_cleaned(folder, timeline, &cleans, (slices, as_of), limits)? {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the state as of {as_of}, files of which were cleaned: the first state that was kept is {kept}"
    )))
}

/// Whether a file that the state needs was cleaned. Files older than the base file of their group are not needed.
fn any_cleaned(
    folder: &dyn Folder,
    timeline: &Timeline,
    cleans: &[Instant],
    (slices, as_of): (&[Slice], &str),
    limits: &Limits,
) -> Result<bool> {
    let bases: HashMap<&str, &str> = slices
        .iter()
        .filter_map(|slice| Some((slice.file_id.as_str(), slice.base.as_ref()?.instant.as_str())))
        .collect();
    for clean in cleans {
        let json = timeline.content(folder, clean, limits)?.unwrap_or(Json::Null);
        let partitions = json.get("partitionMetadata").and_then(Json::as_object);
        let of_partition = |partition: &Json| partition.get("successDeleteFiles")?.as_array().cloned();
        for path in partitions.into_iter().flatten().filter_map(|(_, p)| of_partition(p)).flatten() {
            let name = path.as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
            let (file_id, instant) = match parse_name(name) {
                Some(FileName::Base { file_id, instant, .. } | FileName::Log { file_id, instant, .. }) => {
                    (file_id, instant)
                }
                None => continue,
            };
            if instant <= as_of && bases.get(file_id).is_none_or(|base| instant >= *base) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The slices that a view reads.
fn slices(
    groups: &Groups,
    timeline: &Timeline,
    visible: &Visible<'_>,
    commits: &Commits,
) -> Result<Vec<Slice>> {
    let replaced: BTreeSet<&(String, String)> =
        commits.iter().flat_map(|(_, commit)| &commit.replaced).collect();
    let mut written = |instant: &str| {
        let own = commits.iter().filter(|(own, _)| own.time == instant);
        Ok(own.flat_map(|(_, commit)| &commit.written).map(|file| file.path.clone()).collect())
    };
    let mut slices = Vec::new();
    for (key, group) in groups.iter().filter(|(key, _)| !replaced.contains(key)) {
        slices.extend(group.slice(key, timeline, visible, &mut written)?);
    }
    missing::add_missing(&mut slices, groups, timeline, commits, &replaced)?;
    Ok(slices)
}

/// The columns, by the last commit that recorded a schema.
fn columns(
    folder: &dyn Folder,
    properties: &Properties,
    commits: &Commits,
    slices: &[Slice],
    options: &coldframe_core::OpenOptions,
) -> Result<Columns> {
    let limits = &options.limits;
    let last = commits.iter().rev().find_map(|(_, commit)| commit.extra.get("schema"));
    if let Some(json) = last.map(String::as_str).or(properties.get("hoodie.table.create.schema")) {
        return Columns::of_avro(json, limits);
    }
    let newest = slices.iter().flat_map(Slice::files).max_by(|a, b| a.instant.cmp(&b.instant));
    let Some(file) = newest else { return Ok(Columns::none()) };
    let source = folder.open(&file.path)?;
    let json = match file.path.rsplit('/').next().is_some_and(|name| name.starts_with('.')) {
        true => {
            limits.block("a log file", source.len())?;
            let bytes = source.read(0..source.len())?;
            let blocks = log::blocks(&bytes, limits);
            blocks.iter().rev().find_map(|block| block.schema().map(str::to_owned))
        }
        false => Base::open(&file.path, source, options)?.avro_schema()?,
    };
    match json {
        Some(json) => Columns::of_avro(&json, limits),
        None => Err(Error::unsupported("a Hudi table whose commits and files have no schema")
            .in_file(file.path.clone())),
    }
}

/// The partition columns, if the files lack them, and an error if nothing has them.
fn with_partitions(columns: Columns, properties: &Properties) -> Result<Columns> {
    if columns.schema.fields().is_empty() {
        return Ok(columns);
    }
    let dropped = properties.is("hoodie.datasource.write.drop.partition.columns", false);
    let mut fields: Vec<_> = columns.schema.fields().iter().cloned().collect();
    for field in properties.list("hoodie.table.partition.fields") {
        let name = field.split(':').next().unwrap_or(&field).to_owned();
        // A part of a struct is shown within it.
        let top = name.split('.').next().unwrap_or(&name);
        if columns.schema.column_with_name(top).is_some() {
            continue;
        }
        if !dropped {
            return Err(Error::unsupported(format!(
                "a Hudi table whose partition column `{name}` is in no schema"
            )));
        }
        fields.push(Arc::new(Field::new(name, DataType::Utf8, true)));
    }
    Ok(Columns { schema: Arc::new(ArrowSchema::new(fields)), ..columns })
}

/// The history of the schema, if the last commit has one.
fn history(folder: &dyn Folder, timeline: &Timeline, commits: &Commits, limits: &Limits) -> Result<History> {
    let shown = commits
        .iter()
        .rev()
        .find_map(|(instant, commit)| commit.extra.get("latest_schema").map(|text| (instant, text)));
    let Some((instant, text)) = shown else { return Ok(History::default()) };
    let at = ".hoodie/.schema";
    let listed = match folder.list(at) {
        Err(e) if e.is_not_found() => Vec::new(),
        listed => listed?,
    };
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let of = |path: &str| -> Option<String> {
        let (times, action) = name(path).split_once('.').map(|(a, b)| (a.to_owned(), b.to_owned()))?;
        let time = times.split('_').next().unwrap_or_default().to_owned();
        (action == "schemacommit" && timeline.is_committed(&time) && time <= instant.time).then_some(time)
    };
    let newest = listed.iter().filter_map(|e| Some((of(&e.path)?, e))).max_by(|a, b| a.0.cmp(&b.0));
    let text_of = |path: &str| -> Result<Vec<u8>> {
        let file = folder.open(path)?;
        limits.metadata("history of a schema", file.len())?;
        Ok(file.read(0..file.len())?.to_vec())
    };
    match newest {
        Some((_, entry)) => {
            let bytes = text_of(&entry.path)?;
            History::new(&bytes, Some(text), limits).map_err(|e| e.in_file(entry.path.clone()))
        }
        None => History::new(format!("{{\"schemas\":[{text}]}}").as_bytes(), Some(text), limits),
    }
}

/// Names for the properties that a table shows in its metadata.
pub(crate) fn described(opened: &Opened) -> BTreeMap<String, String> {
    let all: HashMap<&str, &str> = opened.properties.iter().collect();
    all.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
