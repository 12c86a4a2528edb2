//! A Hudi table as a table: a split for each file group, or for ranges of its base file if it has no logs.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{FieldRef, Fields, Schema as ArrowSchema, SchemaRef};
use bytes::Bytes;
use coldframe_core::io::Folder;
use coldframe_core::{
    Checksums, Damage, Error, ErrorContext, Fault, Fetch, NoUnits, Node, Notice, OnError, OpenOptions, Piece,
    Plan, PlanRequest, Proof, Result, Split, TableFile, Value,
};

use crate::data::base::Base;
use crate::data::bootstrap;
use crate::data::files::{GroupFile, Named, Slice};
use crate::data::logs::{IS_DELETED, LogContext, OPERATION};
use crate::data::missing;
use crate::data::open::{self, Opened};
use crate::data::options;
use crate::data::partition::{self, Reads};
use crate::data::rules::Reading;
use crate::data::scan::{Aligned, Counts, Finish, MergedUnit, SlicePlan, merged_unit, plain_unit, settled};
use crate::data::table_schema::COMMIT_TIME;
use crate::data::view::{Shown, Visible};
use crate::log;

/// The shortest split of a base file: each split opens the file for its row groups, which are longer than this.
const MIN_SPLIT: u64 = 1 << 16;

/// An open table.
#[derive(Debug)]
pub struct HudiTable {
    folder: Arc<dyn Folder>,
    opened: Arc<Opened>,
    options: OpenOptions,
    state: u64,
    /// Where the source of a bootstrap is now.
    bootstrap_base: Option<String>,
    /// Whether what seems to be missing is damage.
    is_complete: bool,
}

impl HudiTable {
    /// Opens the table in `folder`. `planned`: the state that it had when its splits were made.
    pub(crate) fn open(
        folder: &Arc<dyn Folder>,
        given: &options::OpenOptions,
        options: &OpenOptions,
        planned: Option<u64>,
    ) -> Result<Self> {
        let opened = open::open(folder, given, options)?;
        let state = fingerprint(&opened.slices);
        if planned.is_some_and(|planned| planned != state) {
            return Err(Error::from(std::io::Error::other(
                "the Hudi table has changed since its splits were made: read it again",
            )));
        }
        let is_incremental = matches!(opened.shown, Shown::Incremental { .. });
        if is_incremental && !opened.properties.is("hoodie.populate.meta.fields", true) {
            return Err(Error::unsupported(
                "view=\"incremental\" of a Hudi table without meta columns, whose rows do not say when they were written",
            ));
        }
        let options = OpenOptions { extra: Default::default(), ..options.clone() };
        Ok(Self {
            folder: folder.clone(),
            opened: Arc::new(opened),
            options,
            state,
            bootstrap_base: given.bootstrap_base.clone(),
            is_complete: given.complete,
        })
    }

    /// What is missing of a table that must be complete.
    fn losses(&self) -> &[String] {
        if self.is_complete { &self.opened.lacking } else { &[] }
    }

    fn is_incremental(&self) -> bool {
        matches!(self.opened.shown, Shown::Incremental { .. })
    }

    /// For an incremental view, whether the rows of an instant are shown.
    fn instants(&self) -> Option<Counts> {
        let opened = self.opened.clone();
        let shows = move |time: &str| Visible::new(&opened.timeline, &opened.shown).shows(time);
        self.is_incremental().then(|| Arc::new(shows) as Counts)
    }

    fn reads_logs(&self) -> bool {
        !matches!(self.opened.shown, Shown::ReadOptimized { .. })
    }

