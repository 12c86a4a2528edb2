//! Compares the conversions to a Hive table's types with those of Hive 2.3, 3.1 and 4.1, for all pairs of types.
//!
//! `pairs.tsv`: reader, type in the file, type of the table, versions, values; `\N` is null, and `!` precedes why Hive
//! refuses. The files and the table are written by `tests/reference/evolution`.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, TimeUnit};
use coldframe_core::types::ddl;
use coldframe_core::types::hive::{Conversion, HiveVersion, Reader, Rules, Typed};
use coldframe_core::{Format as _, Limits, OpenOptions, Result, Scan, ScanReader, SchemaSpec};
use coldframe_encoding::calendar::Civil;
use coldframe_encoding::java_text;
use coldframe_orc::OrcFormat;
use coldframe_testing::fixture::{data, source};

/// A line of the table.
struct Pair {
    rows: bool,
    own: String,
    wanted: String,
    versions: Vec<(HiveVersion, &'static str)>,
    values: Vec<String>,
}

impl Pair {
    fn parse(line: &str) -> Self {
        let mut parts = line.split('\t');
        let mut next = || parts.next().unwrap().to_owned();
        let (reader, own, wanted, versions) = (next(), next(), next(), next());
        let versions = versions.split(',').map(|version| match version {
            "2.3" => (HiveVersion::V2_3, "2.3"),
            "3.1" => (HiveVersion::V3_1, "3.1"),
            _ => (HiveVersion::V4_1, "4.1"),
        });
        let versions = versions.collect();
        Self { rows: reader == "rows", own, wanted, versions, values: parts.map(str::to_owned).collect() }
    }

    fn unit(&self) -> &'static str {
        if self.own.starts_with("timestamp") && !self.own.ends_with("(far)") { "ns" } else { "us" }
    }

    fn refusal(&self) -> Option<&str> {
        self.values.first().filter(|value| value.starts_with('!')).map(String::as_str)
    }
}

/// The values of a column of the file, read as `wanted`.
fn read(pair: &Pair, column: usize, wanted: &str, version: Option<&str>) -> Result<(Field, ArrayRef)> {
    let bytes = std::fs::read(data().join("evolution/types.orc")).unwrap();
    let mut options = OpenOptions::new().option("timestamp_unit", pair.unit());
    if let Some(version) = version {
        options.schema = Some(SchemaSpec::Ddl(format!("c{column} {wanted}")));
        options = options.option("schema_of", "hive").option("hive_version", version);
    }
    let table = OrcFormat.open(&source(bytes), &options)?;
    let scan = Scan { columns: Some(vec![format!("c{column}")]), ..Scan::default() };
    let mut arrays = Vec::new();
    for split in table.splits(u64::MAX)? {
        let mut reader = ScanReader::try_new(table.as_ref(), &scan, &split, Default::default())?;
        while let Some(batch) = reader.next_batch()? {
            arrays.push(batch.column(0).clone());
        }
    }
    assert_eq!(arrays.len(), 1);
    Ok((table.schema().field(column).clone(), arrays.remove(0)))
}

/// The values as Hive prints them.
fn texts(array: &ArrayRef) -> Vec<String> {
    (0..array.len()).map(|row| if array.is_null(row) { "\\N".to_owned() } else { text(array, row) }).collect()
}

fn text(array: &ArrayRef, row: usize) -> String {
    let java = |print: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        print(&mut out);
        String::from_utf8(out).unwrap()
    };
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float32 => java(&|out| java_text::print_float(array.as_primitive::<Float32Type>().value(row), out)),
        DataType::Float64 => java(&|out| java_text::print_double(array.as_primitive::<Float64Type>().value(row), out)),
        DataType::Decimal128(..) => {
            let text = array.as_primitive::<Decimal128Type>().value_as_string(row);
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
        }
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Binary => {
            let bytes = array.as_binary::<i32>().value(row);
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
        }
        DataType::Date32 => date(array.as_primitive::<Date32Type>().value(row).into()),
        DataType::Timestamp(unit, zone) => {
            let count = cast(array, &DataType::Int64).unwrap().as_primitive::<Int64Type>().value(row);
            let unit = if *unit == TimeUnit::Nanosecond { 1_000_000_000 } else { 1_000_000 };
            let (seconds, rest) = (count.div_euclid(unit), count.rem_euclid(unit) * (1_000_000_000 / unit));
            let of_day = seconds.rem_euclid(86_400);
            let clock = format!("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
            let mut text = format!("{} {clock}", date(seconds.div_euclid(86_400)));
            if rest > 0 {
                text.push_str(format!(".{rest:09}").trim_end_matches('0'));
            }
            if zone.is_some() { text + " UTC" } else { text }
        }
        other => panic!("{other}"),
    }
}

