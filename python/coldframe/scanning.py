"""Many files as one table. `coldframe::dataset` in Rust finds the files, plans splits and reads rows."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from coldframe._coldframe import RawDataset, matching_rows, requested_strings, shown, without_views
from coldframe.arguments import OpenArguments, threads_of
from coldframe.arrow import pa
from coldframe.batches import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_SPLIT_BYTES,
    Damage,
    projected,
    reader_of,
    with_tested,
)
from coldframe.file import File, Split
from coldframe.filters import Bound, Condition, Filter, bind, parse
from coldframe.literals import OnError
from coldframe.logs import step
from coldframe.notebook import summary_html
from coldframe.partition_pruning import expression_of, matching
from coldframe.reading import AsTables
from coldframe.sources import Known, Source, path_of

if TYPE_CHECKING:
    pass

_log = logging.getLogger(__name__)
_ALL = Bound(None)

# A file that Rust has found (path, `key=value` pairs of its folders, identity in the listing), or an object.
_Sources = Sequence["tuple[str, list[tuple[str, str]], Known | None] | object"]


class Origin(NamedTuple):
    """The names of columns that say where a row comes from, and the number of the first row."""

    file_path: str | None = None
    row_index: str | None = None
    first_row: int = 0


_NO_ORIGIN = Origin()


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
        origin: Origin = _NO_ORIGIN,
    ) -> None:
        """`schema`: the columns without those of `origin`, if they are known; otherwise files are opened to
        learn them.
        """
        self._arguments = arguments
        self._types, self._partitioned, self._unify = partition_types, partitioned, unify
        self._schema: Any = None
        self._origin = origin
        self._damage: Damage = []
        raw = [_raw_source(source, arguments) for source in sources]
        self._label = _label(sources)
        level = logging.INFO if schema is None else logging.DEBUG
        with step(_log, level, "finding the files of %s", self._label) as notes:
            self._raw = RawDataset(
                arguments.raw,
                raw,
                partitioned=partitioned,
                types=partition_types,
                unify=unify,
                schema=schema,
                **origin._asdict(),
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
        listed = self._raw_for(self._bound(None)).found()
        return [repr(objects[at]) if at in objects else path for at, (path, _, _) in enumerate(listed)]

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
            return self._raw_for(_ALL).num_rows()

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
        bound = self._bound(filter)
        wanted = projected(self.schema, columns)
        table = self._raw_for(bound)
        rows = table.scan(
            columns=with_tested(columns, bound, self.schema),
            predicate=bound.predicate,
            limit=limit if bound.exact else None,
            batch_size=batch_size,
            on_error=on_error,
            threads=threads_of(self._arguments) if use_threads and (bound.exact or limit is None) else 1,
            files=self._pruned(bound, table),
            strings=bound.strings or self._strings,
        )
        if self._strings is not None and bound.exact:
            wanted = pa.schema(rows)

        def ended() -> None:
            if on_error != "raise":
                self._damage = rows.damage()
                if on_damage is not None:
                    on_damage(self.damage)
            rows.close()

        what = "reading %s, %d files", self._label, len(table)
        return reader_of(rows, bound, wanted, limit, ended, *what)

    def count(self, filter: Filter | None = None) -> int:
        """The number of rows, or of those that pass the filter."""
        bound = self._bound(filter)
        if bound.exact:
            with step(_log, logging.INFO, "counting the rows of %s", self._label):
                return self._raw_for(bound).count(bound.predicate)
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
            table = self._raw_for(bound)
            raw = table.splits(split_bytes, predicate=bound.predicate, files=self._pruned(bound, table))
            notes.append(f"{len(raw)} splits of {len(table)} files")
        return [Split.of(split, self._arguments) for split in raw]

    def planned(self, split_bytes: int, *, filter: Filter | None = None) -> list[Split]:
        """As `splits`, but does not open files that a listing has found. The splits of these files are
        shares: call `Split.expand` before reading a split.
        """
        bound = self._bound(filter)
        with step(_log, logging.INFO, "planning shares of %s", self._label) as notes:
            table = self._raw_for(bound)
            raw = table.plan(split_bytes, predicate=bound.predicate)
            notes.append(f"{len(raw)} shares of {len(table)} files")
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
            kept = self._kept_by(bind(filter, self.schema), self._raw)
        paths, sources = self.files, self._raw.found()
        before = list(self._rows_before())
        for at in kept:
            row = pa.record_batch(self._raw.constants(at))
            part = self._part(self._objects.get(at, sources[at]), before[at])
            yield paths[at], part, expression_of(row)

    def _rows_before(self) -> Iterator[int]:
        """For each file, the number of its first row; 0 if rows are not numbered."""
        first = self._origin.first_row
        for source in self._raw.found():
            yield first
            if self._origin.row_index is not None:
                first += self._part(source, 0).count()

    def _part(self, source: Any, first_row: int) -> Dataset:
        """One of the files, with all columns."""
        names = self.partition_columns
        types = pa.schema([self.schema.field(name) for name in names]) if names else None
        return Dataset(
            [source],
            self._arguments,
            types,
            partitioned=self._partitioned,
            unify=self._unify,
            schema=self._stored(),
            origin=self._origin._replace(first_row=first_row),
        )

    def _stored(self) -> pa.Schema:
        """The columns without those that say where a row comes from."""
        return pa.schema(
            [field for field in self.schema if field.name not in self._origin[:2]],
            metadata=self.schema.metadata,
        )

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Each call reads anew; string columns are views if `requested_schema` has views."""
        rows = self._with_strings(requested_strings(requested_schema)).to_batches()
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
        ways = (self._types, self._partitioned, self._unify)
        return _again, (sources, self._arguments, *ways, self._stored(), self._origin)

    def _bound(self, filter: Filter | None) -> Bound:
        parsed = parse(filter)
        return _ALL if parsed is None else bind(parsed, self.schema)

    def _raw_for(self, bound: Bound) -> RawDataset:
        """The table for one pass: at least the files whose rows may pass the filter."""
        return self._raw

    def _pruned(self, bound: Bound, table: RawDataset) -> list[int] | None:
        """The numbers of the files that the residual filter does not rule out; None for all files."""
        return None if bound.exact or not self.partition_columns else self._kept_by(bound, table)

    def _kept_by(self, bound: Bound, table: RawDataset) -> list[int]:
        values, schema = pa.record_batch(table.partition_values()), without_views(self.schema)
        if bound.predicate is not None:
            return matching_rows(bound.predicate, schema, values)
        return matching(bound.residual, values, schema)


def _again(
    sources: _Sources,
    arguments: OpenArguments,
    types: Any,
    partitioned: bool,
    unify: bool,
    schema: Any,
    origin: Origin,
) -> Dataset:
    return Dataset(
        sources, arguments, types, partitioned=partitioned, unify=unify, schema=schema, origin=origin
    )


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
