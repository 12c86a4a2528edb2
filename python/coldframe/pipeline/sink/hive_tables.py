"""The tables of a migration as external tables of a Hive metastore.

    Parquet   columns, partitions with their locations and their numbers of rows and bytes; Hive, Spark,
              Trino and Impala read them. Spark finds the exact columns in the table's properties
    Delta     the table and its location: its readers use the log

Only tables and partitions with this migration's mark are changed; no file is touched. Each step looks up what
exists, so that the next run completes a killed run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from coldframe._coldframe import HIVE_NULL, SchemaError
from coldframe.hive.addresses import Selected
from coldframe.hive.defined import connect
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage
from coldframe.pipeline.records import Json
from coldframe.pipeline.sink.committed import CommittedTable, partition_texts, partition_value
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.hive_types import hive_type, spark_schema
from coldframe.pipeline.sink.marks import DESTINATION, check_own, marks_of
from coldframe.sources import is_remote

if TYPE_CHECKING:
    from coldframe.hive.changes import MetastoreWriter

_HIVE = "org.apache.hadoop.hive.ql.io.parquet."
_CLASSES = (
    f"{_HIVE}MapredParquetInputFormat",
    f"{_HIVE}MapredParquetOutputFormat",
    f"{_HIVE}serde.ParquetHiveSerDe",
)
_STATISTICS = ("numFiles", "numRows", "totalSize")
Kind = Literal["parquet", "delta"]


@dataclass
class _Folder:
    """The files of a partition, or of a table without partitions."""

    rows: int = 0
    bytes: int = 0
    files: set[str] = field(default_factory=set)

    @property
    def statistics(self) -> dict[str, str]:
        """The numbers of files, rows and bytes, as properties for the metastore."""
        numbers = (len(self.files), self.rows, self.bytes)
        return dict(zip(_STATISTICS, map(str, numbers), strict=True))


def check_metastore(uri: str, destination: Destination) -> None:
    """Raises if the metastore at an address does not answer."""
    with connect(Selected.of(uri).uris) as metastore:
        metastore.databases()


def enlist(destination: Destination, table: CommittedTable, kind: Kind) -> Json:
    """Makes the metastore's table match the journal. Repeating the call changes nothing."""
    place = table.place
    if place is None:
        return {}
    root = root_of(destination)
    folders = _folders(table)
    with writer(place.catalog) as metastore:
        before = metastore.find(place.namespace, place.table)
        if before is None and table.schema is None:
            return {}
        if before is not None:
            check_own(before.parameters, root, table)
        wanted = _definition(root, table, kind, before, folders)
        if before is None:
            metastore.make_database(place.namespace)
            metastore.create(wanted)
        elif _differs(before, wanted):
            if _keys(before) != _keys(wanted):
                raise SchemaError(
                    f"table {table.name}: its partition columns were {', '.join(_keys(before))} and are now "
                    f"{', '.join(_keys(wanted))}, which {place} cannot become: drop it there, and run again"
                )
            metastore.change(wanted)
        if wanted.keys:
            _bring_partitions(metastore, root, wanted, folders, table)
        _read_back(metastore, root, wanted, folders, table)
    return {"hive table": f"{place.namespace}.{place.table}"}


def root_of(destination: Destination) -> str:
    """The prefix of the destination's file names in a metastore."""
    root = destination.path("")
    return root if is_remote(root) else f"file:{root}"


def writer(uris: str) -> MetastoreWriter:
    """A connection that can create and change tables."""
    from coldframe.hive.changes import MetastoreWriter

    return MetastoreWriter(uris)


def _folders(table: CommittedTable) -> dict[tuple[str, ...], _Folder]:
    """The files by their partition values; files of a partition may lie in several folders."""
    names = [field.name for field in table.partitions]
    folders: dict[tuple[str, ...], _Folder] = defaultdict(_Folder)
    for file in table.files:
        texts = partition_texts(file.final)
        values = tuple(HIVE_NULL if texts.get(name) is None else str(texts[name]) for name in names)
        folder = folders[values]
        folder.rows, folder.bytes = folder.rows + file.rows, folder.bytes + file.bytes
        folder.files.add(file.final)
    return folders


def _definition(
    root: str,
    table: CommittedTable,
    kind: Kind,
    before: Definition | None,
    folders: Mapping[tuple[str, ...], _Folder],
) -> Definition:
    """The definition that the table should have."""
    assert table.place is not None
    location, about = root + table.path, table.about
    marks = {**about.properties, **marks_of(root, table), "EXTERNAL": "TRUE"}
    # With "true", Hive 3 deletes the files of external tables, too.
    marks["external.table.purge"] = "false"
    if about.comment:
        marks["comment"] = about.comment
    if table.schema is None and before is not None:
        columns, keys, spark = before.storage.columns, before.keys, _spark_properties(before.parameters)
    else:
        fields = about.commented(table.schema or ())
        columns, keys = _columns(fields), _columns(about.commented(table.partitions))
        spark = {"spark.sql.sources.provider": kind, **spark_schema([*fields, *table.partitions])}
        spark["spark.sql.sources.schema.numPartCols"] = str(len(keys))
        for number, key in enumerate(table.partitions):
            spark[f"spark.sql.sources.schema.partCol.{number}"] = key.name
    if kind == "delta":
        # Delta's own log defines columns and partitions.
        columns, keys = (*columns, *keys), ()
        spark = {"spark.sql.sources.provider": "delta"}
    elif keys:
        spark["spark.sql.partitionProvider"] = "catalog"
    statistics = {} if keys or kind == "delta" else folders.get((), _Folder()).statistics
    input_format, output_format, serde = _CLASSES
    properties = {"serialization.format": "1", "path": location}
    storage = Storage(columns, location, input_format, output_format, serde, properties)
    return Definition(
        table.place.namespace,
        table.place.table,
        "EXTERNAL_TABLE",
        about.owner or "coldframe",
        storage,
        keys,
        {**marks, **spark, **statistics},
    )


