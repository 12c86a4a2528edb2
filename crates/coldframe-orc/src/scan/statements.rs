//! Compares decoded values with the statistics that the file states about them, a whole array at a time.
//!
//! ```text
//! array of a row group  --> values, sum, bytes, .. (Facts)    against    numberOfValues, sum, .. (ColumnStatistics)
//! ```
//!
//! [`Quirks`] decides which statistics of a writer are trusted; for minima and maxima, [`bounds`] does.
//! Minima and maxima of text are compared only where a row group is read by its position: an index that states
//! wrong positions in the bytes of text contradicts nothing else.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, ByteViewType, Date32Type, Decimal128Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericByteViewArray, PrimitiveArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use coldframe_core::{ColumnBounds, Error, OnError, Result};

use super::column::{self, Malformed, MalformedValue};
use super::job::{Groups, ScanShared};
use super::lanes::Lanes;
use super::text_bounds::TextBounds;
use crate::layout::proto::ColumnStatistics;
use crate::layout::quirks::Quirks;
use crate::layout::stripe::{StreamKind, StripeLayout};
use crate::layout::types::{Column, Kind};
use crate::prune::bounds::{bounds, impossible, parse_decimal};
use crate::prune::filter::stored;
use crate::schema;

/// Relative difference of two sums of the same floating point numbers, added in different orders.
const ROUNDING: f64 = 1e-9;

/// Counts and sums of the decoded values of a column in a row group or stripe.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    values: u64,
    /// The sum of integers, which wraps.
    sum: i64,
    /// The sum of unscaled decimals, which wraps.
    digits: i128,
    /// The sums of floating point numbers and of their absolute values.
    floats: (f64, f64),
    bytes: u64,
    trues: u64,
    /// Whether a value is outside the stated minimum and maximum.
    outside: bool,
    /// Values that the array lacks, since its type cannot hold them.
    malformed: u64,
    /// Whether such values lie inside it, which may make it null.
    holds_malformed: bool,
}

/// The trusted statistics of a column.
#[derive(Default)]
struct Stated {
    column: usize,
    statistics: Option<ColumnStatistics>,
    /// Minimum and maximum of integers, days and timestamps.
    whole: Option<(i64, i64)>,
    /// Minimum and maximum of decimals.
    digits: Option<(i128, i128)>,
    /// Minimum and maximum of floating point numbers.
    floats: Option<(f64, f64)>,
    /// Minimum and maximum of text.
    texts: Option<TextBounds>,
    facts: Facts,
}

/// Counts and compares the values of one column of the scan, with its nested columns, in one row group or
/// stripe.
pub(crate) struct Tally {
    columns: Vec<Stated>,
}

impl Tally {
    /// For a row group, or for the whole stripe; `None` if it has no trusted statistics.
    pub(crate) fn new(
        scan: &ScanShared,
        groups: &Groups,
        place: usize,
        group: Option<usize>,
    ) -> Option<Self> {
        let shape = &scan.shape;
        if !shape.quirks.statements || shape.recovered.is_some() || !shape.options.compares_statistics {
            return None;
        }
        let (id, field) = scan.columns.get(place)?;
        let mut columns = Vec::new();
        let of = |id: usize| match group {
            Some(group) => groups.statistics(id, group),
            None => groups.of_stripe(id),
        };
        // Where a row group is read by its position, nothing but the bounds of text may show that it is wrong.
        let texts = group.is_some() && scan.on_error == OnError::Raise;
        add_stated(scan, *id, field.data_type(), &of, texts, &mut columns)?;
        columns.iter().any(|stated| stated.statistics.is_some()).then_some(Self { columns })
    }

    /// Counts rows, with the values in them that the array's types cannot hold.
    pub(crate) fn add(&mut self, array: &ArrayRef, malformed: &[MalformedValue]) {
        let mut columns = self.columns.iter_mut();
        add(array, malformed, &mut columns);
    }

