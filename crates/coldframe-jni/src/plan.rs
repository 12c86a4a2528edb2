//! A table of a `load()`, and the tasks that together answer a request; both use [`coldframe::dataset`].

pub mod keys;
pub mod planned;
mod statistics;
mod texts;
mod top;
mod user;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use coldframe::dataset::storage::{os_path, shown_path};
use coldframe::dataset::{
    Dataset, Given, Opening, Part, Plan, ScanBuilder, Split, Stores, TableOptions, discover, pack,
};
use coldframe::load::LoadOptions;
use coldframe::options::Strings;
use coldframe::predicate::Condition;
use coldframe::{Error, Result, SchemaSpec, projection};
use serde_json::Value as Json;

use self::planned::{Planned, Planning};
use crate::aggregate::{Aggregate, Function, Totals};
use crate::filter::{self, Columns};
use crate::folders;
use crate::task::Task;
use crate::types;

/// Maximum number of files that planning opens.
const MAX_OPENED: usize = 64;

/// The files of a `load()` as one table.
#[derive(Clone, Debug)]
pub struct Table {
    dataset: Dataset,
    options: LoadOptions,
    /// The columns in Spark's types.
    spark: SchemaRef,
    /// The names of these columns in the files.
    names: Vec<String>,
    /// The table's columns with the types that the first file has. Filters are judged by them: Spark evaluates a filter
    /// on a column that the user's schema gives another type.
    stored: SchemaRef,
    /// The dataset as it was listed, which has notices of its own.
    listed: Dataset,
}

/// Spark's request to a table.
struct Request {
    /// The columns in Spark's types.
    schema: Schema,
    filters: Vec<String>,
    limit: Option<u64>,
    /// The aggregates to compute instead of returning rows.
    aggregates: Vec<Aggregate>,
    /// Whether each task reads one partition only.
    is_by_partition: bool,
}

impl Request {
    fn parse(request: &[u8]) -> Result<Self> {
        let request = json(request)?;
        let filters = request.get("filters").and_then(Json::as_array);
        Ok(Self {
            schema: types::from_spark(
                request
                    .get("schema")
                    .ok_or_else(|| Error::invalid("expected the columns of a request, found none"))?,
            )?,
            filters: filters
                .into_iter()
                .flatten()
                .filter_map(|filter| filter.as_str().map(str::to_owned))
                .collect(),
            limit: request.get("limit").and_then(Json::as_u64),
            is_by_partition: request.get("by_partition").and_then(Json::as_bool).unwrap_or(false),
            aggregates: match request.get("aggregates").filter(|asked| !asked.is_null()) {
                None => Vec::new(),
                Some(asked) => Aggregate::parse(asked)
                    .ok_or_else(|| Error::invalid(format!("aggregates that are left to Spark: {asked}")))?,
            },
        })
    }
}

fn json(bytes: &[u8]) -> Result<Json> {
    serde_json::from_slice(bytes).map_err(|why| Error::invalid(format!("a request that is not JSON: {why}")))
}

/// Parses the options and the user's columns from `{"options": {..}, "session": {..}, "schema": .., "zone": ..}`.
/// `session`: options of the store that apply unless the user gives them. `zone`: the time zone of the JVM, in which
/// Spark's readers turn wall clocks into instants.
pub(crate) fn parse_open(request: &[u8]) -> Result<(LoadOptions, Option<Schema>)> {
    let request = json(request)?;
    let given = request.get("options").and_then(Json::as_object).into_iter().flatten();
    let mut given: BTreeMap<String, String> =
        given.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect();
    let user = request.get("schema").filter(|schema| !schema.is_null()).map(types::from_spark).transpose()?;
    if request.get("folders").is_some_and(|folders| !folders.is_null()) {
        given.entry("path".to_owned()).or_default();
    }
    let mut options = LoadOptions::parse(&given, None)?;
    options.open.timestamps_in = request.get("zone").and_then(Json::as_str).map(str::to_owned);
    for (name, text) in request.get("session").and_then(Json::as_object).into_iter().flatten() {
        let text = text.as_str().unwrap_or_default();
        options.storage.entry(name.clone()).or_insert_with(|| text.to_owned());
    }
    Ok((options, user))
}

