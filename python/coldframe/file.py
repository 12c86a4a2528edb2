"""One file of any format: its metadata, and its rows as Arrow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from coldframe import _coldframe
from coldframe._coldframe import (
    RawFile,
    RawScan,
    RawSplit,
    open_file,
    shown,
    splits_of,
)
from coldframe.arguments import Keys, OpenArguments, default_threads
from coldframe.arrow import pa
from coldframe.batches import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_SPLIT_BYTES,
    Damage,
    names_of,
    projected,
    reader_of,
    with_tested,
)
from coldframe.byte_size import size_text
from coldframe.errors import unsupported, warn
from coldframe.filters import Bound, Filter, bind, parse
from coldframe.literals import OnError
from coldframe.logs import safe, step
from coldframe.lookups import Lookups
from coldframe.metadata import FileMetadata
from coldframe.notebook import summary_html
from coldframe.ordinals import Ordinals
from coldframe.reading import AsTables, parallel_by_default
from coldframe.sources import Known, Source

if TYPE_CHECKING:
    pass

_log = logging.getLogger(__name__)


class Split:
    """A part of a file that can be read independently, also in another process.

    It carries the bytes that were read to open the file, so that nobody reads them again. The splits of a
    file together contain each row exactly once. A split of a `Dataset` has the dataset's columns, including
    the partition columns.

    Rust holds the data, and pickles it as the bytes of a plan.
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
        """Wraps a split of Rust.

        `source`: the object of this process that the split reads, if it does not read a path.
        """
        made = cls.__new__(cls)
        made._raw, made._arguments, made._source = raw, arguments, source
        return made

    @property
    def raw(self) -> RawSplit:
        """The split in Rust."""
        return self._raw

    path = property(lambda self: self._raw.path, doc="The file's path or URL.")
    format = property(lambda self: self._raw.format, doc="The format's name.")
    part = property(lambda self: self._raw.cut[0], doc="The number of the table's part; 0 for a file.")
    start = property(lambda self: self._raw.cut[1], doc="Where the split starts: a byte of a file.")
    stop = property(lambda self: self._raw.cut[2], doc="Where the split stops.")
    rows = property(
        lambda self: self._raw.cut[3], doc="The number of the split's rows; None if it is not known yet."
    )
    known = property(lambda self: self._raw.known, doc="The identity of the file in its store.")
    own = property(
        lambda self: tuple(self._raw.own),
        doc="For a folder that is one table: the data of the folder that the split needs.",
    )
    recorded = property(
        lambda self: tuple(self._raw.recorded), doc="The bytes that were read to open the file."
    )

    def __repr__(self) -> str:
        where = f"part={self.part}, start={self.start}, stop={self.stop}, rows={self.rows}"
        return f"Split(path={shown(self.path)!r}, format={self.format!r}, {where})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Split) and self._raw == other._raw

    def __hash__(self) -> int:
        return hash(self._raw)

    @property
    def size(self) -> int | None:
        """The length of the split's file in bytes; None if it is a part of a folder that is one table."""
        return None if self.known is None else int(self.known[0])

    @property
    def arguments(self) -> OpenArguments:
        """The arguments with which the split's file is opened."""
        if self._arguments is None or self._arguments.format is None:
            texts, verified, bytes_of, options = self._raw.arguments()
            storage: Mapping[str, Any] | None = texts or None
            keys: Keys | None = dict(bytes_of) or None
            if (known := self._arguments) is not None:  # as the caller gave them, if this process has them
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
        with step(_log, logging.DEBUG, "opening the file of a split of %s", self.path):
            return self._file(self._raw.open())

    def open_for_this(self) -> File:
        """Opens the split's file to read this split only.

        The returned File of a folder may lack the other parts of the folder.
        """
        with step(_log, logging.DEBUG, "opening the file of a split of %s", self.path):
            return self._file(self._raw.open(alone=True))

    def _file(self, raw: RawFile) -> File:
        arguments = self.arguments
        source = self._source or Source(self.path, arguments.storage_options, self.known)
        return File(raw, source, arguments)

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the split's rows."""
        return pa.schema(self._raw)

    def expand(self) -> list[Split]:
        """Opens the file of a share (see `Dataset.planned`) for its splits; other splits return `[self]`."""
        return [Split.of(raw, self._arguments) for raw in self._raw.expand()]

    def stated(self) -> list[list[dict[str, Any]]]:
        """The statistics of columns that the file states; decoded values are checked against them.

        As in `File.statistics`, for each unit of the split or for all units together. Empty if the file has
        none.
        """
        return self._raw.open(alone=True).stated((self.part, self.start, self.stop)) or []

    def witness(self) -> _coldframe.RawWitness:
        """The reliable part of the file's statistics: decoded values of the split are compared with it."""
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
        """The rows of the split as a pyarrow.RecordBatchReader.

        `on_damage` is called with the losses at the end.
        """
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
        rows = self._raw.scan(
            columns=with_tested(columns, bound, schema),
            predicate=bound.predicate,
            batch_size=batch_size,
            on_error=on_error,
            strings=bound.strings,
        )

        def ended() -> None:
            if on_error != "raise" and on_damage is not None:
                on_damage([{k: v for k, v in lost.items() if k != "path"} for lost in rows.damage()])
            rows.close()

        return reader_of(rows, bound, wanted, None, ended, *self._what)

    @property
    def _what(self) -> tuple[object, ...]:
        return "reading a split of %s, part %d, %d to %d", self.path, self.part, self.start, self.stop

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = self.arguments if self._raw.is_bound else None
        given = None if arguments is None else (arguments.storage_options, arguments.keys)
        return _split_again, (self._raw.to_bytes(), given)


