//! An SQL-like condition: `dt >= '2014-01-01' and (x in (1, 2) or s is not null) and not b`.
//!
//! ```text
//! or      := and { OR and }
//! and     := not { AND not }
//! not     := NOT not | test
//! test    := '(' or ')' | TRUE | FALSE | NULL
//!          | column [ compare value | [NOT] IN '(' value {',' value} ')' | [NOT] BETWEEN value AND value
//!                   | [NOT] LIKE 'pattern' | IS [NOT] NULL | IS [NOT] TRUE | IS [NOT] FALSE ]
//!          | value compare column
//! value   := number | 'text' | DATE 'text' | TIMESTAMP 'text' | X'hex' | TRUE | FALSE | NULL
//! column  := name { '.' name }, where a name may stand in `back quotes` or "double quotes"
//! ```
//!
//! Column names match in any case, as in Spark, except for names that differ only in case.

use coldframe_encoding::{Error, Result};

use super::Op;
use super::condition::Condition;
use super::instant;
use super::like::Pattern;
use super::literal::Literal;
use super::number::Number;
use crate::sql_tokens::{Token, TokenKind, position, tokens};

const MAX_DEPTH: usize = 100;

const RESERVED: [&str; 10] = ["and", "or", "not", "in", "is", "between", "like", "null", "true", "false"];

/// Parses a condition. The error for a mistake contains its position.
pub fn condition(text: &str) -> Result<Condition> {
    let mut parser = Parser { text, tokens: tokens("filter", text)?, at: 0 };
    let parsed = parser.any_of(0)?;
    if parser.peek().kind != TokenKind::End {
        return Err(parser.error("the end of the condition"));
    }
    Ok(parsed)
}

