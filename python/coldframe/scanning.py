"""Many files as one table. `coldframe::dataset` in Rust finds the files, plans splits and reads rows."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coldframe._coldframe import RawDataset, requested_strings, shown, without_views
from coldframe.arguments import OpenArguments, threads_of
from coldframe.batches import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_SPLIT_BYTES,
    Damage,
    columns_of,
    filtered,
    projected,
    with_tested,
)
from coldframe.errors import SchemaError, unsupported
from coldframe.file import File, Split
from coldframe.filters import Bound, Condition, Filter, bind, keep, mentioned, needed, parse
from coldframe.literals import OnError
from coldframe.logs import step, watched
from coldframe.notebook import summary_html
from coldframe.partition_pruning import PartitionPruner, expression_of
from coldframe.reading import AsTables
from coldframe.sources import Known, Source, path_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Dataset", "DefinedDataset", "LocatedDataset"]

_log = logging.getLogger(__name__)
_ALL = Bound(None)

# A file that Rust has found (path, `key=value` pairs of its folders, identity in the listing), or an object.
_Sources = Sequence["tuple[str, list[tuple[str, str]], Known | None] | object"]


class Dataset(AsTables):
    """Many files as one table, created by `coldframe.scan`.

    Anything that accepts Arrow streams accepts a Dataset; each call makes a new pass over the rows. The
    dataset can be pickled if its sources can be pickled, and keeps its columns.
    """

    def __init__(
        self,
        sources: _Sources,
        arguments: OpenArguments,
        partition_types: Any = None,
        *,
        partitioned: bool = True,
        unify: bool = True,
        schema: Any = None,
    ) -> None:
        """`schema`: the columns if they are known; otherwise files are opened to learn them."""
        self._arguments = arguments
        self._types, self._partitioned, self._unify = partition_types, partitioned, unify
        self._schema: Any = schema
        self._damage: Damage = []
        self._pruner: PartitionPruner | None = None
        raw = [_raw_source(source, arguments) for source in sources]
        self._label = _label(sources)
        level = logging.INFO if schema is None else logging.DEBUG
        with step(_log, level, "finding the files of %s", self._label) as notes:
            self._raw = RawDataset(
                arguments.raw, raw, partitioned=partitioned, types=partition_types, unify=unify, schema=schema
            )
            notes.append(f"{len(self._raw)} files")
        # Sources that are objects of this process, by the number of their file.
        objects = (source for source in sources if not isinstance(source, tuple) and path_of(source) is None)
        self._objects = dict(zip(self._raw.objects(), objects, strict=True))

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema: the files' columns (see `scan`), then the columns of the partitions."""
        if self._schema is None:
            with step(_log, logging.INFO, "opening files for the columns of %s", self._label):
                self._schema = pa.schema(self._raw)
        return self._schema

    @property
    def format(self) -> str:
        """The format of the first file that could be opened."""
        return self._raw.format

    @property
    def files(self) -> list[str]:
        """The files, by path."""
        objects = self._objects
        return [
            repr(objects[at]) if at in objects else path for at, (path, _, _) in enumerate(self._raw.found())
        ]

    @property
    def left_out(self) -> list[dict[str, str]]:
        """Files of other kinds beside the files of the dataset, not read: the `path` and `kind` of each."""
        return [{"path": path, "kind": kind} for path, kind in self._raw.left_out()]

    @property
    def partition_columns(self) -> list[str]:
        """The columns made from the names of directories."""
        return self._raw.partition_columns()

    @property
    def num_rows(self) -> int | None:
        """The number of rows; None if a scan is needed to know it."""
        with step(_log, logging.INFO, "opening files for the row count of %s", self._label):
            return self._raw.num_rows()

    @property
    def damage(self) -> Damage:
        """The losses of the last tolerant pass: as in `File.damage`, with the `path` of the file."""
        return [
            {**lost, "path": shown(lost["path"])} if "path" in lost else dict(lost) for lost in self._damage
        ]

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        limit: int | None = None,
        on_error: OnError = "raise",
        on_damage: Callable[[Damage], None] | None = None,
        use_threads: bool = True,
    ) -> pa.RecordBatchReader:
        """The rows as a pyarrow.RecordBatchReader. A filter on partition columns excludes whole files.

        With `use_threads`, several files are read at once, ahead of the consumer and with bounded memory; the
        rows keep the order of the files. If damage is tolerated, or with a limit, one thread reads.
        """
        return self.laid_out(
            None,
            columns,
            filter=filter,
            batch_size=batch_size,
            limit=limit,
            on_error=on_error,
            on_damage=on_damage,
            use_threads=use_threads,
        )

    def laid_out(
        self,
        strings: str | None,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        limit: int | None = None,
        on_error: OnError = "raise",
        on_damage: Callable[[Damage], None] | None = None,
        use_threads: bool = True,
    ) -> pa.RecordBatchReader:
        """As `to_batches`, with strings as `"plain"` or `"view"`; None follows the option `strings`."""
        bound = self._bound(filter)
        wanted = projected(self.schema, columns)
        rows = self._raw.scan(
            columns=with_tested(columns, bound, self.schema),
            predicate=bound.predicate,
            limit=limit if bound.exact else None,
            batch_size=batch_size,
            on_error=on_error,
            threads=threads_of(self._arguments) if use_threads and (bound.exact or limit is None) else 1,
            files=self._pruned(bound),
            strings=bound.strings or strings,
        )
        if strings is not None and bound.exact:
            wanted = pa.schema(rows)

        def batches() -> Iterator[Any]:
            try:
                what = "reading %s, %d files", self._label, len(self._raw)
                yield from watched(_log, logging.INFO, *what, batches=map(pa.record_batch, rows))
            finally:
                if on_error != "raise":
                    self._damage = rows.damage()
                rows.close()
            if on_error != "raise" and on_damage is not None:
                on_damage(self.damage)

        stream = batches()
        if not bound.exact:
            stream = filtered(stream, bound.residual, wanted, limit)
        return pa.RecordBatchReader.from_batches(wanted, stream)

    def to_table(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        limit: int | None = None,
        on_error: OnError = "raise",
        use_threads: bool = True,
    ) -> pa.Table:
        """The rows as a pyarrow.Table."""
        return self.to_batches(
            columns, filter=filter, limit=limit, on_error=on_error, use_threads=use_threads
        ).read_all()

    read = to_table

    def count(self, filter: Filter | None = None) -> int:
        """The number of rows, or of those that pass the filter."""
        bound = self._bound(filter)
        if bound.exact:
            with step(_log, logging.INFO, "counting the rows of %s", self._label):
                return self._raw.count(bound.predicate)
        with contextlib.closing(self.to_batches([], filter=filter)) as batches:
            return sum(batch.num_rows for batch in batches)

    count_rows = count

    def splits(
        self,
        split_bytes: int = DEFAULT_SPLIT_BYTES,
        *,
        filter: Filter | None = None,
        target_bytes: int | None = None,
    ) -> list[Split]:
        """Parts that can be read independently, also in other processes. A filter excludes whole files.

        `target_bytes` is another name of `split_bytes`.
        """
        split_bytes = split_bytes if target_bytes is None else target_bytes
        bound = self._bound(filter)
        with step(_log, logging.INFO, "planning splits of %s", self._label) as notes:
            raw = self._raw.splits(split_bytes, predicate=bound.predicate, files=self._pruned(bound))
            notes.append(f"{len(raw)} splits of {len(self._raw)} files")
        return [Split.of(split, self._arguments) for split in raw]

    def planned(self, split_bytes: int, *, filter: Filter | None = None) -> list[Split]:
        """As `splits`, but does not open files that a listing has found. The splits of these files are
        shares: call `Split.expand` before reading a split.
        """
        bound = self._bound(filter)
        with step(_log, logging.INFO, "planning shares of %s", self._label) as notes:
            raw = self._raw.plan(split_bytes, predicate=bound.predicate)
            notes.append(f"{len(raw)} shares of {len(self._raw)} files")
        return [Split.of(split, None) for split in raw]

    @property
    def found(self) -> list[Any]:
        """The files with their identities in the listing, from which another Dataset of the same files can be
        made.
        """
        return list(self._raw.found())

    def open_file(self, number: int) -> File:
        """Opens the file with this number in `files`."""
        if isinstance(given := self._objects.get(number), File):
            return given
        path, _, known = self._raw.found()[number]
        source = Source(self._objects.get(number, path), self._arguments.storage_options, known)
        with step(_log, logging.DEBUG, "opening %s", source):
            return File(self._raw.open(number), source, self._arguments)

    def parts(self, filter: Any = None) -> Iterator[tuple[str, Dataset, Any]]:
        """For each file: its path, a Dataset of this file with all columns, and its partition values as an
        expression.

        If `filter` is an expression on partition columns, it excludes whole files.
        """
        kept: list[int] = list(range(len(self._raw)))
        if filter is not None and self.partition_columns and not isinstance(filter, Condition):
            kept = self._partitions().kept(bind(filter, self.schema))
        paths, sources = self.files, self._raw.found()
        for at in kept:
            row = pa.record_batch(self._raw.constants(at))
            yield paths[at], self._part_at(at, self._objects.get(at, sources[at])), expression_of(row)

    def _part_at(self, at: int, source: Any) -> Dataset:
        """The dataset of the file with this number."""
        return self._part(source)

    def _part(self, source: Any) -> Dataset:
        schema = Dataset.schema.__get__(self)
        names = self.partition_columns
        types = pa.schema([schema.field(name) for name in names]) if names else None
        return Dataset(
            [source],
            self._arguments,
            types,
            partitioned=self._partitioned,
            unify=self._unify,
            schema=schema,
        )

    def to_polars(self) -> pl.LazyFrame:
        """A polars.LazyFrame that reads only the columns, files and rows that a query needs."""
        from coldframe.polars_source import lazy_frame

        # polars holds strings as views itself.
        return lazy_frame(self, partial(self.laid_out, "view"))

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Each call reads anew; string columns are views if `requested_schema` has views."""
        rows = self.laid_out(requested_strings(requested_schema))
        return rows.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<coldframe.Dataset of {len(self._raw)} files: {', '.join(self.schema.names[:8])}>"

    def _repr_html_(self) -> str:
        count = len(self._raw)
        properties = [("files", f"{count:,}")]
        return summary_html(
            shown(self.files[0]) if count == 1 else f"{count:,} files", properties, self.schema, self._damage
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Resolve the columns once here, and not again in every process that unpickles the dataset.
        sources: list[Any] = [self._objects.get(at, source) for at, source in enumerate(self._raw.found())]
        return _again, (sources, self._arguments, self._types, self._partitioned, self._unify, self.schema)

    def _bound(self, filter: Filter | None) -> Bound:
        parsed = parse(filter)
        return _ALL if parsed is None else bind(parsed, self.schema)

    def _pruned(self, bound: Bound) -> list[int] | None:
        """The numbers of the files that the residual filter does not rule out; None for all files."""
        if bound.exact or not self.partition_columns:
            return None
        return self._partitions().kept(bound)

    def _partitions(self) -> PartitionPruner:
        if self._pruner is None:
            rows = (pa.record_batch(self._raw.constants(at)) for at in range(len(self._raw)))
            self._pruner = PartitionPruner(rows, without_views(self.schema))
        return self._pruner


class DefinedDataset(Dataset):
    """Many files as one table with types from its definition, which also determine the layout of strings."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def laid_out(
        self, strings: str | None, columns: Sequence[str] | None = None, **arguments: Any
    ) -> pa.RecordBatchReader:
        """As `to_batches`; ignores `strings`, since the definition determines the layout."""
        return self.to_batches(columns, **arguments)


