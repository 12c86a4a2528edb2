"""The options that formats declare in `coldframe::options` in Rust."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from coldframe._coldframe import formats

_FORMATS = formats()

TYPELESS = frozenset(name for name, about in _FORMATS.items() if about["capabilities"]["needs_schema"])
"""Formats whose files store only the number of their columns."""


def format_names() -> list[str]:
    """The names of the formats."""
    return list(_FORMATS)


@cache
def declared(*, write: bool = False) -> Mapping[str, list[Mapping[str, Any]]]:
    """Every option of reading or of writing by name, with the declaration of each format that has it."""
    options: dict[str, list[Mapping[str, Any]]] = {}
    for about in _FORMATS.values():
        for name, option in about["write" if write else "open"].items():
            options.setdefault(name, []).append(option)
    return options


def choices_of(name: str, *, write: bool = False) -> list[str]:
    """The values that an option can have in any format; for a flag, true and false."""
    values: dict[str, None] = {}
    for option in declared(write=write).get(name, ()):
        values.update(dict.fromkeys(["true", "false"] if option["kind"] == "flag" else option["choices"]))
    return list(values)
