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


def _kind(number: int, name: str) -> Field:
    return number, TType.I32, name, None


class HiveObject(Message):
    """What a privilege is for. `kind`: 3 for a table."""

    thrift_spec = spec(
        _kind(1, "kind"), text(2, "database"), text(3, "name"), texts(4, "partition"), text(5, "column")
    )


class Grant(Message):
    """A privilege, and who has granted it."""

    thrift_spec = spec(
        text(1, "privilege"),
        _kind(2, "time"),
        text(3, "grantor"),
        _kind(4, "grantor_kind"),
        (5, TType.BOOL, "may_grant", None),
    )


class Privilege(Message):
    """A privilege of a user (1), a role (2) or a group (3)."""

    thrift_spec = spec(
        struct(1, "object", HiveObject),
        text(2, "principal"),
        _kind(3, "principal_kind"),
        struct(4, "grant", Grant),
        text(5, "authorizer"),
    )


class Privileges(Message):
    """Privileges to grant."""

    thrift_spec = spec(many(1, "privileges", Privilege))


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
LIST_PRIVILEGES = call(
    "list_privileges",
    text(1, "principal"),
    _kind(2, "principal_kind"),
    struct(3, "object", HiveObject),
    answer=many(0, "success", Privilege),
)
GRANT_PRIVILEGES = call(
    "grant_privileges", struct(1, "privileges", Privileges), answer=(0, TType.BOOL, "success", None)
)

__all__ = [
    "ADD_PARTITIONS",
    "ALTER_PARTITIONS",
    "ALTER_TABLE",
    "CREATE_DATABASE",
    "CREATE_TABLE",
    "DROP_PARTITION",
    "GRANT_PRIVILEGES",
    "LIST_PRIVILEGES",
    "Call",
    "Column",
    "Database",
    "HiveObject",
    "NewPartition",
    "Privilege",
    "Privileges",
]