def _spark_properties(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key.startswith("spark.sql.")}


def _columns(fields: Iterable[Any]) -> tuple[Column, ...]:
    columns = []
    for column in fields:
        comment = (column.metadata or {}).get(b"doc")
        # Hive keeps names in lower case.
        text = None if comment is None else comment.decode()
        columns.append(Column(column.name.lower(), hive_type(column.type), text))
    return tuple(columns)


def _keys(table: Definition) -> list[str]:
    return [f"{key.name} {key.type}" for key in table.keys]


def _differs(before: Definition, wanted: Definition) -> bool:
    """Whether one of our properties differs. Ignores what others have added."""
    storage = replace(before.storage, buckets=0, serde_properties=wanted.storage.serde_properties)
    same = _has(before.parameters, wanted.parameters)
    return not same or storage != wanted.storage or before.keys != wanted.keys


def _has(properties: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether the properties contain all wanted properties."""
    return wanted.items() <= properties.items()


def _bring_partitions(
    metastore: MetastoreWriter,
    root: str,
    table: Definition,
    folders: Mapping[tuple[str, ...], _Folder],
    committed: CommittedTable,
) -> None:
    """Adds, changes and drops the partitions that differ."""
    there = {partition.values: partition for partition in metastore.partition_definitions(table)}
    mark = table.parameters[DESTINATION]
    wanted = {values: _partition(root, table, values, folder) for values, folder in folders.items()}
    added = [partition for values, partition in wanted.items() if values not in there]
    changed = []
    for values, partition in wanted.items():
        old = there.get(values)
        if old is None:
            continue
        if old.parameters.get(DESTINATION) != mark:
            name = table.name_of(old)
            raise SchemaError(f"table {committed.name}: others have registered its partition {name}")
        if _is_other(old, partition):
            changed.append(replace(partition, parameters={**old.parameters, **partition.parameters}))
    metastore.add(table, added)
    metastore.change_partitions(table, changed)
    gone = [partition for values, partition in there.items() if values not in wanted]
    metastore.drop(table, [partition for partition in gone if partition.parameters.get(DESTINATION) == mark])


def _partition(root: str, table: Definition, values: tuple[str, ...], folder: _Folder) -> PartitionDefinition:
    places = sorted({name.rpartition("/")[0] for name in folder.files})
    if len(places) > 1:
        raise SchemaError(f"the files of one partition lie in two folders, {places[0]} and {places[1]}")
    serde = {"serialization.format": "1"}
    storage = replace(table.storage, location=root + places[0], serde_properties=serde)
    marks = {DESTINATION: table.parameters[DESTINATION]}
    return PartitionDefinition(values, storage, {**marks, **folder.statistics})


def _is_other(old: PartitionDefinition, new: PartitionDefinition) -> bool:
    if not _has(old.parameters, new.parameters):
        return True
    return (old.storage.location, old.storage.columns) != (new.storage.location, new.storage.columns)


def _read_back(
    metastore: MetastoreWriter,
    root: str,
    wanted: Definition,
    folders: Mapping[tuple[str, ...], _Folder],
    table: CommittedTable,
) -> None:
    """Raises if the metastore does not return the verified rows, and each partition at its files'
    location.
    """
    now = metastore.definition(wanted.database, wanted.name)
    if now.storage.location != wanted.storage.location:
        raise SchemaError(
            f"table {table.name}: {table.place} lies at {now.storage.location}, expected "
            f"{wanted.storage.location}"
        )
    counts: Counter[tuple[Any, ...]] = Counter()
    if not now.keys:
        verified, listed = wanted.parameters.get("numRows"), now.parameters.get("numRows")
        if verified is not None and verified != listed:
            raise SchemaError(
                f"table {table.name}: {table.place} has {listed} rows, but {verified} were verified"
            )
        return
    mark = wanted.parameters[DESTINATION]
    for partition in metastore.partition_definitions(now):
        folder = folders.get(partition.values)
        if folder is None or partition.parameters.get(DESTINATION) != mark:
            continue
        expected = _partition(root, wanted, partition.values, folder).storage.location
        if partition.storage.location != expected:
            name = now.name_of(partition)
            raise SchemaError(f"table {table.name}: partition {name} of {table.place} is not at {expected}")
        counts[_typed(partition.values, table)] += partition.rows or 0
    table.check_counts(counts, "Hive's metastore")


def _typed(values: Sequence[str], table: CommittedTable) -> tuple[Any, ...]:
    texts = (None if value == HIVE_NULL else value for value in values)
    return tuple(
        partition_value(text, field.type) for text, field in zip(texts, table.partitions, strict=True)
    )
