//! Errors as Java exceptions: classes of `io.coldframe` with the names of Python's exceptions.

use std::any::Any;

use coldframe::{Error, ErrorKind};
use jni::errors::ErrorPolicy;
use jni::objects::{JThrowable, JValue};
use jni::strings::JNIString;
use jni::{Env, jni_sig, jni_str};

/// The failure of a native method.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of coldframe.
    Ours(Error),
    /// An error of JNI, or a pending exception.
    Java(jni::errors::Error),
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Ours(e)
    }
}

impl From<jni::errors::Error> for Failure {
    fn from(e: jni::errors::Error) -> Self {
        Self::Java(e)
    }
}

/// Throws the failure of a native method, or its panic.
#[derive(Debug)]
pub(crate) struct Throw;

impl<T: Default> ErrorPolicy<T, Failure> for Throw {
    type Captures<'unowned: 'native, 'native> = ();

    fn on_error<'unowned: 'native, 'native>(
        env: &mut Env<'unowned>,
        _: &mut (),
        failure: Failure,
    ) -> jni::errors::Result<T> {
        if env.exception_check() {
            return Ok(T::default());
        }
        match failure {
            Failure::Ours(e) if e.is_damage() => throw_corrupt(env, &e)?,
            Failure::Ours(e) => throw(env, class_of(&e), &e.to_string()),
            Failure::Java(e) => throw(env, "java/lang/IllegalStateException", &e.to_string()),
        }
        Ok(T::default())
    }

    fn on_panic<'unowned: 'native, 'native>(
        env: &mut Env<'unowned>,
        _: &mut (),
        payload: Box<dyn Any + Send>,
    ) -> jni::errors::Result<T> {
        let text = match payload.downcast::<String>() {
            Ok(text) => *text,
            Err(other) => {
                let text = other.downcast_ref::<&'static str>().map_or("no message", |text| text);
                text.to_owned()
            }
        };
        throw(env, "io/coldframe/ColdframeError", &format!("a bug in coldframe: {text}"));
        Ok(T::default())
    }
}

/// The class for an error that is not damage.
fn class_of(e: &Error) -> &'static str {
    match e.kind() {
        ErrorKind::Unsupported(_) => "io/coldframe/UnsupportedError",
        ErrorKind::Schema(_) => "io/coldframe/SchemaError",
        ErrorKind::LimitExceeded { .. } => "io/coldframe/LimitError",
        ErrorKind::KeyUnavailable(_) => "io/coldframe/KeyUnavailableError",
        ErrorKind::NotFound(_) => "io/coldframe/NotFoundError",
        ErrorKind::InvalidArgument(_) => "java/lang/IllegalArgumentException",
        _ => "io/coldframe/ColdframeError",
    }
}

/// Throws an exception. `throw_new` also returns an error, which is ignored, because Java gets the exception.
fn throw(env: &mut Env<'_>, class: &str, message: &str) {
    drop(env.throw_new(JNIString::new(class), JNIString::new(message)));
}

fn throw_corrupt(env: &mut Env<'_>, e: &Error) -> jni::errors::Result<()> {
    let message = env.new_string(e.to_string())?;
    let path = env.new_string(e.path().unwrap_or_default())?;
    let structure = env.new_string(e.structure())?;
    let reason = env.new_string(e.reason())?;
    let offset = e.offset().and_then(|offset| i64::try_from(offset).ok()).unwrap_or(-1);
    let values = [
        JValue::from(&message),
        JValue::from(&path),
        JValue::from(offset),
        JValue::from(&structure),
        JValue::from(&reason),
    ];
    let made = env.new_object(
        jni_str!("io/coldframe/CorruptFileError"),
        jni_sig!("(Ljava/lang/String;Ljava/lang/String;JLjava/lang/String;Ljava/lang/String;)V"),
        &values,
    )?;
    let made = env.cast_local::<JThrowable<'_>>(made)?;
    drop(env.throw(made));
    Ok(())
}
