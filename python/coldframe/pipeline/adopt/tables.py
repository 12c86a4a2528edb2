"""Makes or changes an Iceberg table over files that stay, and new files for those that cannot.

    transaction       schema, partitions, name mapping: nothing that anybody sees
    proof             PyIceberg reads each file by them, and Spark if asked for; a file with other rows is
                      converted
    new files         DST/NAME/data/RUN-*.parquet, with the ids of the columns
    snapshot          exactly the entries that were proved, looked at once more
    commit            all at once: the catalog has all of it, or nothing

The bytes of the source are only read.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coldframe.arguments import default_threads
from coldframe.errors import ColdframeError, SchemaError
from coldframe.pipeline.adopt.changes import Changes
from coldframe.pipeline.adopt.evolution import Evolution
from coldframe.pipeline.adopt.examining import Columns, Examined
from coldframe.pipeline.adopt.layouts import PARQUET, layout_of
from coldframe.pipeline.adopt.ledger import PROPERTY as ADOPTION
from coldframe.pipeline.adopt.ledger import Ledger, begin, stage_of, write_ledger
from coldframe.pipeline.adopt.mapping import PROPERTY
from coldframe.pipeline.adopt.mapping import Mapping as NameMapping
from coldframe.pipeline.adopt.measures import as_numbers
from coldframe.pipeline.adopt.proof import TableReader, access, checksum_of, without_word_of_nanoseconds
from coldframe.pipeline.adopt.records import READS_SOURCE, FoundTable
from coldframe.pipeline.adopt.rules import UNPROVED, UNREAD
from coldframe.pipeline.adopt.spark_proof import SparkReader
from coldframe.pipeline.adopt.spark_stage import Stage
from coldframe.pipeline.file_access import sha256
from coldframe.pipeline.records import Json
from coldframe.pipeline.scheduling import in_threads
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.iceberg_catalog import OpenCatalog, table_about, url_of
from coldframe.pipeline.sink.iceberg_files import data_file
from coldframe.pipeline.sink.iceberg_log import live_entries
from coldframe.pipeline.sink.live import LiveFile
from coldframe.pipeline.sink.parquet_footer import parts_of
from coldframe.pipeline.sink.sinks import in_types_of
from coldframe.pipeline.source.identity import identity_of
from coldframe.sources import is_remote

_PLACEHOLDER = "not shown"
"""A temporary column: it reserves the ids of hidden columns, so that no new column gets them."""
Present = Mapping[str, tuple[Any, LiveFile]]
"""The data files of a table by their names: their entries, and what readers see of them."""


def present_in(table: Any) -> Present:
    """The data files that a table lists now."""
    return {file.path: (entry, file) for entry, file in live_entries(table, "")}


@dataclass
class NewTable:
    """A table in the making, or in the changing."""

    table: FoundTable
    columns: Columns
    destination: Destination
    codec: str
    ledger: Ledger
    """What will be known of the table; its verdicts come last."""
    changes: Changes
    files: Sequence[Examined]
    """The files to add."""
    current: Any = None
    """The table of an earlier run."""
    present: Present = field(default_factory=dict)
    detach: bool = False
    """Whether the table is to read no file of the source."""
    spark: SparkReader | None = None
    """Spark, which is to read the new files as well."""
    evolution: Evolution | None = None
    """How the columns have changed since the earlier run."""
    written: list[str] = field(default_factory=list)
    """The new files, by their names below the target's root."""
    _is_committing: bool = False

    def make(self, handle: OpenCatalog) -> tuple[Json, Ledger]:
        """Makes the table, and proves it. Raises if it is not right: then the catalog has what it had, and
        the new files are gone.
        """
        begin(self.destination, self.table.place, self.ledger.run)
        try:
            with without_word_of_nanoseconds():
                return self._make(handle)
        except BaseException:
            # Whether a commit that failed was made is not always known: then the next run finds out.
            if not self._is_committing:
                for name in self.written:
                    self.destination.delete(name)
            raise

    def _make(self, handle: OpenCatalog) -> tuple[Json, Ledger]:
        from coldframe.pipeline.adopt.manifests import add_snapshot

        catalog = handle.open()
        mapping = self._mapping()
        for item in self.files:
            if not item.verdict.reason and item.layout is not None:
                mapping.add(item.layout.fields)
        transaction = self._transaction(catalog, mapping)
        io, reading = transaction._table.io, self._reading(transaction)
        # The transaction computes its metadata at each access.
        metadata = transaction.table_metadata
        reader = TableReader(metadata, reading, metadata.schema())
        calls = (partial(self._proved, metadata, reading, reader, item) for item in self.files)
        proved = list(in_threads(calls, default_threads()))
        if self.spark is not None:
            self._prove_by_spark(self.spark, catalog, mapping, reading, proved)
        entries = [entry for entry in proved if entry is not None]
        if mapping.last > transaction.table_metadata.last_column_id:
            self._keep_ids(transaction, mapping.last)
        schema = transaction.table_metadata.current_schema_id
        for item in self.files:
            item.verdict.schema = schema
        verdicts = [*self.changes.kept, *(item.verdict for item in self.files)]
        if self.current is None and all(verdict.reason for verdict in verdicts):
            transaction.remove_properties("gc.enabled", PROPERTY)
        removed = [self.present[old.entry][0] for old in self.changes.out if old.entry]
        if entries or removed:
            add_snapshot(transaction, io, entries, removed)
        listed = self._check(catalog, transaction, io, entries, removed)
        if self.detach and self.current is not None and not outside(self.destination, listed):
            self._forget_the_source(transaction)
        self._check_sources()
        ledger = Ledger(**{**vars(self.ledger), "verdicts": verdicts, "schema": schema})
        write_ledger(self.destination, ledger)
        # A commit that meets another one would be tried again on top of it, though that one may have added
        # the same files.
        transaction._snapshot_producers.clear()
        self._is_committing = True
        self._commit(transaction)
        handle.keep()
        current = catalog.load_table(ledger.identifier)
        if current.properties.get(ADOPTION) != ledger.run:
            raise ColdframeError(f"{'.'.join(ledger.identifier)}: others have changed it at the same time")
        made = about(ledger, current, self.destination, listed)
        if self.spark is not None and entries:
            made["read by"] = self.spark.label
        return made, ledger

    def _commit(self, transaction: Any) -> None:
        from pyiceberg.exceptions import TableAlreadyExistsError

        try:
            transaction.commit_transaction()
        except TableAlreadyExistsError as other:
            raise SchemaError(
                f"{'.'.join(self.ledger.identifier)} is in the catalog already, and is not of this adoption: "
                "it is left as it is. Choose another name (rename, suffix) or namespace"
            ) from other

    def _mapping(self) -> NameMapping:
        if self.current is None or PROPERTY not in self.current.properties:
            mapping = NameMapping(self.columns.schema, self.table.keys.names)
            if self.current is not None:
                mapping = NameMapping.of(mapping.to_json(), self._last_id)
            return mapping
        mapping = NameMapping.of(self.current.properties[PROPERTY], self._last_id)
        if self.evolution is not None and self.evolution.is_new:
            mapping.show(self.columns.schema.fields, self.table.keys.names)
        return mapping

    @property
    def _last_id(self) -> int:
        return max(int(self.current.metadata.last_column_id), int(self.columns.schema.highest_field_id))

    def _transaction(self, catalog: Any, mapping: NameMapping) -> Any:
        own = {PROPERTY: mapping.to_json(), ADOPTION: self.ledger.run}
        if self.current is not None:
            if any(not item.verdict.reason for item in self.files):
                own["gc.enabled"] = "false"
            transaction = self.current.transaction()
            if self.evolution is not None:
                self.evolution.apply(transaction)
            transaction.set_properties(own)
            return transaction
        catalog.create_namespace_if_not_exists(self.ledger.identifier[:-1])
        return catalog.create_table_transaction(
            self.ledger.identifier,
            schema=self.columns.schema,
            location=f"{url_of(self.destination)}{self.table.place}",
            partition_spec=self._partitions(),
            properties={**self._properties(), **own},
        )

    def _reading(self, transaction: Any) -> Any:
        """Access to the files of the source and of the target."""
        files = [item.file for item in self.files]
        options = next((file.storage_options for file in files), None)
        return access(transaction._table.io, self.destination, (file.path for file in files), options)

    def _partitions(self) -> Any:
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.transforms import IdentityTransform

        schema = self.columns.schema
        return PartitionSpec(
            *(
                PartitionField(schema.find_field(name).field_id, 1000 + at, IdentityTransform(), name)
                for at, name in enumerate(self.table.keys.names)
            )
        )

    def _properties(self) -> dict[str, str]:
        formats = Counter(item.file.format for item in self.files if not item.verdict.reason)
        properties = {
            "format-version": "2",
            # Engines that expire snapshots or drop the table must not delete files of the source.
            "gc.enabled": "false",
            "write.format.default": formats.most_common(1)[0][0] if formats else PARQUET,
        }
        if self.table.comment:
            properties["comment"] = self.table.comment
        return properties

    def _proved(self, metadata: Any, io: Any, reader: TableReader, item: Examined) -> Any:
        entry = self._entry_of(metadata, io, reader, item)
        if self.spark is None:
            item.values.forget()
        return entry

    def _prove_by_spark(
        self, spark: SparkReader, catalog: Any, mapping: NameMapping, reading: Any, entries: list[Any]
    ) -> None:
        """Spark reads the files of the entries. Those that it does not read as they were decoded are
        converted, and their entries replaced.
        """
        waiting = [at for at, entry in enumerate(entries) if entry is not None]
        while waiting:
            stage = Stage(self.destination, stage_of(self.table.place, self.ledger.run), reading)
            make = partial(self._transaction, catalog, mapping)
            seen = stage.read(spark, make, [entries[at] for at in waiting], self.columns.shown)
            metadata, wrong = make().table_metadata, []
            reader = TableReader(metadata, reading, metadata.schema())
            for at in waiting:
                item = self.files[at]
                verdict = item.verdict
                unlike = seen.unlike(entries[at].file_path, verdict)
                if not unlike:
                    verdict.by_spark = True
                    item.values.forget()
                    continue
                if verdict.reason:
                    raise ColdframeError(f"{item.file.path}, converted to {verdict.entry}: {unlike}")
                verdict.reason = unlike
                entries[at] = self._entry_of(metadata, reading, reader, item)
                wrong.append(at)
            waiting = [at for at in wrong if entries[at] is not None]

    def _entry_of(self, metadata: Any, io: Any, reader: TableReader, item: Examined) -> Any:
        """The entry of a file that stays or of its new file; None if the new file would have no rows."""
        verdict = item.verdict
        if not verdict.reason and item.layout is not None:
            verdict.entry = item.file.path if is_remote(item.file.path) else f"file://{item.file.path}"
            names = self._names_in(item)
            entry = self._entry(metadata, item, item.layout.splits, names)
            verdict.reason = self._unlike(reader, entry, item)
            if not verdict.reason:
                return entry
        verdict.entry = ""
        if not verdict.rows:
            return None
        path = self._convert(io, item)
        layout = layout_of(path, PARQUET, self.destination.storage_options)
        entry = self._entry(metadata, item, layout.splits, set(self.table.columns.names))
        if unlike := self._unlike(reader, entry, item):
            raise ColdframeError(f"{item.file.path}, converted to {path}: {unlike}")
        return entry

    def _names_in(self, item: Examined) -> set[str]:
        """The table's columns that a file has."""
        there = set() if item.layout is None else {field.name.lower() for field in item.layout.fields}
        return {name for name in self.table.columns.names if name.lower() in there}

    def _entry(self, metadata: Any, item: Examined, splits: Sequence[int], names: set[str]) -> Any:
        from pyiceberg.typedef import Record

        statistics = item.values.statistics(metadata.schema(), metadata.properties, names)
        stays = not item.verdict.reason
        partition = Record(*(_internal(item.file.keys[name]) for name in self.table.keys.names))
        statistics.splits = list(splits) or None
        return data_file(
            item.verdict.entry,
            item.file.format if stays else PARQUET,
            partition,
            item.values.rows,
            item.file.bytes if stays else item.verdict.written,
            statistics,
            metadata.spec().spec_id,
        )

    def _convert(self, io: Any, item: Examined) -> str:
        """Writes the rows of a file into a new one; returns its path or URL."""
        from pyiceberg.io.pyarrow import schema_to_pyarrow
        from pyiceberg.schema import Schema

        keys = set(self.table.keys.names)
        own = schema_to_pyarrow(Schema(*(f for f in self.columns.schema.fields if f.name not in keys)))
        name = f"{self.table.place}/data/{self.ledger.run}-{uuid.uuid4().hex}.parquet"
        path = self.destination.path(name)
        self.written.append(name)
        # Readers look for 0.0 in a dictionary, and do not find -0.0.
        plain = [column.name for column in own if not _has_floats(column.type)]
        has_zeros = any(item.values.zeros.values())
        writing = {"compression": self.codec, "use_dictionary": plain if has_zeros else True}
        with self._create(io, path) as file, pq.ParquetWriter(file, own, **writing) as writer:
            for batch in item.file.rows():
                writer.write_batch(in_types_of(own, item.values.without_padding(batch)))
        self.destination.settle([name])
        stored = self.destination.stat(name)
        item.verdict.written = 0 if stored is None else stored.size
        item.verdict.sha256 = sha256(path, self.destination.storage_options)
        item.verdict.entry = path if is_remote(path) else f"file://{path}"
        return path

    @contextlib.contextmanager
    def _create(self, io: Any, path: str) -> Iterator[Any]:
        if is_remote(path):
            with io.new_output(path).create() as file:
                yield file
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def _unlike(self, reader: TableReader, entry: Any, item: Examined) -> str:
        """Why the proof of a file fails; empty if PyIceberg reads from it the rows that were decoded."""
        try:
            seen = reader.rows_of(entry)
        except Exception as error:
            # PyIceberg and pyarrow raise many kinds of errors; each means that it cannot read the file.
            return f"{UNREAD}: {type(error).__name__}: {error}".partition("\n")[0]
        is_same = (seen.rows, checksum_of(seen)) == (item.verdict.rows, item.verdict.checksum)
        return "" if is_same else UNPROVED

    def _keep_ids(self, transaction: Any, last: int) -> None:
        """Increases the table's last column id: adds a schema with one more column, then replaces it."""
        from pyiceberg.schema import Schema
        from pyiceberg.table.update import AddSchemaUpdate, SetCurrentSchemaUpdate
        from pyiceberg.types import NestedField, StringType

        shown = transaction.table_metadata.schema()
        number = 1 + max(schema.schema_id for schema in transaction.table_metadata.schemas)
        more = Schema(
            *shown.fields, NestedField(last, _PLACEHOLDER, StringType(), required=False), schema_id=number
        )
        transaction._apply(
            (
                AddSchemaUpdate(schema=more),
                SetCurrentSchemaUpdate(**{"schema-id": number}),
                SetCurrentSchemaUpdate(**{"schema-id": shown.schema_id}),
            ),
            (),
        )

    def _forget_the_source(self, transaction: Any) -> None:
        """Takes the older snapshots out of a table that reads no file of the source any more. Then an engine
        that expires snapshots cannot delete files of the source, and may do so again.
        """
        from pyiceberg.table.update.snapshot import ExpireSnapshots

        metadata = transaction.table_metadata
        heads = {ref.snapshot_id for ref in metadata.refs.values()}
        older = [snapshot.snapshot_id for snapshot in metadata.snapshots if snapshot.snapshot_id not in heads]
        if older:
            ExpireSnapshots(transaction).by_ids(older).commit()
        # A branch or tag of somebody else may still read the source.
        if heads == {metadata.current_snapshot_id} and "gc.enabled" in metadata.properties:
            transaction.remove_properties("gc.enabled")

    def _check_sources(self) -> None:
        def check(item: Examined) -> None:
            file = item.file
            if identity_of(file.path, file.storage_options) != item.verdict.identity:
                raise ColdframeError(f"{file.path}: it was changed while it was adopted")

        for _ in in_threads((partial(check, item) for item in self.files), self.destination.at_once):
            pass

    def _check(
        self, catalog: Any, transaction: Any, io: Any, entries: Sequence[Any], removed: Sequence[Any]
    ) -> Present:
        """Looks at the table as the commit will leave it: it must list what was proved, and nothing else.
        Returns the data files that it lists.
        """
        from pyiceberg.table import Table

        metadata = transaction.table_metadata
        listed = present_in(Table(self.ledger.identifier, metadata, "", io, catalog))
        gone = {entry.file_path for entry in removed}
        wanted = {path: file.rows for path, (_, file) in self.present.items() if path not in gone}
        wanted.update((entry.file_path, entry.record_count) for entry in entries)
        if {path: file.rows for path, (_, file) in listed.items()} != wanted:
            raise ColdframeError("the finished table lists other files than were adopted")
        for entry in entries:
            there = listed[entry.file_path][0]
            # NaN differs from itself.
            if there.partition != entry.partition and repr(there.partition) != repr(entry.partition):
                raise ColdframeError(
                    f"the finished table has {entry.file_path} in partition {there.partition}, not "
                    f"{entry.partition}"
                )
        return listed


def _has_floats(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or any(_has_floats(part.type) for part in parts_of(kind))


def outside(destination: Destination, listed: Iterable[str]) -> int:
    """How many data files of a table lie outside the target: in the source."""
    root = url_of(destination).rstrip("/").removeprefix("file://") + "/"
    return sum(not path.removeprefix("file://").startswith(root) for path in listed)


def about(ledger: Ledger, current: Any, destination: Destination, listed: Iterable[str]) -> Json:
    """A table of the catalog, for the report. `listed`: its data files."""
    # An older snapshot, a branch or a tag may read the source as well: then `gc.enabled` is still false.
    reads = outside(destination, listed) > 0 or current.properties.get("gc.enabled") == "false"
    return {**table_about(ledger.identifier, current), READS_SOURCE: reads}


def _internal(value: pa.Scalar) -> Any:
    """A partition value as a manifest has it."""
    if not value.is_valid:
        return None
    return as_numbers(pa.repeat(value, 1))[0].as_py()
