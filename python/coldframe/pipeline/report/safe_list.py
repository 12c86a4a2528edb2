"""`safe-to-delete.txt`: the sources whose rows are all in the target, with their size, time and digest.

    # coldframe safe-to-delete 2
    # {"target": "/lake", "source": "/warehouse", "made": "..", "compared": "..", "left_behind": [..], ..}
    # size, time of change, digest, path; separated by tabs
    8331    2014-01-01T00:00:00.000000000Z    whole:9f0c..    /warehouse/sales/000000_0
    # end: 1

The digest is the digest in `identity`. Paths come last and are not escaped. A source whose path has a line
break is not listed. `check` tests whether each line still matches its source.
"""

from __future__ import annotations

import datetime
import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coldframe._coldframe import ColdframeError, SchemaError
from coldframe.json_input import parse_json
from coldframe.pipeline.file_access import StorageOptions, pieces
from coldframe.pipeline.records import Committed, Json, SourceFile
from coldframe.pipeline.scheduling import SIDE_BY_SIDE, in_threads
from coldframe.pipeline.sink.destination import HOME, Destination
from coldframe.pipeline.source.defined_files import place_in
from coldframe.pipeline.source.identity import digest_now, identity_of, is_proof
from coldframe.pipeline.state.journal import State
from coldframe.sources import is_remote, open_store, options_for

SAFE = f"{HOME}/safe-to-delete.txt"
_FIRST = "# coldframe safe-to-delete 2"
_LAST = "# end: "
GONE = "it no longer exists"
_THREADS = SIDE_BY_SIDE
"""The number of sources that are checked at once: most of the time is waiting."""


@dataclass(frozen=True)
class Line:
    """A listed source."""

    size: int
    changed: str
    digest: str
    path: str

    @property
    def text(self) -> str:
        """The line in the list."""
        return f"{self.size}\t{self.changed}\t{self.digest}\t{self.path}"


def write(
    destination: Destination, about: Mapping[str, Any], sources: Iterable[tuple[SourceFile, str]]
) -> int:
    """Lists the sources that are still unchanged; returns their number. `about`: the header's contents."""
    count = 0

    def looks() -> Iterator[Callable[[], Line | None]]:
        for file, digest in sources:
            yield functools.partial(_line, file, digest)

    def lines() -> Iterator[bytes]:
        nonlocal count
        for text in (
            _FIRST,
            f"# {json.dumps(about)}",
            "# size, time of change, digest, path; separated by tabs",
        ):
            yield f"{text}\n".encode()
        for line in in_threads(looks(), _THREADS):
            if line is not None:
                count += 1
                yield f"{line.text}\n".encode(errors="surrogateescape")
        yield f"{_LAST}{count}\n".encode()

    destination.write(SAFE, lines())
    return count


def _line(file: SourceFile, digest: str) -> Line | None:
    try:
        same = identity_of(file.path, file.storage_options) == file.identity
        if same and _has_weak_identity(file):
            same = digest_now(file.path, file.identity, digest, file.storage_options) == digest
    except (OSError, ColdframeError):
        return None
    return Line(file.size, _time(file.mtime_ns), digest, file.path) if same else None


def _has_weak_identity(file: SourceFile) -> bool:
    """Whether the store knows only the size and time of a file, which a rewrite can restore."""
    return is_remote(file.path) and not file.etag and not file.is_folder


