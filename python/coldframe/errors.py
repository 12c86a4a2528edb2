"""The errors and warnings of the package."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from coldframe._coldframe import (
    ColdframeError,
    CorruptFileError,
    KeyUnavailableError,
    LimitError,
    NotFoundError,
    SchemaError,
    UnsupportedError,
    shown,
)

__all__ = [
    "AmbiguousCalendarWarning",
    "AmbiguousDialectWarning",
    "ColdframeError",
    "CorruptFileError",
    "EncryptedColumnWarning",
    "ExtensionTypeWarning",
    "KeyUnavailableError",
    "LeftOutWarning",
    "LimitError",
    "NotFoundError",
    "PartialTableWarning",
    "SchemaError",
    "UnsupportedError",
    "WrongIndexWarning",
    "install_hint",
    "unsupported",
    "warn",
]


class AmbiguousCalendarWarning(UserWarning):
    """A file does not state the calendar of days before 1582-10-15, so one was assumed: set `calendar`."""


class AmbiguousDialectWarning(UserWarning):
    """The bytes of a Redfile do not reveal its dialect, so one was assumed: set the option `dialect`."""


class EncryptedColumnWarning(UserWarning):
    """Columns are encrypted and no key was given: they are read with masked values."""


class ExtensionTypeWarning(UserWarning):
    """A column of an extension type is written as its storage: the file does not record the extension."""


class LeftOutWarning(UserWarning):
    """Files of other kinds (text, Parquet) lie among the files of a table, and are left out."""


class PartialTableWarning(UserWarning):
    """Parts of a table are missing, but may be elsewhere: a Kudu server has some of a table's tablets."""


class WrongIndexWarning(UserWarning):
    """The index of a file contradicts its values: the part was read in full, without the index."""


_WARNINGS: Mapping[str, type[UserWarning]] = {
    "ambiguous_calendar": AmbiguousCalendarWarning,
    "ambiguous_dialect": AmbiguousDialectWarning,
    "encrypted_columns": EncryptedColumnWarning,
    "left_out": LeftOutWarning,
    "partial_table": PartialTableWarning,
    "wrong_index": WrongIndexWarning,
}


def warn(path: str, kind: str, text: str) -> None:
    """Warns about a file with the warning class of `kind`. Rust calls this function, too."""
    warnings.warn(f"{shown(path)}: {text}", _WARNINGS[kind], stacklevel=4)


def corrupt(path: str, offset: int, structure: str, reason: str) -> CorruptFileError:
    """A CorruptFileError with the attributes that Rust sets."""
    path = shown(path)
    error = CorruptFileError(f"{path}: byte {offset}: {structure}: {reason}")
    error.path, error.offset, error.structure, error.reason = path, offset, structure, reason
    return error


def install_hint(extra: str) -> str:
    """How to install an extra of this package; for error messages."""
    return (
        f"install the extra `{extra}` of coldframe: pip install '.[{extra}]' in its checkout, "
        f"or 'WHEEL[{extra}]' with the path of its wheel"
    )


def unsupported(what: str) -> UnsupportedError:
    """An UnsupportedError with the attribute that Rust sets."""
    error = UnsupportedError(what)
    error.what = what
    return error