impl Table {
    /// Opens the table for `{"options": {..}, "schema": ..}`; the schema is the user's, if given.
    pub fn open(request: &[u8]) -> Result<Self> {
        let (options, user) = parse_open(request)?;
        let request = json(request)?;
        match (request.get("folders").filter(|folders| !folders.is_null()), user) {
            (Some(folders), Some(user)) => Self::of_hive(options, folders, user),
            (_, user) => Self::new(options, user),
        }
    }

    /// Opens a table that a Hive metastore defines.
    fn of_hive(options: LoadOptions, folders: &Json, user: Schema) -> Result<Self> {
        let opening = opening(&options);
        let files = folders::files(folders, &opening)?;
        let keys = folders::keys(folders);
        let types = folders::partition_types(&user);
        // Files with column names may lack columns of the table, and may have other columns.
        let has_names = options.format.as_deref() == Some("orc");
        let is_whole = folders::is_whole(folders);
        let table = TableOptions {
            first_only: !has_names,
            // Java declares the texts of these files as bytes.
            schema: has_names.then(|| if is_whole { types.clone() } else { texts::as_bytes(&types, &keys) }),
            partition_types: Some(types),
            ..TableOptions::default()
        };
        let dataset = Dataset::new(files, opening, table)?;
        if is_whole {
            dataset.lead()?;
        } else if has_names {
            // Spark can read some files that this reader cannot. If that is found out now, the table is left
            // to Spark.
            dataset.open_first(MAX_OPENED)?;
        }
        Self::with(dataset, options, Some(user))
    }

    /// Opens the table for some options, with the user's columns.
    pub fn new(options: LoadOptions, user: Option<Schema>) -> Result<Self> {
        Self::over(dataset, options, user)
    }

    /// Like [`Self::new`], for a dataset that the caller makes from the options.
    pub fn over(
        make_dataset: impl Fn(&LoadOptions) -> Result<Dataset>,
        mut options: LoadOptions,
        user: Option<Schema>,
    ) -> Result<Self> {
        let mut dataset = make_dataset(&options)?;
        if options.open.timestamps_in.is_some()
            && let Some(user) = &user
            && user::wants_wall_clocks(user, &dataset)?
        {
            options.open.timestamps_in = None;
            dataset = make_dataset(&options)?;
        }
        if let Some(typed) =
            user.as_ref().map(|user| user::types_of_files(&dataset, &options, user)).transpose()?.flatten()
        {
            options.open.schema = Some(SchemaSpec::Arrow(typed));
            dataset = make_dataset(&options)?;
        }
        let Some(user) = user else { return Self::with(dataset, options, None) };
        let listed = dataset.clone();
        let (dataset, stored) = user::read_as(dataset, &options, &user)?;
        Ok(Self { stored, listed, ..Self::with(dataset, options, Some(user))? })
    }

    fn with(dataset: Dataset, options: LoadOptions, user: Option<Schema>) -> Result<Self> {
        let files = dataset.schema()?;
        let (names, spark) = match (user, &options.columns) {
            (Some(user), _) => {
                (user::resolve(user.fields().iter().map(|field| field.name().as_str()), &files)?, user)
            }
            (None, Some(columns)) => {
                let names = user::resolve(columns.iter().map(String::as_str), &files)?;
                let fields = names.iter().filter_map(|name| Some(files.field_with_name(name).ok()?.clone()));
                let spark = types::plain_schema(&Schema::new(fields.collect::<Vec<_>>()))?;
                (names, spark)
            }
            (None, None) => {
                let names = files.fields().iter().map(|field| field.name().clone()).collect();
                (names, types::plain_schema(&files)?)
            }
        };
        Ok(Self { listed: dataset.clone(), dataset, options, spark: spark.into(), names, stored: files })
    }

    /// The table's name in plans, without secrets.
    pub fn name(&self) -> String {
        let paths = self.options.paths.iter();
        let shown: Vec<String> = paths.take(3).map(|path| coldframe::store::shown(path)).collect();
        let more = if self.options.paths.len() > shown.len() { ", .." } else { "" };
        format!("{}{more}", shown.join(", "))
    }

