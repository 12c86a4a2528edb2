//! A table or partition directory as its live rows: base, insert deltas and originals, without what was deleted.
//!
//! ```text
//! ACID file   struct<operation int, originalTransaction bigint, bucket int, rowId bigint, currentTransaction bigint, row struct<..>>
//! plain file  struct<..>: write id and bucket by its path, rowId by counting
//! ```

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::{FieldRef, Schema, SchemaRef};
use coldframe_core::{
    Damage, DamageLog, Error, ErrorContext, ErrorKind, Node, OnError, Op, Plan, PlanRequest, Predicate,
    Result, Scan, ScanReader, Split, TableFile, Value,
};

use coldframe_core::ReadAt;
use coldframe_core::io::Folder;
use coldframe_orc::{Front, Options, OrcFile};

use crate::events::{self, Events, IDENTITY};
use crate::part::Part;
use crate::scan::{AcidPlan, Rows};
use crate::state::{self, DataFile, Role};
use crate::write_ids::WriteIds;

/// The user metadata in which Hive's writer counts `inserts,updates,deletes`.
pub(crate) const ACID_STATS: &str = "hive.acid.stats";

/// The user metadata in which Hive's writer says which kind of deltas it writes.
pub(crate) const ACID_VERSION: &str = "hive.acid.version";

/// A table directory.
#[derive(Debug)]
pub(crate) struct AcidTable {
    /// Files with rows, in the order of their writes.
    rows: Vec<Part>,
    /// For each of them, the number of its first row if it is plain.
    first_rows: Vec<i64>,
    /// Files with events.
    events_in: Vec<Part>,
    /// Which writes count; all without.
    ids: Option<Arc<WriteIds>>,
    schema: SchemaRef,
    events: Mutex<Option<Arc<Known>>>,
}

/// What the files say of events, and which of them cannot be read to the end.
#[derive(Debug)]
struct Known {
    events: Arc<Events>,
    lost: Vec<LostEvents>,
}

/// Why a file's events are not all known.
#[derive(Debug)]
struct LostEvents {
    damage: Damage,
    /// The file.
    part: Part,
    /// Whether rows of other files may be there only for want of them.
    uncovers: bool,
}

impl LostEvents {
    fn of(part: &Part, error: &Error) -> Self {
        let at = error.offset().unwrap_or_default();
        Self {
            damage: Damage::from_error(error, at..at, None),
            part: part.clone(),
            uncovers: part.can_uncover(),
        }
    }

    fn to_error(&self, on_error: OnError) -> Error {
        // As it was met, with its kind; what nobody knows is damage where damage is passed over.
        let met = read_events(&self.part, OnError::Raise, &mut Events::default()).err();
        let met = met.filter(|e| on_error == OnError::Raise || e.is_damage());
        met.unwrap_or_else(|| self.damage.to_error()).in_file(self.part.data.path.clone())
    }
}

impl Known {
    /// The events, if what is lost of them may be passed over.
    fn events(&self, on_error: OnError) -> Result<Arc<Events>> {
        let matters = |lost: &&LostEvents| lost.uncovers || on_error == OnError::Raise;
        match self.lost.iter().find(matters) {
            Some(lost) => Err(lost.to_error(on_error)),
            None => Ok(self.events.clone()),
        }
    }
}

impl AcidTable {
    /// The live rows of a table or partition directory.
    pub(crate) fn open(folder: &dyn Folder, ids: Option<Arc<WriteIds>>, options: &Options) -> Result<Self> {
        let open = |data: DataFile| -> Result<Part> {
            let mut source: Arc<dyn ReadAt> = folder.open(&data.path)?;
            if let Some(len) = data.valid_len.filter(|len| *len < source.len()) {
                source = Arc::new(Front { source, len });
            }
            let file = OrcFile::open(source, options.clone())?;
            let inserts_only = file.user_metadata(ACID_STATS).is_some_and(inserts_only);
            let splits_updates = file.user_metadata(ACID_VERSION) == Some(b"2");
            Ok(Part { data, file: Arc::new(file), inserts_only, splits_updates })
        };
        let open_named = |data: DataFile| {
            let path = data.path.clone();
            open(data).map_err(|e| e.in_file(path))
        };
        // Of a file that is being written to nothing counts before the first flush: it has no rows and no columns yet.
        let (unflushed, files): (Vec<DataFile>, Vec<DataFile>) =
            state::current_files(folder, ids.as_deref())?
                .into_iter()
                .partition(|data| data.valid_len == Some(0));
        let parts: Vec<Part> = files.into_iter().map(open_named).collect::<Result<_>>()?;
        let columns = match unflushed.into_iter().next() {
            Some(data) if parts.iter().all(|p| p.data.role != Role::Rows) => {
                let whole = DataFile { valid_len: None, ..data };
                open_named(whole)
                    .within(|| "the columns of a table of which nothing is flushed")?
                    .row_fields()?
            }
            _ => Vec::new(),
        };
        Self::new(parts, columns, ids)
    }

