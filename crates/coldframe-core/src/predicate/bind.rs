//! Converts the literals of a filter to the types of the columns that they are compared with.

use arrow_array::Array;
use arrow_schema::{DataType, Field, Schema};
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
        self.bound(schema, true)
    }

    /// `trims`: whether to remove the trailing blanks of literals that are compared with a column of type
    /// `char`.
    fn bound(self, schema: &Schema, trims: bool) -> Result<Self> {
        Ok(match self {
            Self::Compare { column, op, value, negated } => {
                let field = field_of(schema, &column)?;
                let to = comparable(field, &column)?;
                let (op, value) = if value.data_type() == to {
                    (op, value)
                } else {
                    let bound = coerce::compare(op, &Literal::from_array(&value, 0), to, &column)?;
                    (bound.op, bound.value)
                };
                // Only floating point numbers have a value, NaN, for which neither a comparison nor its
                // opposite holds.
                let bound = if negated && !to.is_floating() && !value.data_type().is_floating() {
                    Self::Compare { column, op: op.opposite(), value, negated: false }
                } else {
                    Self::Compare { column, op, value, negated }
                };
                bound.of_column(field, trims)
            }
            Self::In { column, values, negated } => {
                let field = field_of(schema, &column)?;
                let to = comparable(field, &column)?;
                if values.data_type() == to {
                    return Ok(Self::In { column, values, negated }.of_column(field, trims));
                }
                let literals: Vec<Literal> = (0..values.len())
                    .filter(|i| values.is_valid(*i))
                    .map(|i| Literal::from_array(&values, i))
                    .collect();
                let mut within = membership(&column, &literals, to, &column)?;
                if values.null_count() > 0 {
                    // The result of a comparison with null is null.
                    let null = arrow_array::new_null_array(to, 1);
                    within = Self::Or(vec![within, Self::compare(column, Op::Eq, null)]);
                }
                (if negated { !within } else { within }).of_column(field, trims)
            }
            Self::Null { column, negated } => {
                field_of(schema, &column)?;
                Self::Null { column, negated }
            }
            Self::Like { column, pattern, negated } => {
                let field = field_of(schema, &column)?;
                comparable(field, &column)?;
                Self::Like { column, pattern, negated }.of_column(field, trims)
            }
            // The literals of this test were trimmed, if necessary, when it was made.
            Self::Trimmed(test) => test.bound(schema, false)?.trimmed(false),
            Self::And(all) => {
                Self::And(all.into_iter().map(|p| p.bound(schema, trims)).collect::<Result<_>>()?)
            }
            Self::Or(any) => {
                Self::Or(any.into_iter().map(|p| p.bound(schema, trims)).collect::<Result<_>>()?)
            }
        })
    }
}

/// The column or struct child that `path` names.
fn field_of<'a>(schema: &'a Schema, path: &str) -> Result<&'a Field> {
    let steps = projection::steps(schema, path)?;
    let (last, around) = steps.split_last().ok_or_else(|| Error::schema(format!("no column `{path}`")))?;
    if around.iter().any(|f| !matches!(f.data_type(), DataType::Struct(_))) {
        return Err(Error::unsupported(format!("a filter on `{path}`, which is inside a list or map")));
    }
    Ok(last)
}

/// The type of a column, which must have an order.
fn comparable<'a>(field: &'a Field, path: &str) -> Result<&'a DataType> {
    let kind = field.data_type();
    if kind.is_nested() {
        return Err(Error::unsupported(format!(
            "a filter that compares `{path}` of the nested type {kind}: only `is null` and `is not null` do not"
        )));
    }
    Ok(kind)
}
