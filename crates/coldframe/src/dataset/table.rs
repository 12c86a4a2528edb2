//! Many files as one table: which files, which columns, and what is constant in each file.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::{TakeOptions, take_arrays};
use coldframe_core::options::Strings;
use coldframe_core::types::{unify, views};
use coldframe_core::{Error, Fault, Notice, Predicate, Result, Source, arrow_error, scan};

use super::columns::ColumnsBy;
use super::file_entry::FileEntry;
use super::foreign::{self, LeftOut};
use super::fragment::{Fragment, Numbers};
use super::given::{Given, Resolved, TableOptions, resolve};
use super::opening::Opening;
use super::openings::in_parallel;
use super::plan::SplitFile;
use super::storage::{os_path, shown_path};
use super::table_def::{ColumnDef, Columns, FileDef, FileGroup, Origin, Stated, TableDef};
use crate::{File, format_named};

/// How many files stay open at most: for an open file, the bytes that opening it read stay in memory.
const KEPT_OPEN: usize = 256;

/// A file of a table.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) entry: FileEntry,
    pub(super) file: Option<File>,
    pub(super) source: Option<Source>,
    /// The index of its group.
    group: usize,
    /// The rest of its definition: the parts that are not in `entry`.
    def: FileDef,
}

/// What the files of a group have in common.
struct Group {
    opening: Arc<Opening>,
    matching: ColumnsBy,
    stated: Arc<Stated>,
    defaults: Vec<(String, ArrayRef)>,
    constants: RecordBatch,
}

impl Group {
    fn definition(&self) -> FileGroup {
        FileGroup {
            own: self.stated.own.clone(),
            matching: self.matching.clone(),
            conversion: self.stated.conversion,
            defaults: self.defaults.clone(),
            constants: self.constants.clone(),
            row_numbers: self.stated.row_numbers.clone(),
            ..FileGroup::new(self.opening.clone())
        }
    }
}

/// Many files as one table.
#[derive(Clone)]
pub struct Dataset(Arc<Inner>);

struct Inner {
    name: String,
    members: Vec<Member>,
    groups: Vec<Group>,
    /// How files are opened if the table has none.
    opening: Arc<Opening>,
    columns: Columns,
    complete: bool,
    keys: Vec<Field>,
    origin: Origin,
    schema: OnceLock<SchemaRef>,
    /// The index of the file whose columns come first: the first file that can be opened. Set once this is
    /// known.
    lead: AtomicUsize,
    opened: Mutex<HashMap<usize, File>>,
    notices: Mutex<Vec<(String, Notice)>>,
    has_notices: AtomicBool,
    left_out: Vec<LeftOut>,
}

impl Dataset {
    /// Creates the table of some files; folders and patterns are listed.
    pub fn new(given: Vec<Given>, opening: Opening, options: TableOptions) -> Result<Self> {
        let Resolved { def, schema, entries, mut objects, left_out, shown } =
            resolve(given, opening, options)?;
        let mut inner = Inner::of(def);
        for (at, (member, entry)) in inner.members.iter_mut().zip(entries).enumerate() {
            let object = objects.remove(&at).unwrap_or_default();
            (member.entry, member.file, member.source) = (entry, object.file, object.source);
        }
        if let Some(known) = schema {
            let fields = known.fields().iter().cloned();
            let fields = fields.chain(inner.origin.fields().into_iter().map(Arc::new));
            let whole = Schema::new_with_metadata(fields.collect::<Vec<_>>(), known.metadata().clone());
            inner.schema = OnceLock::from(views::laid_out(&whole.into(), Strings::Plain));
        }
        if !left_out.is_empty() {
            inner.notices = Mutex::new(vec![(shown, Notice::LeftOut(foreign::summary(&left_out)))]);
            inner.has_notices = AtomicBool::new(true);
        }
        inner.left_out = left_out;
        Ok(Self(Arc::new(inner)))
    }

    /// The table that a definition describes. Nothing is listed or opened.
    pub fn of(def: TableDef) -> Self {
        Self(Arc::new(Inner::of(def)))
    }

