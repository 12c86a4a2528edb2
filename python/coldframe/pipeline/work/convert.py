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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from coldframe._coldframe import ColdframeError, CorruptFileError, RawFingerprint, RawShape
from coldframe.file import raw_scan
from coldframe.pipeline.file_access import StorageOptions, discard
from coldframe.pipeline.records import Cause
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
        take_digest(task, outcome)
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
    except CorruptFileError as error:
        outcome.update(error=describe(error), damaged=True)
    except (ColdframeError, pa.ArrowException, OSError) as error:
        outcome["error"] = describe(error)
    except Exception as error:
        # A fault of this program: say where, and let the other files go on.
        last = traceback.extract_tb(error.__traceback__)[-1]
        outcome["error"] = f"{describe(error)} (at {os.path.basename(last.filename)}:{last.lineno})"


def cause_of(outcome: Mapping[str, Any]) -> Cause:
    """Of an outcome that has an error. Damage counts only where the file stayed the one that was planned."""
    if outcome.get("changed"):
        return "changed"
    return "damaged" if outcome.get("damaged") else "failed"


def discard_files(files: Iterable[dict[str, Any]], storage_options: StorageOptions) -> None:
    """Deletes what an attempt has written. Where even that cannot be done, the next run does it."""
    for file in files:
        with contextlib.suppress(ColdframeError, OSError):
            discard(file["staged"], storage_options)


def demand_unchanged(task: Task) -> None:
    """An OSError where the source is not the one that was planned."""
    if not _unchanged(task):
        raise OSError(f"{task.source}: {CHANGED}")


def take_digest(task: Task, outcome: dict[str, Any]) -> None:
    """What a later run knows the source by, if this task is asked for it."""
    if task.digest:
        outcome["digest"] = content_digest(task.source, task.source_options)


def tell_change(task: Task, outcome: dict[str, Any]) -> None:
    """After the last byte: whatever else was found, it may be that of two files."""
    if not _unchanged(task):
        outcome.update(changed=True, error=f"{task.source}: {CHANGED}")


def _unchanged(task: Task) -> bool:
    return not task.identity or is_unchanged(task.source, task.identity, task.source_options)


def describe(error: BaseException) -> str:
    """The error's kind and message."""
    return f"{type(error).__name__}: {error}"


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
    def damage(self) -> list[dict[str, Any]]:
        """What was lost so far."""
        return self.rows.damage()

    @property
    def passed_over(self) -> dict[str, int]:
        """What could be read beside these rows, and was not asked for; complete behind the last one."""
        return self.rows.passed_over()

    @property
    def losses(self) -> dict[str, int]:
        """Values that were changed on the way; complete behind the last row."""
        return self.rows.changes()

    def demand(self, rows: int, observed: dict[str, dict[str, Any]]) -> None:
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


def _convert(task: Task, staged: str, outcome: dict[str, Any]) -> None:
    outcome.update(rows=0, damage=[], verified=task.verify)
    decoding = Decoding(task)
    try:
        converted = task.sink.convert(
            decoding.rows, decoding.shape, staged, task.target_options, task.file_bytes
        )
    finally:
        outcome["damage"] = decoding.damage
    folder = os.path.dirname(staged)
    # All of them before one is read: where that fails, all are taken back.
    files: list[dict[str, Any]] = [{"staged": f"{folder}/{found['name']}"} for found in converted["files"]]
    outcome["files"] += files
    for found, file in zip(converted["files"], files, strict=True):
        checks = found["print"].to_json() if task.verify else {}
        file.update(verified=False, rows=found["rows"], checks=checks)
        file.update(bytes=found["bytes"], sha256=found["sha256"])
        finish_file(task, found["print"], file)
        outcome["rows"] += found["rows"]
    decoding.demand(outcome["rows"], converted["observed"])
    outcome.update(passed_over=decoding.passed_over, losses=decoding.losses)


def finish_file(task: Task, read: RawFingerprint, file: dict[str, Any]) -> None:
    """Reads a written file back."""
    if task.verify:
        # Rows that are the same have the same columns; where they are not, the columns are told.
        differences: list[str] = []
        for rows_only in (True, False):
            written = _read_back(task, file["staged"], rows_only)
            differences = read.differences(written) or differences
            if not differences:
                break
        if differences:
            raise VerificationError("what was written differs from what was read: " + "; ".join(differences))
        file["verified"] = True


def _read_back(task: Task, staged: str, rows_only: bool) -> RawFingerprint:
    try:
        return task.sink.read(staged, task.schema, task.target_options, rows_only=rows_only)
    except CorruptFileError as error:
        # Damage of what was written is none of the source's.
        raise VerificationError(f"what was written cannot be read: {error}") from error


def losses(source: str, stated: int | None, outcomes: Sequence[dict[str, Any]]) -> tuple[str, Cause] | None:
    """What is wrong with a source as a whole whose every part is right in itself."""
    rows = sum(outcome["rows"] for outcome in outcomes)
    damage = [lost for outcome in outcomes for lost in outcome["damage"]]
    if damage and not rows:
        first = damage[0]
        reason = f"none of its rows could be saved; {first['structure']}: {first['reason']}"
        return f"CorruptFileError: {reason}", "damaged"
    if not damage and stated is not None and rows != stated:
        return f"VerificationError: {source} declares {stated} rows, but {rows} were decoded", "failed"
    return None


def fingerprint(sink: Sink, path: str, storage_options: StorageOptions = None) -> dict[str, Any]:
    """The fingerprint of a file of the target, as its entry in the manifest has it."""
    return as_stored(sink.read(path, storage_options=storage_options))


def as_stored(found: RawFingerprint) -> dict[str, Any]:
    """A fingerprint as the journal gives it back."""
    stored: dict[str, Any] = json.loads(json.dumps(found.to_json()))
    return stored
