//! Reads timestamps by `timestamp.formats`: patterns of `java.time.format.DateTimeFormatter` (Hive 4) or
//! Joda-Time (before), and `millis`.
//!
//! Letters: `y`/`u` year, `M` month (`MMM`, `MMMM`: English name), `d` day, `H` hour 0..23, `h` hour 1..12, `a` AM/PM,
//! `m` minute, `s` second, `S` fraction of a second; text in `'` is literal, as is every non-letter. Fields that a
//! pattern lacks are those of 1970-01-01 00:00:00. The result has milliseconds, as in Hive. Hive 4 also accepts the
//! names `iso8601` and `rfc1123`. Other letters are refused when the column is opened, not at the first value.

use chrono::DateTime;
use coldframe_encoding::calendar::Civil;
use coldframe_encoding::{Error, Result};

use super::instant::Instant;
use super::scanner::Scanner;
use crate::serde::HiveVersion;

/// The compiled patterns, in the order in which they are tried.
#[derive(Debug, Default)]
pub(super) struct Formats(Vec<Format>);

#[derive(Debug)]
enum Format {
    /// Milliseconds since 1970, without a fraction.
    Millis,
    Iso8601,
    Rfc1123,
    Pattern {
        items: Vec<Item>,
        joda: bool,
    },
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
            _ => Ok(Format::Pattern { items: items(pattern)?, joda: version < HiveVersion::V4_1 }),
        };
        let mut formats: Vec<Format> = patterns.iter().map(compile).collect::<Result<_>>()?;
        // Hive 4 tries the number first, wherever it is in the list.
        if version >= HiveVersion::V4_1 {
            formats.sort_by_key(|f| !matches!(f, Format::Millis));
        }
        Ok(Self(formats))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn parse(&self, text: &[u8]) -> Option<Instant> {
        self.0.iter().find_map(|format| format.parse(text))
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
            Self::Pattern { items, joda } => matched(items, *joda, text),
        }
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

fn matched(items: &[Item], joda: bool, text: &[u8]) -> Option<Instant> {
    let mut scanner = Scanner::new(text);
    let mut date = Civil::new(1970, 1, 1);
    let (mut hour, mut half_day_hour, mut afternoon) = (0, None, false);
    let (mut minute, mut second, mut millis) = (0, 0, 0);
    for (i, item) in items.iter().enumerate() {
        match item {
            Item::Literal(literal) => literal.iter().try_for_each(|&b| scanner.literal(b))?,
            Item::MonthName { short } => date.month = month_name(&mut scanner, *short, joda)?,
            Item::HalfDay => afternoon = half_day(&mut scanner)?,
            Item::Number { field: Field::Fraction, width } => {
                let least = if joda { 1 } else { *width };
                let before = scanner.rest();
                scanner.unsigned(least, *width)?;
                let digits = before.iter().take(before.len() - scanner.rest().len());
                millis = digits
                    .chain(std::iter::repeat(&b'0'))
                    .take(3)
                    .fold(0, |n, b| n * 10 + i64::from(b - b'0'));
            }
            Item::Number { field, width } => {
                let value = number(&mut scanner, *field, *width, items.get(i + 1..)?, joda)?;
                match field {
                    Field::Year => date.year = value,
                    Field::Month => date.month = value,
                    Field::Day => date.day = value,
                    Field::Hour => hour = value,
                    Field::HalfDayHour => half_day_hour = Some(value),
                    Field::Minute => minute = value,
                    _ => second = value,
                }
            }
        }
    }
    scanner.end()?;
    if let Some(value) = half_day_hour.filter(|h| (1..=12).contains(h)) {
        hour = value % 12 + if afternoon { 12 } else { 0 };
    } else if half_day_hour.is_some() {
        return None;
    }
    if !joda && (29..=31).contains(&date.day) && (1..=12).contains(&date.month) {
        // Java's resolver is in SMART mode: the 31st of a shorter month is its last day.
        while !date.exists() {
            date.day -= 1;
        }
    }
    let in_range = date.exists() && (0..24).contains(&hour) && minute < 60 && second < 60;
    let seconds = date.days() * 86_400 + hour * 3600 + minute * 60 + second;
    in_range.then(|| instant(seconds * 1000 + millis))
}

/// A number of a pattern: of fixed width for two letters, otherwise as wide as the numbers behind it allow.
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
