"""Reads Hive metastores over Thrift: databases, tables, partitions and their properties.

Hive 4 replaced some calls of Hive 2 (`get_table`); Hive 2.3 already has a few of the new calls. The
reader tries the newer call first, and does not repeat a call that the server does not know. The reader
changes nothing on the server. If a server goes away, the reader repeats the call at the next address, if
there is one.
"""

from __future__ import annotations

import functools
import logging
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from thrift.Thrift import TApplicationException, TException, TMessageType
from thrift.transport.TTransport import TTransportException

from coldframe._coldframe import ColdframeError
from coldframe.hive import messages
from coldframe.hive.addresses import addresses
from coldframe.hive.connection import Connection, Gone, connect, cut_off
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage
from coldframe.hive.messages import Call, Message
from coldframe.hive.reader import DefinitionReader, MetastoreRefusal, Refused
from coldframe.hive.write_ids import WriteIds, aborted_among
from coldframe.logs import step

_log = logging.getLogger(__name__)

TABLES_AT_ONCE = 100
PARTITIONS_AT_ONCE = 500


class Metastore(DefinitionReader):
    """A connection to a metastore. The connection must be closed after use."""

    def __init__(self, uris: str) -> None:
        """`uris`: `thrift://host:9083`; of several addresses, separated by commas, the first that answers is
        used.
        """
        self._addresses = addresses(uris)
        self._connection = self._connected()
        self._number = 0
        self._unknown: set[str] = set()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._connection.transport.close()

    def _connected(self) -> Connection:
        """Connects to the first of the remaining addresses."""
        connection = connect(self._addresses)
        self._addresses = self._addresses[self._addresses.index(connection.address) + 1 :]
        self.uri = str(connection.address)
        return connection

    def databases(self) -> list[str]:
        return self._texts(messages.GET_ALL_DATABASES)

    def definition(self, database: str, name: str) -> Definition:
        return _definition(database, self._table_message(database, name))

    def definitions(self, database: str) -> Iterator[Definition | Refused]:
        try:
            names = sorted(self._texts(messages.GET_ALL_TABLES, database=database))
        except MetastoreRefusal as refusal:
            yield Refused(database, "*", str(refusal))
            return
        for at in range(0, len(names), TABLES_AT_ONCE):
            some = names[at : at + TABLES_AT_ONCE]
            try:
                tables = sorted(self._tables(database, some), key=lambda table: table.name or "")
                yield from (_definition(database, table) for table in tables)
            except MetastoreRefusal:
                # The server refuses the whole group because of one table: ask for each table alone.
                yield from (self._definition_or_refused(database, name) for name in some)

    def _definition_or_refused(self, database: str, name: str) -> Definition | Refused:
        try:
            return self.definition(database, name)
        except MetastoreRefusal as refusal:
            return Refused(database, name, str(refusal))

    def partition_names(self, table: Definition) -> list[str]:
        return self._texts(
            messages.GET_PARTITION_NAMES, database=table.database, table=table.name, max_parts=-1
        )

    def partition_definitions(
        self, table: Definition, names: Sequence[str] | None = None
    ) -> Iterator[PartitionDefinition]:
        """The partitions of a table, all or only these names, requested in groups."""
        columns = _Columns()
        calls = messages.GET_PARTITION_DEFINITIONS_REQ, messages.GET_PARTITION_DEFINITIONS
        for partition in self._partitions(table, names, messages.PartitionDefinition, *calls):
            storage = _storage(partition.storage, columns)
            yield PartitionDefinition(tuple(partition.values or ()), storage, partition.parameters or {})

    def write_ids(self, table: Definition) -> WriteIds:
        """Which writes of a transactional table are committed."""
        try:
            snapshot = self.call(messages.GET_OPEN_TRANSACTIONS)
        except _UnknownCall as unknown:
            raise self._nonsense(f"it does not know {unknown}") from unknown
        listed = self._list(snapshot.open, messages.Transaction)
        aborted = tuple(transaction.number for transaction in listed if transaction.state == messages.ABORTED)
        others = tuple(transaction.number for transaction in listed if transaction.state != messages.ABORTED)
        transactions = WriteIds(self._highest(snapshot), others, aborted)
        request = messages.WriteIdsRequest(tables=[table.full_name], transactions=transactions.text())
        try:
            answer = self.call(messages.GET_WRITE_IDS, request=request)
        except _UnknownCall:
            # Before Hive 3, the write ids of directories are transaction ids.
            return transactions
        of_tables = self._list(answer.tables, messages.TableWriteIds)
        if len(of_tables) != 1:
            raise self._nonsense(f"expected the writes of {table.full_name}")
        writes = of_tables[0]
        invalid = self._list(writes.invalid, int)
        return WriteIds(self._highest(writes), *aborted_among(invalid, writes.aborted or b""))

    def _highest(self, answer: Any) -> int:
        if not isinstance(answer.highest, int):
            raise self._nonsense("expected the highest write id")
        return answer.highest

    def partitions(self, table: Definition) -> Iterator[PartitionDefinition]:
        """The partitions of a table, without details such as columns, requested in groups."""
        calls = messages.GET_PARTITIONS_REQ, messages.GET_PARTITIONS
        for partition in self._partitions(table, None, messages.Partition, *calls):
            about = partition.storage
            storage = Storage() if about is None else Storage((), about.location, about.input_format)
            yield PartitionDefinition(tuple(partition.values or ()), storage, partition.parameters or {})

    def _tables(self, database: str, names: Sequence[str]) -> list[Any]:
        request = messages.TablesRequest(database=database, tables=names, capabilities=_capabilities())
        tables = self._newer(
            lambda: self.call(messages.GET_TABLES_REQ, request=request).tables,
            lambda: self.call(messages.GET_TABLES, database=database, tables=names),
        )
        return self._list(tables, messages.Table)

    def _table_message(self, database: str, name: str) -> Any:
        request = messages.TableRequest(database=database, table=name, capabilities=_capabilities())
        table = self._newer(
            lambda: self.call(messages.GET_TABLE_REQ, request=request).table,
            lambda: self.call(messages.GET_TABLE, database=database, table=name),
        )
        return self._list([table], messages.Table)[0]

    def _partitions(
        self, table: Definition, names: Sequence[str] | None, kind: type, newer: Call, older: Call
    ) -> Iterator[Any]:
        """The messages of all partitions, or of those with these names."""
        wanted = self.partition_names(table) if names is None else names
        for at in range(0, len(wanted), PARTITIONS_AT_ONCE):
            some = wanted[at : at + PARTITIONS_AT_ONCE]
            place: dict[str, Any] = {"database": table.database, "table": table.name, "names": some}
            request = messages.PartitionsRequest(**place)
            answer = self._newer(
                functools.partial(self._partitions_of, newer, request),
                functools.partial(self.call, older, **place),
            )
            yield from self._list(answer, kind)

    def _partitions_of(self, call: Call, request: Message) -> Any:
        return self.call(call, request=request).partitions

    def _texts(self, call: Call, **arguments: Any) -> list[str]:
        try:
            texts = self.call(call, **arguments)
        except _UnknownCall as unknown:
            raise self._nonsense(f"it does not know {unknown}") from unknown
        return self._list(texts, str)

    def _list(self, answer: Any, kind: type) -> list[Any]:
        """Checks that an answer is a list of this type."""
        if not isinstance(answer, list) or not all(isinstance(item, kind) for item in answer):
            raise self._nonsense(f"expected a list of {kind.__name__}")
        return answer

    def _newer(self, newer: Callable[[], Any], older: Callable[[], Any]) -> Any:
        """The answer to a call or, if the server does not know the call, to its predecessor."""
        try:
            return newer()
        except _UnknownCall:
            pass
        try:
            return older()
        except _UnknownCall as unknown:
            raise self._nonsense(f"it knows neither {unknown} nor its successor") from unknown

    def call(self, call: Call, **arguments: Any) -> Any:
        """The result of a call; raises `MetastoreRefusal` if the server refuses it."""
        try:
            return self._call(call, arguments)
        except Gone as gone:
            # It is unknown whether the server made a change.
            if not (call.is_repeatable and self._addresses):
                raise
            self.close()
            try:
                self._connection = self._connected()
            except Gone as others:
                raise Gone(f"{gone}; {others}") from gone
            self._unknown.clear()
            return self.call(call, **arguments)

    def _call(self, call: Call, arguments: Mapping[str, Any]) -> Any:
        if call.name in self._unknown:
            raise _UnknownCall(call.name)
        try:
            with step(_log, logging.INFO, "metastore %s: %s", self.uri, call.name):
                answer = self._exchange(call.name, call.arguments(**arguments), call.answer())
        except TApplicationException as error:
            if error.type == TApplicationException.UNKNOWN_METHOD:
                self._unknown.add(call.name)
                raise _UnknownCall(call.name) from error
            raise self._refusal(call.name, str(error)) from error
        except (TTransportException, TimeoutError, ConnectionError) as error:
            raise cut_off(self._connection.address, call.name, error) from error
        # The library raises these errors for bytes that are not of its protocol.
        except (TException, OSError, EOFError, ValueError, TypeError, OverflowError, struct.error) as error:
            raise self._nonsense(f"{call.name}: {type(error).__name__}: {error}") from error
        for number in messages.REFUSALS:
            refusal = getattr(answer, f"refusal_{number}")
            if refusal is not None:
                raise self._refusal(call.name, str(refusal.message))
        if not call.gives:
            return None
        result = vars(answer)["success"]
        if result is None:
            raise self._nonsense(f"{call.name}: an answer without a result")
        return result

    def _exchange(self, name: str, arguments: Message, answer: Message) -> Message:
        protocol, transport = self._connection.protocol, self._connection.transport
        self._number += 1
        protocol.writeMessageBegin(name, TMessageType.CALL, self._number)
        arguments.write(protocol)
        protocol.writeMessageEnd()
        transport.flush()
        actual_name, kind, number = protocol.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            error = TApplicationException()
            error.read(protocol)
            protocol.readMessageEnd()
            raise error
        if kind != TMessageType.REPLY or actual_name != name or number != self._number:
            raise TException(
                f"expected the answer {self._number} to {name}, found {number} to {actual_name!r}"
            )
        answer.read(protocol)
        protocol.readMessageEnd()
        return answer

    def _refusal(self, name: str, reason: str) -> MetastoreRefusal:
        first = reason.partition("\n")[0]
        return MetastoreRefusal(f"metastore {self.uri}: {name}: {first}")

    def _nonsense(self, what: str) -> ColdframeError:
        return ColdframeError(f"metastore {self.uri}: not the answer of a Hive metastore: {what}")


