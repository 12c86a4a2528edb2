"""Authenticates to a metastore with Kerberos: SASL's mechanism GSSAPI (RFC 4752) in the frames of Thrift.

    client   START "GSSAPI", OK token     status (1 byte), length (4), content
    server   OK token                     until both sides are authenticated
             OK wrapped: layers, size     offered layers: none, integrity, privacy
    client   OK wrapped: layer, size
    server   COMPLETE
    then     length (4), content          wrapped, if a layer was chosen

The machine's Kerberos library supplies the tickets: from `kinit`, or from the keytab in KRB5_CLIENT_KTNAME.
"""

from __future__ import annotations

import importlib
import struct
from typing import Any

from thrift.transport.TTransport import TTransportBase

from coldframe.errors import install_hint, unsupported

_START, _OK, _BAD, _ERROR, _COMPLETE = 1, 2, 3, 4, 5
_PLAIN, _INTEGRITY, _PRIVACY = 1, 2, 4
_MAX_TOKEN = 1 << 20
"""The longest token of the exchange; Kerberos' tokens are far shorter."""
_MAX_FRAME = 1 << 30
"""The longest frame: a metastore puts each answer into one frame."""
_MAX_OFFERED = (1 << 24) - 1
"""The longest frame that the client can announce: the number has three bytes."""


class KerberosRefusal(Exception):
    """The authentication failed; the message has the reason."""


class SaslTransport(TTransportBase):  # type: ignore[misc]
    """An authenticated connection, signed or encrypted if both sides agreed on it."""

    def __init__(self, socket: Any, service: str, host: str) -> None:
        """`socket`: an open transport. Raises KerberosRefusal if the authentication fails."""
        self._socket = socket
        self._gssapi = _library()
        self._layer = _PLAIN
        self._max_content = _MAX_OFFERED
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
                raise KerberosRefusal("the server ended the exchange before it was authenticated")
            self._send(_OK, context.step(content) or b"")
        self._choose()
        if self._receive()[0] != _COMPLETE:
            raise KerberosRefusal("the server continued an exchange that was complete")

    def _choose(self) -> None:
        """Chooses the strongest layer that the server offers."""
        status, content = self._receive()
        offered = self._context.unwrap(content).message
        if status != _OK or len(offered) != 4:
            raise KerberosRefusal("the server offers no security layers")
        self._layer = next((layer for layer in (_PRIVACY, _INTEGRITY, _PLAIN) if offered[0] & layer), 0)
        if not self._layer:
            raise KerberosRefusal(f"the server offers only unknown security layers: {offered[0]}")
        self._max_content = int.from_bytes(offered[1:], "big")
        if self._layer != _PLAIN:
            self._max_content = self._context.get_wrap_size_limit(self._max_content, self._layer == _PRIVACY)
            if self._max_content <= 0:
                raise KerberosRefusal("the server accepts no messages")
        size = 0 if self._layer == _PLAIN else _MAX_OFFERED
        # No authorisation identity follows: the server takes the principal of the ticket.
        answer = bytes([self._layer]) + size.to_bytes(3, "big")
        self._send(_OK, self._context.wrap(answer, False).message)

    def _send(self, status: int, content: bytes) -> None:
        self._socket.write(struct.pack(">BI", status, len(content)) + content)
        self._socket.flush()

    def _receive(self) -> tuple[int, bytes]:
        status, length = struct.unpack(">BI", self._socket.readAll(5))
        if status not in (_OK, _BAD, _ERROR, _COMPLETE) or length > _MAX_TOKEN:
            raise KerberosRefusal("the server does not speak SASL: it may not use Kerberos")
        content: bytes = self._socket.readAll(length)
        if status in (_BAD, _ERROR):
            raise KerberosRefusal(content.decode(errors="replace"))
        return status, content

    def isOpen(self) -> bool:
        """Whether the transport is connected."""
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
        if length > _MAX_FRAME:
            raise ValueError(f"a frame of {length} bytes")
        content: bytes = self._socket.readAll(length)
        return content if self._layer == _PLAIN else self._opened(content)

    def _opened(self, content: bytes) -> bytes:
        try:
            opened = self._context.unwrap(content)
        except self._gssapi.exceptions.GSSError as error:
            raise ValueError(_reason(error)) from error
        if self._layer == _PRIVACY and not opened.encrypted:
            raise ValueError("a frame that is not encrypted, although privacy was agreed")
        message: bytes = opened.message
        return message

    def write(self, buf: bytes) -> None:
        """Buffers bytes until `flush`."""
        self._written.append(bytes(buf))

    def flush(self) -> None:
        """Sends the buffered bytes."""
        content, self._written = b"".join(self._written), []
        step = len(content) if self._layer == _PLAIN else self._max_content
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
            f"a metastore with Kerberos without the package gssapi ({missing}); " + install_hint("kerberos")
        ) from missing


def _reason(error: Any) -> str:
    """Kerberos's reason, since GSSAPI's is usually "unspecified failure"."""
    code = error.min_code or error.maj_code
    text = ", ".join(error.get_all_statuses(code, code == error.maj_code)).partition("\n")[0]
    if any(word in text.lower() for word in ("credential", "keytab", "expired")):
        text += "; kinit gets a ticket, or KRB5_CLIENT_KTNAME names a keytab"
    return text
