//! Reads timestamps by `timestamp.formats`: patterns of `java.time.format.DateTimeFormatter` (Hive 4) or
//! Joda-Time (before), and `millis`.
//!
//! Letters: `y`/`u` year, `M` month (`MMM`, `MMMM`: English name), `d` day, `H` hour 0..23, `h` hour 1..12, `a` AM/PM,
//! `m` minute, `s` second, `S` fraction of a second; text in `'` is literal, as is every non-letter. Fields
//! that a pattern lacks are as in 1970-01-01 00:00:00. The result has milliseconds, as in Hive. Hive 4 also
//! accepts the names `iso8601` and `rfc1123`. Other letters are refused when the column is opened, not at the
//! first value.

use chrono::DateTime;
use coldframe_encoding::calendar::Civil;
use coldframe_encoding::{Error, Result};

use super::instant::Instant;
use super::scanner::Scanner;
use crate::serde::HiveVersion;

/// The compiled patterns, in the order in which they are tried.
#[derive(Debug, Default)]
pub(super) struct Formats {
    formats: Vec<Format>,
    /// Whether Joda-Time reads the patterns.
    joda: bool,
}

/// The result of applying the patterns to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Time(Instant),
    /// No pattern matches; the default form is tried.
    Unmatched,
    /// Joda-Time throws at a field out of its range, even if only a part of the text matches: Hive gives null.
    Null,
}

#[derive(Debug)]
enum Format {
    /// Milliseconds since 1970, without a fraction.
    Millis,
    Iso8601,
    Rfc1123,
    Pattern(Vec<Item>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Year,
    Month,
    Day,
    Hour,
    HalfDayHour,
    Minute,
    Second,
    Fraction,
}

#[derive(Debug)]
enum Item {
    Literal(Vec<u8>),
    Number { field: Field, width: usize },
    MonthName { short: bool },
    HalfDay,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl Formats {
    pub(super) fn compile(patterns: &[String], version: HiveVersion) -> Result<Self> {
        let compile = |pattern: &String| match pattern.as_str() {
            "millis" => Ok(Format::Millis),
            "iso8601" if version >= HiveVersion::V4_1 => Ok(Format::Iso8601),
            "rfc1123" if version >= HiveVersion::V4_1 => Ok(Format::Rfc1123),
            _ if pattern.eq_ignore_ascii_case("millis") && version < HiveVersion::V4_1 => Ok(Format::Millis),
            _ => Ok(Format::Pattern(items(pattern)?)),
        };
        let mut formats: Vec<Format> = patterns.iter().map(compile).collect::<Result<_>>()?;
        // Hive 4 tries the number first, wherever it is in the list.
        if version >= HiveVersion::V4_1 {
            formats.sort_by_key(|f| !matches!(f, Format::Millis));
        }
        Ok(Self { formats, joda: version < HiveVersion::V4_1 })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.formats.is_empty()
    }

    pub(super) fn parse(&self, text: &[u8]) -> Reading {
        if self.joda && self.formats.iter().any(|format| matches!(format, Format::Pattern(_))) {
            return self.as_joda(text);
        }
        let time = self.formats.iter().find_map(|format| format.parse(text));
        time.map_or(Reading::Unmatched, Reading::Time)
    }

    /// Joda-Time applies the fields it has read, even if the whole text does not match. For a single pattern
    /// these are the fields up to where it ceases to match; for several patterns, the fields of the pattern
    /// that matches the longest beginning of the text.
    fn as_joda(&self, text: &[u8]) -> Reading {
        let mut best: Option<(usize, Option<Instant>)> = None;
        for (i, format) in self.formats.iter().enumerate() {
            let (matched, time) = format.beginning(text);
            let is_only = self.formats.len() == 1;
            if matched.is_none() && !is_only {
                continue;
            }
            let end = matched.unwrap_or(0);
            if is_only || best.is_none_or(|(longest, _)| end > longest) {
                best = Some((end, time));
            }
            if end == text.len() || (matched.is_some() && i + 1 == self.formats.len()) {
                break;
            }
        }
        match best {
            Some((end, Some(time))) if end == text.len() => Reading::Time(time),
            Some((_, None)) => Reading::Null,
            _ => Reading::Unmatched,
        }
    }
}

fn items(pattern: &str) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        if c == '\'' {
            let (literal, behind) = quoted(rest, pattern)?;
            items.push(Item::Literal(literal.into_bytes()));
            rest = behind;
            continue;
        }
        let run = rest.len() - rest.trim_start_matches(c).len();
        let (letters, behind) = rest.split_at_checked(run).unwrap_or((rest, ""));
        items.push(if c.is_ascii_alphabetic() {
            item(c, run, pattern)?
        } else {
            Item::Literal(letters.into())
        });
        rest = behind;
    }
    Ok(items)
}

