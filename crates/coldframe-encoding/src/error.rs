//! The error type of all crates: what is wrong, where, and who can do something about it.
//!
//! An error is created where the fault is detected. On its way up, callers add the absolute offset, the
//! structure being read (`row group 3: key buffer`), and finally the path.

use std::fmt;

/// Result of every fallible function in the workspace.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What is wrong. The variants differ in who can do something about it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The source failed; a retry may succeed.
    Io(std::io::Error),
    /// The bytes violate the format. The message has the expected and the actual content.
    Corrupt(String),
    /// A stored checksum differs from the one computed over the bytes.
    Checksum {
        /// The algorithm's name.
        algorithm: &'static str,
        /// As stored in the file.
        expected: u32,
        /// As computed.
        actual: u32,
    },
    /// The content is valid in the format, or with another option, but not supported by this reader or
    /// writer.
    Unsupported(String),
    /// The file asks for more than [`crate::Limits`] allows.
    LimitExceeded {
        /// What would have been allocated or visited.
        what: &'static str,
        /// The requested amount.
        asked: u64,
        /// The allowed amount.
        limit: u64,
        /// The option that raises the limit.
        option: &'static str,
    },
    /// The values of the requested rows exceed the maximum of one Arrow array. This is not damage: the caller
    /// must request fewer rows.
    BatchTooLong {
        /// The values that are too long: `the values of a batch`.
        what: &'static str,
        /// The number of bytes or elements.
        asked: u64,
    },
    /// The caller passed something invalid.
    InvalidArgument(String),
    /// The given or requested schema does not fit the data.
    Schema(String),
    /// The data is encrypted and no matching key was given.
    KeyUnavailable(String),
    /// The file, table or column does not exist.
    NotFound(String),
    /// The caller's own object (a Python file, a callback) failed, or the caller asked to stop.
    Foreign(Box<dyn std::error::Error + Send + Sync>),
}

/// An error with the place in the file where it was detected. It is one pointer wide, so that results stay
/// small.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    offset: Option<u64>,
    /// The structures that were being read, innermost first.
    structure: Vec<String>,
    path: Option<String>,
}

const _: () = assert!(size_of::<Error>() == size_of::<usize>());

