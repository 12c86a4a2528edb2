"""What tables are called in the catalog that a run names, and what goes along from their definitions.

    orders of the metastore's database sales     sales.orders
    the table a/b of a directory                 migrated.a_b
    namespace, rename, suffix                    say otherwise

A table keeps the name that it got: the files of a table in two catalogs would be two tables.
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
"""Properties that are about the old files, or that an engine keeps for itself."""

Definitions = Mapping[str, Definition]
"""By the name of a table's entry."""


def definition_of(table: Table, definitions: Definitions) -> Definition | None:
    """What a metastore says of a table."""
    return None if table.spec is None else definitions.get(table.spec.name)


def about(definition: Definition | None) -> About:
    """What goes along of a definition."""
    if definition is None:
        return About()
    kept = {key: value for key, value in definition.parameters.items() if not _OF_HIVE.match(key)}
    columns = (*definition.storage.columns, *definition.keys)
    comments = {column.name.lower(): column.comment for column in columns if column.comment}
    return About(definition.comment, definition.owner, kept, comments)


def names_of(
    works: Sequence[TableWork], options: Options, definitions: Definitions
) -> dict[str, InCatalog | None]:
    """What the tables are to be called in the catalog, by their paths; None where there is no catalog."""
    return {
        work.table.path: _name(work.table, options, definition_of(work.table, definitions)) for work in works
    }


def _name(table: Table, options: Options, definition: Definition | None) -> InCatalog | None:
    if options.catalog is None:
        return None
    if definition is None:
        namespace, plain = NAMESPACE, re.sub(r"\W", "_", table.name)
    else:
        namespace, plain = definition.database, definition.name
    catalog = options.catalog
    if is_metastore(catalog):
        address = Selected.of(catalog)
        catalog = address.uris
        namespace = namespace if address.database == "*" else address.database
    namespace = options.namespace or namespace
    renamed = options.rename.get(table.name)
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
    """What a table is called from this run on; SchemaError if that is not possible.

    `is_free`: it may get a name though an earlier run has made it without one.
    """
    wanted, recorded = names[table.path], state.name_of(table.name, table.path).place
    if wanted is not None and recorded is not None and not table.files:
        # Its source is gone, and with it the definition.
        wanted = recorded if recorded.catalog == wanted.catalog else wanted
    # Hive knows names in any case.
    same = Counter(str(name).lower() for name in names.values() if name is not None)
    if wanted is not None and same[str(wanted).lower()] > 1:
        raise SchemaError(f"two tables would be {wanted}: rename one of them")
    if wanted == recorded:
        return wanted
    if wanted is None:
        raise SchemaError(f"it is {recorded}: name that catalog again")
    is_there = recorded is not None if is_free else bool(state.registered.get(table.path))
    if is_there and not fresh:
        now = f"it is {recorded}" if recorded is not None else "no catalog was named for it before"
        raise SchemaError(f"{now}, and cannot be {wanted} as well: convert everything once more (fresh)")
    return wanted
