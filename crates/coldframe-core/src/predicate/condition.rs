//! A filter before it is bound to a schema: its names may be in any case, its literals of any type.
//!
//! The filter is built from SQL text ([`parse`](super::parse)), from pyarrow's lists ([`dnf`](super::dnf)) or
//! from parts. Once bound to a schema, it becomes a [`Predicate`], with the names of the schema and literals
//! of its types.

use std::collections::BTreeSet;
use std::fmt;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat;
use coldframe_encoding::{Error, Result};

use super::coerce::{self, Comparison};
use super::like::{Pattern, behind_prefix};
use super::literal::Literal;
use super::{ColumnBounds, Op, Predicate, bounds};
use crate::projection;
use crate::types::is_char;

/// An unbound filter, with SQL's three-valued logic.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A constant; `None` is SQL's unknown.
    Constant(Option<bool>),
    /// `column op value`
    Compare {
        /// The column, as the caller wrote it.
        column: String,
        /// The comparison.
        op: Op,
        /// The value to compare with.
        value: Literal,
    },
    /// The column's value is in this set, which contains no null.
    In {
        /// The column, as the caller wrote it.
        column: String,
        /// The set.
        values: Vec<Literal>,
    },
    /// The column has no value.
    IsNull {
        /// The column, as the caller wrote it.
        column: String,
    },
    /// The column's text matches a pattern.
    Like {
        /// The column, as the caller wrote it.
        column: String,
        /// The pattern.
        pattern: Pattern,
    },
    /// The negation; unknown stays unknown.
    Not(Box<Condition>),
    /// True if all parts are true.
    And(Vec<Condition>),
    /// True if at least one part is true.
    Or(Vec<Condition>),
}

