//! A partition of the metadata table, or all partitions, as a table.

mod groups;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef, Schema as ArrowSchema, SchemaRef};
use coldframe_core::format::Fetch;
use coldframe_core::io::Folder;
use coldframe_core::{
    Checksums, Damage, Error, ErrorContext, ErrorKind, Node, Notice, Op, OpenOptions, Plan, PlanRequest,
    Predicate, Proof, ReadAt, Result, Source, Split, TableFile, Unit, Value,
};

use crate::avro::Schema;
use crate::data::files::Named;
use crate::data::missing::{self, Lost};
use crate::decode::{BaseFile, Context, DecodeGroup, KEY, PARTITION, is_own};
use crate::log::{self, BlockKind};
use crate::merge::Visible;
use crate::slice::GroupFile;
use crate::table::groups::FileGroup;
use crate::timeline::{self, Timeline};
use coldframe_hfile::file_info;
use coldframe_hfile::{Options, View};

/// The folder with a table's properties and timeline.
const HOODIE: &str = ".hoodie";
const PROPERTIES: &str = ".hoodie/hoodie.properties";
/// The first table version in which a single commit writes each log.
const LOGS_BY_COMMIT: u32 = 8;

/// A metadata table, or one partition of it.
#[derive(Debug)]
pub struct MetadataTable {
    /// The folder of the metadata table.
    root: Arc<dyn Folder>,
    groups: Vec<FileGroup>,
    /// What seems to be missing, without proof that it existed.
    lacking: Vec<String>,
    /// Whether that is damage.
    is_complete: bool,
    target: Arc<Schema>,
    schema: SchemaRef,
    visible: Arc<Visible>,
    options: Options,
    metadata: Vec<(String, Value)>,
    data: Option<DataTable>,
}

/// The table that the metadata describes.
#[derive(Debug)]
struct DataTable {
    timeline: Timeline,
    /// The data table's folder `.hoodie`.
    folder: Arc<dyn Folder>,
    version: u32,
    /// The partitions of the metadata table that it states to be ready.
    partitions: Option<Vec<String>>,
}

/// Whether `folder` is a metadata table or one of its partitions.
pub(crate) fn probe(folder: &dyn Folder) -> Result<bool> {
    let entries = folder.list("")?;
    let has = |name: &str| entries.iter().any(|e| e.path == name);
    let limits = coldframe_core::Limits::default();
    if has(HOODIE) {
        return Ok(timeline::properties(folder, PROPERTIES, &limits)?.is_some_and(|p| is_metadata(&p)));
    }
    if !has(".hoodie_partition_metadata") {
        return Ok(false);
    }
    let Some((parent, _)) = folder.parent()? else { return Ok(false) };
    Ok(timeline::properties(parent.as_ref(), PROPERTIES, &limits)?.is_some_and(|p| is_metadata(&p)))
}

