"""`coldframe audit` of an adoption: files of the source are a part of the new tables, and may have changed.

    missing    a file of the source or a new file does not exist
    resized    it has another size
    altered    a file of the source has other times, and another digest; a new file has another SHA-256
    table      the catalog does not have the table, or no longer by the list of its files

What others have written to a table or deleted from it is reported as in a second run.
"""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence

from coldframe.errors import ColdframeError, unsupported
from coldframe.pipeline.adopt import REPORT
from coldframe.pipeline.adopt.changes import by_others
from coldframe.pipeline.adopt.ledger import PROPERTY, Ledger, places, read_ledger
from coldframe.pipeline.adopt.records import Verdict
from coldframe.pipeline.adopt.tables import present_in
from coldframe.pipeline.file_access import StorageOptions, sha256
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
    if deep:
        raise unsupported("a deep audit of adopted tables: a second adoption decodes what has changed")
    result = Audit(destination.root)
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
        present = {path: file for path, (_, file) in present_in(current).items()}
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
    for fault in in_threads(looks, destination.at_once):
        result.add(fault)


def _fault(destination: Destination, verdict: Verdict, storage_options: StorageOptions) -> Fault | None:
    for kind, reason in _faults(destination, verdict, storage_options):
        name = destination.name_of(verdict.entry.removeprefix("file://")) if verdict.reason else verdict.path
        return Fault(name, kind, reason, verdict.path)
    return None


def _faults(
    destination: Destination, verdict: Verdict, storage_options: StorageOptions
) -> Iterator[tuple[str, str]]:
    if verdict.reason:
        name = destination.name_of(verdict.entry.removeprefix("file://"))
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
