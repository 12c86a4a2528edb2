//! Converts the literals of a filter to the types of the columns they are compared with.

use arrow_array::Array;
use arrow_schema::{DataType, Schema};
use coldframe_encoding::{Error, Result};

use super::coerce;
use super::condition::membership;
use super::literal::Literal;
use super::{Op, Predicate};
use crate::projection;

impl Predicate {
    /// The filter with each literal in its column's type. If that type cannot represent the literal, the
    /// comparison is changed so that it selects the same rows. A literal that only a wider type can represent
    /// (0.1 for a float32 column) keeps the wider type; evaluation then widens the column.
    pub fn bind(self, schema: &Schema) -> Result<Self> {
        Ok(match self {
            Self::Compare { column, op, value, negated } => {
                let to = type_of(schema, &column)?;
                let (op, value) = if value.data_type() == &to {
                    (op, value)
                } else {
                    let bound = coerce::compare(op, &Literal::from_array(&value, 0), &to, &column)?;
                    (bound.op, bound.value)
                };
                // Only floating point numbers have a value, NaN, for which neither a comparison nor its
                // opposite holds.
                if negated && !to.is_floating() && !value.data_type().is_floating() {
                    Self::Compare { column, op: op.opposite(), value, negated: false }
                } else {
                    Self::Compare { column, op, value, negated }
                }
            }
            Self::In { column, values, negated } => {
                let to = type_of(schema, &column)?;
                if values.data_type() == &to {
                    return Ok(Self::In { column, values, negated });
                }
                let literals: Vec<Literal> = (0..values.len())
                    .filter(|i| values.is_valid(*i))
                    .map(|i| Literal::from_array(&values, i))
                    .collect();
                let mut within = membership(&column, &literals, &to, &column)?;
                if values.null_count() > 0 {
                    // Comparing a value with null is null.
                    let null = arrow_array::new_null_array(&to, 1);
                    within = Self::Or(vec![within, Self::compare(column, Op::Eq, null)]);
                }
                if negated { !within } else { within }
            }
            Self::Null { column, negated } => {
                type_of(schema, &column)?;
                Self::Null { column, negated }
            }
            Self::Like { column, pattern, negated } => {
                type_of(schema, &column)?;
                Self::Like { column, pattern, negated }
            }
            Self::And(all) => Self::And(all.into_iter().map(|p| p.bind(schema)).collect::<Result<_>>()?),
            Self::Or(any) => Self::Or(any.into_iter().map(|p| p.bind(schema)).collect::<Result<_>>()?),
        })
    }
}

/// The type of the column or struct child that `path` names.
fn type_of(schema: &Schema, path: &str) -> Result<DataType> {
    let steps = projection::steps(schema, path)?;
    let (last, around) = steps.split_last().ok_or_else(|| Error::schema(format!("no column `{path}`")))?;
    if around.iter().any(|f| !matches!(f.data_type(), DataType::Struct(_))) {
        return Err(Error::unsupported(format!("a filter on `{path}`, which is inside a list or map")));
    }
    if last.data_type().is_nested() {
        return Err(Error::unsupported(format!(
            "a filter on `{path}` of the nested type {}",
            last.data_type()
        )));
    }
    Ok(last.data_type().clone())
}
