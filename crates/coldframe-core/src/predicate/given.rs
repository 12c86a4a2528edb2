//! Simplifies a bound filter if some columns have the same known value in all rows: partition columns, or
//! nulls if a file lacks a column.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema};
use coldframe_encoding::Result;

use super::Predicate;
use crate::{arrow_error, projection};

impl Predicate {
    /// Simplifies the filter if some columns of `schema` have the same known value in all rows: `known`
    /// returns that value as an array of length 1.
    ///
    /// A row passes only if the whole filter is true, so an unknown part is treated as false.
    pub fn given(&self, schema: &Schema, known: &dyn Fn(&str) -> Option<ArrayRef>) -> Result<Self> {
        match self {
            Self::And(all) => {
                let mut open = Self::parts_given(all, schema, known)?;
                open.retain(|part| !part.is_all_rows());
                let never = open.iter().any(Self::is_no_row);
                Ok(if never { Self::no_row() } else { alone_or(open, Self::And) })
            }
            Self::Or(any) => {
                let mut open = Self::parts_given(any, schema, known)?;
                open.retain(|part| !part.is_no_row());
                let always = open.iter().any(Self::is_all_rows);
                Ok(if always { Self::all_rows() } else { alone_or(open, Self::Or) })
            }
            test => test.test_given(schema, known),
        }
    }

    fn parts_given(
        parts: &[Self],
        schema: &Schema,
        known: &dyn Fn(&str) -> Option<ArrayRef>,
    ) -> Result<Vec<Self>> {
        let mut left = Vec::with_capacity(parts.len());
        for part in parts {
            left.push(part.given(schema, known)?);
        }
        Ok(left)
    }

    /// It is a separate function, so that the recursion above needs little stack.
    #[inline(never)]
    fn test_given(&self, schema: &Schema, known: &dyn Fn(&str) -> Option<ArrayRef>) -> Result<Self> {
        let mut columns = Vec::new();
        self.columns(&mut columns);
        let column = columns.first().copied().unwrap_or_default();
        let top = projection::steps(schema, column)?.first().copied();
        Ok(match top.and_then(|top| Some((top, known(top.name())?))) {
            Some((top, value)) if self.holds(top, &value)? => Self::all_rows(),
            Some(_) => Self::no_row(),
            None => self.clone(),
        })
    }

    /// The filter that every row passes.
    pub fn all_rows() -> Self {
        Self::And(Vec::new())
    }

    /// The filter that no row passes.
    fn no_row() -> Self {
        Self::Or(Vec::new())
    }

    /// Whether every row passes, whatever its values.
    pub fn is_all_rows(&self) -> bool {
        match self {
            Self::And(all) => all.iter().all(Self::is_all_rows),
            Self::Or(any) => any.iter().any(Self::is_all_rows),
            _ => false,
        }
    }

    /// Whether no row passes, whatever its values.
    pub fn is_no_row(&self) -> bool {
        match self {
            Self::And(all) => all.iter().any(Self::is_no_row),
            Self::Or(any) => any.iter().all(Self::is_no_row),
            _ => false,
        }
    }

    /// The result of a test of one column, if the column has this value.
    fn holds(&self, column: &Field, value: &ArrayRef) -> Result<bool> {
        let column = column.clone().with_data_type(value.data_type().clone()).with_nullable(true);
        let schema = Schema::new(vec![column]);
        let options = RecordBatchOptions::new().with_row_count(Some(value.len()));
        let batch = RecordBatch::try_new_with_options(schema.clone().into(), vec![value.clone()], &options)
            .map_err(arrow_error)?;
        Ok(self.clone().bind(&schema)?.passing(&batch)?.count_set_bits() > 0)
    }
}

/// The only part as it is, or several parts combined by `together`.
fn alone_or(mut parts: Vec<Predicate>, together: impl Fn(Vec<Predicate>) -> Predicate) -> Predicate {
    match (parts.len(), parts.pop()) {
        (1, Some(part)) => part,
        (_, last) => {
            parts.extend(last);
            together(parts)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray, new_null_array};
    use arrow_schema::DataType;

    use super::*;
    use crate::predicate::parse;

    fn given(text: &str, p: Option<i64>) -> Predicate {
        let schema = Schema::new(vec![
            Field::new("x", DataType::Int64, true),
            Field::new("p", DataType::Int64, true),
            Field::new("s", DataType::Utf8, true),
        ]);
        let value: ArrayRef = match p {
            Some(p) => Arc::new(Int64Array::from(vec![p])),
            None => new_null_array(&DataType::Int64, 1),
        };
        let s: ArrayRef = Arc::new(StringArray::from(vec!["eu"]));
        let known = |name: &str| match name {
            "p" => Some(value.clone()),
            "s" => Some(s.clone()),
            _ => None,
        };
        parse::condition(text).unwrap().bind(&schema).unwrap().given(&schema, &known).unwrap()
    }

    #[test]
    fn known_parts_of_a_filter_are_removed() {
        for (text, p, all, none) in [
            ("p = 1", Some(1), true, false),
            ("p = 1", Some(2), false, true),
            ("p = 1", None, false, true),
            ("not p = 1", None, false, true),
            ("p is null", None, true, false),
            ("P in (1, 2) and s like 'e%'", Some(2), true, false),
            ("p = 1 and x > 3", Some(2), false, true),
            ("p = 1 or x > 3", Some(1), true, false),
            ("p = 1 and x > 3", Some(1), false, false),
            ("x > 3 and not (p = 1 or x < 9)", Some(1), false, true),
        ] {
            let left = given(text, p);
            assert_eq!((left.is_all_rows(), left.is_no_row()), (all, none), "{text} {p:?}: {left:?}");
        }
        // The simplified filter no longer needs the known columns.
        let left = given("(p = 1 or x > 3) and s = 'eu' and x < 9", Some(2));
        let mut columns = Vec::new();
        left.columns(&mut columns);
        assert_eq!(columns, ["x", "x"]);
    }
}
