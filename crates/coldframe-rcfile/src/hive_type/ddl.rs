//! Parser for the column list of a Hive table, as in `CREATE TABLE t (...)`.
//!
//! ```text
//! columns   = [ column { "," column } [ "," ] ]
//! column    = name [":"] type [ "COMMENT" literal ]
//! name      = letter or digit or "_" ... | "`" anything, with "``" for "`" "`"
//! type      = primitive | "decimal" [ "(" p [ "," s ] ")" ] | ("varchar" | "char") "(" n ")"
//!           | "array" "<" type ">" | "map" "<" type "," type ">" | "uniontype" "<" type { "," type } ">"
//!           | "struct" "<" name ":" type [ "COMMENT" literal ] { "," ... } ">"
//! literal   = "'" ... "'" or '"' ... '"', with "\" or a doubled quote for the quote itself
//! ```
//!
//! Keywords in any case, aliases as in Hive's `HiveParser.g`. Names keep their case.

use std::fmt;

use coldframe_encoding::{Error, Limits, Result};

use super::{HiveType, MAX_CHAR_LENGTH, MAX_VARCHAR_LENGTH, decimal, map, union};

/// Parses a column list such as ``"id bigint, `tags` array<string>"``.
pub fn parse_columns(text: &str, limits: &Limits) -> Result<Vec<(String, HiveType)>> {
    let mut parser = Parser { text, at: 0, limits };
    let mut columns = Vec::new();
    while !parser.at_end() {
        let name = parser.name("a column name")?;
        parser.take(':');
        let data_type = parser.data_type(1)?;
        parser.skip_comment()?;
        columns.push((name, data_type));
        limits.columns("column list", columns.len() as u64)?;
        if !parser.take(',') && !parser.at_end() {
            return Err(parser.expected("`,` or the end of the column list"));
        }
    }
    Ok(columns)
}

/// Parses one type such as `map<string,array<int>>`.
pub fn parse_type(text: &str, limits: &Limits) -> Result<HiveType> {
    let mut parser = Parser { text, at: 0, limits };
    let data_type = parser.data_type(1)?;
    if !parser.at_end() {
        return Err(parser.expected("the end of the type"));
    }
    Ok(data_type)
}

/// Columns as a column list. All names are quoted: which words are reserved depends on who reads it.
pub fn print_columns<'a>(columns: impl IntoIterator<Item = (&'a str, &'a HiveType)>) -> String {
    let column = |(name, of): (&str, &HiveType)| format!("{} {}", quoted(name), print_type(of));
    columns.into_iter().map(column).collect::<Vec<_>>().join(", ")
}

