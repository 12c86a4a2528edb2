//! Reads the directory of a table or partition as its live rows: those rows of the base, the insert deltas
//! and the original files that no event deletes.
//!
//! ```text
//! ACID file   struct<operation int, originalTransaction bigint, bucket int, rowId bigint, currentTransaction bigint, row struct<..>>
//! plain file  struct<..>: write id and bucket from its path, rowId by counting
//! ```

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::{FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use coldframe_core::{
    Damage, DamageLog, Error, ErrorContext, Fault, NoUnits, Node, Notice, OnError, Piece, Plan, PlanRequest,
    Proof, Result, Split, TableFile, Value,
};

use coldframe_core::ReadAt;
use coldframe_core::io::Folder;
use coldframe_orc::{Front, Options, OrcFile};

use crate::events::{self, Events};
use crate::lost::LostFile;
use crate::missing::{MissingRows, missing_rows, notice};
use crate::part::OpenFile;
use crate::scan::{AcidPlan, Rows};
use crate::state::{self, DataFile, Role};
use crate::unstated::{self, UnstatedRows};
use crate::write_ids::WriteIds;

/// The user metadata in which Hive's writer states the counts `inserts,updates,deletes`.
pub(crate) const ACID_STATS: &str = "hive.acid.stats";

/// The user metadata in which Hive's writer states which kind of deltas it writes.
pub(crate) const ACID_VERSION: &str = "hive.acid.version";

/// A table directory.
#[derive(Debug)]
pub(crate) struct AcidTable {
    /// Files with rows, in the order of their writes.
    rows: Vec<OpenFile>,
    /// The row number at which each file of `rows` begins, for files without ACID columns; `None` if that is
    /// unknown, because a file before it is lost.
    first_rows: Vec<Option<i64>>,
    /// Files with events.
    events_in: Vec<OpenFile>,
    /// Files that cannot be opened.
    lost: Vec<LostFile>,
    /// Rows of streams that no side file states.
    unstated: Vec<UnstatedRows>,
    /// The visible writes; `None` if all writes are visible.
    ids: Option<Arc<WriteIds>>,
    /// The last write of the base, if there is one.
    base: Option<i64>,
    /// Whether missing rows are damage; `None` if they cause a notice.
    complete: Option<bool>,
    /// Whether a compaction has made the base, or a delta.
    compacted: bool,
    /// The fingerprint of the directory's state: see [`state::fingerprint`].
    state: u64,
    schema: SchemaRef,
    events: Mutex<Option<Arc<KnownEvents>>>,
}

/// The events of all files, and the files that cannot be opened or read to the end.
#[derive(Debug)]
struct KnownEvents {
    events: Arc<Events>,
    lost: Vec<LostFile>,
    /// The rows that events name and that no file has.
    missing: Vec<MissingRows>,
}

impl KnownEvents {
    /// The events; an error if some are lost and `on_error` is `raise`.
    fn events(&self, on_error: OnError) -> Result<Arc<Events>> {
        let loses_events = |lost: &&LostFile| !lost.has_rows() || lost.doubt.is_some();
        match self.lost.iter().find(loses_events).filter(|_| on_error == OnError::Raise) {
            Some(lost) => Err(lost.to_error()),
            None => Ok(self.events.clone()),
        }
    }
}

impl AcidTable {
    /// Opens the directory of a table or partition. `planned`: the fingerprint that the directory had when
    /// its splits were made, and that it must still have. `complete`: whether rows that are missing are damage.
    pub(crate) fn open(
        folder: &dyn Folder,
        ids: Option<Arc<WriteIds>>,
        complete: Option<bool>,
        options: &Options,
        planned: Option<u64>,
    ) -> Result<Self> {
        let files = state::current_files(folder, ids.as_deref())?;
        let state = state::fingerprint(&files);
        if planned.is_some_and(|planned| planned != state) {
            return Err(Error::from(std::io::Error::other(
                "the files of the transactional table have changed since its splits were made, as after a \
                 compaction: read the table again",
            )));
        }
        // A base may have no files, since all of its rows were deleted.
        let base = match files.iter().find(|file| file.is_in_base()) {
            Some(file) => Some(file.last_write),
            None => state::base_write(folder, ids.as_deref())?,
        };
        let compacted = state::has_compaction(folder, &files)?;
        let unstated = unstated::unstated_rows(folder, &files, options)?;
        Ok(Self {
            state,
            base,
            complete,
            compacted,
            unstated,
            ..Self::of_files(folder, files, ids, options)?
        })
    }

    /// Builds the table from the given files of a directory.
    fn of_files(
        folder: &dyn Folder,
        files: Vec<DataFile>,
        ids: Option<Arc<WriteIds>>,
        options: &Options,
    ) -> Result<Self> {
        let open = |data: DataFile| -> Result<OpenFile> {
            let mut source: Arc<dyn ReadAt> = folder.open(&data.path)?;
            check_length(source.as_ref(), data.valid_len)?;
            if let Some(len) = data.valid_len.filter(|len| *len < source.len()) {
                source = Arc::new(Front { source, len });
            }
            let file = OrcFile::open(source, options.clone())?;
            let inserts_only = file.user_metadata(ACID_STATS).is_some_and(inserts_only);
            let splits_updates = file.user_metadata(ACID_VERSION) == Some(b"2");
            let of_acid = file.user_metadata(ACID_STATS).is_some();
            let part = OpenFile { data, file: Arc::new(file), inserts_only, splits_updates };
            part.check_identities(of_acid)?;
            Ok(part)
        };
        let open_named = |data: DataFile| {
            let path = data.path.clone();
            open(data).map_err(|e| e.in_file(path))
        };
        // A file that is being written has no rows and no columns before its first flush.
        let (unflushed, files): (Vec<DataFile>, Vec<DataFile>) =
            files.into_iter().partition(|data| data.valid_len == Some(0));
        let (mut parts, mut lost) = (Vec::new(), Vec::new());
        for data in files {
            match open_named(data.clone()) {
                Ok(part) => parts.push(part),
                Err(e) if Fault::is(&e) => lost.push((data, e)),
                Err(e) => return Err(e),
            }
        }
        let columns = match unflushed.into_iter().next() {
            Some(data) if parts.iter().all(|p| p.data.role != Role::Rows) => {
                let whole = DataFile { valid_len: None, ..data };
                open_named(whole)
                    .within(|| "the columns of a table that has flushed no rows yet")?
                    .row_fields()?
            }
            // No other file states the columns.
            _ if parts.iter().all(|p| p.data.role != Role::Rows) => match lost.into_iter().next() {
                Some((_, e)) => return Err(e),
                None => {
                    // If no write is visible, the columns are taken from files of other writes.
                    let others = state::current_files(folder, None)?;
                    let newest = others.into_iter().rev().find(|data| data.role == Role::Rows);
                    let columns = newest.map(|data| {
                        let valid_len = data.valid_len.filter(|len| *len > 0);
                        open_named(DataFile { valid_len, ..data })?.row_fields()
                    });
                    let columns = columns.transpose()?;
                    return Self::new(parts, Vec::new(), columns.unwrap_or_default(), ids);
                }
            },
            _ => Vec::new(),
        };
        Self::new(parts, lost, columns, ids)
    }

    /// Builds the table from the files that [`state::current_files`] lists, and from the files that cannot be
    /// opened. `columns` are used if no file has rows.
    fn new(
        parts: Vec<OpenFile>,
        lost: Vec<(DataFile, Error)>,
        columns: Vec<FieldRef>,
        ids: Option<Arc<WriteIds>>,
    ) -> Result<Self> {
        let is_split = |data: &DataFile| data.role == Role::Deletes;
        let splits_updates = parts.iter().any(|p| p.splits_updates || is_split(&p.data))
            || lost.iter().any(|(data, _)| is_split(data));
        let lost: Vec<LostFile> =
            lost.into_iter().map(|(data, e)| LostFile::unopened(data, e, splits_updates)).collect();
        let events_in: Vec<OpenFile> = parts.iter().filter(|p| p.has_events()).cloned().collect();
        let rows: Vec<OpenFile> = parts.into_iter().filter(|p| p.data.role == Role::Rows).collect();
        let schema = table_schema(&rows, columns)?;
        let first_rows = first_rows(&rows, &lost)?;
        let (base, complete, compacted, state, events) = (None, None, false, 0, Mutex::new(None));
        let unstated = Vec::new();
        Ok(Self {
            rows,
            first_rows,
            events_in,
            lost,
            unstated,
            ids,
            base,
            complete,
            compacted,
            state,
            schema,
            events,
        })
    }

    /// Files whose own rows are lost.
    fn lost_rows(&self) -> impl Iterator<Item = &LostFile> {
        self.lost.iter().filter(|file| file.has_rows())
    }

    /// Plans a file that cannot be opened: it has no units, and its loss is recorded.
    fn plan_lost(&self, index: usize, request: &PlanRequest) -> Result<Box<dyn Plan>> {
        let lost = index.checked_sub(self.rows.len()).and_then(|at| self.lost_rows().nth(at));
        let Some(lost) = lost else { return self.plan_missing(index, request) };
        if request.scan.on_error == OnError::Raise {
            return Err(lost.to_error());
        }
        request.damage.push(lost.fault.damage.clone());
        Ok(Box::new(NoUnits))
    }

    /// Plans rows that no file has, in a table that must be complete.
    fn plan_missing(&self, index: usize, request: &PlanRequest) -> Result<Box<dyn Plan>> {
        let (known, files) = (self.known()?, self.rows.len() + self.lost_rows().count());
        let missing = if self.complete == Some(true) { known.missing.as_slice() } else { &[] };
        let rows = index.checked_sub(files).and_then(|at| missing.get(at)).ok_or_else(|| {
            let parts = files + missing.len();
            Error::invalid(format!("expected a part below {parts}, found {index}"))
        })?;
        let fault = rows.to_fault();
        if request.scan.on_error == OnError::Raise {
            return Err(fault.to_error());
        }
        request.damage.push(fault.damage);
        Ok(Box::new(NoUnits))
    }

    /// Tells the reader of rows that no file has. Only the events tell of them, which are not read before the rows are.
    fn notify(&self, known: &KnownEvents, log: &DamageLog) {
        if self.complete.is_none() {
            notice(&known.missing).into_iter().for_each(|notice| log.notify(notice));
        }
    }

    /// The rows that `events` name and that no file has.
    fn missing_rows(&self, events: &Events) -> Vec<MissingRows> {
        let files = self.rows.iter().map(|part| &part.data).chain(self.lost.iter().map(|file| &file.data));
        let mut missing = missing_rows(events, files, self.base);
        // The files of writes that are not visible are not read, but visible events may name their rows.
        missing.retain(|rows| self.ids.as_ref().is_none_or(|ids| ids.has(rows.write)));
        missing
    }

    /// Whether this is the split with the first byte of the first file. That split reports the losses that
    /// cannot be assigned to rows.
    fn is_first(&self, split: &Split) -> Result<bool> {
        let Some(first) = self.rows.first().filter(|_| split.part == 0) else { return Ok(false) };
        let splits = first.file.splits(u64::MAX).map_err(|e| e.in_file(first.data.path.clone()))?;
        Ok(splits.first().is_none_or(|own| own.range.start >= split.range.start))
    }

    /// All events, which are read once. Of a damaged file, this has the events that can be read.
    fn known(&self) -> Result<Arc<KnownEvents>> {
        let mut cached = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cached.as_ref() {
            return Ok(known.clone());
        }
        let mut events = Events::new(self.ids.clone());
        let mut lost = self.lost.clone();
        for part in &self.events_in {
            let mut own = Events::new(self.ids.clone());
            match part.read_events(OnError::Raise, &mut own) {
                Ok(()) => {}
                Err(e) if Fault::is(&e) => {
                    match part.read_events(OnError::Skip, &mut own) {
                        // What follows the damage in the file may cause an error that `on_error` never
                        // tolerates.
                        Err(e) if !Fault::is(&e) => return Err(e.in_file(part.data.path.clone())),
                        _ => {}
                    }
                    lost.push(LostFile::events_of(part, e, &own));
                }
                Err(e) => return Err(e.in_file(part.data.path.clone())),
            }
            events.extend(own);
        }
        lost.iter().filter_map(|file| file.doubt).for_each(|doubt| events.doubt(doubt));
        events.complete();
        let missing = self.missing_rows(&events);
        let known = Arc::new(KnownEvents { events: Arc::new(events), lost, missing });
        *cached = Some(known.clone());
        Ok(known)
    }

    /// Whether events refer to rows of this file, which has no ACID columns, by number. The rows of the file
    /// must then be counted.
    fn needs_row_numbers(part: &OpenFile, events: &Events) -> bool {
        let properties = [part.data.bucket, events::bucket_property(part.data.bucket, part.data.statement)];
        !part.is_acid() && properties.iter().any(|p| events.has_any(part.data.write_id, *p))
    }
}

/// Fails if a file has no bytes, which no writer of ACID files leaves behind, or fewer than its side file states.
fn check_length(source: &dyn ReadAt, flushed: Option<u64>) -> Result<()> {
    let expected = match flushed {
        Some(flushed) if flushed > source.len() => {
            format!("at least the {flushed} bytes that its side file states")
        }
        _ if source.is_empty() => "an ORC file, which has a footer even without rows".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::corrupt(format!("expected {expected}, found {} bytes", source.len())).at(0).within("file"))
}

/// Whether `inserts,updates,deletes` states that there are only inserts.
fn inserts_only(stats: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(stats) else { return false };
    matches!(text.split(',').collect::<Vec<_>>().as_slice(), [_, "0", "0"])
}

/// Whether the columns have the names that Hive wrote before 2.0.
fn are_placeholders(fields: &[FieldRef]) -> bool {
    !fields.is_empty() && coldframe_orc::are_placeholders(fields.iter().map(|field| field.name()))
}

/// The columns of the newest file. Older files may lack some of these columns.
fn table_schema(rows: &[OpenFile], columns: Vec<FieldRef>) -> Result<SchemaRef> {
    let newest = rows.iter().enumerate().max_by_key(|(i, p)| (p.data.write_id, *i));
    let fields = match newest {
        Some((_, newest)) => newest.row_fields()?,
        None => columns,
    };
    for part in rows {
        let own = part.row_fields()?;
        if are_placeholders(&own) != are_placeholders(&fields) {
            return Err(Error::unsupported(
                "a table where some files have column names and others have `_col0`, `_col1` ..",
            )
            .in_file(part.data.path.clone()));
        }
        for field in own {
            let same = fields.iter().find(|f| f.name() == field.name());
            if let Some(other) = same.filter(|f| f.data_type() != field.data_type()) {
                let (name, actual, expected) = (field.name(), field.data_type(), other.data_type());
                return Err(Error::unsupported(format!(
                    "a table whose column `{name}` changed its type: expected {expected}, found {actual}"
                ))
                .in_file(part.data.path.clone()));
            }
        }
    }
    let fields: Vec<FieldRef> =
        fields.into_iter().map(|f| Arc::new(f.as_ref().clone().with_nullable(true))).collect();
    Ok(Arc::new(Schema::new(fields)))
}

/// The number of each file's first row. Plain files of one write and bucket continue their row numbers from
/// file to file; after a lost file the numbers are unknown.
fn first_rows(rows: &[OpenFile], lost: &[LostFile]) -> Result<Vec<Option<i64>>> {
    let key = |data: &DataFile| (data.write_id, data.bucket, data.statement);
    let is_behind = |data: &DataFile| {
        lost.iter().any(|file| file.has_rows() && key(&file.data) == key(data) && file.data.path < data.path)
    };
    let mut next: BTreeMap<(i64, i32, i32), i64> = BTreeMap::new();
    rows.iter()
        .map(|part| {
            if part.is_acid() {
                return Ok(Some(0));
            }
            if is_behind(&part.data) {
                return Ok(None);
            }
            let next = next.entry(key(&part.data)).or_default();
            let first = *next;
            let count = part.file.row_count().and_then(|n| i64::try_from(n).ok()).ok_or_else(|| {
                Error::corrupt("expected a number of rows, found none").in_file(part.data.path.clone())
            })?;
            *next = first
                .checked_add(count)
                .ok_or_else(|| Error::corrupt("expected at most 2^63 rows, found more"))?;
            Ok(Some(first))
        })
        .collect()
}

impl TableFile for AcidTable {
    fn format(&self) -> &'static str {
        "orc"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn has_placeholder_names(&self) -> bool {
        are_placeholders(self.schema.fields())
    }

    /// The number is known only if the table has nothing but inserts and all writes are visible.
    fn row_count(&self) -> Option<u64> {
        if !self.events_in.is_empty() || !self.lost.is_empty() || self.ids.is_some() {
            return None;
        }
        self.rows.iter().try_fold(0u64, |sum, p| sum.checked_add(p.file.row_count()?))
    }

    fn metadata(&self) -> Result<Value> {
        let file = |part: &OpenFile| {
            Value::map([
                ("path", Value::from(part.data.path.as_str())),
                ("write_id", part.data.write_id.into()),
                ("bucket", part.data.bucket.into()),
                ("identities", part.is_acid().into()),
                ("rows", part.file.row_count().into()),
                ("valid_bytes", part.data.valid_len.into()),
            ])
        };
        let lost = |file: &LostFile| {
            Value::map([
                ("path", Value::from(file.data.path.as_str())),
                ("reason", Value::from(file.fault.damage.reason.as_str())),
            ])
        };
        Ok(Value::map([
            ("layout", Value::from("Hive ACID")),
            ("compacted", self.compacted.into()),
            ("files", Value::List(self.rows.iter().map(file).collect())),
            ("event_files", Value::List(self.events_in.iter().map(file).collect())),
            ("lost_files", Value::List(self.lost.iter().map(lost).collect())),
            ("events", self.known()?.events(OnError::Skip)?.len().into()),
        ]))
    }

    fn notices(&self) -> Result<Vec<Notice>> {
        let is_reported = self.complete != Some(false);
        let unstated = self.unstated.iter().filter(|_| is_reported).map(UnstatedRows::notice);
        let lost = self.lost.iter().filter(|_| self.complete != Some(true)).map(|file| &file.fault.damage);
        Ok(unstated.chain(Damage::notice(lost)).collect())
    }

    fn notices_by_reading(&self) -> Result<Vec<Notice>> {
        if self.complete.is_some() || self.events_in.is_empty() {
            return Ok(Vec::new());
        }
        Ok(notice(&self.known()?.missing).into_iter().collect())
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        // This ignores lost events; the scan decides whether they are an error.
        let known = self.known()?;
        let events = &known.events;
        let mut all = Vec::new();
        for (number, part) in self.rows.iter().enumerate() {
            let number =
                u32::try_from(number).map_err(|_| Error::unsupported("a table of more than 2^32 files"))?;
            // Rows that are identified by number must be counted from the first row of the file.
            let target = if Self::needs_row_numbers(part, events) { u64::MAX } else { target };
            let splits = part.file.splits(target).map_err(|e| e.in_file(part.data.path.clone()))?;
            let rows_known =
                events.is_empty() && known.lost.is_empty() && part.inserts_only && self.ids.is_none();
            all.extend(splits.into_iter().map(|s| Split {
                part: number,
                range: s.range,
                rows: s.rows.filter(|_| rows_known),
            }));
        }
        for (number, file) in (self.rows.len()..).zip(self.lost_rows()) {
            let part =
                u32::try_from(number).map_err(|_| Error::unsupported("a table of more than 2^32 files"))?;
            all.push(Split { part, range: 0..file.data.len, rows: None });
        }
        let missing = if self.complete == Some(true) { known.missing.len() } else { 0 };
        let first = self.rows.len() + self.lost_rows().count();
        for number in first..first + missing {
            let part =
                u32::try_from(number).map_err(|_| Error::unsupported("a table of more than 2^32 files"))?;
            all.push(Split { part, range: 0..1, rows: None });
        }
        Ok(all)
    }

    fn recorded(&self, splits: &[Split]) -> Result<Vec<Vec<Piece>>> {
        Ok(vec![vec![(self.state, Bytes::new())]; splits.len()])
    }

    fn byte_split(&self, _bytes: std::ops::Range<u64>) -> Result<Split> {
        Err(Split::not_of_bytes())
    }

    fn decodes_views(&self) -> bool {
        true
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        // A table without a visible write has no splits. An empty split is used to get its schema.
        if self.rows.is_empty() && split.range.is_empty() {
            self.notify(self.known()?.as_ref(), &request.damage);
            return Ok(Box::new(NoUnits));
        }
        let index = usize::try_from(split.part).unwrap_or(usize::MAX);
        let (Some(part), Some(first_row)) = (self.rows.get(index), self.first_rows.get(index)) else {
            return self.plan_lost(index, request);
        };
        let known = self.known()?;
        self.notify(&known, &request.damage);
        let events = known.events(request.scan.on_error)?;
        if request.scan.on_error != OnError::Raise && self.is_first(split)? {
            let deletes = known.lost.iter().filter(|file| file.data.role == Role::Deletes);
            deletes.for_each(|file| request.damage.push(file.fault.damage.clone()));
        }
        let (rows, numbered) = match (part.is_acid(), Self::needs_row_numbers(part, &events), first_row) {
            (true, ..) => (Rows::Identified, true),
            (false, true, Some(first)) => (Rows::Counted { next: *first }, true),
            (false, true, None) => (Rows::AllLive, false),
            (false, false, _) => (Rows::AllLive, true),
        };
        let plan = AcidPlan::new(part, split, request, events, (rows, numbered));
        Ok(Box::new(plan.map_err(|e| e.in_file(part.data.path.clone()))?))
    }

    fn inspect(&self) -> Result<Node> {
        let mut root = Node::new("ACID table", 0..0);
        let deletes = self.events_in.iter().filter(|p| p.data.role == Role::Deletes);
        for part in self.rows.iter().chain(deletes) {
            let mut node = match part.file.inspect() {
                Err(e) if Fault::is(&e) => Node::new("", 0..part.data.len).with("damage", e.to_string()),
                node => node.within(|| part.data.path.clone())?,
            };
            shift(&mut node, root.bytes.end);
            root.bytes.end = node.bytes.end;
            node.name.clone_from(&part.data.path);
            root.push(node);
        }
        for file in self.lost.iter().filter(|file| file.data.len > 0) {
            let mut node = Node::new(format!("{} (cannot be opened)", file.data.path), 0..file.data.len);
            shift(&mut node, root.bytes.end);
            root.bytes.end = node.bytes.end;
            root.push(node);
        }
        Ok(root)
    }

    fn proof(&self) -> Proof {
        self.rows.first().map_or_else(Proof::default, |part| part.file.proof())
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        let named = |path: &str, d: Damage| Damage { structure: format!("{path}: {}", d.structure), ..d };
        let known = self.known()?;
        let mut all: Vec<Damage> = known.lost.iter().map(|file| file.fault.damage.clone()).collect();
        if self.complete == Some(true) {
            all.extend(known.missing.iter().map(|rows| rows.to_fault().damage));
        }
        let deletes = self.events_in.iter().filter(|p| p.data.role == Role::Deletes);
        for part in self.rows.iter().chain(deletes) {
            match part.file.verify_structure() {
                Ok(damage) => all.extend(damage.into_iter().map(|d| named(&part.data.path, d))),
                Err(e) if Fault::is(&e) => {
                    all.push(Damage::from_error(&e.within(part.data.path.clone()), 0..part.data.len, None));
                }
                Err(e) => return Err(e.within(part.data.path.clone())),
            }
        }
        Ok(all)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Shifts the offsets of a file's tree, so that it comes after the trees of the previous files.
fn shift(node: &mut Node, by: u64) {
    node.bytes = node.bytes.start.saturating_add(by)..node.bytes.end.saturating_add(by);
    node.children.iter_mut().for_each(|child| shift(child, by));
}
