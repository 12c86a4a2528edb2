"""The current contents of a Delta table according to its log, including deletion vectors of any writer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from coldframe.errors import ColdframeError
from coldframe.json_input import parse_json
from coldframe.pipeline.sink.delta_store import delta_options
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.live import LiveFile, LiveTable, TableName

LOG = "_delta_log"
_LAST = "_last_checkpoint"
_INTERVAL, _USUAL_INTERVAL = "delta.checkpointInterval", 10
_VECTORS = "deletionVectors"
_NO_VECTORS = "it may have a deletion vector, which this version of deltalake does not show"
_NO_COUNT = "the log does not state its number of rows"
_PARTITION = "partition."


def open_table(destination: Destination, path: str) -> Any:
    """The table at a path; None if there is no log."""
    from deltalake import DeltaTable

    if not destination.has(f"{path}/{LOG}"):
        return None
    uri, options = destination.path(path), delta_options(destination)
    return DeltaTable(uri, storage_options=options) if DeltaTable.is_deltatable(uri, options) else None


def keep_checkpoints(destination: Destination, path: str, table: Any) -> None:
    """Writes a checkpoint if the newest checkpoint is many versions old, so that readers need few files of
    the log.

    deltalake writes one every 100 versions; the other writers write one every 10 versions.
    """
    setting = str(table.metadata().configuration.get(_INTERVAL) or "")
    interval = int(setting) if setting.isdigit() and int(setting) > 0 else _USUAL_INTERVAL
    try:
        last = int(parse_json(destination.read(f"{path}/{LOG}/{_LAST}"))["version"])
    except FileNotFoundError:
        last = 0
    except (ValueError, KeyError, TypeError) as reason:
        place, why = destination.path(f"{path}/{LOG}/{_LAST}"), f"{type(reason).__name__}: {reason}"
        raise ColdframeError(f"{place}: not the name of a checkpoint: {why}") from reason
    if table.version() - last >= interval:
        table.create_checkpoint()


def read_table(destination: Destination, name: TableName) -> LiveTable:
    """The table according to its log."""
    table = open_table(destination, name.path)
    if table is None:
        return LiveTable("gone", f"{name.path}/{LOG} does not exist")
    columns = tuple(field.name for field in table.schema().fields)
    return LiveTable("there", "", f"version {table.version()}", columns, live_files(table, name.path))


def live_files(table: Any, path: str) -> Iterator[LiveFile]:
    """The files of a version."""
    vectors = hidden_rows(table)
    for batch in add_actions(table).to_batches(max_chunksize=1 << 14):
        values = [name for name in batch.schema.names if name.startswith(_PARTITION)]
        wanted = ["path", "size_bytes", "num_records", *values]
        for row in batch.select([name for name in wanted if name in batch.schema.names]).to_pylist():
            name = unquote(str(row["path"]))
            counted = row.get("num_records")
            hidden = 0 if vectors is None else vectors.get(name, 0)
            unknown = _NO_VECTORS if vectors is None else _NO_COUNT if counted is None else ""
            yield LiveFile(
                # Files elsewhere, as in a clone, have complete URLs or paths.
                name if "://" in name or name.startswith("/") else f"{path}/{name}",
                None if unknown else int(counted) - hidden,
                hidden,
                row["size_bytes"],
                unknown,
                {column.removeprefix(_PARTITION): row[column] for column in values},
            )


def add_actions(table: Any) -> pa.Table:
    """The log's own entries for the files of a version."""
    actions = table.get_add_actions(flatten=True)
    # The library returns a table or a batch, depending on its version.
    return (
        pa.table(actions) if hasattr(actions, "__arrow_c_stream__") else pa.table([pa.record_batch(actions)])
    )


def hidden_rows(table: Any) -> dict[str, int] | None:
    """How many rows deletion vectors hide, by file name; None if unknown."""
    if _VECTORS not in (table.protocol().reader_features or ()):
        return {}
    if not hasattr(table, "deletion_vectors"):
        return None
    root = unquote(_plain(str(table.table_uri))).rstrip("/") + "/"
    hidden: dict[str, int] = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for uri, kept in zip(batch.column("filepath"), batch.column("selection_vector"), strict=True):
            name = unquote(_plain(uri.as_py())).removeprefix(root)
            hidden[name] = len(kept.values) - (kept.values.true_count if len(kept.values) else 0)
    return hidden


def _plain(uri: str) -> str:
    return uri.removeprefix("file://")
