"""Table directories in an object store, behind a small S3 server."""

from __future__ import annotations

import http.server
import re
import shutil
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli import main

DATA = Path(__file__).parent.parent / "data"


class Bucket(http.server.ThreadingHTTPServer):
    """A directory as the bucket `data`."""

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.bytes_read = 0

    @property
    def storage_options(self) -> dict[str, str]:
        endpoint = f"http://127.0.0.1:{self.server_port}"
        return {"endpoint": endpoint, "allow_http": "true", "skip_signature": "true", "region": "here"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Bucket

    def do_HEAD(self) -> None:
        self.answer(send=False)

    def do_GET(self) -> None:
        self.answer(send=True)

    def answer(self, *, send: bool) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        if "list-type" in query:
            return self.reply(200, self.listing(query.get("prefix", [""])[0], "delimiter" in query))
        path = self.server.root / unquote(url.path).removeprefix("/data/")
        if not path.is_file():
            return self.reply(404, b"<Error><Code>NoSuchKey</Code></Error>", send=send)
        body, headers, status = path.read_bytes(), {}, 200
        if wanted := re.fullmatch(r"bytes=(\d*)-(\d+)", self.headers.get("Range", "")):
            start = int(wanted[1]) if wanted[1] else max(0, len(body) - int(wanted[2]))
            last = int(wanted[2]) if wanted[1] else len(body) - 1
            headers["Content-Range"] = f"bytes {start}-{last}/{len(body)}"
            body, status = body[start : last + 1], 206
            self.server.bytes_read += len(body)
        return self.reply(status, body, headers, send=send)

    def listing(self, prefix: str, delimited: bool) -> bytes:
        """ListObjectsV2, with the delimiter `/` or without."""
        folder = self.server.root / prefix
        if delimited:
            paths = sorted(folder.iterdir()) if folder.is_dir() else []
        else:
            paths = sorted(path for path in folder.rglob("*") if path.is_file())
        parts = [
            f"<CommonPrefixes><Prefix>{escape(prefix + path.name)}/</Prefix></CommonPrefixes>"
            if path.is_dir()
            else f"<Contents><Key>{escape(prefix + path.relative_to(folder).as_posix())}</Key>"
            f"<Size>{path.stat().st_size}</Size>"
            '<LastModified>2022-01-01T00:00:00Z</LastModified><ETag>"1"</ETag></Contents>'
            for path in paths
        ]
        head = f"<Name>data</Name><Prefix>{escape(prefix)}</Prefix><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult>{head}{''.join(parts)}</ListBucketResult>".encode()

    def reply(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, send: bool = True
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Sat, 01 Jan 2022 00:00:00 GMT")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if send:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    with Bucket(tmp_path) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_a_kudu_table_is_read_from_an_object_store(bucket: Bucket) -> None:
    folder = bucket.root / "backup" / "tserver"
    shutil.copytree(DATA / "kudu" / "files" / "log_blocks", folder)
    options = {"table": "events"}
    file = cf.open("s3://data/backup/tserver", storage_options=bucket.storage_options, **options)
    assert file.format == "kudu"
    assert file.read().equals(cf.open(folder, **options).read())
    split = file.splits()[0]
    assert sum(batch.num_rows for batch in split.to_batches()) == split.rows


def test_a_kudu_table_reads_one_column(bucket: Bucket) -> None:
    folder = bucket.root / "tserver"
    shutil.copytree(DATA / "kudu" / "files" / "log_blocks", folder)

    def bytes_of(columns: list[str] | None) -> int:
        file = cf.open("s3://data/tserver", storage_options=bucket.storage_options, table="events")
        bucket.bytes_read = 0
        file.read(columns=columns)
        return bucket.bytes_read

    assert 0 < bytes_of(["ratio"]) < 0.8 * bytes_of(None)


def test_an_acid_table_is_read_from_an_object_store(bucket: Bucket) -> None:
    folder = bucket.root / "warehouse" / "t"
    shutil.copytree(DATA / "orc" / "files" / "acid_table", folder)
    file = cf.open("s3://data/warehouse/t/", storage_options=bucket.storage_options, acid=True)
    assert file.read().equals(cf.open(folder, acid=True).read())


def test_an_acid_table_in_partitions_is_read_from_an_object_store(bucket: Bucket) -> None:
    for partition in ("p=1", "p=2"):
        shutil.copytree(DATA / "orc" / "files" / "acid_table", bucket.root / "warehouse" / "t" / partition)
    (bucket.root / "warehouse" / "t" / "README.md").write_text("what lies here\n")
    with pytest.warns(cf.LeftOutWarning, match=r"README\.md \(text\)"):
        dataset = cf.scan("s3://data/warehouse/t/", storage_options=bucket.storage_options)
    assert dataset.files == [f"s3://data/warehouse/t/p={part}" for part in (1, 2)]
    live = cf.open(bucket.root / "warehouse" / "t" / "p=1").read()
    rows = dataset.to_table()
    assert rows.drop(["p"]).equals(pa.concat_tables([live, live]))
    assert rows["p"].to_pylist() == [1] * live.num_rows + [2] * live.num_rows
    assert sum(s.to_batches().read_all().num_rows for s in dataset.planned(1000)) == rows.num_rows
    given = [part for pair in bucket.storage_options.items() for part in ("--storage-option", "=".join(pair))]
    assert main(["verify", "s3://data/warehouse/t/", *given]) == 0


def test_hudi_metadata_are_read_from_an_object_store(bucket: Bucket) -> None:
    with tarfile.open(DATA / "hudi" / "lab-1.1.1.tar.gz") as tar:
        tar.extractall(bucket.root, filter="data")
    (metadata,) = bucket.root.rglob("metadata/files")
    name = metadata.relative_to(bucket.root).as_posix()
    file = cf.open(f"s3://data/{name}", storage_options=bucket.storage_options)
    assert file.read().equals(cf.open(metadata).read())


def test_a_missing_object_or_folder_is_an_error(bucket: Bucket) -> None:
    with pytest.raises(cf.NotFoundError, match="s3://data/nothing"):
        cf.open("s3://data/nothing", storage_options=bucket.storage_options)
