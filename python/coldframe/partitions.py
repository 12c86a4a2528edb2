"""Writes a table as a directory of files, in a folder for each combination of partition values.

    dest/dt=2014-01-01/region=eu/part-0.orc        the file has neither dt nor region
    dest/dt=2014-01-01/region=__HIVE_DEFAULT_PARTITION__/part-0.orc

The layout is the same as in Hive and Spark: values are escaped, and null has a special name. All files are
written below a directory that readers ignore, and published when they are complete (`coldframe.publishing`).
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from coldframe._coldframe import HIVE_NULL, Store
from coldframe.arrow import pa
from coldframe.errors import SchemaError, unsupported
from coldframe.publishing import begin

# The maximum number of files that are written at the same time. If rows are not sorted by partition, a
# partition may get several files.
MAX_OPEN = 32
_BATCHES_WAITING = 4


def _as_codes(characters: Iterable[str]) -> dict[int, str]:
    return {ord(character): f"%{ord(character):02X}" for character in characters}


CONTROLS = _as_codes([*map(chr, range(0x20)), "\x7f"])
"""Control characters as Hive writes them in the names of directories, for `str.translate`."""
_ESCAPED = CONTROLS | _as_codes("\"#%'*/:=?\\{[]^")

# Writes batches (a RecordBatchReader) to a store's root, and returns {"rows": .., "bytes": ..}.
WriteFile = Callable[[Any, Store], Mapping[str, Any]]


def write_partitioned(
    reader: Any, store: Store, partitioning: Any, *, ending: str, write_file: WriteFile
) -> dict[str, Any]:
    """Writes all batches of a pyarrow.RecordBatchReader below a store's root, which must be absent or empty.

    Returns rows, bytes and the paths of the files relative to the root.
    """
    names = _partition_names(partitioning, reader.schema)
    publication = begin(store)
    files = _Files(publication.staged, reader.schema, names, ending, write_file)
    try:
        with contextlib.closing(files):
            for batch in reader:
                for folder, rows in _divided(batch, names):
                    files.write(folder, rows)
            files.finish()
        if files.paths:
            publication.publish()
    except BaseException:
        publication.abandon()
        raise
    return {"rows": files.rows, "bytes": files.bytes, "files": sorted(files.paths)}


def _partition_names(partitioning: Any, schema: Any) -> list[str]:
    names = list(partitioning.names) if isinstance(partitioning, pa.Schema) else partitioning
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise TypeError(
            f"partitioning: expected names of columns or a pyarrow.Schema, found {partitioning!r}"
        )
    if (missing := [name for name in names if schema.names.count(name) != 1]) or len(set(names)) < len(names):
        raise SchemaError(f"partitioning: {missing or names}: each must be one column of the data")
    if len(names) == len(schema.names):
        raise SchemaError("partitioning by all columns: the files would have no columns")
    for name in names:
        _check_type(schema.field(name))
    return list(names)


def _check_type(field: Any) -> None:
    t = pa.types
    kinds = (t.is_integer, t.is_string, t.is_large_string, t.is_boolean, t.is_date, t.is_decimal)
    kind = field.type.value_type if t.is_dictionary(field.type) else field.type
    if not any(is_(kind) for is_ in kinds):
        raise unsupported(
            f"partitioning by {field.name!r}, a {field.type}: only texts, integers, decimals, dates and "
            "booleans can be names of directories"
        )


def _divided(batch: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Divides the rows of a batch by directory, in the order of their first rows."""
    if batch.num_rows == 0:
        return
    keys = pa.table({str(i): _texts(batch.column(name)) for i, name in enumerate(names)})
    numbered = keys.append_column("at", pa.array(range(batch.num_rows), pa.int64()))
    groups = numbered.group_by(list(keys.column_names)).aggregate([("at", "list")])
    kept = batch.drop_columns(list(names))
    for group in sorted(groups.to_pylist(), key=lambda group: min(group["at_list"])):
        values = [group[str(i)] for i in range(len(names))]
        folder = "/".join(f"{escaped(n)}={_value(n, v)}" for n, v in zip(names, values, strict=True))
        if len(group["at_list"]) == batch.num_rows:
            yield folder, kept
        else:
            yield folder, kept.take(pa.array(sorted(group["at_list"]), pa.int64()))


