"""Records what DROPMALFORMED left out as JSON lines in a directory, which `spark.read.json(...)` reads."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from coldframe.errors import NotFoundError
from coldframe.sources import open_store


def record_damage(
    directory: str,
    split: Any,
    damage: list[dict[str, Any]],
    *,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Writes the damage of one split. The split determines the file's name, so a repeated task replaces its
    own file.
    """
    identity = f"{split.path}\0{split.part}\0{split.start}\0{split.stop}"
    fields = {
        "path": split.path,
        "format": split.format,
        "split_start": split.start,
        "split_stop": split.stop,
    }
    _replace(directory, identity, [{**fields, **lost} for lost in damage], storage_options)


def record_unreadable(
    directory: str, lost: dict[str, Any], storage_options: Mapping[str, str] | None = None
) -> None:
    """Records a file that could not be opened, and so has no split."""
    _replace(directory, str(lost["path"]), [lost], storage_options)


def _replace(
    directory: str,
    identity: str,
    records: list[dict[str, Any]],
    storage_options: Mapping[str, str] | None,
) -> None:
    store = open_store(directory, storage_options)
    name = f"damage-{hashlib.sha256(identity.encode()).hexdigest()[:24]}.jsonl"
    if not records:
        # Deletes what an earlier run recorded: somebody may have replaced the file since.
        with contextlib.suppress(NotFoundError):
            store.delete(name)
        return
    lines = "".join(json.dumps(record, default=str) + "\n" for record in records)
    store.put(name, lines.encode(), mode="over")
