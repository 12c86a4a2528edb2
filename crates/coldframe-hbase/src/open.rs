//! Finds the requested table of a root directory, and its regions.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use arrow_schema::{Schema, SchemaRef};
use coldframe_core::io::Folder;
use coldframe_core::{Damage, DamageLog, Error, ErrorContext, Fault, Limits, OnError, OpenOptions, Result};
use coldframe_hfile::{RowOrder, View, schema_of};
use md5::{Digest, Md5};

use crate::descriptor::{Descriptor, name_in};
use crate::layout::messages;
use crate::layout::names::{META_REGION, TableName};
use crate::layout::policy;
use crate::layout::proto::{SnapshotDescription, SnapshotManifest, TableSchema};
use crate::meta::{Decided, Listed};
use crate::missing::{lacking, missing_rows, unreadable, without_folder};
use crate::options::{Options, View as CellView};
use crate::regions::abandoned::alive_and_abandoned;
use crate::regions::alive::Region;
use crate::regions::files::Shared;
use crate::regions::undescribed::{self, Classified};
use crate::root::{Opened, Root, SNAPSHOTS, join};
use crate::scan::merge::Scanning;
use crate::scan::mob::MobFiles;
use crate::scan::plan::{RegionPlan, Rows, Source};
use crate::scan::visibility::VisibilityRules;
use crate::wal::edits::Logs;

/// How many regions are examined on opening, to see whether they need missing logs.
const LOOKED_AT: usize = 4;

/// How the live regions are determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegionSource {
    Meta,
    Folders,
    Snapshot,
}

impl RegionSource {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Meta => "hbase:meta",
            Self::Folders => "folders of regions",
            Self::Snapshot => "snapshot",
        }
    }
}

/// The columns of cells, with families and qualifiers as dictionaries if requested.
pub(crate) fn cell_schema(dictionary: bool) -> SchemaRef {
    let all = schema_of(View::Cells, false, dictionary);
    let shown = ["row", "family", "qualifier", "timestamp", "type", "value"];
    let fields = all.fields().iter().filter(|f| shown.contains(&f.name().as_str()));
    Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()))
}

/// The request of a scan.
pub(crate) struct CellRequest {
    pub(crate) columns: SchemaRef,
    pub(crate) on_error: OnError,
    pub(crate) damage: DamageLog,
    pub(crate) batch_rows: usize,
}

/// A table and its regions.
#[derive(Debug)]
pub(crate) struct OpenTable {
    pub(crate) shared: Arc<Shared>,
    /// The write-ahead logs, whether the options ask for them or not.
    pub(crate) logs: Option<Arc<Logs>>,
    /// Reads values that are in MOB files.
    pub(crate) mob: Arc<MobFiles>,
    pub(crate) options: Options,
    pub(crate) schema: TableSchema,
    pub(crate) regions: Vec<Arc<Region>>,
    /// Region folders without a readable description, and ranges of rows without a region.
    pub(crate) missing: Vec<Damage>,
    /// Region folders that hbase:meta does not list; such a folder is not read if hbase:meta lists another
    /// region with its rows.
    pub(crate) unknown: Vec<String>,
    /// How many of these folders are not read although they have files of their own.
    pub(crate) skipped_regions: u64,
    /// Region folders of splits and merges that HBase gave up, if hbase:meta does not list the table.
    pub(crate) abandoned: Vec<String>,
    /// Whether the table's descriptor is lost, so that the families are the family folders of the table.
    pub(crate) lacks_descriptor: bool,
    pub(crate) region_source: RegionSource,
    pub(crate) disabled: Option<bool>,
    pub(crate) snapshot: Option<SnapshotInfo>,
    /// The names of the tables in the directory, and of its snapshots.
    pub(crate) tables: Vec<TableName>,
    pub(crate) snapshots: Vec<String>,
}

/// The regions according to the descriptions in their folders.
#[derive(Debug, Default)]
struct DescribedRegions {
    regions: Vec<Region>,
    /// Folders with families, but without a readable description.
    broken: Vec<(String, Error)>,
}

