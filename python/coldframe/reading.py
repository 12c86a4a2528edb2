"""The table methods that File and Dataset share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from coldframe.arrow import pa
from coldframe.batches import DEFAULT_BATCH_SIZE
from coldframe.filters import Filter
from coldframe.literals import OnError

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl
    from typing_extensions import Self

    from coldframe.dataset import ArrowDataset


class AsTables(ABC):
    """The rows as tables of this and other libraries."""

    _strings: str | None = None
    """The layout of strings, `"plain"` or `"view"`; None follows the option `strings`."""

    def _with_strings(self, strings: str | None) -> Self:
        """The same rows with this layout of strings."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), _strings=strings)
        return other

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the rows."""

    @abstractmethod
    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        limit: int | None = None,
        on_error: OnError = "raise",
        use_threads: bool = True,
    ) -> pa.RecordBatchReader:
        """The rows as a pyarrow.RecordBatchReader."""

    @abstractmethod
    def count(self, filter: Filter | None = None) -> int:
        """The number of rows, or of those that pass the filter."""

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

        `to_table` is another name of this method.
        """
        return self.to_batches(
            columns, filter=filter, limit=limit, on_error=on_error, use_threads=use_threads
        ).read_all()

    to_table = read

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def head(
        self,
        num_rows: int = 10,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
    ) -> pa.Table:
        """The first rows as a pyarrow.Table; decodes only what these rows need."""
        return self.read(columns, filter=filter, limit=num_rows)

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        limit: int | None = None,
        on_error: OnError = "raise",
        use_threads: bool = True,
        **options: Any,
    ) -> pd.DataFrame:
        """The rows as a pandas.DataFrame; the first arguments are the arguments of `read`.

        Args:
            **options: those of `pyarrow.Table.to_pandas`, such as `types_mapper=` and `split_blocks=`.
        """
        table = self.read(columns, filter=filter, limit=limit, on_error=on_error, use_threads=use_threads)
        return table.to_pandas(use_threads=use_threads, **options)

    def to_polars(self) -> pl.LazyFrame:
        """A polars.LazyFrame that reads only the columns, files and rows that a query needs."""
        from coldframe.polars_source import lazy_frame

        def read(*given: Any, **arguments: Any) -> pa.RecordBatchReader:
            # polars holds strings as views itself.
            return self._with_strings("view").to_batches(*given, **arguments)

        return lazy_frame(self, read)

    def to_dataset(self) -> ArrowDataset:
        """A pyarrow.dataset.Dataset: DuckDB and polars push their projections and filters into it."""
        from coldframe.dataset import ArrowDataset

        return ArrowDataset(self)


def parallel_by_default(use_threads: bool, on_error: str, limit: int | None) -> bool:
    """Whether several units may be decoded at once: false with a limit, or if damage is tolerated."""
    return use_threads and on_error == "raise" and limit is None
