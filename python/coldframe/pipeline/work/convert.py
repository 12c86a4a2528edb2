"""Stages 4 and 5, in the task: decode a split, write it, read the written file back, compare.

Rows stay in this process: only the outcome, a small JSON object, goes to the driver. A task never raises:
Spark would repeat what cannot succeed, and one bad file would end the run of all others.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from coldframe._coldframe import ColdframeError, CorruptFileError, RawFingerprint, RawShape
from coldframe.file import raw_scan
from coldframe.pipeline.file_access import StorageOptions, discard
from coldframe.pipeline.records import Checks, Damage, Failure, Outcome, StagedFile
from coldframe.pipeline.source.identity import CHANGED, content_digest, is_unchanged
from coldframe.pipeline.target.sinks import Sink
from coldframe.pipeline.work.stated import Witness

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
    """The path of the source, and what it was when it was planned; no identity: not compared here."""
    identity: str = ""
    digest: bool = False
    """Whether a digest of the source is taken, between the two looks at what it is."""
    source_options: StorageOptions = field(default=None, repr=False)
    """How the stores of source and target are reached. They hold secrets, which travel with the task only."""
    target_options: StorageOptions = field(default=None, repr=False)

    def run(self) -> Outcome:
        """See `run_task`."""
        return run_task(self)

    def given_up(self, reason: str) -> Outcome:
        """The outcome where no worker lived long enough to give one."""
        return Outcome(self.key, self.number, failure=Failure(reason))


def run_task(task: Task) -> Outcome:
    """Converts one split. The outcome has the files that were written, or why that failed.

    Each attempt writes under a name of its own, those of Spark's too: none can overwrite what another one has
    written.
    """
    started = time.monotonic()
    outcome = Outcome(task.key, task.number)
    written: list[str] = []
    try:
        demand_unchanged(task)
        outcome = _convert(task, attempt(task.staged), written)
        outcome = replace(outcome, digest=digest_of_source(task))
    except Exception as error:
        outcome = replace(outcome, failure=Failure.of(error))
    outcome = tell_change(task, outcome)
    if outcome.failure is not None:
        discard_files(written, task.target_options)
        outcome = replace(outcome, files=())
    return replace(outcome, seconds=round(time.monotonic() - started, 3))


def attempt(staged: str) -> str:
    """A name that no other attempt has."""
    base, ending = os.path.splitext(staged)
    return f"{base}-{uuid.uuid4().hex[:8]}{ending}"


def discard_files(staged: Iterable[str], storage_options: StorageOptions) -> None:
    """Deletes what an attempt has written. Where even that cannot be done, the next run does it."""
    for path in staged:
        with contextlib.suppress(ColdframeError, OSError):
            discard(path, storage_options)


def demand_unchanged(task: Task) -> None:
    """An OSError where the source is not the one that was planned."""
    if not _unchanged(task):
        raise OSError(f"{task.source}: {CHANGED}")


def digest_of_source(task: Task) -> str | None:
    """What a later run knows the source by, if this task is asked for it."""
    return content_digest(task.source, task.source_options) if task.digest else None


def tell_change(task: Task, outcome: Outcome) -> Outcome:
    """After the last byte: whatever else was found, it may be that of two files."""
    if _unchanged(task):
        return outcome
    return replace(outcome, failure=Failure(f"{task.source}: {CHANGED}", "changed"))


def _unchanged(task: Task) -> bool:
    return not task.identity or is_unchanged(task.source, task.identity, task.source_options)


class VerificationError(ColdframeError):
    """What was decoded, or what was written, is not what it should be."""


class Decoding:
    """What is asked of the rows of a task while they are decoded, and what is said of them afterwards."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._witness = Witness(task.split.stated() if task.verify else [])
        self.shape = RawShape(
            task.schema,
            names=None if task.names is None else list(task.names),
            constants={name: constant(value, task.schema.field(name).type) for name, value in task.constants},
            verify=task.verify,
            stated=self._witness.names,
        )
        self.rows = raw_scan(task.split, batch_size=BATCH_ROWS, on_error=task.on_error)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What was lost so far."""
        found: list[Any] = self.rows.damage()
        return tuple(found)

    @property
    def passed_over(self) -> dict[str, int]:
        """What could be read beside these rows, and was not asked for; complete behind the last one."""
        return self.rows.passed_over()

    @property
    def losses(self) -> dict[str, int]:
        """Values that were changed on the way; complete behind the last row."""
        return self.rows.changes()

    def demand(self, rows: int, observed: Any) -> None:
        """After the last batch: a reader that loses rows, or gives other values than are stated, is not
        believed. Where rows are lost, what the file states is of more than what was decoded.
        """
        task = self._task
        if self.damage:
            return
        stated = task.split.rows
        if stated is not None and rows != stated:
            raise VerificationError(
                f"part {task.number} of {task.split.path} declares {stated} rows, but {rows} were decoded"
            )
        unlike = self._witness.differences(observed)
        if unlike:
            raise VerificationError("what was read differs from what the file states: " + "; ".join(unlike))


def constant(value: Any, kind: pa.DataType) -> pa.Array:
    """A partition's value as the core takes it: an array of one."""
    return pa.repeat(value, 1) if value.is_valid else pa.nulls(1, kind)