def _texts(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string())


def _value(name: str, text: str | None) -> str:
    if text is None:
        return HIVE_NULL
    if not text or text == HIVE_NULL:
        raise SchemaError(f"partitioning: {name}={text!r}: this text would be read back as null")
    return escaped(text)


def escaped(text: str) -> str:
    """A name or value as Hive writes it in the name of a directory."""
    return text.translate(_ESCAPED)


def folder_of(names: Iterable[str], values: Iterable[str]) -> str:
    """The directories of a partition: `dt=2014-01-01/region=asia%2Fpacific`."""
    return "/".join(f"{escaped(name)}={escaped(value)}" for name, value in zip(names, values, strict=False))


class _Files:
    """The files being written, each by a thread that takes batches from a queue."""

    def __init__(
        self,
        staged: Store,
        schema: Any,
        names: Sequence[str],
        ending: str,
        write_file: WriteFile,
    ) -> None:
        self._staged = staged
        self._schema = pa.schema(
            [field for field in schema if field.name not in names], metadata=schema.metadata
        )
        self._ending = ending
        self._write_file = write_file
        self._open: dict[str, _Writing] = {}  # least recently used first
        self._numbers: dict[str, int] = {}
        self.rows = self.bytes = 0
        self.paths: list[str] = []

    def write(self, folder: str, rows: Any) -> None:
        writing = self._open.pop(folder, None)
        if writing is None:
            if len(self._open) >= MAX_OPEN:
                self._finish(next(iter(self._open)))
            writing = self._start(folder)
        self._open[folder] = writing
        writing.put(rows)

    def finish(self) -> None:
        for folder in list(self._open):
            self._finish(folder)

    def close(self) -> None:
        for writing in self._open.values():
            writing.give_up()
        self._open.clear()

    def _start(self, folder: str) -> _Writing:
        number = self._numbers[folder] = self._numbers.get(folder, -1) + 1
        relative = f"{folder}/part-{number}{self._ending}"
        staged = self._staged.below(relative)
        self.paths.append(relative)
        return _Writing(self._schema, lambda reader: self._write_file(reader, staged))

    def _finish(self, folder: str) -> None:
        written = self._open.pop(folder).finish()
        self.rows += written["rows"]
        self.bytes += written["bytes"]


class _GivenUp(Exception):
    """Ends a file that is no longer wanted."""


class _Writing:
    """One file: a thread writes the batches that `put` queues."""

    def __init__(self, schema: Any, write: Callable[[Any], Mapping[str, Any]]) -> None:
        self._batches: queue.Queue[Any] = queue.Queue(_BATCHES_WAITING)
        self._written: Mapping[str, Any] | None = None
        self._error: BaseException | None = None
        self._ended = False
        reader = pa.RecordBatchReader.from_batches(schema, self._taken())
        self._thread = threading.Thread(target=self._run, args=(write, reader), name="coldframe-write")
        self._thread.start()

    def _run(self, write: Callable[[Any], Mapping[str, Any]], reader: Any) -> None:
        try:
            self._written = write(reader)
        except BaseException as error:  # put() and finish() raise this error
            self._error = error
            while not self._ended and self._batches.get() is not None:  # so that put() does not block forever
                pass

    def _taken(self) -> Iterator[Any]:
        while (batch := self._batches.get()) is not None:
            if batch is _GivenUp:
                raise _GivenUp
            yield batch
        self._ended = True

    def put(self, batch: Any) -> None:
        if self._error is not None:
            raise self._error
        self._batches.put(batch)

    def finish(self) -> Mapping[str, Any]:
        self._batches.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._written is not None
        return self._written

    def give_up(self) -> None:
        if self._error is None:
            self._batches.put(_GivenUp)
        self._batches.put(None)
        self._thread.join()
