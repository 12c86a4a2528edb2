"""A bucket in memory: what a small server speaks of S3 is enough to count requests, and to answer badly."""

from __future__ import annotations

import http.server
import re
from collections.abc import Callable
from urllib.parse import parse_qs, unquote, urlsplit

SECRET = "hush-hush/secret+key"


class Bucket(http.server.ThreadingHTTPServer):
    """A bucket in memory, which speaks of S3 what reading and listing ask; what it does else, a test says."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.answer: Callable[[Handler], bool] = lambda request: False
        """Is asked first; True where it has answered."""
        self.etags = True
        self.page = 1000

    @property
    def options(self) -> dict[str, str]:
        return {
            "endpoint": f"http://127.0.0.1:{self.server_port}",
            "access_key_id": "AKIAEXAMPLE",
            "secret_access_key": SECRET,
            "region": "here",
            "timeout": "1",
            "max_retries": "1",
            "retry_timeout": "3",
        }

    def etag(self, key: str) -> str:
        return f'"{hash(self.objects[key]) & 0xFFFFFFFF:08x}"'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Bucket

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        if self.server.answer(self):
            return
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        if "list-type" in query:
            self.reply(200, self.listing(query))
            return
        key = unquote(url.path).removeprefix("/data/")
        body = self.server.objects.get(key)
        if body is None:
            self.fail(404, "NoSuchKey", "The specified key does not exist.")
            return
        etag = self.server.etag(key)
        if self.headers.get("If-Match", etag) != etag:
            self.fail(412, "PreconditionFailed", "At least one of the pre-conditions did not hold")
            return
        headers = {"Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT"}
        if self.server.etags:
            headers["ETag"] = etag
        status = 200
        if wanted := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")):
            start = int(wanted[1]) if wanted[1] else max(0, len(body) - int(wanted[2]))
            last = min(len(body), int(wanted[2]) + 1) if wanted[1] and wanted[2] else len(body)
            headers["Content-Range"] = f"bytes {start}-{last - 1}/{len(body)}"
            body, status = body[start:last], 206
        self.reply(status, body, headers)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def listing(self, query: dict[str, list[str]]) -> bytes:
        prefix = query.get("prefix", [""])[0]
        keys = sorted(key for key in self.server.objects if key.startswith(prefix))
        folders = ""
        if "delimiter" in query:
            below = {key[: key.index("/", len(prefix)) + 1] for key in keys if "/" in key[len(prefix) :]}
            keys = [key for key in keys if "/" not in key[len(prefix) :]]
            tags = (f"<CommonPrefixes><Prefix>{one}</Prefix></CommonPrefixes>" for one in sorted(below))
            folders = "".join(tags)
        start = int(query.get("continuation-token", ["0"])[0])
        found = keys[start : start + self.server.page]
        entries = "".join(
            f"<Contents><Key>{key}</Key><Size>{len(self.server.objects[key])}</Size>"
            f"<LastModified>2022-01-01T00:00:00Z</LastModified><ETag>{self.server.etag(key)}</ETag></Contents>"
            for key in found
        )
        more = start + len(found) < len(keys)
        rest = f"<NextContinuationToken>{start + len(found)}</NextContinuationToken>" if more else ""
        found_all = f"<IsTruncated>{str(more).lower()}</IsTruncated>{entries}{folders}{rest}"
        return f"<ListBucketResult>{found_all}</ListBucketResult>".encode()

    def fail(self, status: int, code: str, message: str) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
        self.reply(status, text.encode())

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""