/// The names of the tables and snapshots in a directory.
#[derive(Clone, Debug)]
pub(crate) struct DirectoryNames {
    pub(crate) tables: Vec<TableName>,
    pub(crate) snapshots: Vec<String>,
}

/// The table or snapshot to open.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    /// A table; `None` if only the table's folder was opened and its name is unknown.
    Table(Option<TableName>),
    Snapshot(String),
    /// Nothing is chosen, because the directory has several tables or snapshots and the options name none of
    /// them.
    None(Vec<TableName>),
}

/// A snapshot's name and what its description states.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotInfo {
    pub(crate) name: String,
    pub(crate) created: Option<i64>,
}

/// The tables of a root directory, without hbase:meta and HBase's other own tables.
pub(crate) fn tables(folder: &Arc<dyn Folder>) -> Result<Vec<TableName>> {
    let mut all = match Opened::new(folder)? {
        Opened::Root(root) => root.tables()?,
        Opened::Table(_, name) => name.into_iter().collect(),
        Opened::Snapshot(..) => Vec::new(),
    };
    all.retain(|table| !table.is_system());
    Ok(all)
}

impl OpenTable {
    /// Opens what the options request in a folder.
    pub(crate) fn open(folder: &Arc<dyn Folder>, options: &OpenOptions) -> Result<Self> {
        let options = Options::new(options)?;
        let opened = Opened::new(folder)?;
        let (names, chosen) = Self::choose(&opened, &options)?;
        let (Opened::Root(root) | Opened::Table(root, _) | Opened::Snapshot(root, _)) = opened;
        let mut table = match chosen {
            Chosen::Snapshot(name) => Self::of_snapshot(root, &name, options)?,
            Chosen::Table(requested) => Self::of_table(root, requested, options)?,
            Chosen::None(own) => return Err(several(&own, &names.snapshots)),
        };
        (table.tables, table.snapshots) = (names.tables, names.snapshots);
        if table.options.complete {
            table.missing.extend(table.lacking()?.iter().map(|text| lacking(text)));
        }
        Ok(table)
    }

    /// Determines which table or snapshot the options request, and lists all of them.
    pub(crate) fn choose(opened: &Opened, options: &Options) -> Result<(DirectoryNames, Chosen)> {
        let (root, mut table, mut snapshot) = match opened {
            Opened::Root(root) => (root, None, None),
            Opened::Table(root, table) => (root, Some(table.clone()), None),
            Opened::Snapshot(root, name) => (root, None, Some(name.clone())),
        };
        if let (Some(Some(own)), Some(requested)) = (&table, &options.table)
            && own != requested
        {
            return Err(Error::not_found(format!("table {requested} in the folder of {own}")));
        }
        snapshot = options.snapshot.clone().or(snapshot);
        let tables = if table.is_none() { root.tables()? } else { Vec::new() };
        let names = DirectoryNames { tables, snapshots: root.snapshots()? };
        if let (None, None, None) = (&table, &snapshot, &options.table) {
            let own: Vec<&TableName> = names.tables.iter().filter(|t| !t.is_system()).collect();
            match (own.as_slice(), names.snapshots.as_slice()) {
                ([only], _) => table = Some(Some((*only).clone())),
                // A directory with a single snapshot is the target of a snapshot export.
                ([], [only]) => snapshot = Some(only.clone()),
                _ => {
                    let own = own.into_iter().cloned().collect();
                    return Ok((names, Chosen::None(own)));
                }
            }
        }
        let chosen = match snapshot {
            Some(name) => Chosen::Snapshot(name),
            None => Chosen::Table(options.table.clone().or(table.flatten())),
        };
        Ok((names, chosen))
    }

    /// A snapshot's description and manifest.
    pub(crate) fn manifest(
        root: &Root,
        name: &str,
        limits: &Limits,
    ) -> Result<(SnapshotDescription, SnapshotManifest)> {
        let folder = join(SNAPSHOTS, name);
        let info = join(&folder, crate::root::SNAPSHOT_INFO);
        let bytes = root.read(&info, limits).map_err(|e| match e.is_not_found() {
            true => Error::not_found(format!("snapshot {name:?}")),
            false => e,
        })?;
        let description = messages::snapshot_description(&bytes, limits);
        let description = description.within(|| format!("snapshot description {info}"))?;
        if description.version.unwrap_or(0) < 2 {
            return Err(Error::unsupported("snapshots of HBase before 1.0, which have no manifest"));
        }
        let path = join(&folder, "data.manifest");
        let bytes = root.read(&path, limits)?;
        let manifest = messages::snapshot_manifest(&bytes, limits);
        Ok((description, manifest.within(|| format!("snapshot manifest {path}"))?))
    }