    /// A file of a slice that is missing and whose rows no other file can have. Another log may have the blocks of a
    /// log that is gone. Only reading the logs shows this.
    fn gone<'a>(&self, slice: &'a Slice) -> Option<&'a Named> {
        let is_gone = |file: &&Named| !file.is_log || (self.reads_logs() && slice.logs.is_empty());
        slice.missing.iter().find(is_gone)
    }

    /// Why rows of a slice cannot be read, as the names and lengths of its files show.
    fn unreadable(&self, slice: &Slice) -> Option<Damage> {
        let empty = slice.base.as_ref().filter(|base| base.len == 0);
        let empty = empty
            .map(|base| Error::corrupt("expected a base file, found no bytes").within(base.path.clone()));
        let e = self.gone(slice).map(missing::error).or(empty)?;
        Some(Damage::from_error(&e.within(format!("file group {}", slice.file_id)), 0..0, None))
    }

    /// Fails if no log of a slice has the blocks of one that is missing.
    fn check_logs(&self, slice: &Slice) -> Result<()> {
        let mut blocks = Vec::new();
        for file in &slice.logs {
            let source = self.folder.open(&file.path).map_err(Error::of_named_file)?;
            self.options.limits.block("a log file", source.len())?;
            blocks.extend(log::blocks(&source.read(0..source.len())?, &self.options.limits));
        }
        missing::check_blocks(&blocks.iter().collect::<Vec<_>>(), &slice.missing, &[])
    }

    /// The columns that a group needs for its rows: the requested ones, and those by which its records are merged.
    fn needed(&self, request: &PlanRequest, with_logs: bool) -> SchemaRef {
        let all = &self.opened.columns.schema;
        let mut names: Vec<String> = request.decode.fields().iter().map(|f| f.name().clone()).collect();
        if self.is_incremental() {
            names.push(COMMIT_TIME.to_owned());
        }
        if with_logs {
            names.extend(self.opened.keys.columns());
            names.extend(self.opened.rules.ordering.iter().cloned());
            names.extend(self.opened.rules.marker.iter().map(|(name, _)| name.clone()));
            names.extend([IS_DELETED.to_owned(), OPERATION.to_owned()]);
        }
        let fields: Vec<FieldRef> =
            all.fields().iter().filter(|f| names.contains(f.name())).cloned().collect();
        Arc::new(ArrowSchema::new(fields.into_iter().collect::<Fields>()))
    }

    fn plan_slice(&self, slice: &Slice, range: &Range<u64>, request: &PlanRequest) -> Result<SlicePlan> {
        let opened = &self.opened;
        let with_logs = self.reads_logs() && !slice.logs.is_empty();
        // The group is one unit, which belongs to the range with its first byte.
        if with_logs && !range.contains(&0) {
            return Ok(SlicePlan::default());
        }
        if let Some(file) = self.gone(slice) {
            return Err(missing::error(file));
        }
        let schema = self.needed(request, with_logs);
        let finish = Arc::new(Finish {
            decode: request.decode.clone(),
            instants: self.instants(),
            constants: partition::constants(
                &opened.properties,
                self.schema(),
                &slice.partition,
                Reads {
                    reading: opened.reading,
                    merges: self.reads_logs()
                        && opened.properties.get("hoodie.table.type") == Some("MERGE_ON_READ"),
                    incremental: self.is_incremental(),
                    has_logs: slice.has_logs,
                    required: self.source_of(slice).is_some() && self.source_has_partitions(),
                },
            ),
        });
        // Hudi 1.x merges only the records in the range of instants. Hudi 0.x merges all records, and shows those
        // in the range.
        let only = self.instants().filter(|_| with_logs && opened.reading == Reading::New);
        let base = match &slice.base {
            None => None,
            Some(file) => {
                let aligned = Arc::new(Aligned {
                    schema: schema.clone(),
                    history: opened.history.clone(),
                    instant: file.instant.clone(),
                    instants: only.clone(),
                });
                let units = || {
                    let source = self.folder.open(&file.path)?;
                    let base = self.whole_base(slice, Base::open(&file.path, source, &self.options)?)?;
                    let range = if with_logs { &(0..u64::MAX) } else { range };
                    // A row group without rows that pass may be left out only if nothing changes its rows.
                    let bounds = |group: usize, column: &str| {
                        let is_constant = finish.constants.iter().any(|(name, _)| name == column);
                        let (_, field) =
                            self.schema().column_with_name(column).filter(|_| !with_logs && !is_constant)?;
                        let own = aligned.history.name_in(column, &file.instant)?;
                        base.bounds(group, &own, field.data_type())
                    };
                    base.units_of(&aligned.names(), range, request, &bounds)
                };
                let (units, pruned) = units().map_err(|e| e.in_file(file.path.clone()))?;
                Some((units, pruned, file.path.clone(), aligned))
            }
        };
        if !with_logs {
            let Some((units, pruned, path, aligned)) = base else { return Ok(SlicePlan::default()) };
            let units =
                units.into_iter().map(|unit| plain_unit(unit, &path, aligned.clone(), finish.clone()));
            return Ok(SlicePlan { units: units.collect(), pruned });
        }
        let whole = slice.logs.iter().map(|file| file.len).fold(0, u64::saturating_add);
        self.options.limits.block("the log files of a file group", whole)?;
        let files = slice.logs.iter().map(|file| {
            let source = self.folder.open(&file.path)?;
            let range = 0..source.len();
            Ok((Fetch { source, range }, file.path.clone()))
        });
        let files = files.collect::<Result<Vec<_>>>()?;
        let logs = LogContext::new(
            (schema, opened.keys.clone()),
            opened.rules.clone(),
            opened.history.clone(),
            opened.columns.defaults.clone(),
            coldframe_hfile::Options::new(&self.options)?,
        );
        let state = opened.clone();
        let counts: Counts = Arc::new(move |time: &str| {
            let is_in = only.as_ref().is_none_or(|instants| instants(time));
            is_in && Visible::new(&state.timeline, &state.shown).has(time)
        });
        let batch_rows = request.scan.batch_rows;
        let base = base.map(|(units, _, path, aligned)| (units, path, aligned));
        let named = (slice.missing.clone(), slice.logged.clone());
        let merged = MergedUnit { logs: Arc::new(logs), files, named, base, counts, finish, batch_rows };
        let structure = format!("file group {} of partition {:?}", slice.file_id, slice.partition);
        Ok(SlicePlan { units: [merged_unit(merged, structure)].into(), pruned: 0 })
    }
}

