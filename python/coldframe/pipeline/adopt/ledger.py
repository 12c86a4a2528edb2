"""The list of an adopted table's files: what each source was when it was decoded, and which data file of the
table has its rows.

    DST/_coldframe/adopted/TABLE/RUN.jsonl    a line for the table, and one for each file
    DST/_coldframe/adopted/TABLE/RUN.begun    while the run writes new files, which have RUN in their names
    the table's property coldframe.adoption   RUN

A list is written before the commit, and the commit sets the property: the list that the table names is the
one that holds. Of a run that is killed before its commit, the next run deletes the list and the new files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.adopt.records import FoundTable, Verdict
from coldframe.pipeline.records import Json
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.live import InCatalog
from coldframe.pipeline.state.events import Switching
from coldframe.pipeline.state.journal import ADOPTED

PROPERTY = "coldframe.adoption"
_RUN = re.compile(r"[0-9a-f]{32}")
_LIST, _BEGUN = ".jsonl", ".begun"
_STAGED = re.compile(r"[0-9a-f]{32}\.proof\Z")


@dataclass(frozen=True)
class Ledger:
    """What is known of a table."""

    run: str
    name: str
    place: str
    """The table's path below the target's root."""
    identifier: tuple[str, ...]
    catalog: str | None
    """The catalog's name in PyIceberg's configuration; None: the file in the target."""
    shape: Json
    """The columns of the table in the source."""
    verdicts: Sequence[Verdict]
    schema: int = 0
    """The id of the table's schema in Iceberg."""

    @property
    def in_catalog(self) -> InCatalog | None:
        """The table's name in a named catalog."""
        if self.catalog is None:
            return None
        return InCatalog(self.catalog, ".".join(self.identifier[:-1]), self.identifier[-1])


def shape_of(table: FoundTable) -> Json:
    """The columns by which files are decoded. If these change, every file has to be decoded again."""
    shown = {column.name: str(column.type) for column in [*table.columns, *table.keys]}
    return {
        "columns": {name: table.types.get(name, kind) for name, kind in shown.items()},
        "keys": list(table.keys.names),
        "by_position": table.is_by_position,
    }


def read_ledger(destination: Destination, place: str, run: str | None) -> Ledger | None:
    """The list that a table names; None if the target does not have it."""
    if run is None or not _RUN.fullmatch(run) or destination.stat(_list(place, run)) is None:
        return None
    head, *lines = (json.loads(line) for line in destination.lines(_list(place, run)))
    if head.pop("files") != len(lines):
        raise ColdframeError(f"{destination.path(_list(place, run))}: its last lines are missing")
    head["identifier"] = tuple(head["identifier"])
    names = read_switch(destination, place)
    if names is not None:
        head["identifier"] = (names.database, names.table)
    return Ledger(**head, verdicts=[_verdict(line) for line in lines])


def _verdict(line: Any) -> Verdict:
    del line["verdict"]
    return Verdict(**line)


def write_ledger(destination: Destination, ledger: Ledger) -> None:
    """Writes a list, before the commit that names it."""
    head = {key: value for key, value in vars(ledger).items() if key != "verdicts"}
    head["files"] = len(ledger.verdicts)

    def lines() -> Iterator[bytes]:
        for line in (head, *(verdict.to_json() for verdict in ledger.verdicts)):
            yield json.dumps(line).encode() + b"\n"

    destination.write(_list(ledger.place, ledger.run), lines())


def begin(destination: Destination, place: str, run: str) -> None:
    """Records that a run is about to write files."""
    destination.write(f"{ADOPTED}/{place}/{run}{_BEGUN}", b"")


def switch_of(place: str) -> str:
    """The record of a table that has taken over the name of its source, or is about to."""
    return f"{ADOPTED}/{place}/switch.json"


def read_switch(destination: Destination, place: str) -> Switching | None:
    """The names of a table that is switched."""
    if destination.stat(switch_of(place)) is None:
        return None
    return Switching(**json.loads(destination.read(switch_of(place))))


def stage_of(place: str, run: str) -> str:
    """The folder of a run for a table that a proof reads and nobody else."""
    return f"{ADOPTED}/{place}/{run}.proof"


def settle(destination: Destination, place: str, run: str | None) -> None:
    """Ends what earlier runs have left. `run`: the one that the table names.

    Deletes the other lists, and new files of runs that did not come to their commits.
    """
    for name in [file.name for file in destination.list(f"{ADOPTED}/{place}")]:
        if _STAGED.match(name.removeprefix(f"{ADOPTED}/{place}/").partition("/")[0]):
            destination.delete(name)
            continue
        folder, _, last = name.rpartition("/")
        of, dot, kind = last.partition(".")
        if folder != f"{ADOPTED}/{place}" or dot + kind not in (_LIST, _BEGUN):
            continue
        if dot + kind == _BEGUN and of != run:
            for file in [file.name for file in destination.list(f"{place}/data")]:
                if file.rpartition("/")[2].startswith(f"{of}-"):
                    destination.delete(file)
        if dot + kind == _BEGUN or of != run:
            destination.delete(name)


def places(destination: Destination) -> Iterator[tuple[str, str]]:
    """The tables with lists, by their places, and the runs of these lists."""
    for file in destination.list(ADOPTED):
        if file.name.endswith(_LIST):
            place, _, last = file.name.removeprefix(f"{ADOPTED}/").rpartition("/")
            yield place, last.removesuffix(_LIST)


def _list(place: str, run: str) -> str:
    return f"{ADOPTED}/{place}/{run}{_LIST}"