    fn of_snapshot(root: Root, name: &str, options: Options) -> Result<Self> {
        let (description, manifest) = Self::manifest(&root, name, &options.files.limits)?;
        let SnapshotManifest { schema, regions } = manifest;
        let path = join(&join(SNAPSHOTS, name), "data.manifest");
        let table = name_in(&schema)?;
        if let Some(requested) = options.table.as_ref().filter(|requested| **requested != table) {
            return Err(Error::not_found(format!("table {requested} in the snapshot {name:?} of {table}")));
        }
        let mut alive = Vec::with_capacity(regions.len());
        for region in regions {
            let info = region.region;
            if info.split.unwrap_or(false) || info.replica_id.unwrap_or(0) != 0 {
                continue;
            }
            let encoded = encoded_name(&info, &table);
            let of = Region::of(&encoded, info, &table).within(|| format!("snapshot manifest {path}"))?;
            alive.extend(of.map(|of| Region { listed: Some(region.families), ..of }));
        }
        alive.sort_by(|a, b| a.start.cmp(&b.start));
        let info = SnapshotInfo { name: name.to_owned(), created: description.creation_time };
        let mut open = Self::new(root, table, schema, options)?;
        open.missing = missing_rows(&alive);
        open.regions = alive.into_iter().map(Arc::new).collect();
        (open.region_source, open.snapshot) = (RegionSource::Snapshot, Some(info));
        Ok(open)
    }

    fn of_table(root: Root, requested: Option<TableName>, options: Options) -> Result<Self> {
        let Descriptor { table, schema, is_lost } =
            Descriptor::read(&root, requested.as_ref(), &options.files.limits)?;
        let mut open = Self::new(root, table, schema, options)?;
        open.lacks_descriptor = is_lost;
        open.find_regions()?;
        if open.disabled == Some(true)
            && let Some(logs) = &open.logs
        {
            logs.are_needless();
        }
        Ok(open)
    }

    pub(crate) fn new(root: Root, table: TableName, schema: TableSchema, options: Options) -> Result<Self> {
        let mut families = policy::families(&schema)?;
        if let Some(only) = &options.families {
            if let Some(unknown) = only.iter().find(|name| families.iter().all(|f| f.name != **name)) {
                let names: Vec<&str> = families.iter().map(|f| f.name.as_str()).collect();
                return Err(Error::not_found(format!(
                    "family {unknown:?}; the table has: {}",
                    names.join(", ")
                )));
            }
            families.retain(|f| only.contains(&f.name));
        }
        let shared = Arc::new(Shared {
            root,
            table,
            families,
            options: options.files.clone(),
            with_logs: options.wal,
        });
        Ok(Self {
            logs: Some(Arc::new(Logs::new(shared.clone()))),
            mob: Arc::new(MobFiles::new(shared.clone())),
            shared,
            options,
            schema,
            regions: Vec::new(),
            missing: Vec::new(),
            unknown: Vec::new(),
            skipped_regions: 0,
            abandoned: Vec::new(),
            lacks_descriptor: false,
            region_source: RegionSource::Folders,
            disabled: None,
            snapshot: None,
            tables: Vec::new(),
            snapshots: Vec::new(),
        })
    }

