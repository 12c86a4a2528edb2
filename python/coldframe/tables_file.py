"""The form of tables.toml, which names tables and their options."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def entry_lines(name: str, path: str, options: Mapping[str, Any], *comments: str) -> Iterator[str]:
    """The lines of an entry for a table at `path` below the source's root."""
    key = json.dumps(name)
    yield f"[tables.{key}]"
    yield f"path = {json.dumps(path)}"
    yield from _settings({name: value for name, value in options.items() if not isinstance(value, Mapping)})
    yield from comments
    for option, settings in options.items():
        if isinstance(settings, Mapping):
            yield f"[tables.{key}.{option}]"
            yield from _settings({json.dumps(name): value for name, value in settings.items()})


def _settings(settings: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name} = {json.dumps(value)}" for name, value in settings.items())
