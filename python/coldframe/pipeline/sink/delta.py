"""A Delta table over files that are in place: the driver writes the log; no file is read or copied."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from coldframe._coldframe import SchemaError
from coldframe.pipeline.file_access import reading
from coldframe.pipeline.records import Json
from coldframe.pipeline.scheduling import in_threads
from coldframe.pipeline.sink import delta_protocol as protocol
from coldframe.pipeline.sink.committed import CommittedTable, DataFile, changed_files
from coldframe.pipeline.sink.delta_log import (
    LOG,
    add_actions,
    hidden_rows,
    keep_checkpoints,
    live_files,
    open_table,
)
from coldframe.pipeline.sink.delta_statistics import indexed_columns, statistics
from coldframe.pipeline.sink.delta_store import delta_options
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.live import TableName
from coldframe.pipeline.sink.second_reading import read_again
from coldframe.sources import is_remote

MARK = "coldframe.files"
RUN = "coldframe.run"
"""Keys in the commit information of our versions: the digest of the table's files, and the run."""
APP = "coldframe"


def register(destination: Destination, table: CommittedTable, foreign: str = "refuse") -> Json:
    """Makes the log match the journal. Repeating the call changes nothing.

    A version adds and removes exactly the difference from the previous version, and no path twice: Spark
    treats a path that a version both adds and removes as removed. The journal has the files that our own
    versions left in the table. If the table now has other files, or versions of other writers, it is refused,
    or (`foreign="append"`) the difference from our last version is applied to its current version. The commit
    is checked against the protocol. Then the table is read through its log, and must have the verified rows.
    """
    from deltalake import DeltaTable

    uri = destination.path(table.path)
    options = delta_options(destination)
    if not is_remote(uri):
        os.makedirs(uri, exist_ok=True)
    exists = DeltaTable.is_deltatable(uri, options)
    if table.schema is None and not exists:
        return {}
    # Paths as in the file system: the library itself escapes them.
    files = {os.path.relpath(file.final, table.path).replace(os.sep, "/"): file for file in table.files}
    if not exists:
        return _create(destination, table, files)
    existing = DeltaTable(uri, storage_options=options)
    schema = existing.schema() if table.schema is None else _schema(table)
    digest = _digest(files, schema)
    prefix = f"{table.path}/"
    present = _present(existing)
    known = {path.removeprefix(prefix) for path in table.known}
    history = existing.history()
    others = _by_others(history) or changed_files(known, set(present))
    before = set(present)
    if others:
        last = next((commit for commit in history if MARK in commit), None)
        if known == set(files) or (last is not None and last[MARK] == digest):
            return {"delta version": existing.version(), "changed by others": others}
        table.check_foreign(others, foreign)
        before = known
        table.check_replaced(before - set(files), present, ", by deletion vectors")
    new = {path: file for path, file in files.items() if path not in before and path not in present}
    configuration = existing.metadata().configuration
    change = _Change(
        existing,
        table,
        schema,
        _actions(destination, table, new, configuration),
        {path for path in before if path not in files},
        present,
        digest,
    )
    if not others and change.added and not present.keys() & files.keys() and _retypes(existing, schema):
        # Every earlier file is replaced, so the table may have other types from this version on.
        change.commit(anew=True)
    else:
        change.commit(anew=False)
    if others:
        now_there = DeltaTable(uri, storage_options=options)
        listed = _present(now_there)
        lost = [commit.action.path for commit in change.added if commit.action.path not in listed]
        if lost:
            raise SchemaError(f"table {table.name}: added files are missing from it: {lost[:3]}")
        return {"delta version": now_there.version(), "changed by others": others}
    return _read_back(destination, table, change.added)


def _create(destination: Destination, table: CommittedTable, files: Mapping[str, DataFile]) -> Json:
    """The first version of a table."""
    from deltalake.transaction import create_table_with_add_actions

    prefix = f"{table.path}/"
    if any(prefix + path in table.known for path in files):
        # A new log would bring back rows that someone deleted through the old log.
        raise SchemaError(
            f"table {table.name}: its log, which listed the table's files, is gone. Restore {LOG}, or "
            "convert everything again (fresh)"
        )
    schema, partitions = _schema(table), [field.name for field in table.partitions]
    log_schema = json.loads(schema.to_json())
    features = _features(log_schema)
    added = _actions(destination, table, files, {})
    protocol.check(
        protocol.Commit(
            schema=log_schema,
            partitions=partitions,
            reader=3 if features else 1,
            writer=protocol.FEATURES if features else 2,
            reader_features=features,
            writer_features=features,
            configuration={},
            before=None,
            present={},
            adds=[add.entry for add in added],
            removes=(),
        ),
        table.name,
    )
    # There is no log any more, so all known files are announced as removed.
    table.announce((prefix + path for path in files), table.known)
    create_table_with_add_actions(
        destination.path(table.path),
        schema,
        [add.action for add in added],
        mode="error",
        partition_by=partitions,
        name=table.name,
        storage_options=delta_options(destination),
        commit_properties=_properties(table, _digest(files, schema), last=True),
    )
    table.committed()
    return _read_back(destination, table, added)


