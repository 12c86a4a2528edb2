"""`coldframe.iceberg_table`: a table by its directory, its metadata file, or its name in a catalog."""

from __future__ import annotations

import datetime as dt
import importlib.util
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from coldframe._coldframe import shown
from coldframe.arguments import Keys
from coldframe.errors import NotFoundError, install_hint, unsupported
from coldframe.filters import Filter
from coldframe.iceberg.places import metadata_file
from coldframe.logs import step
from coldframe.sources import with_filesystem

if TYPE_CHECKING:
    from coldframe.iceberg.dataset import IcebergDataset

_log = logging.getLogger(__name__)


def iceberg_table(
    table: str | os.PathLike[str],
    *,
    catalog: Any = None,
    snapshot_id: int | None = None,
    as_of: dt.datetime | int | None = None,
    filter: Filter | None = None,
    location: Mapping[str, str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    verify_checksums: bool = True,
    keys: Keys | None = None,
    **options: Any,
) -> IcebergDataset:
    """A snapshot of an Iceberg table whose data files are ORC or Parquet.

    Args:
        table: the path or URL of its directory or of one of its metadata files; with `catalog`, its name.
        catalog: the name of a catalog in PyIceberg's configuration, its properties, or a catalog object.
        snapshot_id: the number of a snapshot; None for the current one.
        as_of: a datetime, or milliseconds since 1970: reads the snapshot that was current at this time.
        filter: selects the rows of the table. This filter and the filters of its methods prune manifests
            and files.
        location: for copied files, prefixes of locations and their replacements:
            `{"hdfs://old/": "/mnt/copy/"}`. Not needed for files below the table's location, which are always
            looked for in its directory.

    The other arguments are those of `open`. Columns are matched by id, so that renamed, moved, widened,
    dropped and added columns are read as Iceberg reads them.
    """
    if importlib.util.find_spec("pyiceberg") is None:
        raise unsupported(f"an Iceberg table without the package pyiceberg; {install_hint('iceberg')}")
    from coldframe.iceberg.dataset import IcebergDataset
    from coldframe.iceberg.table import Address

    if snapshot_id is not None and as_of is not None:
        raise ValueError("snapshot_id and as_of: give only one of them")
    storage_options = with_filesystem(storage_options, filesystem)
    place = os.fsdecode(table)
    if catalog is not None:
        metadata = _in_catalog(catalog, place)
    else:
        newest = metadata_file(place, storage_options)
        if newest is None:
            raise NotFoundError(f"{shown(place)}: not the directory or metadata file of an Iceberg table")
        metadata = newest
    address = Address(metadata, snapshot_id, _milliseconds(as_of), tuple((location or {}).items()))
    return IcebergDataset(address, storage_options, verify_checksums, keys, options, filter)


def _in_catalog(catalog: Any, name: str) -> str:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError

    if isinstance(catalog, str):
        with step(_log, logging.INFO, "loading the catalog %s", catalog):
            catalog = load_catalog(catalog)
    elif isinstance(catalog, Mapping):
        with step(_log, logging.INFO, "loading a catalog at %s", catalog.get("uri")):
            catalog = load_catalog(**{"name": "catalog", **catalog})
    try:
        with step(_log, logging.INFO, "catalog %s: load_table %s", catalog.name, name):
            return str(catalog.load_table(name).metadata_location)
    except NoSuchTableError as missing:
        raise NotFoundError(f"{name}: no such table in the catalog {catalog.name}") from missing


def _milliseconds(moment: dt.datetime | int | None) -> int | None:
    if not isinstance(moment, dt.datetime):
        return moment
    if moment.tzinfo is None:
        raise ValueError(f"as_of {moment.isoformat()}: a datetime needs a time zone")
    return int(moment.timestamp() * 1000)
