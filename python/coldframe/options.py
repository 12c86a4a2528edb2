"""The options that formats declare: see `coldframe::options` in Rust, which has them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from coldframe._coldframe import formats

__all__ = ["TYPELESS", "choices_of", "declared"]

TYPELESS = frozenset(name for name, about in formats().items() if about["capabilities"]["needs_schema"])
"""Formats that know nothing of their columns but how many there are."""


@cache
def declared(*, write: bool = False) -> Mapping[str, list[Mapping[str, Any]]]:
    """Every option of reading or of writing by its name: what each format that has it declares."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for about in formats().values():
        for name, option in about["write" if write else "open"].items():
            found.setdefault(name, []).append(option)
    return found


def choices_of(name: str, *, write: bool = False) -> list[str]:
    """The words that an option may be in any format; of a flag true and false."""
    words: dict[str, None] = {}
    for option in declared(write=write).get(name, ()):
        words.update(dict.fromkeys(["true", "false"] if option["kind"] == "flag" else option["choices"]))
    return list(words)
