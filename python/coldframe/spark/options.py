"""The options of the Spark formats. `coldframe::load` in Rust parses them, also for the JVM's connector."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from coldframe._coldframe import load_options, save_options
from coldframe.errors import SchemaError
from coldframe.json_input import parse_json


@dataclass(frozen=True)
class ReadOptions:
    """The options of a `load()`."""

    paths: list[str]
    selection: Mapping[str, str]
    """The options that select some of the files (`pathGlobFilter` ..), by names in lower case."""
    partitioned: bool
    """Whether the names of directories are columns."""
    ignore_missing: bool
    """Whether files that are gone when they are read have no rows; otherwise they are an error."""
    format: str | None
    columns: list[str] | None
    filter: str | None
    on_error: str
    damage: str | None
    split_bytes: int
    batch_rows: int
    verify_checksums: bool
    unify: bool
    """Whether to unify the columns of all files, which opens every file; otherwise the first file decides."""
    storage_options: Mapping[str, str] = field(repr=False)
    keys: Mapping[str, bytes] = field(repr=False)
    options: Mapping[str, Any]
    of_table: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `coldframe.iceberg_table`."""
    as_of: Mapping[str, str] = field(default_factory=dict)
    """The text of `as_of`: tables of Hudi and HBase have such an option, too, with texts of their own."""

    @property
    def of_files(self) -> Mapping[str, Any]:
        """The options of a source that is not an Iceberg table."""
        if not self.as_of:
            return self.options
        return {**self.options, **load_options({"path": self.paths[0], **self.as_of}, self.format)["options"]}

    @property
    def only_of_iceberg(self) -> list[str]:
        """The options that only Iceberg tables have."""
        return [name for name in self.of_table if name != "as_of"]

    def with_schema(self, schema: pa.Schema) -> ReadOptions:
        """The same options, with the types of files that do not store their types."""
        return replace(self, options={**self.options, "schema": schema})


@dataclass(frozen=True)
class WriteOptions:
    """The options of a `save()`."""

    path: str
    format: str
    storage_options: Mapping[str, str] = field(repr=False)
    options: Mapping[str, Any]


def read_options(given: Mapping[str, str], format: str | None) -> ReadOptions:
    """Parses the options of a reader.

    `format`: the file format in the name of the Spark format (`orc` in `coldframe_orc`), or None.
    """
    of_table = {name: text for name, text in given.items() if _is_of_iceberg(name.lower(), text)}
    of_files = {name: text for name, text in given.items() if name not in of_table}
    read = {name.lower(): _of_iceberg(name.lower(), text) for name, text in of_table.items()}
    moment = {name.lower(): text for name, text in of_table.items() if name.lower() == "as_of"}
    return replace(ReadOptions(**load_options(of_files, format)), of_table=read, as_of=moment)


def _is_of_iceberg(name: str, text: str) -> bool:
    # Spark's catalog calls the path of a table `location`, too.
    return name in _OF_ICEBERG and (name != "location" or text.lstrip().startswith("{"))


def _of_iceberg(name: str, text: str) -> Any:
    try:
        return _OF_ICEBERG[name](text)
    except ValueError as reason:
        raise SchemaError(f"option {name}: {reason}") from reason


def _moment(text: str) -> int | dt.datetime:
    if text.lstrip("-").isdigit():
        return int(text)
    return dt.datetime.fromisoformat(text.removesuffix("Z") + "+00:00" if text.endswith("Z") else text)


def _prefixes(text: str) -> dict[str, str]:
    prefixes = parse_json(text)
    if not isinstance(prefixes, dict):
        raise ValueError(f"expected a JSON object of prefixes and their replacements, found {text!r}")
    return {str(old): str(new) for old, new in prefixes.items()}


_OF_ICEBERG: Mapping[str, Callable[[str], Any]] = {
    "snapshot_id": int,
    "as_of": _moment,
    "location": _prefixes,
}
"""The options of Iceberg tables and the parsers of their text."""


def write_options(given: Mapping[str, str], format: str | None) -> WriteOptions:
    """Parses the options of a writer.

    `format`: the file format in the name of the Spark format (`orc` in `coldframe_orc`), or None.
    """
    return WriteOptions(**save_options(dict(given), format))


def encode_schema(schema: Any) -> str:
    """A schema as an option's text."""
    return "arrow:" + base64.b64encode(pa.schema(schema).serialize()).decode("ascii")
