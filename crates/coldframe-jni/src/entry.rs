//! The native methods of `io.coldframe.spark.Native`.
//! Arguments and results are numbers and bytes; requests are JSON, tasks are bytes of [`crate::task`].

#![expect(unsafe_code, reason = "the JVM finds native methods by unmangled names")]

use std::sync::Mutex;

use arrow_array::RecordBatch;
use jni::objects::{JByteArray, JClass};
use jni::sys::{jbyteArray, jlong, jlongArray};
use jni::{Env, EnvUnowned};

use crate::failure::{Failure, Throw};
use crate::handles::{Handles, locked};
use crate::plan::Table;
use crate::reader::Reader;
use crate::{allocator, layout, task};

static TABLES: Handles<Table> = Handles::new("table");
static READERS: Handles<Mutex<Reader>> = Handles::new("reader");
static BATCHES: Handles<RecordBatch> = Handles::new("batch");

/// A Java array as a native method returns it; null if the method threw an exception.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Returned<T>(*mut T);

impl<T> Default for Returned<T> {
    fn default() -> Self {
        Self(std::ptr::null_mut())
    }
}

pub(crate) type Bytes = Returned<std::ffi::c_void>;

pub(crate) fn bytes(env: &mut Env<'_>, of: &[u8]) -> Result<Bytes, Failure> {
    let array: jbyteArray = env.byte_array_from_slice(of)?.into_raw();
    Ok(Returned(array.cast()))
}

fn longs(env: &mut Env<'_>, of: &[i64]) -> Result<Bytes, Failure> {
    let array = env.new_long_array(of.len())?;
    array.set_region(env, 0, of)?;
    let array: jlongArray = array.into_raw();
    Ok(Returned(array.cast()))
}

/// Text; null if there is none.
fn text(env: &mut Env<'_>, of: Option<&str>) -> Result<Bytes, Failure> {
    of.map_or_else(|| Ok(Bytes::default()), |of| bytes(env, of.as_bytes()))
}

/// Answers a request to a table.
fn answer<'a>(
    mut env: EnvUnowned<'a>,
    table: jlong,
    request: &JByteArray<'a>,
    of: impl FnOnce(&mut Env<'_>, &Table, &[u8]) -> Result<Bytes, Failure>,
) -> Bytes {
    env.with_env(|env| {
        let request = env.convert_byte_array(request)?;
        let table = TABLES.get(table)?;
        of(env, &table, &request)
    })
    .resolve::<Throw>()
}

/// The version of the calls from Java, and of the bytes that both sides exchange. The version must be raised
/// here and in `Native.CALLS` whenever one of the calls or bytes changes. It distinguishes two builds of the
/// same release.
const CALLS: i32 = 4;

/// [`CALLS`] for Java, which compares it with its own constant.
// SAFETY: as below.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_calls(_: EnvUnowned<'_>, _: JClass<'_>) -> i32 {
    CALLS
}

/// The library's version.
// SAFETY: no other symbol has this name, which JNI gives to a method of our class.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_version<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
) -> Bytes {
    env.with_env(|env| {
        allocator::keep_memory();
        bytes(env, env!("CARGO_PKG_VERSION").as_bytes())
    })
    .resolve::<Throw>()
}

/// Opens a table by its options.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_open<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    request: JByteArray<'a>,
) -> jlong {
    env.with_env(|env| {
        let request = env.convert_byte_array(&request)?;
        Ok::<_, Failure>(TABLES.add(Table::open(&request)?))
    })
    .resolve::<Throw>()
}

/// A table's columns, as Spark's JSON.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_schema<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    table: jlong,
) -> Bytes {
    env.with_env(|env| {
        let schema = TABLES.get(table)?.spark_schema()?;
        bytes(env, schema.as_bytes())
    })
    .resolve::<Throw>()
}

/// A table's name in plans, without secrets.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_name<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    table: jlong,
) -> Bytes {
    env.with_env(|env| {
        let name = TABLES.get(table)?.name();
        bytes(env, name.as_bytes())
    })
    .resolve::<Throw>()
}

/// Takes a table's notices for its user, each followed by a zero byte.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_notices<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    table: jlong,
) -> Bytes {
    env.with_env(|env| {
        let notices: String = TABLES.get(table)?.notices().iter().flat_map(|text| [text, "\0"]).collect();
        bytes(env, notices.as_bytes())
    })
    .resolve::<Throw>()
}

