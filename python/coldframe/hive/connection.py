"""A connection to a Hive metastore: TCP, the binary protocol, no framing; Kerberos if the address asks."""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from coldframe._coldframe import ColdframeError
from coldframe.hive.addresses import Address
from coldframe.logs import step

_log = logging.getLogger(__name__)

CONNECT_SECONDS = 20.0
ANSWER_SECONDS = 300.0
"""A busy metastore may be slow; Hive's own clients wait ten minutes."""
_MAX_ELEMENTS = 20_000_000
"""The maximum number of elements of a list in an answer, such as the names of all partitions."""
_MAX_TEXT = 64 << 20


class Gone(ColdframeError):
    """The metastore cannot be reached, or has closed the connection."""


@dataclass(frozen=True)
class Connection:
    """An open connection."""

    address: Address
    transport: Any
    protocol: Any


def connect(addresses: Sequence[Address]) -> Connection:
    """Connects to the first address that accepts."""
    reasons: list[str] = []
    for address in addresses:
        try:
            with step(_log, logging.INFO, "connecting to the metastore %s", address):
                return _connect(address)
        except Gone as reason:
            reasons.append(str(reason))
    raise Gone("; ".join(reasons))


def _connect(address: Address) -> Connection:
    try:
        opened = socket.create_connection((address.host, address.port), CONNECT_SECONDS)
    except OSError as error:
        raise Gone(f"metastore {address} cannot be reached: {error.strerror or error}") from error
    plain = TSocket()
    plain.setHandle(opened)
    transport = TBufferedTransport(plain if not address.service else _known(plain, address), 1 << 16)
    opened.settimeout(ANSWER_SECONDS)
    # Without these limits, bytes that are not Thrift could be taken for a huge length.
    limits = {"string_length_limit": _MAX_TEXT, "container_length_limit": _MAX_ELEMENTS}
    return Connection(address, transport, TBinaryProtocolAccelerated(transport, strictRead=True, **limits))


def _known(plain: Any, address: Address) -> Any:
    """The connection after authentication with Kerberos."""
    from coldframe.hive.sasl import KerberosRefusal, SaslTransport

    try:
        return SaslTransport(plain, address.service, address.host)
    except KerberosRefusal as reason:
        plain.close()
        raise Gone(f"metastore {address}: Kerberos: {reason}") from reason
    except (TTransportException, OSError) as error:
        plain.close()
        if is_timeout(error):
            what = f"no answer for {CONNECT_SECONDS:.0f} s: it may not use Kerberos"
        else:
            what = "it closed the connection: see its log for the reason, such as a wrong principal"
        raise Gone(f"metastore {address}: Kerberos: {what}") from error


def is_timeout(error: Exception) -> bool:
    """Whether an answer did not come in time. Versions of the library wrap timeouts differently."""
    return isinstance(error, TimeoutError) or isinstance(vars(error).get("inner"), TimeoutError)


def cut_off(address: Address, name: str, error: Exception) -> Gone:
    """The error for a call that got no answer."""
    if is_timeout(error):
        return Gone(f"metastore {address}: {name}: no answer for {ANSWER_SECONDS:.0f} s")
    hint = "a metastore with Kerberos needs its service in the address, as in thrift://hive@host"
    if address.service:
        hint = "see its log for the reason"
    return Gone(
        f"metastore {address}: {name}: it closed the connection: {hint}; TLS and framing are not supported"
    )
