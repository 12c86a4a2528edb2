//! The native methods of `io.coldframe.spark.NativeFile`.

#![expect(unsafe_code, reason = "the JVM finds native methods by unmangled names")]

use std::sync::Mutex;

use coldframe::Error;
use jni::objects::JByteArray;
use jni::sys::{jint, jlong};

use crate::handles::{Handles, locked};
use crate::native::{Bytes, bytes, natives};
use crate::written::Written;

static FILES: Handles<Mutex<Written>> = Handles::new("file");

natives! {
    /// Checks a request; returns the ending of the names of its files.
    fn Java_io_coldframe_spark_NativeFile_check(env, request: JByteArray<'_>) -> Bytes {
        let request = env.convert_byte_array(&request)?;
        bytes(env, Written::check(&request)?.as_bytes())
    }

    /// Begins a file.
    fn Java_io_coldframe_spark_NativeFile_begin(env, request: JByteArray<'_>) -> jlong {
        let request = env.convert_byte_array(&request)?;
        Ok(FILES.add(Mutex::new(Written::begin(&request)?)))
    }

    /// Adds rows.
    fn Java_io_coldframe_spark_NativeFile_add(env, number: jlong, rows: JByteArray<'_>, count: jint) {
        let rows = env.convert_byte_array(&rows)?;
        let count = usize::try_from(count).map_err(|_| Error::invalid("a negative number of rows"))?;
        let of = FILES.get(number)?;
        locked(&of).add(&rows, count)?;
        Ok(())
    }

    /// Completes a file, whose last bytes [`Written::piece`] then returns.
    fn Java_io_coldframe_spark_NativeFile_finish(_, number: jlong) {
        let of = FILES.get(number)?;
        locked(&of).finish()?;
        Ok(())
    }

    /// The next bytes of a file; none if there are no more for now.
    fn Java_io_coldframe_spark_NativeFile_piece(env, number: jlong) -> Bytes {
        let of = FILES.get(number)?;
        let piece = locked(&of).piece();
        bytes(env, &piece)
    }

    /// Frees a file.
    fn Java_io_coldframe_spark_NativeFile_close(_, number: jlong) {
        FILES.remove(number);
        Ok(())
    }
}
