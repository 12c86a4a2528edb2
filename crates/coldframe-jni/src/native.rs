//! How native methods are defined, and what they return.

use jni::Env;
use jni::sys::{jbyteArray, jlongArray};

use crate::failure::Failure;

/// Defines native methods, which the JVM finds by their names: `Java_`, the class and the method. A body has the
/// environment and the method's arguments; its error becomes an exception in Java.
macro_rules! natives {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($env:pat $(, $argument:ident: $kind:ty)*) $(-> $returned:ty)? $body:block
    )*) => {$(
        $(#[$doc])*
        // SAFETY: no other symbol has this name, which JNI gives to a method of our class.
        #[unsafe(no_mangle)]
        pub(crate) extern "system" fn $name(
            mut env: jni::EnvUnowned<'_>,
            _: jni::objects::JClass<'_>,
            $($argument: $kind,)*
        ) $(-> $returned)? {
            let answer = env.with_env(|$env| -> Result<_, crate::failure::Failure> { $body });
            answer.resolve::<crate::failure::Throw>()
        }
    )*};
}
pub(crate) use natives;

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

pub(crate) fn longs(env: &mut Env<'_>, of: &[i64]) -> Result<Bytes, Failure> {
    let array = env.new_long_array(of.len())?;
    array.set_region(env, 0, of)?;
    let array: jlongArray = array.into_raw();
    Ok(Returned(array.cast()))
}
