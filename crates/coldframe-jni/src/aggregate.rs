//! `count`, `min` and `max` over all rows of a task. Spark merges the results of all tasks.
//!
//! ```text
//! [{"op": "MIN", "name": ["a"]}, {"op": "COUNT"}]      as io.coldframe.spark.ColdframeScanBuilder writes them
//! ```
//! An aggregate is accepted only if Spark computes the same result. Spark computes the same result for
//! integers, dates, booleans and texts. Floating point numbers may be NaN, and timestamps and decimals may
//! change when they are converted for Spark.

use std::sync::Arc;

use arrow_arith::aggregate::{max, max_boolean, max_string, min, min_boolean, min_string};
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Int64Array, PrimitiveArray, RecordBatch, StringArray,
    new_null_array,
};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat;
use coldframe::{Error, Extremes, Result, arrow_error};
use serde_json::{Value as Json, json};

use crate::notes;

/// The function of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The number of values that are not null.
    Count,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
}

impl Function {
    const ALL: [(&'static str, Self); 3] = [("COUNT", Self::Count), ("MIN", Self::Min), ("MAX", Self::Max)];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, function)| function)
    }

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }
}

/// One function over the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// The function.
    pub function: Function,
    /// The column; `None` to count all rows.
    pub column: Option<String>,
}

impl Aggregate {
    /// Parses Spark's list of aggregates; `None` if one of the aggregates is not supported.
    pub fn parse(json: &Json) -> Option<Vec<Self>> {
        json.as_array()?.iter().map(Self::parse_aggregate).collect()
    }

    fn parse_aggregate(json: &Json) -> Option<Self> {
        let function = Function::named(json.get("op")?.as_str()?)?;
        let column = match json.get("name").map(Json::as_array) {
            None => None,
            Some(Some(names)) if names.len() == 1 => Some(names.first()?.as_str()?.to_owned()),
            // The column is a field of a struct.
            Some(_) => return None,
        };
        (column.is_some() || function == Function::Count).then_some(Self { function, column })
    }

    /// The JSON for [`Aggregate::parse`].
    pub fn to_json(&self) -> Json {
        match &self.column {
            Some(column) => json!({"op": self.function.name(), "name": [column]}),
            None => json!({"op": self.function.name()}),
        }
    }

    /// The name and type of the result, for columns in Spark's types; `None` if the aggregate is left to
    /// Spark.
    pub fn answer(&self, columns: &Schema) -> Option<Field> {
        let shown = self.column.as_deref().unwrap_or("*");
        let name = format!("{}({shown})", self.function.name().to_lowercase());
        let of = self.column.as_ref().map(|column| columns.field_with_name(column));
        let kind = match (self.function, of) {
            (Function::Count, None | Some(Ok(_))) => DataType::Int64,
            (_, Some(Ok(field))) if is_ordered(field.data_type()) && !notes::has(field) => {
                field.data_type().clone()
            }
            _ => return None,
        };
        Some(Field::new(name, kind, true))
    }
}

fn is_ordered(kind: &DataType) -> bool {
    kind.is_signed_integer() || matches!(kind, DataType::Date32 | DataType::Boolean | DataType::Utf8)
}

/// The value of an aggregate over the rows so far.
#[derive(Debug)]
enum Total {
    Count(u64),
    /// A minimum or maximum, as an array of length 1.
    End(ArrayRef),
}

/// Computes aggregates over the rows that are added.
#[derive(Debug)]
pub struct Totals {
    /// Each function with the index of its column, if it has one.
    functions: Vec<(Function, Option<usize>)>,
    totals: Vec<Total>,
    schema: Arc<Schema>,
}