@dataclass(frozen=True)
class _Added:
    """A file that a version adds."""

    action: Any
    """The file's entry for the log, in the library's form."""
    entry: protocol.Adding
    rows: int
    """The number of rows in the file's footer."""


@dataclass
class _Change:
    """Builds the next version of a table."""

    existing: Any
    table: CommittedTable
    schema: Any
    added: list[_Added]
    gone: set[str]
    present: Mapping[str, int]
    digest: str

    def commit(self, *, anew: bool) -> None:
        """Commits it. `anew`: the table has other types from this version on."""
        from deltalake.transaction import RemoveAction

        if anew:
            self.gone = set(self.present)
        new = [] if anew or self.table.schema is None else self._new_columns()
        self._check(anew=anew, new=new)
        self._add_features()
        if new:
            self.existing.alter.add_columns(new, commit_properties=_properties(self.table, self.digest))
            self.existing.update_incremental()
        if not (self.added or self.gone):
            return
        now, prefix = int(time.time() * 1000), f"{self.table.path}/"
        fields = self.table.partitions
        removed = [
            RemoveAction(path, True, now, None, protocol.partition_texts(prefix + path, fields))
            for path in sorted(self.gone)
        ]
        adds = [add.action for add in self.added]
        self.table.announce((prefix + add.path for add in adds), (prefix + path for path in self.gone))
        self.existing.create_write_transaction(
            # In the mode "overwrite", the library itself removes the earlier files.
            adds if anew else [*adds, *removed],
            "overwrite" if anew else "append",
            self.schema,
            self.existing.metadata().partition_columns,
            commit_properties=_properties(self.table, self.digest, last=True),
        )
        self.table.committed()

    def _new_columns(self) -> list[Any]:
        """The columns that newer files add to the table."""
        before = {field.name: field for field in self.existing.schema().fields}
        now = {field.name: field for field in self.schema.fields}
        gone = sorted(name for name in before if name not in now)
        changed = [name for name in now if name in before and before[name].type != now[name].type]
        if changed or gone:
            raise SchemaError(
                f"table {self.table.name}: columns differ from those of its older files: "
                f"{', '.join([*changed, *gone])}. Migrate into a new directory"
            )
        return [field for name, field in now.items() if name not in before]

    def _check(self, *, anew: bool, new: Sequence[Any]) -> None:
        about, metadata = self.existing.protocol(), self.existing.metadata()
        before = json.loads(self.existing.schema().to_json())
        now = json.loads(self.schema.to_json())
        fresh = {field.name for field in new}
        added = [field for field in now["fields"] if field["name"] in fresh]
        log_schema = now if anew else {**before, "fields": [*before["fields"], *added]}
        features = _features(log_schema)
        protocol.check(
            protocol.Commit(
                schema=log_schema,
                partitions=metadata.partition_columns,
                reader=3 if features else about.min_reader_version,
                writer=protocol.FEATURES if features else about.min_writer_version,
                reader_features={*(about.reader_features or ()), *features},
                writer_features={*(about.writer_features or ()), *features},
                configuration={key: str(value) for key, value in metadata.configuration.items()},
                before=before,
                present=self.present,
                adds=[add.entry for add in self.added],
                removes=self.gone,
            ),
            self.table.name,
        )

    def _add_features(self) -> None:
        """Adds the features that new types need to the protocol."""
        from deltalake import TableFeatures

        about = self.existing.protocol()
        if not _features(json.loads(self.schema.to_json())) - set(about.reader_features or ()):
            return
        features = [TableFeatures.TimestampWithoutTimezone]
        if about.min_writer_version < protocol.FEATURES:
            # From this version on, features that the older version implied must be named.
            features += [TableFeatures.AppendOnly, TableFeatures.Invariants]
        self.existing.alter.add_feature(
            features,
            allow_protocol_versions_increase=True,
            commit_properties=_properties(self.table, self.digest),
        )
        self.existing.update_incremental()


def live(destination: Destination, name: TableName) -> set[str] | None:
    """The files in the table, relative to the target's root; None if there is no table."""
    table = open_table(destination, name.path)
    return None if table is None else {f"{name.path}/{file}" for file in _present(table)}


def runs(destination: Destination, name: TableName) -> set[str]:
    """The runs that have committed to the table."""
    table = open_table(destination, name.path)
    return set() if table is None else {str(commit[RUN]) for commit in table.history() if RUN in commit}


