"""Makes an Iceberg table over files that stay, and new files for those that cannot.

    staged table      schema, partitions, name mapping: nothing that anybody sees
    proof             PyIceberg reads each file by them; a file with other rows is converted
    new files         DST/NAME/data/*.parquet, with the ids of the columns
    commit            all files in one snapshot, and the table's name in the catalog: none before

The bytes of the source are only read.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coldframe._coldframe import RawFingerprint
from coldframe.errors import ColdframeError
from coldframe.pipeline.adopt.examining import Columns, Examined, identity_of
from coldframe.pipeline.adopt.layouts import PARQUET, layout_of
from coldframe.pipeline.adopt.mapping import PROPERTY, Mapping
from coldframe.pipeline.adopt.measures import as_numbers
from coldframe.pipeline.adopt.records import FoundTable
from coldframe.pipeline.adopt.rules import UNPROVED, UNREAD
from coldframe.pipeline.records import Json
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.iceberg_catalog import url_of
from coldframe.pipeline.sink.sinks import in_types_of

_ADOPTED = "coldframe.adopted"
_PLACEHOLDER = "not shown"
"""A temporary column: it reserves the ids of hidden columns, so that no new column gets them."""


@dataclass
class NewTable:
    """A table in the making."""

    table: FoundTable
    columns: Columns
    files: Sequence[Examined]
    destination: Destination
    codec: str
    written: list[str] = field(default_factory=list)
    """The new files."""

    def make(self, catalog: Any) -> Json:
        """Makes the table, and proves it. Raises if it is not right: then the catalog does not have it, and
        its new files are gone.
        """
        try:
            return self._make(catalog)
        except BaseException:
            for path in self.written:
                os.unlink(path)
            raise

    def _make(self, catalog: Any) -> Json:
        mapping = Mapping(self.columns.schema, self.table.keys.names)
        for item in self.files:
            if not item.verdict.reason and item.layout is not None:
                mapping.add(item.layout.fields)
        identifier = self.table.identifier
        catalog.create_namespace_if_not_exists(identifier[:-1])
        transaction = catalog.create_table_transaction(
            identifier,
            schema=self.columns.schema,
            location=f"{url_of(self.destination)}{self.table.place}",
            partition_spec=self._partitions(),
            properties=self._properties(mapping),
        )
        io = transaction._table.io
        entries = [entry for item in self.files if (entry := self._entry_of(transaction, io, item))]
        if mapping.last > self.columns.schema.highest_field_id:
            self._keep_ids(transaction, mapping.last)
        if not any(not item.verdict.reason for item in self.files):
            transaction.remove_properties("gc.enabled", PROPERTY)
        if entries:
            marked = {_ADOPTED: "true"}
            with transaction.update_snapshot(snapshot_properties=marked).fast_append() as snapshot:
                for entry in entries:
                    snapshot.append_data_file(entry)
        self._check_sources()
        transaction.commit_transaction()
        try:
            return self._check(catalog.load_table(identifier), entries)
        except BaseException:
            # `drop_table` removes only the entry: no file of the source may be deleted.
            catalog.drop_table(identifier)
            raise

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

    def _properties(self, mapping: Mapping) -> dict[str, str]:
        formats = Counter(item.file.format for item in self.files if not item.verdict.reason)
        most = formats.most_common(1)[0][0] if formats else PARQUET
        properties = {
            "format-version": "2",
            PROPERTY: mapping.to_json(),
            # Engines that expire snapshots or drop the table must not delete files of the source.
            "gc.enabled": "false",
            "write.format.default": most,
            _ADOPTED: "true",
        }
        if self.table.comment:
            properties["comment"] = self.table.comment
        return properties

    def _entry_of(self, transaction: Any, io: Any, item: Examined) -> Any:
        """The entry of a file that stays or of its new file; None if the new file would have no rows."""
        verdict = item.verdict
        if not verdict.reason and item.layout is not None:
            names = self._names_in(item)
            entry = self._entry(transaction, item, f"file://{item.file.path}", item.layout.splits, names)
            verdict.reason = self._unlike(transaction, io, entry, item)
            if not verdict.reason:
                return entry
            verdict.digest = ""
        if not verdict.rows:
            return None
        path = self._convert(item)
        verdict.written = os.path.getsize(path)
        entry = self._entry(
            transaction,
            item,
            f"file://{path}",
            layout_of(path, PARQUET).splits,
            set(self.table.columns.names),
        )
        if unlike := self._unlike(transaction, io, entry, item):
            raise ColdframeError(f"{item.file.path}, converted to {path}: {unlike}")
        return entry

    def _names_in(self, item: Examined) -> set[str]:
        """The table's columns that a file has."""
        there = set() if item.layout is None else {field.name.lower() for field in item.layout.fields}
        return {name for name in self.table.columns.names if name.lower() in there}

    def _entry(
        self, transaction: Any, item: Examined, location: str, splits: Sequence[int], names: set[str]
    ) -> Any:
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        metadata = transaction.table_metadata
        statistics = item.values.statistics(metadata.schema(), metadata.properties, names)
        stays = not item.verdict.reason
        partition = Record(*(_internal(item.file.keys[name]) for name in self.table.keys.names))
        entry = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=location,
            file_format=FileFormat((item.file.format if stays else PARQUET).upper()),
            partition=partition,
            record_count=item.values.rows,
            file_size_in_bytes=item.file.bytes if stays else item.verdict.written,
            column_sizes={},
            value_counts=statistics.values,
            null_value_counts=statistics.nulls,
            nan_value_counts=statistics.nans,
            lower_bounds=statistics.low,
            upper_bounds=statistics.high,
            key_metadata=None,
            split_offsets=list(splits) or None,
            equality_ids=None,
            sort_order_id=None,
        )
        entry.spec_id = metadata.spec().spec_id
        return entry

    def _convert(self, item: Examined) -> str:
        """Writes the rows of a file into a new one."""
        from pyiceberg.io.pyarrow import schema_to_pyarrow
        from pyiceberg.schema import Schema

        keys = set(self.table.keys.names)
        own = schema_to_pyarrow(Schema(*(f for f in self.columns.schema.fields if f.name not in keys)))
        folder = self.destination.path(f"{self.table.place}/data")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{uuid.uuid4()}.parquet")
        with open(path, "xb") as file:
            self.written.append(path)
            with pq.ParquetWriter(file, own, compression=self.codec) as writer:
                for batch in item.file.rows():
                    writer.write_batch(in_types_of(own, item.values.without_padding(batch)))
            file.flush()
            os.fsync(file.fileno())
        return path

    def _unlike(self, transaction: Any, io: Any, entry: Any, item: Examined) -> str:
        """Why the proof of a file fails; empty if PyIceberg reads from it the rows that were decoded."""
        from pyiceberg.table import FileScanTask

        seen = RawFingerprint(self.columns.shown, rows_only=True)
        try:
            for batch in _read(transaction.table_metadata, io, [FileScanTask(entry)]):
                seen.add(in_types_of(self.columns.shown, batch))
        except Exception as error:
            # PyIceberg and pyarrow raise many kinds of errors; each means that it cannot read the file.
            return f"{UNREAD}: {type(error).__name__}: {error}".partition("\n")[0]
        return UNPROVED if item.values.print.differences(seen) else ""

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

    def _check_sources(self) -> None:
        for item in self.files:
            if item.verdict.identity and identity_of(item.file.path) != item.verdict.identity:
                raise ColdframeError(f"{item.file.path}: it was changed while it was adopted")

    def _check(self, current: Any, entries: Sequence[Any]) -> Json:
        """Reads the finished table as PyIceberg's users do."""
        tasks = list(current.scan().plan_files())
        listed = Counter((task.file.file_path, task.file.record_count) for task in tasks)
        # A plan passes over files without rows.
        wanted = Counter((entry.file_path, entry.record_count) for entry in entries if entry.record_count)
        if listed != wanted:
            raise ColdframeError("the finished table lists other files than were adopted")
        expected = RawFingerprint(self.columns.shown, rows_only=True)
        for item in self.files:
            expected.join(item.values.print)
        seen = RawFingerprint(self.columns.shown, rows_only=True)
        for batch in _read(current.metadata, current.io, tasks):
            seen.add(in_types_of(self.columns.shown, batch))
        if unlike := expected.differences(seen):
            raise ColdframeError(f"PyIceberg reads other rows from the finished table: {'; '.join(unlike)}")
        snapshot = current.current_snapshot()
        return {
            "iceberg table": ".".join(self.table.identifier),
            "snapshot": None if snapshot is None else snapshot.snapshot_id,
            "metadata": current.metadata_location,
        }


def _read(metadata: Any, io: Any, tasks: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    for task in tasks:
        yield from ArrowScan(metadata, io, metadata.schema(), AlwaysTrue()).to_record_batches([task])


def _internal(value: pa.Scalar) -> Any:
    """A partition value as a manifest has it."""
    if not value.is_valid:
        return None
    return as_numbers(pa.repeat(value, 1))[0].as_py()
