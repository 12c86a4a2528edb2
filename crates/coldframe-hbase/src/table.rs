//! An open HBase table.

use std::any::Any;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use coldframe_core::io::Folder;
use coldframe_core::{
    Checksums, Damage, Error, KeyRange, NoUnits, Node, Notice, OnError, OpenOptions, PassedOver, Piece, Plan,
    PlanRequest, Predicate, Proof, Result, Split, TableFile, Value,
};
use coldframe_hfile::{RowOrder, RowQuery};

use crate::describe;
use crate::lookup::{Lookups, RowScan};
use crate::missing;
use crate::open::{CellRequest, OpenTable};
use crate::options::View;
use crate::regions::alive::Region;
use crate::scan::plan::{RegionPlan, Rows};
use crate::splits;
use crate::splits::packed::{self, OnlySplit};

/// An open table.
#[derive(Debug)]
pub struct HBaseTable {
    table: Arc<OpenTable>,
    schema: SchemaRef,
    lookups: Lookups,
    /// If the table was opened for one split: that split, the only split that can be read.
    only: Option<OnlySplit>,
}

impl HBaseTable {
    /// Finds the table in `folder`, and its regions.
    pub fn open(folder: &Arc<dyn Folder>, options: &OpenOptions) -> Result<Self> {
        Ok(Self::of(OpenTable::open(folder, options)?, None))
    }

    /// Like [`open`](Self::open), from recorded data. If this is the data of a split, only that split can be
    /// read.
    pub(crate) fn open_recorded(
        folder: &Arc<dyn Folder>,
        options: &OpenOptions,
        recorded: &[Piece],
    ) -> Result<Self> {
        match packed::open(folder, options, recorded)? {
            Some((table, only)) => Ok(Self::of(table, only)),
            None => Self::open(folder, options),
        }
    }

    fn of(table: OpenTable, only: Option<OnlySplit>) -> Self {
        Self { schema: table.columns(), table: Arc::new(table), lookups: Lookups::default(), only }
    }

    /// The whole table; fails if the table was opened for only one of its splits.
    fn whole(&self) -> Result<&Arc<OpenTable>> {
        match self.only {
            None => Ok(&self.table),
            Some(_) => Err(Error::invalid("the table was opened for one of its splits: open its directory")),
        }
    }

    /// The visible cells of one row.
    pub fn get(&self, row: &[u8]) -> Result<Vec<RecordBatch>> {
        self.lookups.get(self.whole()?, &self.schema, row)
    }

    /// The visible cells of many rows, each row once, in the order of the table.
    pub fn get_many(&self, rows: &[Vec<u8>]) -> Result<Vec<RecordBatch>> {
        self.lookups.get_many(self.whole()?, &self.schema, rows)
    }

    /// The cells that `query` selects. If `max_versions` is not set, the view determines the versions.
    pub fn scan_rows(&self, query: &RowQuery) -> Result<RowScan> {
        self.lookups.scan(self.whole()?, &self.schema, query)
    }

    /// The index of a split's part among the regions; the indexes of missing parts follow the regions'
    /// indexes.
    fn place(&self, split: &Split) -> Result<usize> {
        match &self.only {
            None => Ok(usize::try_from(split.part).unwrap_or(usize::MAX)),
            Some(only) if (only.part, &only.range) == (split.part, &split.range) => Ok(0),
            Some(_) => self.whole().map(|_| 0),
        }
    }

    fn region(&self, place: usize) -> Result<&Arc<Region>> {
        self.table.regions.get(place).ok_or_else(|| {
            let regions = self.table.regions.len();
            Error::invalid(format!("part {place} of a table with {regions} regions"))
        })
    }

    /// The families that a filter needs.
    fn families(&self, predicate: Option<&Predicate>) -> Vec<bool> {
        // A row of a wide table exists if any of its cells exists, so a filter must not exclude families.
        let range = match self.table.options.view {
            View::Pivot => KeyRange::default(),
            _ => predicate.map(|p| p.key_range("family")).unwrap_or_default(),
        };
        let holds = |name: &str| {
            let name = name.as_bytes();
            range.lower.as_ref().is_none_or(|lower| name >= lower.as_slice())
                && range.upper.as_ref().is_none_or(|upper| name < upper.as_slice())
        };
        self.table.shared.families.iter().map(|f| holds(&f.name)).collect()
    }

