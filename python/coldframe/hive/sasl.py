"""Kerberos on the way to a metastore: SASL's mechanism GSSAPI (RFC 4752) in the frames of Thrift.

    client   START "GSSAPI", OK token     status (1 byte), length (4), content
    server   OK token                     until both know each other
             OK wrapped: layers, size     what it offers of: nothing, integrity, privacy
    client   OK wrapped: layer, size
    server   COMPLETE
    then     length (4), content          wrapped, if a layer was chosen

The tickets are those of the machine's Kerberos library: of `kinit`, or by KRB5_CLIENT_KTNAME.
"""

from __future__ import annotations

import importlib
import struct
from typing import Any

from thrift.transport.TTransport import TTransportBase

from coldframe.errors import unsupported

__all__ = ["KerberosRefusal", "SaslTransport"]

_START, _OK, _BAD, _ERROR, _COMPLETE = 1, 2, 3, 4, 5
_PLAIN, _INTEGRITY, _PRIVACY = 1, 2, 4
_LONGEST_STEP = 1 << 20
"""No token of Kerberos is near it."""
_LONGEST_FRAME = 1 << 30
"""A metastore puts each answer into one frame."""
_TAKEN = (1 << 24) - 1
"""The longest frame that can be promised to be taken: the number has three bytes."""


class KerberosRefusal(Exception):
    """Why the two sides do not get to know each other."""


class SaslTransport(TTransportBase):  # type: ignore[misc]
    """A connection whose other side is known, and which both may have agreed to seal."""

    def __init__(self, socket: Any, service: str, host: str) -> None:
        """`socket`: an open transport. Raises KerberosRefusal where it comes to no agreement."""
        self._socket = socket
        self._gssapi = _library()
        self._layer = _PLAIN
        self._most = _TAKEN
        self._read = memoryview(b"")
        self._written: list[bytes] = []
        try:
            self._context = self._begin(service, host)
            self._negotiate()
        except self._gssapi.exceptions.GSSError as error:
            raise KerberosRefusal(_reason(error)) from error

    def _begin(self, service: str, host: str) -> Any:
        gssapi = self._gssapi
        flags = gssapi.RequirementFlag
        return gssapi.SecurityContext(
            name=gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service),
            usage="initiate",
            flags=flags.mutual_authentication
            | flags.out_of_sequence_detection
            | flags.integrity
            | flags.confidentiality,
        )

    def _negotiate(self) -> None:
        context = self._context
        token = context.step()
        self._send(_START, b"GSSAPI")
        self._send(_OK, token or b"")
        while not context.complete:
            status, content = self._receive()
            if status == _COMPLETE:
                raise KerberosRefusal("the server ends the exchange before it is known")
            self._send(_OK, context.step(content) or b"")
        self._choose()
        if self._receive()[0] != _COMPLETE:
            raise KerberosRefusal("the server goes on with an exchange that is at its end")

    def _choose(self) -> None:
        """Takes the strongest of the layers that the server offers."""
        status, content = self._receive()
        offered = self._context.unwrap(content).message
        if status != _OK or len(offered) != 4:
            raise KerberosRefusal("the server offers no layers of security")
        self._layer = next((one for one in (_PRIVACY, _INTEGRITY, _PLAIN) if offered[0] & one), 0)
        if not self._layer:
            raise KerberosRefusal(f"the server offers layers of security that nobody knows: {offered[0]}")
        self._most = int.from_bytes(offered[1:], "big")
        if self._layer != _PLAIN:
            self._most = self._context.get_wrap_size_limit(self._most, self._layer == _PRIVACY)
            if self._most <= 0:
                raise KerberosRefusal("the server takes no messages")
        size = 0 if self._layer == _PLAIN else _TAKEN
        # No authorisation identity follows: the server takes the principal of the ticket.
        answer = bytes([self._layer]) + size.to_bytes(3, "big")
        self._send(_OK, self._context.wrap(answer, False).message)

    def _send(self, status: int, content: bytes) -> None:
        self._socket.write(struct.pack(">BI", status, len(content)) + content)
        self._socket.flush()

    def _receive(self) -> tuple[int, bytes]:
        status, length = struct.unpack(">BI", self._socket.readAll(5))
        if status not in (_OK, _BAD, _ERROR, _COMPLETE) or length > _LONGEST_STEP:
            raise KerberosRefusal("the server does not speak SASL: it may not ask for Kerberos")
        content: bytes = self._socket.readAll(length)
        if status in (_BAD, _ERROR):
            raise KerberosRefusal(content.decode(errors="replace"))
        return status, content

    def isOpen(self) -> bool:
        """Whether it is connected."""
        return bool(self._socket.isOpen())

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def read(self, sz: int) -> bytes:
        """At most `sz` bytes."""
        if not self._read:
            self._read = memoryview(self._next())
        some, self._read = self._read[:sz], self._read[sz:]
        return bytes(some)

    def _next(self) -> bytes:
        (length,) = struct.unpack(">I", self._socket.readAll(4))
        if length > _LONGEST_FRAME:
            raise ValueError(f"a frame of {length} bytes")
        content: bytes = self._socket.readAll(length)
        return content if self._layer == _PLAIN else self._opened(content)

    def _opened(self, content: bytes) -> bytes:
        try:
            opened = self._context.unwrap(content)
        except self._gssapi.exceptions.GSSError as error:
            raise ValueError(_reason(error)) from error
        if self._layer == _PRIVACY and not opened.encrypted:
            raise ValueError("a frame that is not encrypted, as was agreed")
        message: bytes = opened.message
        return message

    def write(self, buf: bytes) -> None:
        """Keeps bytes for `flush`."""
        self._written.append(bytes(buf))

    def flush(self) -> None:
        """Sends what was written."""
        content, self._written = b"".join(self._written), []
        step = len(content) if self._layer == _PLAIN else self._most
        for at in range(0, len(content), step or 1):
            some = content[at : at + step]
            if self._layer != _PLAIN:
                some = self._context.wrap(some, self._layer == _PRIVACY).message
            self._socket.write(struct.pack(">I", len(some)) + some)
        self._socket.flush()


def _library() -> Any:
    try:
        return importlib.import_module("gssapi")
    except (ImportError, OSError) as missing:
        raise unsupported(
            f"a metastore with Kerberos without the package gssapi ({missing}); "
            "pip install 'coldframe[kerberos]'"
        ) from missing


def _reason(error: Any) -> str:
    """What Kerberos says. The status of GSSAPI itself is mostly "unspecified failure"."""
    code = error.min_code or error.maj_code
    said = ", ".join(error.get_all_statuses(code, code == error.maj_code)).partition("\n")[0]
    if any(word in said.lower() for word in ("credential", "keytab", "expired")):
        said += "; kinit gets a ticket, or KRB5_CLIENT_KTNAME names a keytab"
    return said
