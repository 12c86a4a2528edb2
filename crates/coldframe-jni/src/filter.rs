//! Converts Spark's predicates to coldframe's. A predicate is accepted only if both select the same rows;
//! Spark evaluates the other predicates.
//!
//! ```text
//! {"op": ">", "args": [{"name": ["a"]}, {"type": "long", "value": "5"}]}      as io.coldframe.spark.Filters writes them
//! ```
//! Spark orders NaN above all numbers; coldframe compares as IEEE 754. In Spark `x > 5` is true for NaN, so
//! it becomes `not (x <= 5)`. A comparison is not accepted if the column's values change when they are
//! converted for Spark (such as nanoseconds to microseconds).

use arrow_schema::{DataType, Schema, TimeUnit};
use coldframe::predicate::{Condition, Literal, Number, Op, Pattern, resolve};
use coldframe::{Error, Result};
use serde_json::Value as Json;

use crate::types::plain_type;

/// The columns' names and types, in Spark and in the files.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// The columns in Spark.
    pub spark: &'a Schema,
    /// The columns in the table of the files.
    pub files: &'a Schema,
}

/// The condition for a predicate of Spark; `None` if Spark must evaluate it.
pub fn condition(text: &str, columns: Columns<'_>) -> Option<Condition> {
    let predicate: Json = serde_json::from_str(text).ok()?;
    let made = columns.condition(&predicate)?;
    // A comparison that the files' types do not allow is left to Spark.
    made.bind(columns.files).is_ok().then_some(made)
}

/// Joins the conditions of accepted filters and a condition in SQL with `and`.
pub fn all(taken: &[String], also: Option<&str>, columns: Columns<'_>) -> Result<Option<Condition>> {
    let mut parts = Vec::with_capacity(taken.len() + 1);
    if let Some(text) = also {
        parts.push(coldframe::predicate::parse::condition(text)?);
    }
    for text in taken {
        let refused = || Error::invalid(format!("a filter that is left to Spark: {text}"));
        parts.push(condition(text, columns).ok_or_else(refused)?);
    }
    Ok(match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(Condition::And(parts)),
    })
}

/// A column that a filter names.
struct Column<'a> {
    path: String,
    kind: &'a DataType,
}

impl<'a> Columns<'a> {
    fn condition(self, predicate: &Json) -> Option<Condition> {
        let op = predicate.get("op")?.as_str()?;
        let args = predicate.get("args")?.as_array()?;
        let first = || args.first();
        let all = || args.iter().map(|part| self.condition(part)).collect::<Option<Vec<_>>>();
        Some(match (op, args.len()) {
            ("AND", 2) => Condition::And(all()?),
            ("OR", 2) => Condition::Or(all()?),
            ("NOT", 1) => Condition::Not(Box::new(self.condition(first()?)?)),
            ("ALWAYS_TRUE", 0) => Condition::Constant(Some(true)),
            ("ALWAYS_FALSE", 0) => Condition::Constant(Some(false)),
            ("IS_NULL", 1) => Condition::IsNull { column: self.any_column(first()?)?.path },
            ("IS_NOT_NULL", 1) => not(Condition::IsNull { column: self.any_column(first()?)?.path }),
            ("BOOLEAN_EXPRESSION", 1) => {
                let column = self.column(first()?)?;
                let value = (*column.kind == DataType::Boolean).then_some(Literal::Bool(true))?;
                Condition::Compare { column: column.path, op: Op::Eq, value }
            }
            ("IN", 2..) => self.is_in(first()?, args.get(1..)?)?,
            ("STARTS_WITH" | "ENDS_WITH" | "CONTAINS", 2) => self.like(op, first()?, args.get(1)?)?,
            ("<=>", 2) => self.same(first()?, args.get(1)?)?,
            (sign, 2) => self.compare(Op::parse(sign)?, first()?, args.get(1)?)?,
            _ => return None,
        })
    }

