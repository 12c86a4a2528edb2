//! The values of the partition columns that a folder's path has.
//!
//! The files have these columns, too, unless the table's writer drops them, and the values of the files are shown.
//! The value of the path is shown only where Hudi's own reader shows it. For a partition of nulls and empty texts, that
//! is null: in Hudi 1.x always, in Hudi 0.x if no logs are merged and all commits are shown. In the same views, Hudi 0.x
//! shows a date in the form of the path.
//!
//! A table of Hudi 1.x that is merged by a payload class (merge mode `CUSTOM`) loses the dates that its folders shorten:
//! in each file group with logs, Hudi shows null for them. So does this reader, with a warning.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray, new_null_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::SchemaRef;

use crate::data::properties::Properties;
use crate::data::rules::Reading;

/// The folder of rows without a value, since Hudi 0.12.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// The folder of rows without a value before that, whose name its readers show.
const OLD_NULL: &str = "default";

/// The property with the partition fields.
const FIELDS: &str = "hoodie.table.partition.fields";

/// The facts that decide whether partition values come from the files or from the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reads {
    /// Whose rules.
    pub reading: Reading,
    /// Whether it is a table of logs, and they are read.
    pub merges: bool,
    /// Whether only the rows of some commits are shown.
    pub incremental: bool,
    /// Whether the file group has logs.
    pub has_logs: bool,
    /// Whether the files lack the partition columns.
    pub required: bool,
}

/// The partition columns that have the path's value in a partition's folder.
pub(crate) fn constants(
    properties: &Properties,
    schema: &SchemaRef,
    partition: &str,
    reads: Reads,
) -> Vec<(String, ArrayRef)> {
    let fields = properties.list(FIELDS);
    let names: Vec<&str> = fields.iter().map(|field| name(field)).collect();
    let dropped = properties.is("hoodie.datasource.write.drop.partition.columns", false) || reads.required;
    let is_dated = has_dates(properties);
    let version = properties.number("hoodie.table.version").unwrap_or(0);
    let is_old = reads.reading == Reading::Old;
    let by_path = |text: &str| {
        let is_null = text == NULL || (text == OLD_NULL && version < 5 && is_old);
        let by_old = (is_null || is_dated) && !reads.merges && !reads.incremental;
        dropped || if is_old { by_old } else { is_null }
    };
    let lost = match reads.has_logs && reads.merges {
        true => lost_by_merging(properties, reads.reading),
        false => Vec::new(),
    };
    let null = |name: &String| {
        let (_, field) = schema.column_with_name(name)?;
        Some((name.clone(), new_null_array(field.data_type(), 1)))
    };
    let values = texts(&names, partition).into_iter();
    let values = values.filter(|(name, text)| by_path(text) && !lost.iter().any(|lost| lost == name));
    values
        .filter_map(|(name, text)| {
            let (_, field) = schema.column_with_name(name)?;
            let text = decoded(properties, &text);
            if text == NULL {
                return Some((name.to_owned(), new_null_array(field.data_type(), 1)));
            }
            let array: ArrayRef = Arc::new(StringArray::from(vec![text]));
            let options = CastOptions { safe: false, ..CastOptions::default() };
            let value = cast_with_options(&array, field.data_type(), &options).ok()?;
            Some((name.to_owned(), value))
        })
        .chain(lost.iter().filter_map(null))
        .collect()
}

/// The partition columns for which Hudi shows null in file groups with logs, though the files have their values.
pub(crate) fn lost_by_merging(properties: &Properties, reading: Reading) -> Vec<String> {
    if reading == Reading::Old || properties.get("hoodie.record.merge.mode") != Some("CUSTOM") {
        return Vec::new();
    }
    let all = has_dates(properties);
    let fields = properties.list(FIELDS).into_iter();
    let dated = fields.filter(|field| all || field.to_ascii_lowercase().ends_with(":timestamp"));
    dated.map(|field| name(&field).to_owned()).collect()
}

/// Whether the table's key generator shortens dates to the names of folders.
fn has_dates(properties: &Properties) -> bool {
    let generator = properties.first(&["hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type"]);
    generator.is_some_and(|name| name.to_ascii_uppercase().contains("TIMESTAMP"))
}

