"""Many files as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs

from coldframe._coldframe import formats
from coldframe.ahead import in_order
from coldframe.discovery import Found, discover, partition_fields, typed_values
from coldframe.errors import CorruptFileError, NotFoundError, UnsupportedError
from coldframe.file import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_SPLIT_BYTES,
    Damage,
    File,
    Keys,
    OpenArguments,
    Split,
    renamed,
)
from coldframe.filters import Condition, Filter, bind, given, parse
from coldframe.fragment import Fragment
from coldframe.reading import AsTables, parallel_by_default
from coldframe.sources import Source, is_remote, through
from coldframe.widening import unified

if TYPE_CHECKING:
    from coldframe.dataset import ArrowDataset

__all__ = ["Dataset", "scan"]

# Files are opened by so many threads, which wait for the disk or the network.
_OPENERS = 16
# Files of a store elsewhere that are read at once, where the machine has fewer processors.
_REMOTE_FILES = 8
# So many stay open, that is to say with what was read to open them in memory.
_KEPT_OPEN = 256


def scan(
    sources: object,
    *,
    format: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    verify_checksums: bool = True,
    keys: Keys | None = None,
    partitioning: Any = "hive",
    unify: bool = True,
    **options: Any,
) -> Dataset:
    """Many files as one table.

    Args:
        sources: a path, a glob, a directory, a URL, whatever `open` takes, or a list of such. Files and
            directories whose names start with `.` or `_` are left out.
        partitioning: `"hive"` makes `key=value` directories below the root columns, typed as integer, date or
            string by all their values; a pyarrow.Schema types them; None leaves them alone.
        unify: the columns are those of all files, the first one's first, in types as wide as needed; for
            that, every file is opened when the columns are first asked for, unless a `schema` given says
            them. False takes the columns of the first file alone, and no other file is opened before its
            turn: one that has more columns, or values that do not fit, raises SchemaError then.

    `format`, `storage_options`, `filesystem`, `verify_checksums`, `keys` and the formats' options are those
    of `open`, for every file.

    Columns are found by name, and are null where a file lacks them. A file that cannot be opened ends a pass,
    or is one record of `Dataset.damage` where damage is passed over.
    """
    storage_options = through(storage_options, filesystem)
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
    return Dataset(found, arguments, types, unify=unify)


class Dataset(AsTables):
    """Many files as one table. Made by `coldframe.scan`.

    Anything that takes Arrow streams takes a Dataset, and each of them gets a fresh pass over the rows.
    It can be pickled where its sources can, and knows its columns then.
    """

    def __init__(
        self,
        found: list[Found],
        arguments: OpenArguments,
        partition_types: Any = None,
        *,
        unify: bool = True,
        first: tuple[int, File] | None = None,
    ) -> None:
        """`first`: a file that is open already, and its place among those found: its columns come first."""
        self._found = found
        self._arguments = arguments
        self._unify = unify
        self._fields = partition_fields(found, partition_types)
        self._values = [typed_values(one, self._fields) for one in found]
        self._schema: Any = None
        self._prunable: Any = None
        self._first = 0 if first is None else first[0]
        self._opened: dict[int, File] = {} if first is None else {first[0]: first[1]}
        self._damage: Damage = []

    @property
    def schema(self) -> Any:
        """The pyarrow.Schema: the files' columns (see `scan`), then those of the partitions."""
        if self._schema is None:
            first = self._lead()
            whole = first.schema if self._is_said(first) else self._of_all_files(first)
            names = {field.name for field in self._fields}
            own = [field for field in whole if field.name not in names]
            self._schema = pa.schema([*own, *self._fields], metadata=first.schema.metadata)
        return self._schema

    @property
    def format(self) -> str:
        """The format of the file whose columns it has."""
        return self._lead().format

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
        use_threads: bool = True,
    ) -> Any:
        """The rows as a pyarrow.RecordBatchReader. A filter on partition columns leaves out whole files.

        With `use_threads`, files are read side by side (a single one is, unit by unit), each a few batches
        ahead of who takes the rows, which come in the order of the files.
        """
        parsed = parse(filter)
        schema = Fragment(self.schema).projected(columns)
        if parsed is not None:
            bind(parsed, self.schema)
        if parallel_by_default(use_threads, on_error, limit):
            ahead = self._side_by_side(columns, parsed, batch_size)
            return pa.RecordBatchReader.from_batches(schema, ahead)

        def batches() -> Iterator[Any]:
            damage: Damage = []
            left = limit
            for at in self._matching(parsed):
                if left is not None and left <= 0:
                    break
                try:
                    file = self._open(at)
                except (CorruptFileError, UnsupportedError) as error:
                    if on_error == "raise":
                        raise
                    damage.append(unopened(self._found[at], error))
                    continue
                path = file.path

                def lost(items: Damage, path: str = path) -> None:
                    damage.extend({"path": path, **item} for item in items)

                reader = self._fragment(at).to_batches(
                    file,
                    columns,
                    parsed,
                    batch_size,
                    limit=left,
                    on_error=on_error,
                    on_damage=lost,
                    use_threads=use_threads,
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
        use_threads: bool = True,
    ) -> Any:
        """The rows as a pyarrow.Table."""
        return self.to_batches(
            columns, filter=filter, limit=limit, on_error=on_error, use_threads=use_threads
        ).read_all()

    read = to_table

    def count(self, filter: Filter | None = None) -> int:
        """The number of rows, or of those that pass the filter."""
        parsed = parse(filter)
        if parsed is not None:
            bind(parsed, self.schema)
        return sum(self._fragment(at).count(self._open(at), parsed) for at in self._matching(parsed))

    count_rows = count

    def splits(
        self,
        split_bytes: int = DEFAULT_SPLIT_BYTES,
        *,
        filter: Filter | None = None,
        target_bytes: int | None = None,
    ) -> list[Split]:
        """Parts that can be read apart, also in other processes. A filter prunes files by partition.

        `target_bytes` is the name that `split_bytes` had, and deprecated.
        """
        split_bytes = renamed("target_bytes", target_bytes, "split_bytes", split_bytes)
        parsed = parse(filter)
        result = []
        for at in self._matching(parsed):
            fragment = self._fragment(at)
            for split in self._open(at).splits(split_bytes):
                result.append(replace(split, fragment=fragment))
        return result

    def open_file(self, number: int) -> File:
        """One of `files`, opened."""
        return self._open(number)

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

    def __getstate__(self) -> dict[str, Any]:
        self.schema  # learnt once, here and not in every process  # noqa: B018
        return {**self.__dict__, "_opened": {}, "_prunable": None, "_damage": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def arguments(self) -> OpenArguments:
        """How its files are opened."""
        return self._arguments

    def fragments(self, filter: Filter | None = None) -> Iterator[tuple[Found, Fragment]]:
        """The files that may have rows which pass, and what they are in the dataset."""
        for at in self._matching(parse(filter)):
            yield self._found[at], self._fragment(at)

    def open_fragment(self, one: Found) -> File:
        """Opens one of its files."""
        if isinstance(one.source, File):
            return one.source
        return self._arguments.open(Source(one.source, self._arguments.storage_options, one.known))

    def _open(self, at: int) -> File:
        file = self._opened.get(at)
        if file is None:
            file = self.open_fragment(self._found[at])
            if len(self._opened) < _KEPT_OPEN:
                self._opened[at] = file
        return file

    def _lead(self) -> File:
        """The first file that can be opened, or the error of the first; a pass tells of the others."""
        failed: Exception | None = None
        for at in range(self._first, len(self._found)):
            try:
                file = self._open(at)
            except (CorruptFileError, UnsupportedError) as error:
                failed = failed or error
                continue
            self._first = at
            return file
        raise failed or NotFoundError("no files")

    def _is_said(self, first: File) -> bool:
        """Whether the first file's columns are the table's, without a look at the others."""
        if len(self._found) == 1 or not self._unify:
            return True
        given = self._arguments.options.get("schema") is not None
        return given and bool(formats()[first.format]["capabilities"]["needs_schema"])

    def _of_all_files(self, first: File) -> Any:
        def of(at: int) -> tuple[str, Any] | None:
            try:
                file = self._open(at)
                return file.path, file.schema
            except (CorruptFileError, UnsupportedError):
                return None  # which is raised, or told of, when the file's rows are asked for

        rest = [at for at in range(len(self._found)) if at != self._first]
        with ThreadPoolExecutor(min(_OPENERS, len(self._found))) as threads:
            others = list(threads.map(of, rest))
        return unified([(first.path, first.schema), *(one for one in others if one is not None)])

    def _side_by_side(self, columns: Sequence[str] | None, filter: Any, batch_size: int) -> Iterator[Any]:
        matching = self._matching(filter)
        if not matching:
            return
        # The columns of one file are shared among threads where there are not enough files for all.
        threads = self._open(matching[0])._threads()
        alone = len(matching) == 1
        if threads > 1 and is_remote(self._found[matching[0]].source):
            threads = max(threads, _REMOTE_FILES)  # most of them wait

        def rows(at: int) -> Iterator[Any]:
            file = self._open(at)
            yield from self._fragment(at).to_batches(
                file, columns, filter, batch_size, use_threads=True, read_ahead=alone
            )

        yield from in_order((partial(rows, at) for at in matching), 1 if alone else threads)

    def _fragment(self, at: int) -> Fragment:
        return Fragment(self.schema, self._values[at], complete=not self._unify)

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
            import pyarrow.dataset as pads

            format = pads.ParquetFileFormat()
            filesystem = pyarrow.fs.LocalFileSystem()
            fragments = [
                format.make_fragment(str(at), filesystem, partition_expression=_expression(values))
                for at, values in enumerate(self._values)
            ]
            self._prunable = pads.FileSystemDataset(fragments, self.schema, format, filesystem)
        return self._prunable


def unopened(found: Found, error: Exception) -> dict[str, Any]:
    """The record of a file that cannot be opened: all of it is lost."""
    size = found.known[0] if found.known is not None else 0
    structure = getattr(error, "structure", None) or "file"
    whole = {"offset": 0, "length": size, "rows_lost": None, "structure": structure}
    return {"path": str(found.source), **whole, "reason": str(error)}


def _expression(values: tuple[tuple[str, Any], ...]) -> Any:
    import pyarrow.compute as pc

    whole = pc.scalar(True)
    for name, value in values:
        part = pc.field(name) == pc.scalar(value) if value.is_valid else pc.field(name).is_null()
        whole = whole & part
    return whole