def _split_again(data: bytes, given: tuple[Any, Any] | None) -> Split:
    """Unpickles a split from the bytes of its plan and the arguments that only Python holds."""
    storage_options, keys = given or (None, None)
    by_name = keys if callable(keys) else None
    (raw,) = _coldframe.plan_from_bytes(data, storage_options=storage_options, keys=by_name)
    arguments = None if given is None else OpenArguments(None, storage_options, keys=keys)
    return Split.of(raw, arguments)


class _Closed:
    """Takes the place of the raw file after `close`."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ValueError(f"{shown(self.path)}: the file is closed")


class File(AsTables, FileMetadata, Lookups, Ordinals):
    """An open file, created by `coldframe.open`.

    Anything that accepts Arrow streams accepts a File: `pyarrow.table(f)`, `polars.DataFrame(f)`,
    `duckdb.sql("from f")`, `pandas.DataFrame.from_arrow(f)`. Each call makes a new pass over the rows.

    A File that was opened by a path or a URL can be pickled. It carries the bytes that were read to open it,
    so another process does not read them again.
    """

    def __init__(self, raw: RawFile, source: Source, arguments: OpenArguments) -> None:
        self._raw = raw
        self._source = source
        self._arguments = arguments
        self._schema: Any = None
        self._damage: Damage = []

    @classmethod
    def of(
        cls, arguments: OpenArguments, given: object, recorded: Sequence[tuple[int, bytes]] | None = None
    ) -> File:
        """Opens a source; `recorded` is the data that an earlier opening has read."""
        source = given if isinstance(given, Source) else Source(given, arguments.storage_options)
        with step(_log, logging.INFO, "opening %s", source) as notes:
            raw = open_file(
                arguments.raw,
                source.handle(),
                storage_options=source.core_options(),
                recorded=recorded,
                known=source.known,
            )
            notes.append(f"format {raw.format}")
        if recorded is None:  # the first opening has already warned
            for kind, text in raw.notices():
                warn(raw.path, kind, text)
        return cls(raw, source, arguments)

    @property
    def format(self) -> str:
        """`"orc"`, `"rcfile"`, `"hfile"`, `"hbase"`, `"cfile"`, `"kudu"` or `"redfile"`."""
        return self._raw.format

    @property
    def path(self) -> str:
        """The path or URL from which the file was opened; a placeholder for bytes and file objects."""
        return self._source.path if self._source.path is not None else self._raw.path

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the rows."""
        if self._schema is None:
            self._schema = pa.schema(self._raw)
        return self._schema

    @property
    def num_rows(self) -> int | None:
        """The number of rows; None if only a scan can find it out: see `count`."""
        return self._raw.num_rows

    @property
    def damage(self) -> Damage:
        """The losses of the last tolerant pass (see `read`): offset, length, rows_lost, structure, reason."""
        return [dict(lost) for lost in self._damage]

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
            read_ahead: decode several units at once, ahead of the consumer; up to about 32 MiB per thread may
                wait for the consumer. Otherwise the threads share the columns of one unit, and one unit is in
                memory at a time. A split is never read ahead.
        """
        if batch_size < 1 or (limit is not None and limit < 0):
            raise ValueError(
                f"batch_size must be at least 1 and limit at least 0, not {batch_size} and {limit}"
            )
        parsed = parse(filter)
        bound = Bound(None) if parsed is None else bind(parsed, self.schema)
        scan = self._raw.scan(
            columns=names_of(columns) if bound.exact else with_tested(columns, bound, self.schema),
            predicate=bound.predicate,
            limit=limit if bound.exact else None,
            batch_size=batch_size,
            split=self._range_of(split),
            on_error=on_error,
            strings=bound.strings or self._strings,
            threads=self._threads() if use_threads else 1,
            # A Python object is read under the GIL, by threads that Python would not wait for at exit.
            read_ahead=read_ahead
            and self._source.is_core
            and parallel_by_default(use_threads, on_error, limit),
        )
        # Drop columns that only the filter needs: a read returns the same columns with and without a filter.
        wanted = pa.schema(scan) if bound.exact else self._projected(columns)

        def ended() -> None:
            for kind, text in scan.take_notices():
                warn(self._raw.path, kind, text)
            if on_error != "raise":
                self._damage = scan.damage()
                if on_damage is not None:
                    on_damage(self.damage)

        what = split._what if isinstance(split, Split) else ("reading %s", self._source)
        return reader_of(scan, bound, wanted, limit, ended, *what)

    def count(self, filter: Filter | None = None) -> int:
        """The number of rows, or of the rows that pass the filter; decodes only what counting needs."""
        parsed = parse(filter)
        bound = Bound(None) if parsed is None else bind(parsed, self.schema)
        if bound.exact:
            with step(_log, logging.INFO, "counting the rows of %s", self._source):
                return self._raw.count(bound.predicate)
        return sum(batch.num_rows for batch in self.to_batches([], filter=parsed))

    def splits(
        self, split_bytes: int = DEFAULT_SPLIT_BYTES, *, target_bytes: int | None = None
    ) -> list[Split]:
        """Parts of about `split_bytes` each that can be read independently, also in other processes.

        `target_bytes` is another name of `split_bytes`.
        """
        split_bytes = split_bytes if target_bytes is None else target_bytes
        source = None if self._source.travels else self._source
        with step(_log, logging.INFO, "planning splits of %s", self._source) as notes:
            raw = splits_of(
                self._raw,
                split_bytes,
                self._arguments.raw,
                self.path,
                source=None if source is None else source.handle(),
            )
            notes.append(f"{len(raw)} splits")
        return [Split.of(split, self._known_arguments(), source) for split in raw]

    def __arrow_c_schema__(self) -> object:
        return self._raw.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Each call reads anew; string columns are views if `requested_schema` has views."""
        strings = _coldframe.requested_strings(requested_schema)
        _log.info("reading %s as an Arrow C stream", safe(self._source))
        scan = self._raw.scan(threads=self._threads(), read_ahead=self._source.is_core, strings=strings)
        return scan.__arrow_c_stream__()

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._source.travels:
            raise unsupported(
                f"{shown(self.path)} cannot be pickled, since it reads an object of this process: open the "
                "file by its path or URL"
            )
        return _reopened, (self._source.path, self._known_arguments(), tuple(self._raw.recorded()))

    def close(self) -> None:
        """Frees the metadata and cached blocks; every later read raises ValueError.

        Without `close`, the last reference to the file frees them. Existing readers continue.
        """
        self._schema = self.schema
        self._raw = cast(RawFile, _Closed(self.path))

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return isinstance(self._raw, _Closed)

    def _repr_html_(self) -> str:
        if self.closed:
            return summary_html(repr(self), [], self.schema, [])
        known = self._raw.identity
        size = None if known is None else size_text(known[0])
        properties = [("format", self.format), ("rows", self.num_rows), ("size", size)]
        return summary_html(shown(self.path), properties, self.schema, self._damage)

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing stays open between calls; a file object that was passed in still belongs to its owner."""

    def __repr__(self) -> str:
        if self.closed:
            return f"<coldframe.File {shown(self.path)!r}: closed>"
        rows = "" if self.num_rows is None else f", {self.num_rows} rows"
        path = shown(self.path) if isinstance(self.path, str) else self.path
        return f"<coldframe.File {self.format} {path!r}: {len(self._raw.names)} columns{rows}>"

    def _known_arguments(self) -> OpenArguments:
        """The arguments with the detected format, so that nobody detects it again."""
        given = self._arguments
        return given if given.format == self.format else replace(given, format=self.format)

    def _threads(self) -> int:
        """The number of decoding threads: the option `threads`, or pyarrow's number, or 1 in a Spark task."""
        return self._raw.threads or default_threads()

    def _range_of(self, split: Split | tuple[int, int] | None) -> tuple[int, int, int] | None:
        """A split as Rust takes it: part, start and end."""
        if split is None:
            return None
        if isinstance(split, Split):
            return split.part, split.start, split.stop
        start, length = split
        if start < 0 or length < 0:
            raise ValueError(f"split must be (start, length) with neither negative, not {split!r}")
        return self._raw.byte_split(start, start + length)

    def _projected(self, columns: Sequence[str] | None) -> Any:
        """The pyarrow.Schema of a read of these columns."""
        if columns is None:
            return self.schema
        return pa.schema(self._raw.scan(columns=list(columns), split=(0, 0, 0), threads=1))


def has_masked_columns(file: File) -> bool:
    """Whether encrypted columns of a file are read masked, since there is no key."""
    return any(kind == "encrypted_columns" for kind, _ in file._raw.notices())


def raw_scan(split: Split, *, batch_size: int, on_error: str) -> RawScan:
    """The rows of a file's split, for Rust: no batch passes through Python."""
    if split._raw.is_of_table:
        raise unsupported("a raw scan of a dataset's split: only Python adds the partition columns")
    file = split.open_for_this()
    return file._raw.scan(
        batch_size=batch_size,
        split=file._range_of(split),
        on_error=on_error,
        threads=file._threads(),
        strings="plain",
    )


def _reopened(path: str, arguments: OpenArguments, recorded: tuple[tuple[int, bytes], ...]) -> File:
    return File.of(arguments, path, recorded)