/// The quoted text at the start of `rest`, and the rest after it. Two quotes are an escaped quote.
fn quoted<'a>(rest: &'a str, pattern: &str) -> Result<(String, &'a str)> {
    if let Some(behind) = rest.strip_prefix("''") {
        return Ok(("'".to_owned(), behind));
    }
    let mut literal = String::new();
    let mut inside = rest.strip_prefix('\'').unwrap_or(rest);
    loop {
        let Some((text, behind)) = inside.split_once('\'') else {
            return Err(Error::invalid(format!("timestamp.formats: `{pattern}` has an open quote")));
        };
        literal.push_str(text);
        match behind.strip_prefix('\'') {
            Some(more) => {
                literal.push('\'');
                inside = more;
            }
            None => return Ok((literal, behind)),
        }
    }
}

fn item(letter: char, width: usize, pattern: &str) -> Result<Item> {
    let field = match letter {
        'y' | 'u' => Field::Year,
        'M' | 'L' if width >= 3 => return Ok(Item::MonthName { short: width == 3 }),
        'M' | 'L' => Field::Month,
        'd' => Field::Day,
        'H' => Field::Hour,
        'h' => Field::HalfDayHour,
        'm' => Field::Minute,
        's' => Field::Second,
        'S' => Field::Fraction,
        'a' => return Ok(Item::HalfDay),
        _ => {
            return Err(Error::unsupported(format!(
                "timestamp.formats: the letter `{letter}` of `{pattern}` (known: y u M d H h a m s S)"
            )));
        }
    };
    Ok(Item::Number { field, width })
}

impl Format {
    fn parse(&self, text: &[u8]) -> Option<Instant> {
        match self {
            Self::Millis => millis(text).map(instant),
            Self::Iso8601 => {
                let text = std::str::from_utf8(text).ok()?;
                text.ends_with(['Z', 'z'])
                    .then(|| DateTime::parse_from_rfc3339(text).ok())?
                    .map(|t| instant(t.timestamp_millis()))
            }
            Self::Rfc1123 => {
                let text = std::str::from_utf8(text).ok()?;
                DateTime::parse_from_rfc2822(text).ok().map(|t| instant(t.timestamp_millis()))
            }
            Self::Pattern(items) => {
                let mut scanner = Scanner::new(text);
                let mut fields = Fields::default();
                fields.read(items, false, &mut scanner)?;
                scanner.end()?;
                fields.last_of_month();
                fields.instant()
            }
        }
    }

    /// The end of the match, if the format matches a beginning of the text; and the time of the fields up to
    /// there or, without a match, up to where the format ceases to match. There is no time if a field is out
    /// of its range.
    fn beginning(&self, text: &[u8]) -> (Option<usize>, Option<Instant>) {
        let Self::Pattern(items) = self else {
            // A number is read as a whole or not at all.
            let time = self.parse(text);
            return (time.map(|_| text.len()), time.or_else(|| Fields::default().instant()));
        };
        let mut scanner = Scanner::new(text);
        let mut fields = Fields::default();
        let matched = fields.read(items, true, &mut scanner);
        (matched.map(|()| text.len() - scanner.rest().len()), fields.instant())
    }
}

fn instant(millis: i64) -> Instant {
    let nanos = u32::try_from(millis.rem_euclid(1000)).unwrap_or(0) * 1_000_000;
    Instant { seconds: millis.div_euclid(1000), nanos }
}

/// `-?digits[.digits]`
fn millis(text: &[u8]) -> Option<i64> {
    let (whole, fraction) = match text.iter().position(|&b| b == b'.') {
        Some(point) => (text.get(..point)?, text.get(point + 1..)?),
        None => (text, b"0".as_slice()),
    };
    if fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(whole).ok()?.parse().ok()
}

/// The fields that a pattern has read; the other fields are as in 1970-01-01 00:00:00.
struct Fields {
    date: Civil,
    hour: i64,
    half_day_hour: Option<i64>,
    afternoon: bool,
    minute: i64,
    second: i64,
    millis: i64,
}

impl Default for Fields {
    fn default() -> Self {
        let date = Civil::new(1970, 1, 1);
        Self { date, hour: 0, half_day_hour: None, afternoon: false, minute: 0, second: 0, millis: 0 }
    }
}

