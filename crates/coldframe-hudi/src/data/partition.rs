//! The values of the partition columns that a folder's path has.
//!
//! The files have these columns, too, unless the table's writer drops them, and the values of the files are shown.
//! The value of the path is shown only where Hudi's own reader shows it. For a partition of nulls and empty texts, that
//! is null: in Hudi 1.x always, in Hudi 0.x if no logs are merged and all commits are shown. In the same views, Hudi 0.x
//! shows a date in the form of the path.

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

/// The facts that decide whether partition values come from the files or from the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reads {
    /// Whose rules.
    pub reading: Reading,
    /// Whether it is a table of logs, and they are read.
    pub merges: bool,
    /// Whether only the rows of some commits are shown.
    pub incremental: bool,
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
    let fields = properties.list("hoodie.table.partition.fields");
    let names: Vec<&str> = fields.iter().map(|f| f.split(':').next().unwrap_or(f)).collect();
    let dropped = properties.is("hoodie.datasource.write.drop.partition.columns", false) || reads.required;
    let generator = properties.first(&["hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type"]);
    let is_dated = generator.is_some_and(|name| name.to_ascii_uppercase().contains("TIMESTAMP"));
    let version = properties.number("hoodie.table.version").unwrap_or(0);
    let is_old = reads.reading == Reading::Old;
    let by_path = |text: &str| {
        let is_null = text == NULL || (text == OLD_NULL && version < 5 && is_old);
        let by_old = (is_null || is_dated) && !reads.merges && !reads.incremental;
        dropped || if is_old { by_old } else { is_null }
    };
    let values = texts(&names, partition).into_iter().filter(|(_, text)| by_path(text));
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
        .collect()
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
            let reads = Reads { reading, merges, incremental, required: false };
            !constants(&properties, &schema, "p=__HIVE_DEFAULT_PARTITION__", reads).is_empty()
        };
        for (merges, incremental) in [(false, false), (true, false), (false, true), (true, true)] {
            assert!(is_null(Reading::New, merges, incremental), "{merges} {incremental}");
            assert_eq!(is_null(Reading::Old, merges, incremental), !merges && !incremental);
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
