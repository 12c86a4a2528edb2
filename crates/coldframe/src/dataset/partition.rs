//! Partition values: the `key=value` folders between a table's root and its files.
//!
//! ```text
//! dt=2014-01-01/city=a%20b/000000_0            dt: date32, city: string
//! dt=2014-01-02/city=__HIVE_DEFAULT_PARTITION__/000000_0       a null
//! ```
//!
//! Names and values are escaped as in URLs. A column is `int64` if all its values are integers, `date32` if all are
//! dates, else text; a schema may declare other types.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat;
use coldframe_core::types::name;
use coldframe_core::{Error, Result, arrow_error};
use coldframe_store::from_text;

use super::file_entry::{FileEntry, Pair};
use super::storage::shown_path;
use super::table_def::constants;

/// The name that Hive and Spark give to the partition whose value is null.
pub const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The pairs of the folders in a path. The name after the last slash is not a folder.
pub fn pairs_of(path: &str) -> Vec<Pair> {
    let Some((folders, _)) = path.rsplit_once('/') else { return Vec::new() };
    let pairs = folders.split('/').filter_map(|folder| folder.split_once('='));
    pairs.filter(|(key, _)| !key.is_empty()).map(|(key, value)| (unescaped(key), unescaped(value))).collect()
}

/// Unescapes text: `%41` is `A`.
pub(crate) fn unescaped(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut left = text.as_bytes();
    while let Some((byte, after)) = left.split_first() {
        let escaped = if *byte == b'%' { after.get(..2).and_then(hex) } else { None };
        bytes.push(escaped.unwrap_or(*byte));
        left = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Escapes text as Hive does for the names of folders: `/` is `%2F`.
pub fn escaped(text: &str) -> String {
    let is_special = |c: char| c.is_ascii_control() || "\"#%'*/:=?\\{[]^".contains(c);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_special(c) {
            escaped.push_str(&format!("%{:02X}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// The folders of a partition: `dt=2014-01-01/region=asia%2Fpacific`.
pub fn folder_of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let folders = pairs.into_iter().map(|(key, value)| format!("{}={}", escaped(key), escaped(value)));
    folders.collect::<Vec<_>>().join("/")
}

fn hex(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

/// The partition columns of a table's files: with the types in `given`, or else with types inferred from all
/// values.
pub fn fields(entries: &[FileEntry], given: Option<&Schema>) -> Result<Vec<Field>> {
    let keys = |entry: &FileEntry| entry.pairs.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    let Some(first) = entries.first() else { return Ok(Vec::new()) };
    let names = keys(first);
    if let Some(other) = entries.iter().find(|entry| keys(entry) != names) {
        let shown = |entry: &FileEntry| format!("{:?} ({})", keys(entry), shown_path(&entry.path));
        let both = format!("{}; {}", shown(first), shown(other));
        return Err(Error::schema(format!("expected files with the same partition columns, found {both}")));
    }
    let of = |(at, name): (usize, &String)| {
        if let Some(field) = given.and_then(|schema| schema.field_with_name(name).ok()) {
            return field.clone();
        }
        let values = entries.iter().filter_map(|entry| entry.pairs.get(at)).map(|(_, value)| value.as_str());
        let values: BTreeSet<&str> = values.filter(|value| *value != HIVE_NULL).collect();
        Field::new(name, inferred(&values), true)
    };
    Ok(names.iter().enumerate().map(of).collect())
}

/// The type for a column whose values are these texts.
fn inferred(values: &BTreeSet<&str>) -> DataType {
    if values.is_empty() {
        DataType::Utf8
    } else if values.iter().all(|value| is_whole_number(value)) {
        DataType::Int64
    } else if values.iter().all(|value| is_date(value)) {
        DataType::Date32
    } else {
        DataType::Utf8
    }
}

fn is_whole_number(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    (1..=18).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
}

fn is_date(value: &str) -> bool {
    let shape = |(at, b): (usize, u8)| if matches!(at, 4 | 7) { b == b'-' } else { b.is_ascii_digit() };
    let fits = value.len() == 10 && value.bytes().enumerate().all(shape) && !value.starts_with("0000");
    fits && parsed(value, &DataType::Date32).is_ok()
}

/// The values of the files' partitions: a row for each file, in the columns' types.
pub fn columns(entries: &[FileEntry], fields: &[Field]) -> Result<RecordBatch> {
    let of = |(at, field): (usize, &Field)| {
        let texts = entries.iter().map(|entry| entry.pairs.get(at).map(|(_, text)| text.as_str()));
        let plain = |text: Option<&str>| text.is_none_or(|text| from_text(text).to_str() == Some(text));
        let is_plain = texts.clone().all(plain);
        let texts: StringArray = texts.map(|text| text.filter(|text| *text != HIVE_NULL)).collect();
        let options = CastOptions { safe: false, ..CastOptions::default() };
        match cast_with_options(&texts, field.data_type(), &options) {
            Ok(array) if is_plain => Ok((field.clone(), array)),
            // The error names the file.
            _ => each(entries, at, field),
        }
    };
    let columns = fields.iter().enumerate().map(of).collect::<Result<Vec<_>>>()?;
    constants(columns, entries.len())
}

fn each(entries: &[FileEntry], at: usize, field: &Field) -> Result<(Field, ArrayRef)> {
    let typed = |entry: &FileEntry| match entry.pairs.get(at) {
        Some((_, text)) => typed(text, field, &entry.path),
        None => Ok(new_null_array(field.data_type(), 1)),
    };
    let all = entries.iter().map(typed).collect::<Result<Vec<_>>>()?;
    let all: Vec<&dyn Array> = all.iter().map(AsRef::as_ref).collect();
    Ok((field.clone(), concat(&all).map_err(arrow_error)?))
}

fn typed(text: &str, field: &Field, path: &str) -> Result<ArrayRef> {
    let (key, kind) = (field.name(), field.data_type());
    if text == HIVE_NULL {
        return Ok(new_null_array(kind, 1));
    }
    let raw = from_text(text);
    if raw.to_str().is_none() {
        let shown = raw.as_encoded_bytes().escape_ascii();
        let what = format!("partition value {key}=\"{shown}\" is not UTF-8");
        return Err(Error::schema(what).in_file(shown_path(path)));
    }
    parsed(text, kind).map_err(|reason| {
        let what = format!("partition value {key}={text} is not a {}: {reason}", name(kind));
        Error::schema(what).in_file(shown_path(path))
    })
}

fn parsed(text: &str, kind: &DataType) -> Result<ArrayRef, arrow_schema::ArrowError> {
    let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
    cast_with_options(&text, kind, &CastOptions { safe: false, ..CastOptions::default() })
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Date32Type, Int64Type};

    use super::*;

    fn entry(pairs: &[(&str, &str)]) -> FileEntry {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        FileEntry { path: "t/x".to_owned(), pairs, ..FileEntry::default() }
    }

    fn kind_of(values: &[&str]) -> DataType {
        let all: Vec<FileEntry> = values.iter().map(|value| entry(&[("p", value)])).collect();
        fields(&all, None).unwrap()[0].data_type().clone()
    }

    #[test]
    fn keys_and_values_are_unescaped() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(pairs_of("dt=2014-01-01/city=a%20b/f"), [pair("dt", "2014-01-01"), pair("city", "a b")]);
        assert_eq!(pairs_of("a/x%3D=b%3D=c/f"), [pair("x=", "b==c")]);
        assert_eq!(pairs_of("p=%C3%A9%zz%2/f"), [pair("p", "\u{e9}%zz%2")]);
        assert!(pairs_of("=v/f=1").is_empty());
    }

    #[test]
    fn names_and_values_are_escaped_as_hive_does() {
        assert_eq!(
            folder_of([("dt", "2014-01-01"), ("a=b", "asia/pacific")]),
            "dt=2014-01-01/a%3Db=asia%2Fpacific"
        );
        assert_eq!(
            escaped("\u{1}\u{7f} \u{e9}~}<>\"#%'*/:=?\\{[]^"),
            "%01%7F \u{e9}~}<>%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%5B%5D%5E"
        );
        assert_eq!(
            pairs_of(&format!("{}/f", folder_of([("a b", "c%")]))),
            [("a b".to_owned(), "c%".to_owned())]
        );
    }

    #[test]
    fn types_are_inferred_from_all_values() {
        assert_eq!(kind_of(&["1", "02", "-3"]), DataType::Int64);
        assert_eq!(kind_of(&["1", HIVE_NULL]), DataType::Int64);
        assert_eq!(kind_of(&["1", "x"]), DataType::Utf8);
        assert_eq!(kind_of(&["1234567890123456789"]), DataType::Utf8);
        assert_eq!(kind_of(&["2014-01-01", "2016-02-29"]), DataType::Date32);
        assert_eq!(kind_of(&["2014-13-01"]), DataType::Utf8);
        assert_eq!(kind_of(&["2014-01-01", "1"]), DataType::Utf8);
        assert_eq!(kind_of(&[HIVE_NULL]), DataType::Utf8);
    }

    #[test]
    fn values_have_the_columns_types() {
        let file = entry(&[("n", "-07"), ("d", "1970-01-03"), ("s", HIVE_NULL)]);
        let fields = fields(std::slice::from_ref(&file), None).unwrap();
        let all = columns(std::slice::from_ref(&file), &fields).unwrap();
        assert_eq!(all.column(0).as_primitive::<Int64Type>().value(0), -7);
        assert_eq!(all.column(1).as_primitive::<Date32Type>().value(0), 2);
        assert!(all.column(2).is_null(0));
        let wrong = [Field::new("n", DataType::Date32, true)];
        let e = columns(std::slice::from_ref(&file), &wrong).unwrap_err().to_string();
        assert!(e.starts_with("t/x: partition value n=-07 is not a date32[day]: "), "{e}");
    }

    #[test]
    fn files_have_the_same_partition_columns() {
        let e = fields(&[entry(&[("a", "1")]), entry(&[])], None).unwrap_err();
        assert!(e.to_string().contains("expected files with the same partition columns"), "{e}");
        let given = Schema::new(vec![Field::new("a", DataType::Int32, true)]);
        assert_eq!(fields(&[entry(&[("a", "1")])], Some(&given)).unwrap()[0].data_type(), &DataType::Int32);
    }
}