impl Condition {
    /// The column names, as the caller wrote them.
    #[must_use]
    pub fn columns(&self) -> BTreeSet<&str> {
        match self {
            Self::Constant(_) => BTreeSet::new(),
            Self::Compare { column, .. }
            | Self::In { column, .. }
            | Self::IsNull { column }
            | Self::Like { column, .. } => BTreeSet::from([column.as_str()]),
            Self::Not(part) => part.columns(),
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::columns).collect(),
        }
    }

    /// Binds the condition to `schema`.
    pub fn bind(&self, schema: &Schema) -> Result<Predicate> {
        self.lower(schema, false)?.bind(schema)
    }

    /// Pushes negations to the leaves. After that, false and unknown need not be distinguished: a row passes
    /// only if the whole filter is true, and whether an `and` or an `or` is true depends only on which of its
    /// parts are true. So an unknown constant becomes false.
    fn lower(&self, schema: &Schema, negated: bool) -> Result<Predicate> {
        let parts =
            |parts: &[Condition]| parts.iter().map(|p| p.lower(schema, negated)).collect::<Result<Vec<_>>>();
        let signed = |p: Predicate| if negated { !p } else { p };
        Ok(match self {
            Self::Constant(value) if *value == Some(!negated) => Predicate::And(Vec::new()),
            Self::Constant(_) => Predicate::Or(Vec::new()),
            Self::Compare { column, op, value } => {
                let (path, data_type) = resolve(schema, column)?;
                let Comparison { op, value } = coerce::compare(*op, value, data_type, column)?;
                signed(Predicate::compare(path, op, value))
            }
            Self::In { column, values } => {
                let (path, data_type) = resolve(schema, column)?;
                signed(membership(&path, values, data_type, column)?)
            }
            Self::IsNull { column } => {
                let (path, _) = resolve(schema, column)?;
                Predicate::Null { column: path, negated }
            }
            Self::Like { column, pattern } => {
                let (path, data_type) = resolve(schema, column)?;
                let is_char = projection::steps(schema, &path)?.last().is_some_and(|field| is_char(field));
                let test = like(path, pattern, data_type, column)?;
                // A pattern without placeholders is a comparison, which ignores trailing blanks. In other
                // patterns blanks count.
                signed(if is_char && !pattern.is_plain() { test.trimmed(false) } else { test })
            }
            Self::Not(part) => part.lower(schema, !negated)?,
            Self::And(all) if negated => Predicate::Or(parts(all)?),
            Self::Or(any) if negated => Predicate::And(parts(any)?),
            Self::And(all) => Predicate::And(parts(all)?),
            Self::Or(any) => Predicate::Or(parts(any)?),
        })
    }

    /// Simplifies the filter if some columns of `schema` are constant: `known` returns the value of such a
    /// column as an array of length 1.
    pub fn given(&self, schema: &Schema, known: &dyn Fn(&str) -> Option<ArrayRef>) -> Result<Self> {
        let parts =
            |parts: &[Condition]| parts.iter().map(|p| p.given(schema, known)).collect::<Result<Vec<_>>>();
        Ok(match self {
            Self::Constant(_) => self.clone(),
            Self::Compare { column, .. }
            | Self::In { column, .. }
            | Self::IsNull { column }
            | Self::Like { column, .. } => {
                let (path, _) = resolve(schema, column)?;
                let top = projection::steps(schema, &path)?.first().copied();
                match top.and_then(|top| Some((top, known(top.name())?))) {
                    Some((top, value)) => Self::Constant(self.test(top, value)?),
                    None => self.clone(),
                }
            }
            Self::Not(part) => match part.given(schema, known)? {
                Self::Constant(value) => Self::Constant(value.map(|v| !v)),
                part => Self::Not(Box::new(part)),
            },
            Self::And(all) => settle(parts(all)?, false),
            Self::Or(any) => settle(parts(any)?, true),
        })
    }

    /// The result of a condition on one column, if that column has this value.
    fn test(&self, column: &Field, value: ArrayRef) -> Result<Option<bool>> {
        let column = column.clone().with_data_type(value.data_type().clone()).with_nullable(true);
        let schema = Schema::new(vec![column]);
        let options = RecordBatchOptions::new().with_row_count(Some(value.len()));
        let batch = RecordBatch::try_new_with_options(schema.clone().into(), vec![value], &options)
            .map_err(crate::arrow_error)?;
        let answer = self.bind(&schema)?.evaluate(&batch)?;
        Ok((!answer.is_empty() && answer.is_valid(0)).then(|| answer.value(0)))
    }

    /// Whether the condition rejects every possible row.
    #[must_use]
    pub fn never_true(&self) -> bool {
        match self {
            Self::Constant(value) => *value != Some(true),
            Self::And(all) => all.iter().any(Self::never_true),
            Self::Or(any) => any.iter().all(Self::never_true),
            _ => false,
        }
    }

    /// `false` only if no row of a file with these bounds passes. No schema is needed: a column has the type
    /// of its bounds. A column that has no bounds, or whose type does not fit the filter, rules out nothing.
    pub fn may_match(&self, bounds: &dyn Fn(&str) -> Option<ColumnBounds>) -> bool {
        self.may_be(true, bounds)
    }

    /// Whether the result may be `sought` (true or false) for some row. Negations are pushed to the leaves,
    /// as in `lower`.
    fn may_be(&self, sought: bool, bounds: &dyn Fn(&str) -> Option<ColumnBounds>) -> bool {
        let parts = |parts: &[Condition], all: bool| match all {
            true => parts.iter().all(|part| part.may_be(sought, bounds)),
            false => parts.iter().any(|part| part.may_be(sought, bounds)),
        };
        match self {
            Self::Constant(value) => *value == Some(sought),
            Self::Compare { column, .. }
            | Self::In { column, .. }
            | Self::IsNull { column }
            | Self::Like { column, .. } => {
                bounds(column).is_none_or(|bounds| self.leaf_may_be(sought, column, &bounds))
            }
            Self::Not(part) => part.may_be(!sought, bounds),
            Self::And(all) => parts(all, sought),
            Self::Or(any) => parts(any, !sought),
        }
    }

    fn leaf_may_be(&self, sought: bool, column: &str, bounds: &ColumnBounds) -> bool {
        let bound_type = bounds.min.as_ref().or(bounds.max.as_ref()).map(|bound| bound.data_type().clone());
        let Some(bound_type) = bound_type else {
            // If only the counts of nulls are known, the type of the bounds does not matter.
            let negated = !(matches!(self, Self::IsNull { .. }) && sought);
            let leaf = Predicate::Null { column: column.to_owned(), negated };
            return leaf.may_match(&|_| Some(bounds.clone()));
        };
        for data_type in bounds::readings(bound_type) {
            let schema = Schema::new(vec![Field::new(column, data_type.clone(), true)]);
            if let Ok(leaf) = self.lower(&schema, !sought).and_then(|leaf| leaf.bind(&schema)) {
                return leaf.may_match(&|_| Some(bounds.read_as(&data_type)));
            }
        }
        true
    }
}

