//! Tests every writer together with its reader: written values are read back unchanged, or the writer refuses
//! them with a reason.

use std::io::Write;
use std::sync::{Arc, Mutex};

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int8Builder,
    Int32Builder, Int64Builder, ListBuilder, StringBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray, TimestampMicrosecondArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use coldframe::{OnError, OpenOptions, Result, SchemaSpec, Value, WriteOptions};
use coldframe_testing::fixture::source;
use coldframe_testing::rows;

use crate::limits;

/// The bytes of an input, which determine choices; after the last byte, all choices are zero.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, n: u8) -> u8 {
        self.byte() % n
    }

    /// A number that is either small or has 64 bits of the input.
    fn number(&mut self) -> i64 {
        match self.byte() {
            b @ 0..=199 => i64::from(b) - 100,
            b @ 200..=209 => {
                [i64::MIN, i64::MAX, 0, -1, 1 << 40, -(1 << 40), 253_402_300_800, -62_135_596_801, 255, -129]
                    [usize::from(b - 200)]
            }
            _ => i64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = usize::from(self.below(20));
        (0..len).map(|_| self.byte()).collect()
    }
}

/// A sink that outlives the writer that owns it.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("one thread").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A file of `batches`.
pub fn written(
    format: &str,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    options: &WriteOptions,
) -> Result<Vec<u8>> {
    let sink = Sink::default();
    let format = coldframe::format_named(format)?;
    let mut writer = format.create(Box::new(sink.clone()), schema, options)?;
    for batch in batches {
        writer.write(batch)?;
    }
    let len = writer.finish()?;
    let bytes = std::mem::take(&mut *sink.0.lock().expect("one thread"));
    assert_eq!(bytes.len() as u64, len, "the writer reports a different length");
    Ok(bytes)
}

/// Any float; of the NaNs only the one that text can represent.
fn float(choices: &mut Choices<'_>) -> f64 {
    let any = f64::from_bits(choices.number().cast_unsigned());
    if any.is_nan() { f64::NAN } else { any }
}

/// A column of `rows` values of a type that `choices` determine.
fn column(choices: &mut Choices<'_>, rows: usize, depth: u8, nullable: bool) -> ArrayRef {
    let kind = choices.below(if depth > 2 { 9 } else { 11 });
    macro_rules! made {
        ($builder:expr, $value:expr) => {{
            let mut builder = $builder;
            for _ in 0..rows {
                if nullable && choices.below(4) == 0 {
                    builder.append_null()
                } else {
                    builder.append_value($value)
                }
            }
            Arc::new(builder.finish()) as ArrayRef
        }};
    }
    #[allow(clippy::cast_possible_truncation, reason = "any bits will do")]
    match kind {
        0 => made!(BooleanBuilder::new(), choices.byte() > 127),
        1 => made!(Int8Builder::new(), choices.number() as i8),
        2 => made!(Int32Builder::new(), choices.number() as i32),
        3 => made!(Int64Builder::new(), choices.number()),
        4 => made!(Float64Builder::new(), float(choices)),
        5 => made!(StringBuilder::new(), &String::from_utf8_lossy(&choices.bytes())),
        6 => made!(BinaryBuilder::new(), choices.bytes()),
        7 => made!(Date32Builder::new(), choices.number() as i32),
        8 => {
            let scale = choices.below(6);
            let values = made!(Decimal128Builder::new(), i128::from(choices.number() % 1_000_000_000_000));
            let values =
                values.as_any().downcast_ref::<arrow_array::Decimal128Array>().expect("decimals").clone();
            Arc::new(values.with_precision_and_scale(18, scale.cast_signed()).expect("fits"))
        }
        9 => {
            let inner = column(choices, rows, depth + 1, true);
            let fields = Fields::from(vec![Field::new("x", inner.data_type().clone(), true)]);
            let nulls: NullBuffer = (0..rows).map(|_| !nullable || choices.below(4) > 0).collect();
            Arc::new(StructArray::new(fields, vec![inner], Some(nulls).filter(|_| nullable)))
        }
        _ if choices.below(2) == 0 => {
            let values: Vec<Option<i64>> =
                (0..rows).map(|_| (!nullable || choices.below(4) > 0).then(|| choices.number())).collect();
            Arc::new(TimestampMicrosecondArray::from(values))
        }
        _ => {
            let mut list = ListBuilder::new(Int32Builder::new());
            for _ in 0..rows {
                for _ in 0..choices.below(4) {
                    if choices.below(5) == 0 {
                        list.values().append_null();
                    } else {
                        list.values().append_value(choices.number() as i32);
                    }
                }
                list.append(!nullable || choices.below(5) > 0);
            }
            Arc::new(list.finish())
        }
    }
}

fn options(given: &[(&str, Value)]) -> WriteOptions {
    WriteOptions { extra: given.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect() }
}