/// The names of the partitions of the metadata table in `folder`: its non-empty folders, sorted.
pub fn partitions(folder: &dyn Folder) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for name in partition_folders(folder)? {
        if !folder.list(&name)?.is_empty() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn partition_folders(folder: &dyn Folder) -> Result<impl Iterator<Item = String>> {
    let folders = folder.list("")?.into_iter().filter(|e| e.is_folder && !e.path.starts_with('.'));
    Ok(folders.map(|e| e.path))
}

/// Whether these are the properties of a metadata table.
fn is_metadata(properties: &BTreeMap<String, String>) -> bool {
    let is = |key: &str, value: &str| properties.get(key).is_some_and(|v| v.ends_with(value));
    is("hoodie.table.base.file.format", "HFILE")
        && (is("hoodie.compaction.payload.class", "HoodieMetadataPayload")
            || is("hoodie.table.keygenerator.class", "HoodieTableMetadataKeyGenerator")
            || is("hoodie.table.keygenerator.type", "HOODIE_TABLE_METADATA")
            || is("hoodie.table.name", "_metadata"))
}

fn version_of(properties: &BTreeMap<String, String>) -> u32 {
    properties.get("hoodie.table.version").and_then(|v| v.parse().ok()).unwrap_or(0)
}

fn timeline_of(folder: &dyn Folder, at: &str, properties: &BTreeMap<String, String>) -> Result<Timeline> {
    let below = properties.get("hoodie.timeline.path").map_or("timeline", String::as_str);
    Timeline::read(folder, at, below).within(|| "timeline")
}

impl MetadataTable {
    /// Reads the timelines, the file names, and the schema of one file. `is_complete`: whether what seems to be missing is damage.
    pub fn open(source: &Source, options: &OpenOptions, is_complete: bool) -> Result<Self> {
        let Source::Folder { folder, .. } = source else {
            return Err(Error::invalid("expected the folder of a metadata table, found a file"));
        };
        let options = Options::new(options)?;
        if options.view == Some(View::Cells) {
            return Err(Error::unsupported(
                "`view=\"cells\"` for a metadata table, whose files are merged by key",
            ));
        }
        let limits = options.limits;
        let (root, only, own) = match timeline::properties(folder.as_ref(), PROPERTIES, &limits)? {
            Some(own) => (folder.clone(), None, own),
            None => {
                let parent = folder.parent()?;
                let (parent, name) = parent.ok_or_else(|| {
                    Error::not_found("the folder above a partition of a Hudi metadata table")
                })?;
                let own = timeline::properties(parent.as_ref(), PROPERTIES, &limits)?.ok_or_else(|| {
                    Error::not_found("`../.hoodie/hoodie.properties` of a Hudi metadata table")
                })?;
                (parent, Some(name), own)
            }
        };
        let version = version_of(&own);
        let own_timeline = timeline_of(root.as_ref(), HOODIE, &own)?;
        let mut metadata = vec![
            ("format".to_owned(), Value::from("hudi metadata table")),
            ("table_version".to_owned(), Value::from(version)),
            (
                "table_name".to_owned(),
                own.get("hoodie.table.name").map_or(Value::Null, |n| n.as_str().into()),
            ),
        ];
        let data = data_table(root.as_ref(), &options, &mut metadata)?;
        let visible = visible(data.as_ref(), &own_timeline, version, &options, &mut metadata)?;
        let ready = data.as_ref().and_then(|table| table.partitions.as_deref());
        let names = match &only {
            Some(name) => vec![name.clone()],
            None => partition_folders(root.as_ref())?.collect(),
        };
        let ready = |name: &str| only.is_none() && ready.is_none_or(|ready| ready.iter().any(|n| n == name));
        let (groups, lacking) =
            groups::read(root.as_ref(), names, (&own_timeline, version), &ready, &limits)?;
        metadata.push(("partitions".to_owned(), partitions_value(&groups)));
        let target = Arc::new(find_schema(root.as_ref(), &groups, &options)?);
        let schema = arrow_schema(&target, only.is_none(), &options)?;
        let visible = Arc::new(visible);
        Ok(Self { root, groups, lacking, is_complete, target, schema, visible, options, metadata, data })
    }

    /// For each partition of the data table, the file groups whose rows are now in other groups.
    pub(crate) fn replaced(&self) -> Result<BTreeMap<String, Vec<String>>> {
        let Some(table) = &self.data else { return Ok(BTreeMap::new()) };
        table.timeline.replaced(table.folder.as_ref(), &self.options.limits).within(|| "timeline")
    }

    /// The timeline of the data table, if it is accessible, and the version of its layout.
    pub(crate) fn data_timeline(&self) -> Option<(&Timeline, u32)> {
        self.data.as_ref().map(|table| (&table.timeline, table.version))
    }

    fn open_file(&self, group: &FileGroup, file: &GroupFile) -> Result<Arc<dyn ReadAt>> {
        debug_assert!(group.files().any(|f| f == file));
        self.root.open(&file.path)
    }
}

/// The table that the metadata describes, if it is accessible.
fn data_table(
    root: &dyn Folder,
    options: &Options,
    metadata: &mut Vec<(String, Value)>,
) -> Result<Option<DataTable>> {
    // In `<table>/.hoodie/metadata`, the parent folder is the table's `.hoodie`.
    let Some((folder, _)) = root.parent()? else { return Ok(None) };
    let properties = timeline::properties(folder.as_ref(), "hoodie.properties", &options.limits)?;
    let Some(properties) = properties else { return Ok(None) };
    let pairs = properties.iter().map(|(k, v)| (k.clone(), Value::from(v.as_str())));
    metadata.push(("table".to_owned(), Value::map(pairs)));
    let timeline = timeline_of(folder.as_ref(), "", &properties)?;
    let names = properties.get("hoodie.table.metadata.partitions");
    let partitions = names.map(|names| names.split(',').map(|name| name.trim().to_owned()).collect());
    Ok(Some(DataTable { timeline, folder, version: version_of(&properties), partitions }))
}

/// Determines the valid instants, from both timelines.
fn visible(
    data: Option<&DataTable>,
    own: &Timeline,
    version: u32,
    options: &Options,
    metadata: &mut Vec<(String, Value)>,
) -> Result<Visible> {
    let of_data = data.map(|table| (&table.timeline, table.folder.as_ref()));
    let valid = timeline::valid_instants(own, of_data, &options.limits)?;
    let latest = own.completed.keys().next_back();
    metadata.push(("latest_instant".to_owned(), latest.map_or(Value::Null, |i| i.as_str().into())));
    metadata.push(("pending_instants".to_owned(), list(own.pending.iter())));
    if let Some((timeline, _)) = of_data {
        metadata.push(("table_pending_instants".to_owned(), list(timeline.pending.iter())));
        let done = timeline.completed.iter().map(|(instant, done)| {
            let at = done.completion.as_deref().unwrap_or(instant);
            (instant.clone(), Value::from(at))
        });
        metadata.push(("table_completed_instants".to_owned(), Value::map(done)));
    }
    Ok(Visible { valid, appended: (version < LOGS_BY_COMMIT).then(|| own.clone()) })
}

fn list<'a>(texts: impl Iterator<Item = &'a String>) -> Value {
    Value::List(texts.map(|t| Value::from(t.as_str())).collect())
}

