"""Files by URL, through the built-in object store: few requests, only for needed bytes."""

from __future__ import annotations

import http.server
import random
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from buckets import Bucket

import coldframe as cf

FIXTURE = Path(__file__).parent.parent / "data" / "rcfile" / "files" / "binary_lz4.rc"


class RangeServer(http.server.ThreadingHTTPServer):
    """Serves one file under any path, by ranges; records the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = FIXTURE.read_bytes()
        self.asked: list[tuple[int, int]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/warehouse/000000_0"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RangeServer

    def do_HEAD(self) -> None:
        self._reply(200, self.server.body, send=False)

    def do_GET(self) -> None:
        wanted = re.fullmatch(r"bytes=(\d*)-(\d+)", self.headers.get("Range", ""))
        assert wanted is not None, "the whole file was asked for"
        length = len(self.server.body)
        start = int(wanted[1]) if wanted[1] else max(0, length - int(wanted[2]))
        last = int(wanted[2]) if wanted[1] else length - 1
        self.server.asked.append((start, last + 1))
        content_range = f"bytes {start}-{last}/{len(self.server.body)}"
        self._reply(206, self.server.body[start : last + 1], content_range=content_range)

    def _reply(self, status: int, body: bytes, content_range: str | None = None, send: bool = True) -> None:
        missing = "missing" in self.path
        self.send_response(404 if missing else status)
        self.send_header("Content-Length", "0" if missing else str(len(body)))
        self.send_header("Last-Modified", "Sat, 01 Jan 2022 00:00:00 GMT")
        if content_range is not None:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        if send and not missing:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with RangeServer() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_a_url_is_read_by_ranges(server: RangeServer) -> None:
    file = cf.open(server.url)
    assert file.format == "rcfile"
    assert len(server.asked) == 2, "both ends, at once"
    assert file.read() == cf.open(FIXTURE).read()
    server.asked.clear()
    assert file.read(columns=["_c0"], limit=10).num_rows == 10
    assert len(server.asked) <= 2, "the keys of a window and one column of one row group"


def test_a_split_of_a_url_opens_without_a_request(server: RangeServer) -> None:
    (split,) = cf.open(server.url).splits()
    server.asked.clear()
    file = split.open()
    assert server.asked == []
    assert sum(batch.num_rows for batch in file.to_batches(split=split)) == 200


def test_missing_object(server: RangeServer) -> None:
    with pytest.raises(cf.NotFoundError, match="missing"):
        cf.open(server.url + "/missing")


ROWS = 60_000
NUMBERS = random.Random(5)
# Incompressible, so that a file is larger than its two ends.
DOUBLES = pa.table({"a": [NUMBERS.random() for _ in range(ROWS)]})
PAIRS = pa.table(
    {
        "key": [f"{number:09}".encode() for number in range(ROWS)],
        "value": [NUMBERS.randbytes(20) for _ in range(ROWS)],
    }
)


@pytest.mark.parametrize(
    ("format", "options", "requests"),
    [
        ("orc", {}, 2),
        ("cfile", {}, 2),
        ("hfile", {}, 2),
        ("redfile", {"dialect": "redelm-f"}, 2),
        ("redfile", {}, 2),
    ],
)
def test_opening_takes_two_requests(
    tmp_path: Path, format: str, options: dict[str, str], requests: int
) -> None:
    """One request for each end of the file, in parallel; also for files from a listing."""
    cf.write(PAIRS if format == "hfile" else DOUBLES, tmp_path / "a", format=format)
    body = (tmp_path / "a").read_bytes()
    assert len(body) > 300_000
    with Bucket() as bucket:
        thread = threading.Thread(target=bucket.serve_forever)
        thread.start()
        bucket.objects["t/a"] = body
        file = cf.open("s3://data/t/a", storage_options=bucket.options, **options)
        assert len(file.schema) > 0
        assert len(bucket.asked) <= requests, bucket.asked
        assert file.format == format
        dataset = cf.scan("s3://data/t", storage_options=bucket.options, **options)
        bucket.asked.clear()
        assert dataset.schema == file.schema
        assert len(bucket.asked) <= requests, bucket.asked
        assert file.read().num_rows == ROWS
        bucket.shutdown()
        thread.join()
