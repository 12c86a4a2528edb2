//! Columns and types as text, in the language of Hive's and Spark's `CREATE TABLE t (...)`.
//!
//! ```text
//! columns   = [ column { "," column } [ "," ] ]
//! column    = name [":"] type [ "COMMENT" literal ]
//! name      = letter or digit or "_" or "$" or "." ... | "`" anything, with "``" for "`" "`"
//! type      = primitive | "decimal" [ "(" p [ "," s ] ")" ] | ("varchar" | "char") "(" n ")"
//!           | "array" "<" type ">" | "map" "<" type "," type ">" | "uniontype" "<" type { "," type } ">"
//!           | "struct" "<" [ name [":"] type [ "COMMENT" literal ] { "," ... } ] ">"
//! literal   = "'" ... "'" or '"' ... '"', with "\" or a doubled quote for the quote itself
//! ```
//!
//! Keywords are in any case, with the aliases of Hive's `HiveParser.g`. Names keep their case. This module
//! knows only the grammar. Each format itself checks types, precisions, lengths and keys, and reports errors
//! with [`error_at`].

use std::fmt;

use coldframe_encoding::{Error, Limits, Result};

/// A parsed type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The kind of type.
    pub kind: Kind,
    /// The byte offset of the type's arguments, or of the type itself if it has no arguments.
    pub at: usize,
}

/// The kind of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the names of Hive's types")]
pub enum Kind {
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Float,
    Double,
    Decimal {
        /// The total number of digits.
        precision: u32,
        /// The number of digits after the point.
        scale: u32,
    },
    String,
    Varchar(u32),
    Char(u32),
    Binary,
    Date,
    Timestamp,
    TimestampLocalTz,
    IntervalYearMonth,
    IntervalDayTime,
    /// A type of ORC that Hive lacks.
    Geometry,
    /// A type of ORC that Hive lacks.
    Geography,
    Array(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Struct(Vec<(String, Type)>),
    Union(Vec<Type>),
}

/// As Hive spells it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Boolean => "boolean",
            Self::TinyInt => "tinyint",
            Self::SmallInt => "smallint",
            Self::Int => "int",
            Self::BigInt => "bigint",
            Self::Float => "float",
            Self::Double => "double",
            Self::Decimal { precision, scale } => return write!(f, "decimal({precision},{scale})"),
            Self::String => "string",
            Self::Varchar(length) => return write!(f, "varchar({length})"),
            Self::Char(length) => return write!(f, "char({length})"),
            Self::Binary => "binary",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::TimestampLocalTz => "timestamp with local time zone",
            Self::IntervalYearMonth => "interval_year_month",
            Self::IntervalDayTime => "interval_day_time",
            Self::Geometry => "geometry",
            Self::Geography => "geography",
            Self::Array(item) => return write!(f, "array<{}>", item.kind),
            Self::Map(key, value) => return write!(f, "map<{},{}>", key.kind, value.kind),
            Self::Struct(fields) => {
                f.write_str("struct<")?;
                for (number, (name, of)) in fields.iter().enumerate() {
                    let comma = if number == 0 { "" } else { "," };
                    write!(f, "{comma}{}:{}", Name(name), of.kind)?;
                }
                return f.write_str(">");
            }
            Self::Union(branches) => {
                f.write_str("uniontype<")?;
                for (number, of) in branches.iter().enumerate() {
                    write!(f, "{}{}", if number == 0 { "" } else { "," }, of.kind)?;
                }
                return f.write_str(">");
            }
        };
        f.write_str(name)
    }
}

/// Parses a column list such as ``"id bigint, `tags` array<string>"``.
pub fn parse_columns(text: &str, limits: &Limits) -> Result<Vec<(String, Type)>> {
    let mut parser = Parser { text, at: 0, limits };
    let mut columns = Vec::new();
    while !parser.at_end() {
        columns.push(parser.named("a column name", 1)?);
        limits.columns("column list", columns.len() as u64)?;
        if !parser.take(',') && !parser.at_end() {
            return Err(parser.expected("`,` or the end of the column list"));
        }
    }
    Ok(columns)
}

/// Parses one type such as `map<string,array<int>>`.
pub fn parse_type(text: &str, limits: &Limits) -> Result<Type> {
    let mut parser = Parser { text, at: 0, limits };
    let data_type = parser.data_type(1)?;
    if !parser.at_end() {
        return Err(parser.expected("the end of the type"));
    }
    Ok(data_type)
}