    /// Of files as [`state::current_files`] names them; with `columns` if none of them has rows.
    pub(crate) fn new(parts: Vec<Part>, columns: Vec<FieldRef>, ids: Option<Arc<WriteIds>>) -> Result<Self> {
        let events_in: Vec<Part> = parts.iter().filter(|p| p.has_events()).cloned().collect();
        let rows: Vec<Part> = parts.into_iter().filter(|p| p.data.role == Role::Rows).collect();
        let schema = table_schema(&rows, columns)?;
        let first_rows = first_rows(&rows)?;
        Ok(Self { rows, first_rows, events_in, ids, schema, events: Mutex::new(None) })
    }

    /// All events, read once: of damaged files those that are left.
    fn known(&self) -> Result<Arc<Known>> {
        let mut held = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = held.as_ref() {
            return Ok(known.clone());
        }
        let mut events = Events::new(self.ids.clone());
        let mut lost = Vec::new();
        for part in &self.events_in {
            match read_events(part, OnError::Raise, &mut events) {
                Ok(()) => {}
                Err(e) if e.is_damage() || matches!(e.kind(), ErrorKind::Unsupported(_)) => {
                    lost.push(LostEvents::of(part, &e));
                    match read_events(part, OnError::Skip, &mut events) {
                        // What is left behind the damage may be damaged in a way that nothing passes over.
                        Err(e) if !e.is_damage() => return Err(e.in_file(part.data.path.clone())),
                        _ => {}
                    }
                }
                Err(e) => return Err(e.in_file(part.data.path.clone())),
            }
        }
        events.complete();
        let known = Arc::new(Known { events: Arc::new(events), lost });
        *held = Some(known.clone());
        Ok(known)
    }

    /// Whether a plain file's rows have to be counted to know them.
    fn counts_rows(part: &Part, events: &Events) -> bool {
        let properties = [part.data.bucket, events::bucket_property(part.data.bucket, part.data.statement)];
        !part.is_acid() && properties.iter().any(|p| events.touch(part.data.write_id, *p))
    }
}

/// Whether `inserts,updates,deletes` says that there are only the first.
fn inserts_only(stats: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(stats) else { return false };
    matches!(text.split(',').collect::<Vec<_>>().as_slice(), [_, "0", "0"])
}

/// Reads the updates and deletes of one file.
fn read_events(part: &Part, on_error: OnError, events: &mut Events) -> Result<()> {
    if !part.is_acid() {
        let columns = part.file.schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>();
        return Err(Error::corrupt(format!(
            "expected the columns {} and row of a file of deletes, found {}",
            IDENTITY.join(", "),
            columns.join(", ")
        )));
    }
    let insert: arrow_array::ArrayRef = Arc::new(arrow_array::Int32Array::from(vec![events::INSERT]));
    let scan = Scan {
        columns: Some(IDENTITY.iter().map(|name| (*name).to_owned()).collect()),
        predicate: Some(Predicate::compare("operation", Op::Ne, insert)),
        on_error,
        ..Scan::default()
    };
    for split in part.file.splits(u64::MAX)? {
        let mut reader = ScanReader::try_new(part.file.as_ref(), &scan, &split, DamageLog::default())?;
        while let Some(batch) = reader.next_batch()? {
            events.add(&batch, part.data.statement)?;
        }
    }
    Ok(())
}

/// The columns of the newest file; older files may lack some of them.
fn table_schema(rows: &[Part], columns: Vec<FieldRef>) -> Result<SchemaRef> {
    let newest = rows.iter().enumerate().max_by_key(|(i, p)| (p.data.write_id, *i));
    let fields = match newest {
        Some((_, newest)) => newest.row_fields()?,
        None => columns,
    };
    for part in rows {
        for field in part.row_fields()? {
            let same = fields.iter().find(|f| f.name() == field.name());
            if let Some(other) = same.filter(|f| f.data_type() != field.data_type()) {
                let (name, found, expected) = (field.name(), field.data_type(), other.data_type());
                return Err(Error::unsupported(format!(
                    "a table whose column `{name}` changed its type: expected {expected}, found {found}"
                ))
                .in_file(part.data.path.clone()));
            }
        }
    }
    let fields: Vec<FieldRef> =
        fields.into_iter().map(|f| Arc::new(f.as_ref().clone().with_nullable(true))).collect();
    Ok(Arc::new(Schema::new(fields)))
}

