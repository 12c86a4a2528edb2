"""One file of any format: its metadata, and its rows as Arrow."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from coldframe import _coldframe
from coldframe._coldframe import (
    RawFile,
    RawOpening,
    RawScan,
    RawSplit,
    open_file,
    plan_from_bytes,
    requested_strings,
    splits_of,
)
from coldframe.choices import FormatName, OnError
from coldframe.errors import (
    AmbiguousDialectWarning,
    EncryptedColumnWarning,
    LeftOutWarning,
    PartialTableWarning,
    SchemaError,
    UnsupportedError,
    unsupported,
)
from coldframe.filters import Bound, Filter, bind, keep, mentioned, parse
from coldframe.glance import glance, size_text
from coldframe.lookups import Lookups
from coldframe.ordinals import Ordinals
from coldframe.reading import AsTables, parallel_by_default
from coldframe.sources import Known, Source, path_of, shown, through

if TYPE_CHECKING:
    import polars as pl
    from typing_extensions import Unpack

    from coldframe.dataset import ArrowDataset
    from coldframe.keywords import OpenOptions

__all__ = ["DEFAULT_BATCH_SIZE", "DEFAULT_SPLIT_BYTES", "File", "Split", "open"]

DEFAULT_BATCH_SIZE = 65536
DEFAULT_SPLIT_BYTES = 128 << 20

Damage = list[dict[str, Any]]

_WARNINGS: Mapping[str, type[UserWarning]] = {
    "ambiguous_dialect": AmbiguousDialectWarning,
    "encrypted_columns": EncryptedColumnWarning,
    "left_out": LeftOutWarning,
    "partial_table": PartialTableWarning,
}

# Keys of encrypted files by name, or a function that returns the key for a name, or None if it has none.
Keys = Mapping[str, bytes | str] | Callable[[str], bytes | str | None]


@dataclass(frozen=True)
class OpenArguments:
    """All arguments of `open` except the source."""

    format: str | None = None
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)  # secrets stay out of logs
    verify_checksums: bool = True
    keys: Keys | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    microseconds: bool = False
    """Whether instants count microseconds unless an option says else: for those who know nothing finer."""

    @cached_property
    def raw(self) -> RawOpening:
        """The same for Rust."""
        options = dict(self.options)
        return RawOpening(
            format=self.format,
            storage_options=self.storage_options,
            verify_checksums=self.verify_checksums,
            keys=self.keys,
            schema=options.pop("schema", None),
            options=options,
            microseconds=self.microseconds,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "raw"}

    def open(self, given: object, recorded: Sequence[tuple[int, bytes]] | None = None) -> File:
        """Opens a source with these arguments; `recorded` is data that an earlier opening has read."""
        source = given if isinstance(given, Source) else Source(given, self.storage_options)
        raw = open_file(
            self.raw,
            source.handle(),
            storage_options=source.core_options(),
            recorded=recorded,
            known=source.known,
        )
        if recorded is None:  # the first opening has already warned
            for kind, text in raw.notices():
                tell(raw.path, kind, text)
        return File(raw, source, self)


def tell(path: str, kind: str, text: str) -> None:
    """Warns of something that a user of a file should hear of, though it is no error."""
    warnings.warn(f"{path}: {text}", _WARNINGS[kind], stacklevel=4)


def open(
    source: object,
    *,
    format: FormatName | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    verify_checksums: bool = True,
    keys: Keys | None = None,
    **options: Unpack[OpenOptions],
) -> File:
    """Opens a file of any of the formats, or a directory that is one table (of Kudu, HBase, Hudi, Hive).

    Args:
        source: a path, a URL (`hdfs://`, `s3://`, `gs://`, `abfss://`, `https://`, or any scheme that fsspec
            supports), a seekable binary file, an fsspec file, or the content of a file: a memoryview, a
            pyarrow.Buffer, or bytes that a format recognises; other bytes are a path, as from `os.fsencode`.
        format: `"cfile"`, `"hbase"`, `"hfile"`, `"kudu"`, `"orc"`, `"rcfile"` or `"redfile"`; None detects it
            from the bytes.
        storage_options: credentials, endpoints and settings for a URL, see `docs/stores.md`.
        filesystem: a file system of fsspec or pyarrow.fs in which `source` is a path.
        verify_checksums: whether stored checksums are verified while reading.
        keys: `{name: bytes or hex}` for encrypted files, or a function that returns the key for a name, or
            None.
        **options: the format's own, such as `schema=` and `serde=` for RCFile, and `threads=`: how many
            threads a read uses (default `pyarrow.cpu_count()`, 1 in a Spark task); `docs/options.md` lists
            them.
    """
    storage_options = through(storage_options, filesystem)
    arguments = OpenArguments(format, storage_options, verify_checksums, keys, options)
    try:
        return arguments.open(source)
    except UnsupportedError as error:
        path = path_of(source)
        if path is None or not os.path.isdir(path) or _coldframe.detect(path) is not None:
            raise
        raise unsupported(f"{error}: many files as one table are cf.scan({path!r})") from None


class Split:
    """A part of a file that can be read independently, also in another process.

    It carries what was read to open the file, so that none of it is read twice. All splits of a file together
    contain each row exactly once. A split of a `Dataset` has that dataset's columns, including those of the
    partition.

    It is plain data of Rust, which pickles it as the bytes of a plan.
    """

    __slots__ = ("_arguments", "_raw", "_source")

    def __init__(
        self,
        path: str,
        format: str,
        part: int,
        start: int,
        stop: int,
        rows: int | None,
        arguments: OpenArguments,
        recorded: Sequence[tuple[int, bytes]] = (),
        *,
        known: Known | None = None,
        own: Sequence[tuple[int, bytes]] = (),
    ) -> None:
        arguments = arguments if arguments.format == format else replace(arguments, format=format)
        cut = (part, start, stop)
        raw = RawSplit(arguments.raw, path, cut, rows=rows, recorded=recorded, known=known, own=own)
        self._raw = raw
        self._arguments: OpenArguments | None = arguments
        self._source: Source | None = None

    @classmethod
    def of(cls, raw: RawSplit, arguments: OpenArguments | None, source: Source | None = None) -> Split:
        """One that Rust has made. `source`: an object of this process that it is of."""
        made = cls.__new__(cls)
        made._raw, made._arguments, made._source = raw, arguments, source
        return made

    @property
    def raw(self) -> RawSplit:
        """The same for Rust."""
        return self._raw

    path = property(lambda self: self._raw.path, doc="The file's path or URL.")
    format = property(lambda self: self._raw.format, doc="The format's name.")
    part = property(
        lambda self: self._raw.cut[0], doc="Which of the parts of a table it is in; 0 for a file."
    )
    start = property(lambda self: self._raw.cut[1], doc="Where it starts: a byte of a file.")
    stop = property(lambda self: self._raw.cut[2], doc="Where it stops.")
    rows = property(lambda self: self._raw.cut[3], doc="Its rows, None where that is not known before.")
    known = property(lambda self: self._raw.known, doc="What its store says that the file is.")
    own = property(
        lambda self: tuple(self._raw.own),
        doc="Of a folder that is one table: what was found there that the split needs.",
    )
    recorded = property(lambda self: tuple(self._raw.recorded), doc="What was read to open the file.")

    def __repr__(self) -> str:
        where = f"part={self.part}, start={self.start}, stop={self.stop}, rows={self.rows}"
        return f"Split(path={shown(self.path)!r}, format={self.format!r}, {where})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Split) and self._raw == other._raw

    def __hash__(self) -> int:
        return hash(self._raw)

    @property
    def size(self) -> int | None:
        """The length of its file in bytes; None if it is a part of a folder that is one table."""
        return None if self.known is None else int(self.known[0])

    @property
    def arguments(self) -> OpenArguments:
        """How its file is opened."""
        if self._arguments is None or self._arguments.format is None:
            texts, verified, bytes_of, options = self._raw.arguments()
            storage: Mapping[str, Any] | None = texts or None
            keys: Keys | None = dict(bytes_of) or None
            if (known := self._arguments) is not None:  # as they were given, where they are here
                storage, keys = known.storage_options, known.keys
            self._arguments = OpenArguments(self.format, storage, verified, keys, options)
        return self._arguments

    @property
    def options(self) -> Mapping[str, Any]:
        """The format's options with which the file was opened."""
        return self.arguments.options

    @property
    def partition(self) -> Mapping[str, Any]:
        """The values of the partition columns in the path of the split."""
        values = pa.record_batch(self._raw.constants())
        return {
            name: column[0].as_py() for name, column in zip(values.schema.names, values.columns, strict=True)
        }

    def open(self) -> File:
        """Opens the split's file without reading its header or footer again.

        Fails if the file has changed since the split was made.
        """
        return self._file(self._raw.open())

    def open_for_this(self) -> File:
        """Opens the split's file to read this split only: of a folder, nothing else may be readable then."""
        return self._file(self._raw.open(alone=True))

    def _file(self, raw: RawFile) -> File:
        arguments = self.arguments
        source = self._source or Source(self.path, arguments.storage_options, self.known)
        return File(raw, source, arguments)

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of its rows."""
        return pa.schema(self._raw)

    def expand(self) -> list[Split]:
        """The splits of a share (see `Dataset.planned`), for which its file is opened; else itself."""
        return [Split.of(raw, self._arguments) for raw in self._raw.expand()]

    def stated(self) -> list[list[dict[str, Any]]]:
        """The file's own statistics of its columns, to check the values read against.

        As in `File.statistics`, for each unit of the part or for all together. Empty if the file has none.
        """
        return self._raw.open(alone=True).stated((self.part, self.start, self.stop)) or []

    def witness(self) -> _coldframe.RawWitness:
        """What is certain of what the file states, to be held against what is decoded of the split."""
        return self.open_for_this()._raw.witness((self.part, self.start, self.stop))

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        on_error: OnError = "raise",
        on_damage: Callable[[Damage], None] | None = None,
    ) -> pa.RecordBatchReader:
        """Its rows as a pyarrow.RecordBatchReader. `on_damage` is called with the losses at the end."""
        if not self._raw.is_of_table:
            return self.open_for_this().to_batches(
                columns,
                filter=filter,
                batch_size=batch_size,
                split=self,
                on_error=on_error,
                on_damage=on_damage,
            )
        schema = self.schema
        parsed = parse(filter)
        bound = Bound(None) if parsed is None else bind(parsed, schema)
        wanted = projected(schema, columns)
        decoded = None if columns is None else list(columns)
        if not bound.exact and decoded is not None:
            decoded += [name for name in mentioned(bound.residual, schema) if name not in decoded]
        rows = self._raw.scan(
            columns=decoded,
            predicate=bound.predicate,
            batch_size=batch_size,
            on_error=on_error,
            strings=bound.strings,
        )

        def batches() -> Iterator[Any]:
            try:
                for batch in rows:
                    yield pa.record_batch(batch)
            finally:
                if on_error != "raise" and on_damage is not None:
                    on_damage([{k: v for k, v in lost.items() if k != "path"} for lost in rows.damage()])
                rows.close()

        stream = batches()
        if not bound.exact:
            stream = filtered(stream, bound.residual, wanted, None)
        return pa.RecordBatchReader.from_batches(wanted, stream)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = self.arguments if self._raw.is_bound else None
        given = None if arguments is None else (arguments.storage_options, arguments.keys)
        return _split_again, (self._raw.to_bytes(), given)


def _split_again(data: bytes, given: tuple[Any, Any] | None) -> Split:
    """A split of its bytes, and of what of its arguments only Python has."""
    storage_options, keys = given or (None, None)
    (raw,) = plan_from_bytes(data, storage_options=storage_options, keys=keys if callable(keys) else None)
    arguments = None if given is None else OpenArguments(None, storage_options, keys=keys)
    return Split.of(raw, arguments)


class _Closed:
    """Stands for the open file once it is closed."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ValueError(f"{shown(self.path)}: the file is closed")


