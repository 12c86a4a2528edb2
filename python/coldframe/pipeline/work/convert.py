"""Decodes a split, writes it, reads the written file back, and compares.

Rows stay in this process: only the outcome, a small JSON object, goes to the driver. A task never raises:
Spark would repeat what cannot succeed, and one bad file would end the run of all other files.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from coldframe._coldframe import (
    ColdframeError,
    CorruptFileError,
    RawFingerprint,
    RawObserved,
    RawShape,
)
from coldframe.file import raw_scan
from coldframe.pipeline.file_access import StorageOptions, discard
from coldframe.pipeline.records import Checks, Damage, Failure, Outcome, StagedFile
from coldframe.pipeline.sink.iceberg_layout import Term
from coldframe.pipeline.sink.sinks import Check, Sink
from coldframe.pipeline.source.identity import CHANGED, content_digest, is_unchanged
from coldframe.pipeline.work.dividing import Division

BATCH_ROWS = 64 * 1024


class Writing(Protocol):
    """What writing and verifying files needs from a task."""

    @property
    def sink(self) -> Sink: ...
    @property
    def schema(self) -> pa.Schema: ...
    @property
    def verify(self) -> bool: ...
    @property
    def target_options(self) -> StorageOptions: ...
    @property
    def file_bytes(self) -> int: ...
    @property
    def divided_by(self) -> tuple[Term, ...]: ...


@dataclass(frozen=True)
class Task:
    """One split of one source file, to become one or several target files."""

    key: str
    """The source file's identity in the journal."""
    number: int
    split: Any
    schema: pa.Schema
    """The table's columns, in their plain types."""
    names: tuple[str, ...] | None
    """New names for the file's columns by position, if the file has placeholders only."""
    constants: tuple[tuple[str, Any], ...]
    """Partition values that the target has inside its files: name and Arrow scalar."""
    staged: str
    """The path to write; readers of the table never see it."""
    sink: Sink
    on_error: str
    unit: str
    verify: bool = True
    bytes: int = 0
    """Approximate source bytes: what the task costs."""
    file_bytes: int = 0
    """The number of bytes after which another file is begun, if the sink can do that; 0: never."""
    rows: int | None = None
    """The stated rows of the source, if it is a single split."""
    divided_by: tuple[Term, ...] = ()
    """Values that are the same for all rows of a target file, but may differ within the source."""
    source: str = ""
    """The path of the source."""
    identity: str = ""
    """The file's identity when it was planned; empty: do not compare it."""
    digest: bool = False
    """Whether to take a digest of the source, between the two checks of its identity."""
    source_options: StorageOptions = field(default=None, repr=False)
    """Options of the source's store. These options hold secrets, which only the task carries."""
    target_options: StorageOptions = field(default=None, repr=False)

    def run(self) -> Outcome:
        """See `run_task`."""
        return run_task(self)

    def given_up(self, reason: str) -> Outcome:
        """The outcome if no worker could run the task."""
        return Outcome(self.key, self.number, failure=Failure(reason))


def run_task(task: Task) -> Outcome:
    """Converts one split. The outcome has the written files, or the reason for the failure.

    Each attempt, including Spark's own, writes under a unique name, so that no attempt can overwrite the
    files of another attempt.
    """
    started = time.monotonic()
    outcome = Outcome(task.key, task.number)
    written: list[str] = []
    try:
        check_unchanged(task)
        outcome = _convert(task, attempt(task.staged), written)
        outcome = replace(outcome, digest=digest_of_source(task))
    except Exception as error:
        outcome = replace(outcome, failure=Failure.of(error))
    outcome = check_change(task, outcome)
    if outcome.failure is not None:
        discard_files(written, task.target_options)
        outcome = replace(outcome, files=())
    return replace(outcome, seconds=round(time.monotonic() - started, 3))


def attempt(staged: str) -> str:
    """A unique name."""
    base, ending = os.path.splitext(staged)
    return f"{base}-{uuid.uuid4().hex[:8]}{ending}"


def discard_files(staged: Iterable[str], storage_options: StorageOptions) -> None:
    """Deletes the files of an attempt. If even that fails, the next run deletes the files."""
    for path in staged:
        with contextlib.suppress(ColdframeError, OSError):
            discard(path, storage_options)


def check_unchanged(task: Task) -> None:
    """Raises OSError if the source has changed since it was planned."""
    if not _unchanged(task):
        raise OSError(f"{task.source}: {CHANGED}")


def digest_of_source(task: Task) -> str | None:
    """The digest by which a later run recognises the source; None if this task does not take it."""
    return content_digest(task.source, task.source_options) if task.digest else None


def check_change(task: Task, outcome: Outcome) -> Outcome:
    """Fails the outcome if the source changed until its last byte was read: the rows may mix two files."""
    if _unchanged(task):
        return outcome
    return replace(outcome, failure=Failure(f"{task.source}: {CHANGED}", "changed"))


def _unchanged(task: Task) -> bool:
    return not task.identity or is_unchanged(task.source, task.identity, task.source_options)


class VerificationError(ColdframeError):
    """Decoded or written rows differ from the expected rows."""


