//! The native methods of `io.coldframe.spark.NativeStream`.

#![expect(unsafe_code, reason = "the JVM finds native methods by unmangled names")]

use std::sync::Mutex;

use jni::objects::JByteArray;
use jni::sys::{jboolean, jlong};

use crate::handles::{Handles, locked};
use crate::native::{Bytes, bytes, natives};
use crate::stream::Stream;

static STREAMS: Handles<Mutex<Stream>> = Handles::new("stream");

natives! {
    /// Opens a stream by its options and columns.
    fn Java_io_coldframe_spark_NativeStream_open(env, request: JByteArray<'_>) -> jlong {
        let request = env.convert_byte_array(&request)?;
        Ok(STREAMS.add(Mutex::new(Stream::open(&request)?)))
    }

    /// Adds entries of the log; returns the number of the newest entry.
    fn Java_io_coldframe_spark_NativeStream_recall(env, number: jlong, entries: JByteArray<'_>) -> jlong {
        let entries = env.convert_byte_array(&entries)?;
        let of = STREAMS.get(number)?;
        let mut stream = locked(&of);
        stream.recall(&entries)?;
        Ok(stream.last())
    }

    /// The next entry, or null if there is no new file.
    fn Java_io_coldframe_spark_NativeStream_fresh(env, number: jlong, unlimited: jboolean) -> Bytes {
        let of = STREAMS.get(number)?;
        let entry = locked(&of).fresh(unlimited)?;
        entry.map_or_else(|| Ok(Bytes::default()), |entry| bytes(env, &entry))
    }

    /// All entries so far.
    fn Java_io_coldframe_spark_NativeStream_all(env, number: jlong) -> Bytes {
        let of = STREAMS.get(number)?;
        let all = locked(&of).all();
        bytes(env, &all)
    }

    /// Lists the files a last time.
    fn Java_io_coldframe_spark_NativeStream_freeze(_, number: jlong) {
        let of = STREAMS.get(number)?;
        locked(&of).freeze()?;
        Ok(())
    }

    /// The tasks of a batch, as [`crate::plan::planned`] writes them.
    fn Java_io_coldframe_spark_NativeStream_plan(env, number: jlong, from: jlong, to: jlong, request: JByteArray<'_>) -> Bytes {
        let request = env.convert_byte_array(&request)?;
        let of = STREAMS.get(number)?;
        let planned = locked(&of).plan(from, to, &request)?;
        bytes(env, &planned.to_bytes()?)
    }

    /// Frees a stream.
    fn Java_io_coldframe_spark_NativeStream_close(_, number: jlong) {
        STREAMS.remove(number);
        Ok(())
    }
}
