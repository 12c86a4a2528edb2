"""Files of other formats as sources of `convert`: Parquet, Arrow, CSV and JSON lines.

Parquet and Arrow are recognised by their bytes, text by the extension. Files are read in batches, whatever
their size; the first block of CSV and JSON determines the types.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coldframe.arrow import pa
from coldframe.errors import SchemaError
from coldframe.filters import bind, keep, needed, parse
from coldframe.sources import open_store
from coldframe.store_file import RangedFile

_MAGICS = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow"}
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}


def foreign_format(source: str, storage_options: Mapping[str, Any] | None) -> str | None:
    """The name of the format if the file is Parquet, Arrow, CSV or JSON lines; None otherwise."""
    store = open_store(source, storage_options)
    entry = store.stat()
    if entry is None or entry.is_folder:
        return None
    format = _MAGICS.get(store.read("", 0, 4))
    return format or _ENDINGS.get(os.path.splitext(source)[1].lower())


class Foreign:
    """The rows of files of one foreign format, one file after another."""

    damage: Sequence[dict[str, Any]] = ()

    def __init__(
        self, sources: Sequence[str], format: str, storage_options: Mapping[str, Any] | None
    ) -> None:
        self.format = format
        self.files = list(sources)
        self._storage_options = storage_options
        with self._reader(self.files[0]) as first:
            self.schema: pa.Schema = first.schema

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Any = None,
        limit: int | None = None,
        on_error: str = "raise",
    ) -> Any:
        """The rows as a pyarrow.RecordBatchReader. Damage is not tolerated in these formats."""
        del on_error
        names = self.schema.names if columns is None else list(columns)
        if missing := [name for name in names if name not in self.schema.names]:
            raise SchemaError(f"no column {missing[0]!r}; the columns are {', '.join(self.schema.names)}")
        condition = parse(filter)
        test = None if condition is None else bind(condition, self.schema).test
        tested = list(dict.fromkeys(names)) if test is None else needed(names, test, self.schema)
        schema = pa.schema([self.schema.field(name) for name in names])

        def batches() -> Iterator[Any]:
            left = limit
            for path in self.files:
                with self._reader(path) as reader:
                    if not reader.schema.equals(self.schema):
                        raise SchemaError(
                            f"{path}: the columns differ from those of {self.files[0]}: "
                            + ", ".join(f"{field.name} {field.type}" for field in reader.schema)
                        )
                    for batch in reader:
                        read = batch.select(tested)
                        kept = (read if test is None else keep(read, test)).select(names)
                        if left is not None:
                            kept = kept.slice(0, left)
                            left -= kept.num_rows
                        yield kept
                        if left == 0:
                            return

        return pa.RecordBatchReader.from_batches(schema, batches())

    def _reader(self, path: str) -> Any:
        """A reader of the rows of one file; close it after use."""
        opened = pa.PythonFile(RangedFile(open_store(path, self._storage_options)), mode="r")
        if self.format == "parquet":
            import pyarrow.parquet as pq

            file = pq.ParquetFile(opened)
            return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
        if self.format == "arrow":
            magic = open_store(path, self._storage_options).read("", 0, 6)
            if magic != b"ARROW1":
                return pa.ipc.open_stream(opened)
            whole = pa.ipc.open_file(opened)
            batches = (whole.get_batch(at) for at in range(whole.num_record_batches))
            return pa.RecordBatchReader.from_batches(whole.schema, batches)
        if self.format == "csv":
            import pyarrow.csv

            tabs = pyarrow.csv.ParseOptions(delimiter="\t" if path.lower().endswith(".tsv") else ",")
            return pyarrow.csv.open_csv(opened, parse_options=tabs)
        import pyarrow.json

        return pyarrow.json.open_json(opened)