    /// Finds the live regions of the table.
    fn find_regions(&mut self) -> Result<()> {
        let (root, table) = (&self.shared.root, &self.shared.table);
        if table.is_meta() {
            self.regions = vec![Arc::new(Region::whole(META_REGION))];
            return Ok(());
        }
        let folders = root.regions(table)?;
        let listed = self.by_meta()?;
        // Only the folders that hbase:meta does not list are opened.
        let strange: Vec<&String> = folders.iter().filter(|encoded| !listed.knows(encoded)).collect();
        let described = self.read_descriptions(&strange)?;
        match listed.decide(&described.regions, &self.shared.table)? {
            Some(decided) => self.take_decided(decided, &described, &folders)?,
            // hbase:meta does not list the table.
            None => {
                let all: Vec<&String> = folders.iter().collect();
                let described =
                    if strange.len() < all.len() { self.read_descriptions(&all)? } else { described };
                self.take_youngest(described)?;
            }
        }
        Ok(())
    }

    /// Reads the descriptions in region folders.
    fn read_descriptions(&self, folders: &[&String]) -> Result<DescribedRegions> {
        let (root, table, limits) = (&self.shared.root, &self.shared.table, self.options.files.limits);
        let mut described = DescribedRegions::default();
        for encoded in folders {
            let path = join(&join(&root.table(table), encoded), ".regioninfo");
            let read = root.read(&path, &limits).and_then(|bytes| {
                let info = messages::region_info(&bytes, &limits).and_then(|info| {
                    // The folder's name is a digest that follows from this description.
                    let named = encoded_name(&info, table);
                    if named != **encoded {
                        return Err(Error::corrupt(format!("expected the region {encoded}, found {named}")));
                    }
                    // A clone has the folders of split regions next to the folders of their daughters.
                    let split = info.split.unwrap_or(false);
                    Ok(Region::of(encoded, info, table)?.filter(|_| !split))
                });
                info.within(|| format!("region info {path}"))
            });
            match read {
                Ok(region) => described.regions.extend(region),
                Err(e) if e.is_not_found() => {
                    // A folder without families has not been written to yet, or its deletion has begun.
                    let files = root.list(&join(&root.table(table), encoded))?;
                    if files.iter().any(|f| f.is_folder && self.is_family(crate::root::name_of(f))) {
                        let e = Error::corrupt(format!("expected the region info {path}, found none"));
                        described.broken.push(((*encoded).clone(), e));
                    }
                }
                Err(e) if e.is_damage() => described.broken.push(((*encoded).clone(), e)),
                Err(e) => return Err(e),
            }
        }
        Ok(described)
    }

    /// Uses the regions that hbase:meta lists as live. hbase:meta has all information that may be missing in
    /// their folders.
    fn take_decided(
        &mut self,
        decided: Decided,
        strange: &DescribedRegions,
        folders: &[String],
    ) -> Result<()> {
        let Decided { alive: listed, unknown } = decided;
        let folders: BTreeSet<&String> = folders.iter().collect();
        self.missing = missing_rows(&listed);
        self.unknown = unknown.iter().map(Region::describe).collect();
        let broken = strange.broken.iter();
        self.unknown.extend(broken.map(|(encoded, e)| format!("region {encoded}: {}", e.reason())));
        let read: BTreeSet<&String> = listed.iter().map(|region| &region.encoded).collect();
        let unknown = unknown.iter().map(|region| &region.encoded);
        for encoded in unknown.chain(strange.broken.iter().map(|(encoded, _)| encoded)) {
            self.skipped_regions += u64::from(!read.contains(encoded) && self.shared.has_own(encoded)?);
        }
        let (alive, gone): (Vec<_>, Vec<_>) =
            listed.into_iter().partition(|region| folders.contains(&region.encoded));
        self.missing.extend(gone.iter().map(without_folder));
        self.region_source = RegionSource::Meta;
        self.regions = alive.into_iter().map(Arc::new).collect();
        Ok(())
    }

