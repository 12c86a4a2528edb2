//! The native methods of `io.coldframe.spark.NativeFile`, written like the methods in [`crate::entry`].

#![expect(unsafe_code, reason = "the JVM finds native methods by unmangled names")]

use std::sync::Mutex;

use coldframe::Error;
use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass};
use jni::sys::{jint, jlong};

use crate::entry::{Bytes, bytes};
use crate::failure::{Failure, Throw};
use crate::handles::{Handles, locked};
use crate::written::Written;

static FILES: Handles<Mutex<Written>> = Handles::new("file");

/// Checks a request; returns the ending of the names of its files.
// SAFETY: no other symbol has this name, which JNI gives to a method of our class.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeFile_check<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    request: JByteArray<'a>,
) -> Bytes {
    env.with_env(|env| {
        let request = env.convert_byte_array(&request)?;
        bytes(env, Written::check(&request)?.as_bytes())
    })
    .resolve::<Throw>()
}

/// Begins a file.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeFile_begin<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    request: JByteArray<'a>,
) -> jlong {
    env.with_env(|env| {
        let request = env.convert_byte_array(&request)?;
        Ok::<_, Failure>(FILES.add(Mutex::new(Written::begin(&request)?)))
    })
    .resolve::<Throw>()
}

/// Adds rows.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeFile_add<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
    rows: JByteArray<'a>,
    count: jint,
) {
    env.with_env(|env| {
        let rows = env.convert_byte_array(&rows)?;
        let count = usize::try_from(count).map_err(|_| Error::invalid("a negative number of rows"))?;
        let of = FILES.get(number)?;
        locked(&of).add(&rows, count)?;
        Ok::<_, Failure>(())
    })
    .resolve::<Throw>();
}

/// Completes a file, whose last bytes [`Written::piece`] then returns.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeFile_finish<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
) {
    env.with_env(|_| {
        let of = FILES.get(number)?;
        locked(&of).finish()?;
        Ok::<_, Failure>(())
    })
    .resolve::<Throw>();
}

/// The next bytes of a file; none if there are no more for now.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeFile_piece<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
) -> Bytes {
    env.with_env(|env| {
        let of = FILES.get(number)?;
        let piece = locked(&of).piece();
        bytes(env, &piece)
    })
    .resolve::<Throw>()
}

/// Frees a file.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Java_io_coldframe_spark_NativeFile_close<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
) {
    env.with_env(|_| {
        FILES.remove(number);
        Ok::<_, Failure>(())
    })
    .resolve::<Throw>();
}
