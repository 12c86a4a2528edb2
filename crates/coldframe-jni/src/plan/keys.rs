//! Makes tasks that each read a single partition, so that joining or grouping by partition columns needs no
//! shuffle (Spark's storage-partitioned join).
//!
//! ```text
//! p=1/a p=1/b p=2/c     packed by size alone:  [a b c]        by partition:  p=1: [a b]   p=2: [c]
//! ```
//! With such tasks, small files of several partitions cannot be read by one task, and Spark reads each
//! partition in a single task if that saves a shuffle. So partitions are not reported if there are many small
//! partitions, or if one partition is large.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use coldframe::dataset::Split;
use coldframe::dataset::plan::OPEN_COST;
use coldframe::types::conform;
use coldframe::{Error, Result, arrow_error};

use super::{Request, Table};

/// Up to this number, partitions are reported regardless of their size, since separate tasks for them take
/// less time than the shuffle.
const MAX_KEYS: usize = 500;
/// More partitions are reported if this makes at most `MAX_TASKS` times as many tasks as packing by size.
const MAX_TASKS: u64 = 2;

/// If a partition would be packed into more tasks than this, these tasks and a shuffle are faster. Also,
/// Spark would merge the partial results of these tasks in one task, which keeps the memory of each partial
/// aggregation until its end; for some hundreds of partial aggregations, a heap of 1 GiB is too small.
const LARGEST: u64 = 4;

/// A value of a partition column, in the form for Java.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// Null.
    Null,
    /// An integer, the days of a date, or a boolean as 0 or 1.
    Number(i64),
    /// A text.
    Text(String),
}

/// A partition column: its name in the files, and its field in Spark.
type Column = (String, Field);

impl Table {
    /// The number of partitions with separate tasks, then the indexes of the partition columns in the request. Empty if there
    /// are no partitions, too many, or one that is too large.
    pub fn partitioning(&self, request: &[u8]) -> Result<Vec<i64>> {
        let request = Request::parse(request)?;
        let columns = self.key_columns(&request)?;
        if columns.is_empty() || !request.aggregates.is_empty() {
            return Ok(Vec::new());
        }
        let files = self.dataset.schema()?;
        let predicate = self.condition(&request)?.map(|condition| condition.bind(&files)).transpose()?;
        let target = self.options.split_bytes;
        let (mut keys, mut cost): (HashMap<Vec<Key>, u64>, u64) = (HashMap::new(), 0);
        for at in self.dataset.matching(predicate.as_ref())? {
            let known = self.dataset.entry(at).and_then(|entry| entry.known.as_ref());
            let bytes = known.map_or(target, |known| known.len);
            let shares = bytes.div_ceil(target.max(1)).max(1);
            let of_file = OPEN_COST.saturating_mul(shares).saturating_add(bytes);
            let of_key = keys.entry(key(&self.dataset.constants(at)?, &columns)?).or_default();
            *of_key = of_key.saturating_add(of_file);
            cost = cost.saturating_add(of_file);
        }
        let of_task = target.saturating_add(OPEN_COST);
        let packed = cost / of_task + 1;
        let too_many = keys.len() > MAX_KEYS && keys.len() as u64 > packed.saturating_mul(MAX_TASKS);
        let largest = keys.values().max().copied().unwrap_or(0);
        if too_many || largest > of_task.saturating_mul(LARGEST) {
            return Ok(Vec::new());
        }
        let place = |name: &str| request.schema.fields().iter().position(|field| field.name() == name);
        let places = columns.iter().filter_map(|(_, field)| place(field.name()));
        Ok(std::iter::once(keys.len())
            .chain(places)
            .filter_map(|number| i64::try_from(number).ok())
            .collect())
    }

    /// The partition columns of a request whose values do not change in Spark's types.
    fn key_columns(&self, request: &Request) -> Result<Vec<Column>> {
        let mut columns = Vec::new();
        for field in request.schema.fields() {
            let name = self.name_of(field.name())?;
            let is_of_folders = self.dataset.partitions().iter().any(|partition| *partition.name() == name);
            if is_of_folders && is_exact(field.data_type()) {
                columns.push((name, field.as_ref().clone().with_nullable(true)));
            }
        }
        Ok(columns)
    }

    /// Groups splits by their partition, if the request asks for that; otherwise returns one group with all
    /// splits.
    pub(super) fn by_partition(
        &self,
        request: &Request,
        splits: Vec<Split>,
    ) -> Result<Vec<(Vec<Key>, Vec<Split>)>> {
        if !request.is_by_partition {
            return Ok(vec![(Vec::new(), splits)]);
        }
        let columns = self.key_columns(request)?;
        let mut all: Vec<(Vec<Key>, Vec<Split>)> = Vec::new();
        let mut places: HashMap<Vec<Key>, usize> = HashMap::new();
        for split in splits {
            let constants = split.file.fragment.as_ref().map(|fragment| fragment.constants.as_slice());
            let key = key(constants.unwrap_or_default(), &columns)?;
            let at = *places.entry(key.clone()).or_insert_with(|| {
                all.push((key, Vec::new()));
                all.len() - 1
            });
            if let Some((_, own)) = all.get_mut(at) {
                own.push(split);
            }
        }
        Ok(all)
    }
}