fn partitions_value(groups: &[FileGroup]) -> Value {
    let mut partitions: Vec<(String, Value)> = Vec::new();
    for group in groups {
        let file = |f: &GroupFile| {
            let name = f.path.rsplit('/').next().unwrap_or_default();
            Value::map([("name", Value::from(name)), ("bytes", f.len.into())])
        };
        let entry = Value::map([
            ("file_id", Value::from(group.slice.file_id.as_str())),
            ("base_file", group.slice.base.as_ref().map_or(Value::Null, file)),
            ("log_files", Value::List(group.slice.logs.iter().map(file).collect())),
        ]);
        match partitions.last_mut() {
            Some((name, Value::List(all))) if name.as_str() == &*group.partition => all.push(entry),
            _ => partitions.push((group.partition.to_string(), Value::List(vec![entry]))),
        }
    }
    Value::Map(partitions)
}

/// The schema of the newest file that has a schema.
fn find_schema(root: &dyn Folder, groups: &[FileGroup], options: &Options) -> Result<Schema> {
    let mut files: Vec<&GroupFile> = groups.iter().flat_map(FileGroup::files).collect();
    files.sort_by(|a, b| b.instant.cmp(&a.instant));
    let mut failed = None;
    for file in files {
        match schema_in(root, file, options).map_err(|e| e.in_file(file.path.clone())) {
            Ok(Some(schema)) => return Ok(schema),
            Ok(None) => {}
            // The schema may be in another file that can be read.
            Err(e) if e.is_damage() || matches!(e.kind(), ErrorKind::Unsupported(_)) => failed = Some(e),
            Err(e) => return Err(e),
        }
    }
    match failed {
        Some(e) => Err(e),
        // The table is empty: only the key column is known.
        None => Schema::parse(
            br#"{"type":"record","name":"HoodieMetadataRecord","fields":[{"name":"type","type":"int"}]}"#,
            &options.limits,
        ),
    }
}

fn schema_in(root: &dyn Folder, file: &GroupFile, options: &Options) -> Result<Option<Schema>> {
    let source = root.open(&file.path)?;
    if !file.path.ends_with(".hfile") {
        options.limits.block("a log file", source.len())?;
        let log = source.read(0..source.len())?;
        let blocks = log::blocks(&log, &options.limits);
        let json = blocks.iter().rev().find_map(|b| b.schema().filter(|_| b.kind != BlockKind::Command));
        return json.map(|json| Schema::parse(json.as_bytes(), &options.limits)).transpose();
    }
    let raw = coldframe_hfile::open(source, options)?;
    raw.check()?;
    raw.info().get(file_info::HUDI_SCHEMA).map(|json| Schema::parse(json, &options.limits)).transpose()
}