    /// Uses the regions that no newer region overlaps, because hbase:meta does not list the table.
    fn take_youngest(&mut self, described: DescribedRegions) -> Result<()> {
        let DescribedRegions { regions, broken } = described;
        let (by_folder, abandoned) = alive_and_abandoned(&self.shared, regions)?;
        self.abandoned = abandoned.iter().map(Region::describe).collect();
        for region in &abandoned {
            self.skipped_regions += u64::from(self.shared.has_own(&region.encoded)?);
        }
        let names: Vec<&str> = broken.iter().map(|(encoded, _)| encoded.as_str()).collect();
        let Classified { alive, uncertain } = undescribed::classify(&self.shared, by_folder, &names)?;
        let mut described = alive.clone();
        described.extend(uncertain.iter().map(|(region, _)| region.clone()));
        described.sort_by(|a, b| a.start.cmp(&b.start));
        self.missing = broken.into_iter().map(|(encoded, e)| unreadable(&encoded, &e)).collect();
        self.missing.extend(uncertain.into_iter().map(|(_, damage)| damage));
        self.missing.extend(missing_rows(&described));
        self.regions = alive.into_iter().map(Arc::new).collect();
        Ok(())
    }

    fn is_family(&self, name: &str) -> bool {
        self.shared.families.iter().any(|f| f.name == name)
    }

    /// The regions of the table in hbase:meta; empty if hbase:meta is missing or cannot be read.
    fn by_meta(&mut self) -> Result<Listed> {
        let (root, table) = (&self.shared.root, &self.shared.table);
        let meta = TableName { namespace: "hbase".to_owned(), name: "meta".to_owned() };
        if root.regions(&meta)?.is_empty() {
            return Ok(Listed::default());
        }
        let options = Options {
            table: Some(meta.clone()),
            snapshot: None,
            view: CellView::Latest,
            versions: 1,
            time_range: None,
            families: None,
            // The logs of hbase:meta are always read, because its newest edits determine the regions, even if
            // the table's own edits are not read.
            wal: true,
            ..self.options.clone()
        };
        let limits = options.files.limits;
        let read = || {
            let meta = match root.descriptor(&meta)? {
                Some(_) => Self::of_table(root.clone(), Some(meta.clone()), options)?,
                // Some versions of HBase store no descriptor for hbase:meta.
                None => Self::of_meta_alone(root.clone(), meta.clone(), options)?,
            };
            crate::meta::listed(&mut meta.about(table)?, table, &limits)
        };
        match read() {
            Ok(listed) => {
                self.disabled = listed.disabled;
                Ok(listed)
            }
            // If hbase:meta cannot be read, the descriptions in region folders have the same information.
            Err(e) if Fault::is(&e) => Ok(Listed::default()),
            Err(e) => Err(e),
        }
    }

    fn of_meta_alone(root: Root, meta: TableName, options: Options) -> Result<Self> {
        let family = |name: &str| crate::layout::proto::ColumnFamilySchema {
            name: name.as_bytes().to_vec(),
            attributes: vec![crate::layout::proto::BytesPair {
                first: b"VERSIONS".to_vec(),
                second: b"3".to_vec(),
            }],
            configuration: Vec::new(),
        };
        let schema =
            TableSchema { column_families: vec![family("info"), family("table")], ..TableSchema::default() };
        let mut open = Self::new(root, meta, schema, options)?;
        open.find_regions()?;
        Ok(open)
    }

    /// The files and logs from which the table's regions are read.
    pub(crate) fn source(&self) -> Source {
        let shared = self.shared.clone();
        Source { shared, logs: self.logs.clone().filter(|_| self.options.wal && self.snapshot.is_none()) }
    }

    /// The state that the units of a scan share.
    pub(crate) fn scanning(&self, request: CellRequest) -> Arc<Scanning> {
        self.scanning_by(&self.options, request)
    }

    /// Like [`scanning`](Self::scanning), with other options.
    pub(crate) fn scanning_by(&self, options: &Options, request: CellRequest) -> Arc<Scanning> {
        let shared = &self.shared;
        let CellRequest { columns, on_error, damage, batch_rows } = request;
        Arc::new(Scanning {
            rules: VisibilityRules::new(options, &shared.families),
            families: shared.families.clone().into(),
            mob: self.mob.clone(),
            order: self.order(),
            on_error,
            damage,
            batch_rows,
            columns,
            wide: (options.view == CellView::Pivot).then(|| options.wide.clone()),
            limits: options.files.limits,
            room: Mutex::default(),
        })
    }

    /// The columns of the table's view.
    pub(crate) fn columns(&self) -> SchemaRef {
        match self.options.view {
            CellView::Pivot => self.options.wide.schema(),
            _ => cell_schema(self.options.dictionary),
        }
    }