    /// Fails if the values contradict the statistics. Returns the columns whose sums agree; an equal number of
    /// values proves nothing about the values.
    pub(crate) fn check(&self, scan: &ScanShared, layout: &StripeLayout, row: u64) -> Result<Agreed> {
        let mut agreed = Vec::new();
        for stated in &self.columns {
            let Some(column) = scan.shape.tree.get(stated.column) else { continue };
            match stated.compare(scan, column) {
                Ok(None) => {}
                Ok(Some(sum)) => agreed.push((stated.column, sum)),
                Err((kind, contradiction)) => {
                    let message = format!("{contradiction} in the rows from {row} on");
                    let e = Error::corrupt(message).within(STATISTICS).within(column::name(column));
                    let stream =
                        layout.stream(column.id, kind).or(layout.stream(column.id, StreamKind::Data));
                    return Err(match stream {
                        Some(stream) => e.at(stream.bytes.start),
                        None => e,
                    });
                }
            }
        }
        Ok(agreed)
    }

    /// The column whose values contradict its statistics, and whether it is their number that does.
    pub(crate) fn contradicted(&self, scan: &ScanShared) -> Option<(usize, bool)> {
        self.columns.iter().find_map(|stated| {
            let column = scan.shape.tree.get(stated.column)?;
            let (kind, _) = stated.compare(scan, column).err()?;
            Some((stated.column, kind == StreamKind::Present))
        })
    }

    /// Whether the number of a column's values is the stated one.
    pub(crate) fn counts(&self, column: usize) -> bool {
        self.columns.iter().filter(|stated| stated.column == column).any(
            |Stated { statistics, facts, .. }| {
                let stated = statistics.as_ref().and_then(|stats| stats.number_of_values);
                !facts.holds_malformed && stated == facts.values.checked_add(facts.malformed)
            },
        )
    }
}

/// Whether an error is a contradiction of statistics.
pub(crate) fn is_of_statistics(e: &Error) -> bool {
    e.structure().ends_with(STATISTICS)
}

/// The structure of contradictions.
const STATISTICS: &str = "statistics";

/// The columns whose sum agrees with the file's statistics, each with the kind of sum.
pub(crate) type Agreed = Vec<(usize, Sum)>;

/// The kind of a sum in the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    /// Of the values: if one value changes, the sum changes.
    Values,
    /// Of lengths, or of true values.
    Lengths,
}

impl Stated {
    /// The sum that was compared; the contradiction if there is one, with the stream to blame.
    fn compare(&self, scan: &ScanShared, column: &Column) -> Result<Option<Sum>, (StreamKind, String)> {
        let (Some(stats), facts) = (&self.statistics, &self.facts) else { return Ok(None) };
        if facts.holds_malformed {
            return Ok(None);
        }
        let values = facts.values.saturating_add(facts.malformed);
        // Neither values nor nulls counted: the writer did not count.
        if stats.number_of_values == Some(0) && stats.has_null != Some(true) && values > 0 {
            return Ok(None);
        }
        let same = |kind: StreamKind, what: &str, stated: Option<i128>, counted: i128| match stated {
            Some(stated) if stated != counted => {
                Err((kind, format!("expected {what} {stated}, found {counted}")))
            }
            stated => Ok(stated.is_some()),
        };
        let (present, data, length) = (StreamKind::Present, StreamKind::Data, StreamKind::Length);
        if facts.outside {
            let message = "expected values between the stated minimum and maximum, found others";
            return Err((data, message.to_owned()));
        }
        // A key of a map that is not text is not null, but empty.
        if facts.malformed > 0 {
            return Ok(None);
        }
        same(present, "a number of values of", stats.number_of_values.map(i128::from), values.into())?;
        if values == 0 {
            return Ok(None);
        }
        let (mut of_values, mut of_lengths) = (false, false);
        if column.kind != Kind::Byte || scan.shape.quirks.byte_statistics {
            let stated = stats.int_statistics.as_ref().and_then(|s| s.sum);
            of_values |= same(data, "a sum of", stated.map(i128::from), facts.sum.into())?;
        }
        if column.kind != Kind::Char && scan.shape.quirks.string_statistics {
            let texts = stats.string_statistics.as_ref().and_then(|s| s.sum);
            let stated = texts.or(stats.binary_statistics.as_ref().and_then(|s| s.sum));
            of_lengths |= same(length, "a total length of", stated.map(i128::from), facts.bytes.into())?;
        }
        let trues = stats.bucket_statistics.as_ref().and_then(|s| s.count.first().copied());
        of_lengths |= same(data, "a number of true values of", trues.map(i128::from), facts.trues.into())?;
        let digits = self.stated_digits(scan, column);
        of_values |= same(data, "unscaled values with a sum of", digits, facts.digits)?;
        of_values |= self.agrees_with_unreliable_sum(column);
        let sum = stats.double_statistics.as_ref().and_then(|s| s.sum);
        if let Some(stated) = sum.filter(|_| scan.shape.quirks.double_sums) {
            let (sum, all) = facts.floats;
            let usable = stated.is_finite() && all.is_finite();
            if usable && (stated - sum).abs() > all * ROUNDING {
                return Err((data, format!("expected a sum of {stated}, found {sum}")));
            }
            of_values |= usable;
        }
        Ok(of_values.then_some(Sum::Values).or(of_lengths.then_some(Sum::Lengths)))
    }
}