    /// The rows of a split that can pass a filter; `None` if there are none.
    fn rows(&self, region: &Region, split: &Split, predicate: Option<&Predicate>) -> Result<Option<Rows>> {
        let known = self.only.as_ref().and_then(|only| only.rows.clone());
        let mut rows = match known {
            Some(rows) => rows,
            None => splits::rows(&self.table.shared, region, &split.range)?,
        };
        // A Phoenix column called `row` is not the row key.
        if self.table.order() != RowOrder::Bytes || self.table.options.wide.phoenix.is_some() {
            return Ok(Some(rows));
        }
        let keys: KeyRange = predicate.map(|p| p.key_range("row")).unwrap_or_default();
        if let Some(lower) = keys.lower.filter(|lower| *lower > rows.lower) {
            (rows.lower, rows.first) = (lower, true);
        }
        if let Some(upper) = keys.upper {
            rows.upper = Some(rows.upper.map_or_else(|| upper.clone(), |own| own.min(upper.clone())));
        }
        let empty = rows.upper.as_ref().is_some_and(|upper| *upper <= rows.lower);
        Ok((!empty).then_some(rows))
    }
}

impl TableFile for HBaseTable {
    fn format(&self) -> &'static str {
        "hbase"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn decodes_views(&self) -> bool {
        self.table.options.view != View::Pivot
    }

    fn row_count(&self) -> Option<u64> {
        None
    }

    fn metadata(&self) -> Result<Value> {
        describe::metadata(self.whole()?)
    }

    fn notices(&self) -> Result<Vec<Notice>> {
        // A table opened for one split gives no notices: whoever opened the whole table has got them.
        let Ok(table) = self.whole() else { return Ok(Vec::new()) };
        // A complete table records these as damage.
        if table.options.complete {
            return Ok(Vec::new());
        }
        let texts = table.lacking()?.into_iter().map(Notice::PartialTable);
        Ok(texts.chain(Damage::notice(&table.missing)).collect())
    }

    fn notices_by_reading(&self) -> Result<Vec<Notice>> {
        let Ok(table) = self.whole() else { return Ok(Vec::new()) };
        Ok(Damage::notice(&missing::store_files(&table.shared, &table.regions)?).into_iter().collect())
    }

    fn take_notices(&self) -> Vec<Notice> {
        self.lookups.take_notices()
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let mut splits = splits::of_regions(self.whole()?, target)?;
        // The splits of the regions are followed by one split for each missing part, which reports that part.
        let missing = self.table.regions.len()..self.table.regions.len() + self.table.missing.len();
        for part in missing.filter_map(|i| u32::try_from(i).ok()) {
            splits.push(Split { part, range: 0..1, rows: None });
        }
        Ok(splits)
    }

    fn recorded(&self, splits: &[Split]) -> Result<Vec<Vec<Piece>>> {
        packed::recorded(self.whole()?, splits)
    }

    fn byte_split(&self, _bytes: std::ops::Range<u64>) -> Result<Split> {
        Err(Split::not_of_bytes())
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        // A table without regions has no splits. An empty split is used to get its schema.
        if split.range.is_empty() {
            return Ok(Box::new(NoUnits));
        }
        let place = self.place(split)?;
        let index = place.checked_sub(self.table.regions.len());
        if let Some(missing) = index.and_then(|i| self.table.missing.get(i)) {
            if request.scan.on_error == OnError::Raise {
                return Err(missing.to_error());
            }
            request.damage.push(missing.clone());
            return Ok(Box::new(NoUnits));
        }
        if split.part == 0 && split.range.start == 0 {
            request.damage.pass_over(PassedOver::Regions, self.table.skipped_regions);
        }
        // If parts of the table are missing, a read under `raise` fails before it returns rows.
        if let Some(e) = self.table.first_missing(request.scan.on_error) {
            return Err(e);
        }
        let region = self.region(place)?;
        let predicate = request.scan.predicate.as_ref();
        let Some(rows) = self.rows(region, split, predicate)? else { return Ok(Box::new(NoUnits)) };
        let scanning = self.table.scanning(CellRequest {
            columns: request.decode.clone(),
            on_error: request.scan.on_error,
            damage: request.damage.clone(),
            batch_rows: request.scan.batch_rows,
        });
        let families = self.families(predicate);
        Ok(Box::new(RegionPlan::new(self.table.source(), region.clone(), scanning, families, rows)))
    }

    fn proposal(&self) -> Result<Option<Value>> {
        crate::propose::proposal(self.whole()?)
    }

    fn inspect(&self) -> Result<Node> {
        crate::inspect::table(self.whole()?)
    }

    fn proof(&self) -> Proof {
        // Only some parts have checksums, since store files of HBase 0.90 have none.
        let checksums = Checksums::Some.if_compared(self.table.options.files.verify);
        Proof { checksums, besides: &["indexes and bloom filters of store files"] }
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        crate::verify::structure(self.whole()?)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
