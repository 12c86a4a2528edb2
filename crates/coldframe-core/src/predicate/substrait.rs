//! Filters from Substrait, the form in which pyarrow exports its expressions.
//!
//! Supported are comparisons of a column with a literal, sets, null tests, `and`, `or`, `not`, and boolean
//! columns. If a filter contains anything else, it is unsupported as a whole and the caller evaluates it: no
//! row is decided by a part of a filter.

mod proto;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, StringArray,
};
use arrow_schema::{DataType, FieldRef, Schema};
use arrow_select::concat::concat;
use coldframe_encoding::{Error, Result};
use prost::Message;

use super::{Op, Predicate};
use proto::{Expression, ExtendedExpression, LiteralValue, Rex, ScalarFunction, Segment, SingularOrList};

/// The filter in an `ExtendedExpression` message; `None` if it contains something unsupported. `schema` is
/// the one the expression was bound to.
pub fn parse(message: &[u8], schema: &Schema) -> Result<Option<Predicate>> {
    let message = ExtendedExpression::decode(message)
        .map_err(|e| Error::invalid(format!("a Substrait message: {e}")))?;
    let [referred] = message.referred.as_slice() else { return Ok(None) };
    let names =
        message.extensions.iter().filter_map(|d| d.function.as_ref()).map(|f| (f.anchor, f.name.as_str()));
    let reader = Reader { functions: names.collect(), schema };
    Ok(referred.expression.as_ref().and_then(|e| reader.predicate(e)))
}

struct Reader<'a> {
    functions: Vec<(u32, &'a str)>,
    schema: &'a Schema,
}

