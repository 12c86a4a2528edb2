"""Stages 4 and 5, in the task: decode a split, write it, read the written file back, compare.

Rows stay in this process: only the outcome, a small JSON object, goes to the driver. A task never raises:
Spark would repeat what cannot succeed, and one bad file would end the run of all others.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
import traceback
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from coldframe._coldframe import ColdframeError, RawFingerprint, SchemaError, conform_batch, with_fields
from coldframe.pipeline.identity import CHANGED, is_unchanged
from coldframe.pipeline.places import StorageOptions, discard, sha256, size_of
from coldframe.pipeline.sinks import Sink
from coldframe.pipeline.stated import Witness

BATCH_ROWS = 64 * 1024


@dataclass(frozen=True)
class Task:
    """One split of one source file, to become a file of the target, or several of a good size."""

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
    file_bytes: int = 0
    """After so many bytes another file is begun, where the sink can; 0: never."""
    rows: int | None = None
    """Of the whole source, where it is this one split and says so."""
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
        return {"key": self.key, "number": self.number, "files": [], "seconds": 0.0, "error": reason}


def run_task(task: Task) -> dict[str, Any]:
    """Converts one split. The outcome has `error` where that failed, and the `files` that were written.

    Each attempt writes under a name of its own, those of Spark's too: none can overwrite what another one has
    written.
    """
    started = time.monotonic()
    outcome: dict[str, Any] = {"key": task.key, "number": task.number, "files": []}
    with reported(outcome):
        demand_unchanged(task)
        _convert(task, attempt(task.staged), outcome)
    tell_change(task, outcome)
    if "error" in outcome:
        discard_files(outcome["files"], task.target_options)
        outcome["files"] = []
    outcome["seconds"] = round(time.monotonic() - started, 3)
    return outcome


def attempt(staged: str) -> str:
    """A name that no other attempt has."""
    base, ending = os.path.splitext(staged)
    return f"{base}-{uuid.uuid4().hex[:8]}{ending}"


@contextlib.contextmanager
def reported(outcome: dict[str, Any]) -> Iterator[None]:
    """What goes wrong is the outcome's `error`, and nothing is raised."""
    try:
        yield
    except (ColdframeError, pa.ArrowException, OSError) as error:
        outcome["error"] = describe(error)
    except Exception as error:
        # A fault of this program: say where, and let the other files go on.
        last = traceback.extract_tb(error.__traceback__)[-1]
        outcome["error"] = f"{describe(error)} (at {os.path.basename(last.filename)}:{last.lineno})"


def discard_files(files: Iterable[dict[str, Any]], storage_options: StorageOptions) -> None:
    """Deletes what an attempt has written. Where even that cannot be done, the next run does it."""
    for file in files:
        with contextlib.suppress(ColdframeError, OSError):
            discard(file["staged"], storage_options)


def demand_unchanged(task: Task) -> None:
    """An OSError where the source is not the one that was planned."""
    if not _unchanged(task):
        raise OSError(f"{task.source}: {CHANGED}")


def tell_change(task: Task, outcome: dict[str, Any]) -> None:
    """After the last byte: whatever else was found, it may be that of two files."""
    if not _unchanged(task):
        outcome.update(changed=True, error=f"{task.source}: {CHANGED}")


def _unchanged(task: Task) -> bool:
    return not task.identity or is_unchanged(task.source, task.identity, task.source_options)


def describe(error: BaseException) -> str:
    """The error's kind and message."""
    return f"{type(error).__name__}: {error}"