impl Stated {
    /// Whether a value that its type cannot hold lies outside the bounds that are stated.
    fn excludes(&self, why: Malformed) -> bool {
        const DAY: i64 = 86_400;
        let Some(stats) = &self.statistics else { return false };
        match why {
            Malformed::Text => false,
            // The bounds fit the type, or they would not count.
            Malformed::Digits(_) => stats.decimal_statistics.as_ref().is_some_and(|s| s.minimum.is_some()),
            Malformed::Second { second, .. } => {
                let bounds =
                    stats.timestamp_statistics.as_ref().and_then(|s| s.minimum_utc.zip(s.maximum_utc));
                bounds.is_some_and(|(min, max)| second < min / 1000 - DAY || second > max / 1000 + DAY)
            }
        }
    }

    /// Whether a sum agrees with the values, although this writer's sums may be wrong: then both are right.
    fn agrees_with_unreliable_sum(&self, column: &Column) -> bool {
        let Some(stats) = &self.statistics else { return false };
        let (sum, all) = self.facts.floats;
        let stated = stats.double_statistics.as_ref().and_then(|s| s.sum);
        let of_floats = stated.is_some_and(|stated| (stated - sum).abs() <= all * ROUNDING);
        let stated = stats.decimal_statistics.as_ref().and_then(|s| s.sum.as_deref());
        let stated = stated.and_then(|sum| digits_of(sum, column));
        of_floats || stated == Some(self.facts.digits)
    }

    /// The stated sum of a decimal column's unscaled values.
    fn stated_digits(&self, scan: &ScanShared, column: &Column) -> Option<i128> {
        let sum = self.statistics.as_ref()?.decimal_statistics.as_ref()?.sum.as_deref()?;
        digits_of(sum, column).filter(|_| scan.shape.quirks.decimal_sums)
    }
}

/// The unscaled digits of a sum of decimals, which is stored as text.
fn digits_of(sum: &[u8], column: &Column) -> Option<i128> {
    let text = std::str::from_utf8(sum).ok()?;
    let (_, scale) = schema::decimal(column).ok()?;
    let down = parse_decimal(text, scale, false)?;
    (parse_decimal(text, scale, true)? == down).then_some(down)
}

