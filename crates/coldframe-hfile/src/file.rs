//! An open HFile as a table.

use std::any::Any;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::{
    Damage, Error, KeyRange, Node, OpenOptions, Plan, PlanRequest, Result, Source, Split, TableFile, Value,
};

use crate::cell::row_of;
use crate::columns::schema_of;
use crate::file_info;
use crate::lookup::Lookups;
use crate::options::{Options, View};
use crate::pivot::{self, PivotPlan};
use crate::plan::BlockPlan;
use crate::reader::RawFile;
use crate::records::Records;

/// An open HFile.
#[derive(Debug)]
pub struct HFile {
    raw: Arc<RawFile>,
    view: View,
    schema: SchemaRef,
    /// The columns of the view, which look-ups give whatever a scan makes of them.
    cells: SchemaRef,
    /// How values become records, if that is asked for.
    records: Option<Records>,
    options: Options,
    lookups: Lookups,
}

impl HFile {
    /// Reads trailer, root indexes and file info.
    pub fn open(source: &Source, options: &OpenOptions) -> Result<Self> {
        let options = Options::new(options)?;
        let raw = RawFile::open(source.bytes()?.clone(), &options)?;
        let view = options.view.unwrap_or_else(|| view_of(&raw));
        let cells = schema_of(view, options.type_names);
        let records = match (options.avro, view) {
            (false, _) => None,
            (true, View::KeyValue) => Some(Records::new(raw.info(), options.limits)?),
            (true, View::Cells) => return Err(Error::unsupported("`decode=\"avro\"` with `view=\"cells\"`")),
        };
        let schema = match (&records, options.pivot.as_slice()) {
            (None, []) => cells.clone(),
            (Some(records), []) => records.columns(&cells)?,
            (_, columns) if view == View::Cells => pivot::schema_of(columns)?,
            _ => return Err(Error::unsupported("`pivot` with `view=\"kv\"`")),
        };
        Ok(Self { raw: Arc::new(raw), view, schema, cells, records, options, lookups: Lookups::default() })
    }

    /// The file below Arrow.
    pub fn raw(&self) -> &Arc<RawFile> {
        &self.raw
    }

    /// How it is shown.
    pub fn view(&self) -> View {
        self.view
    }

    /// The columns that look-ups give.
    pub fn cell_schema(&self) -> &SchemaRef {
        &self.cells
    }

    pub(crate) fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    /// What the user said.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The name of the column that the file is sorted by.
    pub fn key_column(&self) -> &'static str {
        match self.view {
            View::KeyValue => "key",
            View::Cells => "row",
        }
    }
}

/// Hudi's files are told by their comparator, by what Hudi puts into the file info, or by their last key: without family
/// and qualifier and, where HBase's writer made it a cell's key, at the end of time.
fn view_of(raw: &RawFile) -> View {
    let info = &raw.info;
    let hudi = raw.pairs
        || raw.trailer.comparator.contains("hudi")
        || info.get(file_info::HUDI_MIN_KEY).is_some()
        || info.get(file_info::LAST_KEY).is_some_and(is_hudi_key);
    if hudi { View::KeyValue } else { View::Cells }
}

fn is_hudi_key(key: &[u8]) -> bool {
    const BEHIND_ROW: [u8; 10] = [0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 4];
    let row = row_of(key).map_or(usize::MAX, <[u8]>::len);
    key.get(row.saturating_add(2)..).is_some_and(|behind| behind.is_empty() || behind == BEHIND_ROW)
}

impl TableFile for HFile {
    fn format(&self) -> &'static str {
        "hfile"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn row_count(&self) -> Option<u64> {
        let known = self.raw.damage.is_none() && self.options.pivot.is_empty();
        known.then_some(self.raw.trailer.entry_count)
    }

    fn metadata(&self) -> Result<Value> {
        Ok(crate::describe::metadata(&self.raw))
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let len = self.raw.source.len();
        let trailer = &self.raw.trailer;
        let end = match trailer.last_data_block {
            Some(last) if self.raw.damage.is_none() => last.saturating_add(1).min(len),
            _ => len,
        };
        let parts = end.div_ceil(target.max(1)).clamp(1, 1 << 20);
        let bound =
            |i: u64| u64::try_from(u128::from(end) * u128::from(i) / u128::from(parts)).unwrap_or(end);
        Ok((0..parts)
            .map(|i| Split {
                part: 0,
                range: bound(i)..if i + 1 == parts { len } else { bound(i + 1) },
                rows: (parts == 1).then(|| self.row_count()).flatten(),
            })
            .collect())
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        let keys = match &request.scan.predicate {
            Some(predicate) => predicate.key_range(self.key_column()),
            None => KeyRange::default(),
        };
        let inner = self.records.as_ref().and_then(|r| Some((r, r.inner(request, &self.cells)?)));
        if let Some((records, inner)) = inner {
            let plan = BlockPlan::new(self.raw.clone(), inner, split.range.clone(), keys)?;
            return Ok(records.plan(Box::new(plan), request.clone()));
        }
        let (raw, request, split) = (self.raw.clone(), request.clone(), split.range.clone());
        if self.options.pivot.is_empty() {
            return Ok(Box::new(BlockPlan::new(raw, request, split, keys)?));
        }
        Ok(Box::new(PivotPlan::new(raw, request, split, keys)?))
    }

    fn statistics(&self) -> Result<Value> {
        Ok(crate::describe::statistics(&self.raw))
    }

    fn inspect(&self) -> Result<Node> {
        crate::inspect::inspect(&self.raw)
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        crate::inspect::verify(&self.raw)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