def _read_back(destination: Destination, table: CommittedTable, added: Sequence[_Added]) -> Json:
    """Counts rows as a reader of the table does: from its log, and the footers of added files. Reads the
    added files.
    """
    current = open_table(destination, table.path)
    if table.schema is not None:
        names = [field.name for field in table.partitions]
        rows = {f"{table.path}/{add.action.path}": add.rows for add in added}
        counts: Counter[tuple[Any, ...]] = Counter()
        for file in live_files(current, table.path):
            counts[tuple(file.values.get(name) for name in names)] += rows.get(file.path, file.rows or 0)
        table.check_counts(counts, "Delta")
    keep_checkpoints(destination, table.path, current)
    read = functools.partial(_read, current, table)
    again = read_again(table, (f"{table.path}/{add.action.path}" for add in added), "deltalake", read)
    return {"delta version": current.version(), **again}


def _read(current: Any, table: CommittedTable, files: Set[str]) -> Iterator[pa.RecordBatch]:
    """The rows of some files, as deltalake reads them."""
    from deltalake.exceptions import DeltaProtocolError

    try:
        dataset = current.to_pyarrow_dataset()
    except DeltaProtocolError as error:
        raise NotImplementedError(str(error)) from error
    names = [] if table.schema is None else table.schema.names
    for fragment in dataset.get_fragments():
        # Depending on the version of the library, these names are escaped.
        if not files.isdisjoint(f"{table.path}/{name}" for name in (fragment.path, unquote(fragment.path))):
            yield from fragment.to_batches(schema=dataset.schema, columns=names)


def _actions(
    destination: Destination,
    table: CommittedTable,
    files: Mapping[str, DataFile],
    configuration: Mapping[str, str | None],
) -> list[_Added]:
    """The log's entries for new files. Reads the footer of each file."""
    # The log records when each file was written.
    modified = {stored.name: stored.modified for stored in destination.list(table.path)} if files else {}
    indexed = indexed_columns(table.schema or (), configuration)

    def look(path: str, file: DataFile) -> _Added:
        from deltalake.transaction import AddAction

        footer = pq.read_metadata(reading(destination.path(file.final), destination.storage_options))
        values, changed = (
            protocol.partition_texts(file.final, table.partitions),
            modified.get(file.final, 0),
        )
        bounds = statistics(footer, file, indexed)
        action = AddAction(path, file.bytes, values, changed, True, bounds)
        return _Added(
            action, protocol.Adding(path, file.bytes, values, file.rows, file.nulls), footer.num_rows
        )

    looks = (functools.partial(look, path, file) for path, file in files.items())
    return list(in_threads(looks, destination.at_once))


def _properties(table: CommittedTable, digest: str, *, last: bool = False) -> Any:
    """`last`: for the commit that finishes a run's work on the table."""
    from deltalake import CommitProperties, Transaction

    marks = {MARK: digest, **({RUN: table.run} if last else {})}
    return CommitProperties(custom_metadata=marks, app_transactions=[Transaction(APP, table.epoch)])


def _digest(paths: Iterable[str], schema: Any) -> str:
    """A digest of the files and columns that one of our versions leaves in the table."""
    text = "\n".join([schema.to_json(), *sorted(paths)])
    return hashlib.sha256(text.encode()).hexdigest()


def _by_others(history: Sequence[Mapping[str, Any]]) -> str:
    """The versions of other writers, for messages; empty if none."""
    foreign = [commit for commit in history if MARK not in commit]
    return ", ".join(
        f"version {commit.get('version')}: {commit.get('operation')}" for commit in reversed(foreign)
    )


def _retypes(existing: Any, schema: Any) -> bool:
    """Whether a column has changed its type or is gone."""
    now = {field.name: field.type for field in schema.fields}
    return any(now.get(field.name) != field.type for field in existing.schema().fields)


def _schema(table: CommittedTable) -> Any:
    from deltalake import Schema

    return Schema.from_arrow(pa.schema([*(table.schema or ()), *table.partitions]))


def _features(schema: Mapping[str, Any]) -> set[str]:
    """The features of the protocol that the types of a schema need."""
    return {protocol.NTZ} if protocol.has_type(schema, "timestamp_ntz") else set()


def _present(table: Any) -> dict[str, int]:
    """The files of a version, and how many rows of each are hidden.

    The library returns escaped names, but expects unescaped names.
    """
    hidden = hidden_rows(table)
    names = (unquote(str(path)) for path in add_actions(table).column("path").to_pylist())
    # If the number of hidden rows is unknown, assume that there are hidden rows.
    return {name: 1 if hidden is None else hidden.get(name, 0) for name in names}