/// Adds the statistics of a column and its nested columns, in the order in which [`add`] visits them.
fn add_stated(
    scan: &ScanShared,
    id: usize,
    data_type: &DataType,
    of: &impl Fn(usize) -> Option<ColumnStatistics>,
    texts: bool,
    into: &mut Vec<Stated>,
) -> Option<()> {
    let column = scan.shape.tree.get(id)?;
    let quirks = scan.shape.quirks;
    let stored = stored(column, data_type, quirks)?;
    let plain = match data_type {
        DataType::Utf8View => &DataType::Utf8,
        DataType::BinaryView => &DataType::Binary,
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    let is_union = matches!(data_type, DataType::Union(..));
    let is_masked = scan.shape.encryption.missing_key(id).is_some();
    let statistics = of(id)
        .map(|stats| quirks.believed(stats))
        .filter(|stats| !is_union && !is_masked && !impossible(stats, plain, stored, quirks));
    let mut stated = Stated { column: id, statistics, ..Stated::default() };
    let has_bounds =
        |stats: &ColumnStatistics| !has_sum(stats, quirks) && scan.shape.options.declared.is_none();
    if let Some(ends) = stated.statistics.as_ref().filter(|stats| has_bounds(stats)) {
        let ends = bounds(ends, plain, stored, quirks);
        stated.set_bounds(&ends, texts);
    }
    into.push(stated);
    let child = |place: usize| column.children.get(place).copied();
    match data_type {
        DataType::Struct(fields) => {
            let mut rest = column.children.iter().zip(&column.field_names);
            for field in fields {
                let (id, _) = rest.find(|(_, name)| *name == field.name())?;
                add_stated(scan, *id, field.data_type(), of, texts, into)?;
            }
        }
        DataType::List(item) => add_stated(scan, child(0)?, item.data_type(), of, texts, into)?,
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else { return None };
            for (place, field) in fields.iter().enumerate() {
                add_stated(scan, child(place)?, field.data_type(), of, texts, into)?;
            }
        }
        _ => {}
    }
    Some(())
}

impl Stated {
    fn set_bounds(&mut self, ends: &ColumnBounds, texts: bool) {
        let (Some(min), Some(max)) = (&ends.min, &ends.max) else { return };
        match min.data_type() {
            DataType::Utf8 if texts => self.texts = TextBounds::new(min, max),
            DataType::Decimal128(..) => {
                let value = |array: &ArrayRef| array.as_primitive::<Decimal128Type>().value(0);
                self.digits = Some((value(min), value(max)));
            }
            DataType::Float32 | DataType::Float64 => self.floats = float(min).zip(float(max)),
            kind if kind.is_integer() || kind.is_temporal() => self.whole = whole(min).zip(whole(max)),
            _ => {}
        }
    }
}

/// A bound as an integer; nothing is converted by a kernel, since each row group of each column has bounds.
fn whole(bound: &ArrayRef) -> Option<i64> {
    fn first<T: ArrowPrimitiveType<Native: Into<i64>>>(bound: &ArrayRef) -> Option<i64> {
        bound.as_primitive_opt::<T>()?.values().first().map(|value| (*value).into())
    }
    match bound.data_type() {
        DataType::Int8 => first::<Int8Type>(bound),
        DataType::Int16 => first::<Int16Type>(bound),
        DataType::Int32 => first::<Int32Type>(bound),
        DataType::Int64 => first::<Int64Type>(bound),
        DataType::Date32 => first::<Date32Type>(bound),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => first::<TimestampNanosecondType>(bound),
        DataType::Timestamp(TimeUnit::Microsecond, _) => first::<TimestampMicrosecondType>(bound),
        _ => None,
    }
}

fn float(bound: &ArrayRef) -> Option<f64> {
    match bound.data_type() {
        DataType::Float32 => {
            bound.as_primitive::<Float32Type>().values().first().map(|value| (*value).into())
        }
        _ => bound.as_primitive_opt::<Float64Type>()?.values().first().copied(),
    }
}

/// Whether values lie outside their stated bounds.
pub(crate) fn are_outside(ends: &ColumnBounds, values: &ArrayRef) -> bool {
    let mut stated = Stated::default();
    stated.set_bounds(ends, true);
    stated.count(values);
    stated.facts.outside
}

