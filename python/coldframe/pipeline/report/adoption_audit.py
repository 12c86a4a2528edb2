"""`coldframe audit` of an adoption: files of the source are a part of the new tables, and may have changed.

    missing    a file of the source or a new file does not exist
    resized    it has another size
    altered    a file of the source has other times, and another digest; a new file has another SHA-256
    unlike     (--deep) PyIceberg reads other rows from a file than were decoded
    table      the catalog does not have the table, or no longer by the list of its files

What others have written to a table or deleted from it is reported as in a second run.
"""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from coldframe.arguments import default_threads
from coldframe.errors import ColdframeError
from coldframe.pipeline.adopt import REPORT
from coldframe.pipeline.adopt.changes import by_others
from coldframe.pipeline.adopt.ledger import PROPERTY, Ledger, places, read_ledger
from coldframe.pipeline.adopt.proof import TableReader, access, checksum_of, without_word_of_nanoseconds
from coldframe.pipeline.adopt.records import Verdict
from coldframe.pipeline.adopt.tables import present_in
from coldframe.pipeline.file_access import StorageOptions, sha256
from coldframe.pipeline.records import describe
from coldframe.pipeline.report.audit import Audit, Fault
from coldframe.pipeline.report.verdict import Reason
from coldframe.pipeline.scheduling import in_threads
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.iceberg_catalog import catalog_of, loaded
from coldframe.pipeline.source.identity import identity_of, is_same_source


def audit_adoption(
    destination: Destination, storage_options: StorageOptions = None, *, deep: bool = False
) -> Audit:
    """Compares the tables of an adoption with what is known of their files. `storage_options`: those of the
    sources.
    """
    result = Audit(destination.root, deep=deep)
    last = json.loads(destination.read(REPORT))
    if last["exit_code"]:
        result.reasons.append(Reason("failed_run", 1, str(last["text"])))
    ledgers: dict[str, list[Ledger]] = defaultdict(list)
    for place, run in places(destination):
        if (ledger := read_ledger(destination, place, run)) is not None:
            ledgers[place].append(ledger)
    for place in sorted(ledgers):
        _check_table(destination, result, place, ledgers.pop(place), storage_options)
    return result


def _check_table(
    destination: Destination,
    result: Audit,
    place: str,
    ledgers: Sequence[Ledger],
    storage_options: StorageOptions,
) -> None:
    """`ledgers`: the lists of the table's files; that of a run that was killed may be among them."""
    some = ledgers[0]
    with catalog_of(destination, some.in_catalog) as handle:
        current = loaded(handle.open(), some.identifier) if handle.exists else None
        known = next(
            (
                item
                for item in ledgers
                if current is not None and current.properties.get(PROPERTY) == item.run
            ),
            None,
        )
        if current is None or known is None:
            why = f"the catalog {handle.label} does not have it"
            if current is not None:
                why = "the list of its files that it names is gone"
            result.reasons.append(Reason("no_log", 1, f"{some.name}: {why}"))
            result.add(Fault(place, "table", why))
            return
        listed = present_in(current)
    present = {path: file for path, (_, file) in listed.items()}
    result.reasons += by_others(known.verdicts, present, "refuse")[0]
    rows = [file.rows for file in present.values()]
    result.tables.append(
        {
            "path": place,
            "to": "iceberg",
            "state": "there",
            "version": current.metadata_location,
            "rows_verified": sum(verdict.rows for verdict in known.verdicts),
            "rows_now": None if None in rows else sum(count for count in rows if count is not None),
        }
    )
    used = [verdict for verdict in known.verdicts if verdict.entry]
    result.files += len(used)
    result.rows += sum(verdict.rows for verdict in used)
    result.bytes += sum(verdict.written if verdict.reason else verdict.bytes for verdict in used)
    looks = (functools.partial(_fault, destination, verdict, storage_options) for verdict in used)
    wrong = set()
    for verdict, fault in zip(used, in_threads(looks, destination.at_once), strict=True):
        if fault is not None:
            wrong.add(verdict.entry)
            result.add(fault)
    if result.deep:
        right = [verdict for verdict in used if verdict.entry in listed.keys() - wrong]
        files = [(verdict, listed[verdict.entry][0]) for verdict in right]
        _read_again(destination, result, current, files, storage_options)


def _read_again(
    destination: Destination,
    result: Audit,
    current: Any,
    files: Sequence[tuple[Verdict, Any]],
    storage_options: StorageOptions,
) -> None:
    """Compares the rows of each file, in the columns that the table had when it was adopted."""
    metadata = current.metadata
    schemas = {schema.schema_id: schema for schema in metadata.schemas}
    kept = [file for file in files if file[0].schema in schemas and file[0].checksum]
    # A table of an earlier version has no checksums.
    result.unverified += len(files) - len(kept)
    io = access(current.io, destination, (verdict.path for verdict, _ in kept), storage_options)

    readers = {number: TableReader(metadata, io, schema) for number, schema in schemas.items()}

    def look(verdict: Verdict, file: Any) -> Fault | None:
        try:
            same = checksum_of(readers[verdict.schema].rows_of(file)) == verdict.checksum
            why = "its rows differ from those that were decoded"
        except Exception as error:
            # PyIceberg and pyarrow raise many kinds of errors; each means that they cannot read the file.
            same, why = False, f"PyIceberg cannot read it: {describe(error)}"
        return None if same else Fault(_name(destination, verdict), "unlike", why, verdict.path)

    with without_word_of_nanoseconds():
        for fault in in_threads((functools.partial(look, *file) for file in kept), default_threads()):
            result.add(fault)


def _fault(destination: Destination, verdict: Verdict, storage_options: StorageOptions) -> Fault | None:
    for kind, reason in _faults(destination, verdict, storage_options):
        return Fault(_name(destination, verdict), kind, reason, verdict.path)
    return None


def _name(destination: Destination, verdict: Verdict) -> str:
    """The name of the data file with a source's rows: below the target's root, or as the source has it."""
    return destination.name_of(verdict.entry.removeprefix("file://")) if verdict.reason else verdict.path


def _faults(
    destination: Destination, verdict: Verdict, storage_options: StorageOptions
) -> Iterator[tuple[str, str]]:
    if verdict.reason:
        name = _name(destination, verdict)
        stored = destination.stat(name)
        if stored is None:
            yield "missing", "it does not exist"
        elif stored.size != verdict.written:
            yield "resized", f"it has {stored.size:,} bytes, but {verdict.written:,} were written"
        elif sha256(destination.path(name), destination.storage_options) != verdict.sha256:
            yield "altered", "it has other bytes than were written"
        return
    try:
        now = identity_of(verdict.path, storage_options)
    except (OSError, ColdframeError):
        yield "missing", "it does not exist, and the table reads it"
        return
    size = int(now.partition(":")[0])
    if size != verdict.bytes:
        yield "resized", f"it has {size:,} bytes, but {verdict.bytes:,} when it was adopted"
    elif not is_same_source(verdict.path, now, verdict.identity, verdict.digest, storage_options):
        yield "altered", "it was changed since it was adopted, and Iceberg's readers do not notice that"