impl std::ops::Not for Condition {
    type Output = Condition;

    fn not(self) -> Condition {
        Condition::Not(Box::new(self))
    }
}

/// The predicate for membership in a set. Values that fit the column's type form the set; a value that needs
/// a wider type becomes a comparison of its own.
pub(super) fn membership(
    path: &str,
    values: &[Literal],
    data_type: &DataType,
    column: &str,
) -> Result<Predicate> {
    let (mut same, mut wider) = (Vec::new(), Vec::new());
    for value in values {
        if matches!(value, Literal::Null) {
            return Err(Error::invalid(format!("null among the values of `{column}`: use 'is null'")));
        }
        let comparison = coerce::compare(Op::Eq, value, data_type, column)?;
        // If binding changed the operator, no row can be equal to the value.
        if comparison.op == Op::Eq && comparison.value.data_type() == data_type {
            same.push(comparison.value);
        } else if comparison.op == Op::Eq {
            wider.push(Predicate::compare(path, Op::Eq, comparison.value));
        }
    }
    let same: Vec<&dyn Array> = same.iter().map(AsRef::as_ref).collect();
    let values = match same.as_slice() {
        [] => arrow_array::new_empty_array(data_type),
        all => concat(all).map_err(crate::arrow_error)?,
    };
    let within = Predicate::In { column: path.to_owned(), values: values.into(), negated: false };
    if wider.is_empty() {
        return Ok(within);
    }
    wider.push(within);
    Ok(Predicate::Or(wider))
}

/// A test for a pattern, combined with comparisons that limit the column to the range of texts that can
/// match, so that statistics and keys can be used.
fn like(path: String, pattern: &Pattern, data_type: &DataType, column: &str) -> Result<Predicate> {
    if !matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
        return Err(Error::schema(format!("'like' needs a string column, `{column}` is {data_type}")));
    }
    let compare = |op, text: &str| -> Result<Predicate> {
        let comparison = coerce::compare(op, &Literal::Text(text.to_owned()), data_type, column)?;
        Ok(Predicate::compare(path.clone(), comparison.op, comparison.value))
    };
    if pattern.is_plain() {
        return compare(Op::Eq, pattern.prefix());
    }
    let mut parts = Vec::new();
    if !pattern.prefix().is_empty() {
        parts.push(compare(Op::Ge, pattern.prefix())?);
        if let Some(behind) = behind_prefix(pattern.prefix()) {
            parts.push(compare(Op::Lt, &behind)?);
        }
    }
    if parts.is_empty() || !pattern.is_prefix() {
        parts.push(Predicate::Like { column: path.clone(), pattern: pattern.clone(), negated: false });
    }
    Ok(Predicate::And(parts))
}