/// Writes and reads a file of a format. `is_single_column`: whether the format's files have only one column.
fn round(
    format: &str,
    bytes: &[u8],
    is_single_column: bool,
    write: &[&[(&str, Value)]],
    read: &[(&str, Value)],
) {
    let choices = &mut Choices(bytes);
    let write = write[usize::from(choices.byte()) % write.len()];
    let rows = usize::from(choices.byte()) % 70;
    let count = if is_single_column { 1 } else { usize::from(choices.below(4)) + 1 };
    let mut columns: Vec<(Field, ArrayRef)> = Vec::new();
    for i in 0..count {
        let nullable = choices.below(3) > 0;
        let array = column(choices, rows, 0, nullable);
        let name = if is_single_column { "value".to_owned() } else { format!("c{i}") };
        columns.push((Field::new(name, array.data_type().clone(), nullable), array));
    }
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), arrays).expect("columns of one length");
    let cut = usize::from(choices.byte()) % (rows + 1);
    let batches = [batch.slice(0, cut), batch.slice(cut, rows - cut)];
    let file = match written(format, &schema, &batches, &options(write)) {
        Ok(file) => file,
        Err(e) => {
            assert!(!e.is_damage(), "a writer must not report unsuitable input as damage: {e}");
            return;
        }
    };
    let mut open = OpenOptions { limits: limits(), ..OpenOptions::default() };
    open.extra = options(read).extra;
    if format == "rcfile" {
        open.schema = Some(SchemaSpec::Arrow(schema.clone()));
        open.extra
            .extend(write.iter().filter(|(k, _)| *k == "serde").map(|(k, v)| ((*k).to_owned(), v.clone())));
    }
    let table = coldframe::format_named(format).expect("a format").open(&source(file), &open);
    let table = table.unwrap_or_else(|e| panic!("written, then not opened: {e}"));
    let back = rows::read(table.as_ref(), OnError::Raise).expect("a scan");
    assert!(back.error.is_none(), "written, then not read: {:?}", back.error);
    assert_eq!(back.batch.num_rows(), rows);
    assert_eq!(back.batch.num_columns(), count);
    for (want, got) in batch.columns().iter().zip(back.batch.columns()) {
        same(want, got);
    }
    assert!(coldframe::scan::verify(table.as_ref(), |_| Ok(())).expect("verify").damage.is_empty());
}

/// Compares values, in whatever type the reader returns; for a union or a dictionary only the number of
/// values. A CFile does not store the scale of decimals.
fn same(want: &ArrayRef, got: &ArrayRef) {
    if matches!(want.data_type(), DataType::Union(..)) || matches!(got.data_type(), DataType::Dictionary(..))
    {
        assert_eq!(want.len(), got.len());
        return;
    }
    if let (DataType::Decimal128(..), DataType::Decimal128(..)) = (want.data_type(), got.data_type()) {
        let unscaled = |array: &ArrayRef| array.as_primitive::<Decimal128Type>().iter().collect::<Vec<_>>();
        assert_eq!(unscaled(want), unscaled(got));
        return;
    }
    let cast = arrow_cast::cast(got, want.data_type()).expect("a type that holds the values");
    assert_eq!(&cast, want, "{} as {}", want.data_type(), got.data_type());
}

/// Writes and reads ORC.
pub fn orc(bytes: &[u8]) {
    let unit = [("timestamp_unit", Value::from("us"))];
    let plain: &[(&str, Value)] = &[];
    let small = [
        ("row_index_stride", Value::Int(10)),
        ("stripe_rows", Value::Int(30)),
        ("codec", Value::from("zlib")),
    ];
    round("orc", bytes, false, &[plain, &small], &unit);
}

/// Writes and reads RCFile, with both SerDes.
pub fn rcfile(bytes: &[u8]) {
    let text = [("serde", Value::from("text")), ("sync_seed", Value::Int(1))];
    let binary =
        [("serde", Value::from("binary")), ("sync_seed", Value::Int(1)), ("record_interval", Value::Int(10))];
    round("rcfile", bytes, false, &[&text, &binary], &[("timestamp_unit", Value::from("us"))]);
}

/// Writes and reads CFiles, which have one column.
pub fn cfile(bytes: &[u8]) {
    let plain: &[(&str, Value)] = &[];
    let small = [("block_size", Value::Int(64)), ("codec", Value::from("lz4"))];
    round("cfile", bytes, true, &[plain, &small], &[]);
}

/// Writes and reads Redfile.
pub fn redfile(bytes: &[u8]) {
    let plain: &[(&str, Value)] = &[];
    let summed = [("crc", Value::Bool(true)), ("codec", Value::from("snappy")), ("sync_seed", Value::Int(1))];
    round("redfile", bytes, false, &[plain, &summed], &[]);
}

/// Writes and reads HFiles with keys and values in Hudi's form.
pub fn hfile(bytes: &[u8]) {
    let choices = &mut Choices(bytes);
    let rows = usize::from(choices.byte()) % 70;
    let mut keys: Vec<String> =
        (0..rows).map(|_| String::from_utf8_lossy(&choices.bytes()).into_owned()).collect();
    keys.sort_unstable();
    keys.dedup();
    let values: Vec<Vec<u8>> = keys.iter().map(|_| choices.bytes()).collect();
    let columns: [(&str, ArrayRef); 2] = [
        ("key", Arc::new(arrow_array::StringArray::from(keys))),
        ("value", Arc::new(arrow_array::BinaryArray::from_iter_values(values))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let size = [("block_size", Value::Int(i64::from(choices.byte()) + 1)), ("view", Value::from("kv"))];
    let Ok(file) = written("hfile", &batch.schema(), std::slice::from_ref(&batch), &options(&size)) else {
        return;
    };
    let open = OpenOptions { limits: limits(), ..OpenOptions::default() };
    let table =
        coldframe::format_named("hfile").expect("a format").open(&source(file), &open).expect("opens");
    let back = rows::read(table.as_ref(), OnError::Raise).expect("a scan");
    assert!(back.error.is_none(), "written, then not read: {:?}", back.error);
    assert_eq!(rows::as_text(&back.batch), rows::as_text(&batch));
}

/// Seeds for writers. The inputs of these targets have no format; these seeds lead to every type.
pub fn seeds() -> Vec<Vec<u8>> {
    (0..24u8).map(|n| (0..200u8).map(|i| i.wrapping_mul(n.wrapping_mul(37) | 1) ^ n).collect()).collect()
}
