//! Filters as messages.

use coldframe_core::predicate::{Op, Pattern};
use coldframe_core::{Predicate, Result};

use super::{arrow, message, refused};

const COMPARE: u32 = 1;
const IN: u32 = 2;
const NULL: u32 = 3;
const LIKE: u32 = 4;
const AND: u32 = 5;
const OR: u32 = 6;

/// The column's name in a stream of one column.
const VALUES: &str = "values";

pub(super) fn to_message(predicate: &Predicate) -> Result<message::Predicate> {
    let leaf = |kind, column: &String, negated: &bool| message::Predicate {
        kind,
        column: column.clone(),
        negated: *negated,
        ..message::Predicate::default()
    };
    let of = |kind, parts: &[Predicate]| -> Result<message::Predicate> {
        let parts = parts.iter().map(to_message).collect::<Result<_>>()?;
        Ok(message::Predicate { kind, parts, ..message::Predicate::default() })
    };
    Ok(match predicate {
        Predicate::Compare { column, op, value, negated } => message::Predicate {
            op: op.to_string(),
            values: arrow::from_columns(&[(VALUES.to_owned(), value.clone())])?,
            ..leaf(COMPARE, column, negated)
        },
        Predicate::In { column, values, negated } => message::Predicate {
            values: arrow::from_columns(&[(VALUES.to_owned(), (**values).clone())])?,
            ..leaf(IN, column, negated)
        },
        Predicate::Null { column, negated } => leaf(NULL, column, negated),
        Predicate::Like { column, pattern, negated } => {
            message::Predicate { pattern: pattern.as_str().to_owned(), ..leaf(LIKE, column, negated) }
        }
        Predicate::And(all) => of(AND, all)?,
        Predicate::Or(any) => of(OR, any)?,
    })
}

pub(super) fn from_message(message: &message::Predicate) -> Result<Predicate> {
    let parts = || message.parts.iter().map(from_message).collect::<Result<Vec<_>>>();
    let values = || -> Result<arrow_array::ArrayRef> {
        let mut columns = arrow::to_columns(&message.values)?;
        let (_, values) =
            columns.pop().ok_or_else(|| refused("expected the values of a filter, found none"))?;
        Ok(values)
    };
    let (column, negated) = (message.column.clone(), message.negated);
    Ok(match message.kind {
        COMPARE => {
            let op = Op::parse(&message.op);
            let op = op.ok_or_else(|| refused(format!("expected a comparison, found {:?}", message.op)))?;
            let value = values()?;
            if value.len() != 1 {
                let count = value.len();
                return Err(refused(format!("expected one value to compare with, found {count}")));
            }
            Predicate::Compare { column, op, value, negated }
        }
        IN => Predicate::In { column, values: values()?.into(), negated },
        NULL => Predicate::Null { column, negated },
        LIKE => Predicate::Like { column, pattern: Pattern::new(&message.pattern), negated },
        AND => Predicate::And(parts()?),
        OR => Predicate::Or(parts()?),
        other => return Err(refused(format!("expected a filter, found the kind {other}"))),
    })
}
