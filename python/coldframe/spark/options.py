"""The options of the Spark formats: text with keys in lower case, made into what `coldframe.scan` takes."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from coldframe._coldframe import SchemaError, UnsupportedError, parse_option
from coldframe.options import options_of_kind

DEFAULT_SPLIT_BYTES = 128 << 20
DEFAULT_BATCH_ROWS = 16 * 1024
"""Spark takes batches of 8 to 32 thousand rows equally fast; bigger ones are slower."""

SCHEMA_PREFIX = "arrow:"
MODES = {"failfast": "raise", "dropmalformed": "skip"}

_OURS = frozenset(
    {
        "path",
        "paths",
        "columns",
        "filter",
        "mode",
        "damage",
        "split_bytes",
        "batch_rows",
        "format",
        "verify_checksums",
        "unify",
        "mergeschema",
    }
)
_NESTED = ("storage_options", "keys")
"""Mappings that all formats have: as JSON, or key by key as `storage_options.region`."""

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?\Z", re.IGNORECASE)


@dataclass(frozen=True)
class ReadOptions:
    """What a `load()` asks for."""

    paths: tuple[str, ...]
    format: str | None = None
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    on_error: str = "raise"
    damage: str | None = None
    split_bytes: int = DEFAULT_SPLIT_BYTES
    batch_rows: int = DEFAULT_BATCH_ROWS
    verify_checksums: bool = True
    unify: bool = False
    """The columns of all files, for which planning opens each; else those of the first."""
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    keys: Mapping[str, str] | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)

    def with_schema(self, schema: pa.Schema) -> ReadOptions:
        """The same with the types of files that do not know their own."""
        return replace(self, options={**self.options, "schema": schema})


def read_options(options: Mapping[str, str], format: str | None) -> ReadOptions:
    """Parses the options of a reader. `format`: that of the Spark format's name, None for `coldframe`."""
    given = {key.lower(): value for key, value in options.items()}
    mode = given.get("mode", "FAILFAST")
    if mode.lower() not in MODES:
        raise UnsupportedError(f"mode {mode!r}: expected FAILFAST or DROPMALFORMED")
    damage = given.get("damage")
    on_error = MODES[mode.lower()]
    if damage is not None and on_error == "raise":
        raise UnsupportedError(
            "option damage goes with mode DROPMALFORMED: FAILFAST stops at the first damage"
        )
    return ReadOptions(
        paths=_paths(given),
        format=format or given.get("format"),
        columns=_names(given.get("columns")),
        filter=given.get("filter"),
        on_error=on_error,
        damage=damage,
        split_bytes=_size("split_bytes", given.get("split_bytes"), DEFAULT_SPLIT_BYTES),
        batch_rows=_size("batch_rows", given.get("batch_rows"), DEFAULT_BATCH_ROWS),
        verify_checksums=_truth("verify_checksums", given.get("verify_checksums", "true")),
        unify=_truth("unify", given.get("unify", given.get("mergeschema", "false"))),
        storage_options=storage_options(given),
        keys=_nested(given, "keys") or None,
        options=format_options(given, _OURS, format or given.get("format")),
    )


def storage_options(given: Mapping[str, str]) -> dict[str, str] | None:
    """The options of the store that the paths are in."""
    return _nested(given, "storage_options") or None


def format_options(
    given: Mapping[str, str], ours: frozenset[str], format: str | None, *, write: bool = False
) -> dict[str, Any]:
    """The options that are the file format's own, with the values that their formats declare their text to
    have. Mappings are JSON, or come key by key as `serde_properties.field.delim`.
    """
    maps = options_of_kind("map", write=write)
    found: dict[str, Any] = {}
    for key, value in given.items():
        whole = key.split(".")[0]
        if key in ours or whole in _NESTED or (whole in maps and whole != key):
            continue
        if key == "schema":
            found[key] = decode_schema(value)
        else:
            found[key] = parse_option(key, value, format=format, write=write)
    for name in maps:
        prefix = f"{name}."
        parts = {key[len(prefix) :]: value for key, value in given.items() if key.startswith(prefix)}
        if parts:
            found[name] = {**found.get(name, {}), **parts}
    return found


def encode_schema(schema: Any) -> str:
    """A schema as an option's text."""
    return SCHEMA_PREFIX + base64.b64encode(pa.schema(schema).serialize()).decode("ascii")


def decode_schema(text: str) -> Any:
    """The schema of an option's text, which may also be a list of columns in Hive's language."""
    if text.startswith(SCHEMA_PREFIX):
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text[len(SCHEMA_PREFIX) :])))
    return text


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    if "paths" in given:
        paths = _json("paths", given["paths"])
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise SchemaError(f"option paths: expected a JSON list of texts, found {given['paths']!r}")
        return tuple(paths)
    if "path" in given:
        return (given["path"],)
    raise SchemaError("no path: give one to load(), or the option path or paths")


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    if text.lstrip().startswith("["):
        return tuple(str(name) for name in _json("columns", text))
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _nested(given: Mapping[str, str], name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if name in given:
        whole = _json(name, given[name])
        if not isinstance(whole, dict):
            raise SchemaError(f"option {name}: expected a JSON object, found {_told(name, given[name])}")
        found.update({str(key): str(value) for key, value in whole.items()})
    prefix = f"{name}."
    found.update({key[len(prefix) :]: value for key, value in given.items() if key.startswith(prefix)})
    return found


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as reason:
        raise SchemaError(f"option {name}: {reason} in {_told(name, text)}") from None


def _told(name: str, text: str) -> str:
    """An option's text as errors show it: secrets are not shown."""
    return f"{len(text)} characters" if name in ("storage_options", "keys") else repr(text)


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise SchemaError(f"option {name}: expected true or false, found {text!r}")
    return text.lower() == "true"


def _size(name: str, text: str | None, default: int) -> int:
    if text is None:
        return default
    match = _SIZE.match(text.strip())
    if match is None or int(match.group(1)) == 0:
        raise SchemaError(f"option {name}: expected a positive number such as 1000 or 64m, found {text!r}")
    return int(match.group(1)) << (10 * " kmgt".index(match.group(2).lower() or " "))
