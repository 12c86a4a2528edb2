//! What Hive's readers make of the values of a file's column when its table declares another type.
//!
//! ```text
//! file           table            ORC                                       a partition's SerDe
//! bigint         int              null where it does not fit                 wraps
//! string         int              null where it is no number                 the same, blanks and fractions apart
//! double         string           "1.5", as Java prints it                   the same
//! string         varchar(3)       cut                                        cut
//! timestamp      bigint           seconds since 1970                         the same
//! bigint         date             refused                                    refused
//! struct         struct           fields by name, in any case; missing ones are null
//! ```
//!
//! Two readers convert. ORC's reader takes the table's types ([`Reader::Orc`]: `SchemaEvolution` and
//! `ConvertTreeReaderFactory` of orc-core). Other formats are read with the types of their partition, and converted row by
//! row ([`Reader::Rows`]: `ObjectInspectorConverters`). Both differ between versions of Hive. What Hive refuses is an
//! error. `tests/data/evolution/pairs.tsv` has what each version returns for all pairs of types.
//!
//! | module | holds |
//! |---|---|
//! | this | the plan of a column's conversion, nested types |
//! | `kind` | the Hive type of an Arrow field |
//! | `primitive` | which conversion applies to which pair of types |
//! | `numbers`, `texts`, `times` | conversions to numbers, to text, to dates and timestamps |
//! | `number` | decimals as Hive computes with them |
//! | `value`, `version` | a value that is converted; the versions of Hive |

mod kind;
mod number;
mod numbers;
mod primitive;
#[cfg(test)]
mod tests;
mod texts;
mod times;
mod value;
mod version;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, make_array, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, FieldRef, Fields};

pub use number::Number;
pub use version::HiveVersion;

use self::kind::kind_of;
use self::primitive::Primitive;
use super::ddl::{Kind, Type};
use crate::arrays::window;
use crate::{Error, Result, arrow_error};

/// The part of Hive that converts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reader {
    /// The reader of ORC files.
    #[default]
    Orc,
    /// The converter of rows, for files that are read with the types of their partition.
    Rows,
}

/// Whose conversions apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The version of Hive.
    pub version: HiveVersion,
    /// The part of Hive.
    pub reader: Reader,
    /// Whether days before 1582-10-15 are Julian in the file.
    pub hybrid: bool,
}

impl Rules {
    /// ORC's reader before Hive 4, which converts by way of Java's texts and `java.sql`.
    fn is_old_orc(self) -> bool {
        self.reader == Reader::Orc && self.version < HiveVersion::V4_1
    }

    /// The converter of rows.
    fn is_of_rows(self) -> bool {
        self.reader == Reader::Rows
    }

    /// Hive 4, in either part.
    fn is_hive4(self) -> bool {
        self.version >= HiveVersion::V4_1
    }
}

/// How the values of one column are converted.
#[derive(Clone, Debug)]
pub struct Conversion {
    step: Step,
    target: DataType,
}

/// How the values of a type are converted.
#[derive(Clone, Debug)]
enum Step {
    /// The values stay.
    Same,
    /// A conversion between primitive types.
    Primitive(Box<Primitive>),
    List(Box<Step>),
    /// Keys and values.
    Map(Box<(Step, Step)>),
    /// For each field of the table, the position of the file's field; `None` if the file lacks it.
    Struct(Vec<Option<(usize, Step)>>),
}

impl Conversion {
    /// Plans the conversion of a file's column to a table's column. An error if Hive refuses it.
    pub fn new(own: Typed<'_>, table: Typed<'_>, rules: Rules) -> Result<Self> {
        let step = step((own.field, &own.kind()?), (table.field, &table.kind()?), rules)?;
        Ok(Self { step, target: table.field.data_type().clone() })
    }

    /// Whether all values stay what they are.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        matches!(self.step, Step::Same)
    }

    /// Whether a filter on the table's column selects the same rows if the file evaluates it on its own column: the
    /// conversion changes no value and keeps their order.
    #[must_use]
    pub fn keeps_filters(&self) -> bool {
        match &self.step {
            Step::Same => true,
            Step::Primitive(primitive) => primitive.keeps_filters(),
            Step::List(_) | Step::Map(_) | Step::Struct(_) => false,
        }
    }

    /// The converted values. Layouts of strings and units of times that Hive does not distinguish may still differ from
    /// the table's.
    pub fn convert(&self, array: &ArrayRef) -> Result<ArrayRef> {
        apply(&self.step, array, &self.target)
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Typed<'a> {
    /// Its name and Arrow type.
    pub field: &'a Field,
    /// Its Hive type, if one is known beyond what the Arrow type implies: the length of `varchar(3)`.
    pub declared: Option<&'a Type>,
}

