"""The journal as a chain: a lost tail, a restored backup and another target's journal are noticed.

    000000000011.jsonl    {"event": "run", .., "after": sha256 of 000000000010.jsonl}
    000000000012.jsonl    {"event": "begin", .., "after": sha256 of 000000000011.jsonl}
    ../head.json          {"target": .., "epoch": 5, "number": 12, "digest": sha256 of 000000000012.jsonl}

The head is written at the beginning and at the end of each run, so it may be older than the last segment, but
never newer. Segments that were written before there was a chain name no predecessor; no such segment may
follow a segment that names its predecessor.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coldframe._coldframe import ColdframeError, UnsupportedError
from coldframe.json_input import parse_json
from coldframe.pipeline.records import Json
from coldframe.pipeline.sink.destination import HOME, Destination

HEAD = f"{HOME}/head.json"
WAY_OUT = (
    "restore it or, if it is lost, move this segment and all later ones away: the next run enters the files "
    "of the tables again"
)


class Fenced(ColdframeError):
    """Another driver is at work on the target, or has taken it over."""


@dataclass(frozen=True)
class Head:
    """The last segment of a run."""

    target: str
    epoch: int
    number: int
    digest: str


@dataclass
class Chain:
    """What is known of the segments of a journal while they are read and written."""

    digest: str | None = ""
    """The digest of the last segment; empty before the first segment."""
    unchained: int = 0
    """Segments that name no predecessor."""
    head: Head | None = None
    lost: str = ""
    """Why segments that a run wrote are missing; empty if no segment is missing."""
    is_foreign: bool = False
    """Whether the journal is another target's."""
    _is_chained: bool = False

    def follow(self, first: Mapping[str, Any], place: str) -> None:
        """Compares the first line of the next segment, or of the base, with the previous segment."""
        after = first.get("after")
        if after is None and not self._is_chained:
            self.unchained += 1
            return
        if place.endswith(".base.jsonl"):
            self.digest, self._is_chained = after, True
        elif after != self.digest:
            raise ColdframeError(f"{place}: it does not follow the segment before it; {WAY_OUT}")
        self._is_chained = True

    def compare(self, last: int, target: str | None) -> None:
        """Compares the whole journal with its head."""
        head = self.head
        if head is None:
            return
        self.is_foreign = bool(last and target and head.target and head.target != target)
        if last < head.number:
            self.lost = f"it ends with segment {last}, but run {head.epoch} wrote {head.number}"

    def check_target(self, place: str) -> None:
        """Raises if the journal is another target's."""
        if self.is_foreign:
            raise UnsupportedError(
                f"{place} is the journal of another target: restore this target's own, or migrate into "
                "another directory"
            )

    def next_epoch(self, epoch: int) -> int:
        """The number of the next run, higher than that of every known run."""
        return max(epoch, 0 if self.head is None else self.head.epoch) + 1


def chained(records: Iterable[Json], digest: str | None) -> Iterator[Json]:
    """The lines of a segment; the first one names the segment before it."""
    link: Json = {} if digest is None else {"after": digest}
    for record in records:
        yield {**record, **link}
        link = {}


def read_head(destination: Destination) -> Head | None:
    """The head; None if there is no head, or if a power cut has torn it."""
    try:
        head = parse_json(destination.read(HEAD))
        return Head(str(head["target"]), int(head["epoch"]), int(head["number"]), str(head["digest"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def write_head(destination: Destination, head: Head) -> None:
    """Replaces the head."""
    destination.write(HEAD, json.dumps(vars(head)).encode())
