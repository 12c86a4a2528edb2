//! Phoenix's `CREATE TABLE`.
//!
//! ```text
//! statement := CREATE [IMMUTABLE] TABLE [IF NOT EXISTS] name {'.' name}
//!              '(' column {',' column} [','] [CONSTRAINT name PRIMARY KEY '(' key {',' key} ')'] ')'
//!              [option {',' option}] [SPLIT ON ..] [';']
//! column    := [family '.'] name type ['(' number {',' number} ')'] [NOT NULL | NULL] [DEFAULT NULL]
//!              [PRIMARY KEY [ASC | DESC] [ROW_TIMESTAMP]] [ENCODED_QUALIFIER number]
//! key       := name [ASC | DESC] [ROW_TIMESTAMP]
//! option    := [family '.'] name '=' value
//! ```
//!
//! Names without double quotes are converted to upper case.

use coldframe_core::sql_tokens::{Token, TokenKind, position, tokens};
use coldframe_core::{Error, Result};

use super::PhoenixType;

/// The longest statement.
const MAX_BYTES: usize = 1 << 20;
/// Maximum number of columns.
const MAX_COLUMNS: usize = 10_000;

/// What a `CREATE` statement can create besides a table.
const OTHERS: [&str; 5] = ["view", "index", "local", "async", "uncovered"];

/// A declared column.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) family: Option<String>,
    pub(super) name: String,
    pub(super) of: PhoenixType,
    /// The column's qualifier number, if declared.
    pub(super) number: Option<u32>,
}

/// A parsed statement.
#[derive(Debug, Default)]
pub(super) struct Statement {
    immutable: bool,
    pub(super) columns: Vec<Declared>,
    /// The columns of the row key, and whether each column is in descending order.
    pub(super) key: Vec<(String, bool)>,
    options: Vec<(String, String)>,
}

