"""Finds the newest metadata file of an Iceberg table. This module does not need PyIceberg.

sales/orders/                          a directory that is a table
    metadata/version-hint.text         without a catalog: the number or name of the newest file
    metadata/v3.metadata.json          named by number
    metadata/00003-<uuid>.metadata.json        named by catalogs: of two with the same number, one counts
    data/..
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from coldframe._coldframe import Store, shown
from coldframe.errors import NotFoundError, unsupported
from coldframe.logs import step
from coldframe.sources import is_local_path, open_store, scheme_of

_log = logging.getLogger(__name__)

FOLDER = "metadata"
"""The directory of the metadata in a table's directory."""
NOT_LISTED = "an Iceberg table: its metadata says which of its files count; coldframe.scan reads it"
"""Why the files of an Iceberg table's directory are not a source."""
HINT = f"{FOLDER}/version-hint.text"
_ENDINGS = (".metadata.json", ".metadata.json.gz")
# v3.metadata.json, v3.gz.metadata.json, 00003-<uuid>.metadata.json
_PATTERN = re.compile(r"[*?\[]")
"""The characters of a glob."""
_NUMBERED = re.compile(r"v?(\d+)(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?")


def has_metadata(names: Iterable[str]) -> bool:
    """Whether a folder `metadata` with files of these names belongs to a table."""
    return any(_NUMBERED.fullmatch(name) for name in names)


def is_metadata_file(place: str) -> bool:
    """Whether a path or URL names a table's metadata file."""
    return place.endswith(_ENDINGS)


def directory_of(metadata: str) -> str:
    """The table's directory, by the path of its metadata file."""
    folder, _, _ = metadata.rpartition("/")
    above, _, name = folder.rpartition("/")
    return above if name == FOLDER else folder


def is_iceberg_table(place: str) -> bool:
    """Whether a path is the directory of a table on this machine."""
    return _has_folder(place) and has_metadata(os.listdir(os.path.join(place, FOLDER)))


def metadata_of_scan(
    sources: object, format: str | None, storage_options: Mapping[str, Any] | None = None
) -> str | None:
    """The newest metadata file if `sources` is the path of one Iceberg table and `format` is None."""
    if format is not None or not isinstance(sources, str | os.PathLike):
        return None
    place = os.fsdecode(sources)
    return None if _PATTERN.search(place) else metadata_file(place, storage_options)


def metadata_file(place: str, storage_options: Mapping[str, Any] | None = None) -> str | None:
    """The newest metadata file of the table in a directory; None if the directory is not a table."""
    place = place.rstrip("/") or place
    if is_metadata_file(place):
        return place
    if scheme_of(place) in ("http", "https"):
        return None  # web servers have no directories
    if is_local_path(place, storage_options) and "://" not in place and not _has_folder(place):
        return None
    with step(_log, logging.DEBUG, "looking for Iceberg metadata in %s", place):
        return _metadata_in(place, open_store(place, storage_options))


def _metadata_in(place: str, store: Store) -> str | None:
    if (entry := store.stat()) is None or not entry.is_folder:
        return None
    try:
        names = [
            entry.path.rpartition("/")[2]
            for page in store.list(FOLDER)
            for entry in page
            if not entry.is_folder
        ]
    except NotFoundError:
        return None
    except OSError:
        entry = store.stat()
        if entry is not None and not entry.is_folder:
            return None
        raise
    numbered = [(int(match[1]), name) for name in names if (match := _NUMBERED.fullmatch(name))]
    if not numbered:
        return None
    hint = HINT.rpartition("/")[2] in names
    name = _newest(place, numbered, store.read(HINT).decode("utf-8", "replace").strip() if hint else None)
    return f"{place}/{FOLDER}/{name}"


def _has_folder(place: str) -> bool:
    return os.path.isdir(os.path.join(place, FOLDER))


def _newest(place: str, numbered: list[tuple[int, str]], hint: str | None) -> str:
    by_name = {name: number for number, name in numbered}
    if hint is not None:
        for name in (hint, *(f"{hint}{ending}" for ending in _ENDINGS)):
            if name in by_name:
                return name
        # Writers create the next file before they update the hint, so files with higher numbers are valid.
        # Files with lower numbers are older than the hint: the newest one is lost.
        least = int(hint) if re.fullmatch(r"[0-9]{1,18}", hint) else 0
        numbered = [(number, name) for number, name in numbered if name.startswith("v") and number >= least]
    newest = max((number for number, _ in numbered), default=None)
    names = sorted(name for number, name in numbered if number == newest)
    if len(names) == 1:
        return names[0]
    if not names:
        raise NotFoundError(f"{shown(place)}: {HINT} names {hint!r}, but there is no such metadata file")
    # One of the files belongs to a rejected commit; only the catalog knows which.
    raise unsupported(
        f"{shown(place)}: an Iceberg table with {len(names)} metadata files of number {newest}: "
        f"give the path of the right one ({', '.join(names[:3])}), or the catalog"
    )
