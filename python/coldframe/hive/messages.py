"""The messages of a Hive metastore that this package needs: calls by name, fields by number.

    field 0 of an answer      the result
    fields 1 to 4             the exception, if there is no result

The numbers are the numbers in Hive's `hive_metastore.thrift`, to which new versions only add fields. The
reader ignores fields that are not listed here. `Partition` leaves out the columns, which each partition
repeats. `PartitionDefinition` has the columns, and takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from thrift.protocol.TBase import TBase
from thrift.Thrift import TType

Field = tuple[int, int, str, Any]

TEXT = "UTF8"
TEXTS = (TType.STRING, TEXT, False)
PARAMETERS = (TType.STRING, TEXT, TType.STRING, TEXT, False)

INSERT_ONLY_TABLES = 2
"""A capability.

Hive 3 and later do not list insert-only transactional tables for clients without this capability.
"""


REFUSALS = (1, 2, 3, 4)
"""The fields of an answer that are exceptions."""


class Message(TBase):  # type: ignore[misc]
    """A struct; a field that is not set or was not sent is None."""

    thrift_spec: tuple[Any, ...] = ()

    def __init__(self, **fields: Any) -> None:
        for field in self.thrift_spec:
            if field is not None:
                setattr(self, field[2], fields.pop(field[2], None))
        if fields:
            raise TypeError(f"{type(self).__name__} has no {', '.join(fields)}")


def spec(*fields: Field) -> tuple[Any, ...]:
    """Fields in the library's form: each at the index of its number, with a default."""
    by_number: Mapping[int, Field] = {field[0]: field for field in fields}
    return tuple(
        (*by_number[number], None) if number in by_number else None
        for number in range(max(by_number, default=0) + 1)
    )


def _struct(kind: type[Message]) -> list[Any]:
    return [kind, kind.thrift_spec]


def text(number: int, name: str) -> Field:
    """A field of text."""
    return number, TType.STRING, name, TEXT


def texts(number: int, name: str) -> Field:
    """A list of texts."""
    return number, TType.LIST, name, TEXTS


def struct(number: int, name: str, kind: type[Message]) -> Field:
    """A field that is a struct."""
    return number, TType.STRUCT, name, _struct(kind)


def many(number: int, name: str, kind: type[Message]) -> Field:
    """A list of structs."""
    return number, TType.LIST, name, (TType.STRUCT, _struct(kind), False)


def _parameters(number: int) -> Field:
    return number, TType.MAP, "parameters", PARAMETERS


class SerDe(Message):
    """How values are read; for Spark's tables also the table's location."""

    thrift_spec = spec(_parameters(3))


class Storage(Message):
    """The location of files and their declared format."""

    thrift_spec = spec(text(2, "location"), text(3, "input_format"), struct(7, "serde", SerDe))


class Column(Message):
    """A column, or a partition key."""

    thrift_spec = spec(text(1, "name"), text(2, "type"), text(3, "comment"))


class Order(Message):
    """A column by which the rows of a bucket are sorted."""

    thrift_spec = spec(text(1, "name"), (2, TType.I32, "direction", None))


class WholeSerDe(Message):
    """As `SerDe`, with the SerDe's class."""

    thrift_spec = spec(text(2, "library"), _parameters(3))


class WholeStorage(Message):
    """As `Storage`, with columns, classes and buckets."""

    thrift_spec = spec(
        many(1, "columns", Column),
        text(2, "location"),
        text(3, "input_format"),
        text(4, "output_format"),
        (6, TType.I32, "buckets", None),
        struct(7, "serde", WholeSerDe),
        texts(8, "bucketed_by"),
        many(9, "sorted_by", Order),
    )


class Table(Message):
    """A table, a view, or another named object."""

    thrift_spec = spec(
        text(1, "name"),
        text(2, "database"),
        text(3, "owner"),
        struct(7, "storage", WholeStorage),
        many(8, "keys", Column),
        _parameters(9),
        text(10, "view_text"),
        text(12, "kind"),
    )


class Partition(Message):
    """A partition of a table."""

    thrift_spec = spec(texts(1, "values"), struct(6, "storage", Storage), _parameters(7))


class PartitionDefinition(Message):
    """As `Partition`, with the complete storage."""

    thrift_spec = spec(texts(1, "values"), struct(6, "storage", WholeStorage), _parameters(7))


class Capabilities(Message):
    """The features that the client supports."""

    thrift_spec = spec((1, TType.LIST, "values", (TType.I32, None, False)))


class TableRequest(Message):
    """Requests a table."""

    thrift_spec = spec(text(1, "database"), text(2, "table"), struct(3, "capabilities", Capabilities))


class TablesRequest(Message):
    """Requests tables of a database."""

    thrift_spec = spec(text(1, "database"), texts(2, "tables"), struct(3, "capabilities", Capabilities))


class PartitionsRequest(Message):
    """Requests partitions of a table by name."""

    thrift_spec = spec(text(1, "database"), text(2, "table"), texts(3, "names"))


