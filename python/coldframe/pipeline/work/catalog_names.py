"""The names of tables in a run's catalog, and the properties that they take over from their definitions.

    orders of the metastore's database sales     sales.orders
    the table a/b of a directory                 migrated.a_b
    namespace, rename, suffix                    override these names

A table keeps its name, since under two names its files would form two tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from coldframe._coldframe import SchemaError
from coldframe.hive.addresses import Selected, is_metastore
from coldframe.hive.definition import Definition
from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.sink.committed import About
from coldframe.pipeline.sink.iceberg_catalog import NAMESPACE
from coldframe.pipeline.sink.live import InCatalog
from coldframe.pipeline.source.tables import Table
from coldframe.pipeline.state.journal import State

_OF_HIVE = re.compile(
    r"(EXTERNAL|comment|storage_handler|transient_lastDdlTime|last_modified_(by|time)|numFiles\w*|numRows|numPartitions|rawDataSize"
    r"|totalSize|COLUMN_STATS_ACCURATE|STATS_\w+|DO_NOT_UPDATE_STATS|bucketing_version|transactional\w*"
    r"|external\.table\.purge|discover\.partitions|TRANSLATED_TO_EXTERNAL|(spark\.sql|orc|parquet|avro|hive|serialization"
    r"|hbase|kudu|coldframe)\..*)\Z"
)
"""Properties that describe the old files, or that engines keep for themselves."""

Definitions = Mapping[str, Definition]
"""Definitions by the name of a table's entry."""


def definition_of(table: Table, definitions: Definitions) -> Definition | None:
    """A metastore's definition of a table."""
    return None if table.spec is None else definitions.get(table.spec.name)


def about(definition: Definition | None) -> About:
    """The properties that the new table takes over from a definition."""
    if definition is None:
        return About()
    kept = {key: value for key, value in definition.parameters.items() if not _OF_HIVE.match(key)}
    columns = (*definition.storage.columns, *definition.keys)
    comments = {column.name.lower(): column.comment for column in columns if column.comment}
    return About(definition.comment, definition.owner, kept, comments)


def names_of(
    works: Sequence[TableWork], options: Options, definitions: Definitions
) -> dict[str, InCatalog | None]:
    """The names of the tables in the catalog, by their paths; None if no catalog is named."""
    return {
        work.table.path: _name(work.table, options, definition_of(work.table, definitions)) for work in works
    }


def _name(table: Table, options: Options, definition: Definition | None) -> InCatalog | None:
    if definition is None:
        return name_in_catalog(table.name, NAMESPACE, re.sub(r"\W", "_", table.name), options)
    return name_in_catalog(table.name, definition.database, definition.name, options)


def name_in_catalog(name: str, namespace: str, plain: str, options: Options) -> InCatalog | None:
    """The name of a table in the user's catalog; None if no catalog is named. `namespace` and `plain`: its
    usual name.
    """
    if options.catalog is None:
        return None
    catalog = options.catalog
    if is_metastore(catalog):
        address = Selected.of(catalog)
        catalog = address.uris
        namespace = namespace if address.database == "*" else address.database
    namespace = options.namespace or namespace
    renamed = options.rename.get(name)
    if renamed is None:
        plain += options.suffix
    else:
        *before, plain = renamed.split(".")
        namespace = ".".join(before) or namespace
    if is_metastore(catalog):
        # Hive keeps names in lower case.
        namespace, plain = namespace.lower(), plain.lower()
    return InCatalog(catalog, namespace, plain)


def settled_name(
    table: Table, names: Mapping[str, InCatalog | None], state: State, *, fresh: bool, is_free: bool
) -> InCatalog | None:
    """The name of a table from this run on; SchemaError if it cannot have that name.

    `is_free`: whether a table of an earlier run that has no name in a catalog may get a name.
    """
    wanted, recorded = names[table.path], state.name_of(table.name, table.path).place
    if wanted is not None and recorded is not None and not table.files:
        # The source is gone, so there is no definition.
        wanted = recorded if recorded.catalog == wanted.catalog else wanted
    # Hive ignores the case of names.
    same = Counter(str(name).lower() for name in names.values() if name is not None)
    if wanted is not None and same[str(wanted).lower()] > 1:
        raise SchemaError(f"two tables would be registered as {wanted}: rename one of them")
    if wanted == recorded:
        return wanted
    if wanted is None:
        raise SchemaError(f"it is registered as {recorded}: name that catalog again")
    is_there = recorded is not None if is_free else bool(state.registered.get(table.path))
    if is_there and not fresh:
        now = f"it is {recorded}" if recorded is not None else "an earlier run named no catalog for it"
        raise SchemaError(f"{now}, and cannot be {wanted} as well: convert everything again (fresh)")
    return wanted
