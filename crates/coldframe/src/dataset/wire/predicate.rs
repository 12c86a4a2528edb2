//! Converts filters to messages and back.
//!
//! A filter is a list of nodes, in which each node comes before its parts. So filters may be nested deeper
//! than messages may.

use coldframe_core::predicate::{MAX_DEPTH, Op, Pattern};
use coldframe_core::{Predicate, Result};

use super::{arrow, message, refused};

const COMPARE: u32 = 1;
const IN: u32 = 2;
const NULL: u32 = 3;
const LIKE: u32 = 4;
const AND: u32 = 5;
const OR: u32 = 6;
const TRIMMED: u32 = 7;

/// The column's name in a stream of one column.
const VALUES: &str = "values";

pub(super) fn to_nodes(predicate: &Predicate) -> Result<Vec<message::Predicate>> {
    let mut nodes = Vec::new();
    let mut open = vec![predicate];
    while let Some(next) = open.pop() {
        nodes.push(node(next)?);
        match next {
            Predicate::And(parts) | Predicate::Or(parts) => open.extend(parts.iter().rev()),
            Predicate::Trimmed(test) => open.push(test),
            _ => {}
        }
    }
    Ok(nodes)
}

fn node(predicate: &Predicate) -> Result<message::Predicate> {
    let leaf = |kind, column: &String, negated: &bool| message::Predicate {
        kind,
        column: column.clone(),
        negated: *negated,
        ..message::Predicate::default()
    };
    let of = |kind, parts: usize| message::Predicate {
        kind,
        parts: parts as u64,
        ..message::Predicate::default()
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
        Predicate::Trimmed(_) => of(TRIMMED, 1),
        Predicate::And(all) => of(AND, all.len()),
        Predicate::Or(any) => of(OR, any.len()),
    })
}

/// The filter; `None` if there are no nodes.
pub(super) fn from_nodes(nodes: &[message::Predicate]) -> Result<Option<Predicate>> {
    // Goes through the nodes from the end, so that the parts of a node are complete before the node itself.
    // The parts are on the stack in reverse order: the first part is on top.
    let mut made: Vec<(Predicate, usize)> = Vec::new();
    for node in nodes.iter().rev() {
        let count = usize::try_from(node.parts).unwrap_or(usize::MAX);
        let rest = made.len().checked_sub(count);
        let rest =
            rest.ok_or_else(|| refused(format!("expected {count} parts of a filter, found {}", made.len())))?;
        let (parts, depths): (Vec<_>, Vec<_>) = made.drain(rest..).rev().unzip();
        let depth = depths.into_iter().max().unwrap_or(0) + 1;
        // Inside the deepest `and` or `or`, three more levels are possible: a set that became an `or`,
        // trimming, and the test of a column.
        if depth > MAX_DEPTH + 3 {
            return Err(refused(format!(
                "expected a filter nested at most {MAX_DEPTH} deep, found a deeper one"
            )));
        }
        made.push((from_node(node, parts)?, depth));
    }
    match (made.pop(), made.len()) {
        (whole, 0) => Ok(whole.map(|(whole, _)| whole)),
        (_, more) => Err(refused(format!("expected one filter, found {}", more + 1))),
    }
}

fn from_node(node: &message::Predicate, mut parts: Vec<Predicate>) -> Result<Predicate> {
    let values = || -> Result<arrow_array::ArrayRef> {
        let mut columns = arrow::to_columns(&node.values)?;
        let (_, values) =
            columns.pop().ok_or_else(|| refused("expected the values of a filter, found none"))?;
        Ok(values)
    };
    let (column, negated) = (node.column.clone(), node.negated);
    if matches!(node.kind, COMPARE | IN | NULL | LIKE) && !parts.is_empty() {
        return Err(refused(format!("expected a test without parts, found {}", parts.len())));
    }
    Ok(match node.kind {
        COMPARE => {
            let op = Op::parse(&node.op);
            let op = op.ok_or_else(|| refused(format!("expected a comparison, found {:?}", node.op)))?;
            let value = values()?;
            if value.len() != 1 {
                let count = value.len();
                return Err(refused(format!("expected one value to compare with, found {count}")));
            }
            Predicate::Compare { column, op, value, negated }
        }
        IN => Predicate::In { column, values: values()?.into(), negated },
        NULL => Predicate::Null { column, negated },
        LIKE => Predicate::Like { column, pattern: Pattern::new(&node.pattern), negated },
        TRIMMED => match (parts.pop(), parts.len()) {
            (Some(test), 0)
                if !matches!(test, Predicate::And(_) | Predicate::Or(_) | Predicate::Trimmed(_)) =>
            {
                Predicate::Trimmed(Box::new(test))
            }
            _ => return Err(refused("expected the test of one column to trim")),
        },
        AND => Predicate::And(parts),
        OR => Predicate::Or(parts),
        other => return Err(refused(format!("expected a filter, found the kind {other}"))),
    })
}
