"""Stages 4 and 5, in the task: decode a split, write it, read the written file back, compare.

Rows stay in this process: only the outcome, a small JSON object, goes to the driver. A task never raises:
Spark would repeat what cannot succeed, and one bad file would end the run of all others.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import traceback
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from coldframe._coldframe import ColdframeError, RawFingerprint, SchemaError
from coldframe.pipeline.identity import CHANGED, is_unchanged
from coldframe.pipeline.places import StorageOptions, discard, sha256, size_of
from coldframe.pipeline.sinks import Sink
from coldframe.pipeline.stated import Witness
from coldframe.spark.types import conform_batch
from coldframe.widening import with_fields

BATCH_ROWS = 64 * 1024


@dataclass(frozen=True)
class Task:
    """One split of one source file, to become one file of the target."""

    key: str
    """The source file's identity in the journal."""
    number: int
    split: Any
    schema: pa.Schema
    """The table's columns, in their plain types."""
    names: tuple[str, ...] | None
    """New names for the file's columns by position, where the file has placeholders only."""
    constants: tuple[tuple[str, Any], ...]
    """Partition values that the target wants inside its files: name and Arrow scalar."""
    staged: str
    """Where to write; never seen by readers of the table."""
    sink: Sink
    on_error: str
    unit: str
    verify: bool = True
    bytes: int = 0
    """Of the source, about: what the task costs."""
    source: str = ""
    """The path of the source, and what it was when it was planned; none of both: not compared."""
    identity: str = ""
    source_options: StorageOptions = field(default=None, repr=False)
    """How the stores of source and target are reached. They hold secrets, which travel with the task only."""
    target_options: StorageOptions = field(default=None, repr=False)

    def run(self) -> dict[str, Any]:
        """See `run_task`."""
        return run_task(self)

    def given_up(self, reason: str) -> dict[str, Any]:
        """The outcome where no worker lived long enough to give one."""
        return {"key": self.key, "number": self.number, "seconds": 0.0, "error": reason}


def run_task(task: Task) -> dict[str, Any]:
    """Converts one split. The outcome has `error` where that failed.

    Each attempt writes under a name of its own (`staged` of the outcome), those of Spark's too: none can
    overwrite what another one has written.
    """
    started = time.monotonic()
    base, ending = os.path.splitext(task.staged)
    task = replace(task, staged=f"{base}-{uuid.uuid4().hex[:8]}{ending}")
    outcome: dict[str, Any] = {"key": task.key, "number": task.number, "staged": task.staged}
    try:
        _demand_unchanged(task)
        outcome.update(_convert(task))
        _demand_all_rows(task, outcome)
        if outcome["rows"] and "error" not in outcome:
            outcome["sha256"] = sha256(task.staged, task.target_options)
    except (ColdframeError, pa.ArrowException, OSError) as error:
        outcome["error"] = describe(error)
    except Exception as error:
        # A fault of this program: say where, and let the other files go on.
        last = traceback.extract_tb(error.__traceback__)[-1]
        outcome["error"] = f"{describe(error)} (at {os.path.basename(last.filename)}:{last.lineno})"
    if not _unchanged(task):
        # After the last byte: whatever else was found, it may be that of two files.
        outcome.update(changed=True, error=f"{task.source}: {CHANGED}")
    if "error" in outcome:
        # Where even that cannot be done, the next run does it.
        with contextlib.suppress(ColdframeError, OSError):
            discard(task.staged, task.target_options)
    outcome["seconds"] = round(time.monotonic() - started, 3)
    return outcome


def _unchanged(task: Task) -> bool:
    return not task.identity or is_unchanged(task.source, task.identity, task.source_options)


def _demand_unchanged(task: Task) -> None:
    if not _unchanged(task):
        raise OSError(f"{task.source}: {CHANGED}")


def _demand_all_rows(task: Task, outcome: dict[str, Any]) -> None:
    """What was decoded against what the file says: a reader that loses rows is not believed either."""
    stated = task.split.rows
    if stated is None or "error" in outcome or outcome["damage"]:
        return
    if outcome["rows"] != stated:
        outcome["error"] = (
            f"VerificationError: part {task.number} of {task.split.path} has {stated} rows, as it says; "
            f"{outcome['rows']} were decoded"
        )


def describe(error: BaseException) -> str:
    """The error's kind and message."""
    return f"{type(error).__name__}: {error}"


def _convert(task: Task) -> dict[str, Any]:
    damage: list[dict[str, Any]] = []
    read = RawFingerprint(task.schema)
    witness = Witness(task.split.stated() if task.verify else [])

    def rows() -> Iterator[pa.RecordBatch]:
        with contextlib.closing(
            task.split.to_batches(batch_size=BATCH_ROWS, on_error=task.on_error, on_damage=damage.extend)
        ) as batches:
            for batch in batches:
                witness.add(batch)
                source = arrange(batch, task)
                # The fingerprint is that of the decoded values, before they are made into the target's types.
                read.add(source)
                yield conform_batch(source, task.schema)

    stream = rows()
    first = next((batch for batch in stream if batch.num_rows), None)
    if first is None:
        return {"rows": 0, "bytes": 0, "damage": damage, "checks": read.to_json(), "verified": task.verify}
    task.sink.write(_chain(first, stream), task.schema, task.staged, task.target_options)
    outcome = {
        "rows": read.rows,
        "bytes": size_of(task.staged, task.target_options),
        "damage": damage,
        "checks": read.to_json(),
        "verified": False,
    }
    # Where rows are lost, what the file states is of more than what was decoded.
    whole = not damage and task.split.rows in (None, read.rows)
    unlike = witness.differences() if whole else []
    if unlike:
        outcome["error"] = "VerificationError: what was read differs from what the file states: " + "; ".join(
            unlike
        )
        return outcome
    if task.verify:
        differences = verify(task, read)
        if differences:
            outcome["error"] = "VerificationError: what was written differs from what was read: " + "; ".join(
                differences
            )
        outcome["verified"] = not differences
    return outcome


def verify(task: Task, read: RawFingerprint) -> list[str]:
    """Reads the written file back and compares fingerprints; empty where they agree."""
    return read.differences(task.sink.read(task.staged, task.schema, task.target_options))


def fingerprint(sink: Sink, path: str, storage_options: StorageOptions = None) -> dict[str, Any]:
    """The fingerprint of a file of the target, as its entry in the manifest has it."""
    found = sink.read(path, storage_options=storage_options)
    as_stored: dict[str, Any] = json.loads(json.dumps(found.to_json()))
    return as_stored


def arrange(batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
    """The batch's columns in the table's order, in the types that they were decoded to."""
    found = list(batch.schema.names)
    if task.names is not None and len(task.names) == len(found):
        found = list(task.names)
    places = {name.lower(): at for at, name in enumerate(found)}
    exact = {name: at for at, name in enumerate(found)}
    constants = dict(task.constants)
    columns: list[pa.Array] = []
    for wanted in task.schema:
        if wanted.name in constants:
            columns.append(_repeated(constants[wanted.name], wanted.type, batch.num_rows))
            continue
        at = exact.get(wanted.name, places.get(wanted.name.lower()))
        if at is None:
            columns.append(pa.nulls(batch.num_rows, wanted.type))
        else:
            columns.append(with_fields(batch.column(at), wanted.type))
    if not columns:
        raise SchemaError("a table without columns")
    return pa.RecordBatch.from_arrays(columns, names=task.schema.names)


def _repeated(value: Any, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, kind)


def _chain(first: pa.RecordBatch, rest: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