fn print_type(of: &HiveType) -> String {
    match of {
        HiveType::Array(element) => format!("array<{}>", print_type(element)),
        HiveType::Map(key, value) => format!("map<{},{}>", print_type(key), print_type(value)),
        HiveType::Struct(fields) => {
            let fields = fields.iter().map(|(name, of)| format!("{}:{}", quoted(name), print_type(of)));
            format!("struct<{}>", fields.collect::<Vec<_>>().join(","))
        }
        HiveType::Union(branches) => {
            format!("uniontype<{}>", branches.iter().map(print_type).collect::<Vec<_>>().join(","))
        }
        primitive => primitive.to_string(),
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A column or field name as DDL, quoted if necessary.
pub struct Name<'a>(pub &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() && self.0.chars().all(is_name_char) {
            return f.write_str(self.0);
        }
        write!(f, "`{}`", self.0.replace('`', "``"))
    }
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct Parser<'a> {
    text: &'a str,
    /// Byte position of the next character.
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
        let found = if rest.is_empty() { "the end".to_owned() } else { format!("`{rest}`") };
        Error::schema(format!("Hive schema, character {}: expected {what}, found {found}", self.position()))
    }

    /// The position of the next character, in characters from 1.
    fn position(&self) -> usize {
        self.text.get(..self.at).unwrap_or("").chars().count() + 1
    }

    fn take(&mut self, symbol: char) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(symbol);
        if found {
            self.at += symbol.len_utf8();
        }
        found
    }

    fn require(&mut self, symbol: char) -> Result<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    /// The next run of name characters, which may be empty.
    fn word(&mut self) -> &'a str {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or("")
    }

    /// Takes the next words if they are the given ones.
    fn take_words(&mut self, words: &[&str]) -> bool {
        let start = self.at;
        let found = words.iter().all(|expected| self.word().eq_ignore_ascii_case(expected));
        if !found {
            self.at = start;
        }
        found
    }

    fn require_words(&mut self, words: &[&str]) -> Result<()> {
        if self.take_words(words) {
            return Ok(());
        }
        Err(self.expected(&format!("`{}`", words.join(" "))))
    }

    fn name(&mut self, what: &str) -> Result<String> {
        self.skip_space();
        if self.rest().starts_with('`') {
            return self.quoted('`', false);
        }
        let word = self.word();
        if word.is_empty() { Err(self.expected(what)) } else { Ok(word.to_owned()) }
    }

    /// The text between two quotes; a doubled quote is one quote.
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
        Err(self.expected(&format!("a closing `{quote}` somewhere behind")))
    }

    fn skip_comment(&mut self) -> Result<()> {
        if !self.take_words(&["comment"]) {
            return Ok(());
        }
        self.skip_space();
        match self.rest().chars().next() {
            Some(quote @ ('\'' | '"')) => self.quoted(quote, true).map(drop),
            _ => Err(self.expected("a quoted comment")),
        }
    }

    fn data_type(&mut self, depth: u64) -> Result<HiveType> {
        self.limits.depth("nested Hive type", depth)?;
        self.skip_space();
        let start = self.at;
        let keyword = self.word().to_ascii_lowercase();
        let data_type = match keyword.as_str() {
            "boolean" => HiveType::Boolean,
            "tinyint" => HiveType::TinyInt,
            "smallint" => HiveType::SmallInt,
            "int" | "integer" => HiveType::Int,
            "bigint" => HiveType::BigInt,
            "float" | "real" => HiveType::Float,
            "double" => {
                self.take_words(&["precision"]);
                HiveType::Double
            }
            "decimal" | "dec" | "numeric" => self.decimal()?,
            "string" => HiveType::String,
            "varchar" => HiveType::Varchar(self.length("varchar", MAX_VARCHAR_LENGTH)?),
            "char" => HiveType::Char(self.length("char", MAX_CHAR_LENGTH)?),
            "binary" => HiveType::Binary,
            "date" => HiveType::Date,
            "timestamp" => self.timestamp()?,
            "timestamplocaltz" => HiveType::TimestampLocalTz,
            "interval_year_month" => HiveType::IntervalYearMonth,
            "interval_day_time" => HiveType::IntervalDayTime,
            "interval" => self.interval()?,
            "array" => HiveType::Array(Box::new(self.in_brackets(|p| p.data_type(depth + 1))?)),
            "map" => self.in_brackets(|p| p.map(depth))?,
            "struct" => HiveType::Struct(self.in_brackets(|p| p.fields(depth))?),
            "uniontype" => self.in_brackets(|p| p.union(depth))?,
            _ => {
                self.at = start;
                return Err(self.expected("a Hive type"));
            }
        };
        Ok(data_type)
    }

    fn timestamp(&mut self) -> Result<HiveType> {
        if !self.take_words(&["with"]) {
            return Ok(HiveType::Timestamp);
        }
        self.require_words(&["local", "time", "zone"])?;
        Ok(HiveType::TimestampLocalTz)
    }

    fn interval(&mut self) -> Result<HiveType> {
        if self.take_words(&["year", "to", "month"]) {
            return Ok(HiveType::IntervalYearMonth);
        }
        self.require_words(&["day", "to", "second"])?;
        Ok(HiveType::IntervalDayTime)
    }

    fn decimal(&mut self) -> Result<HiveType> {
        if !self.take('(') {
            return decimal(10, 0);
        }
        let start = self.at;
        let precision = self.number("a precision")?;
        let scale = if self.take(',') { self.number("a scale")? } else { 0 };
        self.require(')')?;
        let narrow = |n| u8::try_from(n).unwrap_or(u8::MAX);
        decimal(narrow(precision), narrow(scale)).map_err(|e| {
            self.at = start;
            Error::schema(format!("Hive schema, character {}: {}", self.position(), e.reason()))
        })
    }

    fn length(&mut self, of: &str, max: u32) -> Result<u32> {
        self.require('(')?;
        let start = self.at;
        let n = self.number("a length")?;
        if n == 0 || n > max {
            self.at = start;
            return Err(self.expected(&format!("a length of 1..={max} for {of}")));
        }
        self.require(')')?;
        Ok(n)
    }

    fn number(&mut self, what: &str) -> Result<u32> {
        self.skip_space();
        let start = self.at;
        self.word().parse().map_err(|_| {
            self.at = start;
            self.expected(what)
        })
    }

    fn in_brackets<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.require('<')?;
        let value = inside(self)?;
        self.require('>')?;
        Ok(value)
    }

    fn map(&mut self, depth: u64) -> Result<HiveType> {
        let start = self.at;
        let key = self.data_type(depth + 1)?;
        self.require(',')?;
        let value = self.data_type(depth + 1)?;
        map(key, value).map_err(|e| {
            self.at = start;
            Error::schema(format!("Hive schema, character {}: {}", self.position(), e.reason()))
        })
    }

    fn fields(&mut self, depth: u64) -> Result<Vec<(String, HiveType)>> {
        let mut fields = Vec::new();
        loop {
            let name = self.name("a field name")?;
            self.require(':')?;
            fields.push((name, self.data_type(depth + 1)?));
            self.limits.columns("struct", fields.len() as u64)?;
            self.skip_comment()?;
            if !self.take(',') {
                return Ok(fields);
            }
        }
    }

    fn union(&mut self, depth: u64) -> Result<HiveType> {
        let mut branches = Vec::new();
        loop {
            branches.push(self.data_type(depth + 1)?);
            self.limits.columns("uniontype", branches.len() as u64)?;
            if !self.take(',') {
                return union(branches);
            }
        }
    }
}
