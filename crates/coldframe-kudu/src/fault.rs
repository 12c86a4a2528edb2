//! What cannot be read of a directory, as long as nobody knows whether it may be passed over.

use std::ops::Range;

use coldframe_core::{Damage, Error, ErrorKind};

/// A part of a directory that cannot be read: damaged, or by a version, algorithm or feature that this reader does not know.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// What is recorded of it where it is passed over.
    pub(crate) damage: Damage,
    /// Whether a plain read is refused for it, and nothing is said to be damaged.
    unsupported: bool,
}

impl Fault {
    /// Whether an error costs only the part of which it speaks.
    pub(crate) fn is(e: &Error) -> bool {
        e.is_damage() || matches!(e.kind(), ErrorKind::Unsupported(_))
    }

    /// The fault that an error tells of, of which [`Fault::is`] holds.
    pub(crate) fn from_error(e: &Error, bytes: Range<u64>) -> Self {
        let unsupported = matches!(e.kind(), ErrorKind::Unsupported(_));
        Self { damage: Damage::from_error(e, bytes, None), unsupported }
    }

    /// The error with which a plain read ends.
    pub(crate) fn to_error(&self) -> Error {
        self.as_error(&self.damage)
    }

    /// The same where `damage` says more of what it is about.
    pub(crate) fn as_error(&self, damage: &Damage) -> Error {
        if !self.unsupported {
            return damage.to_error();
        }
        Error::unsupported(damage.reason.clone()).at(damage.bytes.start).within(damage.structure.clone())
    }
}

impl From<Damage> for Fault {
    fn from(damage: Damage) -> Self {
        Self { damage, unsupported: false }
    }
}
