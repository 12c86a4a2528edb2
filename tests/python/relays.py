"""A relay to a server on the loopback that dies, stalls or is slow."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from typing import Literal

How = Literal["dies", "hangs", "trickles"]


class Relay:
    """Relays the requests of one client and the answers of the server, up to answer number `at`; only half of
    this answer arrives.

    dies        the connection is closed
    hangs       nothing more comes
    trickles    nothing breaks, and all answers come slowly
    """

    def __init__(self, port: int, how: How = "dies", at: int = 1 << 30) -> None:
        self._behind, self._how, self._at = port, how, at
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._end = threading.Event()
        self.port: int = self._listening.getsockname()[1]
        self.answers = 0
        """How many answers came through whole."""

    @property
    def url(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    def __enter__(self) -> Relay:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._listening.close()

    def _serve(self) -> None:
        client, _ = self._listening.accept()
        with client, socket.create_connection(("127.0.0.1", self._behind)) as server:
            for self.answers in itertools.count():
                asked = client.recv(1 << 20)
                if not asked:
                    return
                server.sendall(asked)
                answer = server.recv(1 << 20)
                if self.answers == self._at:
                    client.sendall(answer[: len(answer) // 2])
                    if self._how == "hangs":
                        self._end.wait(60)
                    return
                for at in range(0, len(answer), step := 64 if self._how == "trickles" else 1 << 20):
                    time.sleep(0.002 if self._how == "trickles" else 0)
                    client.sendall(answer[at : at + step])
