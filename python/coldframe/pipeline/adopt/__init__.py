"""Adoption: Iceberg tables over files that stay where they are.

    sources      the tables, their partitions and files, and how each file is decoded
    examining    each file is decoded once, whole: the verdict, counts and bounds
    rules        the table of rules: which files may stay
    mapping      ids of columns for files without ids
    tables       the Iceberg table: proved by PyIceberg, committed at once

Files that no metadata can make right are converted into new files of the same table. Nothing below the source
is changed, and none of it is ever safe to delete: the new tables read it.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import time

from coldframe.errors import ColdframeError, SchemaError, unsupported
from coldframe.pipeline.adopt.examining import columns_of_table, examine
from coldframe.pipeline.adopt.records import Adoption, FoundTable, TableOutcome
from coldframe.pipeline.adopt.sources import Tables, find_source
from coldframe.pipeline.adopt.tables import NewTable
from coldframe.pipeline.file_access import canonical_root, root_of
from coldframe.pipeline.options import Options
from coldframe.pipeline.sink.destination import HOME, Destination
from coldframe.pipeline.sink.iceberg_catalog import open_catalog
from coldframe.pipeline.sink.targets import find_target
from coldframe.sources import is_remote

__all__ = ["REPORT", "Adoption", "adopt"]

_log = logging.getLogger(__name__)
REPORT = f"{HOME}/adoption.json"
_HONOURED = frozenset({"to", "adopt", "tables", "locations", "compression", "untyped"})
"""The options that an adoption supports; it refuses all others."""


def adopt(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    options: Options,
    *,
    tables: Tables = None,
    plan: bool = False,
) -> Adoption:
    """Makes Iceberg tables over the files of a source. `plan`: only decodes the files, and writes nothing."""
    started = time.time()
    _check_options(options)
    find_target("iceberg")  # raises without PyIceberg
    source, goal = os.fsdecode(src), root_of(dst)
    if is_remote(goal):
        raise unsupported(f"adopting into {goal}: expected a directory on a local or mounted disk")
    destination = Destination(goal)
    if not destination.is_empty():
        raise unsupported(
            f"a second adoption into {destination.root}: expected an empty directory, since files cannot be "
            "added to adopted tables yet"
        )
    listing = find_source(source, options, tables)
    adoption = Adoption(source, destination.root, "iceberg", "raise", [], is_plan=plan)
    adoption.left_out_tables = [
        (finding.table, finding.text) for finding in listing.left_out if finding.is_wrong
    ]
    for table in listing.tables:
        _check_apart(table, destination.root)
    for table in listing.tables:
        outcome = _outcome(table, destination, options, plan=plan)
        outcome.notes += listing.notes.get(table.name, [])
        adoption.adopted.append(outcome)
    adoption.started, adoption.seconds = started, round(time.time() - started, 3)
    if not plan:
        text = json.dumps(adoption.to_json(), indent=1, default=str)
        destination.write(REPORT, text.encode())
    return adoption


def _outcome(table: FoundTable, destination: Destination, options: Options, *, plan: bool) -> TableOutcome:
    """Adopts one table. If that fails, the other tables are still adopted."""
    outcome = TableOutcome(table.name)
    try:
        columns = columns_of_table(table)
        files = examine(table, columns)
        outcome.verdicts = [item.verdict for item in files]
        outcome.notes = sorted({item.assumed for item in files if item.assumed is not None})
        if not plan:
            os.makedirs(destination.path(HOME), exist_ok=True)
            made = NewTable(table, columns, files, destination, options.compression)
            outcome.metadata = made.make(open_catalog(destination.root))
            outcome.verified = True
    except (ColdframeError, OSError) as error:
        outcome.refused = str(error)
    except Exception as error:
        # PyIceberg, pyarrow and catalogs raise errors of many kinds, and the other tables must not wait.
        _log.debug("adopting %s", table.name, exc_info=True)
        outcome.refused = f"{type(error).__name__}: {error}"
    return outcome


def _check_options(options: Options) -> None:
    for option in dataclasses.fields(Options):
        if option.name in _HONOURED:
            continue
        usual = option.default
        if option.default_factory is not dataclasses.MISSING:
            usual = option.default_factory()
        if getattr(options, option.name) != usual:
            raise unsupported(f"adopting with the option {option.name.replace('_', '-')}")


def _check_apart(table: FoundTable, goal: str) -> None:
    target = canonical_root(goal) + "/"
    for folder in {os.path.dirname(file.path) for file in table.files}:
        place = canonical_root(folder) + "/"
        if place.startswith(target) or target.startswith(place):
            raise SchemaError(f"{table.name} at {folder} and target {goal} must not contain each other")
