//! `count`, `min` and `max` over all rows of a task, which Spark merges with those of the other tasks.
//!
//! ```text
//! [{"op": "MIN", "name": ["a"]}, {"op": "COUNT"}]      as io.coldframe.spark.ColdframeScanBuilder writes them
//! ```
//!
//! What is taken means the same in Spark: integers, dates, truth values and texts have one order. Floating point numbers have NaN, and
//! timestamps and decimals may change on the way to Spark.

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

/// What is computed of a column.
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
    /// What is computed.
    pub function: Function,
    /// Of which column; the number of all rows if there is none.
    pub column: Option<String>,
}

impl Aggregate {
    /// Those that Spark asks for, in its words; `None` if one of them is not known here.
    pub fn parse(said: &Json) -> Option<Vec<Self>> {
        said.as_array()?.iter().map(Self::parse_one).collect()
    }

    fn parse_one(said: &Json) -> Option<Self> {
        let function = Function::named(said.get("op")?.as_str()?)?;
        let column = match said.get("name").map(Json::as_array) {
            None => None,
            Some(Some(names)) if names.len() == 1 => Some(names.first()?.as_str()?.to_owned()),
            // A field of a struct.
            Some(_) => return None,
        };
        (column.is_some() || function == Function::Count).then_some(Self { function, column })
    }

    /// The words for [`Aggregate::parse`].
    pub fn to_json(&self) -> Json {
        match &self.column {
            Some(column) => json!({"op": self.function.name(), "name": [column]}),
            None => json!({"op": self.function.name()}),
        }
    }

    /// Its column among those of Spark's types, and the answer's name and type; `None` if it is left to Spark.
    pub fn answer(&self, columns: &Schema) -> Option<Field> {
        let shown = self.column.as_deref().unwrap_or("*");
        let name = format!("{}({shown})", self.function.name().to_lowercase());
        let of = self.column.as_ref().map(|column| columns.field_with_name(column));
        let kind = match (self.function, of) {
            (Function::Count, None | Some(Ok(_))) => DataType::Int64,
            (_, Some(Ok(field))) if is_ordered(field.data_type()) => field.data_type().clone(),
            _ => return None,
        };
        Some(Field::new(name, kind, true))
    }
}

fn is_ordered(kind: &DataType) -> bool {
    kind.is_signed_integer() || matches!(kind, DataType::Date32 | DataType::Boolean | DataType::Utf8)
}

/// What was found so far.
#[derive(Debug)]
enum Found {
    Count(u64),
    /// An array of one.
    End(ArrayRef),
}

/// The answers over the rows that were added.
#[derive(Debug)]
pub struct Totals {
    /// Each with the number of its column.
    asked: Vec<(Function, Option<usize>)>,
    found: Vec<Found>,
    schema: Arc<Schema>,
}