class Decoding:
    """Checks of a task's rows while they are decoded, reported afterwards."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._witness = task.split.witness() if task.verify else None
        self.shape = RawShape(
            task.schema,
            names=None if task.names is None else list(task.names),
            constants={name: constant(value, task.schema.field(name).type) for name, value in task.constants},
            verify=task.verify,
            stated=[] if self._witness is None else self._witness.names,
        )
        self.rows = raw_scan(task.split, batch_size=BATCH_ROWS, on_error=task.on_error)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """The losses so far."""
        lost: list[Any] = self.rows.damage()
        return tuple(lost)

    @property
    def passed_over(self) -> dict[str, int]:
        """Counts of content that was readable but not requested; complete after the last row."""
        return self.rows.passed_over()

    @property
    def losses(self) -> dict[str, int]:
        """Values that were changed during conversion; complete after the last row."""
        return self.rows.changes()

    def check(self, rows: int, observed: RawObserved) -> None:
        """Compares the decoded rows and values with the file's statistics, after the last batch.

        A reader that loses rows, or returns other values than stated, is not trusted. Skips damaged files,
        whose statistics also cover the lost rows.
        """
        task = self._task
        if self.damage:
            return
        declared = task.split.rows
        if declared is not None and rows != declared:
            raise VerificationError(
                f"part {task.number} of {task.split.path} declares {declared} rows, but {rows} were decoded"
            )
        unlike = [] if self._witness is None else self._witness.differences(observed)
        if unlike:
            raise VerificationError("what was read differs from what the file states: " + "; ".join(unlike))


def constant(value: Any, kind: pa.DataType) -> pa.Array:
    """A partition value in the core's form: an array of length 1."""
    return pa.repeat(value, 1) if value.is_valid else pa.nulls(1, kind)


def _convert(task: Task, staged: str, written: list[str]) -> Outcome:
    """Writes the rows of a split.

    `written` receives the paths of all files before any of them is read back, so that a failure can delete
    them.
    """
    decoding = Decoding(task)
    files, observed = write_files(task, decoding.rows, decoding.shape, staged, written)
    rows = sum(file.rows for file in files)
    decoding.check(rows, observed)
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


def write_files(
    task: Writing, rows: Any, shape: RawShape, staged: str, written: list[str]
) -> tuple[tuple[StagedFile, ...], RawObserved]:
    """Writes rows and reads their files back. `written` receives the paths of the files before the files are
    read back.

    Also returns the observed statistics of the source's columns.
    """
    division = Division(task.divided_by, task.schema) if task.divided_by else None
    converted = task.sink.convert(rows, shape, staged, task.target_options, task.file_bytes, division)
    folder = os.path.dirname(staged)
    written += [f"{folder}/{result['name']}" for result in converted["files"]]
    files = tuple(
        finish_file(
            task,
            result["print"],
            StagedFile(
                path,
                result["rows"],
                result["bytes"],
                result["sha256"],
                checks_of(result["print"]) if task.verify else Checks(),
                partition={} if division is None else division.values(result["partition"] or 0),
            ),
            None if division is None else functools.partial(division.check, partition=result["partition"]),
        )
        for path, result in zip(written, converted["files"], strict=True)
    )
    return files, converted["observed"]


def checks_of(raw: RawFingerprint) -> Checks:
    """A fingerprint in JSON."""
    given: Any = raw.to_json()
    checks: Checks = given
    return checks


def finish_file(
    task: Writing, read: RawFingerprint, file: StagedFile, check: Check | None = None
) -> StagedFile:
    """Reads a written file back. `check` also gets its rows, and raises if they are wrong."""
    if not task.verify:
        return file
    # Equal rows imply equal columns; if rows differ, the differing columns are named.
    differences: list[str] = []
    for rows_only in (True, False):
        written = _read_back(task, file.staged, rows_only, check)
        differences = read.differences(written) or differences
        if not differences:
            break
    if differences:
        raise VerificationError("what was written differs from what was read: " + "; ".join(differences))
    return replace(file, verified=True)


def _read_back(task: Writing, staged: str, rows_only: bool, check: Check | None) -> RawFingerprint:
    try:
        return task.sink.read(staged, task.schema, task.target_options, rows_only=rows_only, check=check)
    except (CorruptFileError, pa.ArrowException, OSError) as error:
        # Damage of the written file is not damage of the source.
        raise VerificationError(f"what was written cannot be read: {error}") from error


def losses(source: str, declared: int | None, outcomes: Sequence[Outcome]) -> Failure | None:
    """A fault of the source as a whole; None if there is none."""
    rows = sum(outcome.rows for outcome in outcomes)
    damage = [lost for outcome in outcomes for lost in outcome.damage]
    if damage and not rows:
        first = damage[0]
        reason = f"none of its rows could be saved; {first['structure']}: {first['reason']}"
        return Failure(f"CorruptFileError: {reason}", "damaged")
    if not damage and declared is not None and rows != declared:
        return Failure(f"VerificationError: {source} declares {declared} rows, but {rows} were decoded")
    return None


def fingerprint(sink: Sink, path: str, storage_options: StorageOptions = None) -> Checks:
    """The fingerprint of a file of the target, as in its manifest entry."""
    return as_stored(sink.read(path, storage_options=storage_options))


def as_stored(raw: RawFingerprint) -> Checks:
    """A fingerprint in the form that the journal returns."""
    stored: Checks = json.loads(json.dumps(raw.to_json()))
    return stored