/// The columns: the key, the partition if the table has all partitions, and the fields of a record that can have values.
fn arrow_schema(target: &Schema, with_partition: bool, options: &Options) -> Result<SchemaRef> {
    let mut fields: Vec<FieldRef> = vec![Arc::new(Field::new(KEY, DataType::Utf8, false))];
    if with_partition {
        fields.push(Arc::new(Field::new(PARTITION, DataType::Utf8, false)));
    }
    match target.arrow(&options.limits)? {
        // Hudi's five meta columns are null in all metadata. The HFile's key is the record's key, so the record may omit it.
        DataType::Struct(all) => {
            fields.extend(
                all.iter().filter(|f| !f.name().starts_with("_hoodie_") && !is_own(f.name())).cloned(),
            );
        }
        other => return Err(Error::schema(format!("expected records, found an Avro schema of {other}"))),
    }
    Ok(Arc::new(ArrowSchema::new(fields)))
}

/// If `predicate` lists keys: the only values of `key` that can pass it.
fn wanted_keys(predicate: &Predicate) -> Option<BTreeSet<Vec<u8>>> {
    let of = |values: &ArrayRef| -> Option<BTreeSet<Vec<u8>>> {
        let strings = values.as_string_opt::<i32>()?;
        Some((0..strings.len()).filter(|i| strings.is_valid(*i)).map(|i| strings.value(i).into()).collect())
    };
    match predicate {
        Predicate::Compare { column, op: Op::Eq, value, negated: false } if column == KEY => of(value),
        Predicate::In { column, values, negated: false } if column == KEY => of(values),
        Predicate::And(all) => all.iter().find_map(wanted_keys),
        _ => None,
    }
}

impl TableFile for MetadataTable {
    fn format(&self) -> &'static str {
        "hfile"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn row_count(&self) -> Option<u64> {
        None
    }

    fn metadata(&self) -> Result<Value> {
        let mut metadata = self.metadata.clone();
        if self.data.is_some() {
            let replaced = self.replaced()?.into_iter().map(|(partition, ids)| (partition, list(ids.iter())));
            metadata.push(("table_replaced_file_groups".to_owned(), Value::map(replaced)));
        }
        Ok(Value::Map(metadata))
    }

    fn notices(&self) -> Result<Vec<Notice>> {
        let is_gone = |file: &&Named, group: &FileGroup| !file.is_log || group.slice.logs.is_empty();
        let gone = self.groups.iter().filter_map(|group| {
            let file = group.lost.missing.iter().find(|file| is_gone(file, group))?;
            Some(Damage::from_error(&missing::error(file).within(group.slice.file_id.clone()), 0..0, None))
        });
        let gone: Vec<Damage> = gone.collect();
        let lacking = missing::notices(&self.lacking, self.is_complete).into_iter();
        Ok(lacking.chain(Damage::notice(&gone).filter(|_| !self.is_complete)).collect())
    }