    /// The definition of the table, with its columns; another process that gets it reads the same rows. An error if a file is
    /// an object of this process.
    pub fn definition(&self) -> Result<TableDef> {
        let schema = self.schema()?;
        let origin = self.0.origin.fields();
        let is_further =
            |field: &Field| self.0.keys.iter().chain(&origin).any(|further| further.name() == field.name());
        let stated = |field: &Arc<Field>| {
            let known = self.0.groups.iter().flat_map(|group| group.stated.table.iter());
            let declared = known.into_iter().find(|column| column.name() == field.name());
            ColumnDef { field: field.clone(), declared: declared.and_then(|column| column.declared.clone()) }
        };
        let columns = schema.fields().iter().filter(|field| !is_further(field)).map(stated).collect();
        let mut groups: Vec<FileGroup> = self.0.groups.iter().map(Group::definition).collect();
        for (at, member) in self.0.members.iter().enumerate() {
            if self.is_of_this_process(at) {
                let what = "a definition of a table of objects of this process";
                return Err(Error::unsupported(what).in_file(shown_path(&member.entry.path)));
            }
            if let Some(group) = groups.get_mut(member.group) {
                group.files.push(member.def.clone());
            }
        }
        Ok(TableDef {
            name: self.0.name.clone(),
            columns: Columns::Stated(columns),
            complete: self.0.complete,
            keys: self.0.keys.iter().cloned().map(ColumnDef::new).collect(),
            origin: self.0.origin.clone(),
            groups,
        })
    }

    /// The table's columns: first the columns of the files, then the partition columns. Strings have the plain Arrow
    /// type, even if a request uses views.
    pub fn schema(&self) -> Result<SchemaRef> {
        let made = match self.0.schema.get() {
            Some(known) if self.0.origin == Origin::default() => return Ok(known.clone()),
            Some(known) => known.clone(),
            None => self.columns_of_files()?,
        };
        check_origin(&made, &self.0.origin)?;
        Ok(self.0.schema.get_or_init(|| made).clone())
    }

    fn columns_of_files(&self) -> Result<SchemaRef> {
        let (lead, first) = self.lead()?;
        let own = first.table.schema();
        let whole =
            if self.has_all_columns(&first)? { own.as_ref().clone() } else { self.unified(lead, &first)? };
        let is_partition = |field: &Field| self.0.keys.iter().any(|key| key.name() == field.name());
        let mut fields: Vec<Field> = whole
            .fields()
            .iter()
            .map(|field| field.as_ref().clone())
            .filter(|field| !is_partition(field))
            .collect();
        fields.extend(self.0.keys.iter().cloned());
        fields.extend(self.0.origin.fields());
        Ok(Schema::new_with_metadata(fields, own.metadata().clone()).into())
    }

    /// Whether the table's columns are those of the first file, whatever the other files have.
    fn has_all_columns(&self, first: &File) -> Result<bool> {
        if self.0.members.len() == 1 || self.0.columns == Columns::OfFirst {
            return Ok(true);
        }
        let is_given = self.opening().options.schema.is_some();
        Ok(is_given && format_named(first.table.format())?.capabilities().needs_schema)
    }

    fn unified(&self, lead: usize, first: &File) -> Result<Schema> {
        let others: Vec<usize> = (0..self.len()).filter(|at| *at != lead).collect();
        let this = self.clone();
        let opened = in_parallel(others.len(), move |at| match others.get(at) {
            Some(at) => this.open_or_leave(*at),
            None => Ok(None),
        })?;
        let mut all = vec![(first.path.clone(), first.table.schema().clone())];
        all.extend(opened.into_iter().flatten().map(|file| (file.path.clone(), file.table.schema().clone())));
        unify(all.iter().map(|(path, schema)| (&**path, schema.as_ref())), None)
    }