class Decoding:
    """The rows of a task as they are decoded, held against what the file says of them."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.rows = 0
        self.fresh_rows = 0
        """Of them those since `anew`."""
        self.damage: list[dict[str, Any]] = []
        self.print = RawFingerprint(task.schema)
        """Of the rows since `anew`, where they are to be verified."""
        self._witness = Witness(task.split.stated() if task.verify else [])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All of them that have rows, in the target's types."""
        task = self._task
        with contextlib.closing(
            task.split.to_batches(batch_size=BATCH_ROWS, on_error=task.on_error, on_damage=self.damage.extend)
        ) as batches:
            for batch in batches:
                self._witness.add(batch)
                if not batch.num_rows:
                    continue
                source = arrange(batch, task)
                # The fingerprint is that of the decoded values, before they are made into the target's types.
                if task.verify:
                    self.print.add(source)
                self.rows += batch.num_rows
                self.fresh_rows += batch.num_rows
                yield conform_batch(source, task.schema)

    def anew(self) -> None:
        """Begins a fingerprint, and a number of rows, of what comes from here on."""
        self.print, self.fresh_rows = RawFingerprint(self._task.schema), 0

    def checks(self) -> dict[str, Any]:
        """The fingerprint as the journal has it; nothing where none was asked for."""
        return self.print.to_json() if self._task.verify else {}

    def demand(self) -> None:
        """After the last batch: a reader that loses rows, or gives other values than are stated, is not
        believed. Where rows are lost, what the file states is of more than what was decoded.
        """
        task = self._task
        if self.damage:
            return
        stated = task.split.rows
        if stated is not None and self.rows != stated:
            raise VerificationError(
                f"part {task.number} of {task.split.path} has {stated} rows, as it says; {self.rows} were "
                "decoded"
            )
        unlike = self._witness.differences()
        if unlike:
            raise VerificationError("what was read differs from what the file states: " + "; ".join(unlike))


class VerificationError(ColdframeError):
    """What was decoded, or what was written, is not what it should be."""


def _convert(task: Task, staged: str, outcome: dict[str, Any]) -> None:
    decoding = Decoding(task)
    outcome.update(rows=0, damage=decoding.damage, verified=task.verify)
    stream = decoding.batches()
    base, ending = os.path.splitext(staged)
    while (first := next(stream, None)) is not None:
        name = f"{base}-{len(outcome['files'])}{ending}" if outcome["files"] else staged
        file: dict[str, Any] = {"staged": name, "verified": False}
        outcome["files"].append(file)
        # A generator would close the stream when its file is full.
        rest = itertools.chain([first], stream)
        task.sink.write(rest, task.schema, name, task.target_options, task.file_bytes)
        file.update(rows=decoding.fresh_rows, checks=decoding.checks())
        finish_file(task, decoding.print, file)
        decoding.anew()
    outcome["rows"] = decoding.rows
    decoding.demand()


def finish_file(task: Task, read: RawFingerprint, file: dict[str, Any]) -> None:
    """Reads a written file back, and says what is to be known of it later."""
    if task.verify:
        differences = read.differences(task.sink.read(file["staged"], task.schema, task.target_options))
        if differences:
            raise VerificationError("what was written differs from what was read: " + "; ".join(differences))
        file["verified"] = True
    file["bytes"] = size_of(file["staged"], task.target_options)
    file["sha256"] = sha256(file["staged"], task.target_options)


def losses(source: str, stated: int | None, outcomes: Sequence[dict[str, Any]]) -> str | None:
    """What is wrong with a source as a whole whose every part is right in itself."""
    rows = sum(outcome["rows"] for outcome in outcomes)
    damage = [lost for outcome in outcomes for lost in outcome["damage"]]
    if damage and not rows:
        first = damage[0]
        return f"CorruptFileError: none of its rows could be saved; {first['structure']}: {first['reason']}"
    if not damage and stated is not None and rows != stated:
        return f"VerificationError: {source} has {stated} rows, as it says; {rows} were decoded"
    return None


def fingerprint(sink: Sink, path: str, storage_options: StorageOptions = None) -> dict[str, Any]:
    """The fingerprint of a file of the target, as its entry in the manifest has it."""
    return as_stored(sink.read(path, storage_options=storage_options))


def as_stored(found: RawFingerprint) -> dict[str, Any]:
    """A fingerprint as the journal gives it back."""
    stored: dict[str, Any] = json.loads(json.dumps(found.to_json()))
    return stored


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
