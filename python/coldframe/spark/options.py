"""The options of the Spark formats, as `coldframe::load` in Rust reads them for the JVM's connector, too."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from coldframe._coldframe import load_options, save_options


@dataclass(frozen=True)
class ReadOptions:
    """What a `load()` asks for."""

    paths: list[str]
    format: str | None
    columns: list[str] | None
    filter: str | None
    on_error: str
    damage: str | None
    split_bytes: int
    batch_rows: int
    verify_checksums: bool
    unify: bool
    """The columns of all files, for which planning opens each; else those of the first."""
    storage_options: Mapping[str, str] = field(repr=False)
    keys: Mapping[str, bytes] = field(repr=False)
    options: Mapping[str, Any]

    def with_schema(self, schema: pa.Schema) -> ReadOptions:
        """The same with the types of files that do not know their own."""
        return replace(self, options={**self.options, "schema": schema})


@dataclass(frozen=True)
class WriteOptions:
    """What a `save()` asks for."""

    path: str
    format: str
    storage_options: Mapping[str, str] = field(repr=False)
    options: Mapping[str, Any]


def read_options(given: Mapping[str, str], format: str | None) -> ReadOptions:
    """Parses the options of a reader. `format`: that of the Spark format's name, None for `coldframe`."""
    return ReadOptions(**load_options(dict(given), format))


def write_options(given: Mapping[str, str], format: str | None) -> WriteOptions:
    """Parses the options of a writer. `format`: that of the Spark format's name, None for `coldframe`."""
    return WriteOptions(**save_options(dict(given), format))


def encode_schema(schema: Any) -> str:
    """A schema as an option's text."""
    return "arrow:" + base64.b64encode(pa.schema(schema).serialize()).decode("ascii")
