//! The native methods of `io.coldframe.spark.NativeStream`, written like the methods in [`crate::entry`].

#![expect(unsafe_code, reason = "the JVM finds native methods by unmangled names")]

use std::sync::Mutex;

use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass};
use jni::sys::{jboolean, jlong};

use crate::entry::{Bytes, bytes};
use crate::failure::{Failure, Throw};
use crate::handles::{Handles, locked};
use crate::stream::Stream;

static STREAMS: Handles<Mutex<Stream>> = Handles::new("stream");

/// Opens a stream by its options and columns.
// SAFETY: no other symbol has this name, which JNI gives to a method of our class.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeStream_open<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    request: JByteArray<'a>,
) -> jlong {
    env.with_env(|env| {
        let request = env.convert_byte_array(&request)?;
        Ok::<_, Failure>(STREAMS.add(Mutex::new(Stream::open(&request)?)))
    })
    .resolve::<Throw>()
}

/// Adds entries of the log; returns the number of the newest entry.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeStream_recall<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
    entries: JByteArray<'a>,
) -> jlong {
    env.with_env(|env| {
        let entries = env.convert_byte_array(&entries)?;
        let of = STREAMS.get(number)?;
        let mut stream = locked(&of);
        stream.recall(&entries)?;
        Ok::<_, Failure>(stream.last())
    })
    .resolve::<Throw>()
}

/// The next entry, or null if there is no new file.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeStream_fresh<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
    unlimited: jboolean,
) -> Bytes {
    env.with_env(|env| {
        let of = STREAMS.get(number)?;
        let entry = locked(&of).fresh(unlimited)?;
        entry.map_or_else(|| Ok(Bytes::default()), |entry| bytes(env, &entry))
    })
    .resolve::<Throw>()
}

/// All entries so far.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeStream_all<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
) -> Bytes {
    env.with_env(|env| {
        let of = STREAMS.get(number)?;
        let all = locked(&of).all();
        bytes(env, &all)
    })
    .resolve::<Throw>()
}

/// Lists the files a last time.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeStream_freeze<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
) {
    env.with_env(|_| {
        let of = STREAMS.get(number)?;
        locked(&of).freeze()?;
        Ok::<_, Failure>(())
    })
    .resolve::<Throw>();
}

/// The tasks of a batch, as [`crate::plan::planned`] writes them.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeStream_plan<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
    from: jlong,
    to: jlong,
    request: JByteArray<'a>,
) -> Bytes {
    env.with_env(|env| {
        let request = env.convert_byte_array(&request)?;
        let of = STREAMS.get(number)?;
        let planned = locked(&of).plan(from, to, &request)?;
        bytes(env, &planned.to_bytes()?)
    })
    .resolve::<Throw>()
}

/// Frees a stream.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeStream_close<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
) {
    env.with_env(|_| {
        STREAMS.remove(number);
        Ok::<_, Failure>(())
    })
    .resolve::<Throw>();
}
