"""A `pyarrow.dataset.Dataset` over the rows of a file or of many.

DuckDB, polars and other users of pyarrow's datasets ask such an object for a scanner with the columns and the
filter of their query, so that coldframe's reader gets the columns and the filter. The class derives from
pyarrow's because DuckDB requires it. pyarrow's own C++ scan would bypass the methods of this class: the only
file that it sees raises when opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs

from coldframe.errors import unsupported
from coldframe.filters import mentioned

# pyarrow's own default is 131,072; a batch of that many wide rows is needlessly big.
DATASET_BATCH_SIZE = 65536


class Rows(Protocol):
    """What can be scanned repeatedly: a File or a Dataset."""

    @property
    def schema(self) -> Any: ...

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Any = None,
        batch_size: int = DATASET_BATCH_SIZE,
        limit: int | None = None,
    ) -> Any: ...

    def count(self, filter: Any = None) -> int: ...


class _NoFiles(pyarrow.fs.FileSystemHandler):  # type: ignore[misc]
    """A file system whose only file cannot be opened: only the methods of `ArrowDataset` can scan."""

    def _refuse(self, *_: object, **__: object) -> Any:
        raise unsupported(
            "a scan made by pyarrow's C++: use the dataset's own scanner(), to_batches() or to_table()"
        )

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = delete_root_dir_contents = (
        _refuse
    )
    get_file_info = get_file_info_selector = move = normalize_path = _refuse
    open_append_stream = open_input_file = open_input_stream = open_output_stream = _refuse

    def get_type_name(self) -> str:
        return "coldframe"


def _guard(schema: Any) -> Any:
    format = pads.ParquetFileFormat()
    filesystem = pyarrow.fs.PyFileSystem(_NoFiles())
    return pads.FileSystemDataset([format.make_fragment("coldframe", filesystem)], schema, format, filesystem)


class ArrowDataset(pads.UnionDataset):  # type: ignore[misc]
    """A pyarrow.dataset.Dataset whose scans are coldframe's."""

    def __init__(self, rows: Rows, filter: Any = None) -> None:
        super().__init__(rows.schema, [_guard(rows.schema)])
        self._rows = rows
        self._filter = filter

    @property
    def schema(self) -> Any:
        """The pyarrow.Schema of the rows."""
        return self._rows.schema

    @property
    def partition_expression(self) -> Any:
        """Always true: no narrower expression holds for all rows."""
        return pc.scalar(True)

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, Any] | None = None,
        filter: Any = None,
        batch_size: int = DATASET_BATCH_SIZE,
        **_: Any,
    ) -> Any:
        """A pyarrow Scanner for one pass; nothing is read before rows are requested.

        pyarrow's arguments about read-ahead and threads are accepted and have no effect.
        """
        return pads.Scanner.from_batches(self._reader(columns, filter, batch_size))

    def to_batches(
        self, columns: Any = None, filter: Any = None, batch_size: int = DATASET_BATCH_SIZE, **_: Any
    ) -> Any:
        """The batches of a scan."""
        return iter(self._reader(columns, filter, batch_size))

    def to_table(
        self, columns: Any = None, filter: Any = None, batch_size: int = DATASET_BATCH_SIZE, **_: Any
    ) -> Any:
        """The rows of a scan as a pyarrow.Table."""
        return self._reader(columns, filter, batch_size).read_all()

    def head(
        self,
        num_rows: int,
        columns: Any = None,
        filter: Any = None,
        batch_size: int = DATASET_BATCH_SIZE,
        **_: Any,
    ) -> Any:
        """The first rows of a scan as a pyarrow.Table."""
        return self._reader(columns, filter, batch_size, num_rows).read_all()

    def take(self, indices: Any, columns: Any = None, filter: Any = None, **_: Any) -> Any:
        """The rows at these positions as a pyarrow.Table."""
        return self.to_table(columns, filter).take(indices)

    def count_rows(self, filter: Any = None, **_: Any) -> int:
        """The number of rows that pass the filter."""
        return self._rows.count(self._both(filter))

    def filter(self, expression: Any) -> ArrowDataset:
        """The same rows under one more filter."""
        return ArrowDataset(self._rows, self._both(expression))

    def sort_by(self, sorting: Any, **_: Any) -> Any:
        """The rows in memory, sorted."""
        return pads.InMemoryDataset(self.to_table().sort_by(sorting))

    def join(self, right_dataset: Any, keys: Any, **options: Any) -> Any:
        """Both sides are read into memory, since pyarrow joins tables."""
        return pads.InMemoryDataset(self.to_table().join(_table(right_dataset), keys, **options))

    def join_asof(self, right_dataset: Any, on: Any, by: Any, tolerance: Any, **options: Any) -> Any:
        """Both sides are read into memory, since pyarrow joins tables."""
        joined = self.to_table().join_asof(_table(right_dataset), on, by, tolerance, **options)
        return pads.InMemoryDataset(joined)

    def replace_schema(self, schema: Any) -> Any:
        """Not supported: the types are the file's."""
        raise unsupported("replace_schema: open the files with schema=, or cast the batches")

    def get_fragments(self, filter: Any = None) -> Iterator[ArrowFragment]:
        """The files, each as a dataset of its rows; a filter on partition columns excludes whole files.

        They have the reading methods of pyarrow's fragments: `path`, `physical_schema`,
        `partition_expression`, `scanner`, `to_batches`, `to_table`, `head`, `count_rows`.
        """
        parts = getattr(self._rows, "parts", None)
        if parts is None:
            yield ArrowFragment(self._rows, self._filter, getattr(self._rows, "path", ""))
            return
        for path, rows, expression in parts(self._both(filter)):
            yield ArrowFragment(rows, self._filter, path, expression)

    @property
    def children(self) -> Any:
        """Not supported: pyarrow could not scan the parts of this dataset."""
        raise unsupported("children: use splits() of the coldframe File or Dataset")

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._reader(None, None, DATASET_BATCH_SIZE).__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> Any:
        return ArrowDataset, (self._rows, self._filter)

    def __repr__(self) -> str:
        return f"<coldframe.ArrowDataset of {self._rows!r}>"

    def _reader(self, columns: Any, filter: Any, batch_size: int, limit: int | None = None) -> Any:
        filter = self._both(filter)
        if not isinstance(columns, Mapping):
            names = None if columns is None else list(columns)
            return self._rows.to_batches(names, filter=filter, batch_size=batch_size, limit=limit)
        # Computed columns: read what the expressions refer to, and let pyarrow compute.
        schema = self._rows.schema
        needed = {name for expression in columns.values() for name in mentioned(expression, schema)}
        names = [name for name in schema.names if name in needed] or schema.names[:1]
        reader = self._rows.to_batches(names, filter=filter, batch_size=batch_size, limit=limit)
        return pads.Scanner.from_batches(reader, columns=dict(columns)).to_reader()

    def _both(self, filter: Any) -> Any:
        if self._filter is None or filter is None:
            return self._filter if filter is None else filter
        return self._filter & filter


class ArrowFragment(ArrowDataset):
    """One file of a dataset. Made by `ArrowDataset.get_fragments`."""

    def __init__(self, rows: Rows, filter: Any, path: str, expression: Any = None) -> None:
        super().__init__(rows, filter)
        self.path = path
        self._expression = expression

    @property
    def physical_schema(self) -> Any:
        """The pyarrow.Schema of the file's rows in the dataset."""
        return self.schema

    @property
    def partition_expression(self) -> Any:
        """The partition values of the file's rows as an expression."""
        return pc.scalar(True) if self._expression is None else self._expression

    def __reduce__(self) -> Any:
        return ArrowFragment, (self._rows, self._filter, self.path, self._expression)

    def __repr__(self) -> str:
        return f"<coldframe.ArrowFragment {self.path!r}>"


def _table(right: Any) -> Any:
    return right.to_table() if hasattr(right, "to_table") else right
