"""A bucket in memory, behind a small S3 server that counts requests and can answer badly."""

from __future__ import annotations

import contextlib
import http.server
import re
import threading
import zlib
from collections.abc import Callable
from urllib.parse import parse_qs, unquote, urlsplit

SECRET = "hush-hush/secret+key"


class Bucket(http.server.ThreadingHTTPServer):
    """A bucket in memory with the part of S3 that coldframe uses. Tests replace the bucket's answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.answer: Callable[[Handler], bool] = lambda request: False
        """Gets each request first, and returns True if it has answered it."""
        self.etags = True
        self.dated = False
        """Whether the time of change depends on the content, so that each content has its own time."""
        self.writing = threading.Lock()
        self.parts: dict[str, bytes] = {}
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
        return tag(self.objects[key])


def tag(body: bytes) -> str:
    return f'"{zlib.crc32(body):08x}"'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Bucket

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        if self.server.answer(self):
            return
        self.answered()

    def answered(self) -> None:
        """The correct answer."""
        if self.command not in ("GET", "HEAD"):
            self.write()
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
        etag = tag(body)
        if self.headers.get("If-Match", etag) != etag:
            self.fail(412, "PreconditionFailed", "At least one of the pre-conditions did not hold")
            return
        headers = {"Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT"}
        if self.server.dated:
            minute, second = divmod(zlib.crc32(body) % 3600, 60)
            headers = {"Last-Modified": f"Sat, 01 Jan 2022 00:{minute:02}:{second:02} GMT"}
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
            tags = (f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>" for folder in sorted(below))
            folders = "".join(tags)
        start = int(query.get("continuation-token", ["0"])[0])
        page = keys[start : start + self.server.page]
        entries = "".join(
            f"<Contents><Key>{key}</Key><Size>{len(self.server.objects[key])}</Size>"
            f"<LastModified>2022-01-01T00:00:00Z</LastModified><ETag>{self.server.etag(key)}</ETag></Contents>"
            for key in page
        )
        more = start + len(page) < len(keys)
        rest = f"<NextContinuationToken>{start + len(page)}</NextContinuationToken>" if more else ""
        content = f"<IsTruncated>{str(more).lower()}</IsTruncated>{entries}{folders}{rest}"
        return f"<ListBucketResult>{content}</ListBucketResult>".encode()

    def write(self) -> None:
        """Puts, multipart copies and deletions, with their conditions."""
        url = urlsplit(self.path)
        query = parse_qs(url.query, keep_blank_values=True)
        key = unquote(url.path).removeprefix("/data/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.server.writing:
            if self.command == "DELETE":
                if "uploadId" not in query:
                    self.server.objects.pop(key, None)
                self.reply(204, b"")
            elif "delete" in query:
                gone = re.findall(rb"<Key>(.*?)</Key>", body)
                for name in gone:
                    self.server.objects.pop(name.decode(), None)
                deleted = b"".join(b"<Deleted><Key>%s</Key></Deleted>" % name for name in gone)
                self.reply(200, b"<DeleteResult>%s</DeleteResult>" % deleted)
            elif "uploads" in query:
                self.reply(200, b"<R><UploadId>1</UploadId></R>")
            elif "x-amz-copy-source" in self.headers:
                source = unquote(self.headers["x-amz-copy-source"]).lstrip("/").removeprefix("data/")
                if source not in self.server.objects:
                    self.refuse(404, "NoSuchKey", "The specified key does not exist.")
                    return
                self.server.parts[key] = self.server.objects[source]
                self.reply(200, b'<CopyPartResult><ETag>"1"</ETag></CopyPartResult>')
            elif self.headers.get("If-None-Match") and key in self.server.objects:
                self.refuse(412, "PreconditionFailed", "At least one of the pre-conditions did not hold")
            else:
                self.server.objects[key] = self.server.parts[key] if "uploadId" in query else body
                etag = self.server.etag(key)
                answer = f"<CompleteMultipartUploadResult><ETag>{etag}</ETag></CompleteMultipartUploadResult>"
                self.reply(200, answer.encode() if "uploadId" in query else b"", {"ETag": etag})

    def fail(self, status: int, code: str, message: str) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.refuse(status, code, message)

    def refuse(self, status: int, code: str, message: str) -> None:
        """Like `fail`, but for requests whose body was read."""
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

    def handle(self) -> None:
        # Clients may give up; the server ignores that.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""