class TableAnswer(Message):
    """A table."""

    thrift_spec = spec(struct(1, "table", Table))


class TablesAnswer(Message):
    """Tables."""

    thrift_spec = spec(many(1, "tables", Table))


class PartitionsAnswer(Message):
    """Partitions."""

    thrift_spec = spec(many(1, "partitions", Partition))


class PartitionDefinitionsAnswer(Message):
    """Partitions with the complete storage."""

    thrift_spec = spec(many(1, "partitions", PartitionDefinition))


class Refusal(Message):
    """The reason why a call failed. All of Hive's exceptions have this field."""

    thrift_spec = spec(text(1, "message"))


_NUMBERS = (TType.I64, None, False)


def _number(number: int, name: str) -> Field:
    return number, TType.I64, name, None


def _bits(number: int) -> Field:
    return number, TType.STRING, "aborted", "BINARY"


ABORTED = 2
"""A state of transactions."""


class Transaction(Message):
    """An open or aborted transaction."""

    thrift_spec = spec(_number(1, "number"), (2, TType.I32, "state", None))


class OpenTransactions(Message):
    """The open and aborted transactions.

    `get_open_txns` of Hive 2 does not distinguish open from aborted transactions.
    """

    thrift_spec = spec(_number(1, "highest"), many(2, "open", Transaction))


class WriteIdsRequest(Message):
    """Requests the writes of tables (`database.table`) in a snapshot of the transactions."""

    thrift_spec = spec(texts(1, "tables"), text(2, "transactions"))


class TableWriteIds(Message):
    """The open and aborted writes of a table."""

    thrift_spec = spec(
        text(1, "table"), _number(2, "highest"), (3, TType.LIST, "invalid", _NUMBERS), _bits(5)
    )


class WriteIdsAnswer(Message):
    """An answer to `WriteIdsRequest`."""

    thrift_spec = spec(many(1, "tables", TableWriteIds))


@dataclass(frozen=True)
class Call:
    """A function of the metastore."""

    name: str
    arguments: type[Message]
    answer: type[Message]
    gives: bool = True
    """Whether the answer has a result."""

    @property
    def is_repeatable(self) -> bool:
        """Whether the call changes nothing, so that it can be repeated."""
        return self.name.startswith("get_")


def call(name: str, *arguments: Field, answer: Field | None = None) -> Call:
    """A function of the metastore by its name. Without `answer`, the function returns nothing."""
    refusals = [struct(number, f"refusal_{number}", Refusal) for number in REFUSALS]
    fields = refusals if answer is None else [answer, *refusals]
    return Call(
        name,
        type(f"{name}_args", (Message,), {"thrift_spec": spec(*arguments) if arguments else ()}),
        type(f"{name}_result", (Message,), {"thrift_spec": spec(*fields)}),
        answer is not None,
    )


_TABLE = (text(1, "database"), text(2, "table"))

GET_ALL_DATABASES = call("get_all_databases", answer=texts(0, "success"))
GET_ALL_TABLES = call("get_all_tables", text(1, "database"), answer=texts(0, "success"))
GET_TABLE_REQ = call(
    "get_table_req", struct(1, "request", TableRequest), answer=struct(0, "success", TableAnswer)
)
GET_TABLE = call("get_table", *_TABLE, answer=struct(0, "success", Table))
GET_TABLES_REQ = call(
    "get_table_objects_by_name_req",
    struct(1, "request", TablesRequest),
    answer=struct(0, "success", TablesAnswer),
)
GET_TABLES = call(
    "get_table_objects_by_name",
    text(1, "database"),
    texts(2, "tables"),
    answer=many(0, "success", Table),
)
GET_PARTITION_NAMES = call(
    "get_partition_names", *_TABLE, (3, TType.I16, "max_parts", None), answer=texts(0, "success")
)
GET_PARTITIONS_REQ = call(
    "get_partitions_by_names_req",
    struct(1, "request", PartitionsRequest),
    answer=struct(0, "success", PartitionsAnswer),
)
GET_PARTITIONS = call(
    "get_partitions_by_names", *_TABLE, texts(3, "names"), answer=many(0, "success", Partition)
)
GET_PARTITION_DEFINITIONS_REQ = call(
    "get_partitions_by_names_req",
    struct(1, "request", PartitionsRequest),
    answer=struct(0, "success", PartitionDefinitionsAnswer),
)
GET_PARTITION_DEFINITIONS = call(
    "get_partitions_by_names", *_TABLE, texts(3, "names"), answer=many(0, "success", PartitionDefinition)
)
GET_OPEN_TRANSACTIONS = call("get_open_txns_info", answer=struct(0, "success", OpenTransactions))
GET_WRITE_IDS = call(
    "get_valid_write_ids", struct(1, "request", WriteIdsRequest), answer=struct(0, "success", WriteIdsAnswer)
)
