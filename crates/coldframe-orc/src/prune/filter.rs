//! Evaluates a filter on statistics and bloom filters.
//!
//! The filter's columns are looked up in the type tree once per scan; then each stripe and row group is
//! tested by its statistics and bloom filters. If the result is unknown, the stripe or row group is read.

use std::collections::BTreeSet;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Schema};
use coldframe_core::{ColumnBounds, Op, Predicate};

use super::Stored;
use super::bloom::{Filter, Hashing};
use super::bounds::{bounds, impossible};
use crate::layout::proto::ColumnStatistics;
use crate::layout::quirks::Quirks;
use crate::layout::types::{Column, Kind, TypeTree};

/// The columns of a filter, with the data that decides whether a stripe is read.
#[derive(Clone, Debug)]
pub(crate) struct Pruner {
    columns: Vec<Filtered>,
    quirks: Quirks,
}

#[derive(Clone, Debug)]
struct Filtered {
    path: String,
    id: usize,
    /// The structs that contain the column, without the root.
    around: Vec<usize>,
    data_type: DataType,
    stored: Stored,
    /// Whether the file's statistics and bloom filters of the column are trusted.
    trusted: bool,
}

impl Filtered {
    /// The type of the column; for a dictionary, the type of the values.
    fn plain(&self) -> &DataType {
        match &self.data_type {
            DataType::Dictionary(_, values) => values,
            other => other,
        }
    }
}

/// Statistics of a column by its number.
pub(crate) type StatisticsOf<'a> = &'a dyn Fn(usize) -> Option<&'a ColumnStatistics>;
/// The bloom filter of a column by its number.
pub(crate) type BloomOf<'a> = &'a dyn Fn(usize) -> Option<(Filter<'a>, Hashing)>;

impl Pruner {
    /// Prepares `predicate` for a file of this schema and tree.
    pub(crate) fn new(predicate: &Predicate, schema: &Schema, tree: &TypeTree, quirks: Quirks) -> Self {
        let mut paths = Vec::new();
        predicate.columns(&mut paths);
        paths.sort_unstable();
        paths.dedup();
        let columns = paths.into_iter().filter_map(|path| find(path, schema, tree, quirks)).collect();
        Self { columns, quirks }
    }

    /// Whether the statistics of stripes are correct.
    pub(crate) fn trusts_stripes(&self) -> bool {
        self.quirks.merged_statistics
    }

    /// Distrusts columns with impossible statistics, in all stripes and row groups: the writer did not count
    /// the values of such a column, and other stripes and row groups may hide the mistake.
    pub(crate) fn distrust_impossible<'a>(&mut self, statistics: StatisticsOf<'a>) {
        for column in &mut self.columns {
            let cannot = |stats| impossible(stats, column.plain(), column.stored, self.quirks);
            if statistics(column.id).is_some_and(cannot) {
                column.trusted = false;
            }
        }
    }

    /// The columns whose row index is useful.
    pub(crate) fn columns(&self) -> Vec<usize> {
        let ids: BTreeSet<usize> =
            self.columns.iter().flat_map(|c| c.around.iter().copied().chain([c.id])).collect();
        ids.into_iter().collect()
    }

    /// The columns whose bloom filters are useful: the filter compares them for equality.
    pub(crate) fn bloom_columns(&self, predicate: &Predicate) -> Vec<usize> {
        let mut paths = BTreeSet::new();
        if self.quirks.blooms {
            equalities(predicate, &mut paths);
        }
        let is_useful = |c: &&Filtered| paths.contains(c.path.as_str()) && self.trusts_blooms(c);
        self.columns.iter().filter(is_useful).map(|c| c.id).collect()
    }

    /// `false` only if no row with these statistics and bloom filters passes.
    pub(crate) fn may_match<'a>(
        &self,
        predicate: &Predicate,
        statistics: StatisticsOf<'a>,
        bloom: BloomOf<'a>,
    ) -> bool {
        match predicate {
            Predicate::And(all) => all.iter().all(|p| self.may_match(p, statistics, bloom)),
            Predicate::Or(any) => any.iter().any(|p| self.may_match(p, statistics, bloom)),
            leaf => {
                leaf.may_match(&|path| self.bounds(path, statistics))
                    && self.may_contain(leaf, statistics, bloom)
            }
        }
    }

    /// Whether the bloom filters of a column contain all existing values.
    fn trusts_blooms(&self, column: &Filtered) -> bool {
        let bytes = column.data_type == DataType::Int8;
        column.trusted && self.quirks.blooms && (self.quirks.byte_blooms || !bytes)
    }

    fn column(&self, path: &str) -> Option<&Filtered> {
        self.columns.iter().find(|c| c.path == path)
    }

    fn bounds<'a>(&self, path: &str, statistics: StatisticsOf<'a>) -> Option<ColumnBounds> {
        let column = self.column(path).filter(|c| c.trusted)?;
        let mut column_bounds = bounds(statistics(column.id)?, column.plain(), column.stored, self.quirks);
        if matches!(column.data_type, DataType::Union(..)) {
            // A union that is not null may hold a null.
            column_bounds.has_null = None;
        }
        if column.plain() != &column.data_type {
            let cast = |a: Option<ArrayRef>| arrow_cast::cast(&a?, &column.data_type).ok();
            (column_bounds.min, column_bounds.max) = (cast(column_bounds.min), cast(column_bounds.max));
        }
        // A row whose struct is null has a null in this column, too, which the child's statistics do not
        // count.
        for outer in &column.around {
            column_bounds.has_null =
                match (column_bounds.has_null, statistics(*outer).and_then(|s| s.has_null)) {
                    (Some(false), Some(false)) => Some(false),
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    _ => None,
                };
        }
        Some(column_bounds)
    }

    fn may_contain<'a>(&self, leaf: &Predicate, statistics: StatisticsOf<'a>, bloom: BloomOf<'a>) -> bool {
        let (path, values): (_, &ArrayRef) = match leaf {
            Predicate::Trimmed(test) => return self.may_contain(test, statistics, bloom),
            Predicate::Compare { column, op: Op::Eq, value, negated: false } => (column, value),
            Predicate::In { column, values, negated: false } => (column, values),
            _ => return true,
        };
        let Some(column) = self.column(path).filter(|c| self.trusts_blooms(c)) else { return true };
        let Some((filter, hashing)) = bloom(column.id) else { return true };
        if values.data_type() != &column.data_type {
            return true;
        }
        let has_null = || self.bounds(path, statistics).is_none_or(|b| b.has_null != Some(false));
        if values.null_count() > 0 && has_null() {
            return true;
        }
        let plain = match &column.data_type {
            DataType::Dictionary(_, value_type) => match arrow_cast::cast(values, value_type) {
                Ok(plain) => plain,
                Err(_) => return true,
            },
            _ => values.clone(),
        };
        (0..plain.len()).any(|i| plain.is_valid(i) && filter.may_hold(&plain, i, hashing, column.stored))
    }
}