impl Reader<'_> {
    fn predicate(&self, e: &Expression) -> Option<Predicate> {
        match e.rex.as_ref()? {
            Rex::Function(f) => self.function(f),
            Rex::InList(list) => self.is_in(list),
            Rex::Selection(_) => {
                let column = self.column(e)?;
                let truth: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
                Some(Predicate::compare(column, Op::Eq, truth))
            }
            Rex::Literal(_) | Rex::Cast(_) => None,
        }
    }

    /// A set, as in pyarrow's `is_in`. The result is never null: a null row is a member if the set contains
    /// null.
    fn is_in(&self, list: &SingularOrList) -> Option<Predicate> {
        let column = self.column(list.value.as_deref()?)?;
        let is_null = |e: &Expression| matches!(&e.rex, Some(Rex::Literal(l)) if matches!(l.value, Some(LiteralValue::Null(_))));
        let present = list.options.iter().filter(|e| !is_null(e));
        let values: Vec<ArrayRef> = present.map(literal).collect::<Option<_>>()?;
        let values: Vec<&dyn arrow_array::Array> = values.iter().map(AsRef::as_ref).collect();
        let null = Predicate::Null { column: column.clone(), negated: false };
        if values.is_empty() {
            return (!list.options.is_empty()).then_some(null);
        }
        let with_null = values.len() < list.options.len();
        let among = Predicate::In { column, values: concat(&values).ok()?.into(), negated: false };
        Some(if with_null { Predicate::Or(vec![among, null]) } else { Predicate::And(vec![among, !null]) })
    }

    fn function(&self, f: &ScalarFunction) -> Option<Predicate> {
        let (_, name) = self.functions.iter().find(|(anchor, _)| *anchor == f.reference)?;
        let name = name.split(':').next().unwrap_or(name);
        let arguments: Vec<&Expression> =
            f.arguments.iter().map(|a| a.value.as_ref()).collect::<Option<_>>()?;
        let all = || arguments.iter().map(|e| self.predicate(e)).collect::<Option<Vec<_>>>();
        match (name, arguments.as_slice()) {
            ("and", _) => all().map(Predicate::And),
            ("or", _) => all().map(Predicate::Or),
            ("not", [argument]) => self.predicate(argument).map(|p| !p),
            ("is_null", [argument]) => {
                Some(Predicate::Null { column: self.column(argument)?, negated: false })
            }
            ("is_not_null", [argument]) => {
                Some(Predicate::Null { column: self.column(argument)?, negated: true })
            }
            (name, [left, right]) => {
                let op = comparison(name)?;
                match (self.column(left), self.column(right)) {
                    (Some(column), None) => Some(Predicate::compare(column, op, literal(right)?)),
                    (None, Some(column)) => Some(Predicate::compare(column, op.swapped(), literal(left)?)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The dotted path of a field reference, if that path resolves to the same field.
    fn column(&self, e: &Expression) -> Option<String> {
        let Rex::Selection(reference) = e.rex.as_ref()? else { return None };
        reference.root.as_ref()?;
        let mut segment: Option<&Segment> = reference.direct.as_ref();
        let mut fields = self.schema.fields();
        let mut steps: Vec<&FieldRef> = Vec::new();
        while let Some(field) = segment {
            let step = field.field.as_deref()?;
            let field = fields.get(usize::try_from(step.field).ok()?)?;
            steps.push(field);
            segment = step.child.as_deref();
            match (segment, field.data_type()) {
                (Some(_), DataType::Struct(children)) => fields = children,
                (Some(_), _) => return None,
                (None, _) => {}
            }
        }
        let names: Vec<&str> = steps.iter().map(|f| f.name().as_str()).collect();
        let path = names.join(".");
        let meant = crate::projection::steps(self.schema, &path).ok()?;
        let top = steps.first()?.name();
        let same = meant.len() == steps.len() && meant.iter().zip(&steps).all(|(a, b)| Arc::ptr_eq(a, b));
        let alone = self.schema.fields().iter().filter(|f| f.name() == top).count() == 1;
        (same && alone).then_some(path)
    }
}

fn comparison(name: &str) -> Option<Op> {
    Some(match name {
        "equal" => Op::Eq,
        "not_equal" => Op::Ne,
        "lt" => Op::Lt,
        "lte" => Op::Le,
        "gt" => Op::Gt,
        "gte" => Op::Ge,
        _ => return None,
    })
}

/// A literal as an array of one value.
fn literal(e: &Expression) -> Option<ArrayRef> {
    let Rex::Literal(literal) = e.rex.as_ref()? else { return None };
    Some(match literal.value.as_ref()? {
        LiteralValue::Null(_) => return None,
        LiteralValue::Boolean(v) => Arc::new(BooleanArray::from(vec![*v])),
        LiteralValue::I8(v) => Arc::new(Int8Array::from(vec![i8::try_from(*v).ok()?])),
        LiteralValue::I16(v) => Arc::new(Int16Array::from(vec![i16::try_from(*v).ok()?])),
        LiteralValue::I32(v) => Arc::new(Int32Array::from(vec![*v])),
        LiteralValue::I64(v) => Arc::new(Int64Array::from(vec![*v])),
        LiteralValue::Fp32(v) => Arc::new(Float32Array::from(vec![*v])),
        LiteralValue::Fp64(v) => Arc::new(Float64Array::from(vec![*v])),
        LiteralValue::String(v) => Arc::new(StringArray::from(vec![v.as_str()])),
        LiteralValue::Binary(v) => Arc::new(BinaryArray::from(vec![v.as_slice()])),
        LiteralValue::Date(v) => Arc::new(Date32Array::from(vec![*v])),
        LiteralValue::Decimal(v) => {
            let value = i128::from_le_bytes(v.value.as_slice().try_into().ok()?);
            let (precision, scale) = (u8::try_from(v.precision).ok()?, i8::try_from(v.scale).ok()?);
            Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(precision, scale).ok()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::proto::*;
    use super::*;
    use arrow_schema::{Field, Fields};

    fn field(path: &[i32]) -> Expression {
        let direct = path.iter().rev().fold(None, |child: Option<Segment>, i| {
            let step = StructField { field: *i, child: child.map(Box::new) };
            Some(Segment { field: Some(Box::new(step)) })
        });
        Expression { rex: Some(Rex::Selection(FieldReference { direct, root: Some(Unread {}) })) }
    }

    fn call(reference: u32, arguments: Vec<Expression>) -> Expression {
        let arguments = arguments.into_iter().map(|value| Argument { value: Some(value) }).collect();
        Expression { rex: Some(Rex::Function(ScalarFunction { reference, arguments })) }
    }

    fn int(v: i32) -> Expression {
        Expression { rex: Some(Rex::Literal(Literal { value: Some(LiteralValue::I32(v)) })) }
    }

    fn parsed(expression: Expression) -> Option<String> {
        let declare = |anchor, name: &str| Declaration {
            function: Some(DeclaredFunction { anchor, name: name.into() }),
        };
        let extensions =
            ["gt:any_any", "not", "starts_with", "and"].iter().zip(1..).map(|(n, a)| declare(a, n)).collect();
        let message =
            ExtendedExpression { extensions, referred: vec![Referred { expression: Some(expression) }] };
        let child = Fields::from(vec![Field::new("a", DataType::Int32, true)]);
        let schema = Schema::new(vec![
            Field::new("i", DataType::Int32, true),
            Field::new("s", DataType::Struct(child), true),
        ]);
        parse(&message.encode_to_vec(), &schema).unwrap().map(|p| {
            let mut columns = Vec::new();
            p.columns(&mut columns);
            let negated = matches!(p, Predicate::Compare { negated: true, .. });
            format!("{columns:?} {negated}")
        })
    }

    #[test]
    fn filters_are_either_exact_or_unsupported() {
        assert_eq!(parsed(call(1, vec![field(&[0]), int(5)])).unwrap(), "[\"i\"] false");
        assert_eq!(parsed(call(2, vec![call(1, vec![field(&[0]), int(5)])])).unwrap(), "[\"i\"] true");
        assert_eq!(parsed(call(1, vec![int(5), field(&[1, 0])])).unwrap(), "[\"s.a\"] false");
        assert_eq!(parsed(call(3, vec![field(&[0]), int(5)])), None);
        assert_eq!(parsed(call(4, vec![call(1, vec![field(&[0]), int(5)]), call(3, vec![])])), None);
        assert_eq!(parsed(call(1, vec![field(&[7]), int(5)])), None);
    }
}