    /// The notices for the table's user since the last call.
    pub fn notices(&self) -> Vec<String> {
        let notices = self.listed.take_notices().into_iter().chain(self.dataset.take_notices());
        let texts = notices.map(|(path, notice)| format!("{}: {}", shown_path(&path), notice.text()));
        texts.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The columns, as Spark's JSON.
    pub fn spark_schema(&self) -> Result<String> {
        Ok(types::to_spark(&self.spark)?.to_string())
    }

    /// For each filter of a JSON list of texts, whether this library evaluates it.
    pub fn takes(&self, request: &[u8]) -> Result<Vec<bool>> {
        let filters = json(request)?;
        let filters = filters.as_array().ok_or_else(|| Error::invalid("expected a list of filters"))?;
        let columns = self.columns();
        let takes =
            |filter: &Json| filter.as_str().is_some_and(|text| filter::condition(text, columns).is_some());
        Ok(filters.iter().map(takes).collect())
    }

    fn columns(&self) -> Columns<'_> {
        Columns { spark: &self.spark, files: &self.stored }
    }

    fn condition(&self, request: &Request) -> Result<Option<Condition>> {
        filter::all(&request.filters, self.options.filter.as_deref(), self.columns())
    }

    /// The name that a column of Spark has in the files.
    fn name_of(&self, wanted: &str) -> Result<String> {
        let at = self.spark.fields().iter().position(|field| field.name() == wanted);
        let name = at.and_then(|at| self.names.get(at)).cloned();
        name.ok_or_else(|| Error::schema(format!("no column '{wanted}' in the table")))
    }

    fn scan(&self, request: &Request, names: &[String]) -> Result<ScanBuilder> {
        let options = &self.options;
        let scan = self.dataset.scan().columns(names.iter().cloned()).batch_rows(options.batch_rows);
        // Spark's vectors do not support views.
        let scan = scan.strings(Strings::Plain);
        // Spark runs each task on its own thread.
        let mut scan = scan.on_error(options.on_error).threads(1).split_bytes(options.split_bytes);
        // A file that is gone must not be opened by planning if it is to be ignored.
        scan = scan.max_opened(if options.ignore_missing { 0 } else { MAX_OPENED });
        if let Some(condition) = self.condition(request)? {
            scan = scan.filter(condition);
        }
        if let Some(limit) = request.limit {
            scan = scan.limit(limit);
        }
        Ok(scan)
    }

    /// The columns that a request decodes, in Spark's types: the returned columns, or the columns of the
    /// aggregates.
    fn decoded(&self, request: &Request) -> Vec<Field> {
        if request.aggregates.is_empty() {
            return request.schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        }
        let is_wanted = |field: &&Arc<Field>| {
            request.aggregates.iter().any(|aggregate| aggregate.column.as_ref() == Some(field.name()))
        };
        self.spark.fields().iter().filter(is_wanted).map(|field| field.as_ref().clone()).collect()
    }

    /// The columns of the results of some aggregates, as Spark's JSON; `None` if one of them is left to
    /// Spark.
    pub fn aggregates(&self, request: &[u8]) -> Result<Option<String>> {
        let asked = Aggregate::parse(&json(request)?);
        // Bytes of texts are ordered by Spark.
        let is_ordered = |aggregate: &Aggregate| {
            let field = aggregate.column.as_ref().and_then(|name| self.stored.field_with_name(name).ok());
            aggregate.function == Function::Count
                || field.is_none_or(|field| *field.data_type() != DataType::Binary)
        };
        let asked = asked.filter(|all| all.iter().all(is_ordered));
        let answers =
            |all: Vec<Aggregate>| all.iter().map(|aggregate| aggregate.answer(&self.spark)).collect();
        let Some(fields): Option<Vec<Field>> = asked.and_then(answers) else { return Ok(None) };
        Ok(Some(types::to_spark(&Schema::new(fields))?.to_string()))
    }

