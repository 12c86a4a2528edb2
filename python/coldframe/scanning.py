"""Many files as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs

from coldframe.discovery import Found, discover, partition_fields, typed_values
from coldframe.file import DEFAULT_BATCH_SIZE, DEFAULT_SPLIT_BYTES, Damage, File, Keys, OpenArguments, Split
from coldframe.filters import Condition, Filter, bind, given, parse
from coldframe.fragment import Fragment

if TYPE_CHECKING:
    from coldframe.dataset import ArrowDataset

__all__ = ["Dataset", "scan"]


def scan(
    sources: object,
    *,
    format: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    verify_checksums: bool = True,
    keys: Keys | None = None,
    partitioning: Any = "hive",
    **options: Any,
) -> Dataset:
    """Many files as one table.

    Args:
        sources: a path, a glob, a directory, a URL, whatever `open` takes, or a list of such. Files and
            directories whose names start with `.` or `_` are left out.
        partitioning: `"hive"` makes `key=value` directories below the root columns, typed as integer, date or
            string by all their values; a pyarrow.Schema types them; None leaves them alone.
        format, storage_options, verify_checksums, keys, **options: as for `open`, for every file.

    The columns are those of the first file. In another file they are found by name, are null where missing,
    and are cast where their type is another; where values do not fit, reading raises SchemaError.
    """
    arguments = OpenArguments(format, storage_options, verify_checksums, keys, options)
    found = discover(
        sources,
        storage_options,
        partitioned=partitioning is not None,
        whole_directories=bool(options.get("acid")),
    )
    types = partitioning if isinstance(partitioning, pa.Schema) else None
    if types is None and partitioning not in ("hive", None):
        raise ValueError(f"partitioning must be 'hive', a pyarrow.Schema or None, not {partitioning!r}")
    return Dataset(found, arguments, types)


class Dataset:
    """Many files as one table. Made by `coldframe.scan`.

    Only the first file is opened to learn the columns; the others when their turn comes. Anything that takes
    Arrow streams takes a Dataset, and each of them gets a fresh pass over the rows.
    """

    def __init__(self, found: list[Found], arguments: OpenArguments, partition_types: Any = None) -> None:
        self._found = found
        self._arguments = arguments
        self._fields = partition_fields(found, partition_types)
        self._values = [typed_values(one, self._fields) for one in found]
        self._schema: Any = None
        self._prunable: Any = None
        self._first: File | None = None
        self._damage: Damage = []

    @property
    def schema(self) -> Any:
        """The pyarrow.Schema: the first file's columns, then those of the partitions."""
        if self._schema is None:
            first = self._open(0).schema
            names = {field.name for field in self._fields}
            own = [field for field in first if field.name not in names]
            self._schema = pa.schema([*own, *self._fields], metadata=first.metadata)
        return self._schema

    @property
    def files(self) -> list[str]:
        """The files, by path."""
        return [str(one.source) if isinstance(one.source, str) else repr(one.source) for one in self._found]

    @property
    def partition_columns(self) -> list[str]:
        """The columns that come from the names of directories."""
        return [field.name for field in self._fields]

    @property
    def num_rows(self) -> int | None:
        """The number of rows, None where a file does not say it without a scan."""
        counts = [self._open(at).num_rows for at in range(len(self._found))]
        return None if None in counts else sum(n for n in counts if n is not None)

    @property
    def damage(self) -> Damage:
        """What the last tolerant pass lost: as `File.damage`, with the file's path."""
        return [dict(lost) for lost in self._damage]

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        limit: int | None = None,
        on_error: str = "raise",
        on_damage: Callable[[Damage], None] | None = None,
    ) -> Any:
        """The rows as a pyarrow.RecordBatchReader. A filter on partition columns leaves out whole files."""
        parsed = parse(filter)
        schema = Fragment(self.schema).projected(columns)
        if parsed is not None:
            bind(parsed, self.schema)

        def batches() -> Iterator[Any]:
            damage: Damage = []
            left = limit
            for at in self._matching(parsed):
                if left is not None and left <= 0:
                    break
                file = self._open(at)
                path = file.path

                def lost(items: Damage, path: str = path) -> None:
                    damage.extend({"path": path, **item} for item in items)

                reader = self._fragment(at).to_batches(
                    file, columns, parsed, batch_size, limit=left, on_error=on_error, on_damage=lost
                )
                for batch in reader:
                    if left is not None:
                        left -= batch.num_rows
                    yield batch
            if on_error != "raise":
                self._damage = damage
                if on_damage is not None:
                    on_damage(self.damage)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def to_table(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        limit: int | None = None,
        on_error: str = "raise",
    ) -> Any:
        """The rows as a pyarrow.Table."""
        return self.to_batches(columns, filter=filter, limit=limit, on_error=on_error).read_all()

    read = to_table

    def head(
        self, num_rows: int = 10, columns: Sequence[str] | None = None, *, filter: Filter | None = None
    ) -> Any:
        """The first rows as a pyarrow.Table."""
        return self.to_table(columns, filter=filter, limit=num_rows)

    def count(self, filter: Filter | None = None) -> int:
        """The number of rows, or of those that pass the filter."""
        parsed = parse(filter)
        if parsed is not None:
            bind(parsed, self.schema)
        return sum(self._fragment(at).count(self._open(at), parsed) for at in self._matching(parsed))

    count_rows = count

    def splits(self, target_bytes: int = DEFAULT_SPLIT_BYTES, *, filter: Filter | None = None) -> list[Split]:
        """Parts that can be read apart, also in other processes. A filter prunes files by partition."""
        parsed = parse(filter)
        result = []
        for at in self._matching(parsed):
            fragment = self._fragment(at)
            for split in self._open(at).splits(target_bytes):
                result.append(
                    Split(
                        split.path,
                        split.format,
                        split.part,
                        split.start,
                        split.stop,
                        split.rows,
                        split.arguments,
                        split.recorded,
                        fragment,
                        split.source,
                    )
                )
        return result

    def to_dataset(self) -> ArrowDataset:
        """A pyarrow.dataset.Dataset: DuckDB and polars push their projections and filters into it."""
        from coldframe.dataset import ArrowDataset

        return ArrowDataset(self)

    def to_polars(self) -> Any:
        """A polars.LazyFrame that reads the columns, files and rows which a query needs."""
        from coldframe.polars_source import lazy_frame

        return lazy_frame(self)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<coldframe.Dataset of {len(self._found)} files: {', '.join(self.schema.names[:8])}>"

    def _open(self, at: int) -> File:
        if at == 0:
            if self._first is None:
                self._first = self._open_source(0)
            return self._first
        return self._open_source(at)

    def _open_source(self, at: int) -> File:
        source = self._found[at].source
        return source if isinstance(source, File) else self._arguments.open(source)

    def _fragment(self, at: int) -> Fragment:
        return Fragment(self.schema, self._values[at])

    def _matching(self, filter: Any) -> list[int]:
        """The files that can have rows which pass, judged by their partition alone."""
        everything = list(range(len(self._found)))
        if filter is None or not self._fields:
            return everything
        if isinstance(filter, Condition):
            return [
                at for at in everything if not given(filter, self.schema, dict(self._values[at])).never_true
            ]
        return [int(fragment.path) for fragment in self._partitions().get_fragments(filter)]

    def _partitions(self) -> Any:
        """Pyarrow's own pruning by partition: fragments that are never opened, named by their position."""
        if self._prunable is None:
            format = pads.ParquetFileFormat()
            filesystem = pyarrow.fs.LocalFileSystem()
            fragments = [
                format.make_fragment(str(at), filesystem, partition_expression=_expression(values))
                for at, values in enumerate(self._values)
            ]
            self._prunable = pads.FileSystemDataset(fragments, self.schema, format, filesystem)
        return self._prunable


def _expression(values: tuple[tuple[str, Any], ...]) -> Any:
    whole = pc.scalar(True)
    for name, value in values:
        part = pc.field(name) == pc.scalar(value) if value.is_valid else pc.field(name).is_null()
        whole = whole & part
    return whole