    /// A column that a filter tests for null.
    fn any_column(self, column: &Json) -> Option<Column<'a>> {
        let names = column.get("name")?.as_array()?;
        let names = names.iter().map(Json::as_str).collect::<Option<Vec<_>>>()?;
        let path = names.join(".");
        let (name, kind) = resolve(self.files, &path).ok()?;
        let (_, spark) = resolve(self.spark, &path).ok()?;
        // A dot may be part of a name, or separate names.
        let dots = |text: &str| text.matches('.').count();
        let is_clear = names.len() == 1 || (dots(&path) == names.len() - 1 && self.has_no_column(&path));
        // For Spark, a null in a union becomes a struct with a tag, so it is not null.
        let is_clear = is_clear && !matches!(kind, DataType::Union(..));
        let plain = plain_type(kind).ok()?;
        (is_clear && (plain == *spark || is_text_as_bytes(spark, &plain)))
            .then_some(Column { path: name, kind })
    }

    fn has_no_column(self, name: &str) -> bool {
        let names =
            |schema: &Schema| schema.fields().iter().all(|field| !field.name().eq_ignore_ascii_case(name));
        names(self.files) && names(self.spark)
    }

    /// A column whose values are the same in the file and in Spark.
    fn column(self, column: &Json) -> Option<Column<'a>> {
        self.any_column(column).filter(|column| is_same_value(column.kind))
    }

    fn literal(self, column: &Column<'_>, value: &Json) -> Option<Literal> {
        let kind = crate::types::type_from_spark(value.get("type")?).ok()?;
        let plain = plain_type(column.kind).ok()?;
        let is_as_bytes = is_text_as_bytes(&kind, &plain);
        if kind != plain && !is_as_bytes {
            return None;
        }
        let text = match value.get("value")? {
            Json::Null => return Some(Literal::Null),
            Json::String(text) => text,
            _ => return None,
        };
        // Spark compares texts by their bytes, too.
        if is_as_bytes { Some(Literal::Bytes(text.clone().into_bytes())) } else { literal(&kind, text) }
    }

    fn compare(self, op: Op, column: &Json, value: &Json) -> Option<Condition> {
        let column = self.column(column)?;
        let value = self.literal(&column, value)?;
        // In Spark, NaN is greater than any number and unequal to it.
        let unordered = matches!(op, Op::Gt | Op::Ge | Op::Ne) && plain_type(column.kind).ok()?.is_floating();
        let asked = if unordered { op.opposite() } else { op };
        let made = Condition::Compare { column: column.path, op: asked, value };
        Some(if unordered { not(made) } else { made })
    }

    /// The condition that column and value are equal, or both null.
    fn same(self, column: &Json, value: &Json) -> Option<Condition> {
        let of = self.column(column)?;
        match self.literal(&of, value)? {
            Literal::Null => Some(Condition::IsNull { column: of.path }),
            value => {
                let has_value = not(Condition::IsNull { column: of.path.clone() });
                Some(Condition::And(vec![
                    has_value,
                    Condition::Compare { column: of.path, op: Op::Eq, value },
                ]))
            }
        }
    }

    fn is_in(self, column: &Json, values: &[Json]) -> Option<Condition> {
        let column = self.column(column)?;
        if plain_type(column.kind).ok()?.is_floating() {
            return None;
        }
        let values = values.iter().map(|value| self.literal(&column, value)).collect::<Option<Vec<_>>>()?;
        let (nulls, values): (Vec<_>, Vec<_>) = values.into_iter().partition(|value| *value == Literal::Null);
        let made = Condition::In { column: column.path, values };
        Some(if nulls.is_empty() { made } else { Condition::Or(vec![made, Condition::Constant(None)]) })
    }

    fn like(self, op: &str, column: &Json, value: &Json) -> Option<Condition> {
        let column = self.column(column)?;
        let Literal::Text(text) = self.literal(&column, value)? else { return None };
        let mut pattern = String::new();
        if op != "STARTS_WITH" {
            pattern.push('%');
        }
        for c in text.chars() {
            if matches!(c, '%' | '_' | '\\') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        if op != "ENDS_WITH" {
            pattern.push('%');
        }
        Some(Condition::Like { column: column.path, pattern: Pattern::new(&pattern) })
    }
}

/// Whether a text of Spark is read as its bytes, which need not be UTF-8.
pub(crate) fn is_text_as_bytes(spark: &DataType, stored: &DataType) -> bool {
    *spark == DataType::Utf8 && *stored == DataType::Binary
}

fn not(condition: Condition) -> Condition {
    Condition::Not(Box::new(condition))
}

fn is_same_value(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_same_value(values),
        DataType::Timestamp(unit, _) => *unit != TimeUnit::Nanosecond,
        DataType::Boolean
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
        | DataType::Date32
        | DataType::Float32
        | DataType::Float64 => true,
        other => other.is_integer() || other.is_decimal(),
    }
}

fn literal(kind: &DataType, text: &str) -> Option<Literal> {
    Some(match kind {
        DataType::Boolean => Literal::Bool(text.parse().ok()?),
        DataType::Float32 => Literal::Float(f64::from(text.parse::<f32>().ok().filter(|v| !v.is_nan())?)),
        DataType::Float64 => Literal::Float(text.parse::<f64>().ok().filter(|v| !v.is_nan())?),
        DataType::Utf8 => Literal::Text(text.to_owned()),
        DataType::Binary => Literal::Bytes(bytes(text)?),
        DataType::Date32 => Literal::Date(text.parse().ok()?),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros: i64 = text.parse().ok()?;
            Literal::Instant { nanos: i128::from(micros) * 1000, zoned: zone.is_some() }
        }
        other if other.is_integer() || other.is_decimal() => Literal::Number(Number::parse(text)?),
        _ => return None,
    })
}

