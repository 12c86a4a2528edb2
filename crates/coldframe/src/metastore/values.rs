//! The values of partitions, which a metastore has as text.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field};
use coldframe_core::{Error, Predicate, Result, arrow_error};

use crate::dataset::Fragment;
use crate::dataset::partition::{HIVE_NULL, unescaped};
use crate::dataset::table_def::constants;

/// The values in a partition's name, `dt=2014-01-01/region=asia%2Fpacific`.
pub fn of_name(name: &str) -> Vec<String> {
    name.split('/').map(|part| unescaped(part.split_once('=').map_or("", |(_, value)| value))).collect()
}

/// The values of partitions, a row for each. As in Hive, a value that is none of its key's type is null. `table` is for
/// errors.
pub fn columns<V: AsRef<[String]>>(table: &str, partitions: &[V], keys: &[Field]) -> Result<RecordBatch> {
    let is_odd = |values: &&V| values.as_ref().len() != keys.len();
    if let Some(values) = partitions.iter().find(is_odd) {
        let (expected, actual) = (keys.len(), values.as_ref());
        let what = format!("expected {expected} values of a partition, found {}: {actual:?}", actual.len());
        return Err(Error::schema(format!("{table}: {what}")));
    }
    let of = |(at, key): (usize, &Field)| {
        let texts = partitions.iter().map(|values| fitting(values.as_ref().get(at)?, key.data_type()));
        let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
        let options = CastOptions { safe: true, ..CastOptions::default() };
        let array = cast_with_options(&texts, key.data_type(), &options).map_err(arrow_error)?;
        Ok((key.clone(), array))
    };
    constants(keys.iter().enumerate().map(of).collect::<Result<_>>()?, partitions.len())
}

/// The text of a value in a form of its key's type; `None` for null. The result may still not be a value of the type.
fn fitting(text: &str, kind: &DataType) -> Option<String> {
    if text == HIVE_NULL {
        return None;
    }
    if matches!(kind, DataType::Utf8) {
        return Some(text.to_owned());
    }
    let trimmed = text.trim();
    Some(match kind {
        // Hive cuts a fraction.
        kind if kind.is_integer() => match trimmed.split_once('.') {
            Some((whole, fraction)) if fraction.bytes().all(|b| b.is_ascii_digit()) => whole.to_owned(),
            _ => trimmed.to_owned(),
        },
        DataType::Date32 => padded_date(trimmed).unwrap_or_default(),
        _ => trimmed.to_owned(),
    })
}

/// `2014-01-02` for `2014-1-2` and `2014-01-02 03:04:05`.
fn padded_date(text: &str) -> Option<String> {
    let date = text.split([' ', 'T']).next().unwrap_or_default();
    let [year, month, day] = date.splitn(3, '-').collect::<Vec<_>>().try_into().ok()?;
    let is_number = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
    };
    let fits = year.len() == 4 && is_number(year, 4) && is_number(month, 2) && is_number(day, 2);
    fits.then(|| format!("{year}-{month:0>2}-{day:0>2}"))
}

/// The numbers of the partitions that a filter does not rule out. `values`: a row for each partition; the filter is bound to
/// the columns of `table`.
pub fn matching(
    predicate: &Predicate,
    table: &arrow_schema::SchemaRef,
    values: &RecordBatch,
) -> Result<Vec<usize>> {
    let mut fragment = Fragment::new(table.clone());
    let mut matching = Vec::new();
    for at in 0..values.num_rows() {
        let columns = values.schema_ref().fields().iter().zip(values.columns());
        fragment.constants = columns.map(|(key, array)| (key.name().clone(), array.slice(at, 1))).collect();
        if fragment.may_match(Some(predicate))? {
            matching.push(at);
        }
    }
    Ok(matching)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_cast::display::array_value_to_string;
    use arrow_schema::Schema;
    use coldframe_core::predicate::parse;

    use super::*;

    #[test]
    fn names_are_unescaped() {
        assert_eq!(of_name("dt=2014-01-01/region=asia%2Fpacific"), ["2014-01-01", "asia/pacific"]);
        assert_eq!(of_name("p="), [""]);
    }

    #[test]
    fn values_have_the_types_of_their_keys() {
        for (text, kind, expected) in [
            ("07", DataType::Int32, Some("7")),
            ("abc", DataType::Int32, None),
            ("1.5", DataType::Int64, Some("1")),
            ("1.x", DataType::Int64, None),
            ("99999999999", DataType::Int32, None),
            (" 7 ", DataType::Int32, Some("7")),
            ("2014-1-2", DataType::Date32, Some("2014-01-02")),
            ("2014-13-02", DataType::Date32, None),
            ("2014-01-02 03:04:05", DataType::Date32, Some("2014-01-02")),
            ("1/2/2014", DataType::Date32, None),
            ("x y", DataType::Utf8, Some("x y")),
            ("1.50", DataType::Decimal128(5, 2), Some("1.50")),
            ("true", DataType::Boolean, Some("true")),
            (HIVE_NULL, DataType::Int32, None),
            (HIVE_NULL, DataType::Utf8, None),
        ] {
            let keys = [Field::new("k", kind, true)];
            let row = columns("t", &[vec![text.to_owned()]], &keys).unwrap();
            let value = row.column(0).is_valid(0).then(|| array_value_to_string(row.column(0), 0).unwrap());
            assert_eq!(value.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn each_key_has_one_value() {
        let e = columns("db.t", &[vec!["1".to_owned()]], &[]).unwrap_err().to_string();
        assert!(e.contains("db.t: expected 0 values of a partition, found 1"), "{e}");
    }

    #[test]
    fn a_filter_rules_out_partitions() {
        let key = Field::new("p", DataType::Int32, true);
        let table = Arc::new(Schema::new(vec![Field::new("x", DataType::Utf8, true), key.clone()]));
        let texts = ["1", "2", "abc"].map(|text| vec![text.to_owned()]);
        let values = columns("t", &texts, &[key]).unwrap();
        assert_eq!(values.column(0).as_primitive::<arrow_array::types::Int32Type>().value(1), 2);
        for (filter, expected) in [
            ("p > 1", vec![1]),
            ("p is null", vec![2]),
            ("x = 'a'", vec![0, 1, 2]),
            ("p = 1 or x is null", vec![0, 1, 2]),
            ("p = 1 and x is null", vec![0]),
        ] {
            let bound = parse::condition(filter).unwrap().bind(&table).unwrap();
            assert_eq!(matching(&bound, &table, &values).unwrap(), expected, "{filter}");
        }
    }
}