impl Typed<'_> {
    fn kind(&self) -> Result<Kind> {
        self.declared.map_or_else(|| kind_of(self.field), |declared| Ok(declared.kind.clone()))
    }
}

/// A field and its Hive type.
type Pair<'a> = (&'a Field, &'a Kind);

fn step(own: Pair<'_>, table: Pair<'_>, rules: Rules) -> Result<Step> {
    let refused = || {
        let reader = match rules.reader {
            Reader::Orc => "Hive's reader of ORC",
            Reader::Rows => "Hive",
        };
        Error::schema(format!("{reader} does not convert {} to {}", own.1, table.1))
    };
    match (own, table) {
        ((_, Kind::Array(_)), (_, Kind::Array(_))) | ((_, Kind::Map(..)), (_, Kind::Map(..))) => {
            elements(own, table, rules)
        }
        ((field, Kind::Struct(fields)), (target, Kind::Struct(wanted))) => {
            structure((field, fields), (target, wanted), rules)
        }
        ((_, own), (_, wanted)) if kind::keeps_values(own, wanted) => Ok(Step::Same),
        ((_, own), (_, wanted)) => match Primitive::new(own, wanted, rules) {
            Some(primitive) => Ok(Step::Primitive(Box::new(primitive))),
            None => Err(refused()),
        },
    }
}

/// Lists and maps.
fn elements(own: Pair<'_>, table: Pair<'_>, rules: Rules) -> Result<Step> {
    let children = |field: &Field| match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) => vec![item.clone()],
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => pair.iter().cloned().collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let kinds = |kind: &Kind| match kind {
        Kind::Array(item) => vec![item.kind.clone()],
        Kind::Map(key, value) => vec![key.kind.clone(), value.kind.clone()],
        _ => Vec::new(),
    };
    let pairs = children(own.0).into_iter().zip(kinds(own.1));
    let wanted = children(table.0).into_iter().zip(kinds(table.1));
    let steps = pairs
        .zip(wanted)
        .map(|((own, own_kind), (table, kind))| step((&own, &own_kind), (&table, &kind), rules));
    let steps = steps.collect::<Result<Vec<_>>>()?;
    if steps.iter().all(|step| matches!(step, Step::Same)) {
        return Ok(Step::Same);
    }
    let mut steps = steps.into_iter();
    Ok(match (steps.next(), steps.next()) {
        (Some(key), Some(value)) => Step::Map(Box::new((key, value))),
        (Some(item), None) => Step::List(Box::new(item)),
        (None, _) => Step::Same,
    })
}

type Named = (String, Type);

/// Fields of structs match by name in any case. Of rows, they match by position.
fn structure(own: (&Field, &[Named]), table: (&Field, &[Named]), rules: Rules) -> Result<Step> {
    let (DataType::Struct(fields), DataType::Struct(targets)) = (own.0.data_type(), table.0.data_type())
    else {
        return Ok(Step::Same);
    };
    let mut steps = Vec::with_capacity(targets.len());
    for (number, target) in targets.iter().enumerate() {
        let named = table.1.iter().find(|(name, _)| name.eq_ignore_ascii_case(target.name()));
        let kind = match named {
            Some((_, kind)) => kind.kind.clone(),
            None => kind_of(target)?,
        };
        let place = match rules.reader {
            Reader::Orc => fields.iter().rposition(|own| own.name().eq_ignore_ascii_case(target.name())),
            Reader::Rows => Some(number),
        };
        let own = place.and_then(|place| Some((place, fields.get(place)?, own.1.get(place)?)));
        let step = own.map(|(place, field, (_, own_kind))| {
            let inner = step((field, &own_kind.kind), (target, &kind), rules);
            inner.map(|step| (place, step)).map_err(|e| e.within(format!("field {}", target.name())))
        });
        steps.push(step.transpose()?);
    }
    let is_same = |(number, step): (usize, &Option<(usize, Step)>)| matches!(step, Some((place, Step::Same)) if *place == number);
    if fields.len() == steps.len() && steps.iter().enumerate().all(is_same) {
        return Ok(Step::Same);
    }
    Ok(Step::Struct(steps))
}

