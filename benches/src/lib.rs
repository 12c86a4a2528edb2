//! The table that the benchmarks read and write: nine columns of types typical of cold tables.
//! It resembles the table of `benches/peers`, and is the same on each run.

use std::hint::black_box;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampNanosecondArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use coldframe::{
    OpenOptions, Result, Scan, Source, Value, WriteOptions, arrow_error, format_named, open_source,
};

/// The allocator that the Python package uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The table's columns as Hive DDL.
pub const DDL: &str = "id bigint, quantity int, score double, customer string, created_at timestamp, \
    price decimal(12,2), paid boolean, product string, day date";

/// The day 2012-01-01, counted from 1970.
const FIRST_DAY: i64 = 15_340;

const CITIES: [&str; 8] =
    ["Amsterdam", "Berlin", "Chicago", "Delhi", "Edinburgh", "Fukuoka", "Rotterdam", "Stockholm"];

const PRODUCTS: [&str; 8] = ["bolt", "bracket", "cable", "filter", "gasket", "nozzle", "piston", "sensor"];

/// The Arrow form of [`DDL`].
pub fn schema() -> SchemaRef {
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        field("id", DataType::Int64),
        field("quantity", DataType::Int32),
        field("score", DataType::Float64),
        field("customer", DataType::Utf8),
        field("created_at", DataType::Timestamp(TimeUnit::Nanosecond, None)),
        field("price", DataType::Decimal128(12, 2)),
        field("paid", DataType::Boolean),
        field("product", DataType::Utf8),
        field("day", DataType::Date32),
    ]))
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number from 0 to `below` - 1.
    pub fn below(&mut self, below: u32) -> u32 {
        u32::try_from(self.next_u64() % u64::from(below.max(1))).unwrap_or(0)
    }

    /// `value`, but null once in fifty.
    fn or_null<T>(&mut self, value: T) -> Option<T> {
        (self.below(50) != 0).then_some(value)
    }

    fn of<'a>(&mut self, texts: &[&'a str; 8]) -> &'a str {
        let [first, ..] = texts;
        let at = usize::try_from(self.below(8)).unwrap_or(0);
        texts.get(at).copied().unwrap_or(first)
    }
}

/// `rows` rows of the table; 2 % of the values of each column but the first are null.
pub fn table(rows: u32) -> Result<RecordBatch> {
    const DAY: i64 = 86_400;
    let second = |n: u32| i64::from(n) * 43;
    let r = &mut Random::new(2014);
    let columns: Vec<ArrayRef> = vec![
        Arc::new((0..rows).map(|n| Some(4_000_000_000 + i64::from(n) * 3)).collect::<Int64Array>()),
        Arc::new(nullable::<Int32Array, _>(r, rows, |r, _| {
            i32::try_from(r.below(20_000)).unwrap_or(0) - 1_000
        })),
        Arc::new(nullable::<Float64Array, _>(r, rows, |r, _| {
            let score = f64::from(r.below(1_000)) / 8.0;
            let fine = f64::from(r.below(1 << 30)) / 3.0e8;
            if r.below(100) < 75 { score } else { fine }
        })),
        Arc::new(nullable::<StringArray, _>(r, rows, |r, _| {
            format!("{}-{}", r.of(&CITIES), 1_000_000 + r.below(9_000_000))
        })),
        Arc::new(nullable::<TimestampNanosecondArray, _>(r, rows, |r, n| {
            let micros = 100_000 + i64::from(r.below(900_000));
            (FIRST_DAY * DAY + second(n)) * 1_000_000_000 + micros * 1_000
        })),
        Arc::new(
            nullable::<Decimal128Array, _>(r, rows, |r, _| {
                i128::from(r.below(75_000_000)) / i128::from(1 + r.below(40))
            })
            .with_precision_and_scale(12, 2)
            .map_err(arrow_error)?,
        ),
        Arc::new(nullable::<BooleanArray, _>(r, rows, |r, _| r.below(10) < 7)),
        Arc::new(nullable::<StringArray, _>(r, rows, |r, _| {
            format!("{} type {}", r.of(&PRODUCTS), r.below(1_000))
        })),
        Arc::new(nullable::<Date32Array, _>(r, rows, |_, n| {
            i32::try_from(FIRST_DAY + second(n) / DAY).unwrap_or(0)
        })),
    ];
    RecordBatch::try_new(schema(), columns).map_err(arrow_error)
}

/// A column of `rows` values; one in fifty is null.
fn nullable<A, T>(r: &mut Random, rows: u32, mut value: impl FnMut(&mut Random, u32) -> T) -> A
where
    A: FromIterator<Option<T>>,
{
    (0..rows)
        .map(|n| {
            let value = value(r, n);
            r.or_null(value)
        })
        .collect()
}

/// A sink that a writer owns and its caller can read.
#[derive(Clone, Debug, Default)]
pub struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// `batch` as an RCFile.
pub fn rcfile(batch: &RecordBatch, serde: &str, codec: &str) -> Result<Vec<u8>> {
    let text = |s: &str| Value::Str(s.to_owned());
    let extra =
        [("schema", text(DDL)), ("serde", text(serde)), ("codec", text(codec)), ("sync_seed", Value::Int(1))];
    written("rcfile", batch, extra)
}

/// `batch` as a file of `format`, with these options of its writer.
pub fn written<'a>(
    format: &str,
    batch: &RecordBatch,
    options: impl IntoIterator<Item = (&'a str, Value)>,
) -> Result<Vec<u8>> {
    let options = WriteOptions { extra: options.into_iter().map(|(k, v)| (k.to_owned(), v)).collect() };
    let sink = Sink::default();
    let mut writer = format_named(format)?.create(Box::new(sink.clone()), &batch.schema(), &options)?;
    writer.write(batch)?;
    writer.finish()?;
    Ok(sink.into_bytes())
}

/// Opens a file in memory, scans all of it on one thread, and returns the number of rows.
pub fn scanned(file: &Bytes, options: &OpenOptions, scan: &Scan) -> Result<usize> {
    let source = Source::file("memory", Arc::new(file.clone()));
    let file = open_source(source, None, options, Vec::new())?;
    let mut rows = 0;
    for split in file.whole()? {
        let mut reader = file.scan(scan, &split)?;
        while let Some(batch) = reader.next_batch()? {
            rows += black_box(batch).num_rows();
        }
    }
    Ok(rows)
}

/// An option of the format.
pub fn option(name: &str, value: Value) -> OpenOptions {
    OpenOptions { extra: [(name.to_owned(), value)].into(), ..OpenOptions::default() }
}

/// A scan of some or all columns.
pub fn columns(names: Option<&[&str]>) -> Scan {
    let columns = names.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    Scan { columns, ..Scan::default() }
}
