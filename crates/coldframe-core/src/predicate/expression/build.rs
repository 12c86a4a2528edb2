//! Builds a filter from the calls of an expression.
//!
//! The open calls are in a list, not on the stack of recursive functions: a chain of thousands of `or` is
//! thousands of calls deep. Negations are applied on the way down, and an `or` directly within an `or` is
//! merged with it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, RecordBatch};
use arrow_schema::{DataType, FieldRef, Schema};
use coldframe_encoding::{ErrorKind, Result};

use super::comparable::{comparable, comparable_set};
use super::malformed;
use crate::predicate::{MAX_DEPTH, Op, Predicate, too_deep};
use crate::projection;

/// An argument of a call.
#[derive(Clone, Debug)]
enum Node {
    Test(Test),
    Column(String, DataType),
    /// A value: the number of its column in the file's only row.
    Value(usize),
    Unsupported,
}

/// A filter, and how many levels of `and` and `or` it has.
#[derive(Clone, Debug)]
struct Test {
    predicate: Predicate,
    depth: usize,
}

impl Test {
    /// A test of one column.
    fn of(predicate: Predicate) -> Self {
        let depth = usize::from(matches!(predicate, Predicate::And(_) | Predicate::Or(_)));
        Self { predicate, depth }
    }
}

#[derive(Debug)]
struct Call {
    name: String,
    /// Whether the tests among the call's arguments are negated.
    negated: bool,
    arguments: Vec<Node>,
    options: Option<usize>,
}