/// The bytes that hex digits represent.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let of = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    (0..hex.len()).step_by(2).map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, StructArray,
        TimestampNanosecondArray, UnionArray,
    };
    use arrow_schema::{Field, UnionFields};

    use super::*;
    use crate::types::plain_schema;

    fn batch() -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
        let field = Arc::new(Field::new("n", DataType::Int64, true));
        let valid = Some(vec![true, false, true, false].into());
        let points = StructArray::new(vec![field.clone()].into(), vec![numbers.clone()], valid);
        let kinds = UnionFields::from_iter([(0, field)]);
        let union = UnionArray::try_new(kinds, vec![0; 4].into(), None, vec![numbers]).unwrap();
        let columns: [(&str, ArrayRef); 7] = [
            ("p", Arc::new(points)),
            ("u", Arc::new(union)),
            ("a", Arc::new(Int64Array::from(vec![Some(1), Some(5), None, Some(9)]))),
            ("S", Arc::new(StringArray::from(vec![Some("a_b%"), Some("axb"), None, Some("ä")]))),
            ("x", Arc::new(Float64Array::from(vec![Some(1.0), Some(f64::NAN), None, Some(-0.0)]))),
            ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]))),
            ("t", Arc::new(TimestampNanosecondArray::from(vec![Some(1), Some(2), None, Some(3)]))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
    }

    fn passing(filter: &str) -> Option<Vec<bool>> {
        let batch = batch();
        let spark = plain_schema(batch.schema_ref()).unwrap();
        let made = condition(filter, Columns { spark: &spark, files: batch.schema_ref() })?;
        let result = made.bind(batch.schema_ref()).unwrap().evaluate(&batch).unwrap();
        Some(result.iter().map(|row| row == Some(true)).collect())
    }

    fn of(op: &str, column: &str, kind: &str, values: &[Option<&str>]) -> String {
        let values = values.iter().map(|value| serde_json::json!({"type": kind, "value": value}));
        let mut args = vec![serde_json::json!({"name": [column]})];
        args.extend(values);
        serde_json::json!({"op": op, "args": args}).to_string()
    }

    #[test]
    fn conditions_select_the_same_rows_as_spark() {
        let (t, f) = (true, false);
        for (filter, rows) in [
            (of(">", "A", "long", &[Some("1")]), [f, t, f, t]),
            (of("<=>", "a", "long", &[None]), [f, f, t, f]),
            (of("<=>", "a", "long", &[Some("5")]), [f, t, f, f]),
            (of("IN", "a", "long", &[Some("5"), Some("9"), None]), [f, t, f, t]),
            (format!(r#"{{"op":"NOT","args":[{}]}}"#, of("IN", "a", "long", &[Some("5"), None])), [f; 4]),
            (format!(r#"{{"op":"NOT","args":[{}]}}"#, of("<=>", "a", "long", &[Some("5")])), [t, f, t, t]),
            (of("STARTS_WITH", "s", "string", &[Some("a_")]), [t, f, f, f]),
            (of("ENDS_WITH", "s", "string", &[Some("b%")]), [t, f, f, f]),
            (of("CONTAINS", "s", "string", &[Some("")]), [t, t, f, t]),
            // In Spark, NaN is the largest number, and zeros are equal whatever their sign.
            (of(">", "x", "double", &[Some("0.5")]), [t, t, f, f]),
            (of(">=", "x", "double", &[Some("0.0")]), [t, t, f, t]),
            (of("<>", "x", "double", &[Some("1.0")]), [f, t, f, t]),
            (of("<", "x", "double", &[Some("Infinity")]), [t, f, f, t]),
            (of("=", "x", "double", &[Some("0.0")]), [f, f, f, t]),
            (of("BOOLEAN_EXPRESSION", "b", "", &[]), [t, f, f, t]),
            (of("IS_NOT_NULL", "t", "", &[]), [t, t, f, t]),
            (of("IS_NULL", "P", "", &[]), [f, t, f, t]),
            (format!(r#"{{"op":"NOT","args":[{}]}}"#, of("IS_NULL", "p", "", &[])), [t, f, t, f]),
        ] {
            assert_eq!(passing(&filter).as_deref(), Some(&rows[..]), "{filter}");
        }
    }

    #[test]
    fn filters_that_may_differ_are_left_to_spark() {
        for filter in [
            of("=", "x", "double", &[Some("NaN")]),
            of("IN", "x", "double", &[Some("1.0")]),
            of("=", "t", "timestamp_ntz", &[Some("1")]),
            of("IS_NULL", "u", "", &[]),
            of("=", "p", "long", &[Some("1")]),
            of("=", "a", "integer", &[Some("1")]),
            of("=", "nowhere", "long", &[Some("1")]),
            of("+", "a", "long", &[Some("1")]),
            of("=", "a", "long", &[]),
            format!(
                r#"{{"op":"OR","args":[{},{{"op":"f","args":[]}}]}}"#,
                of("=", "a", "long", &[Some("1")])
            ),
            "no JSON".to_owned(),
        ] {
            assert_eq!(passing(&filter), None, "{filter}");
        }
    }
}