struct Parser<'a> {
    text: &'a str,
    /// The tokens; the last one is the end token.
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> Token<'a> {
        self.tokens.get(self.at + by).or(self.tokens.last()).copied().unwrap_or_default()
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let matches = self.peek().is_word(word);
        self.at += usize::from(matches);
        matches
    }

    fn accept_sign(&mut self, sign: &str) -> bool {
        let matches = self.peek().is_sign(sign);
        self.at += usize::from(matches);
        matches
    }

    fn expect_sign(&mut self, sign: &str) -> Result<()> {
        if self.accept_sign(sign) { Ok(()) } else { Err(self.error(&format!("'{sign}'"))) }
    }

    fn error(&self, expected: &str) -> Error {
        let token = self.peek();
        let actual =
            if token.kind == TokenKind::End { "the end".to_owned() } else { format!("{:?}", token.text) };
        let position = position(self.text, token.at);
        Error::invalid(format!(
            "filter {:?}, position {position}: expected {expected}, found {actual}",
            self.text
        ))
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::unsupported(format!("filter {:?}: {what}", self.text))
    }

    fn any_of(&mut self, depth: usize) -> Result<Condition> {
        let first = self.all_of(depth)?;
        if !self.peek().is_word("or") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.accept_word("or") {
            parts.push(self.all_of(depth)?);
        }
        Ok(Condition::Or(parts))
    }

    fn all_of(&mut self, depth: usize) -> Result<Condition> {
        let first = self.negation(depth)?;
        if !self.peek().is_word("and") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.accept_word("and") {
            parts.push(self.negation(depth)?);
        }
        Ok(Condition::And(parts))
    }

    fn negation(&mut self, depth: usize) -> Result<Condition> {
        if depth > MAX_DEPTH {
            return Err(Error::invalid(format!("filter nested deeper than {MAX_DEPTH}")));
        }
        if self.accept_word("not") {
            return Ok(!self.negation(depth + 1)?);
        }
        self.test(depth)
    }

    fn test(&mut self, depth: usize) -> Result<Condition> {
        if self.accept_sign("(") {
            let inner = self.any_of(depth + 1)?;
            self.expect_sign(")")?;
            return Ok(inner);
        }
        if let Some(literal) = self.literal()? {
            return self.literal_first(literal);
        }
        let column = self.column()?;
        if self.peek().is_sign("(") {
            return Err(self.unsupported(&format!("function {column}()")));
        }
        if let Some(op) = self.comparison() {
            return Ok(Condition::Compare { column, op, value: self.value()? });
        }
        if self.accept_word("is") {
            return self.is_test(column);
        }
        let negated = self.accept_word("not");
        match self.range_test(&column)? {
            Some(test) if negated => Ok(!test),
            Some(test) => Ok(test),
            None if negated => Err(self.error("in, between or like")),
            // A boolean column without a comparison.
            None => Ok(Condition::Compare { column, op: Op::Eq, value: Literal::Bool(true) }),
        }
    }

    fn comparison(&mut self) -> Option<Op> {
        let token = self.peek();
        let op = Op::parse(token.text).filter(|_| token.kind == TokenKind::Sign)?;
        self.at += 1;
        Some(op)
    }

    fn literal_first(&mut self, value: Literal) -> Result<Condition> {
        if let Some(op) = self.comparison() {
            if self.literal()?.is_some() {
                return Err(self.unsupported("a comparison without a column"));
            }
            return Ok(Condition::Compare { column: self.column()?, op: op.swapped(), value });
        }
        match value {
            Literal::Null => Ok(Condition::Constant(None)),
            Literal::Bool(v) => Ok(Condition::Constant(Some(v))),
            _ => Err(self.error("a comparison")),
        }
    }

    fn is_test(&mut self, column: String) -> Result<Condition> {
        let negated = self.accept_word("not");
        let test = if self.accept_word("null") {
            Condition::IsNull { column }
        } else {
            let wanted = self.accept_word("true");
            if !wanted && !self.accept_word("false") {
                return Err(self.error("null, true or false"));
            }
            // `is true` is never unknown, unlike `= true`.
            let has_value = !Condition::IsNull { column: column.clone() };
            let equal = Condition::Compare { column, op: Op::Eq, value: Literal::Bool(wanted) };
            Condition::And(vec![has_value, equal])
        };
        Ok(if negated { !test } else { test })
    }

    fn range_test(&mut self, column: &str) -> Result<Option<Condition>> {
        let column = column.to_owned();
        if self.accept_word("in") {
            return self.set(column).map(Some);
        }
        if self.accept_word("between") {
            let low = self.value()?;
            if !self.accept_word("and") {
                return Err(self.error("and"));
            }
            let high = self.value()?;
            let least = Condition::Compare { column: column.clone(), op: Op::Ge, value: low };
            let most = Condition::Compare { column, op: Op::Le, value: high };
            return Ok(Some(Condition::And(vec![least, most])));
        }
        if self.accept_word("like") {
            let token = self.peek();
            if token.kind != TokenKind::Text {
                return Err(self.error("a pattern in single quotes"));
            }
            self.at += 1;
            return Ok(Some(Condition::Like { column, pattern: Pattern::new(&token.unquoted()) }));
        }
        Ok(None)
    }

    /// Parses `(value, ..)`. If the set contains null, the result for values outside the set is unknown.
    fn set(&mut self, column: String) -> Result<Condition> {
        self.expect_sign("(")?;
        let mut values = vec![self.value()?];
        while self.accept_sign(",") {
            values.push(self.value()?);
        }
        self.expect_sign(")")?;
        let given = values.len();
        values.retain(|v| !matches!(v, Literal::Null));
        let with_null = values.len() < given;
        // Sets distinguish 0.0 from -0.0, like pyarrow's sets. SQL makes no difference, so a zero becomes a
        // comparison.
        if values.iter().any(|v| matches!(v, Literal::Number(n) if n.is_zero())) {
            values.extend([Literal::Float(0.0), Literal::Float(-0.0)]);
        }
        let present = Condition::In { column, values };
        Ok(if with_null { Condition::Or(vec![present, Condition::Constant(None)]) } else { present })
    }

    fn value(&mut self) -> Result<Literal> {
        if let Some(literal) = self.literal()? {
            return Ok(literal);
        }
        let token = self.peek();
        if matches!(token.kind, TokenKind::Name | TokenKind::Quoted) {
            let what = format!("comparison with {:?}, which is not a literal", token.text);
            return Err(self.unsupported(&what));
        }
        Err(self.error("a literal"))
    }

    /// Consumes a literal if one follows.
    fn literal(&mut self) -> Result<Option<Literal>> {
        let (token, following) = (self.peek(), self.ahead(1));
        let (taken, value) = match token.kind {
            TokenKind::Sign if matches!(token.text, "+" | "-") && following.kind == TokenKind::Number => {
                (2, self.number(following.text, token.text == "-")?)
            }
            TokenKind::Number => (1, self.number(token.text, false)?),
            TokenKind::Text => (1, Literal::Text(token.unquoted())),
            TokenKind::Hex => (1, Literal::Bytes(token.bytes())),
            TokenKind::Name => match (token.text.to_lowercase().as_str(), following.kind) {
                ("true", _) => (1, Literal::Bool(true)),
                ("false", _) => (1, Literal::Bool(false)),
                ("null", _) => (1, Literal::Null),
                ("date", TokenKind::Text) => (2, self.date(&following.unquoted())?),
                // The value is kept as text, because only the column's type decides whether it may have a
                // zone.
                ("timestamp", TokenKind::Text) => (2, Literal::Text(following.unquoted())),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        self.at += taken;
        Ok(Some(value))
    }

    /// A number with an exponent is a double, as in SQL; any other is exact.
    fn number(&self, text: &str, negative: bool) -> Result<Literal> {
        if text.contains(['e', 'E']) {
            let value: Option<f64> = text.parse().ok();
            let value = value.ok_or_else(|| self.error("a number"))?;
            return Ok(Literal::Float(if negative { -value } else { value }));
        }
        let value = Number::parse(text).ok_or_else(|| self.error("a number"))?;
        Ok(Literal::Number(if negative { value.negated() } else { value }))
    }

    fn date(&self, text: &str) -> Result<Literal> {
        let days = instant::date(text).ok_or_else(|| {
            Error::invalid(format!("filter {:?}: {text:?} is not a date (yyyy-mm-dd)", self.text))
        })?;
        Ok(Literal::Date(days))
    }

    fn column(&mut self) -> Result<String> {
        let mut name = self.name()?;
        while self.accept_sign(".") {
            name.push('.');
            name.push_str(&self.name()?);
        }
        Ok(name)
    }

    fn name(&mut self) -> Result<String> {
        let token = self.peek();
        let name = match token.kind {
            TokenKind::Quoted => token.unquoted(),
            TokenKind::Name if !RESERVED.contains(&token.text.to_lowercase().as_str()) => {
                token.text.to_owned()
            }
            _ => return Err(self.error("a column or a literal")),
        };
        self.at += 1;
        Ok(name)
    }
}
