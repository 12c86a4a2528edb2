"""The layout of an Iceberg table, as stated by its entry in tables.toml.

    [tables.sales.iceberg]
    partition_by = ["months(sold_at)", "bucket(16, id)", "region"]    # default: the directories' keys
    sort_by = ["region", "sold_at desc nulls last"]                   # for later writers
    target_file_size = "512m"
    format_version = 2

Terms are written as in Spark's SQL, and stored under Iceberg's names of transforms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from coldframe._coldframe import SchemaError
from coldframe.byte_size import byte_size

_PLAIN = {
    name: name.removesuffix("s")
    for name in ("identity", "year", "years", "month", "months", "day", "days", "hour", "hours")
}
_WITH_NUMBER = frozenset({"bucket", "truncate"})
_CALL = re.compile(r"(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?(.+?)\s*\)\Z")
_ORDER = re.compile(r"(.+?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\Z", re.IGNORECASE)
_MAX_NUMBER = (1 << 31) - 1
"""Iceberg stores the number of a transform as an int."""


@dataclass(frozen=True)
class Term:
    """A column, or a transform of it."""

    column: str
    transform: str = "identity"
    """The transform in the form of Iceberg's metadata: `day`, `bucket[16]`."""

    def __str__(self) -> str:
        name, _, number = self.transform.rstrip("]").partition("[")
        if name == "identity":
            return self.column
        return f"{name}({number}, {self.column})" if number else f"{name}s({self.column})"


@dataclass(frozen=True)
class SortTerm:
    """A term of the sort order."""

    term: Term
    is_descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class IcebergLayout:
    """The settings of an entry; None if unset."""

    partition_by: tuple[Term, ...] | None = None
    sort_by: tuple[SortTerm, ...] | None = None
    file_bytes: int | None = None
    format_version: int | None = None

    def divided_by(self, keys: Iterable[str]) -> tuple[Term, ...]:
        """The partition terms whose columns are not keys of directories."""
        constant = {key.lower() for key in keys}
        return tuple(term for term in self.partition_by or () if term.column.lower() not in constant)

    def renamed(self, name_of: Callable[[str], str]) -> IcebergLayout:
        """The layout with renamed columns."""

        def term(old: Term) -> Term:
            return replace(old, column=name_of(old.column))

        partitions, sorts = self.partition_by, self.sort_by
        return replace(
            self,
            partition_by=None if partitions is None else tuple(map(term, partitions)),
            sort_by=None if sorts is None else tuple(replace(sort, term=term(sort.term)) for sort in sorts),
        )


def iceberg_layout(entry: object) -> IcebergLayout:
    """Parses the part `iceberg` of an entry; raises SchemaError."""
    if not isinstance(entry, Mapping):
        raise SchemaError("iceberg: expected a table of options")
    known = ("partition_by", "sort_by", "target_file_size", "format_version")
    if unknown := sorted(set(entry) - set(known)):
        raise SchemaError(f"iceberg: expected {', '.join(known)}, found {', '.join(unknown)}")
    partitions, sorts = (_texts(name, entry.get(name)) for name in ("partition_by", "sort_by"))
    version = entry.get("format_version")
    if version not in (None, 2, 3) or isinstance(version, bool):
        raise SchemaError(f"iceberg: format_version: expected 2 or 3, found {version!r}")
    return IcebergLayout(
        None if partitions is None else tuple(map(_term, partitions)),
        None if sorts is None else tuple(map(_sort_term, sorts)),
        _file_bytes(entry.get("target_file_size")),
        version,
    )


def _texts(name: str, given: object) -> Sequence[str] | None:
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        raise SchemaError(f"iceberg: {name}: expected a list of texts, found {given!r}")
    return given


def _file_bytes(given: object) -> int | None:
    if given is None:
        return None
    try:
        return byte_size(str(given))
    except ValueError as wrong:
        raise SchemaError(f"iceberg: target_file_size: {wrong}") from wrong


def _term(text: str) -> Term:
    """`days(ts)`, `bucket(16, id)`, `region`."""
    call = _CALL.match(text.strip())
    if call is None:
        if not text.strip() or ("(" in text and _column(text) == text.strip()):
            raise SchemaError(f"iceberg: expected a column or transform(column), found {text!r}")
        return Term(_column(text))
    name, number, column = call[1].lower(), call[2], _column(call[3])
    if name == "void":
        raise SchemaError(f"iceberg: {text}: void is only for dropped partition fields; leave the term out")
    if name in _PLAIN and number is None:
        return Term(column, _PLAIN[name])
    if name in _WITH_NUMBER and number is not None and 0 < int(number) <= _MAX_NUMBER:
        return Term(column, f"{name}[{int(number)}]")
    raise SchemaError(
        "iceberg: expected years, months, days or hours(column), bucket(number, column), "
        f"truncate(width, column) or a column, found {text!r}"
    )


def _column(text: str) -> str:
    text = text.strip()
    is_quoted = len(text) > 2 and text[0] == text[-1] == "`"
    return text[1:-1].replace("``", "`") if is_quoted else text


def _sort_term(text: str) -> SortTerm:
    """`region`, `sold_at desc nulls first`. By default, nulls are first in ascending order, as in Spark."""
    match = _ORDER.match(text.strip())
    if match is None:
        raise SchemaError(f"iceberg: sort_by: expected a column or transform(column), found {text!r}")
    is_descending = (match[2] or "").lower() == "desc"
    nulls = (match[3] or ("last" if is_descending else "first")).lower()
    return SortTerm(_term(match[1]), is_descending, nulls == "first")