impl Fields {
    /// Reads the text by the pattern's items, up to the first that does not match.
    fn read(&mut self, items: &[Item], joda: bool, scanner: &mut Scanner<'_>) -> Option<()> {
        for (i, item) in items.iter().enumerate() {
            match item {
                Item::Literal(literal) => literal.iter().try_for_each(|&b| scanner.literal(b))?,
                Item::MonthName { short } => self.date.month = month_name(scanner, *short, joda)?,
                Item::HalfDay => self.afternoon = half_day(scanner)?,
                Item::Number { field: Field::Fraction, width } => {
                    let before = scanner.rest();
                    scanner.unsigned(if joda { 1 } else { *width }, *width)?;
                    let digits = before.iter().take(before.len() - scanner.rest().len());
                    let padded = digits.chain(std::iter::repeat(&b'0')).take(3);
                    self.millis = padded.fold(0, |n, b| n * 10 + i64::from(b - b'0'));
                }
                Item::Number { field, width } => {
                    let value = number(scanner, *field, *width, items.get(i + 1..)?, joda)?;
                    self.set(*field, value);
                }
            }
        }
        Some(())
    }

    fn set(&mut self, field: Field, value: i64) {
        match field {
            Field::Year => self.date.year = value,
            Field::Month => self.date.month = value,
            Field::Day => self.date.day = value,
            Field::Hour => self.hour = value,
            Field::HalfDayHour => self.half_day_hour = Some(value),
            Field::Minute => self.minute = value,
            Field::Second | Field::Fraction => self.second = value,
        }
    }

    /// Java's resolver is in SMART mode: the 31st of a shorter month is its last day.
    fn last_of_month(&mut self) {
        if (29..=31).contains(&self.date.day) && (1..=12).contains(&self.date.month) {
            while !self.date.exists() {
                self.date.day -= 1;
            }
        }
    }

    /// The time, if all fields are in their ranges.
    fn instant(&self) -> Option<Instant> {
        let hour = match self.half_day_hour {
            Some(hour) if (1..=12).contains(&hour) => hour % 12 + if self.afternoon { 12 } else { 0 },
            Some(_) => return None,
            None => self.hour,
        };
        let in_range = self.date.exists() && (0..24).contains(&hour) && self.minute < 60 && self.second < 60;
        let seconds = self.date.days() * 86_400 + hour * 3600 + self.minute * 60 + self.second;
        in_range.then(|| instant(seconds * 1000 + self.millis))
    }
}

/// A number of a pattern: of fixed width for two letters, otherwise as wide as the numbers after it allow.
fn number(scanner: &mut Scanner<'_>, field: Field, width: usize, behind: &[Item], joda: bool) -> Option<i64> {
    let reserved: usize = behind
        .iter()
        .map_while(|item| match item {
            Item::Number { width, .. } => Some(*width),
            _ => None,
        })
        .sum();
    let available = scanner.rest().iter().take_while(|b| b.is_ascii_digit()).count();
    let widest = available.saturating_sub(reserved).clamp(width, 10);
    match (field, width) {
        (Field::Year, 2) => {
            scanner.unsigned(2, 2).map(|year| year + if joda && year >= 70 { 1900 } else { 2000 })
        }
        (Field::Year, _) if joda => scanner.signed(1, if reserved > 0 { width } else { 9 }),
        (Field::Year, 1) => scanner.signed(1, widest),
        (Field::Year, _) => match scanner.peek() {
            Some(b'-' | b'+') => scanner.padded_year(),
            _ => scanner.unsigned(width, width),
        },
        (_, 1) => scanner.unsigned(1, if joda { 2 } else { widest }),
        (_, _) if joda => scanner.unsigned(1, width),
        _ => scanner.unsigned(width, width),
    }
}

fn month_name(scanner: &mut Scanner<'_>, short: bool, joda: bool) -> Option<i64> {
    let rest = scanner.rest();
    let begins = |name: &str| {
        let head = rest.get(..name.len()).unwrap_or_default();
        if joda { head.eq_ignore_ascii_case(name.as_bytes()) } else { head == name.as_bytes() }
    };
    for (month, name) in (1..).zip(MONTHS) {
        let abbreviation = name.get(..3)?;
        // Joda accepts either form for both patterns.
        let forms = if joda {
            [Some(name), Some(abbreviation)]
        } else {
            [Some(if short { abbreviation } else { name }), None]
        };
        if let Some(form) = forms.into_iter().flatten().find(|form| begins(form)) {
            *scanner = Scanner::new(rest.get(form.len()..)?);
            return Some(month);
        }
    }
    None
}

fn half_day(scanner: &mut Scanner<'_>) -> Option<bool> {
    let rest = scanner.rest();
    let afternoon = match rest.get(..2)? {
        b"AM" | b"am" => false,
        b"PM" | b"pm" => true,
        _ => return None,
    };
    *scanner = Scanner::new(rest.get(2..)?);
    Some(afternoon)
}
