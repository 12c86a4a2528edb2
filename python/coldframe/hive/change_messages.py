"""The messages that change a Hive metastore; `messages` has the messages that only read."""

from __future__ import annotations

from typing import Any

from thrift.Thrift import TType

from coldframe.hive.messages import (
    PARAMETERS,
    TEXT,
    Call,
    Column,
    Field,
    Message,
    Table,
    WholeStorage,
    call,
    many,
    spec,
    struct,
    text,
    texts,
)


class Database(Message):
    """A database."""

    thrift_spec = spec(text(1, "name"), text(2, "description"), text(3, "location"))


class NewPartition(Message):
    """A partition of a table."""

    thrift_spec = spec(
        texts(1, "values"),
        text(2, "database"),
        text(3, "table"),
        struct(6, "storage", WholeStorage),
        (7, TType.MAP, "parameters", PARAMETERS),
    )


_NOTHING: tuple[Any, ...] = ()
_NAMES: tuple[Field, ...] = ((1, TType.STRING, "database", TEXT), (2, TType.STRING, "table", TEXT))

CREATE_DATABASE = call("create_database", struct(1, "database", Database))
CREATE_TABLE = call("create_table", struct(1, "table", Table))
ALTER_TABLE = call("alter_table", *_NAMES, struct(3, "changed", Table))
ADD_PARTITIONS = call(
    "add_partitions", many(1, "partitions", NewPartition), answer=(0, TType.I32, "success", None)
)
ALTER_PARTITIONS = call("alter_partitions", *_NAMES, many(3, "partitions", NewPartition))
DROP_PARTITION = call(
    "drop_partition",
    *_NAMES,
    texts(3, "values"),
    (4, TType.BOOL, "delete_data", None),
    answer=(0, TType.BOOL, "success", None),
)

__all__ = [
    "ADD_PARTITIONS",
    "ALTER_PARTITIONS",
    "ALTER_TABLE",
    "CREATE_DATABASE",
    "CREATE_TABLE",
    "DROP_PARTITION",
    "Call",
    "Column",
    "Database",
    "NewPartition",
]