impl HudiTable {
    /// The file of the source with the rows of a bootstrapped group.
    fn source_of(&self, slice: &Slice) -> Option<&String> {
        slice.base.as_ref().filter(|base| base.instant == bootstrap::INSTANT)?;
        self.opened.sources.get(&(slice.partition.clone(), slice.file_id.clone()))
    }

    /// Whether the partition columns come from the source's folders. In tables of Hudi 0.9 they are null, since its
    /// properties do not state how folders are named.
    fn source_has_partitions(&self) -> bool {
        self.opened.properties.get("hoodie.datasource.write.hive_style_partitioning").is_some()
    }

    /// A base file with the rows of the source, if it has only their meta columns.
    fn whole_base(&self, slice: &Slice, base: Base) -> Result<Base> {
        let Some(uri) = self.source_of(slice) else {
            return match slice.base.as_ref().is_some_and(|base| base.instant == bootstrap::INSTANT) {
                false => Ok(base),
                true => Err(Error::corrupt(
                    "expected the source of a bootstrapped file in the index `.hoodie/.aux/.bootstrap`, found none",
                )),
            };
        };
        let was = self.opened.properties.get("hoodie.bootstrap.base.path");
        let source = bootstrap::open_source(uri, was, self.bootstrap_base.as_deref())?;
        let source = Base::open(uri, source, &self.options)?;
        Ok(Base::Bootstrapped(Box::new(base), Box::new(source)))
    }
}