    /// Opens a file. `None` if it cannot be opened; the error is then reported when its rows are requested.
    pub(super) fn open_or_leave(&self, at: usize) -> Result<Option<File>> {
        match self.open(at) {
            Ok(file) => Ok(Some(file)),
            Err(e) if Fault::is(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The first file that can be opened, and its number; the error of the first file if none can be opened.
    pub fn lead(&self) -> Result<(usize, File)> {
        let mut failed = None;
        for at in self.0.lead.load(Ordering::Relaxed)..self.len() {
            match self.open(at) {
                Ok(file) => {
                    self.0.lead.store(at, Ordering::Relaxed);
                    return Ok((at, file));
                }
                Err(e) if Fault::is(&e) => failed = failed.or(Some(e)),
                Err(e) => return Err(e),
            }
        }
        Err(failed.unwrap_or_else(|| Error::not_found("no files")))
    }

    /// Opens the first `count` files in parallel, so that unsupported content is reported now. Damaged files
    /// are reported when their rows are requested, unless no file can be opened.
    pub fn open_first(&self, count: usize) -> Result<()> {
        self.lead()?;
        let this = self.clone();
        in_parallel(self.len().min(count), move |at| match this.open(at) {
            Err(e) if !e.is_damage() => Err(e),
            _ => Ok(()),
        })?;
        Ok(())
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.0.members.len()
    }

    /// Whether the table has no files. A listing without files is an error, but a definition may have none.
    pub fn is_empty(&self) -> bool {
        self.0.members.is_empty()
    }

    /// A file as it was listed.
    pub fn entry(&self, at: usize) -> Option<&FileEntry> {
        self.0.members.get(at).map(|member| &member.entry)
    }

    /// Whether a file was given as an object of this process, so that its path is only a name.
    pub fn is_of_this_process(&self, at: usize) -> bool {
        self.0.members.get(at).is_some_and(|member| member.file.is_some() || member.source.is_some())
    }

    /// The files of other kinds that were listed but are not read.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.0.left_out
    }

    /// The columns that come from the names of folders.
    pub fn partitions(&self) -> &[Field] {
        &self.0.keys
    }

    /// The columns that say where a row comes from.
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// A file's values of the partition columns and of other columns that are constant in it, without its path.
    pub fn constants(&self, at: usize) -> Result<Vec<(String, ArrayRef)>> {
        let member = self.member(at)?;
        let Some(group) = self.0.groups.get(member.group) else { return Ok(Vec::new()) };
        member.def.constants_in(&group.constants)
    }

    /// The values of the partition columns: a row for each file.
    pub fn partition_values(&self) -> Result<RecordBatch> {
        let schema = Arc::new(Schema::new(self.0.keys.clone()));
        let names: Vec<&str> = self.0.keys.iter().map(|key| key.name().as_str()).collect();
        let mut batches = Vec::with_capacity(self.0.groups.len());
        for (number, group) in self.0.groups.iter().enumerate() {
            let rows = self.0.members.iter().filter(|member| member.group == number);
            let rows: UInt32Array = rows.map(|member| Some(member.def.constants)).collect();
            let places = names.iter().map(|name| group.constants.schema_ref().index_of(name));
            let places = places.collect::<Result<Vec<_>, _>>().map_err(arrow_error)?;
            let of_keys = group.constants.project(&places).map_err(arrow_error)?;
            let checked = Some(TakeOptions { check_bounds: true });
            let taken = take_arrays(of_keys.columns(), &rows, checked).map_err(arrow_error)?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            let batch = RecordBatch::try_new_with_options(schema.clone(), taken, &options);
            batches.push(batch.map_err(arrow_error)?);
        }
        concat_batches(&schema, &batches).map_err(arrow_error)
    }

    /// How the table's first files are opened.
    pub fn opening(&self) -> &Arc<Opening> {
        self.0.groups.first().map_or(&self.0.opening, |group| &group.opening)
    }

    /// How a file is opened.
    pub fn opening_of(&self, at: usize) -> &Arc<Opening> {
        let group = self.0.members.get(at).and_then(|member| self.0.groups.get(member.group));
        group.map_or(&self.0.opening, |group| &group.opening)
    }

    /// Opens a file. The first files that are opened stay open.
    pub fn open(&self, at: usize) -> Result<File> {
        let member = self.member(at)?;
        if let Some(file) = &member.file {
            return Ok(file.clone());
        }
        let opened = || self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = opened().get(&at) {
            return Ok(file.clone());
        }
        let source = match &member.source {
            Some(source) => source.clone(),
            None => self
                .opening_of(at)
                .storage
                .source(&os_path(&member.entry.path), member.entry.known.as_ref())?,
        };
        let file = self.opening_of(at).open_stated(source, Vec::new(), member.def.rows)?;
        self.note(&file)?;
        let mut kept = opened();
        if kept.len() < KEPT_OPEN {
            kept.insert(at, file.clone());
        }
        Ok(file)
    }

    fn note(&self, file: &File) -> Result<()> {
        let notices = file.table.notices().map_err(|e| file.named(e))?;
        if !notices.is_empty() {
            let mut all = self.0.notices.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(notices.into_iter().map(|notice| (file.path.to_string(), notice)));
            self.0.has_notices.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Returns the notices about files that were opened since the last call, with the files' paths.
    pub fn take_notices(&self) -> Vec<(String, Notice)> {
        if !self.0.has_notices.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.0.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn member(&self, at: usize) -> Result<&Member> {
        self.0
            .members
            .get(at)
            .ok_or_else(|| Error::invalid(format!("file {at} of a table of {} files", self.len())))
    }

    /// How a file maps to the table.
    pub fn fragment(&self, at: usize) -> Result<Fragment> {
        let member = self.member(at)?;
        let lacking = || Error::invalid(format!("expected a group of files for file {at}, found none"));
        let group = self.0.groups.get(member.group).ok_or_else(lacking)?;
        let own = &member.def.defaults;
        let of_all = group.defaults.iter();
        let of_all = of_all.filter(|(name, _)| own.iter().all(|(known, _)| known != name));
        let mut constants = self.constants(at)?;
        if let Some(name) = &self.0.origin.file_path {
            let path: ArrayRef = Arc::new(StringArray::from(vec![member.entry.path.as_str()]));
            constants.push((name.clone(), path));
        }
        Ok(Fragment {
            constants,
            defaults: own.iter().chain(of_all).cloned().collect(),
            by: group.matching.clone(),
            complete: self.0.complete,
            stated: group.stated.clone(),
            deletes: member.def.deletes.clone(),
            first_row: member.def.first_row,
            rows: member.def.rows,
            ..Fragment::new(self.schema()?)
        })
    }

    /// The files that may have rows that pass a filter. Only their constants are considered.
    pub fn matching(&self, predicate: Option<&Predicate>) -> Result<Vec<usize>> {
        let has_constants = |group: &Group| group.constants.num_columns() > 0;
        if predicate.is_none() || !self.0.groups.iter().any(has_constants) {
            return Ok((0..self.len()).collect());
        }
        let mut fragment = Fragment::new(self.schema()?);
        let (mut matching, mut last) = (Vec::new(), None);
        for (at, member) in self.0.members.iter().enumerate() {
            // The files of a partition are neighbours.
            let partition = (member.group, member.def.constants);
            let may_match = match last {
                Some((of, may_match)) if of == partition => may_match,
                _ => {
                    fragment.constants = self.constants(at)?;
                    fragment.may_match(predicate)?
                }
            };
            last = Some((partition, may_match));
            if may_match {
                matching.push(at);
            }
        }
        Ok(matching)
    }

    /// The number of rows, or of the rows that pass a filter; decodes only the columns that this needs.
    pub fn count(&self, predicate: Option<&Predicate>) -> Result<u64> {
        if let Some(predicate) = predicate.filter(|predicate| self.is_numbered(Some(&[]), Some(predicate))) {
            let scan = self.scan().columns(Vec::<String>::new()).filter(predicate.clone());
            let batches = scan.read()?.map(|batch| Ok(batch.map_err(arrow_error)?.num_rows() as u64));
            return batches.sum();
        }
        let mut rows: u64 = 0;
        for at in self.matching(predicate)? {
            rows = rows.saturating_add(self.count_file(at, predicate)?);
        }
        Ok(rows)
    }

    fn count_file(&self, at: usize, predicate: Option<&Predicate>) -> Result<u64> {
        let file = self.open(at)?;
        let asked = coldframe_core::Scan {
            columns: Some(Vec::new()),
            predicate: predicate.cloned(),
            ..coldframe_core::Scan::default()
        };
        let fragment = Fragment { complete: false, ..self.fragment(at)? };
        let Some(reading) = fragment.reading(file.table.schema(), &asked, &file.path)? else { return Ok(0) };
        if !reading.adaptation.filters() {
            return scan::count(file.table.as_ref(), reading.scan.predicate).map_err(|e| file.named(e));
        }
        let mut rows = 0;
        for split in file.whole()? {
            let mut reader = file.scan(&reading.scan, &split)?;
            while let Some(batch) = reader.next_batch().map_err(|e| file.named(e))? {
                rows += reading.adaptation.adapt(&batch)?.num_rows() as u64;
            }
        }
        Ok(rows)
    }

    /// Whether a request needs the numbers of rows, so that all rows must be decoded, in their order.
    pub(super) fn is_numbered(&self, columns: Option<&[String]>, predicate: Option<&Predicate>) -> bool {
        let Some(name) = &self.0.origin.row_index else { return false };
        let mut tested = Vec::new();
        if let Some(predicate) = predicate {
            predicate.columns(&mut tested);
        }
        tested.contains(&name.as_str()) || columns.is_none_or(|columns| columns.contains(name))
    }

    /// What numbers the rows of one pass; `None` if they have no numbers.
    pub(super) fn numbers(&self) -> Option<Numbers> {
        let first = self.0.members.first().and_then(|member| member.def.first_row).unwrap_or(0);
        self.0.origin.row_index.as_ref().map(|name| Numbers::new(name, first))
    }

    /// What the splits of a file have in common. `opened`: the file, if it is open.
    pub(super) fn split_file(&self, at: usize, opened: Option<&File>) -> Result<SplitFile> {
        let (member, mut opening) = (self.member(at)?, self.opening_of(at).clone());
        if let Some(format) = opened.map(|file| file.table.format())
            && opening.format.as_deref() != Some(format)
        {
            opening = Arc::new(Opening { format: Some(format.to_owned()), ..(*opening).clone() });
        }
        Ok(SplitFile {
            path: member.entry.path.clone(),
            opening,
            known: opened.map_or_else(|| member.entry.known.clone(), |file| file.identity.clone()),
            recorded: opened.map(|file| file.recorded.clone()).unwrap_or_default(),
            fragment: Some(self.fragment(at)?),
            source: member.source.clone(),
        })
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<String> =
            self.0.members.iter().take(3).map(|member| shown_path(&member.entry.path)).collect();
        f.debug_struct("Dataset").field("files", &self.len()).field("first", &paths).finish_non_exhaustive()
    }
}

/// Fails if a column of the files has the name of a column that says where a row comes from.
fn check_origin(schema: &Schema, origin: &Origin) -> Result<()> {
    let names = |name: &str| schema.fields().iter().filter(|field| field.name() == name).count();
    match origin.fields().iter().find(|field| names(field.name()) > 1) {
        None => Ok(()),
        Some(field) => Err(Error::schema(format!(
            "the files have a column '{}': file_path and row_index need another name",
            field.name()
        ))),
    }
}

impl Inner {
    fn of(def: TableDef) -> Self {
        let schema = def.schema().map(|known| OnceLock::from(views::laid_out(&known, Strings::Plain)));
        let keys = def.key_fields();
        let table = match &def.columns {
            Columns::Stated(columns) => Arc::new(columns.clone()),
            Columns::Merged | Columns::OfFirst => Arc::default(),
        };
        let (mut members, mut groups) = (Vec::with_capacity(def.len()), Vec::with_capacity(def.groups.len()));
        for group in def.groups {
            let of_group = groups.len();
            members.extend(group.files.into_iter().map(|file| Member {
                entry: FileEntry {
                    path: file.path.clone(),
                    pairs: Vec::new(),
                    known: file.known.clone(),
                    listed: file.listed,
                    rows: file.rows,
                },
                file: None,
                source: None,
                group: of_group,
                def: file,
            }));
            let stated = Stated {
                table: table.clone(),
                own: group.own,
                conversion: group.conversion,
                row_numbers: group.row_numbers,
            };
            groups.push(Group {
                opening: group.opening,
                matching: group.matching,
                stated: Arc::new(stated),
                defaults: group.defaults,
                constants: group.constants,
            });
        }
        Self {
            name: def.name,
            members,
            groups,
            opening: Arc::default(),
            columns: def.columns,
            complete: def.complete,
            keys,
            origin: def.origin,
            schema: schema.unwrap_or_default(),
            lead: AtomicUsize::new(0),
            opened: Mutex::default(),
            has_notices: AtomicBool::new(false),
            notices: Mutex::default(),
            left_out: Vec::new(),
        }
    }
}