fn is_exact(kind: &DataType) -> bool {
    kind.is_signed_integer() || matches!(kind, DataType::Boolean | DataType::Date32 | DataType::Utf8)
}

/// A file's values of these columns, as Spark reads them.
fn key(constants: &[(String, ArrayRef)], columns: &[Column]) -> Result<Vec<Key>> {
    let of = |(name, field): &Column| {
        let lacking =
            || Error::schema(format!("expected a file in a folder of the partition column `{name}`"));
        let (_, value) = constants.iter().find(|(known, _)| known == name).ok_or_else(lacking)?;
        let source = Field::new(field.name(), value.data_type().clone(), true);
        let batch = RecordBatch::try_new(Schema::new(vec![source]).into(), vec![value.clone()]);
        let made = conform(&batch.map_err(arrow_error)?, &Schema::new(vec![field.clone()]).into())?;
        made.columns().first().and_then(|column| value_of(column.as_ref())).ok_or_else(lacking)
    };
    columns.iter().map(of).collect()
}

/// The value of an array of length 1.
fn value_of(of: &dyn Array) -> Option<Key> {
    fn number<T: ArrowPrimitiveType<Native: Into<i64>>>(of: &dyn Array) -> Key {
        Key::Number(of.as_primitive::<T>().value(0).into())
    }
    if of.len() != 1 {
        return None;
    }
    if of.is_null(0) {
        return Some(Key::Null);
    }
    Some(match of.data_type() {
        DataType::Boolean => Key::Number(of.as_boolean().value(0).into()),
        DataType::Int8 => number::<Int8Type>(of),
        DataType::Int16 => number::<Int16Type>(of),
        DataType::Int32 => number::<Int32Type>(of),
        DataType::Int64 => number::<Int64Type>(of),
        DataType::Date32 => number::<Date32Type>(of),
        DataType::Utf8 => Key::Text(of.as_string::<i32>().value(0).to_owned()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_have_the_values_that_spark_reads() {
        let of = |value: ArrayRef, kind| {
            let columns = [("p".to_owned(), Field::new("P", kind, true))];
            key(&[("p".to_owned(), value)], &columns).map(|mut all| all.remove(0))
        };
        let seven: ArrayRef = Arc::new(Int64Array::from(vec![7]));
        assert_eq!(of(seven.clone(), DataType::Int64).unwrap(), Key::Number(7));
        assert_eq!(of(seven, DataType::Int32).unwrap(), Key::Number(7));
        let text: ArrayRef = Arc::new(StringArray::from(vec![Some("a b")]));
        assert_eq!(of(text, DataType::Utf8).unwrap(), Key::Text("a b".to_owned()));
        let none: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
        assert_eq!(of(none, DataType::Utf8).unwrap(), Key::Null);
        let large: ArrayRef = Arc::new(Int64Array::from(vec![1 << 40]));
        assert!(of(large, DataType::Int32).is_err());
        assert!(key(&[], &[("p".to_owned(), Field::new("p", DataType::Utf8, true))]).is_err());
    }

    #[test]
    fn partitions_get_separate_tasks_up_to_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/orc/files/types_none.orc");
        for number in 0..=MAX_KEYS {
            let folder = dir.path().join(format!("p={number}"));
            std::fs::create_dir(&folder).unwrap();
            std::fs::copy(file, folder.join("a")).unwrap();
        }
        std::fs::copy(file, dir.path().join("p=7/b")).unwrap();
        let table = |options: serde_json::Value| {
            let request = json!({"options": options}).to_string();
            Table::open(request.as_bytes()).unwrap()
        };
        let schema = json!({"type": "struct", "fields": [{"name": "p", "type": "long"}]});
        let below = |p: usize| {
            let value = json!({"type": "long", "value": p.to_string()});
            let filter = json!({"op": "<", "args": [{"name": ["p"]}, value]}).to_string();
            json!({"schema": schema, "filters": [filter], "by_partition": true}).to_string()
        };
        let (all, few) = (below(1000), below(9));
        let packed = table(json!({"path": dir.path()}));
        assert_eq!(packed.partitioning(all.as_bytes()).unwrap(), Vec::<i64>::new());
        assert_eq!(packed.partitioning(few.as_bytes()).unwrap(), [9, 0]);
        let tasks = packed.plan(few.as_bytes()).unwrap().tasks;
        let keys: Vec<_> = tasks.iter().map(|task| task.key.clone()).collect();
        assert_eq!(keys, (0..9).map(|number| vec![Key::Number(number)]).collect::<Vec<_>>());
        // If each file has a task of its own anyway, dividing by partition adds no tasks.
        let size = std::fs::metadata(file).unwrap().len();
        let apart = table(json!({"path": dir.path(), "split_bytes": size.to_string()}));
        assert_eq!(apart.partitioning(all.as_bytes()).unwrap(), [501, 0]);
        // A partition of five tasks is too large for one task of Spark.
        let cut = table(json!({"path": dir.path(), "split_bytes": (size / 5 + 1).to_string()}));
        assert_eq!(cut.partitioning(few.as_bytes()).unwrap(), Vec::<i64>::new());
    }
}
