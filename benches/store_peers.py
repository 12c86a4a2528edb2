"""How fast ORC is read from a slow store: coldframe compared with pyarrow.orc over pyarrow.fs.

    python benches/store_peers.py [MIB]

A server on loopback, in a process of its own, implements as much of S3 as both readers need, waits 20 ms
before each answer and sends 200 MB/s in total. The file has 16 columns of incompressible float64, in stripes
of 64 MiB. `floor` is the larger of the transfer time and the decoding time of a local file.
"""

from __future__ import annotations

import http.server
import multiprocessing
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.orc as orc

import coldframe as cf

LATENCY = 0.020
BYTES_A_SECOND = 200e6
PIECE = 256 << 10
COLUMNS = 16


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.lock = threading.Lock()
        self.free_at = 0.0
        self.requests = 0
        self.sent = 0

    def pace(self, size: int) -> None:
        """Waits until the connection has room for `size` bytes."""
        with self.lock:
            now = time.monotonic()
            start = max(now, self.free_at)
            self.free_at = start + size / BYTES_A_SECOND
            self.sent += size
            wait = self.free_at - now
        if wait > 0:
            time.sleep(wait)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        with self.server.lock:
            self.server.requests += 1
        time.sleep(LATENCY)
        path = self.server.root / Path(unquote(urlsplit(self.path).path)).name
        size = path.stat().st_size if path.is_file() else -1
        start, stop, status = 0, max(size, 0), 200 if size >= 0 else 404
        if size >= 0 and (wanted := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))):
            first, last = wanted.groups()
            start = int(first) if first else max(0, size - int(last))
            stop = min(size, int(last) + 1) if first and last else size
            status = 206
        self.send_response(status)
        self.send_header("Content-Length", str(stop - start))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Sat, 01 Jan 2022 00:00:00 GMT")
        self.send_header("Accept-Ranges", "bytes")
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        self.end_headers()
        if not body or size < 0:
            return
        with path.open("rb") as file:
            file.seek(start)
            while start < stop:
                piece = file.read(min(PIECE, stop - start))
                self.server.pace(len(piece))
                self.wfile.write(piece)
                start += len(piece)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


def serve(root: Path, pipe: Connection) -> None:
    with Server(root) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        pipe.send(server.server_port)
        while pipe.recv() == "counts":
            with server.lock:
                pipe.send((server.requests, server.sent))
                server.requests = server.sent = 0


def measured(pipe: Connection, read: Callable[[], Any], runs: int = 3) -> tuple[float, int, int]:
    """The best of several runs: seconds, requests, bytes."""
    best = (float("inf"), 0, 0)
    for _ in range(runs):
        pipe.send("counts")
        pipe.recv()
        started = time.perf_counter()
        read()
        seconds = time.perf_counter() - started
        pipe.send("counts")
        best = min(best, (seconds, *pipe.recv()))
    return best


def main() -> None:
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    rows = (mib << 20) // (8 * COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.orc"
        numbers = np.random.default_rng(1)
        table = pa.table({f"c{i}": numbers.random(rows) for i in range(COLUMNS)})
        orc.write_table(table, path, compression="uncompressed", stripe_size=64 << 20)
        del table
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=serve, args=(Path(folder), theirs), daemon=True)
        process.start()
        report(path, ours, f"http://127.0.0.1:{ours.recv()}")
        ours.send("end")
        process.join(5)


def report(path: Path, pipe: Connection, endpoint: str) -> None:
    options = {"endpoint": endpoint, "skip_signature": "true", "region": "here"}
    filesystem = pyarrow.fs.S3FileSystem(anonymous=True, endpoint_override=endpoint, region="here")

    def ours(columns: list[str] | None) -> Any:
        return cf.open("s3://data/file.orc", storage_options=options).read(columns)

    def streamed() -> Any:
        return cf.open("s3://data/file.orc", storage_options=options).to_batches().read_all()

    def peers(columns: list[str] | None) -> Any:
        with filesystem.open_input_file("data/file.orc") as file:
            return orc.ORCFile(file).read(columns)

    size = path.stat().st_size
    print(f"{size / 1e6:.0f} MB of ORC, {LATENCY * 1000:.0f} ms, {BYTES_A_SECOND / 1e6:.0f} MB/s")
    decode = min(local_seconds(path) for _ in range(3))
    floor = max(size / BYTES_A_SECOND, decode)
    print(
        f"floor {floor:.2f} s: transfer {size / BYTES_A_SECOND:.2f} s, decoding a local file {decode:.2f} s"
    )
    column_bytes = size / COLUMNS
    print_line(
        "open, coldframe", measured(pipe, lambda: cf.open("s3://data/file.orc", storage_options=options))
    )
    print_line("all, coldframe read", measured(pipe, lambda: ours(None)), floor=floor, bytes=size)
    print_line("all, coldframe batches", measured(pipe, streamed), floor=floor, bytes=size)
    print_line("all, pyarrow", measured(pipe, lambda: peers(None), runs=1), floor=floor, bytes=size)
    floor = column_bytes / BYTES_A_SECOND
    print_line("one column, coldframe", measured(pipe, lambda: ours(["c7"])), floor=floor, bytes=column_bytes)
    print_line(
        "one column, pyarrow", measured(pipe, lambda: peers(["c7"]), runs=1), floor=floor, bytes=column_bytes
    )


def local_seconds(path: Path) -> float:
    started = time.perf_counter()
    cf.open(path).read()
    return time.perf_counter() - started


def print_line(
    name: str, measurement: tuple[float, int, int], floor: float | None = None, bytes: float | None = None
) -> None:
    seconds, requests, sent = measurement
    text = f"{name:24} {seconds:7.3f} s {requests:5} requests {sent / 1e6:8.1f} MB"
    if floor is not None and bytes is not None:
        text += f"   {seconds / floor:5.2f} x floor {sent / bytes:5.2f} x bytes"
    print(text)


if __name__ == "__main__":
    main()
