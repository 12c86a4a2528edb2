"""Enters files of the target that the journal has lost, as after a restored backup or a lost tail.

    orders-1c42dd633396-0007-4a1b-0000.parquet     a name in our form without an entry: a lost run wrote it

This happens only if the journal is known to be cut, or if the name has the number of a later run than the
last one in the journal. The source of the file's rows follows from `manifest.jsonl`, beside the journal; or
from the digits in the file's name, if the source is unchanged; otherwise it is unknown. A source that exists
is converted again, and replaces the file. A source that is gone or unknown is treated as deleted after it was
listed as safe: its rows stay until the user decides (`on_vanished`, `archived_rows`). So no row is lost or
duplicated without a request.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import coldframe
from coldframe._coldframe import ColdframeError
from coldframe.json_input import parse_json
from coldframe.pipeline.file_access import reading
from coldframe.pipeline.plan.grouping import folder_of
from coldframe.pipeline.plan.plan_files import encoded, schema_id
from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.records import Committed, Details, Part, SourceFile
from coldframe.pipeline.sink.destination import HOME
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.state.journal import Journal
from coldframe.pipeline.state.stored_files import StoredFiles
from coldframe.spark.types import plain_schema

_OURS = re.compile(r"-(?P<key>[0-9a-f]{12})-(?P<run>\d{4,})-[0-9a-f]{4}-\d{4,}(-\d+)?\.[a-z]+\Z")
UNKNOWN = " (of a lost run)"
"""The end of the names of sources that are unknown."""


def enter_lost(
    work: TableWork,
    journal: Journal,
    target: Target,
    stored: StoredFiles,
    live: set[str] | None,
    key_of: Callable[[SourceFile], str],
) -> list[Committed]:
    """Enters the table's files that only the lost part of the journal recorded, and reports them."""
    path, state = work.table.path, journal.state
    if state.epoch == 1 and not journal.done and not state.chain.lost:
        return []
    unsettled = [*state.begun.values(), *state.dropping.values()]
    known = {part.final for entry in unsettled for part in entry.parts} | state.registered.get(path, set())
    if path in state.registering:
        known.update(state.registering[path].add)
    lost: dict[str, str] = {}
    for name in (file.name for file in stored) if live is None else sorted(live):
        match = _OURS.search(name)
        if match is None or not (state.chain.lost or int(match["run"]) > state.ended_epoch):
            continue
        if name not in known and not journal.done.has_final(name):
            lost[name] = match["key"]
    if not lost:
        if state.chain.lost and live is not None and live != state.registered.get(path, set()):
            journal.adopt(path, [], live & known)
        return []
    sources = _Sources(work, journal, target, lost, key_of)
    parts: dict[str, list[Part]] = {}
    for name, key in lost.items():
        file = stored.get(name)
        for source, part in () if file is None else sources.of(name, key, file.size):
            parts.setdefault(source, []).append(part)
    entries = [sources.entry(source, some, live) for source, some in parts.items()]
    taken = {part.final for entry in entries for part in entry.parts}
    journal.adopt(path, entries, None if live is None else live & (known | taken))
    work.report.add_reason("entered_again", len(taken & lost.keys()), f"such as {next(iter(lost))}")
    return entries


class _Sources:
    """The sources of lost files."""

    def __init__(
        self,
        work: TableWork,
        journal: Journal,
        target: Target,
        lost: Mapping[str, str],
        key_of: Callable[[SourceFile], str],
    ) -> None:
        self._work, self._journal, self._target = work, journal, target
        self._by_key = {key_of(file)[:12]: file for file in work.table.files}
        self._lines = _lines_of(journal, f"{HOME}/manifest.jsonl", "file", lost)
        sources = (str(line["source"]) for lines in self._lines.values() for line in lines)
        self._digests = _lines_of(journal, f"{HOME}/files.jsonl", "source", sources)
        self._same: set[str] = set()
        """Sources that are unchanged since the lost run converted them."""
        self._schemas: dict[str, str] = {}

    def of(self, name: str, key: str, size: int) -> Iterable[tuple[str, Part]]:
        """The sources of a file, with their parts of it. None if it cannot be read: it is reported as
        foreign.
        """
        try:
            schema, rows = self._look(name)
        except (ColdframeError, OSError, pa.ArrowException):
            return ()
        file = self._by_key.get(key)
        lines = [line for line in self._lines.get(name, ()) if line.get("bytes") == size]
        if file is not None and name.rpartition("/")[0] == folder_of(file, self._work.table.path):
            self._same.add(file.relative)
            sources = {file.relative: Part("", name, rows, size)}
        elif lines and rows == sum(int(line["rows"]) for line in lines):
            sources = {str(line["source"]): _part_of(name, line) for line in lines}
        else:
            sources = {f"{name}{UNKNOWN}": Part("", name, rows, size)}
        for source in sources:
            self._schemas[source] = schema
        return sources.items()

    def _look(self, name: str) -> tuple[str, int]:
        """The id of a file's columns, and its number of rows."""
        destination = self._journal.destination
        path, options = destination.path(name), destination.storage_options
        schema, _ = self._target.sink.open(path, options)
        if name.endswith(".parquet"):
            rows = int(pq.read_metadata(reading(path, options)).num_rows)
        else:
            rows = coldframe.open(path, storage_options=options).num_rows or 0
        return self._keep(plain_schema(schema, timestamp_unit="us")), rows

    def _keep(self, schema: pa.Schema) -> str:
        name = schema_id(schema)
        self._journal.keep_schema(name, encoded(schema))
        return name

    def entry(self, source: str, parts: list[Part], live: set[str] | None) -> Committed:
        """The entry of a source: its lost parts, and those that the journal knows and that are still
        there.
        """
        before = self._journal.done.look_up(source)
        earlier = [] if before is None else [p for p in before.parts if live is None or p.final in live]
        name = self._schemas[source]
        rows = sum(part.rows for part in parts)
        lines = self._digests.get(source, ())
        digest = next((str(line.get("digest") or "") for line in lines), "")
        verified = all(part.verified for part in parts)
        details = Details(digest=digest, rows=rows, verified=verified, schema=name, written=name)
        # No key is empty: a present source is converted again.
        path, listed = self._work.table.path, source not in self._same
        return Committed("", source, path, (*earlier, *parts), (), details, listed=listed)


def _part_of(name: str, line: Mapping[str, Any]) -> Part:
    checks, partition = line.get("checks", {}), line.get("partition", {})
    first, of = int(line.get("first", 0)), int(line.get("of", 0))
    rows, size, verified = int(line["rows"]), int(line["bytes"]), bool(line.get("verified"))
    return Part("", name, rows, size, checks, verified, line.get("sha256"), first, of, partition)


def _lines_of(
    journal: Journal, file: str, key: str, names: Iterable[str]
) -> dict[str, list[Mapping[str, Any]]]:
    """The lines of manifest.jsonl or files.jsonl with some names. Skips lines that a power cut has torn."""
    wanted = frozenset(names)
    lines: dict[str, list[Mapping[str, Any]]] = {}
    try:
        for text in journal.destination.lines(file):
            with contextlib.suppress(ValueError, KeyError, TypeError):
                line = parse_json(text)
                if line[key] in wanted and isinstance(line["source"], str):
                    lines.setdefault(line[key], []).append(line)
    except FileNotFoundError:
        return {}
    return lines
