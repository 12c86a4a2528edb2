"""Arguments of `open`. `scan` and Spark's sources take these arguments, too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from coldframe._coldframe import RawOpening
from coldframe.arrow import pa
from coldframe.errors import unsupported

# Keys of encrypted files by name, or a function that returns the key for a name, or None if it has none.
Keys = Mapping[str, bytes | str] | Callable[[str], bytes | str | None]


@dataclass(frozen=True)
class OpenArguments:
    """All arguments of `open` except the source."""

    format: str | None = None
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)  # secrets stay out of logs
    verify_checksums: bool = True
    keys: Keys | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    microseconds: bool = False
    """Whether the default unit of timestamps is the microsecond: Spark has nothing finer."""

    @cached_property
    def raw(self) -> RawOpening:
        """The arguments in the form that Rust takes."""
        options = dict(self.options)
        return RawOpening(
            format=self.format,
            storage_options=self.storage_options,
            verify_checksums=self.verify_checksums,
            keys=self.keys,
            schema=options.pop("schema", None),
            options=options,
            microseconds=self.microseconds,
        )

    def with_options(self, more: Mapping[str, Any]) -> OpenArguments:
        """The arguments with further options of the format."""
        return replace(self, options={**self.options, **more})

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "raw"}


def threads_of(arguments: OpenArguments) -> int:
    """The number of threads that decode a file opened with these arguments."""
    given = arguments.options.get("threads")
    return given if isinstance(given, int) and given > 0 else default_threads()


def default_threads() -> int:
    """Pyarrow's number of threads, or 1 in a Spark task."""
    spark = sys.modules.get("pyspark.taskcontext")
    if spark is not None and spark.TaskContext.get() is not None:
        return 1  # Spark gives each core a task of its own
    return int(pa.cpu_count())


def check_plain(options: Mapping[str, Any], what: str) -> None:
    """Refuses string views for a table whose column types a metastore or catalog defines."""
    if options.get("strings", "plain") != "plain":
        raise unsupported(f'strings="view" of {what}: its column types are fixed by its definition')