/// Plain files of one write and bucket count their rows on, from file to file.
fn first_rows(rows: &[Part]) -> Result<Vec<i64>> {
    let mut next: BTreeMap<(i64, i32, i32), i64> = BTreeMap::new();
    rows.iter()
        .map(|part| {
            if part.is_acid() {
                return Ok(0);
            }
            let next = next.entry((part.data.write_id, part.data.bucket, part.data.statement)).or_default();
            let first = *next;
            let count = part.file.row_count().and_then(|n| i64::try_from(n).ok()).ok_or_else(|| {
                Error::corrupt("expected a number of rows, found none").in_file(part.data.path.clone())
            })?;
            *next = first
                .checked_add(count)
                .ok_or_else(|| Error::corrupt("expected at most 2^63 rows, found more"))?;
            Ok(first)
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

    /// Known where nothing but inserts was written, and all of them count.
    fn row_count(&self) -> Option<u64> {
        if !self.events_in.is_empty() || self.ids.is_some() {
            return None;
        }
        self.rows.iter().try_fold(0u64, |sum, p| sum.checked_add(p.file.row_count()?))
    }

    fn metadata(&self) -> Result<Value> {
        let file = |part: &Part| {
            Value::map([
                ("path", Value::from(part.data.path.as_str())),
                ("write_id", part.data.write_id.into()),
                ("bucket", part.data.bucket.into()),
                ("identities", part.is_acid().into()),
                ("rows", part.file.row_count().into()),
                ("valid_bytes", part.data.valid_len.into()),
            ])
        };
        Ok(Value::map([
            ("layout", Value::from("Hive ACID")),
            ("files", Value::List(self.rows.iter().map(file).collect())),
            ("event_files", Value::List(self.events_in.iter().map(file).collect())),
            ("events", self.known()?.events(OnError::Skip)?.len().into()),
        ]))
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        // Without what is lost of them: whether that may be passed over, a scan says.
        let known = self.known()?;
        let events = &known.events;
        let mut all = Vec::new();
        for (number, part) in self.rows.iter().enumerate() {
            let number =
                u32::try_from(number).map_err(|_| Error::unsupported("a table of more than 2^32 files"))?;
            // Rows that are known by their number are read from the first on.
            let target = if Self::counts_rows(part, events) { u64::MAX } else { target };
            let splits = part.file.splits(target).map_err(|e| e.in_file(part.data.path.clone()))?;
            let rows_known =
                events.is_empty() && known.lost.is_empty() && part.inserts_only && self.ids.is_none();
            all.extend(splits.into_iter().map(|s| Split {
                part: number,
                range: s.range,
                rows: s.rows.filter(|_| rows_known),
            }));
        }
        Ok(all)
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        let index = usize::try_from(split.part).unwrap_or(usize::MAX);
        let (Some(part), Some(first_row)) = (self.rows.get(index), self.first_rows.get(index)) else {
            return Err(Error::invalid(format!(
                "expected a part below {}, found {}",
                self.rows.len(),
                split.part
            )));
        };
        let events = self.known()?.events(request.scan.on_error)?;
        let rows = match (part.is_acid(), Self::counts_rows(part, &events)) {
            (true, _) => Rows::Identified,
            (false, true) => Rows::Counted { next: *first_row },
            (false, false) => Rows::AllLive,
        };
        let plan = AcidPlan::new(part, split, request, events, rows);
        Ok(Box::new(plan.map_err(|e| e.in_file(part.data.path.clone()))?))
    }

    fn inspect(&self) -> Result<Node> {
        let mut root = Node::new("ACID table", 0..0);
        let deletes = self.events_in.iter().filter(|p| p.data.role == Role::Deletes);
        for part in self.rows.iter().chain(deletes) {
            let mut node = part.file.inspect().within(|| part.data.path.clone())?;
            shift(&mut node, root.bytes.end);
            root.bytes.end = node.bytes.end;
            node.name.clone_from(&part.data.path);
            root.push(node);
        }
        Ok(root)
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        let named = |path: &str, d: Damage| Damage { structure: format!("{path}: {}", d.structure), ..d };
        let known = self.known()?;
        let mut all: Vec<Damage> =
            known.lost.iter().map(|l| named(&l.part.data.path, l.damage.clone())).collect();
        let deletes = self.events_in.iter().filter(|p| p.data.role == Role::Deletes);
        for part in self.rows.iter().chain(deletes) {
            let found = part.file.verify_structure().within(|| part.data.path.clone())?;
            all.extend(found.into_iter().map(|d| named(&part.data.path, d)));
        }
        Ok(all)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Moves a file's tree behind the files in front of it.
fn shift(node: &mut Node, by: u64) {
    node.bytes = node.bytes.start.saturating_add(by)..node.bytes.end.saturating_add(by);
    node.children.iter_mut().for_each(|child| shift(child, by));
}
