"""The table methods that File and Dataset share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from coldframe.arrow import pa
from coldframe.filters import Filter
from coldframe.literals import OnError

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

    from coldframe.dataset import ArrowDataset, Rows


class _Readable(Protocol):
    @property
    def schema(self) -> pa.Schema: ...

    def to_table(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        limit: int | None = None,
        on_error: OnError = "raise",
        use_threads: bool = True,
    ) -> Any: ...


class AsTables:
    """The rows as tables of other libraries, through `to_table`."""

    @property
    def column_names(self: _Readable) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def head(
        self: _Readable,
        num_rows: int = 10,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
    ) -> pa.Table:
        """The first rows as a pyarrow.Table; decodes only what these rows need."""
        return self.to_table(columns, filter=filter, limit=num_rows)

    def to_pandas(
        self: _Readable,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        limit: int | None = None,
        on_error: OnError = "raise",
        use_threads: bool = True,
        **options: Any,
    ) -> pd.DataFrame:
        """The rows as a pandas.DataFrame; the first arguments are the arguments of `to_table`.

        Args:
            **options: those of `pyarrow.Table.to_pandas`, such as `types_mapper=` and `split_blocks=`.
        """
        table = self.to_table(columns, filter=filter, limit=limit, on_error=on_error, use_threads=use_threads)
        return table.to_pandas(use_threads=use_threads, **options)

    def to_dataset(self: Rows) -> ArrowDataset:
        """A pyarrow.dataset.Dataset: DuckDB and polars push their projections and filters into it."""
        from coldframe.dataset import ArrowDataset

        return ArrowDataset(self)


def parallel_by_default(use_threads: bool, on_error: str, limit: int | None) -> bool:
    """Whether several units may be decoded at once: false with a limit, or if damage is tolerated."""
    return use_threads and on_error == "raise" and limit is None