class _UnknownCall(Exception):
    """The server has no such function."""


def _capabilities() -> Message:
    return messages.Capabilities(values=[messages.INSERT_ONLY_TABLES])


_Columns: TypeAlias = dict[tuple[Column, ...], tuple[Column, ...]]
"""The lists of columns so far: most partitions of a table share one list."""


def _definition(database: str, table: Any) -> Definition:
    columns = _Columns()
    return Definition(
        database,
        table.name or "",
        table.kind or "",
        table.owner,
        _storage(table.storage, columns),
        _columns(table.keys, columns),
        table.parameters or {},
        table.view_text,
    )


def _storage(storage: Any, seen: _Columns) -> Storage:
    if storage is None:
        return Storage()
    serde = storage.serde
    return Storage(
        _columns(storage.columns, seen),
        storage.location,
        storage.input_format,
        storage.output_format,
        None if serde is None else serde.library,
        {} if serde is None else serde.parameters or {},
        max(storage.buckets or 0, 0),
        tuple(storage.bucketed_by or ()),
        tuple((order.name or "", order.direction != 0) for order in storage.sorted_by or ()),
    )


def _columns(columns: Any, seen: _Columns) -> tuple[Column, ...]:
    made = tuple(Column(column.name or "", column.type or "", column.comment) for column in columns or ())
    return seen.setdefault(made, made)