impl Totals {
    /// Creates the totals for batches with these columns, in Spark's types.
    pub fn new(aggregates: &[Aggregate], columns: &Schema) -> Result<Self> {
        let (mut functions, mut totals, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for aggregate in aggregates {
            let refused =
                || Error::invalid(format!("an aggregate that is left to Spark: {}", aggregate.to_json()));
            let answer = aggregate.answer(columns).ok_or_else(refused)?;
            let at = aggregate.column.as_ref().map(|name| columns.index_of(name)).transpose();
            functions.push((aggregate.function, at.map_err(arrow_error)?));
            totals.push(match aggregate.function {
                Function::Count => Total::Count(0),
                _ => Total::End(new_null_array(answer.data_type(), 1)),
            });
            fields.push(answer);
        }
        Ok(Self { functions, totals, schema: Arc::new(Schema::new(fields)) })
    }

    /// Adds the rows of a batch.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        for ((function, at), total) in self.functions.iter().zip(&mut self.totals) {
            let column = at.and_then(|at| batch.columns().get(at));
            match total {
                Total::Count(count) => {
                    let nulls = column.map_or(0, |column| column.logical_null_count());
                    *count = count.saturating_add(batch.num_rows().saturating_sub(nulls) as u64);
                }
                Total::End(end) => {
                    if let Some(column) = column {
                        *end = outer(*function, end, column)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the metadata of these units give the results of all aggregates.
    pub fn is_answered_by(&self, units: &[Extremes]) -> bool {
        let is_known = |(function, at): &(Function, Option<usize>), unit: &Extremes| {
            let column = at.and_then(|at| unit.columns.get(at));
            *function == Function::Count || column.is_some_and(|column| column.ends.is_some())
        };
        units.iter().all(|unit| self.functions.iter().all(|function| is_known(function, unit)))
    }

    /// Adds the rows of a unit whose metadata give the results of all aggregates.
    pub fn add_unit(&mut self, unit: &Extremes) -> Result<()> {
        for ((function, at), total) in self.functions.iter().zip(&mut self.totals) {
            let column = at.and_then(|at| unit.columns.get(at));
            match total {
                Total::Count(count) => {
                    *count = count.saturating_add(column.map_or(unit.rows, |column| column.values));
                }
                Total::End(end) => {
                    let unknown =
                        || Error::invalid("expected the minimum and maximum of a column, found none");
                    let ends = column.and_then(|column| column.ends.as_ref()).ok_or_else(unknown)?;
                    *end = outer(*function, end, ends)?;
                }
            }
        }
        Ok(())
    }

    /// The results, as a batch of one row.
    pub fn answers(&self) -> Result<RecordBatch> {
        let column = |total: &Total| -> ArrayRef {
            match total {
                Total::Count(count) => {
                    Arc::new(Int64Array::from(vec![i64::try_from(*count).unwrap_or(i64::MAX)]))
                }
                Total::End(end) => end.clone(),
            }
        };
        RecordBatch::try_new(self.schema.clone(), self.totals.iter().map(column).collect())
            .map_err(arrow_error)
    }
}

/// The smallest or largest of a value and a column's values; null if all of them are null.
fn outer(function: Function, end: &ArrayRef, column: &ArrayRef) -> Result<ArrayRef> {
    let own = extreme(function, column.as_ref())?;
    extreme(function, &concat(&[end.as_ref(), own.as_ref()]).map_err(arrow_error)?)
}

/// The smallest or largest value of a column, as an array of length 1.
fn extreme(function: Function, of: &dyn Array) -> Result<ArrayRef> {
    let is_min = function == Function::Min;
    Ok(match of.data_type() {
        DataType::Int8 => number::<Int8Type>(is_min, of),
        DataType::Int16 => number::<Int16Type>(is_min, of),
        DataType::Int32 => number::<Int32Type>(is_min, of),
        DataType::Int64 => number::<Int64Type>(is_min, of),
        DataType::Date32 => number::<Date32Type>(is_min, of),
        DataType::Boolean => {
            let of = of.as_boolean();
            Arc::new(BooleanArray::from(vec![if is_min { min_boolean(of) } else { max_boolean(of) }]))
        }
        DataType::Utf8 => {
            let of = of.as_string::<i32>();
            Arc::new(StringArray::from(vec![if is_min { min_string(of) } else { max_string(of) }]))
        }
        other => return Err(Error::unsupported(format!("the minimum or maximum of {other} values"))),
    })
}

fn number<T: ArrowPrimitiveType>(is_min: bool, of: &dyn Array) -> ArrayRef {
    let of = of.as_primitive::<T>();
    Arc::new(PrimitiveArray::<T>::from_iter([if is_min { min(of) } else { max(of) }]))
}

#[cfg(test)]
mod tests {
    use coldframe::ColumnExtremes;

    use super::*;

    fn asked(functions: &[(&str, Option<&str>)]) -> Vec<Aggregate> {
        let aggregate = |(op, name): &(&str, Option<&str>)| match name {
            Some(name) => json!({"op": op, "name": [name]}),
            None => json!({"op": op}),
        };
        Aggregate::parse(&Json::Array(functions.iter().map(aggregate).collect())).unwrap()
    }

    fn batch(numbers: &[Option<i32>], texts: &[Option<&str>]) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(arrow_array::Int32Array::from(numbers.to_vec()));
        let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("s", texts, true)]).unwrap()
    }

    #[test]
    fn batches_and_metadata_are_added_up() {
        let first = batch(&[Some(5), None, Some(-3)], &[Some("b"), Some("ä"), None]);
        let asked = asked(&[
            ("COUNT", None),
            ("COUNT", Some("s")),
            ("MIN", Some("n")),
            ("MAX", Some("n")),
            ("MAX", Some("s")),
        ]);
        let mut totals = Totals::new(&asked, &first.schema()).unwrap();
        let none = totals.answers().unwrap();
        assert_eq!(none.column(0).as_primitive::<Int64Type>().value(0), 0);
        assert!(none.column(2).is_null(0));
        totals.add(&first).unwrap();
        totals.add(&batch(&[None], &[Some("a")])).unwrap();
        let ends =
            |values: Vec<Option<i32>>| Some(Arc::new(arrow_array::Int32Array::from(values)) as ArrayRef);
        let column = |values, ends| ColumnExtremes { values, ends };
        let unit = |numbers| Extremes { rows: 10, columns: vec![column(4, numbers), column(9, None)] };
        assert!(
            !totals.is_answered_by(&[unit(ends(vec![Some(1), Some(2)]))]),
            "the extremes of the texts are unknown"
        );
        let numbers = Totals::new(&asked[..4], &first.schema()).unwrap();
        assert!(numbers.is_answered_by(&[unit(ends(vec![None, None]))]));
        assert!(!numbers.is_answered_by(&[unit(ends(vec![None, None])), unit(None)]));
        let mut numbers = numbers;
        numbers.add(&first).unwrap();
        numbers.add_unit(&unit(ends(vec![Some(-7), Some(2)]))).unwrap();
        let answers = numbers.answers().unwrap();
        let long = |at: usize| answers.column(at).as_primitive::<Int64Type>().value(0);
        assert_eq!((long(0), long(1)), (13, 11));
        assert_eq!(answers.column(2).as_primitive::<Int32Type>().value(0), -7);
        assert_eq!(answers.column(3).as_primitive::<Int32Type>().value(0), 5);
        assert_eq!(totals.answers().unwrap().column(4).as_string::<i32>().value(0), "ä");
    }

    #[test]
    fn aggregates_that_may_differ_are_left_to_spark() {
        let columns = Schema::new(vec![
            Field::new("x", DataType::Float64, true),
            Field::new("c", DataType::Decimal128(5, 2), true),
            Field::new("n", DataType::Int32, true),
        ]);
        for (aggregate, taken) in [
            (("MIN", Some("x")), false),
            (("MAX", Some("c")), false),
            (("MAX", Some("nowhere")), false),
            (("COUNT", Some("x")), true),
            (("MIN", Some("n")), true),
        ] {
            assert_eq!(asked(&[aggregate])[0].answer(&columns).is_some(), taken, "{aggregate:?}");
        }
        for unsupported in [
            json!([{"op": "SUM", "name": ["n"]}]),
            json!([{"op": "MIN"}]),
            json!([{"op": "MIN", "name": ["s", "f"]}]),
            json!([{"op": "other"}]),
        ] {
            assert_eq!(Aggregate::parse(&unsupported), None, "{unsupported}");
        }
    }
}