def _convert(task: Task, staged: str, written: list[str]) -> Outcome:
    """Writes the rows of a split. `written` gets the paths of all files before one of them is read back:
    where that fails, all are taken back.
    """
    decoding = Decoding(task)
    converted = task.sink.convert(decoding.rows, decoding.shape, staged, task.target_options, task.file_bytes)
    folder = os.path.dirname(staged)
    written += [f"{folder}/{found['name']}" for found in converted["files"]]
    files = tuple(
        finish_file(
            task,
            found["print"],
            StagedFile(
                path,
                found["rows"],
                found["bytes"],
                found["sha256"],
                checks_of(found["print"]) if task.verify else Checks(),
            ),
        )
        for path, found in zip(written, converted["files"], strict=True)
    )
    rows = sum(file.rows for file in files)
    decoding.demand(rows, converted["observed"])
    return Outcome(
        task.key,
        task.number,
        files,
        rows,
        decoding.damage,
        task.verify,
        decoding.passed_over,
        decoding.losses,
    )


def checks_of(found: RawFingerprint) -> Checks:
    """A fingerprint in JSON."""
    given: Any = found.to_json()
    checks: Checks = given
    return checks


def finish_file(task: Task, read: RawFingerprint, file: StagedFile) -> StagedFile:
    """Reads a written file back."""
    if not task.verify:
        return file
    # Rows that are the same have the same columns; where they are not, the columns are told.
    differences: list[str] = []
    for rows_only in (True, False):
        written = _read_back(task, file.staged, rows_only)
        differences = read.differences(written) or differences
        if not differences:
            break
    if differences:
        raise VerificationError("what was written differs from what was read: " + "; ".join(differences))
    return replace(file, verified=True)


def _read_back(task: Task, staged: str, rows_only: bool) -> RawFingerprint:
    try:
        return task.sink.read(staged, task.schema, task.target_options, rows_only=rows_only)
    except CorruptFileError as error:
        # Damage of what was written is none of the source's.
        raise VerificationError(f"what was written cannot be read: {error}") from error


def losses(source: str, stated: int | None, outcomes: Sequence[Outcome]) -> Failure | None:
    """What is wrong with a source as a whole whose every part is right in itself."""
    rows = sum(outcome.rows for outcome in outcomes)
    damage = [lost for outcome in outcomes for lost in outcome.damage]
    if damage and not rows:
        first = damage[0]
        reason = f"none of its rows could be saved; {first['structure']}: {first['reason']}"
        return Failure(f"CorruptFileError: {reason}", "damaged")
    if not damage and stated is not None and rows != stated:
        return Failure(f"VerificationError: {source} declares {stated} rows, but {rows} were decoded")
    return None


def fingerprint(sink: Sink, path: str, storage_options: StorageOptions = None) -> Checks:
    """The fingerprint of a file of the target, as its entry in the manifest has it."""
    return as_stored(sink.read(path, storage_options=storage_options))


def as_stored(found: RawFingerprint) -> Checks:
    """A fingerprint as the journal gives it back."""
    stored: Checks = json.loads(json.dumps(found.to_json()))
    return stored
