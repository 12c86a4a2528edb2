"""The catalog of an Iceberg table: a file of the destination, or a catalog in PyIceberg's configuration.

    DST/_coldframe/iceberg.db     if no catalog is named: namespace `migrated`, for one destination only
    REST, Hive, Glue, SQL ..      by PyIceberg's configuration; shared with other tables and destinations

In a shared catalog, a table's properties state its source and its location. A table with other properties
belongs to somebody else and is never touched.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coldframe._coldframe import ColdframeError
from coldframe.errors import unsupported
from coldframe.pipeline.records import Json
from coldframe.pipeline.sink.destination import HOME, Destination
from coldframe.pipeline.sink.live import InCatalog, TableName
from coldframe.pipeline.sink.marks import SOURCE
from coldframe.sources import is_remote

NAMESPACE = "migrated"
FILE = f"{HOME}/iceberg.db"
Identifier = tuple[str, ...]


@dataclass(frozen=True)
class OpenCatalog:
    """The catalog of a table."""

    open: Callable[[], Any]
    """Opens the catalog; creates a missing catalog file."""
    exists: bool
    keep: Callable[[], None]
    """Publishes the latest changes."""
    label: str
    """The catalog's name in messages."""


@contextlib.contextmanager
def catalog_of(destination: Destination, place: InCatalog | None) -> Iterator[OpenCatalog]:
    """The catalog of a table; `place`: the table's name in a named catalog."""
    if place is not None:
        name = place.catalog
        yield OpenCatalog(lambda: named_catalog(name, destination), True, lambda: None, name)
        return
    if not is_remote(destination.root):
        there = os.path.isfile(destination.path(FILE))
        yield OpenCatalog(lambda: open_catalog(destination.root), there, lambda: None, FILE)
        return
    from coldframe.pipeline.sink.iceberg_store import catalog_copy

    with catalog_copy(destination) as (path, copy):
        yield OpenCatalog(lambda: _remote_catalog(destination, path), copy.exists, copy.put_back, FILE)


def open_catalog(root: str) -> Any:
    """The catalog file of a target directory."""
    from pyiceberg.catalog.sql import SqlCatalog

    path = os.path.join(root, FILE)
    return SqlCatalog("coldframe", uri=f"sqlite:///{path}", warehouse=f"file://{root}")


def _remote_catalog(destination: Destination, path: str) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    from coldframe.pipeline.sink.iceberg_store import io_properties

    uri, properties = f"sqlite:///{path}", io_properties(destination)
    return SqlCatalog("coldframe", uri=uri, warehouse=destination.root, **properties)


def named_catalog(name: str, destination: Destination) -> Any:
    """A catalog of PyIceberg's configuration.

    The catalog accesses a destination on a store through our stores.
    """
    from pyiceberg.catalog import load_catalog

    properties: Mapping[str, str] = {}
    if is_remote(destination.root):
        from coldframe.pipeline.sink.iceberg_store import io_properties

        properties = io_properties(destination)
    try:
        return load_catalog(name, **properties)
    except ImportError as missing:
        raise unsupported(f"catalog {name}: without the package {missing.name}: {missing}") from missing
    except Exception as error:
        # Each kind of catalog raises its own errors, and network errors.
        raise ColdframeError(f"catalog {name}: it cannot be opened: {_first_line(error)}") from error


def check_catalog(name: str, destination: Destination) -> None:
    """Raises if the catalog cannot be opened or does not answer."""
    catalog = named_catalog(name, destination)
    try:
        catalog.list_namespaces()
    except Exception as error:
        raise ColdframeError(f"catalog {name}: it does not answer: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def url_of(destination: Destination) -> str:
    """The prefix of the destination's file names in Iceberg's metadata."""
    root = destination.path("")
    return root if is_remote(root) else f"file://{root}"


def identifier_of(catalog: Any, table: TableName) -> Identifier:
    """The table's name in its catalog.

    In the catalog file, if another table already has the name (`web-logs` and `web_logs`), it gets a suffix
    from the digest of its path.
    """
    if table.place is not None:
        return (*table.place.namespace.split("."), table.place.table)
    plain = re.sub(r"\W", "_", table.name)
    if catalog.table_exists((NAMESPACE, plain)):
        of = catalog.load_table((NAMESPACE, plain)).properties.get(SOURCE)
        if of is not None and of != table.path:
            return NAMESPACE, f"{plain}_{hashlib.sha256(table.path.encode()).hexdigest()[:8]}"
    return NAMESPACE, plain


def loaded(catalog: Any, identifier: Identifier) -> Any:
    """A table of a catalog; None if there is none."""
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    try:
        return catalog.load_table(identifier)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None


def table_about(identifier: Identifier, table: Any) -> Json:
    """What a report says of a table: its name, its snapshot, and its newest metadata file."""
    snapshot = table.current_snapshot()
    return {
        "iceberg table": ".".join(identifier),
        "snapshot": None if snapshot is None else snapshot.snapshot_id,
        "metadata": table.metadata_location,
    }