    /// The tasks that answer a request.
    pub fn plan(&self, request: &[u8]) -> Result<Planning> {
        let request = Request::parse(request)?;
        let (mut names, mut fields) = (Vec::new(), Vec::new());
        let files = self.dataset.schema()?;
        for field in self.decoded(&request) {
            let name = self.name_of(field.name())?;
            // The query may need only some fields of a struct.
            match files.field_with_name(&name) {
                Ok(whole) => {
                    names.extend(projection::paths_to(whole, field.data_type()));
                    let kind = texts::stored(field.data_type(), whole.data_type());
                    fields.push(field.with_name(&name).with_data_type(kind));
                }
                Err(_) => {
                    names.push(name.clone());
                    fields.push(field.with_name(&name));
                }
            }
        }
        let aggregates = request.aggregates.iter().map(|aggregate| {
            let column = aggregate.column.as_deref().map(|column| self.name_of(column)).transpose()?;
            Ok(Aggregate { column, ..aggregate.clone() })
        });
        let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
        let schema = Arc::new(Schema::new(fields));
        let mut scan = self.scan(&request, &names)?;
        // If metadata give the result, a file only has to be opened. So files are not divided, whatever their
        // length.
        let is_answered =
            !self.options.ignore_missing && is_answered_by_metadata(&scan, &aggregates, &schema)?;
        if is_answered {
            scan = scan.split_bytes(u64::MAX);
        }
        let (Plan { schema: columns, scan, splits }, pruned) = scan.plan_and_pruned()?;
        let of = |splits: Vec<Split>| Task {
            plan: Plan { schema: columns.clone(), scan: scan.clone(), splits },
            schema: schema.clone(),
            aggregates: aggregates.clone(),
            damage: self.options.damage.clone(),
            storage: self.options.storage.clone(),
            ignore_missing: self.options.ignore_missing,
        };
        let mut tasks = Vec::new();
        for (key, splits) in self.by_partition(&request, splits)? {
            let target = self.options.split_bytes;
            let bytes = |split| if is_answered { 0 } else { bytes_of(split, target) };
            for group in pack(splits.iter().map(bytes), target) {
                let own = splits.get(group).unwrap_or_default().to_vec();
                let ranges = planned::ranges(&own);
                tasks.push(Planned { task: of(own).to_bytes()?, key: key.clone(), ranges });
            }
        }
        if tasks.is_empty() && !aggregates.is_empty() {
            // Even if there are no rows, there is a result: the count 0.
            tasks.push(Planned { task: of(Vec::new()).to_bytes()?, ..Planned::default() });
        }
        Ok(Planning { pruned, settings: self.settings(&tasks)?, tasks })
    }

    /// The settings of Hadoop's client with which Spark looks up the hosts of files.
    fn settings(&self, tasks: &[Planned]) -> Result<BTreeMap<String, String>> {
        match tasks.iter().find_map(|task| task.ranges.first()) {
            Some((path, _)) => coldframe::store::resolved_options(&os_path(path), &self.options.storage),
            None => Ok(BTreeMap::new()),
        }
    }
}

pub(crate) fn opening(options: &LoadOptions) -> Opening {
    Opening {
        format: options.format.clone(),
        options: options.open.clone(),
        storage: Arc::new(Stores(options.storage.clone())),
    }
}

fn dataset(options: &LoadOptions) -> Result<Dataset> {
    let opening = opening(options);
    let mut given = Vec::new();
    for path in &options.paths {
        if options.selection.is_all() {
            given.push(Given::Path(os_path(path)));
            continue;
        }
        let listed = discover(opening.storage.as_ref(), &os_path(path), false)?;
        given.extend(options.selection.of_listing(path, listed)?.into_iter().map(Given::Entry));
    }
    let table = TableOptions {
        first_only: !options.unify,
        without_partitions: options.selection.is_recursive(),
        ..TableOptions::default()
    };
    Dataset::new(given, opening, table)
}

/// Whether metadata give the results of the aggregates. This is checked for the first file and assumed for
/// the other files; if it is false for a file, the task reads the rows of that file.
fn is_answered_by_metadata(scan: &ScanBuilder, aggregates: &[Aggregate], columns: &Schema) -> Result<bool> {
    if aggregates.is_empty() {
        return Ok(false);
    }
    let totals = Totals::new(aggregates, columns)?;
    scan.metadata_suffice(|units| totals.is_answered_by(units))
}

/// The approximate bytes of a split.
fn bytes_of(split: &Split, target: u64) -> u64 {
    match (&split.part, split.file_bytes()) {
        (Part::Share { of, .. }, Some(bytes)) => bytes / (*of).max(1),
        (Part::Cut(cut), Some(bytes)) => cut.range.end.saturating_sub(cut.range.start).min(bytes),
        (_, None) => target,
    }
}