/// A number that changes with the files that a table reads.
fn fingerprint(slices: &[Arc<Slice>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in slices.iter().flat_map(|slice| slice.files()) {
        (&file.path, file.len).hash(&mut hasher);
    }
    hasher.finish()
}

impl TableFile for HudiTable {
    fn format(&self) -> &'static str {
        "hudi"
    }

    fn schema(&self) -> &SchemaRef {
        &self.opened.columns.schema
    }

    /// Known without opening files only if the table has none.
    fn row_count(&self) -> Option<u64> {
        (self.opened.slices.is_empty() && self.losses().is_empty()).then_some(0)
    }

    fn metadata(&self) -> Result<Value> {
        let opened = &self.opened;
        let text = |time: &String| Value::from(time.as_str());
        let commits = opened.timeline.commits().map(|i| {
            Value::map([
                ("instant", Value::from(i.time.as_str())),
                ("action", i.action.as_str().into()),
                ("completed", i.completion.as_str().into()),
            ])
        });
        let file = |file: &GroupFile| {
            Value::map([("path", Value::from(file.path.as_str())), ("bytes", file.len.into())])
        };
        let slice = |slice: &Arc<Slice>| {
            Value::map([
                ("partition", Value::from(slice.partition.as_str())),
                ("file_id", slice.file_id.as_str().into()),
                ("base_file", slice.base.as_ref().map_or(Value::Null, file)),
                ("log_files", Value::List(slice.logs.iter().map(file).collect())),
            ])
        };
        let properties = open::described(opened).into_iter().map(|(key, value)| (key, Value::from(value)));
        Ok(Value::map([
            ("format", Value::from("hudi table")),
            ("table_version", opened.properties.number("hoodie.table.version").unwrap_or(0).into()),
            ("table_type", Value::from(opened.properties.get("hoodie.table.type").map(str::to_owned))),
            ("table_name", Value::from(opened.properties.get("hoodie.table.name").map(str::to_owned))),
            (
                "rules",
                Value::from(match opened.reading {
                    Reading::Old => "0.x",
                    Reading::New => "1.x",
                }),
            ),
            ("properties", Value::map(properties)),
            ("commits", Value::List(commits.collect())),
            ("pending_instants", Value::List(opened.timeline.pending().iter().map(text).collect())),
            ("file_groups", Value::List(opened.slices.iter().map(slice).collect())),
        ]))
    }

    fn notices(&self) -> Result<Vec<Notice>> {
        let unreadable: Vec<Damage> =
            self.opened.slices.iter().filter_map(|slice| self.unreadable(slice)).collect();
        let lacking = missing::notices(&self.opened.lacking, self.is_complete).into_iter();
        Ok(lacking.chain(Damage::notice(&unreadable).filter(|_| !self.is_complete)).collect())
    }

    fn notices_by_reading(&self) -> Result<Vec<Notice>> {
        let mut unreadable = Vec::new();
        let has_logs = |slice: &&Arc<Slice>| self.reads_logs() && !slice.logs.is_empty();
        let is_checked = |slice: &&Arc<Slice>| !slice.missing.is_empty() && self.gone(slice).is_none();
        for slice in self.opened.slices.iter().filter(has_logs).filter(is_checked) {
            match self.check_logs(slice).within(|| format!("file group {}", slice.file_id)) {
                Err(e) if Fault::is(&e) => unreadable.push(Damage::from_error(&e, 0..0, None)),
                checked => checked?,
            }
        }
        Ok(Damage::notice(&unreadable).into_iter().collect())
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let mut splits = Vec::new();
        for (number, slice) in self.opened.slices.iter().enumerate() {
            let part = u32::try_from(number)
                .map_err(|_| Error::unsupported("a table of more than 2^32 file groups"))?;
            let with_logs = self.reads_logs() && !slice.logs.is_empty();
            let len = match (&slice.base, with_logs) {
                // Reading it reports the missing files.
                (None, false) if !slice.missing.is_empty() => 1,
                (None, false) => continue,
                (Some(base), false) => base.len,
                (_, true) => {
                    splits.push(Split { part, range: 0..slice.bytes().max(1), rows: None });
                    continue;
                }
            };
            let step = target.max(MIN_SPLIT);
            let mut start = 0;
            while start == 0 || start < len {
                let end = start.saturating_add(step);
                let end = if len.saturating_sub(end) < step / 4 { u64::MAX } else { end };
                splits.push(Split { part, range: start..end.min(len.max(1)), rows: None });
                start = end;
            }
        }
        // A split for each loss, which reports it.
        let parts = self.opened.slices.len()..self.opened.slices.len().saturating_add(self.losses().len());
        splits.extend(
            parts.filter_map(|part| Some(Split { part: u32::try_from(part).ok()?, range: 0..1, rows: None })),
        );
        Ok(splits)
    }

    fn recorded(&self, splits: &[Split]) -> Result<Vec<Vec<Piece>>> {
        Ok(vec![vec![(self.state, Bytes::new())]; splits.len()])
    }

    fn byte_split(&self, _bytes: Range<u64>) -> Result<Split> {
        Err(Split::not_of_bytes())
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        // A table without files has no splits. An empty split is used to get its schema.
        if self.opened.slices.is_empty() && split.range.is_empty() {
            return Ok(Box::new(NoUnits));
        }
        // If parts of a complete table are missing, a read under `raise` fails before it returns rows.
        if let Some(text) = self.losses().first().filter(|_| request.scan.on_error == OnError::Raise) {
            return Err(missing::loss(text).to_error());
        }
        let part = usize::try_from(split.part).unwrap_or(usize::MAX);
        let loss = part.checked_sub(self.opened.slices.len()).and_then(|at| self.losses().get(at));
        if let Some(text) = loss {
            request.damage.push(missing::loss(text));
            return Ok(Box::new(NoUnits));
        }
        let slice = self.opened.slices.get(part);
        let slice = slice.ok_or_else(|| {
            let parts = self.opened.slices.len();
            Error::invalid(format!("expected a part below {parts}, found {}", split.part))
        })?;
        let plan = self.plan_slice(slice, &split.range, request);
        match plan.within(|| format!("file group {}", slice.file_id)) {
            Err(e) if request.scan.on_error != OnError::Raise && Fault::is(&e) => {
                request.damage.push(Damage::from_error(&e, split.range.clone(), None));
                Ok(Box::new(NoUnits))
            }
            Ok(plan) if request.scan.on_error != OnError::Raise => {
                let units = plan.units.into_iter().map(settled).collect();
                Ok(Box::new(SlicePlan { units, ..plan }))
            }
            plan => Ok(Box::new(plan?)),
        }
    }

    fn inspect(&self) -> Result<Node> {
        let slices = &self.opened.slices;
        let len = slices.iter().map(|slice| slice.bytes()).fold(0, u64::saturating_add);
        let mut node = Node::new("hudi table", 0..len).with("file groups", slices.len());
        let mut at = 0_u64;
        for slice in slices {
            let mut child =
                Node::new(format!("file group {}", slice.file_id), at..at.saturating_add(slice.bytes()))
                    .with("partition", slice.partition.as_str());
            for file in slice.files() {
                child.push(self.inspect_file(file, at)?);
                at = at.saturating_add(file.len);
            }
            node.push(child);
        }
        Ok(node)
    }

    fn proof(&self) -> Proof {
        Proof { checksums: Checksums::Some, besides: &[] }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl HudiTable {
    /// The node of a file. Offsets are counted as if all files were one, in which this file begins at `at`.
    fn inspect_file(&self, file: &GroupFile, at: u64) -> Result<Node> {
        let end = at.saturating_add(file.len);
        let mut node = Node::new(file.path.clone(), at..end).with("instant", file.instant.as_str());
        if !file.path.rsplit('/').next().is_some_and(|name| name.starts_with('.')) {
            return Ok(node);
        }
        let limits = &self.options.limits;
        let source = self.folder.open(&file.path)?;
        if let Err(e) = limits.block("a log file", source.len()) {
            return Ok(node.with("damage", e.to_string()));
        }
        let bytes = source.read(0..source.len().min(file.len))?;
        for block in log::blocks(&bytes, limits) {
            node.push(log::node(&block, at));
        }
        node.fill_gaps("unknown");
        Ok(node)
    }
}