def _time(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    then = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return f"{then:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


@dataclass(frozen=True)
class SafeList:
    """A list that was read."""

    about: Json
    lines: tuple[Line, ...]
    is_whole: bool
    """Whether the list has its last line."""


def read(path: str, storage_options: StorageOptions = None) -> SafeList:
    """Reads a list. Raises SchemaError if it is invalid, or has another version."""
    text = b"".join(pieces(path, storage_options)).decode(errors="surrogateescape")
    first, *rest = text.split("\n")
    if first != _FIRST:
        raise SchemaError(f"{path}: expected {_FIRST!r} in its first line, found {first[:80]!r}")
    try:
        about = parse_json(rest[0].removeprefix("# "))
        lines = tuple(_parsed(row) for row in rest if row and not row.startswith("#"))
    except (ValueError, IndexError) as reason:
        raise SchemaError(f"{path}: {reason}") from reason
    ends = [row for row in rest if row.startswith(_LAST)]
    return SafeList(about, lines, ends == [f"{_LAST}{len(lines)}"])


def _parsed(text: str) -> Line:
    size, changed, digest, path = text.split("\t", 3)
    return Line(int(size), changed, digest, path)


def check(
    listed: SafeList, state: State, storage_options: StorageOptions = None
) -> Iterator[tuple[Line, str]]:
    """The lines that no longer match the current source or the journal, with reasons."""
    sources = Sources(listed)
    digests = (entry.details.digest for entry in state.done.each())
    trees = {digest for digest in digests if digest.startswith("tree:")}

    def looks() -> Iterator[Callable[[], tuple[Line, str | None]]]:
        for line in listed.lines:
            # Collected here: only one thread at a time may query the state.
            source = sources.of(line.path)
            entry = state.done.look_up(source)
            fault = _journal_fault(line, entry, trees)
            if fault is not None and any(state.done.deleted(source)):
                fault = "coldframe delete has deleted it"
            if fault is not None:
                yield functools.partial(_with_fault, line, fault)
            else:
                known = None if entry is None else entry.details.identity
                yield functools.partial(look, line, known, options_for(line.path, storage_options))

    for line, why in in_threads(looks(), _THREADS):
        if why is not None:
            yield line, why


class Sources:
    """Maps the files of a list to their names in the journal."""

    def __init__(self, listed: SafeList) -> None:
        self._root = str(listed.about.get("source", ""))
        # For a metastore as the source: the locations of its partitions.
        given: Any = listed.about.get("places", [])
        self._places: dict[str, tuple[str, int]] = {
            location: (place, keys) for location, place, keys in given
        }

    def of(self, path: str) -> str:
        """The relative path of a source."""
        if not self._places:
            return path.removeprefix(self._root).lstrip("/")
        location, below = path, ""
        while location not in self._places and "/" in location:
            location, _, name = location.rpartition("/")
            below = f"{name}/{below}" if below else name
        place, keys = self._places.get(location, (location, 0))
        return place_in(place, below, keys)


def _with_fault(line: Line, why: str) -> tuple[Line, str | None]:
    return line, why


def _journal_fault(line: Line, entry: Committed | None, trees: set[str]) -> str | None:
    """Why the journal no longer matches a line; None if it matches."""
    if line.digest.startswith("tree:"):
        return None if line.digest in trees else "the journal no longer has this source"
    if entry is None or entry.receipt is not None:
        return "the journal no longer has this source"
    if entry.details.digest != line.digest:
        return "the journal has another digest of it"
    return None


def look(line: Line, known: str | None, storage_options: StorageOptions) -> tuple[Line, str | None]:
    """Why the current source no longer matches a line; None if it does."""
    try:
        if is_remote(line.path):
            entry = open_store(line.path, storage_options).stat()
            if entry is None:
                return line, GONE
            size, changed = entry.size, _time((entry.modified or 0) * 1_000_000)
            is_folder = entry.is_folder
        else:
            about = os.stat(line.path)
            size, changed = about.st_size, _time(about.st_mtime_ns)
            is_folder = os.path.isdir(line.path)
        identity = identity_of(line.path, storage_options)
    except (FileNotFoundError, NotADirectoryError):
        return line, GONE
    except (OSError, ColdframeError) as error:
        return line, f"it cannot be read: {error}"
    if not is_folder:
        if size != line.size:
            return line, f"it has {size:,} bytes, but {line.size:,} were read"
        # Object stores give times in other units in listings than for single files; an etag is the same in
        # both cases.
        if not line.digest.startswith("etag:") and changed != line.changed:
            return line, f"it was changed at {changed}"
    if digest_now(line.path, identity, line.digest, storage_options) != line.digest:
        return line, "its content differs from that which was read"
    if not is_proof(line.digest, identity, known):
        return line, "it was touched since it was read, and the digest of its ends is no proof"
    return line, None