fn apply(step: &Step, array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    match (step, target) {
        (Step::Primitive(primitive), _) => primitive.convert(array, target),
        (Step::List(item), DataType::List(field)) => list(item, array, field),
        (Step::Map(pair), DataType::Map(entries, sorted)) => map(pair, array, entries, *sorted),
        (Step::Struct(steps), DataType::Struct(fields)) => fields_of(steps, array, fields),
        _ => Ok(array.clone()),
    }
}

fn list(item: &Step, array: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    let lists = array.as_list_opt::<i32>().ok_or_else(|| unlike("a list", array))?;
    let (start, length, offsets) = window(lists.offsets());
    let values = apply(item, &lists.values().slice(start, length), field.data_type())?;
    let field = of_type(field, &values);
    Ok(Arc::new(ListArray::try_new(field, offsets, values, lists.nulls().cloned()).map_err(arrow_error)?))
}

fn map(pair: &(Step, Step), array: &ArrayRef, entries: &FieldRef, sorted: bool) -> Result<ArrayRef> {
    let maps = array.as_map_opt().ok_or_else(|| unlike("a map", array))?;
    let DataType::Struct(fields) = entries.data_type() else { return Ok(array.clone()) };
    let [key, value] = fields.as_ref() else { return Ok(array.clone()) };
    let (start, length, offsets) = window(maps.offsets());
    let keys = apply(&pair.0, &maps.keys().slice(start, length), key.data_type())?;
    let values = apply(&pair.1, &maps.values().slice(start, length), value.data_type())?;
    if keys.null_count() > 0 {
        return Err(Error::schema(format!("a key of a map does not fit {}", key.data_type())));
    }
    let fields = Fields::from(vec![of_type(key, &keys), of_type(value, &values)]);
    let pairs = StructArray::try_new_with_length(fields.clone(), vec![keys, values], None, length);
    let entries = Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(fields)));
    let made =
        MapArray::try_new(entries, offsets, pairs.map_err(arrow_error)?, maps.nulls().cloned(), sorted);
    Ok(Arc::new(made.map_err(arrow_error)?))
}

fn fields_of(steps: &[Option<(usize, Step)>], array: &ArrayRef, targets: &Fields) -> Result<ArrayRef> {
    let structs = array.as_struct_opt().ok_or_else(|| unlike("a struct", array))?;
    let mut children = Vec::with_capacity(steps.len());
    for (step, target) in steps.iter().zip(targets) {
        let own = step.as_ref().and_then(|(place, step)| Some((structs.columns().get(*place)?, step)));
        children.push(match own {
            Some((own, step)) => apply(step, &within(own, structs.nulls())?, target.data_type())?,
            None => new_null_array(target.data_type(), structs.len()),
        });
    }
    let fields: Fields = targets.iter().zip(&children).map(|(field, child)| of_type(field, child)).collect();
    let made = StructArray::try_new_with_length(fields, children, structs.nulls().cloned(), structs.len());
    Ok(Arc::new(made.map_err(arrow_error)?))
}

/// A field's values, null where the struct is null: what lies under a null is no value.
fn within(child: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
    // Unions and arrays of the type null have no validity of their own.
    let has_validity = !matches!(child.data_type(), DataType::Union(..) | DataType::Null);
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0 && has_validity) else {
        return Ok(child.clone());
    };
    let both = NullBuffer::union(Some(nulls), child.nulls());
    let data = child.to_data().into_builder().nulls(both).build().map_err(arrow_error)?;
    Ok(make_array(data))
}

fn of_type(field: &FieldRef, values: &ArrayRef) -> FieldRef {
    Arc::new(
        field
            .as_ref()
            .clone()
            .with_data_type(values.data_type().clone())
            .with_nullable(field.is_nullable() || values.null_count() > 0),
    )
}

fn unlike(what: &str, array: &ArrayRef) -> Error {
    Error::schema(format!("expected {what}, found {}", array.data_type()))
}