impl Totals {
    /// Over batches of these columns, in types that Spark has.
    pub fn new(aggregates: &[Aggregate], columns: &Schema) -> Result<Self> {
        let (mut asked, mut found, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for one in aggregates {
            let refused = || Error::invalid(format!("an aggregate that was not taken: {}", one.to_json()));
            let answer = one.answer(columns).ok_or_else(refused)?;
            let at = one.column.as_ref().map(|name| columns.index_of(name)).transpose();
            asked.push((one.function, at.map_err(arrow_error)?));
            found.push(match one.function {
                Function::Count => Found::Count(0),
                _ => Found::End(new_null_array(answer.data_type(), 1)),
            });
            fields.push(answer);
        }
        Ok(Self { asked, found, schema: Arc::new(Schema::new(fields)) })
    }

    /// Adds the rows of a batch.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        for ((function, at), found) in self.asked.iter().zip(&mut self.found) {
            let column = at.and_then(|at| batch.columns().get(at));
            match found {
                Found::Count(count) => {
                    let nulls = column.map_or(0, |column| column.logical_null_count());
                    *count = count.saturating_add(batch.num_rows().saturating_sub(nulls) as u64);
                }
                Found::End(end) => {
                    if let Some(column) = column {
                        *end = outer(*function, end, column)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the metadata of some units say all that is asked.
    pub fn is_answered_by(&self, units: &[Extremes]) -> bool {
        let is_known = |(function, at): &(Function, Option<usize>), unit: &Extremes| {
            let column = at.and_then(|at| unit.columns.get(at));
            *function == Function::Count || column.is_some_and(|column| column.ends.is_some())
        };
        units.iter().all(|unit| self.asked.iter().all(|one| is_known(one, unit)))
    }

    /// Adds the rows of a unit of which its metadata say all that is asked.
    pub fn add_unit(&mut self, unit: &Extremes) -> Result<()> {
        for ((function, at), found) in self.asked.iter().zip(&mut self.found) {
            let column = at.and_then(|at| unit.columns.get(at));
            match found {
                Found::Count(count) => {
                    *count = count.saturating_add(column.map_or(unit.rows, |column| column.values));
                }
                Found::End(end) => {
                    let unknown = || Error::invalid("metadata without the ends of a column");
                    let ends = column.and_then(|column| column.ends.as_ref()).ok_or_else(unknown)?;
                    *end = outer(*function, end, ends)?;
                }
            }
        }
        Ok(())
    }

    /// The answers, as a batch of one row.
    pub fn answers(&self) -> Result<RecordBatch> {
        let column = |found: &Found| -> ArrayRef {
            match found {
                Found::Count(count) => {
                    Arc::new(Int64Array::from(vec![i64::try_from(*count).unwrap_or(i64::MAX)]))
                }
                Found::End(end) => end.clone(),
            }
        };
        RecordBatch::try_new(self.schema.clone(), self.found.iter().map(column).collect())
            .map_err(arrow_error)
    }
}

/// The smaller or larger of a value and those of a column; null where there is none.
fn outer(function: Function, end: &ArrayRef, column: &ArrayRef) -> Result<ArrayRef> {
    let own = extreme(function, column.as_ref())?;
    extreme(function, &concat(&[end.as_ref(), own.as_ref()]).map_err(arrow_error)?)
}

/// The smallest or largest value of a column, as an array of one.
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
        other => return Err(Error::unsupported(format!("the smallest or largest {other}"))),
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

    fn asked(words: &[(&str, Option<&str>)]) -> Vec<Aggregate> {
        let one = |(op, name): &(&str, Option<&str>)| match name {
            Some(name) => json!({"op": op, "name": [name]}),
            None => json!({"op": op}),
        };
        Aggregate::parse(&Json::Array(words.iter().map(one).collect())).unwrap()
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
            "the texts' ends are not known"
        );
        let numbers = Totals::new(&asked[..4], &first.schema()).unwrap();
        assert!(numbers.is_answered_by(&[unit(ends(vec![None, None]))]));
        assert!(!numbers.is_answered_by(&[unit(ends(vec![None, None])), unit(None)]));
        let mut numbers = numbers;
        numbers.add(&first).unwrap();
        numbers.add_unit(&unit(ends(vec![Some(-7), Some(2)]))).unwrap();
        let found = numbers.answers().unwrap();
        let long = |at: usize| found.column(at).as_primitive::<Int64Type>().value(0);
        assert_eq!((long(0), long(1)), (13, 11));
        assert_eq!(found.column(2).as_primitive::<Int32Type>().value(0), -7);
        assert_eq!(found.column(3).as_primitive::<Int32Type>().value(0), 5);
        assert_eq!(totals.answers().unwrap().column(4).as_string::<i32>().value(0), "ä");
    }

    #[test]
    fn what_may_differ_is_left_to_spark() {
        let columns = Schema::new(vec![
            Field::new("x", DataType::Float64, true),
            Field::new("c", DataType::Decimal128(5, 2), true),
            Field::new("n", DataType::Int32, true),
        ]);
        for (words, taken) in [
            (("MIN", Some("x")), false),
            (("MAX", Some("c")), false),
            (("MAX", Some("nowhere")), false),
            (("COUNT", Some("x")), true),
            (("MIN", Some("n")), true),
        ] {
            assert_eq!(asked(&[words])[0].answer(&columns).is_some(), taken, "{words:?}");
        }
        for said in [
            json!([{"op": "SUM", "name": ["n"]}]),
            json!([{"op": "MIN"}]),
            json!([{"op": "MIN", "name": ["s", "f"]}]),
            json!([{"op": "other"}]),
        ] {
            assert_eq!(Aggregate::parse(&said), None, "{said}");
        }
    }
}