/// Whether a sum is stated: no bounds are needed to detect a change of a value.
fn has_sum(stats: &ColumnStatistics, quirks: Quirks) -> bool {
    stats.int_statistics.as_ref().is_some_and(|s| s.sum.is_some())
        || (quirks.double_sums
            && stats.double_statistics.as_ref().is_some_and(|s| s.sum.is_some_and(f64::is_finite)))
        || (quirks.decimal_sums && stats.decimal_statistics.as_ref().is_some_and(|s| s.sum.is_some()))
}

/// Counts the values of an array and its children.
fn add<'a>(
    array: &ArrayRef,
    malformed: &[MalformedValue],
    columns: &mut impl Iterator<Item = &'a mut Stated>,
) {
    let Some(stated) = columns.next() else { return };
    for value in malformed.iter().filter(|value| value.column == Some(stated.column)) {
        stated.facts.malformed += 1;
        stated.facts.outside |= stated.excludes(value.why);
    }
    stated.facts.holds_malformed |= array.data_type().is_nested() && !malformed.is_empty();
    stated.facts.values += (array.len() - array.logical_null_count()) as u64;
    if stated.statistics.is_some() {
        stated.count(array);
    }
    match array.data_type() {
        DataType::Struct(_) => {
            array.as_struct().columns().iter().for_each(|child| add(child, malformed, columns));
        }
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            add(&held(lists.values(), lists.value_offsets()), malformed, columns);
        }
        DataType::Map(..) => {
            let maps = array.as_map();
            for child in maps.entries().columns() {
                add(&held(child, maps.value_offsets()), malformed, columns);
            }
        }
        _ => {}
    }
}

/// The elements of the rows of a list.
fn held(elements: &ArrayRef, offsets: &[i32]) -> ArrayRef {
    let end = |offset: Option<&i32>| offset.and_then(|at| usize::try_from(*at).ok()).unwrap_or(0);
    let (from, to) = (end(offsets.first()), end(offsets.last()));
    elements.slice(from, to.saturating_sub(from))
}

impl Stated {
    fn count(&mut self, array: &ArrayRef) {
        match array.data_type() {
            DataType::Boolean => {
                let array = array.as_boolean();
                self.facts.trues += array.true_count() as u64;
            }
            DataType::Int8 => self.count_whole::<Int8Type>(array),
            DataType::Int16 => self.count_whole::<Int16Type>(array),
            DataType::Int32 => self.count_whole::<Int32Type>(array),
            DataType::Int64 => self.count_whole::<Int64Type>(array),
            DataType::Date32 => self.count_whole::<Date32Type>(array),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                self.count_whole::<TimestampNanosecondType>(array)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                self.count_whole::<TimestampMicrosecondType>(array);
            }
            DataType::Float32 => self.count_floats::<Float32Type>(array),
            DataType::Float64 => self.count_floats::<Float64Type>(array),
            DataType::Decimal128(..) => self.count_decimals(array.as_primitive::<Decimal128Type>()),
            DataType::Utf8 => {
                let array = array.as_string::<i32>();
                self.facts.bytes += bytes(array);
                if let Some(texts) = &self.texts {
                    self.facts.outside |= array.iter().flatten().any(|text| texts.exclude(text));
                }
            }
            DataType::Binary => self.facts.bytes += bytes(array.as_binary::<i32>()),
            DataType::Utf8View => {
                let array = array.as_string_view();
                self.facts.bytes += bytes_of_views(array);
                if let Some(texts) = &self.texts {
                    self.facts.outside |= array.iter().flatten().any(|text| texts.exclude(text));
                }
            }
            DataType::BinaryView => self.facts.bytes += bytes_of_views(array.as_binary_view()),
            DataType::Dictionary(..) => self.facts.bytes += bytes_of_entries(array).unwrap_or_default(),
            _ => {}
        }
    }

    /// Adds integers, and compares them with their bounds without a branch for each.
    fn count_whole<T: ArrowPrimitiveType>(&mut self, array: &ArrayRef)
    where
        T::Native: Into<i64>,
    {
        let array = array.as_primitive::<T>();
        let (mut sum, mut outside) = (0i64, 0i64);
        match self.whole {
            None => each_run(array, |values| {
                sum = values.iter().fold(sum, |sum, value| sum.wrapping_add((*value).into()));
            }),
            Some((least, most)) if most.checked_sub(least).is_none() => each_run(array, |values| {
                for value in values {
                    let value: i64 = (*value).into();
                    sum = sum.wrapping_add(value);
                    outside |= -i64::from((value < least) | (value > most));
                }
            }),
            // For a value outside the range, at least one of the two differences is negative, even if the
            // other wraps around.
            Some((least, most)) => each_run(array, |values| {
                for value in values {
                    let value: i64 = (*value).into();
                    sum = sum.wrapping_add(value);
                    outside |= value.wrapping_sub(least) | most.wrapping_sub(value);
                }
            }),
        }
        self.facts.sum = self.facts.sum.wrapping_add(sum);
        self.facts.outside |= outside < 0;
    }

    fn count_floats<T: ArrowPrimitiveType>(&mut self, array: &ArrayRef)
    where
        T::Native: Into<f64>,
    {
        let mut lanes = Lanes::default();
        let bounds = self.floats.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        each_run(array.as_primitive::<T>(), |values| lanes.add(values, bounds));
        let (sum, all) = lanes.sums();
        self.facts.floats.0 += sum;
        self.facts.floats.1 += all;
        self.facts.outside |= lanes.are_outside();
    }

    fn count_decimals(&mut self, array: &PrimitiveArray<Decimal128Type>) {
        let (mut sum, mut outside) = (0i128, false);
        let (least, most) = self.digits.unwrap_or((i128::MIN, i128::MAX));
        each_run(array, |values| {
            for value in values {
                sum = sum.wrapping_add(*value);
                outside |= (*value < least) | (*value > most);
            }
        });
        self.facts.digits = self.facts.digits.wrapping_add(sum);
        self.facts.outside |= outside;
    }
}