impl Statement {
    /// The value of an option of the statement.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>> {
        let parse = |value: &str| {
            value.parse().map_err(|_| {
                Error::invalid(format!("option `phoenix`: {name}: expected a number, found {value:?}"))
            })
        };
        self.option(name).map(parse).transpose()
    }

    fn is_set(&self, name: &str) -> bool {
        self.option(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    pub(super) fn is_key(&self, column: &Declared) -> bool {
        column.family.is_none() && self.key.iter().any(|(name, _)| *name == column.name)
    }

    /// The length of qualifiers that are numbers; `None` if qualifiers are names.
    pub(super) fn encoded_bytes(&self) -> Result<Option<usize>> {
        match self.option("COLUMN_ENCODED_BYTES").map(str::to_ascii_uppercase).as_deref() {
            None | Some("2") => Ok(Some(2)),
            Some("0" | "NONE") => Ok(None),
            Some("1") => Ok(Some(1)),
            Some("3") => Ok(Some(3)),
            Some("4") => Ok(Some(4)),
            Some(other) => Err(Error::invalid(format!(
                "option `phoenix`: COLUMN_ENCODED_BYTES: expected 0 to 4, found {other}"
            ))),
        }
    }

    /// Fails for tables whose cells have an unsupported layout.
    pub(super) fn check(&self) -> Result<()> {
        if self.key.is_empty() {
            return Err(Error::invalid("option `phoenix`: expected a PRIMARY KEY, found none"));
        }
        let twice = |name: &str| self.key.iter().filter(|(other, _)| other == name).count() > 1;
        if let Some((name, _)) = self.key.iter().find(|(name, _)| twice(name)) {
            return Err(Error::invalid(format!("option `phoenix`: {name:?} is twice in the PRIMARY KEY")));
        }
        if self.is_set("TRANSACTIONAL") {
            return Err(Error::unsupported("transactional tables of Phoenix"));
        }
        let immutable = self.immutable || self.is_set("IMMUTABLE_ROWS");
        let scheme = self.option("IMMUTABLE_STORAGE_SCHEME").map(str::to_ascii_uppercase);
        let single_cell = match scheme.as_deref() {
            Some(scheme) => scheme != "ONE_CELL_PER_COLUMN",
            None => immutable && !self.is_set("MULTI_TENANT") && self.encoded_bytes()?.is_some(),
        };
        if single_cell {
            return Err(Error::unsupported(
                "immutable tables of Phoenix that keep a row in one cell (IMMUTABLE_STORAGE_SCHEME other than \
                 ONE_CELL_PER_COLUMN, which is the default of immutable tables)",
            ));
        }
        Ok(())
    }
}

/// Parses a statement.
pub(super) fn parse(text: &str) -> Result<Statement> {
    if text.len() > MAX_BYTES {
        return Err(Error::invalid(format!("option `phoenix`: a statement of {} bytes", text.len())));
    }
    let text = text.trim().trim_end_matches(';');
    let mut keywords = text.split_whitespace();
    if keywords.next().is_some_and(|word| word.eq_ignore_ascii_case("create"))
        && keywords.next().is_some_and(|word| OTHERS.iter().any(|other| word.eq_ignore_ascii_case(other)))
    {
        return Err(Error::unsupported("views and indexes of Phoenix: give the statement of the table"));
    }
    let mut parser = Parser { text, tokens: tokens("option `phoenix`:", text)?, at: 0 };
    parser.statement()
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Token<'_> {
        self.tokens.get(self.at).copied().unwrap_or_default()
    }

    fn word(&mut self, word: &str) -> bool {
        let matches = self.peek().is_word(word);
        self.at += usize::from(matches);
        matches
    }

    fn sign(&mut self, sign: &str) -> bool {
        let matches = self.peek().is_sign(sign);
        self.at += usize::from(matches);
        matches
    }

    fn expected(&self, expected: &str) -> Error {
        let token = self.peek();
        let actual =
            if token.kind == TokenKind::End { "the end".to_owned() } else { format!("{:?}", token.text) };
        let position = position(self.text, token.at);
        Error::invalid(format!("option `phoenix`, position {position}: expected {expected}, found {actual}"))
    }

    fn need_word(&mut self, word: &str) -> Result<()> {
        if self.word(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    fn need_sign(&mut self, sign: &str) -> Result<()> {
        if self.sign(sign) { Ok(()) } else { Err(self.expected(&format!("'{sign}'"))) }
    }

    /// Reads a name; a name without quotes is converted to upper case.
    fn name(&mut self) -> Result<String> {
        let token = self.peek();
        let name = match token.kind {
            TokenKind::Name => token.text.to_uppercase(),
            TokenKind::Quoted if token.text.starts_with('"') => token.unquoted(),
            _ => return Err(self.expected("a name")),
        };
        self.at += 1;
        Ok(name)
    }

    fn number(&mut self) -> Result<u64> {
        let token = self.peek();
        let number = Some(token.text).filter(|_| token.kind == TokenKind::Number);
        let number = number.and_then(|text| text.parse().ok()).ok_or_else(|| self.expected("a number"))?;
        self.at += 1;
        Ok(number)
    }

    fn statement(&mut self) -> Result<Statement> {
        let mut statement = Statement::default();
        self.need_word("create")?;
        statement.immutable = self.word("immutable");
        self.need_word("table")?;
        if self.word("if") {
            self.need_word("not")?;
            self.need_word("exists")?;
        }
        self.name()?;
        while self.sign(".") {
            self.name()?;
        }
        self.need_sign("(")?;
        loop {
            if self.constraint(&mut statement)? {
                self.need_sign(")")?;
                break;
            }
            self.column(&mut statement)?;
            if self.peek().is_word("constraint") || self.sign(",") {
                continue;
            }
            self.need_sign(")")?;
            break;
        }
        self.options(&mut statement)?;
        Ok(statement)
    }

    fn constraint(&mut self, statement: &mut Statement) -> Result<bool> {
        if !self.word("constraint") {
            return Ok(false);
        }
        self.name()?;
        self.need_word("primary")?;
        self.need_word("key")?;
        self.need_sign("(")?;
        loop {
            let name = self.name()?;
            let descending = self.order();
            statement.key.push((name, descending));
            if !self.sign(",") {
                break;
            }
        }
        self.need_sign(")")?;
        Ok(true)
    }

    fn order(&mut self) -> bool {
        let descending = self.word("desc");
        if !descending {
            self.word("asc");
        }
        self.word("row_timestamp");
        descending
    }

    fn column(&mut self, statement: &mut Statement) -> Result<()> {
        let mut name = self.name()?;
        let mut family = None;
        if self.sign(".") {
            family = Some(std::mem::replace(&mut name, self.name()?));
        }
        if statement.columns.iter().any(|c| c.name == name && c.family == family) {
            return Err(Error::invalid(format!("option `phoenix`: the column {name:?} occurs twice")));
        }
        if statement.columns.len() >= MAX_COLUMNS {
            return Err(Error::invalid(format!("option `phoenix`: more than {MAX_COLUMNS} columns")));
        }
        let at = self.at;
        let of = self.name()?;
        let mut numbers = Vec::new();
        if self.sign("(") {
            loop {
                numbers.push(self.number()?);
                if !self.sign(",") {
                    break;
                }
            }
            self.need_sign(")")?;
        }
        if self.word("array") || self.peek().is_sign("[") {
            return Err(Error::unsupported(format!("arrays of Phoenix: the column {name:?}")));
        }
        let of = PhoenixType::parse(&of, &numbers).map_err(|wrong| {
            let place = self.tokens.get(at).map_or(0, |token| token.at);
            let place = position(self.text, place);
            Error::invalid(format!("option `phoenix`, position {place}: {wrong}"))
        })?;
        let mut declared = Declared { family, name, of, number: None };
        self.constraints(statement, &mut declared)?;
        statement.columns.push(declared);
        Ok(())
    }

    /// The constraints after a column's type.
    fn constraints(&mut self, statement: &mut Statement, column: &mut Declared) -> Result<()> {
        loop {
            if self.word("not") {
                self.need_word("null")?;
            } else if self.word("default") {
                if !self.peek().is_word("null") {
                    // A default value is unsupported: a missing cell would mean this value, which may be any
                    // expression.
                    return Err(Error::unsupported(format!(
                        "default values of Phoenix: the column {:?}",
                        column.name
                    )));
                }
            } else if self.word("primary") {
                self.need_word("key")?;
                let descending = self.order();
                if column.family.is_some() || !statement.key.is_empty() {
                    return Err(self.expected("one PRIMARY KEY, of columns without a family"));
                }
                statement.key.push((column.name.clone(), descending));
            } else if self.word("encoded_qualifier") {
                let number = self.number()?;
                column.number =
                    Some(u32::try_from(number).map_err(|_| self.expected("a number of 32 bits"))?);
            } else if !self.word("null") {
                return Ok(());
            }
        }
    }

    fn options(&mut self, statement: &mut Statement) -> Result<()> {
        while self.peek().kind != TokenKind::End && !self.peek().is_word("split") {
            let mut name = self.name()?;
            if self.sign(".") {
                name = self.name()?; // an HBase option that applies to a single family
            }
            self.need_sign("=")?;
            let sign = if self.sign("-") { "-" } else { "" };
            let token = self.peek();
            let value = match token.kind {
                TokenKind::Text | TokenKind::Quoted => token.unquoted(),
                TokenKind::Name | TokenKind::Number => format!("{sign}{}", token.text),
                _ => return Err(self.expected("a value")),
            };
            self.at += 1;
            statement.options.push((name, value));
            if !self.sign(",") {
                break;
            }
        }
        match self.peek() {
            end if end.kind == TokenKind::End || end.is_word("split") => Ok(()),
            _ => Err(self.expected("the end of the statement")),
        }
    }
}