fn date(days: i64) -> String {
    let date = Civil::from_days(days);
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn unescaped(text: &str) -> String {
    if text == "\\N" { text.to_owned() } else { text.replace("\\t", "\t").replace("\\\\", "\\") }
}

#[test]
fn all_pairs_of_types_are_converted_as_by_hive() {
    let table = std::fs::read_to_string(data().join("evolution/pairs.tsv")).unwrap();
    let pairs: Vec<Pair> = table.lines().map(Pair::parse).collect();
    let mut columns: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut equal = 0;
    for pair in &pairs {
        let next = columns.len();
        let column = *columns.entry(pair.own.clone()).or_insert(next);
        for (version, name) in &pair.versions {
            let outcome = if pair.rows {
                by_rows(pair, column, *version)
            } else {
                read(pair, column, &pair.wanted, Some(name)).map(|(_, array)| array)
            };
            match difference(pair, *version, &Originals::new(&pairs, pair, *version), outcome) {
                None => equal += 1,
                Some(how) => {
                    let reader = if pair.rows { "rows" } else { "orc" };
                    wrong.push(format!("{reader} {name} {} -> {}: {how}", pair.own, pair.wanted));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), equal + wrong.len(), wrong.join("\n"));
    assert_eq!(equal, 2 * 3 * 21 * columns.len());
}

/// A column read with its own type: by the version in question, and by the last one.
struct Originals<'a> {
    by_version: &'a [String],
    by_last: &'a [String],
}

impl<'a> Originals<'a> {
    fn new(pairs: &'a [Pair], of: &Pair, version: HiveVersion) -> Self {
        let own = of.own.trim_end_matches(" (far)");
        let same = |pair: &&Pair| !pair.rows && pair.own == of.own && pair.wanted == own;
        let by = |version: HiveVersion| {
            let mut some = pairs.iter().filter(same);
            // `char(24)` and the like are not among the declared types.
            some.find(|pair| pair.versions.iter().any(|(known, _)| *known == version)).map_or(&[][..], |pair| &pair.values)
        };
        Self { by_version: by(version), by_last: by(HiveVersion::V4_1) }
    }

    /// Whether this version reads another value even with the column's own type: its calendar or its writer's fault.
    fn is_misread(&self, row: usize) -> bool {
        self.by_version.get(row) != self.by_last.get(row)
    }
}

/// The values converted from the file's own type, as from a partition's.
fn by_rows(pair: &Pair, column: usize, version: HiveVersion) -> Result<ArrayRef> {
    let (own, array) = read(pair, column, "", None)?;
    let parsed = |text: &str| ddl::parse_type(text, &Limits::default()).unwrap();
    let (own_type, wanted) = (parsed(pair.own.trim_end_matches(" (far)")), parsed(&pair.wanted));
    let target = Field::new("c", arrow_type(&wanted, pair.unit()), true);
    let rules = Rules { version, reader: Reader::Rows, hybrid: false };
    let own = Typed { field: &own, declared: Some(&own_type) };
    Conversion::new(own, Typed { field: &target, declared: Some(&wanted) }, rules)?.convert(&array)
}

fn arrow_type(of: &ddl::Type, unit: &str) -> DataType {
    let unit = if unit == "ns" { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
    match of.kind {
        ddl::Kind::Boolean => DataType::Boolean,
        ddl::Kind::TinyInt => DataType::Int8,
        ddl::Kind::SmallInt => DataType::Int16,
        ddl::Kind::Int => DataType::Int32,
        ddl::Kind::BigInt => DataType::Int64,
        ddl::Kind::Float => DataType::Float32,
        ddl::Kind::Double => DataType::Float64,
        ddl::Kind::Decimal { precision, scale } => {
            DataType::Decimal128(precision.try_into().unwrap(), scale.try_into().unwrap())
        }
        ddl::Kind::Binary => DataType::Binary,
        ddl::Kind::Date => DataType::Date32,
        ddl::Kind::Timestamp => DataType::Timestamp(unit, None),
        ddl::Kind::TimestampLocalTz => DataType::Timestamp(unit, Some("UTC".into())),
        _ => DataType::Utf8,
    }
}

/// How our values differ from Hive's.
fn difference(pair: &Pair, version: HiveVersion, own: &Originals<'_>, ours: Result<ArrayRef>) -> Option<String> {
    let is_of_zone = pair.rows && pair.wanted.contains("local");
    match (ours, pair.refusal()) {
        (Err(_), Some(_)) => None,
        // Instants depend on the zone of Hive's session; and no unit of ours holds the years beyond 300,000.
        (Err(_), None) if is_of_zone || pair.values.iter().all(|value| is_far(value) || value == "\\N") => None,
        (Err(e), None) => Some(format!("refused ({e}), Hive has {:?}", pair.values)),
        // Faults of readers, which ours need not have.
        (Ok(_), Some(refusal)) if refusal.contains("NullPointer") || pair.own == pair.wanted => None,
        (Ok(array), Some(refusal)) => {
            Some(format!("{:?}, Hive refuses: {refusal}", texts(&array).iter().take(4).collect::<Vec<_>>()))
        }
        (Ok(array), None) => {
            let ours = texts(&array);
            let unlike = pair.values.iter().zip(&ours).enumerate().filter(|(row, (hive, ours))| {
                unescaped(hive) != **ours && !own.is_misread(*row) && !is_rubbish(pair, version, hive, ours)
            });
            let unlike: Vec<String> = unlike.map(|(_, (hive, ours))| format!("{hive:?} not {ours:?}")).collect();
            (!unlike.is_empty()).then(|| unlike.join(", "))
        }
    }
}

/// Whether a date or a timestamp has a year of more than four digits, which Hive prints wrongly.
fn is_far(text: &str) -> bool {
    text.trim_start_matches(['+', '-']).find('-').is_some_and(|at| at > 4)
}

/// Whether Hive's value is none that a user could mean.
fn is_rubbish(pair: &Pair, version: HiveVersion, hive: &str, ours: &str) -> bool {
    if !(pair.wanted == "date" || pair.wanted.starts_with("timestamp")) {
        return false;
    }
    let is_text = pair.own.contains("char") || pair.own == "string";
    // Numbers beyond the range of 64 bits overflow; the year 0 becomes the year 1.
    let overflows = ours == "\\N" && !is_text;
    let is_year_0 = ours.starts_with("0000-") || (ours.starts_with("-0001") && is_text);
    // Hive 3.1 takes days of the hybrid calendar for proleptic ones.
    let is_hybrid = version == HiveVersion::V3_1 && !pair.rows && is_text && hive < "1583";
    is_far(hive) || overflows || is_year_0 || is_hybrid
}