impl Error {
    /// A new error without a place. This is not inlined, so that the loops of decoders stay small.
    #[cold]
    #[inline(never)]
    pub fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, offset: None, structure: Vec::new(), path: None }))
    }

    /// The bytes violate the format; `message` has the expected and the actual content.
    #[cold]
    #[inline(never)]
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt(message.into()))
    }

    /// An error for content that is valid, but not supported.
    #[cold]
    #[inline(never)]
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported(what.into()))
    }

    /// An error for an invalid argument of the caller.
    #[cold]
    #[inline(never)]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument(message.into()))
    }

    /// An error for a schema that does not fit the data.
    #[cold]
    #[inline(never)]
    pub fn schema(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Schema(message.into()))
    }

    /// An error for something that does not exist.
    #[cold]
    #[inline(never)]
    pub fn not_found(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound(what.into()))
    }

    /// An error for values of a batch that are too long for one array.
    #[cold]
    #[inline(never)]
    pub fn batch_too_long(what: &'static str, asked: u64) -> Self {
        Self::new(ErrorKind::BatchTooLong { what, asked })
    }

    /// Whether the read may succeed with fewer rows at a time.
    pub fn is_batch_too_long(&self) -> bool {
        matches!(self.0.kind, ErrorKind::BatchTooLong { .. })
    }

    /// Records the absolute offset in the file, unless a more precise one is already known.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Adds an outer frame such as `row group 3` around what is already there.
    #[must_use]
    pub fn within(mut self, structure: impl Into<String>) -> Self {
        self.0.structure.push(structure.into());
        self
    }

    /// Records the file, unless a more precise one is already known. Records no secrets of a URL.
    #[must_use]
    pub fn in_file(mut self, path: impl Into<String>) -> Self {
        self.0.path.get_or_insert_with(|| crate::secrets::shown(&path.into()));
        self
    }

    /// What is wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// What is wrong, by value.
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    /// The absolute offset in the file where the error was detected.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The structures being read, outermost first, such as `row group 3: key buffer`; empty if none was
    /// recorded.
    pub fn structure(&self) -> String {
        let frames: Vec<&str> = self.0.structure.iter().rev().map(String::as_str).collect();
        frames.join(": ")
    }

    /// The path of the file, if it is known.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// What is wrong, without the place.
    pub fn reason(&self) -> String {
        self.0.kind.to_string()
    }

    /// Whether the error is damage of the file's bytes, so that `on_error="skip"` may continue after them. An
    /// exceeded limit is no damage: the bytes may be intact.
    pub fn is_damage(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Corrupt(_) | ErrorKind::Checksum { .. })
    }

    /// Whether the file asks for more than a limit of this reader.
    pub fn is_limit(&self) -> bool {
        matches!(self.0.kind, ErrorKind::LimitExceeded { .. })
    }

    /// Whether the error concerns only the structure in which it arose, because the structure is damaged or
    /// too large. A reader that needs the structure only to save work can then do without it.
    pub fn is_confined(&self) -> bool {
        self.is_damage() || self.is_limit()
    }

    /// Whether something does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self.0.kind, ErrorKind::NotFound(_))
    }

    /// Converts the error for a file to which another file refers: if the file does not exist, that is
    /// damage.
    #[must_use]
    pub fn of_named_file(mut self) -> Self {
        if let ErrorKind::NotFound(what) = &mut self.0.kind {
            let what = std::mem::take(what);
            self.0.kind = ErrorKind::Corrupt(format!("expected a file, found none: {what}"));
        }
        self
    }

    /// Converts the error for a scan with `skip` or `null`: an unknown number or name, or a value outside of
    /// its type, becomes damage, so that the scan can continue.
    #[must_use]
    pub fn as_damage(mut self) -> Self {
        if let ErrorKind::Unsupported(what) | ErrorKind::Schema(what) = &mut self.0.kind {
            self.0.kind = ErrorKind::Corrupt(std::mem::take(what));
        }
        self
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(e) => write!(f, "{e}"),
            Self::Corrupt(m)
            | Self::Unsupported(m)
            | Self::InvalidArgument(m)
            | Self::Schema(m)
            | Self::KeyUnavailable(m)
            | Self::NotFound(m) => f.write_str(m),
            Self::Checksum { algorithm, expected, actual } => {
                write!(f, "{algorithm} mismatch: stored {expected:#010x}, computed {actual:#010x}")
            }
            Self::LimitExceeded { what, asked, limit, option } => {
                write!(
                    f,
                    "{what} asks for {asked}, more than the limit of {limit}; the file may be intact: raise the \
                     limit by the option `{option}`"
                )
            }
            Self::BatchTooLong { what, asked } => {
                write!(f, "{what} are {asked} bytes or elements, more than one Arrow array can hold")
            }
            Self::Foreign(e) => write!(f, "{e}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.0.path {
            write!(f, "{path}: ")?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, "byte {offset}: ")?;
        }
        for frame in self.0.structure.iter().rev() {
            write!(f, "{frame}: ")?;
        }
        write!(f, "{}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            ErrorKind::Io(e) => Some(e),
            ErrorKind::Foreign(e) => Some(e.as_ref()),
            _ => None,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Self {
        Self::new(ErrorKind::Io(e))
    }
}

/// Adds a place to the error of a result.
pub trait ErrorContext<T> {
    /// See [`Error::at`].
    fn at(self, offset: u64) -> Result<T>;
    /// See [`Error::within`]; `structure` is called only if there is an error.
    fn within<S: Into<String>>(self, structure: impl FnOnce() -> S) -> Result<T>;
}

impl<T> ErrorContext<T> for Result<T> {
    fn at(self, offset: u64) -> Result<T> {
        self.map_err(|e| e.at(offset))
    }

    fn within<S: Into<String>>(self, structure: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|e| e.within(structure()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_file_offset_structure_and_reason() {
        let e = Error::corrupt("expected 3 columns, found 4")
            .at(57)
            .at(99)
            .within("key buffer")
            .within("row group 3")
            .in_file("a.rc");
        assert_eq!(e.to_string(), "a.rc: byte 57: row group 3: key buffer: expected 3 columns, found 4");
        assert_eq!(e.structure(), "row group 3: key buffer");
        assert_eq!((e.offset(), e.path()), (Some(57), Some("a.rc")));
    }
}