/// Simplifies an `and` or `or` whose parts may be constants. `decides` is the constant that decides the
/// whole: false for `and`, true for `or`.
fn settle(parts: Vec<Condition>, decides: bool) -> Condition {
    let (known, mut open): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|p| matches!(p, Condition::Constant(_)));
    if known.contains(&Condition::Constant(Some(decides))) {
        return Condition::Constant(Some(decides));
    }
    let unknown = known.contains(&Condition::Constant(None));
    if unknown {
        open.push(Condition::Constant(None));
    }
    match (open.len(), open.pop()) {
        (1, Some(part)) => part,
        (_, None) => Condition::Constant(Some(!decides)),
        (_, Some(last)) => {
            open.push(last);
            if decides { Condition::Or(open) } else { Condition::And(open) }
        }
    }
}

/// The path of a column in the schema's spelling, and its type. `name` is a top-level name, in any case if
/// that is unambiguous, or a dotted path into structs.
pub fn resolve<'a>(schema: &'a Schema, name: &str) -> Result<(String, &'a DataType)> {
    if let Some((path, data_type)) = top(schema, name)? {
        return Ok((path.to_owned(), data_type));
    }
    for (dot, _) in name.match_indices('.') {
        let (head, rest) = (name.get(..dot).unwrap_or_default(), name.get(dot + 1..).unwrap_or_default());
        let Some((head, data_type)) = top(schema, head)? else { continue };
        if let Some(child) = projection::below(data_type, rest).and_then(|steps| steps.last().copied()) {
            return Ok((format!("{head}.{rest}"), child.data_type()));
        }
    }
    let Some((head, rest)) = name.split_once('.') else { return Err(unknown(schema, name)) };
    let (head, data_type) = top(schema, head)?.ok_or_else(|| unknown(schema, head))?;
    Err(Error::schema(format!(
        "the filter names column `{name}`, but `{head}` ({data_type}) has no field `{rest}`"
    )))
}

/// The only column with this name; otherwise the only column whose name differs only in upper and lower case.
fn top<'a>(schema: &'a Schema, name: &str) -> Result<Option<(&'a str, &'a DataType)>> {
    let fields = || schema.fields().iter();
    let mut matches: Vec<_> = fields().filter(|f| f.name() == name).collect();
    if matches.is_empty() {
        let folded = name.to_lowercase();
        matches = fields().filter(|f| f.name().to_lowercase() == folded).collect();
        let first = matches.first().map(|f| f.name());
        if matches.iter().any(|f| Some(f.name()) != first) {
            return Err(unknown(schema, name));
        }
    }
    match matches.as_slice() {
        [] => Ok(None),
        [field] => Ok(Some((field.name(), field.data_type()))),
        many => {
            Err(Error::schema(format!("the filter names column `{name}`, which occurs {} times", many.len())))
        }
    }
}

fn unknown(schema: &Schema, name: &str) -> Error {
    let names: Vec<String> = schema.fields().iter().take(20).map(|f| format!("`{}`", f.name())).collect();
    Error::schema(format!("the filter names column `{name}`; the columns are {}", names.join(", ")))
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Condition], word: &str| {
            f.write_str("(")?;
            for (i, part) in parts.iter().enumerate() {
                let before = if i == 0 { "" } else { word };
                write!(f, "{before}{part}")?;
            }
            f.write_str(")")
        };
        match self {
            Self::Constant(None) => f.write_str("null"),
            Self::Constant(Some(v)) => write!(f, "{v}"),
            Self::Compare { column, op, value } => write!(f, "`{column}` {op} {value}"),
            Self::In { column, values } => {
                write!(f, "`{column}` in (")?;
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
            Self::IsNull { column } => write!(f, "`{column}` is null"),
            Self::Like { column, pattern } => {
                write!(f, "`{column}` like '{}'", pattern.as_str().replace('\'', "''"))
            }
            Self::Not(part) => write!(f, "not ({part})"),
            Self::And(all) => joined(f, all, " and "),
            Self::Or(any) => joined(f, any, " or "),
        }
    }
}