    /// The order of the table's rows.
    pub(crate) fn order(&self) -> RowOrder {
        if self.shared.table.is_meta() { RowOrder::Meta } else { RowOrder::Bytes }
    }

    /// Plans the rows about a table in hbase:meta, which has a single region. In the order of hbase:meta,
    /// these rows are adjacent.
    fn about(&self, table: &TableName) -> Result<RegionPlan> {
        let region = self.regions.first().ok_or_else(|| Error::corrupt("expected a region, found none"))?;
        let scanning = self.scanning(CellRequest {
            columns: cell_schema(false),
            on_error: OnError::Raise,
            damage: DamageLog::default(),
            batch_rows: 65536,
        });
        let lower = table.plain().into_bytes();
        // This bound is after TABLE and after every TABLE,.. both in hbase:meta's own order and in the order
        // of bytes.
        let upper = Some([lower.as_slice(), &[b',' + 1]].concat());
        let rows = Rows { lower, upper, first: true };
        let families = vec![true; self.shared.families.len()];
        Ok(RegionPlan::new(self.source(), region.clone(), scanning, families, rows))
    }

    /// Warnings for the user about parts of the table that seem to be missing.
    pub(crate) fn lacking(&self) -> Result<Vec<String>> {
        let (name, mut texts) = (&self.shared.table, Vec::new());
        if let Some(first) = self.unknown.first() {
            texts.push(format!(
                "hbase:meta does not list {} of the region folders of {name} (metadata[\"unknown_regions\"]): they are left from an abandoned split or merge, or newer than this copy of hbase:meta. If it lists a region with the same rows, that region is read instead. The first folder: {first}",
                self.unknown.len(),
            ));
        }
        if let Some(first) = self.abandoned.first() {
            texts.push(format!(
                "{} of the region folders of {name} were made for a split or merge that HBase gave up: they lack files of the older regions with the same rows, which are read instead. The first folder: {first}",
                self.abandoned.len(),
            ));
        }
        if self.lacks_descriptor {
            texts.push(format!(
                "the descriptor of {name} (.tabledesc/.tableinfo.N) is missing: its families are those with a folder, read with HBase's default settings (versions, time to live, deleted cells)"
            ));
        }
        if let Some(logs) = &self.source().logs {
            let first = self.regions.get(..LOOKED_AT).unwrap_or(&self.regions);
            if let Some(region) = logs.first_missing(first)? {
                let lack = match (logs.lacks_folder()?, self.shared.root.place()) {
                    (true, _) => "there is no folder WALs",
                    (false, (_, true)) => "a table's folder alone has no logs",
                    (false, _) => "no server has a log in the folder WALs",
                };
                texts.push(format!(
                    "{lack}, so the newest edits of {name} may be missing (wal=False accepts this). {region}"
                ));
            }
        }
        Ok(texts)
    }

    /// The error for a strict read of an incomplete table.
    pub(crate) fn first_missing(&self, on_error: OnError) -> Option<Error> {
        self.missing.first().filter(|_| on_error == OnError::Raise).map(Damage::to_error)
    }
}

/// The name of a region's folder: a digest of the region's name, which consists of the table, the region's
/// first row and its id.
fn encoded_name(info: &crate::layout::proto::RegionInfo, table: &TableName) -> String {
    let plain = table.plain();
    let start = info.start_key.as_deref().unwrap_or_default();
    let name = [plain.as_bytes(), b",", start, b",", info.region_id.to_string().as_bytes()].concat();
    Md5::digest(&name).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn several(tables: &[TableName], snapshots: &[String]) -> Error {
    let tables: Vec<String> = tables.iter().map(ToString::to_string).collect();
    if tables.is_empty() && snapshots.is_empty() {
        return Error::not_found("a table of HBase in the directory");
    }
    let snapshots = if snapshots.is_empty() {
        String::new()
    } else {
        format!("; or with snapshot=: {}", snapshots.join(", "))
    };
    Error::invalid(format!(
        "the directory has several tables; choose one by table=: {}{snapshots}",
        tables.join(", ")
    ))
}
