"""What DROPMALFORMED left out, as JSON lines in a directory: `spark.read.json(...)` reads them as a table."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import Any


def record_damage(directory: str, split: Any, damage: list[dict[str, Any]]) -> None:
    """Writes the damage of one split. The file's name is the split's, so a repeated task replaces what it
    wrote.
    """
    identity = f"{split.path}\0{split.part}\0{split.start}\0{split.stop}"
    facts = {"path": split.path, "format": split.format, "split_start": split.start, "split_stop": split.stop}
    _replace(directory, identity, [{**facts, **lost} for lost in damage])


def record_unreadable(directory: str, files: list[dict[str, Any]]) -> None:
    """Writes the files that could not be opened, and so have no split."""
    for lost in files:
        _replace(directory, str(lost["path"]), [lost])


def _replace(directory: str, identity: str, records: list[dict[str, Any]]) -> None:
    name = f"damage-{hashlib.sha256(identity.encode()).hexdigest()[:24]}.jsonl"
    path = os.path.join(directory, name)
    if not records:
        # An earlier run may have found some, before the file was replaced by a whole one.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    os.makedirs(directory, exist_ok=True)
    temporary = os.path.join(directory, f".{name}.{os.getpid()}")
    with open(temporary, "w", encoding="utf-8") as out:
        for record in records:
            out.write(json.dumps(record, default=str) + "\n")
    os.replace(temporary, path)
