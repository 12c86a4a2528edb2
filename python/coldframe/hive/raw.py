"""Thrift structs with all fields, including unknown fields, so that tables of other programs are sent back
complete.

a struct    number of a field -> its type and value
a list      type of the elements, elements
a map       types of keys and values, pairs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from thrift.Thrift import TType

from coldframe.hive.messages import REFUSALS, Message, Refusal

Fields: TypeAlias = dict[int, tuple[int, Any]]
_SCALARS = {
    TType.BOOL: "Bool",
    TType.BYTE: "Byte",
    TType.I16: "I16",
    TType.I32: "I32",
    TType.I64: "I64",
    TType.DOUBLE: "Double",
    # Texts are read as bytes, since they need not be UTF-8.
    TType.STRING: "Binary",
}


@dataclass
class RawMessage(Message):
    """A struct whose fields are kept as they are."""

    fields: Fields

    def read(self, iprot: Any) -> None:
        """Reads the struct from a protocol."""
        self.fields = read_struct(iprot)

    def write(self, oprot: Any) -> None:
        """Writes the struct to a protocol."""
        write_struct(oprot, self.fields)


class RawAnswer(Message):
    """The answer to a call: its content as it is, or the reason for its failure."""

    def __init__(self) -> None:
        self.success: Any = None
        for number in REFUSALS:
            setattr(self, f"refusal_{number}", None)

    def read(self, iprot: Any) -> None:
        """Reads the answer from a protocol."""
        for number, (_, value) in read_struct(iprot).items():
            if number == 0:
                self.success = value
            elif number in REFUSALS:
                message = value.get(1, (TType.STRING, b""))[1]
                setattr(self, f"refusal_{number}", Refusal(message=message.decode(errors="replace")))


def read_struct(protocol: Any) -> Fields:
    """The fields of the next struct."""
    fields: Fields = {}
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            break
        fields[number] = (kind, _read(protocol, kind))
        protocol.readFieldEnd()
    protocol.readStructEnd()
    return fields


def write_struct(protocol: Any, fields: Fields) -> None:
    """Writes a struct of these fields."""
    protocol.writeStructBegin("")
    for number, (kind, value) in fields.items():
        protocol.writeFieldBegin("", kind, number)
        _write(protocol, kind, value)
        protocol.writeFieldEnd()
    protocol.writeFieldStop()
    protocol.writeStructEnd()


def _read(protocol: Any, kind: int) -> Any:
    if kind == TType.STRUCT:
        return read_struct(protocol)
    if kind in (TType.LIST, TType.SET):
        name = "List" if kind == TType.LIST else "Set"
        inner, size = getattr(protocol, f"read{name}Begin")()
        values = [_read(protocol, inner) for _ in range(size)]
        getattr(protocol, f"read{name}End")()
        return inner, values
    if kind == TType.MAP:
        key, value, size = protocol.readMapBegin()
        pairs = [(_read(protocol, key), _read(protocol, value)) for _ in range(size)]
        protocol.readMapEnd()
        return key, value, pairs
    return getattr(protocol, f"read{_SCALARS[kind]}")()


def _write(protocol: Any, kind: int, value: Any) -> None:
    if kind == TType.STRUCT:
        write_struct(protocol, value)
    elif kind in (TType.LIST, TType.SET):
        name = "List" if kind == TType.LIST else "Set"
        inner, values = value
        getattr(protocol, f"write{name}Begin")(inner, len(values))
        for item in values:
            _write(protocol, inner, item)
        getattr(protocol, f"write{name}End")()
    elif kind == TType.MAP:
        of_keys, of_values, pairs = value
        protocol.writeMapBegin(of_keys, of_values, len(pairs))
        for map_key, map_value in pairs:
            _write(protocol, of_keys, map_key)
            _write(protocol, of_values, map_value)
        protocol.writeMapEnd()
    else:
        getattr(protocol, f"write{_SCALARS[kind]}")(value)
