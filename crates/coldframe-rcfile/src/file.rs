//! An open RCFile.

use std::any::Any;
use std::sync::Arc;

use arrow_schema::{Field, SchemaRef};
use coldframe_core::{
    Damage, Error, ErrorContext, Limits, Node, OpenOptions, Plan, PlanRequest, ReadAt, Result, Source, Split,
    TableFile, Value,
};

use crate::decode::{Column, Decoders, RawCells};
use crate::header::Header;
use crate::options::{Serde, Table};
use crate::plan::GroupPlan;
use crate::row_group::{Layout, Walk};
use crate::serde::{ColumnDecoder, lazy_binary, text};

/// How many bytes the header is looked for in at first.
const HEADER_GUESS: u64 = 4096;

/// Writers leave at least this many bytes between sync markers.
const SYNC_INTERVAL: u64 = 2000;

/// An open RCFile: the header, and what the user said of the rest.
#[derive(Debug)]
pub struct RcFile {
    source: Arc<dyn ReadAt>,
    header: Header,
    layout: Layout,
    table: Table,
}

impl RcFile {
    /// Reads the header.
    pub fn open(source: &Source, options: &OpenOptions) -> Result<Self> {
        let bytes = source.bytes()?.clone();
        let header = read_header(bytes.as_ref(), &options.limits).within(|| "header")?;
        let codec = header.codec().within(|| "header")?;
        let table = Table::new(options, header.columns)?;
        let layout = Layout {
            sync: header.sync,
            columns: header.columns,
            codec,
            header_end: header.end,
            limits: options.limits,
        };
        let file = Self { source: bytes, header, layout, table };
        // Types that the SerDe cannot nest so deep are refused here, not at the first batch.
        for index in 0..file.table.schema.fields().len() {
            file.decoder(index)?;
        }
        Ok(file)
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// A walk over the row groups.
    pub(crate) fn walk(&self) -> Walk {
        Walk::new(self.layout.clone(), self.source.clone())
    }

    /// Length of the file.
    pub(crate) fn len(&self) -> u64 {
        self.source.len()
    }

    fn decoder(&self, index: usize) -> Result<Arc<dyn ColumnDecoder>> {
        let Some(hive_type) = self.table.types.as_ref().and_then(|types| types.get(index)) else {
            return Ok(Arc::new(RawCells));
        };
        let decoder = match self.table.serde {
            Serde::Text => text::decoder(hive_type, &self.table.options),
            Serde::Binary => lazy_binary::decoder(hive_type, &self.table.options),
        };
        let name = self.table.schema.fields().get(index).map_or("", |f| f.name());
        Ok(Arc::from(decoder.within(|| format!("column `{name}`"))?))
    }

    /// The column called `name`, from `next` on if there is one.
    fn find_column(&self, name: &str, next: usize) -> Result<(usize, &Field)> {
        let fields = self.table.schema.fields();
        let mut behind = fields.iter().enumerate().skip(next);
        let found = behind.find(|(_, f)| f.name() == name).map(|(i, f)| (i, f.as_ref()));
        let found = found.or_else(|| self.table.schema.column_with_name(name));
        found.ok_or_else(|| Error::schema(format!("no column `{name}`")))
    }

    /// Whether a value of one of the columns of `decode` may depend on those before it.
    fn looks_back(&self, decode: &SchemaRef) -> bool {
        let (Serde::Text, Some(types)) = (self.table.serde, &self.table.types) else { return false };
        let wanted = decode.fields().iter().filter_map(|f| self.table.schema.column_with_name(f.name()));
        wanted.filter_map(|(i, _)| types.get(i)).any(|t| text::looks_back(t, &self.table.options))
    }

    /// The decoders of the columns of `decode`.
    fn decoders(&self, decode: &SchemaRef) -> Result<Decoders> {
        let mut columns = Vec::with_capacity(decode.fields().len());
        let mut fields = Vec::with_capacity(decode.fields().len());
        // The wanted columns come in the file's order: each is looked for behind the last one first.
        let mut next = 0;
        for wanted in decode.fields() {
            let (index, field) = self.find_column(wanted.name(), next)?;
            next = index + 1;
            columns.push(Column {
                in_file: Some(index).filter(|i| *i < self.header.columns),
                name: field.name().clone(),
                data_type: field.data_type().clone(),
                decoder: self.decoder(index)?,
            });
            fields.push(field.clone());
        }
        let schema = Arc::new(arrow_schema::Schema::new(fields));
        let at_once = self.looks_back(decode);
        Ok(Decoders::new(columns, schema, self.layout.codec, self.layout.limits, at_once))
    }
}

/// Parses the header from as few bytes as it takes.
fn read_header(source: &dyn ReadAt, limits: &Limits) -> Result<Header> {
    let mut want = HEADER_GUESS;
    loop {
        let len = source.len().min(want);
        let bytes = source.read(0..len)?;
        match Header::parse(&bytes, limits) {
            Ok(header) => return Ok(header),
            Err(e) if len == source.len() || len >= limits.max_metadata_bytes || !e.is_damage() => {
                return Err(e);
            }
            Err(_) => want = want.saturating_mul(16),
        }
    }
}

impl TableFile for RcFile {
    fn format(&self) -> &'static str {
        "rcfile"
    }

    fn schema(&self) -> &SchemaRef {
        &self.table.schema
    }

    /// Only the keys of the row groups say how many rows there are.
    fn row_count(&self) -> Option<u64> {
        None
    }

    fn metadata(&self) -> Result<Value> {
        let mut all = self.header.describe();
        all.insert(0, ("format".to_owned(), Value::from("rcfile")));
        let (groups, _) = crate::inspect::row_groups(self)?;
        all.push(("row_groups".to_owned(), Value::List(groups)));
        Ok(Value::Map(all))
    }

    /// Byte ranges of the file, as Hive's input format would be given them. None is shorter than the distance of sync
    /// markers, which none could begin in.
    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let target = target.max(SYNC_INTERVAL);
        let mut splits = Vec::new();
        let mut start = 0;
        while start < self.len() {
            let end = start.saturating_add(target).min(self.len());
            splits.push(Split { part: 0, range: start..end, rows: None });
            start = end;
        }
        Ok(splits)
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        let decoders = self.decoders(&request.decode)?;
        let (walk, source) = (self.walk(), self.source.clone());
        Ok(Box::new(GroupPlan::new(walk, source, decoders, request.clone(), split.range.clone())))
    }

    fn inspect(&self) -> Result<Node> {
        crate::inspect::tree(self)
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        crate::inspect::contradictions(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