/// An error at a position in the text. `at` is a byte offset; the message gives the position in characters,
/// counted from 1.
pub fn error_at(text: &str, at: usize, reason: impl fmt::Display) -> Error {
    let position = text.get(..at).unwrap_or(text).chars().count() + 1;
    Error::schema(format!("Hive schema, character {position}: {reason}"))
}

/// A column or field name, quoted if necessary.
pub struct Name<'a>(pub &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() && self.0.chars().all(is_word_char) {
            return f.write_str(self.0);
        }
        f.write_str(&quoted(self.0))
    }
}

/// A column or field name in backquotes.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a name may contain the character without quotes. Hive requires quotes for `$` and `.`.
fn is_name_char(c: char) -> bool {
    is_word_char(c) || c == '$' || c == '.'
}

struct Parser<'a> {
    text: &'a str,
    /// The byte offset of the next character.
    at: usize,
    limits: &'a Limits,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn at_end(&mut self) -> bool {
        self.skip_space();
        self.rest().is_empty()
    }

    fn expected(&self, what: &str) -> Error {
        let rest: String = self.rest().chars().take(20).collect();
        let actual = if rest.is_empty() { "the end".to_owned() } else { format!("`{rest}`") };
        error_at(self.text, self.at, format_args!("expected {what}, found {actual}"))
    }

    fn take(&mut self, symbol: char) -> bool {
        self.skip_space();
        let matches = self.rest().starts_with(symbol);
        if matches {
            self.at += symbol.len_utf8();
        }
        matches
    }

    fn require(&mut self, symbol: char) -> Result<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    fn word(&mut self) -> &'a str {
        self.run(is_word_char)
    }

    /// Consumes the next characters that satisfy `is_part`; possibly none.
    fn run(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or("")
    }

    /// Consumes the keywords if they follow.
    fn take_keywords(&mut self, keywords: &[&str]) -> bool {
        let start = self.at;
        let matches = keywords.iter().all(|expected| self.word().eq_ignore_ascii_case(expected));
        if !matches {
            self.at = start;
        }
        matches
    }

    fn require_keywords(&mut self, keywords: &[&str]) -> Result<()> {
        if self.take_keywords(keywords) {
            return Ok(());
        }
        Err(self.expected(&format!("`{}`", keywords.join(" "))))
    }

    fn name(&mut self, what: &str) -> Result<String> {
        self.skip_space();
        if self.rest().starts_with('`') {
            return self.quoted('`', false);
        }
        let name = self.run(is_name_char);
        if name.is_empty() { Err(self.expected(what)) } else { Ok(name.to_owned()) }
    }

    /// The text between two quotes; two quotes in a row mean one.
    fn quoted(&mut self, quote: char, backslash: bool) -> Result<String> {
        let opening = self.at;
        let mut out = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((i, c)) = chars.next() {
            if c == quote {
                if chars.next_if(|&(_, next)| next == quote).is_none() {
                    self.at += i + c.len_utf8();
                    return Ok(out);
                }
                out.push(c);
            } else if c == '\\' && backslash {
                out.extend(chars.next().map(|(_, escaped)| escaped));
            } else {
                out.push(c);
            }
        }
        self.at = opening;
        Err(self.expected(&format!("a closing `{quote}`")))
    }

    fn skip_comment(&mut self) -> Result<()> {
        if !self.take_keywords(&["comment"]) {
            return Ok(());
        }
        self.skip_space();
        match self.rest().chars().next() {
            Some(quote @ ('\'' | '"')) => self.quoted(quote, true).map(drop),
            _ => Err(self.expected("a quoted comment")),
        }
    }

    /// A name and its type.
    fn named(&mut self, what: &str, depth: u64) -> Result<(String, Type)> {
        let name = self.name(what)?;
        self.take(':');
        let data_type = self.data_type(depth)?;
        self.skip_comment()?;
        Ok((name, data_type))
    }

    fn data_type(&mut self, depth: u64) -> Result<Type> {
        self.limits.depth("nested Hive type", depth)?;
        self.skip_space();
        let start = self.at;
        let keyword = self.word().to_ascii_lowercase();
        let whole = |kind| Ok(Type { kind, at: start });
        match keyword.as_str() {
            "boolean" => whole(Kind::Boolean),
            "tinyint" => whole(Kind::TinyInt),
            "smallint" => whole(Kind::SmallInt),
            "int" | "integer" => whole(Kind::Int),
            "bigint" => whole(Kind::BigInt),
            "float" | "real" => whole(Kind::Float),
            "double" => {
                self.take_keywords(&["precision"]);
                whole(Kind::Double)
            }
            "string" => whole(Kind::String),
            "binary" => whole(Kind::Binary),
            "date" => whole(Kind::Date),
            "timestamp" => self.timestamp().and_then(whole),
            "timestamplocaltz" => whole(Kind::TimestampLocalTz),
            "interval_year_month" => whole(Kind::IntervalYearMonth),
            "interval_day_time" => whole(Kind::IntervalDayTime),
            "interval" => self.interval().and_then(whole),
            "geometry" => whole(Kind::Geometry),
            "geography" => whole(Kind::Geography),
            "decimal" | "dec" | "numeric" => self.decimal(start),
            "varchar" => self.within('(', ')', |p| Ok(Kind::Varchar(p.number("a length")?))),
            "char" => self.within('(', ')', |p| Ok(Kind::Char(p.number("a length")?))),
            "array" => self.within('<', '>', |p| Ok(Kind::Array(Box::new(p.data_type(depth + 1)?)))),
            "map" => self.within('<', '>', |p| p.map(depth + 1)),
            "struct" => self.within('<', '>', |p| p.fields(depth + 1)),
            "uniontype" => self.within('<', '>', |p| p.union(depth + 1)),
            _ => {
                self.at = start;
                Err(self.expected("a Hive type"))
            }
        }
    }

    /// Parses a type that has arguments in brackets.
    fn within(
        &mut self,
        open: char,
        close: char,
        inside: impl FnOnce(&mut Self) -> Result<Kind>,
    ) -> Result<Type> {
        self.require(open)?;
        let at = self.at;
        let kind = inside(self)?;
        self.require(close)?;
        Ok(Type { kind, at })
    }

    fn timestamp(&mut self) -> Result<Kind> {
        if !self.take_keywords(&["with"]) {
            return Ok(Kind::Timestamp);
        }
        self.require_keywords(&["local", "time", "zone"])?;
        Ok(Kind::TimestampLocalTz)
    }

    fn interval(&mut self) -> Result<Kind> {
        if self.take_keywords(&["year", "to", "month"]) {
            return Ok(Kind::IntervalYearMonth);
        }
        self.require_keywords(&["day", "to", "second"])?;
        Ok(Kind::IntervalDayTime)
    }

    fn decimal(&mut self, start: usize) -> Result<Type> {
        self.skip_space();
        if !self.rest().starts_with('(') {
            return Ok(Type { kind: Kind::Decimal { precision: 10, scale: 0 }, at: start });
        }
        self.within('(', ')', |p| {
            let precision = p.number("a precision")?;
            let scale = if p.take(',') { p.number("a scale")? } else { 0 };
            Ok(Kind::Decimal { precision, scale })
        })
    }

    fn number(&mut self, what: &str) -> Result<u32> {
        self.skip_space();
        let start = self.at;
        self.word().parse().map_err(|_| {
            self.at = start;
            self.expected(what)
        })
    }

    fn map(&mut self, depth: u64) -> Result<Kind> {
        let key = self.data_type(depth)?;
        self.require(',')?;
        Ok(Kind::Map(Box::new(key), Box::new(self.data_type(depth)?)))
    }

    fn fields(&mut self, depth: u64) -> Result<Kind> {
        let mut fields = Vec::new();
        self.skip_space();
        if self.rest().starts_with('>') {
            return Ok(Kind::Struct(fields));
        }
        loop {
            fields.push(self.named("a field name", depth)?);
            self.limits.columns("struct", fields.len() as u64)?;
            if !self.take(',') {
                return Ok(Kind::Struct(fields));
            }
        }
    }

    fn union(&mut self, depth: u64) -> Result<Kind> {
        let mut branches = Vec::new();
        loop {
            branches.push(self.data_type(depth)?);
            self.limits.columns("uniontype", branches.len() as u64)?;
            if !self.take(',') {
                return Ok(Kind::Union(branches));
            }
        }
    }
}