/// The column in a partition field, which may state a kind of key generator behind it: `day:timestamp`.
fn name(field: &str) -> &str {
    field.split(':').next().unwrap_or(field)
}

/// The text of each partition column. A single column may have a value of several folders.
fn texts<'a>(names: &[&'a str], partition: &str) -> Vec<(&'a str, String)> {
    let of = |name: &str, text: &str| {
        let own = text.split_once('=').filter(|(own, _)| *own == name);
        own.map_or(text, |(_, value)| value).to_owned()
    };
    let folders: Vec<&str> = partition.split('/').collect();
    match names {
        [] => Vec::new(),
        [only] => vec![(*only, of(only, partition))],
        several if several.len() == folders.len() => {
            several.iter().zip(folders).map(|(name, folder)| (*name, of(name, folder))).collect()
        }
        _ => Vec::new(),
    }
}

/// The value in a folder's name. The properties of Hudi 0.9 do not state the encoding of names.
fn decoded(properties: &Properties, text: &str) -> String {
    let key = "hoodie.datasource.write.partitionpath.urlencode";
    let is_encoded = properties.is(key, properties.get(key).is_none());
    if !is_encoded || !text.contains('%') {
        return text.to_owned();
    }
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let byte = digits.and_then(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::data::properties::parse;

    #[test]
    fn null_and_empty_are_null_by_the_path() {
        let properties = parse("hoodie.table.partition.fields=p\nhoodie.table.version=6\n");
        let schema = Arc::new(Schema::new(vec![Field::new("p", DataType::Utf8, true)]));
        let is_null = |reading, merges, incremental| {
            let reads = Reads { reading, merges, incremental, has_logs: false, required: false };
            !constants(&properties, &schema, "p=__HIVE_DEFAULT_PARTITION__", reads).is_empty()
        };
        for (merges, incremental) in [(false, false), (true, false), (false, true), (true, true)] {
            assert!(is_null(Reading::New, merges, incremental), "{merges} {incremental}");
            assert_eq!(is_null(Reading::Old, merges, incremental), !merges && !incremental);
        }
    }

    #[test]
    fn dates_are_lost_where_a_payload_class_merges_logs() {
        let schema = Arc::new(Schema::new(vec![Field::new("day", DataType::Utf8, true)]));
        let shown = |lines: &str, has_logs, merges| {
            let properties = parse(lines);
            let reads =
                Reads { reading: Reading::New, merges, incremental: false, has_logs, required: false };
            let all = constants(&properties, &schema, "2020/01", reads);
            all.into_iter().map(|(name, value)| (name, value.null_count())).collect::<Vec<_>>()
        };
        let null = [("day".to_owned(), 1)];
        let by_type = "hoodie.table.keygenerator.type=TIMESTAMP\nhoodie.table.partition.fields=day\n";
        let by_field = "hoodie.table.keygenerator.type=CUSTOM\nhoodie.table.partition.fields=day:timestamp\n";
        for lines in [by_type, by_field] {
            let custom = format!("{lines}hoodie.record.merge.mode=CUSTOM\n");
            assert_eq!(shown(&custom, true, true), null);
            assert!(shown(&custom, false, true).is_empty() && shown(&custom, true, false).is_empty());
            assert!(shown(lines, true, true).is_empty());
        }
    }

    #[test]
    fn values_are_taken_from_folders() {
        let text = |names: &[&'static str], path| texts(names, path);
        assert_eq!(text(&["d"], "2020/01"), [("d", "2020/01".to_owned())]);
        assert_eq!(text(&["d"], "d=eu"), [("d", "eu".to_owned())]);
        assert_eq!(text(&["d"], "x=eu"), [("d", "x=eu".to_owned())]);
        assert_eq!(text(&["a", "b"], "a=1/2"), [("a", "1".to_owned()), ("b", "2".to_owned())]);
        assert!(text(&["a", "b"], "1/2/3").is_empty() && text(&[], "").is_empty());
        assert_eq!(decoded(&Properties::default(), "a%3Ab%2"), "a:b%2");
    }
}
