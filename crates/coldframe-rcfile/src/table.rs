//! Implements an open RCFile as a table.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::{
    Checksums, Damage, Error, ErrorContext, Node, OpenOptions, Plan, PlanRequest, Proof, Result, Source,
    Split, TableFile, Value,
};

use crate::layout::{Header, SYNC_INTERVAL};
use crate::open::RawFile;
use crate::scan::columns::{Decoders, RawCells, ScanColumn};
use crate::scan::plan::GroupPlan;
use crate::serde::{ColumnDecoder, Serde, SerdeOptions, lazy_binary, text};
use crate::{inspect, propose, verify};

/// An open RCFile: the header, and the user's options.
#[derive(Debug)]
pub struct RcFile(RawFile);

impl RcFile {
    /// Reads the header.
    pub fn open(source: &Source, options: &OpenOptions) -> Result<Self> {
        let file = Self(RawFile::open(source, options)?);
        // Types that are nested too deeply for the SerDe are refused now, not at the first batch.
        for index in 0..file.0.table.schema.fields().len() {
            file.decoder(index, &file.0.table.options)?;
        }
        Ok(file)
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.0.header
    }

    fn decoder(&self, index: usize, options: &SerdeOptions) -> Result<Arc<dyn ColumnDecoder>> {
        let Some(hive_type) = self.0.table.types.as_ref().and_then(|types| types.get(index)) else {
            return Ok(Arc::new(RawCells));
        };
        let decoder = match self.0.table.serde {
            Serde::Text => text::decoder(hive_type, options),
            Serde::Binary => lazy_binary::decoder(hive_type, options),
        };
        let name = self.0.table.schema.fields().get(index).map_or("", |f| f.name());
        Ok(Arc::from(decoder.within(|| format!("column `{name}`"))?))
    }

    /// The indexes of the columns of `decode` in the table.
    fn find_columns(&self, decode: &SchemaRef) -> Result<Vec<usize>> {
        let fields = self.0.table.schema.fields();
        let mut by_name = None;
        let mut next = 0;
        let indexes = decode.fields().iter().map(|wanted| {
            // Usually all columns are requested in file order: the next column is tried first, and a map of
            // names is built only if that fails.
            if fields.get(next).is_none_or(|field| field.name() != wanted.name()) {
                let places: &BTreeMap<&str, Vec<usize>> = by_name.get_or_insert_with(|| {
                    let mut places = BTreeMap::<&str, Vec<usize>>::new();
                    for (i, field) in fields.iter().enumerate() {
                        places.entry(field.name()).or_default().push(i);
                    }
                    places
                });
                let same = places.get(wanted.name().as_str());
                let same = same.ok_or_else(|| Error::schema(format!("no column `{}`", wanted.name())))?;
                let behind = same.get(same.partition_point(|i| *i < next)).or(same.first());
                next = behind.copied().unwrap_or(0);
            }
            next += 1;
            Ok(next - 1)
        });
        indexes.collect()
    }

    /// The decoders of the requested columns.
    fn decoders(&self, request: &PlanRequest) -> Result<Decoders> {
        let places = self.find_columns(&request.decode)?;
        let table = &self.0.table;
        let options = SerdeOptions { changes: request.damage.changes().clone(), ..table.options.clone() };
        let mut columns = Vec::with_capacity(places.len());
        let mut fields = Vec::with_capacity(places.len());
        for index in &places {
            let Some(field) = table.schema.fields().get(*index) else { continue };
            columns.push(ScanColumn {
                in_file: Some(*index).filter(|i| *i < self.0.header.columns),
                name: field.name().clone(),
                data_type: field.data_type().clone(),
                decoder: self.decoder(*index, &options)?,
            });
            fields.push(field.clone());
        }
        let types = table.types.as_ref().filter(|_| table.serde == Serde::Text);
        let at_once = types.is_some_and(|types| {
            text::depends_on_earlier_rows(places.iter().filter_map(|i| types.get(*i)), &table.options)
        });
        let schema = Arc::new(arrow_schema::Schema::new(fields));
        Ok(Decoders::new(columns, schema, self.0.context.codec, self.0.context.limits, at_once))
    }
}

impl TableFile for RcFile {
    fn format(&self) -> &'static str {
        "rcfile"
    }

    fn schema(&self) -> &SchemaRef {
        &self.0.table.schema
    }

    /// The number of rows is only in the keys of the row groups.
    fn row_count(&self) -> Option<u64> {
        None
    }

    fn metadata(&self) -> Result<Value> {
        let mut all = self.0.header.describe();
        all.insert(0, ("format".to_owned(), Value::from("rcfile")));
        let groups = inspect::row_groups(&self.0)?;
        all.push(("row_groups".to_owned(), Value::List(groups)));
        Ok(Value::Map(all))
    }

    /// Byte ranges of the file, as Hive's input format would get them. Each range is at least as long as the
    /// distance between sync markers, since a shorter range might contain no marker.
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
        let decoders = self.decoders(request)?;
        let (walk, source) = (self.0.walk(), self.0.source.clone());
        Ok(Box::new(GroupPlan::new(walk, source, decoders, request.clone(), split.range.clone())?))
    }

    fn proposal(&self) -> Result<Option<Value>> {
        propose::proposal(&self.0)
    }

    fn inspect(&self) -> Result<Node> {
        inspect::tree(&self.0, self.0.table.schema.fields())
    }

    fn proof(&self) -> Proof {
        Proof { checksums: Checksums::None, besides: &["the lengths that row groups state twice"] }
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        verify::contradictions(&self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