/// For each filter of a JSON list, whether this library evaluates it: 1 or 0.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_takes<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    table: jlong,
    filters: JByteArray<'a>,
) -> Bytes {
    answer(env, table, &filters, |env, table, filters| {
        let taken = table.takes(filters)?;
        bytes(env, &taken.into_iter().map(u8::from).collect::<Vec<_>>())
    })
}

/// The columns of the results of some aggregates, as Spark's JSON; null if one of them is left to Spark.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_aggregates<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    table: jlong,
    asked: JByteArray<'a>,
) -> Bytes {
    answer(env, table, &asked, |env, table, asked| text(env, table.aggregates(asked)?.as_deref()))
}

/// The estimated size of a request's result: bytes and rows; -1 if unknown.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_statistics<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    table: jlong,
    request: JByteArray<'a>,
) -> Bytes {
    answer(env, table, &request, |env, table, request| longs(env, &table.statistics(request)?))
}

/// The partition columns by which tasks are divided: the number of partitions, then the columns' indexes in the request.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_partitioning<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    table: jlong,
    request: JByteArray<'a>,
) -> Bytes {
    answer(env, table, &request, |env, table, request| longs(env, &table.partitioning(request)?))
}

/// For a request of the first rows in an order: a filter, as JSON, that these rows pass; null if no row can
/// be left out.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_top<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    table: jlong,
    request: JByteArray<'a>,
) -> Bytes {
    answer(env, table, &request, |env, table, request| text(env, table.top(request)?.as_deref()))
}

/// The tasks that answer a request, as [`crate::plan::planned`] writes them.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_plan<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    table: jlong,
    request: JByteArray<'a>,
) -> Bytes {
    answer(env, table, &request, |env, table, request| bytes(env, &table.plan(request)?.to_bytes()?))
}

/// Frees a table.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_closeTable<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    table: jlong,
) {
    env.with_env(|_| {
        TABLES.remove(table);
        Ok::<_, Failure>(())
    })
    .resolve::<Throw>();
}

/// Begins to read a task.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_read<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    task: JByteArray<'a>,
) -> jlong {
    env.with_env(|env| {
        let task = env.convert_byte_array(&task)?;
        let reader = Reader::new(task::Task::from_bytes(&task)?)?;
        Ok::<_, Failure>(READERS.add(Mutex::new(reader)))
    })
    .resolve::<Throw>()
}

/// The next batch, as [`layout`] writes it, or null at the end. The batch stays in memory until it is
/// released.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_next<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
) -> Bytes {
    env.with_env(|env| {
        let of = READERS.get(number)?;
        let Some(batch) = locked(&of).next_batch()? else { return Ok(Bytes::default()) };
        let mut layout = vec![0];
        layout::write(&batch, &mut layout)?;
        let batch = BATCHES.add(batch);
        if let Some(first) = layout.first_mut() {
            *first = batch;
        }
        let array = longs(env, &layout);
        if array.is_err() {
            BATCHES.remove(batch);
        }
        array
    })
    .resolve::<Throw>()
}

/// The file of a reader's newest batch, as [`Reader::new_file`] writes it; null if it is that of the batch before.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_newFile<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
) -> Bytes {
    env.with_env(|env| {
        let of = READERS.get(number)?;
        let file = locked(&of).new_file();
        text(env, file.as_deref())
    })
    .resolve::<Throw>()
}

/// Frees a batch; its addresses become invalid.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_release<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    batch: jlong,
) {
    env.with_env(|_| {
        BATCHES.remove(batch);
        Ok::<_, Failure>(())
    })
    .resolve::<Throw>();
}

/// A reader's counts, in the order of [`crate::reader::Counts`].
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_counts<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
) -> Bytes {
    env.with_env(|env| {
        let of = READERS.get(number)?;
        let counts = locked(&of).counts().to_longs();
        longs(env, &counts)
    })
    .resolve::<Throw>()
}

/// Frees a reader.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_closeReader<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
) {
    env.with_env(|_| {
        READERS.remove(number);
        Ok::<_, Failure>(())
    })
    .resolve::<Throw>();
}

/// The numbers of open tables, readers and batches, for tests of leaks.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_Native_held<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
) -> Bytes {
    env.with_env(|env| {
        let open = [TABLES.len(), READERS.len(), BATCHES.len()];
        let open = open.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        longs(env, &open)
    })
    .resolve::<Throw>()
}