/// Turns calls into a filter.
pub(super) struct Builder<'a> {
    schema: &'a Schema,
    values: &'a RecordBatch,
    /// The calls whose end has not been read yet. The first is the whole expression.
    open: Vec<Call>,
    /// How many names of the current path are still to be read, and the names read so far.
    path: (usize, Vec<String>),
    columns: HashMap<Vec<String>, Node>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(schema: &'a Schema, values: &'a RecordBatch) -> Self {
        let whole = Call { name: String::new(), negated: false, arguments: Vec::new(), options: None };
        Self { schema, values, open: vec![whole], path: (0, Vec::new()), columns: HashMap::new() }
    }

    /// Adds an item of the metadata.
    pub(super) fn add(&mut self, key: &str, value: &str) -> Result<()> {
        let number = || value.parse::<usize>().map_err(|_| malformed("expected the number of a value"));
        match key {
            "call" => {
                let negated = self.last()?.negated != (value == "invert");
                let (name, arguments, options) = (value.to_owned(), Vec::new(), None);
                self.open.push(Call { name, negated, arguments, options });
            }
            "end" => {
                let call = self.open.pop().ok_or_else(|| malformed("found an end without a call"))?;
                let node = self.called(call)?;
                self.last()?.arguments.push(node);
            }
            "nested_field_ref" => self.path = (number()?, Vec::new()),
            "field_ref" => {
                self.path.1.push(value.to_owned());
                if self.path.1.len() >= self.path.0 {
                    let (_, names) = std::mem::take(&mut self.path);
                    let node = self.column(names);
                    self.last()?.arguments.push(node);
                }
            }
            "literal" => {
                let value = Node::Value(number()?);
                self.last()?.arguments.push(value);
            }
            "options" => self.last()?.options = Some(number()?),
            _ => self.last()?.arguments.push(Node::Unsupported),
        }
        Ok(())
    }

    /// The whole filter, bound to the schema.
    pub(super) fn finish(mut self) -> Result<Option<Predicate>> {
        let whole = self.open.pop().filter(|_| self.open.is_empty());
        let whole = whole.ok_or_else(|| malformed("expected the end of a call"))?;
        let [node] = whole.arguments.as_slice() else {
            return Err(malformed(&format!("expected one expression, found {}", whole.arguments.len())));
        };
        let Some(test) = self.test(node.clone(), false) else { return Ok(None) };
        match test.predicate.bind(self.schema) {
            Ok(bound) => Ok(Some(bound)),
            // The filter is left to pyarrow, which also reports what does not fit.
            Err(e) if matches!(e.kind(), ErrorKind::Schema(_) | ErrorKind::Unsupported(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn last(&mut self) -> Result<&mut Call> {
        self.open.last_mut().ok_or_else(|| malformed("found an end without a call"))
    }

    /// The column of a path of names, if this crate resolves the dotted path to the same column.
    fn column(&mut self, names: Vec<String>) -> Node {
        if let Some(known) = self.columns.get(&names) {
            return known.clone();
        }
        let node =
            resolved(self.schema, &names).map_or(Node::Unsupported, |(path, kind)| Node::Column(path, kind));
        self.columns.insert(names, node.clone());
        node
    }

    /// A node as a test of rows: a test, a boolean column, or a constant.
    fn test(&self, node: Node, negated: bool) -> Option<Test> {
        let predicate = match node {
            Node::Test(test) => return Some(test),
            Node::Column(column, DataType::Boolean) => {
                let truth: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
                let holds = Predicate::compare(column, Op::Eq, truth);
                if negated { !holds } else { holds }
            }
            Node::Value(at) => {
                let value =
                    self.values.columns().get(at)?.as_boolean_opt().filter(|value| value.is_valid(0))?;
                if value.value(0) == negated { Predicate::Or(Vec::new()) } else { Predicate::all_rows() }
            }
            Node::Column(..) | Node::Unsupported => return None,
        };
        Some(Test::of(predicate))
    }

    fn called(&self, call: Call) -> Result<Node> {
        let joined = match call.name.as_str() {
            "and_kleene" | "or_kleene" => {
                let all = (call.name == "and_kleene") != call.negated;
                let tests = call.arguments.into_iter().map(|node| self.test(node, call.negated));
                match tests.collect::<Option<Vec<Test>>>() {
                    Some(tests) => tests.into_iter().reduce(|a, b| join(a, b, all)),
                    None => None,
                }
            }
            "invert" => match <[Node; 1]>::try_from(call.arguments) {
                Ok([node]) => self.test(node, call.negated),
                Err(_) => None,
            },
            _ => {
                let leaf = self.leaf(&call);
                leaf.map(|p| Test::of(if call.negated { !p } else { p }))
            }
        };
        match joined {
            Some(test) if test.depth > MAX_DEPTH => Err(too_deep()),
            Some(test) => Ok(Node::Test(test)),
            None => Ok(Node::Unsupported),
        }
    }

    fn leaf(&self, call: &Call) -> Option<Predicate> {
        match (call.name.as_str(), call.arguments.as_slice()) {
            ("is_null", [Node::Column(column, kind)]) => {
                let null = Predicate::Null { column: column.clone(), negated: false };
                let nan_too = self.option(call, "nan_is_null")?.as_boolean_opt()?.value(0);
                Some(if nan_too && kind.is_floating() {
                    let nan: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
                    let nan = arrow_cast::cast(&nan, kind).ok()?;
                    let among = Predicate::In { column: column.clone(), values: nan.into(), negated: false };
                    Predicate::Or(vec![null, among])
                } else {
                    null
                })
            }
            ("is_valid", [Node::Column(column, _)]) => {
                Some(Predicate::Null { column: column.clone(), negated: true })
            }
            ("is_in", [Node::Column(column, kind)]) => self.is_in(call, column, kind),
            (name, [Node::Column(column, kind), Node::Value(value)]) => {
                self.compare(comparison(name)?, column, kind, *value)
            }
            (name, [Node::Value(value), Node::Column(column, kind)]) => {
                self.compare(comparison(name)?.swapped(), column, kind, *value)
            }
            _ => None,
        }
    }

    fn compare(&self, op: Op, column: &str, kind: &DataType, value: usize) -> Option<Predicate> {
        let value = self.values.columns().get(value)?;
        comparable(kind, value.data_type()).then(|| Predicate::compare(column, op, value.clone()))
    }

    /// The test for membership in a set, with one of pyarrow's four ways to treat nulls.
    fn is_in(&self, call: &Call, column: &str, kind: &DataType) -> Option<Predicate> {
        let set = self.option(call, "value_set")?.as_list_opt::<i32>()?.value(0);
        if !comparable_set(kind, set.data_type()) {
            return None;
        }
        let valid = arrow_arith::boolean::is_not_null(&set).ok()?;
        let present = arrow_select::filter::filter(&set, &valid).ok()?;
        let with_null = present.len() < set.len();
        let among = |values: ArrayRef| {
            let column = column.to_owned();
            Predicate::In { column, values: values.into(), negated: false }
        };
        let null = Predicate::Null { column: column.to_owned(), negated: false };
        let behaviour =
            self.option(call, "null_matching_behavior")?.as_primitive_opt::<UInt32Type>()?.value(0);
        Some(match behaviour {
            // Null is a value like any other: it may be in the set.
            0 if with_null => Predicate::Or(vec![among(present), null]),
            // Null is in no set, so the result is false for null.
            0 | 1 => Predicate::And(vec![among(present), !null]),
            // The result is null for null.
            2 => among(present),
            // As in SQL: the result is also null for a value outside a set that contains null.
            3 => among(set),
            _ => return None,
        })
    }

    /// An option of a call, as an array of one value.
    fn option(&self, call: &Call, name: &str) -> Option<ArrayRef> {
        let options = self.values.columns().get(call.options?)?.as_struct_opt()?;
        options.column_by_name(name).filter(|value| value.len() == 1 && value.is_valid(0)).cloned()
    }
}

/// Combines two tests into one, by `and` if `all`, else by `or`. Tests that are already of this kind are
/// merged; the shorter list of parts is appended to the longer list.
fn join(a: Test, b: Test, all: bool) -> Test {
    let depth = |test: &Test| match (&test.predicate, all) {
        (Predicate::And(_), true) | (Predicate::Or(_), false) => test.depth,
        _ => test.depth + 1,
    };
    let parts = |predicate| match (predicate, all) {
        (Predicate::And(parts), true) | (Predicate::Or(parts), false) => parts,
        (other, _) => vec![other],
    };
    let depth = depth(&a).max(depth(&b));
    let (mut more, mut fewer) = (parts(a.predicate), parts(b.predicate));
    if more.len() < fewer.len() {
        std::mem::swap(&mut more, &mut fewer);
    }
    more.append(&mut fewer);
    Test { predicate: if all { Predicate::And(more) } else { Predicate::Or(more) }, depth }
}

fn comparison(name: &str) -> Option<Op> {
    Some(match name {
        "equal" => Op::Eq,
        "not_equal" => Op::Ne,
        "less" => Op::Lt,
        "less_equal" => Op::Le,
        "greater" => Op::Gt,
        "greater_equal" => Op::Ge,
        _ => return None,
    })
}

/// The dotted path and the type of a column, or of a field of structs, by its exact names.
fn resolved(schema: &Schema, names: &[String]) -> Option<(String, DataType)> {
    let mut fields = schema.fields();
    let mut steps: Vec<&FieldRef> = Vec::new();
    for name in names {
        match steps.last().map(|around| around.data_type()) {
            None => {}
            Some(DataType::Struct(children)) => fields = children,
            Some(_) => return None,
        }
        let mut named = fields.iter().filter(|field| field.name() == name);
        steps.push(named.next().filter(|_| named.next().is_none())?);
    }
    let path = names.join(".");
    let meant = projection::steps(schema, &path).ok()?;
    let same = meant.len() == steps.len() && meant.iter().zip(&steps).all(|(a, b)| Arc::ptr_eq(a, b));
    let kind = steps.last()?.data_type().clone();
    same.then_some((path, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, StringArray};
    use arrow_schema::{Field, Fields};

    /// The filter that results from `calls`, which are written as `key value, key value`. The values of the
    /// expression are 5, 'a' and true.
    fn filter(calls: &str) -> Result<Option<String>> {
        let child = Fields::from(vec![Field::new("a", DataType::Int32, true)]);
        let schema = Schema::new(vec![
            Field::new("i", DataType::Int32, true),
            Field::new("b", DataType::Boolean, true),
            Field::new("s", DataType::Struct(child.clone()), true),
            Field::new("twice", DataType::Int32, true),
            Field::new("twice", DataType::Int32, true),
            Field::new("d.a", DataType::Int32, true),
            Field::new("d", DataType::Struct(child), true),
        ]);
        let values: [(&str, ArrayRef); 3] = [
            ("0", Arc::new(Int64Array::from(vec![5]))),
            ("1", Arc::new(StringArray::from(vec!["a"]))),
            ("2", Arc::new(BooleanArray::from(vec![true]))),
        ];
        let values = RecordBatch::try_from_iter(values).unwrap();
        let mut builder = Builder::new(&schema, &values);
        for item in calls.split(", ") {
            let (key, value) = item.split_once(' ').unwrap();
            builder.add(key, value)?;
        }
        Ok(builder.finish()?.map(|predicate| shown(&predicate)))
    }

    fn shown(predicate: &Predicate) -> String {
        let all = |parts: &[Predicate]| parts.iter().map(shown).collect::<Vec<_>>().join(" ");
        match predicate {
            Predicate::And(parts) => format!("and({})", all(parts)),
            Predicate::Or(parts) => format!("or({})", all(parts)),
            Predicate::Compare { column, op, negated: false, .. } => format!("{column}{op}"),
            other => format!("{other:?}"),
        }
    }

    const I: &str = "call greater, field_ref i, literal 0, end greater";

    #[test]
    fn calls_become_filters_or_are_left_to_pyarrow() {
        let not_i = format!("call invert, {I}, end invert");
        let swapped = "call less, literal 0, nested_field_ref 2, field_ref s, field_ref a, end less";
        let both = |name: &str, a: &str, b: &str| format!("call {name}, {a}, {b}, end {name}");
        let chain = both("or_kleene", &both("or_kleene", I, "field_ref b"), &both("or_kleene", I, I));
        for (calls, expected) in [
            (I, Some("i>")),
            (&not_i, Some("i<=")),
            (swapped, Some("s.a>")),
            (&chain, Some("or(i> b= i> i>)")),
            (
                &format!("call invert, {}, end invert", both("and_kleene", &not_i, "field_ref b")),
                Some("or(i> b!=)"),
            ),
            (&both("and_kleene", I, "literal 2"), Some("i>")),
            (&both("and", I, I), None),
            (&both("and_kleene", I, "field_ref i"), None),
            ("field_ref i", None),
            ("field_ref nope", None),
            ("call equal, field_ref twice, literal 0, end equal", None),
            ("call equal, nested_field_ref 2, field_ref d, field_ref a, literal 0, end equal", None),
            ("call equal, field_ref d.a, literal 0, end equal", Some("d.a=")),
            ("call equal, field_ref i, literal 1, end equal", None),
            ("call equal, field_ref i, field_ref i, end equal", None),
            ("call starts_with, field_ref i, options 0, end starts_with", None),
            (&both("or_kleene", I, "call f, end f"), None),
        ] {
            let actual = filter(calls).unwrap();
            let actual = actual.map(|text| if text == "and(i>)" { "i>".to_owned() } else { text });
            assert_eq!(actual.as_deref(), expected, "{calls}");
        }
    }

    #[test]
    fn nesting_is_limited_and_chains_are_not() {
        let chain = |count: usize, names: [&str; 2]| {
            let name = |at: usize| names[at % 2];
            let open: Vec<String> = (0..count).map(|at| format!("call {}, ", name(at))).collect();
            let end: Vec<String> = (0..count).rev().map(|at| format!(", {I}, end {}", name(at))).collect();
            format!("{}{I}{}", open.concat(), end.concat())
        };
        let long = filter(&chain(10_000, ["or_kleene"; 2])).unwrap().unwrap();
        assert_eq!(long.matches("i>").count(), 10_001);
        assert!(filter(&chain(600, ["or_kleene", "and_kleene"])).unwrap().is_some());
        let e = filter(&chain(601, ["or_kleene", "and_kleene"])).unwrap_err().to_string();
        assert!(e.contains("nested deeper than 600"), "{e}");
        let not = format!("{}{I}{}", "call invert, ".repeat(5000), ", end invert".repeat(5000));
        assert_eq!(filter(&not).unwrap().as_deref(), Some("i>"));
    }

    #[test]
    fn malformed_calls_are_errors() {
        for calls in
            ["end equal", "call equal, field_ref i", "literal 0, literal 0", "literal x", "options -1"]
        {
            assert!(filter(calls).is_err(), "{calls}");
        }
        assert_eq!(filter("literal 7").unwrap(), None);
        let e = super::super::Expression::read(b"ARROW1").unwrap_err().to_string();
        assert!(e.contains("a serialised pyarrow expression"), "{e}");
    }
}
