"""The errors of the package."""

from __future__ import annotations

from coldframe._coldframe import (
    ColdframeError,
    CorruptFileError,
    KeyUnavailableError,
    NotFoundError,
    SchemaError,
    UnsupportedError,
)

__all__ = [
    "AmbiguousDialectWarning",
    "ColdframeError",
    "CorruptFileError",
    "EncryptedColumnWarning",
    "ExtensionTypeWarning",
    "KeyUnavailableError",
    "NotFoundError",
    "PartialTableWarning",
    "SchemaError",
    "UnsupportedError",
    "unsupported",
]


class AmbiguousDialectWarning(UserWarning):
    """The bytes of a Redfile do not tell its dialect, and one was assumed. The option `dialect` names it."""


class EncryptedColumnWarning(UserWarning):
    """Columns of a file are encrypted and no key was given: they read as their mask has left them."""


class ExtensionTypeWarning(UserWarning):
    """A column of an extension type is written as its storage: the file does not say that it is more."""


class PartialTableWarning(UserWarning):
    """Parts of a table are not here and may be elsewhere: a Kudu server has some of a table's tablets."""


def unsupported(what: str) -> UnsupportedError:
    """An UnsupportedError with the attribute that the compiled side gives it too."""
    error = UnsupportedError(what)
    error.what = what
    return error