/// The columns that are compared for equality anywhere in the filter.
fn equalities<'a>(predicate: &'a Predicate, paths: &mut BTreeSet<&'a str>) {
    match predicate {
        Predicate::And(parts) | Predicate::Or(parts) => parts.iter().for_each(|p| equalities(p, paths)),
        Predicate::Compare { column, op: Op::Eq, negated: false, .. }
        | Predicate::In { column, negated: false, .. } => {
            paths.insert(column);
        }
        Predicate::Trimmed(test) => equalities(test, paths),
        _ => {}
    }
}

/// A top-level column: its number, its type, and how it is stored.
pub(crate) fn top_level_column(
    name: &str,
    schema: &Schema,
    tree: &TypeTree,
    quirks: Quirks,
) -> Option<(usize, DataType, Stored)> {
    let column = find(name, schema, tree, quirks).filter(|column| column.around.is_empty())?;
    Some((column.id, column.data_type, column.stored))
}

/// The column that a filter's path names: a column of the file, or a child of structs.
fn find(path: &str, schema: &Schema, tree: &TypeTree, quirks: Quirks) -> Option<Filtered> {
    let root = tree.root()?;
    if root.kind != Kind::Struct {
        let field = schema.fields().first().filter(|f| f.name() == path)?;
        return filtered(path, 0, Vec::new(), field.data_type(), tree, quirks);
    }
    let steps = coldframe_core::projection::steps(schema, path).ok()?;
    let (column, below) = steps.split_first()?;
    let mut id = *root.children.get(schema.fields().iter().position(|f| f.name() == column.name())?)?;
    let mut data_type = column.data_type();
    let mut around = Vec::new();
    for step in below {
        let DataType::Struct(fields) = data_type else { return None };
        let place = fields.iter().position(|f| f.name() == step.name())?;
        around.push(id);
        id = *tree.get(id)?.children.get(place)?;
        data_type = step.data_type();
    }
    filtered(path, id, around, data_type, tree, quirks)
}

fn filtered(
    path: &str,
    id: usize,
    around: Vec<usize>,
    data_type: &DataType,
    tree: &TypeTree,
    quirks: Quirks,
) -> Option<Filtered> {
    let stored = stored(tree.get(id)?, data_type, quirks)?;
    Some(Filtered { path: path.to_owned(), id, around, data_type: data_type.clone(), stored, trusted: true })
}

/// How the values of a column are stored that are read as `data_type`.
pub(crate) fn stored(column: &Column, data_type: &DataType, quirks: Quirks) -> Option<Stored> {
    Some(match column.kind {
        Kind::Char => Stored::Char(usize::try_from(column.maximum_length.unwrap_or(0)).ok()?),
        Kind::Decimal if quirks.short_decimals && column.precision <= 18 => Stored::Decimal64,
        Kind::Date if quirks.hybrid => Stored::HybridDate,
        Kind::Timestamp if matches!(data_type, DataType::Timestamp(_, Some(_))) => Stored::WallClock,
        _ => Stored::Plain,
    })
}
