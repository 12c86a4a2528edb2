//! The native methods of `io.coldframe.spark.Native`.
//! Arguments and results are numbers and bytes; requests are JSON, tasks are bytes of [`crate::task`].

#![expect(unsafe_code, reason = "the JVM finds native methods by unmangled names")]

use std::sync::Mutex;

use arrow_array::RecordBatch;
use jni::Env;
use jni::objects::JByteArray;
use jni::sys::{jint, jlong};

use crate::failure::Failure;
use crate::handles::{Handles, locked};
use crate::native::{Bytes, bytes, longs, natives};
use crate::plan::Table;
use crate::reader::Reader;
use crate::{allocator, layout, task};

static TABLES: Handles<Table> = Handles::new("table");
static READERS: Handles<Mutex<Reader>> = Handles::new("reader");
static BATCHES: Handles<RecordBatch> = Handles::new("batch");

/// Text; null if there is none.
fn text(env: &mut Env<'_>, of: Option<&str>) -> Result<Bytes, Failure> {
    of.map_or_else(|| Ok(Bytes::default()), |of| bytes(env, of.as_bytes()))
}

/// Answers a request to a table.
fn answer(
    env: &mut Env<'_>,
    table: jlong,
    request: &JByteArray<'_>,
    of: impl FnOnce(&mut Env<'_>, &Table, &[u8]) -> Result<Bytes, Failure>,
) -> Result<Bytes, Failure> {
    let request = env.convert_byte_array(request)?;
    let table = TABLES.get(table)?;
    of(env, &table, &request)
}

/// The version of the calls from Java, and of the bytes that both sides exchange. The version must be raised
/// here and in `Native.CALLS` whenever one of the calls or bytes changes. It distinguishes two builds of the
/// same release.
const CALLS: jint = 4;

natives! {
    /// [`CALLS`] for Java, which compares it with its own constant.
    fn Java_io_coldframe_spark_Native_calls(_) -> jint {
        Ok(CALLS)
    }

    /// The library's version.
    fn Java_io_coldframe_spark_Native_version(env) -> Bytes {
        allocator::keep_memory();
        bytes(env, env!("CARGO_PKG_VERSION").as_bytes())
    }

    /// Opens a table by its options.
    fn Java_io_coldframe_spark_Native_open(env, request: JByteArray<'_>) -> jlong {
        let request = env.convert_byte_array(&request)?;
        Ok(TABLES.add(Table::open(&request)?))
    }

    /// A table's columns, as Spark's JSON.
    fn Java_io_coldframe_spark_Native_schema(env, table: jlong) -> Bytes {
        let schema = TABLES.get(table)?.spark_schema()?;
        bytes(env, schema.as_bytes())
    }

    /// A table's name in plans, without secrets.
    fn Java_io_coldframe_spark_Native_name(env, table: jlong) -> Bytes {
        let name = TABLES.get(table)?.name();
        bytes(env, name.as_bytes())
    }

    /// Takes a table's notices for its user, each followed by a zero byte.
    fn Java_io_coldframe_spark_Native_notices(env, table: jlong) -> Bytes {
        let notices: String = TABLES.get(table)?.notices().iter().flat_map(|text| [text, "\0"]).collect();
        bytes(env, notices.as_bytes())
    }

    /// For each filter of a JSON list, whether this library evaluates it: 1 or 0.
    fn Java_io_coldframe_spark_Native_takes(env, table: jlong, filters: JByteArray<'_>) -> Bytes {
        answer(env, table, &filters, |env, table, filters| {
            let taken = table.takes(filters)?;
            bytes(env, &taken.into_iter().map(u8::from).collect::<Vec<_>>())
        })
    }

    /// The columns of the results of some aggregates, as Spark's JSON; null if one of them is left to Spark.
    fn Java_io_coldframe_spark_Native_aggregates(env, table: jlong, asked: JByteArray<'_>) -> Bytes {
        answer(env, table, &asked, |env, table, asked| text(env, table.aggregates(asked)?.as_deref()))
    }

    /// The estimated size of a request's result: bytes and rows; -1 if unknown.
    fn Java_io_coldframe_spark_Native_statistics(env, table: jlong, request: JByteArray<'_>) -> Bytes {
        answer(env, table, &request, |env, table, request| longs(env, &table.statistics(request)?))
    }

    /// The partition columns by which tasks are divided: the number of partitions, then the columns' indexes in the request.
    fn Java_io_coldframe_spark_Native_partitioning(env, table: jlong, request: JByteArray<'_>) -> Bytes {
        answer(env, table, &request, |env, table, request| longs(env, &table.partitioning(request)?))
    }

    /// For a request of the first rows in an order: a filter, as JSON, that these rows pass; null if no row can
    /// be left out.
    fn Java_io_coldframe_spark_Native_top(env, table: jlong, request: JByteArray<'_>) -> Bytes {
        answer(env, table, &request, |env, table, request| text(env, table.top(request)?.as_deref()))
    }

    /// The tasks that answer a request, as [`crate::plan::planned`] writes them.
    fn Java_io_coldframe_spark_Native_plan(env, table: jlong, request: JByteArray<'_>) -> Bytes {
        answer(env, table, &request, |env, table, request| bytes(env, &table.plan(request)?.to_bytes()?))
    }

    /// Frees a table.
    fn Java_io_coldframe_spark_Native_closeTable(_, table: jlong) {
        TABLES.remove(table);
        Ok(())
    }

    /// Begins to read a task.
    fn Java_io_coldframe_spark_Native_read(env, task: JByteArray<'_>) -> jlong {
        let task = env.convert_byte_array(&task)?;
        let reader = Reader::new(task::Task::from_bytes(&task)?)?;
        Ok(READERS.add(Mutex::new(reader)))
    }

    /// The next batch, as [`layout`] writes it, or null at the end. The batch stays in memory until it is
    /// released.
    fn Java_io_coldframe_spark_Native_next(env, number: jlong) -> Bytes {
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
    }

    /// The file of a reader's newest batch, as [`Reader::new_file`] writes it; null if it is that of the batch before.
    fn Java_io_coldframe_spark_Native_newFile(env, number: jlong) -> Bytes {
        let of = READERS.get(number)?;
        let file = locked(&of).new_file();
        text(env, file.as_deref())
    }

    /// Frees a batch; its addresses become invalid.
    fn Java_io_coldframe_spark_Native_release(_, batch: jlong) {
        BATCHES.remove(batch);
        Ok(())
    }

    /// A reader's counts, in the order of [`crate::reader::Counts`].
    fn Java_io_coldframe_spark_Native_counts(env, number: jlong) -> Bytes {
        let of = READERS.get(number)?;
        let counts = locked(&of).counts().to_longs();
        longs(env, &counts)
    }

    /// Frees a reader.
    fn Java_io_coldframe_spark_Native_closeReader(_, number: jlong) {
        READERS.remove(number);
        Ok(())
    }

    /// The numbers of open tables, readers and batches, for tests of leaks.
    fn Java_io_coldframe_spark_Native_held(env) -> Bytes {
        let open = [TABLES.len(), READERS.len(), BATCHES.len()];
        let open = open.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        longs(env, &open)
    }
}
