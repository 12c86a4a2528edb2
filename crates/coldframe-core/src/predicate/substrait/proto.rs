//! The Substrait messages that can occur in a filter, reduced to the fields that are read.
//!
//! Field numbers: `substrait/algebra.proto`, `extended_expression.proto`, `extensions/extensions.proto`.

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExtendedExpression {
    #[prost(message, repeated, tag = "2")]
    pub(super) extensions: Vec<Declaration>,
    #[prost(message, repeated, tag = "3")]
    pub(super) referred: Vec<Referred>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Declaration {
    #[prost(message, optional, tag = "3")]
    pub(super) function: Option<DeclaredFunction>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeclaredFunction {
    #[prost(uint32, tag = "2")]
    pub(super) anchor: u32,
    #[prost(string, tag = "3")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Referred {
    #[prost(message, optional, tag = "1")]
    pub(super) expression: Option<Expression>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Expression {
    #[prost(oneof = "Rex", tags = "1, 2, 3, 8, 11")]
    pub(super) rex: Option<Rex>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Rex {
    #[prost(message, tag = "1")]
    Literal(Literal),
    #[prost(message, tag = "2")]
    Selection(FieldReference),
    #[prost(message, tag = "3")]
    Function(ScalarFunction),
    #[prost(message, tag = "8")]
    InList(SingularOrList),
    #[prost(message, tag = "11")]
    Cast(Unread),
}

/// A message whose content does not matter.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Unread {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Literal {
    #[prost(oneof = "LiteralValue", tags = "1, 2, 3, 5, 7, 10, 11, 12, 13, 16, 24, 29")]
    pub(super) value: Option<LiteralValue>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum LiteralValue {
    #[prost(bool, tag = "1")]
    Boolean(bool),
    #[prost(int32, tag = "2")]
    I8(i32),
    #[prost(int32, tag = "3")]
    I16(i32),
    #[prost(int32, tag = "5")]
    I32(i32),
    #[prost(int64, tag = "7")]
    I64(i64),
    #[prost(float, tag = "10")]
    Fp32(f32),
    #[prost(double, tag = "11")]
    Fp64(f64),
    #[prost(string, tag = "12")]
    String(String),
    #[prost(bytes = "vec", tag = "13")]
    Binary(Vec<u8>),
    #[prost(int32, tag = "16")]
    Date(i32),
    #[prost(message, tag = "24")]
    Decimal(Decimal),
    #[prost(message, tag = "29")]
    Null(Unread),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Decimal {
    /// Little-endian two's complement, 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) value: Vec<u8>,
    #[prost(int32, tag = "2")]
    pub(super) precision: i32,
    #[prost(int32, tag = "3")]
    pub(super) scale: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FieldReference {
    #[prost(message, optional, tag = "1")]
    pub(super) direct: Option<Segment>,
    #[prost(message, optional, tag = "4")]
    pub(super) root: Option<Unread>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Segment {
    #[prost(message, optional, boxed, tag = "2")]
    pub(super) field: Option<Box<StructField>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StructField {
    #[prost(int32, tag = "1")]
    pub(super) field: i32,
    #[prost(message, optional, boxed, tag = "2")]
    pub(super) child: Option<Box<Segment>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScalarFunction {
    #[prost(uint32, tag = "1")]
    pub(super) reference: u32,
    #[prost(message, repeated, tag = "4")]
    pub(super) arguments: Vec<Argument>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Argument {
    #[prost(message, optional, tag = "3")]
    pub(super) value: Option<Expression>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SingularOrList {
    #[prost(message, optional, boxed, tag = "1")]
    pub(super) value: Option<Box<Expression>>,
    #[prost(message, repeated, tag = "2")]
    pub(super) options: Vec<Expression>,
}
