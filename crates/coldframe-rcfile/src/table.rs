//! An open RCFile.

use std::any::Any;
use std::sync::Arc;

use arrow_schema::{Field, SchemaRef};
use coldframe_core::{
    Damage, Error, ErrorContext, Node, OpenOptions, Plan, PlanRequest, Result, Source, Split, TableFile,
    Value,
};

use crate::layout::{Header, SYNC_INTERVAL};
use crate::open::RawFile;
use crate::scan::decode::{Column, Decoders, RawCells};
use crate::scan::plan::GroupPlan;
use crate::serde::{ColumnDecoder, Serde, lazy_binary, text};
use crate::{inspect, verify};

/// An open RCFile: the header, and what the user said of the rest.
#[derive(Debug)]
pub struct RcFile(RawFile);

impl RcFile {
    /// Reads the header.
    pub fn open(source: &Source, options: &OpenOptions) -> Result<Self> {
        let file = Self(RawFile::open(source, options)?);
        // Types that the SerDe cannot nest so deep are refused here, not at the first batch.
        for index in 0..file.0.table.schema.fields().len() {
            file.decoder(index)?;
        }
        Ok(file)
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.0.header
    }

    fn decoder(&self, index: usize) -> Result<Arc<dyn ColumnDecoder>> {
        let Some(hive_type) = self.0.table.types.as_ref().and_then(|types| types.get(index)) else {
            return Ok(Arc::new(RawCells));
        };
        let decoder = match self.0.table.serde {
            Serde::Text => text::decoder(hive_type, &self.0.table.options),
            Serde::Binary => lazy_binary::decoder(hive_type, &self.0.table.options),
        };
        let name = self.0.table.schema.fields().get(index).map_or("", |f| f.name());
        Ok(Arc::from(decoder.within(|| format!("column `{name}`"))?))
    }

    /// The column called `name`, from `next` on if there is one.
    fn find_column(&self, name: &str, next: usize) -> Result<(usize, &Field)> {
        let fields = self.0.table.schema.fields();
        let mut behind = fields.iter().enumerate().skip(next);
        let found = behind.find(|(_, f)| f.name() == name).map(|(i, f)| (i, f.as_ref()));
        let found = found.or_else(|| self.0.table.schema.column_with_name(name));
        found.ok_or_else(|| Error::schema(format!("no column `{name}`")))
    }

    /// Whether a value of one of the columns of `decode` may depend on those before it.
    fn looks_back(&self, decode: &SchemaRef) -> bool {
        let (Serde::Text, Some(types)) = (self.0.table.serde, &self.0.table.types) else { return false };
        let wanted = decode.fields().iter().filter_map(|f| self.0.table.schema.column_with_name(f.name()));
        wanted.filter_map(|(i, _)| types.get(i)).any(|t| text::looks_back(t, &self.0.table.options))
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
                in_file: Some(index).filter(|i| *i < self.0.header.columns),
                name: field.name().clone(),
                data_type: field.data_type().clone(),
                decoder: self.decoder(index)?,
            });
            fields.push(field.clone());
        }
        let schema = Arc::new(arrow_schema::Schema::new(fields));
        let at_once = self.looks_back(decode);
        Ok(Decoders::new(columns, schema, self.0.shape.codec, self.0.shape.limits, at_once))
    }
}

impl TableFile for RcFile {
    fn format(&self) -> &'static str {
        "rcfile"
    }

    fn schema(&self) -> &SchemaRef {
        &self.0.table.schema
    }

    /// Only the keys of the row groups say how many rows there are.
    fn row_count(&self) -> Option<u64> {
        None
    }

    fn metadata(&self) -> Result<Value> {
        let mut all = self.0.header.describe();
        all.insert(0, ("format".to_owned(), Value::from("rcfile")));
        let (groups, _) = inspect::row_groups(&self.0)?;
        all.push(("row_groups".to_owned(), Value::List(groups)));
        Ok(Value::Map(all))
    }

    /// Byte ranges of the file, as Hive's input format would be given them. None is shorter than the distance of sync
    /// markers, which none could begin in.
    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let target = target.max(SYNC_INTERVAL);
        let mut splits = Vec::new();
        let mut start = 0;
        while start < self.0.len() {
            let end = start.saturating_add(target).min(self.0.len());
            splits.push(Split { part: 0, range: start..end, rows: None });
            start = end;
        }
        Ok(splits)
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        let decoders = self.decoders(&request.decode)?;
        let (walk, source) = (self.0.walk(), self.0.source.clone());
        Ok(Box::new(GroupPlan::new(walk, source, decoders, request.clone(), split.range.clone())))
    }

    fn inspect(&self) -> Result<Node> {
        inspect::tree(&self.0)
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        verify::contradictions(&self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