class File(AsTables, Lookups, Ordinals):
    """An open file, created by `coldframe.open`.

    Anything that accepts Arrow streams accepts a File: `pyarrow.table(f)`, `polars.DataFrame(f)`,
    `duckdb.sql("from f")`, `pandas.DataFrame.from_arrow(f)`. Each call makes a new pass over the rows.

    A File that was opened by a path or a URL can be pickled. It carries what was read to open it, so another
    process reads none of that again.
    """

    def __init__(self, raw: RawFile, source: Source, arguments: OpenArguments) -> None:
        self._raw = raw
        self._source = source
        self._arguments = arguments
        self._schema: Any = None
        self._damage: Damage = []

    @property
    def format(self) -> str:
        """`"orc"`, `"rcfile"`, `"hfile"`, `"hbase"`, `"cfile"`, `"kudu"` or `"redfile"`."""
        return self._raw.format

    @property
    def path(self) -> str:
        """Where it was opened from; a placeholder for bytes and file objects."""
        return self._source.path if self._source.path is not None else self._raw.path

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the rows."""
        if self._schema is None:
            self._schema = pa.schema(self._raw)
        return self._schema

    @property
    def num_rows(self) -> int | None:
        """The number of rows; None if only a scan can tell: see `count`."""
        return self._raw.num_rows

    @property
    def metadata(self) -> Any:
        """All metadata of the file, as nested dicts."""
        return self._raw.metadata()

    @property
    def damage(self) -> Damage:
        """The losses of the last tolerant pass (see `read`): offset, length, rows_lost, structure, reason."""
        return [dict(lost) for lost in self._damage]

    def read(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        limit: int | None = None,
        on_error: OnError = "raise",
        use_threads: bool = True,
    ) -> pa.Table:
        """The rows as a pyarrow.Table.

        Args:
            columns: names, in the order of the result; None is all of them.
            filter: pyarrow.parquet's lists, a `pyarrow.compute.Expression`, or SQL text such as `"x > 5 and s
                is not null"`.
            limit: the maximum number of rows.
            on_error: `"raise"`; `"skip"` loses the smallest damaged unit and continues, see `damage`;
                `"null"` keeps the rows of a lost column, with nulls in it.
            use_threads: decode on as many threads as the option `threads`, or `pyarrow.cpu_count()`, allows.
                With a limit, or if damage is tolerated, one thread decodes.

        `to_table` is the same.
        """
        return self.to_batches(
            columns, filter=filter, limit=limit, on_error=on_error, use_threads=use_threads
        ).read_all()

    to_table = read

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        limit: int | None = None,
        split: Split | tuple[int, int] | None = None,
        on_error: OnError = "raise",
        on_damage: Callable[[Damage], None] | None = None,
        use_threads: bool = True,
        read_ahead: bool = True,
    ) -> pa.RecordBatchReader:
        """The rows as a pyarrow.RecordBatchReader; nothing is read before the first batch is requested.

        `columns`, `filter`, `limit` and `on_error` are those of `read`.

        Args:
            batch_size: the maximum number of rows in a batch.
            split: one of `splits()`, or a byte range `(start, length)` of a file: ranges that tile the file
                contain each row once. A table of many files has no byte ranges.
            on_damage: called with the losses once the stream has ended.
            use_threads: decode on several threads, see `read`.
            read_ahead: decode several units at once, ahead of the consumer; some 32 MiB per thread may wait
                for it. Otherwise the threads share the columns of one unit, and one unit is in memory at a
                time. A split is never read ahead.
        """
        return self._stream(
            columns,
            parse(filter),
            limit,
            batch_size,
            split,
            on_error,
            on_damage,
            use_threads=use_threads,
            read_ahead=read_ahead,
        )

    def count(self, filter: Filter | None = None) -> int:
        """The number of rows, or of those that pass the filter; decodes no more than that needs."""
        parsed = parse(filter)
        if parsed is None:
            return self._raw.count()
        bound = bind(parsed, self.schema)
        if bound.exact:
            return self._raw.count(bound.predicate)
        return sum(
            batch.num_rows
            for batch in self._stream([], parsed, None, DEFAULT_BATCH_SIZE, None, "raise", None)
        )

    def splits(
        self, split_bytes: int = DEFAULT_SPLIT_BYTES, *, target_bytes: int | None = None
    ) -> list[Split]:
        """Parts of about `split_bytes` each that can be read independently, also in other processes.

        `target_bytes` is the former name of `split_bytes`, and deprecated.
        """
        split_bytes = renamed("target_bytes", target_bytes, "split_bytes", split_bytes)
        source = None if self._source.travels else self._source
        raw = splits_of(
            self._raw,
            split_bytes,
            self._arguments.raw,
            self.path,
            source=None if source is None else source.handle(),
        )
        return [Split.of(one, self._known_arguments(), source) for one in raw]

    def units(
        self, columns: Sequence[str] | None = None, *, filter: Filter | None = None
    ) -> list[dict[str, Any]]:
        """The units (stripes, row groups, blocks) that a read of these columns and rows would read.

        Decodes nothing. Each has `structure` (its name), `offset` and `length` (its location in the file),
        `rows` (how many would be decoded, None if unknown) and `fetched` (bytes that would be read of it; in
        a local ORC file with a filter, those of the filter's columns: others are read where a row passes).
        Units that statistics, indexes or bloom filters exclude for `filter` are not listed.
        """
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names, not the string {columns!r}")
        parsed = parse(filter)
        bound = bind(parsed, self.schema) if parsed is not None else Bound(None)
        names = ("structure", "offset", "length", "rows", "fetched")
        found = self._raw.units(columns=None if columns is None else list(columns), predicate=bound.predicate)
        return [dict(zip(names, unit, strict=True)) for unit in found]

    def statistics(self) -> Any:
        """Per column min, max, null_count ..., per file, stripe, row group or block, as stored."""
        return self._raw.statistics()

    def lengths(self, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
        """How long the keys, values and rows of an HFile are, measured by reading all of it: what HBase's
        `hfile -s` prints.

        `key_bytes`, `value_bytes`, `row_bytes` and `row_cells` each have `count`, `min`, `max`, `mean`,
        `stddev`, `median`, `p75` .. `p999` and a `histogram`: a list of `from`, `to` and `count`.
        `biggest_row` has the most bytes. `progress` is called with the number of cells read so far.
        """
        return self._raw.lengths(progress)

    def dictionaries(self, column: str) -> list[dict[str, Any]]:
        """The dictionaries of a column of an ORC file (one for each stripe) or a CFile, as stored.

        Each has `part` (such as `stripe 0`), `offset` and `length` of its values in the file, and `values`, a
        pyarrow.Array: string, or binary if not all are UTF-8. Where values are stored without one, none.
        """
        found: list[dict[str, Any]] = []
        self.each_dictionary(column, found.append)
        return found

    def each_dictionary(self, column: str, take: Callable[[dict[str, Any]], None]) -> None:
        """Passes them to `take` one by one, so that only one is in memory."""

        def told(part: str, start: int, end: int, values: Any) -> None:
            array = pa.record_batch(values).column(0)
            take({"part": part, "offset": start, "length": end - start, "values": array})

        self._raw.dictionaries(column, told)

    def proposal(self) -> dict[str, Any] | None:
        """Options of `open` that would reveal more of the file, guessed from its values if the format can.

        For an HBase table, the columns of a wide table; for an RCFile, the SerDe that its cells suggest.
        People should review them. None if there is no proposal.
        """
        return self._raw.proposal()

    def inspect(self) -> dict[str, Any]:
        """The physical layout as a tree: every byte belongs to a node with a name, an offset and a length."""
        return self._raw.inspect()

    def verify(self, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
        """Decodes everything and checks whatever the format allows to check.

        Never raises on damage. The report has `rows`, `units` and `damage`, and states how much a report
        without damage proves: `checksums` is "all", "some", "none" (the file stores none) or "ignored",
        `checked` says the rest in words. `progress` is called with the number of rows decoded so far.
        """
        return self._raw.verify(progress)

    def to_dataset(self) -> ArrowDataset:
        """A pyarrow.dataset.Dataset: DuckDB and polars push their projections and filters into it."""
        from coldframe.dataset import ArrowDataset

        return ArrowDataset(self)

    def to_polars(self) -> pl.LazyFrame:
        """A polars.LazyFrame that reads only the columns and rows that a query needs."""
        from coldframe.polars_source import lazy_frame

        return lazy_frame(self)

    def __arrow_c_schema__(self) -> object:
        return self._raw.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Each call reads anew; string columns are views if `requested_schema` has views."""
        strings = requested_strings(requested_schema)
        scan = self._raw.scan(threads=self._threads(), read_ahead=self._source.is_core, strings=strings)
        return scan.__arrow_c_stream__()

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._source.travels:
            raise unsupported(
                f"{self.path} cannot be pickled, since it is an object in this process: open the "
                "file by its path or URL"
            )
        return _reopened, (self._source.path, self._known_arguments(), tuple(self._raw.recorded()))

    def close(self) -> None:
        """Lets go of what was read to open it, and of blocks that are kept; a read is an error from here on.

        Without it that goes with the last reference. Readers that were handed out before go on.
        """
        self._schema = self.schema
        self._raw = cast(RawFile, _Closed(self.path))

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return isinstance(self._raw, _Closed)

    def _repr_html_(self) -> str:
        if self.closed:
            return glance(repr(self), [], self.schema, [])
        known = self._raw.identity
        size = None if known is None else size_text(known[0])
        facts = [("format", self.format), ("rows", self.num_rows), ("size", size)]
        return glance(shown(self.path), facts, self.schema, self._damage)

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing stays open between calls; a file object that was passed in still belongs to its owner."""

    def __repr__(self) -> str:
        if self.closed:
            return f"<coldframe.File {shown(self.path)!r}: closed>"
        rows = "" if self.num_rows is None else f", {self.num_rows} rows"
        path = shown(self.path) if isinstance(self.path, str) else self.path
        return f"<coldframe.File {self.format} {path!r}: {len(self.schema)} columns{rows}>"

    def _known_arguments(self) -> OpenArguments:
        """The arguments with the detected format, so that it is not detected again."""
        given = self._arguments
        return given if given.format == self.format else replace(given, format=self.format)

    def _threads(self) -> int:
        """How many threads decode: as the option says, else pyarrow's number, or 1 in a task of Spark's."""
        return self._raw.threads or _default_threads()

    def _range_of(self, split: Split | tuple[int, int] | None) -> tuple[int, int, int] | None:
        """A split in the core's form."""
        if split is None:
            return None
        if isinstance(split, Split):
            return split.part, split.start, split.stop
        start, length = split
        if start < 0 or length < 0:
            raise ValueError(f"split must be (start, length) with neither negative, not {split!r}")
        return self._raw.byte_split(start, start + length)

    def _stream(
        self,
        columns: Sequence[str] | None,
        filter: Any,
        limit: int | None,
        batch_size: int,
        split: Split | tuple[int, int] | None,
        on_error: str,
        on_damage: Callable[[Damage], None] | None,
        *,
        use_threads: bool = True,
        read_ahead: bool = True,
    ) -> Any:
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names, not the string {columns!r}")
        if batch_size < 1 or (limit is not None and limit < 0):
            raise ValueError(
                f"batch_size must be at least 1 and limit at least 0, not {batch_size} and {limit}"
            )
        bound = bind(filter, self.schema) if filter is not None else Bound(None)
        residual = bound.residual
        decoded = None if columns is None else list(columns)
        if residual is not None and decoded is not None:
            needed = mentioned(residual, self.schema)
            decoded += [name for name in needed if name not in decoded]
        scan = self._raw.scan(
            columns=decoded,
            predicate=bound.predicate,
            limit=limit if residual is None else None,
            batch_size=batch_size,
            split=self._range_of(split),
            on_error=on_error,
            strings=bound.strings,
            threads=self._threads() if use_threads else 1,
            # A Python object is read under the GIL, by threads that Python would not wait for at exit.
            read_ahead=read_ahead
            and self._source.is_core
            and parallel_by_default(use_threads, on_error, limit),
        )
        schema = pa.schema(scan)
        # Drop columns that only the filter needs: a read returns the same columns with and without it.
        wanted = schema if residual is None else self._projected(columns)

        def ended() -> None:
            if on_error != "raise":
                self._damage = scan.damage()
                if on_damage is not None:
                    on_damage(self.damage)

        def batches() -> Iterator[Any]:
            # Batch by batch, since the C stream would reduce an error to its text.
            try:
                for batch in scan:
                    yield pa.record_batch(batch)
            finally:
                ended()

        stream = batches()
        if residual is not None:
            stream = filtered(stream, residual, wanted, limit)
        return pa.RecordBatchReader.from_batches(wanted, stream)

    def _projected(self, columns: Sequence[str] | None) -> Any:
        """The pyarrow.Schema of a read of these columns."""
        if columns is None:
            return self.schema
        return pa.schema(self._raw.scan(columns=list(columns), split=(0, 0, 0), threads=1))


def threads_of(arguments: OpenArguments) -> int:
    """How many threads decode files that are opened in this way."""
    given = arguments.options.get("threads")
    return given if isinstance(given, int) and given > 0 else _default_threads()


def _default_threads() -> int:
    spark = sys.modules.get("pyspark.taskcontext")
    if spark is not None and spark.TaskContext.get() is not None:
        return 1  # Spark gives each core a task of its own
    return int(pa.cpu_count())


def projected(schema: Any, columns: Sequence[str] | None) -> Any:
    """A table's schema with these columns only."""
    if columns is None:
        return schema
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, not the string {columns!r}")
    for name in columns:
        if name not in schema.names:
            known = ", ".join(map(repr, schema.names[:20]))
            raise SchemaError(f"no column {name!r}; the columns are {known}")
    return pa.schema([schema.field(name) for name in columns], metadata=schema.metadata)


def demand_plain(options: Mapping[str, Any], what: str) -> None:
    """Refuses views for a table whose columns somebody else states."""
    if options.get("strings", "plain") != "plain":
        raise unsupported(f'strings="view" of {what}: its columns have the types that are stated')


def has_masked_columns(file: File) -> bool:
    """Whether encrypted columns of a file are read masked, since there is no key."""
    return any(kind == "encrypted_columns" for kind, _ in file._raw.notices())


def raw_scan(split: Split, *, batch_size: int, on_error: str) -> RawScan:
    """The rows of a file's split for the core itself, without Python in between."""
    if split._raw.is_of_table:
        raise unsupported("the split of a dataset for the core: its partition's columns are Python's")
    file = split.open_for_this()
    return file._raw.scan(
        batch_size=batch_size,
        split=file._range_of(split),
        on_error=on_error,
        threads=file._threads(),
        strings="plain",
    )


def _reopened(path: str, arguments: OpenArguments, recorded: tuple[tuple[int, bytes], ...]) -> File:
    return arguments.open(path, recorded)


def renamed(old: str, given: Any, new: str, value: Any) -> Any:
    """The value of an option that may have been given under its former name."""
    if given is None:
        return value
    warnings.warn(f"{old} has been renamed to {new}", DeprecationWarning, stacklevel=3)
    return given


def filtered(batches: Iterator[Any], test: Any, schema: Any, limit: int | None) -> Iterator[Any]:
    """The rows that pass (see `keep`), with the columns of `schema` only."""
    left = limit
    with contextlib.closing(batches):  # type: ignore[type-var]
        if left == 0:
            return
        for batch in batches:
            kept = keep(batch, test)
            if left is not None:
                kept = kept.slice(0, left)
                left -= kept.num_rows
            if kept.num_rows:
                yield columns_of(kept, schema)
            if left == 0:
                return


def columns_of(batch: Any, schema: Any) -> Any:
    """The batch with the columns of `schema` only, and its views."""
    if batch.schema.equals(schema):
        return batch
    if len(schema) == 0:
        return row_count_batch(batch.num_rows, schema)
    columns = ((batch.column(field.name), field.type) for field in schema)
    arrays = [c if c.type.equals(type) else _coldframe.pruned(c, type) for c, type in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def row_count_batch(rows: int, schema: Any) -> Any:
    """A batch without columns that still has rows."""
    empty = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(empty).replace_schema_metadata(schema.metadata)