class LocatedDataset(Dataset):
    """A dataset with columns for the origin of each row: the path of its file, its number among all rows.

    Created by `coldframe.scan` with `file_path` or `row_index`, which name these columns.

    Files are read one after the other. Rows are numbered before they are filtered, so all rows are decoded if
    there is a `row_index`.
    """

    _path: str | None = None
    _index: str | None = None
    _before: tuple[LocatedDataset, int] | None = None
    """For a file of a dataset: the dataset, and the number of files before this file."""
    _first: int | None = None

    def named(self, file_path: str | None, row_index: str | None, first: int | None = None) -> LocatedDataset:
        """Sets the names of the two columns, and returns itself. `first`: the number of the first row."""
        self._path, self._index, self._first = file_path, row_index, first
        return self

    @property
    def first(self) -> int:
        """The number of the dataset's first row among all rows; not 0 for a file of a dataset."""
        if self._first is None:
            counted = self._before if self._index is not None else None
            whole, files = (None, 0) if counted is None else counted
            before = [] if whole is None else list(itertools.islice(whole._datasets(), files))
            self._first = sum(dataset.count() for _, dataset in before)
        return self._first

    def _part_at(self, at: int, source: Any) -> Dataset:
        part = self._part(source)
        part.__class__ = LocatedDataset
        assert isinstance(part, LocatedDataset)
        part._before = self, at
        return part.named(self._path, self._index)

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema; the columns for the origin of rows come last."""
        base = super().schema
        for name in (self._path, self._index):
            if name is not None and name in base.names:
                raise SchemaError(
                    f"the files have a column {name!r}: file_path and row_index need another name"
                )
        extra = [(self._path, pa.string()), (self._index, pa.int64())]
        fields = [pa.field(name, kind, nullable=False) for name, kind in extra if name is not None]
        return pa.schema([*base, *fields], metadata=base.metadata)

    def laid_out(
        self,
        strings: str | None,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        limit: int | None = None,
        on_error: OnError = "raise",
        on_damage: Callable[[Damage], None] | None = None,
        use_threads: bool = True,
    ) -> pa.RecordBatchReader:
        """The rows as a pyarrow.RecordBatchReader, file by file; strings are laid out as the option says."""
        schema = self.schema
        wanted = projected(schema, columns)
        names = wanted.names
        parsed = parse(filter)
        test = None if parsed is None else bind(parsed, schema).test
        asked = [] if test is None else mentioned(test, schema)
        own = {self._path, self._index}
        pushed = filter if self._index is None and not own & set(asked) else None
        read = names if test is None else needed(names, test, schema)
        read = [name for name in dict.fromkeys(read) if name not in own]
        # pyarrow filters these rows, and it cannot filter views.
        strings = "plain" if test is not None and pushed is None else None

        def batches() -> Iterator[Any]:
            damage: Damage = []
            rows, left = self.first, limit
            for path, dataset in self._datasets():
                reader = dataset.laid_out(
                    strings,
                    read,
                    filter=pushed,
                    batch_size=batch_size,
                    on_error=on_error,
                    use_threads=use_threads,
                )
                for batch in reader:
                    whole = self._with_own(batch, path, rows)
                    rows += batch.num_rows
                    kept = whole if test is None or pushed is not None else keep(whole, test)
                    kept = kept.slice(0, left) if left is not None else kept
                    if left is not None:
                        left -= kept.num_rows
                    if kept.num_rows:
                        yield columns_of(kept, wanted)
                    if left == 0:
                        break
                damage += dataset.damage
                if left == 0:
                    break
            if on_error != "raise":
                self._damage = damage
                if on_damage is not None:
                    on_damage(self.damage)

        return pa.RecordBatchReader.from_batches(wanted, batches())

    def count(self, filter: Filter | None = None) -> int:
        """The number of rows, or of those that pass the filter."""
        if filter is None:
            return super().count()
        return sum(batch.num_rows for batch in self.to_batches(self.schema.names[-1:], filter=filter))

    count_rows = count

    def splits(
        self,
        split_bytes: int = DEFAULT_SPLIT_BYTES,
        *,
        filter: Filter | None = None,
        target_bytes: int | None = None,
    ) -> list[Split]:
        """Unsupported: a split cannot know how many rows precede it."""
        raise unsupported(
            "splits of a dataset with file_path or row_index: scan without them; Split.path is the path"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        again, given = super().__reduce__()
        return _named, (again, (*given[:-1], super().schema), self._path, self._index, self.first)

    def _datasets(self) -> Iterator[tuple[str, Dataset]]:
        for at, (path, source) in enumerate(zip(self.files, self._raw.found(), strict=True)):
            yield path, self._part(self._objects.get(at, source))

    def _with_own(self, batch: Any, path: str, first: int) -> Any:
        fields, columns = list(batch.schema), list(batch.columns)
        if self._path is not None:
            fields.append(pa.field(self._path, pa.string(), nullable=False))
            columns.append(pa.repeat(path, batch.num_rows))
        if self._index is not None:
            fields.append(pa.field(self._index, pa.int64(), nullable=False))
            columns.append(pa.array(range(first, first + batch.num_rows), pa.int64()))
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _named(
    again: Any, given: tuple[Any, ...], file_path: str | None, row_index: str | None, first: int
) -> LocatedDataset:
    dataset: Dataset = again(*given)
    dataset.__class__ = LocatedDataset
    assert isinstance(dataset, LocatedDataset)
    return dataset.named(file_path, row_index, first)


def _again(
    sources: _Sources, arguments: OpenArguments, types: Any, partitioned: bool, unify: bool, schema: Any
) -> Dataset:
    return Dataset(sources, arguments, types, partitioned=partitioned, unify=unify, schema=schema)


def _label(sources: _Sources) -> str:
    """A name for log lines: the first source, and the number of further sources."""
    if not sources:
        return "no sources"
    first = sources[0][0] if isinstance(sources[0], tuple) else sources[0]
    path = first.path if isinstance(first, File) else path_of(first)
    name = type(first).__name__ if path is None else path
    return name if len(sources) == 1 else f"{name} and {len(sources) - 1} more"


def _raw_source(given: Any, arguments: OpenArguments) -> object:
    """A source as Rust takes it: a path, a discovered file, an open file, or an object's handle and name."""
    if (path := path_of(given)) is not None:
        return path
    if isinstance(given, tuple):
        return given
    if isinstance(given, File):
        return given._raw
    source = Source(given, arguments.storage_options)
    return source.handle(), repr(source)