    /// A split is a range of file groups, by number.
    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let (mut splits, mut start, mut bytes) = (Vec::new(), 0, 0_u64);
        for (i, group) in self.groups.iter().enumerate() {
            let (i, len) = (i as u64, group.bytes());
            if i > start && bytes.saturating_add(len) > target {
                splits.push(Split { part: 0, range: start..i, rows: None });
                (start, bytes) = (i, 0);
            }
            bytes = bytes.saturating_add(len);
        }
        let end = self.groups.len() as u64;
        if end > start || (end == 0 && self.is_complete && !self.lacking.is_empty()) {
            splits.push(Split { part: 0, range: start..end.max(1), rows: None });
        }
        Ok(splits)
    }

    fn byte_split(&self, _bytes: std::ops::Range<u64>) -> Result<Split> {
        Err(Split::not_of_bytes())
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        let context = Arc::new(Context {
            target: self.target.clone(),
            columns: request.decode.clone(),
            batch_rows: request.scan.batch_rows,
            on_error: request.scan.on_error,
            damage: request.damage.clone(),
            keys: request.scan.predicate.as_ref().and_then(wanted_keys).map(Arc::new),
            visible: self.visible.clone(),
            options: self.options.clone(),
            schemas: Mutex::new(HashMap::new()),
        });
        if self.is_complete && split.range.start == 0 {
            for text in &self.lacking {
                context.lose(missing::loss(text).to_error(), 0..0, None)?;
            }
        }
        let mut groups = VecDeque::new();
        for (i, group) in self.groups.iter().enumerate() {
            let wanted = context.keys.as_ref().is_none_or(|keys| group.may_hold(keys));
            if split.range.contains(&(i as u64)) && wanted {
                let files = group.files().map(|f| Ok((f.path.clone(), self.open_file(group, f)?)));
                let (has_base, file_id) = (group.slice.base.is_some(), group.slice.file_id.clone());
                groups.push_back(PlannedGroup {
                    partition: group.partition.clone(),
                    file_id,
                    files: files.collect::<Result<_>>()?,
                    has_base,
                    lost: group.lost.clone(),
                });
            }
        }
        Ok(Box::new(GroupPlan { context, groups }))
    }

    fn inspect(&self) -> Result<Node> {
        let len = self.groups.iter().map(FileGroup::bytes).fold(0, u64::saturating_add);
        let mut node = Node::new("hudi metadata table", 0..len).with("file groups", self.groups.len());
        let mut at = 0;
        for group in &self.groups {
            let end = at + group.bytes();
            let mut child = Node::new(format!("file group {}", group.slice.file_id), at..end)
                .with("partition", &*group.partition);
            for file in group.files() {
                let source = self.open_file(group, file)?;
                child.push(inspect_file(file, source.as_ref(), at, &self.options)?);
                at += file.len;
            }
            node.push(child);
        }
        Ok(node)
    }

    fn proof(&self) -> Proof {
        // Base files have checksums, blocks of logs have no checksums.
        Proof { checksums: Checksums::Some, besides: &[] }
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        Ok(Vec::new())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The node of a group's file. Offsets are counted as if all files were one, in which this file begins at
/// `at`.
fn inspect_file(file: &GroupFile, source: &dyn ReadAt, at: u64, options: &Options) -> Result<Node> {
    let mut node = Node::new(file.path.clone(), at..at + file.len).with("instant", file.instant.as_str());
    if file.path.ends_with(".hfile") {
        return Ok(node);
    }
    if let Err(e) = options.limits.block("a log file", source.len()) {
        return Ok(node.with("damage", e.to_string()));
    }
    let log = source.read(0..source.len())?;
    for block in log::blocks(&log, &options.limits) {
        node.push(log::node(&block, at));
    }
    node.fill_gaps("unknown");
    Ok(node)
}

/// A group with its files open.
struct PlannedGroup {
    partition: Arc<str>,
    file_id: String,
    files: Vec<(String, Arc<dyn ReadAt>)>,
    has_base: bool,
    lost: Lost,
}

/// Plans one unit per group.
struct GroupPlan {
    context: Arc<Context>,
    groups: VecDeque<PlannedGroup>,
}

impl Plan for GroupPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        while let Some(group) = self.groups.pop_front() {
            let bytes = group.bytes();
            let structure = format!("file group {}", group.file_id);
            match self.unit(group, structure.clone()) {
                Ok(unit) => return Ok(Some(unit)),
                Err(e) => self.context.lose(e.within(structure), 0..bytes, None)?,
            }
        }
        Ok(None)
    }
}

impl PlannedGroup {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, source)| source.len()).fold(0, u64::saturating_add)
    }
}

impl GroupPlan {
    fn unit(&self, group: PlannedGroup, structure: String) -> Result<Unit> {
        let bytes = group.bytes();
        // If few keys are requested, they are looked up by the base file's index, with one request for each
        // block; otherwise the file is read as a whole.
        let few = |source: &Arc<dyn ReadAt>| {
            let keys = self.context.keys.as_ref().map_or(u64::MAX, |keys| keys.len() as u64);
            keys.saturating_mul(source.worthwhile_gap()) < source.len()
        };
        let first = group.files.first().filter(|_| group.has_base);
        let searched = first.map(|(_, source)| source).filter(|source| few(source)).cloned();
        let read = group.files.iter().skip(usize::from(searched.is_some()));
        let fetch: Vec<Fetch> =
            read.map(|(_, source)| Fetch { source: source.clone(), range: 0..source.len() }).collect();
        let whole = fetch.iter().map(|part| part.range.end).fold(0, u64::saturating_add);
        self.context.options.limits.block("a file group", whole)?;
        let base = match searched {
            Some(source) => Some(BaseFile::Searched(source)),
            None => first.map(|_| BaseFile::Fetched),
        };
        let decode = DecodeGroup {
            context: self.context.clone(),
            partition: group.partition,
            files: group.files.into_iter().map(|(path, _)| path).collect(),
            base,
            lost: group.lost,
        };
        Ok(Unit { fetch, bytes: 0..bytes, rows: None, structure, decode: Box::new(decode) })
    }
}