/// Calls `each` with the values of each run of rows that are not null.
fn each_run<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, mut each: impl FnMut(&[T::Native])) {
    let values: &[T::Native] = array.values();
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => each(values),
        Some(nulls) => runs(nulls, |from, to| each(values.get(from..to).unwrap_or_default())),
    }
}

fn runs(nulls: &NullBuffer, mut each: impl FnMut(usize, usize)) {
    nulls.valid_slices().for_each(|(from, to)| each(from, to));
}

/// The total length of the values; a null has none.
fn bytes<T: ByteArrayType<Offset = i32>>(array: &GenericByteArray<T>) -> u64 {
    let offsets = array.value_offsets();
    let end = |offset: Option<&i32>| offset.map_or(0, |at| u64::from(at.unsigned_abs()));
    end(offsets.last()).saturating_sub(end(offsets.first()))
}

fn bytes_of_views<T: ByteViewType>(array: &GenericByteViewArray<T>) -> u64 {
    let length = |view: &u128| view & u128::from(u32::MAX);
    let views = array.views();
    let total = |views: &[u128]| views.iter().map(length).sum::<u128>();
    let sum = match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => total(views),
        Some(nulls) => {
            let mut sum = 0;
            runs(nulls, |from, to| sum += total(views.get(from..to).unwrap_or_default()));
            sum
        }
    };
    u64::try_from(sum).unwrap_or(u64::MAX)
}

fn bytes_of_entries(array: &ArrayRef) -> Option<u64> {
    let array = array.as_dictionary_opt::<Int32Type>()?;
    let entries = array.values().as_string_opt::<i32>()?;
    let offsets = entries.value_offsets();
    let length = |key: i32| {
        let at = usize::try_from(key).unwrap_or(usize::MAX);
        let ends = offsets.get(at..).and_then(<[i32]>::first_chunk::<2>);
        ends.map_or(0, |[start, end]| u64::from(end.wrapping_sub(*start).unsigned_abs()))
    };
    let mut sum = 0;
    each_run(array.keys(), |keys| sum += keys.iter().map(|key| length(*key)).sum::<u64>());
    Some(sum)
}
