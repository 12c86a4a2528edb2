//! Filters in the form of `pyarrow.parquet`: a list of lists of `(column, op, value)`. The conditions of an
//! inner list are joined by `and`, the inner lists by `or`.
//!
//! Sets have pyarrow's meaning, in which null is an ordinary value: null rows pass `in [.., null]` and `not
//! in [..]`.

use coldframe_encoding::{Error, Result};

use super::Op;
use super::condition::Condition;
use super::literal::Literal;

/// The right-hand side of a condition.
#[derive(Clone, Debug)]
pub enum Operand {
    /// `(column, op)`
    Missing,
    /// `(column, op, value)`
    Single(Literal),
    /// `(column, op, [value, ..])`
    Many(Vec<Literal>),
}

/// Whether the operator `op` compares with a set of values.
#[must_use]
pub fn takes_many(op: &str) -> bool {
    matches!(normal(op).as_str(), "in" | "not in")
}

fn normal(op: &str) -> String {
    op.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The condition that `(column, op, value)` means.
pub fn condition(column: &str, op: &str, operand: Operand) -> Result<Condition> {
    let column = column.to_owned();
    let op_name = normal(op);
    let is_null = |column| Condition::IsNull { column };
    match (op_name.as_str(), operand) {
        ("is null", _) | ("is", Operand::Single(Literal::Null)) => Ok(is_null(column)),
        ("is not null", _) | ("is not", Operand::Single(Literal::Null)) => Ok(!is_null(column)),
        ("in", Operand::Many(values)) => Ok(membership(column, values, false)),
        ("not in", Operand::Many(values)) => Ok(membership(column, values, true)),
        ("in" | "not in", Operand::Single(_)) => {
            Err(Error::invalid(format!("malformed filter: '{op_name}' needs a collection of values")))
        }
        (op_name, Operand::Single(value)) => match Op::parse(op_name) {
            Some(op) => Ok(Condition::Compare { column, op, value }),
            None => Err(unknown(op)),
        },
        _ => Err(unknown(op)),
    }
}

/// The conjunction of the conditions.
pub fn all_of(mut parts: Vec<Condition>) -> Result<Condition> {
    match (parts.len(), parts.pop()) {
        (_, None) => Err(Error::invalid("malformed filter: an empty list of conditions")),
        (1, Some(part)) => Ok(part),
        (_, Some(last)) => {
            parts.push(last);
            Ok(Condition::And(parts))
        }
    }
}

fn unknown(op: &str) -> Error {
    Error::invalid(format!(
        "malformed filter: unknown operator {op:?}, or an operator that does not take this value"
    ))
}

fn membership(column: String, values: Vec<Literal>, negated: bool) -> Condition {
    let given = values.len();
    let present: Vec<Literal> = values.into_iter().filter(|v| !matches!(v, Literal::Null)).collect();
    let with_null = present.len() < given;
    let among = Condition::In { column: column.clone(), values: present };
    let is_null = Condition::IsNull { column };
    match (negated, with_null) {
        (false, false) => among,
        (false, true) => Condition::Or(vec![among, is_null]),
        (true, false) => Condition::Or(vec![!among, is_null]),
        (true, true) => Condition::And(vec![!among, !is_null]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(op: &str, operand: Operand) -> String {
        condition("x", op, operand).map_or_else(|e| e.to_string(), |c| c.to_string())
    }

    fn set(values: Vec<Literal>) -> Operand {
        Operand::Many(values)
    }

    #[test]
    fn tuples_become_conditions() {
        let five = || Literal::Number(5.into());
        assert_eq!(text("==", Operand::Single(five())), "`x` = 5");
        assert_eq!(text("<>", Operand::Single(five())), "`x` != 5");
        assert_eq!(text(" IS  Null ", Operand::Missing), "`x` is null");
        assert_eq!(text("is not", Operand::Single(Literal::Null)), "not (`x` is null)");
        assert_eq!(text("in", set(vec![five()])), "`x` in (5)");
        assert_eq!(text("in", set(vec![five(), Literal::Null])), "(`x` in (5) or `x` is null)");
        assert_eq!(text("NOT IN", set(vec![five()])), "(not (`x` in (5)) or `x` is null)");
        assert_eq!(text("not in", set(vec![Literal::Null])), "(not (`x` in ()) and not (`x` is null))");
        for (op, operand) in [
            ("~", Operand::Single(five())),
            ("=", Operand::Missing),
            ("=", set(vec![])),
            ("in", Operand::Single(five())),
            ("is", Operand::Single(five())),
            ("in", Operand::Missing),
        ] {
            assert!(text(op, operand).contains("malformed filter"), "{op}");
        }
        assert!(all_of(Vec::new()).unwrap_err().to_string().contains("malformed filter"));
    }
}
