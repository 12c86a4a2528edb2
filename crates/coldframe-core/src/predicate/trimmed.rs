//! Texts of Hive's type `char`, whose trailing blanks do not count: `'ab'` and `'ab  '` are equal.
//!
//! Files store `char` values with blanks up to the declared length, with another number of blanks, or without
//! blanks, and readers return the values as stored. So both sides of a comparison lose their trailing blanks.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray, StringArray, StringViewArray};
use arrow_schema::{DataType, Field};

use super::{ColumnBounds, Predicate};
use crate::types::is_char;

const BLANK: char = ' ';

impl Predicate {
    /// The test of a column. If the column is a `char`, trailing blanks are ignored; see [`Self::trimmed`].
    pub(super) fn of_column(self, field: &Field, literals: bool) -> Self {
        if is_char(field) && is_text(field.data_type()) { self.trimmed(literals) } else { self }
    }

    /// The predicate with tests that ignore the trailing blanks of texts. `literals`: whether trailing blanks
    /// of the literals are removed too.
    pub(super) fn trimmed(self, literals: bool) -> Self {
        let value = |value: ArrayRef| if literals { trim(&value) } else { value };
        match self {
            Self::Compare { column, op, value: with, negated } => {
                Self::Trimmed(Box::new(Self::Compare { column, op, value: value(with), negated }))
            }
            Self::In { column, values, negated } => {
                let values = value((*values).clone()).into();
                Self::Trimmed(Box::new(Self::In { column, values, negated }))
            }
            Self::Like { .. } => Self::Trimmed(Box::new(self)),
            Self::Null { .. } | Self::Trimmed(_) => self,
            Self::And(all) => Self::And(all.into_iter().map(|part| part.trimmed(literals)).collect()),
            Self::Or(any) => Self::Or(any.into_iter().map(|part| part.trimmed(literals)).collect()),
        }
    }
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_text(values),
        other => matches!(other, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    }
}

/// The texts without their trailing blanks. Arrays of other types are returned unchanged.
pub(super) fn trim(texts: &ArrayRef) -> ArrayRef {
    fn each<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> impl Iterator<Item = Option<&'a str>> {
        texts.map(|text| text.map(|text| text.trim_end_matches(BLANK)))
    }
    match texts.data_type() {
        DataType::Utf8 => Arc::new(each(texts.as_string::<i32>().iter()).collect::<StringArray>()),
        DataType::LargeUtf8 => Arc::new(each(texts.as_string::<i64>().iter()).collect::<LargeStringArray>()),
        DataType::Utf8View => Arc::new(each(texts.as_string_view().iter()).collect::<StringViewArray>()),
        DataType::Dictionary(..) => {
            let dictionary = texts.as_any_dictionary();
            dictionary.with_values(trim(dictionary.values()))
        }
        _ => texts.clone(),
    }
}

/// Bounds for texts without their trailing blanks, from the bounds of the texts as stored.
///
/// Trimming never makes a text greater, so the maximum stays. A trimmed text may be less than the minimum, if
/// the minimum has blanks at its end or before a character less than a blank; but it is not less than the
/// part of the minimum before these blanks.
pub(super) fn bounds_of(bounds: ColumnBounds) -> ColumnBounds {
    let min = bounds.min.as_ref().and_then(|min| {
        let text = min.as_string_opt::<i32>().filter(|min| min.len() == 1 && min.is_valid(0))?.value(0);
        Some(Arc::new(StringArray::from(vec![least(text)])) as ArrayRef)
    });
    ColumnBounds { min, ..bounds }
}

fn least(text: &str) -> &str {
    let mut blanks = None;
    for (at, char) in text.char_indices() {
        match char {
            BLANK => blanks = blanks.or(Some(at)),
            low if low < BLANK => return text.get(..blanks.unwrap_or(at)).unwrap_or_default(),
            _ => blanks = None,
        }
    }
    text.get(..blanks.unwrap_or(text.len())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predicate::{Op, Predicate};

    #[test]
    fn no_text_is_less_than_the_bound_of_its_padded_form() {
        let texts = ["", " ", "a", "ab", "a b", "a\t", "a \t", "ab\n ", "\t", "é ", "a  b\u{1} ", "b"];
        for text in texts {
            for blanks in 0..4 {
                let stored = format!("{text}{:blanks$}", "");
                for min in texts.iter().flat_map(|min| (0..4).map(move |n| format!("{min}{:n$}", ""))) {
                    if *min <= *stored {
                        assert!(least(&min) <= stored.trim_end_matches(' '), "{min:?} {stored:?}");
                    }
                }
            }
        }
        assert_eq!([least("new york  "), least("a \tb"), least("ab")], ["new york", "a", "ab"]);
    }

    #[test]
    fn padding_does_not_count() {
        let texts = vec![Some("ab  "), Some("ab"), None, Some("abc "), Some(" ab")];
        let column: ArrayRef = Arc::new(StringArray::from(texts));
        let words: arrow_array::DictionaryArray<arrow_array::types::Int8Type> =
            column.as_string::<i32>().iter().collect();
        let field =
            |kind: &DataType| Arc::new(crate::types::char_field(Field::new("c", kind.clone(), true), 4));
        for column in [column, Arc::new(words) as ArrayRef] {
            let schema = Arc::new(arrow_schema::Schema::new(vec![field(column.data_type())]));
            let batch = arrow_array::RecordBatch::try_new(schema.clone(), vec![column]).unwrap();
            for (text, rows) in [
                ("c = 'ab'", &[0, 1][..]),
                ("c = 'ab   '", &[0, 1]),
                ("c <> 'ab'", &[3, 4]),
                ("not c in ('ab', 'x')", &[3, 4]),
                ("c in ('ab  ', 'abc')", &[0, 1, 3]),
                ("c > 'ab'", &[3]),
                ("c <= 'ab'", &[0, 1, 4]),
                ("c like 'a%b'", &[0, 1]),
                ("c like 'ab %'", &[]),
                ("c like 'ab '", &[0, 1]),
                ("c is null", &[2]),
            ] {
                let condition = crate::predicate::parse::condition(text).unwrap();
                if column_is_dictionary(&batch) && text.contains("like") {
                    continue; // `like` is not tested for dictionaries
                }
                let bound: Predicate = condition.bind(&schema).unwrap();
                let passing = bound.bind(&schema).unwrap().passing(&batch).unwrap();
                assert_eq!(passing.set_indices().collect::<Vec<_>>(), rows, "{text}");
            }
        }
        let value: ArrayRef = Arc::new(StringArray::from(vec!["ab "]));
        let field = field(&DataType::Utf8);
        let plain = Predicate::compare("c", Op::Eq, value).of_column(&field, true);
        assert!(matches!(plain, Predicate::Trimmed(_)), "{plain:?}");
    }

    fn column_is_dictionary(batch: &arrow_array::RecordBatch) -> bool {
        matches!(batch.column(0).data_type(), DataType::Dictionary(..))
    }
}
