"""Failing stores, simulated by a small server: the error names the URL and the reason, has no secret, and
comes in time.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from buckets import SECRET, Bucket, Handler

import coldframe as cf
from coldframe._coldframe import load_options
from coldframe.sources import open_store

TABLE = pa.table({"n": pa.array(range(1000), pa.int64())})


@pytest.fixture
def bucket(tmp_path: Any) -> Iterator[Bucket]:
    cf.write(TABLE, tmp_path / "a.orc", format="orc")
    with Bucket() as running:
        running.objects["t/a.orc"] = (tmp_path / "a.orc").read_bytes()
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


URL = "s3://data/t/a.orc"

VERBS: dict[str, Callable[[dict[str, str]], Any]] = {
    "open": lambda options: cf.open(URL, storage_options=options),
    "detect": lambda options: cf.detect(URL, storage_options=options),
    "scan": lambda options: cf.scan("s3://data/t", storage_options=options),
    "glob": lambda options: cf.scan("s3://data/t/*.orc", storage_options=options),
    "write": lambda options: cf.write(TABLE, URL, format="orc", storage_options=options),
    "list": lambda options: list(open_store("s3://data/t", options).list(recursive=True)),
    "put": lambda options: open_store("s3://data/t", options).put("new", b"x"),
    "publish": lambda options: open_store("s3://data/t", options).publish("a.orc", "b.orc"),
    "delete": lambda options: open_store("s3://data/t", options).delete("a.orc"),
}

REFUSALS = {
    "ExpiredToken": (400, "The provided token has expired.", PermissionError),
    "RequestTimeTooSkewed": (
        403,
        "The difference between the request time and the current time is too large.",
        PermissionError,
    ),
    "InvalidAccessKeyId": (403, "The AWS Access Key Id you provided does not exist.", PermissionError),
    "SignatureDoesNotMatch": (403, "The request signature we calculated does not match.", PermissionError),
    "AccessDenied": (403, "Access Denied", PermissionError),
    "NoSuchBucket": (404, "The specified bucket does not exist", cf.NotFoundError),
    "SlowDown": (503, "Please reduce your request rate.", OSError),
    "InternalError": (500, "We encountered an internal error.", OSError),
}


@pytest.mark.parametrize("code", REFUSALS)
@pytest.mark.parametrize("verb", VERBS)
def test_refusal_is_reported(bucket: Bucket, verb: str, code: str) -> None:
    status, message, kind = REFUSALS[code]

    def refuse(request: Handler) -> bool:
        request.fail(status, code, message)
        return True

    bucket.answer = refuse
    started = time.monotonic()
    with pytest.raises(kind) as caught:
        VERBS[verb](bucket.options)
    assert time.monotonic() - started < 10
    text = str(caught.value)
    assert "s3://data/t" in text, text
    # An answer to HEAD has only a status.
    assert code in text or (status >= 500 and str(status) in text), text
    assert SECRET not in text
    assert "AKIAEXAMPLE" not in text


def test_server_stalls_within_a_body(bucket: Bucket) -> None:
    silent = threading.Event()

    def stall(request: Handler) -> bool:
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("Range", ""))
        assert wanted is not None
        first = int(wanted[1]) if wanted[1] else 300_000 - int(wanted[2])
        last = int(wanted[2]) if wanted[1] else 299_999
        request.send_response(206)
        request.send_header("Content-Length", str(last + 1 - first))
        request.send_header("Content-Range", f"bytes {first}-{last}/300000")
        request.send_header("ETag", '"1"')
        request.send_header("Last-Modified", "Sat, 01 Jan 2022 00:00:00 GMT")
        request.end_headers()
        request.wfile.write(bytes(100))
        request.wfile.flush()
        silent.wait(20)
        request.close_connection = True
        return True

    bucket.answer = stall
    started = time.monotonic()
    with pytest.raises(TimeoutError, match=r"s3://data/t/a\.orc"):
        cf.open(URL, storage_options=bucket.options)
    assert time.monotonic() - started < 15
    silent.set()


def test_broken_body_is_resumed(bucket: Bucket) -> None:
    """The read resumes after the last byte, with the same etag."""
    file = cf.open(URL, storage_options=bucket.options)
    broken = 0

    def breaking(request: Handler) -> bool:
        nonlocal broken
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
        if wanted is None or broken >= 1:
            return False
        broken += 1
        body = bucket.objects["t/a.orc"]
        start, last = int(wanted[1]), int(wanted[2])
        request.send_response(206)
        request.send_header("Content-Length", str(last + 1 - start))
        request.send_header("Content-Range", f"bytes {start}-{last}/{len(body)}")
        request.send_header("ETag", bucket.etag("t/a.orc"))
        request.send_header("Last-Modified", "Sat, 01 Jan 2022 00:00:00 GMT")
        request.end_headers()
        request.wfile.write(body[start : start + (last + 1 - start) // 2])
        request.wfile.flush()
        request.close_connection = True
        return True

    bucket.answer = breaking
    store = open_store("s3://data/t", bucket.options)
    assert store.open("a.orc").read(0, 4000) == bucket.objects["t/a.orc"][:4000]
    assert broken == 1
    assert file.read() == TABLE


def test_server_dies_within_a_body(bucket: Bucket) -> None:
    bucket.objects["t/a.orc"] = bytes(300_000)
    opened = open_store("s3://data/t", bucket.options).open("a.orc")

    def dying(request: Handler) -> bool:
        request.send_response(206)
        request.send_header("Content-Length", "1000")
        request.send_header("Content-Range", "bytes 100000-100999/300000")
        request.end_headers()
        request.wfile.write(bytes(10))
        request.close_connection = True
        return True

    bucket.answer = dying
    started = time.monotonic()
    with pytest.raises(OSError, match=r"s3://data/t"):
        opened.read(100_000, 101_000)
    assert time.monotonic() - started < 15


class TestListings:
    """Files that change between a listing and their read."""

    def filled(self, bucket: Bucket) -> cf.Dataset:
        whole = bucket.objects["t/a.orc"]
        for name in ("b", "c", "d"):
            bucket.objects[f"t/{name}.orc"] = whole
        return cf.scan("s3://data/t", storage_options=bucket.options)

    def test_a_file_that_is_deleted_is_an_error(self, bucket: Bucket) -> None:
        for read in (cf.Dataset.count, cf.Dataset.to_table):
            dataset = self.filled(bucket)
            del bucket.objects["t/c.orc"]
            with pytest.raises((OSError, cf.NotFoundError), match=r"t/c\.orc"):
                read(dataset)

    def test_a_file_that_is_replaced_is_an_error(self, bucket: Bucket) -> None:
        dataset = self.filled(bucket)
        bucket.objects["t/d.orc"] = bucket.objects["t/d.orc"][:-1] + b"\0"
        with pytest.raises(OSError, match=r"t/d\.orc.*was changed"):
            dataset.to_table()

    def test_a_listing_that_fails_on_a_later_page_is_an_error(self, bucket: Bucket) -> None:
        self.filled(bucket)
        bucket.page = 2
        dataset = cf.scan("s3://data/t", storage_options=bucket.options)
        assert len(dataset.files) == 4

        def failing(request: Handler) -> bool:
            if "continuation-token" not in request.path:
                return False
            request.fail(403, "ExpiredToken", "The provided token has expired.")
            return True

        bucket.answer = failing
        with pytest.raises(PermissionError, match=r"s3://data/t.*ExpiredToken"):
            cf.scan("s3://data/t", storage_options=bucket.options)


def test_listing_takes_one_request_per_page(bucket: Bucket) -> None:
    """100,000 objects need no other requests, except for the first object."""
    body = bucket.objects.pop("t/a.orc")
    for number in range(100_000):
        bucket.objects[f"t/dt={number // 1000:03}/{number:06}.orc"] = body
    bucket.asked.clear()
    dataset = cf.scan("s3://data/t", storage_options={**bucket.options, "timeout": "60"})
    assert len(dataset.files) == 100_000
    pages = [url for url in bucket.asked if "list-type=2" in url]
    assert len(pages) <= 105
    assert len(bucket.asked) - len(pages) <= 5, "the format and the columns of the first file"


class TestMixtures:
    """A file that is replaced during a read, in stores without etags or conditions."""

    OLD, NEW = bytes([1]) * 300_000, bytes([2]) * 300_000

    def opened(self, bucket: Bucket, url: str) -> Any:
        bucket.etags = url.startswith("s3")
        bucket.objects["t/a.orc"] = self.OLD
        options = bucket.options if bucket.etags else {"timeout": "1", "max_retries": "1"}
        file = open_store(url.replace("PORT", str(bucket.server_port)), options).open()
        assert file.read(100_000, 100_001) == b"\1"
        return file

    @pytest.mark.parametrize("sign", ["Last-Modified", "length", "ETag"])
    def test_an_answer_of_another_content_is_an_error(self, bucket: Bucket, sign: str) -> None:
        web = "http://127.0.0.1:PORT/data/t/a.orc"
        file = self.opened(bucket, web if sign != "ETag" else "s3://data/t/a.orc")

        def answer(request: Handler) -> bool:
            wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
            assert wanted is not None
            first, last = int(wanted[1]), int(wanted[2])
            total = 300_001 if sign == "length" else 300_000
            day = "02" if sign == "Last-Modified" else "01"
            headers = {
                "Content-Range": f"bytes {first}-{last}/{total}",
                "Last-Modified": f"Sun, {day} Jan 2022 00:00:00 GMT".replace("Sun, 01", "Sat, 01"),
            }
            if sign == "ETag":
                headers["ETag"] = '"another"'
            request.reply(206, self.NEW[first : last + 1], headers)
            return True

        bucket.answer = answer
        with pytest.raises(OSError, match=r"t/a\.orc.*was changed"):
            file.read(150_000, 150_010)

    def test_shorter_file_is_reported_as_changed(self, bucket: Bucket) -> None:
        file = self.opened(bucket, "http://127.0.0.1:PORT/data/t/a.orc")
        bucket.objects["t/a.orc"] = self.NEW[:150_005]
        with pytest.raises(OSError, match=r"t/a\.orc.*was changed"):
            file.read(150_000, 150_010)

    @pytest.mark.parametrize("extra", [-3, 3])
    def test_another_number_of_bytes_is_the_servers_error(self, bucket: Bucket, extra: int) -> None:
        file = self.opened(bucket, "http://127.0.0.1:PORT/data/t/a.orc")

        def answer(request: Handler) -> bool:
            headers = {
                "Content-Range": "bytes 150000-150009/300000",
                "Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT",
            }
            request.reply(206, bytes(10 + extra), headers)
            return True

        bucket.answer = answer
        with pytest.raises(OSError, match=rf"answered with {10 + extra} bytes, expected 10"):
            file.read(150_000, 150_010)


class TestBusyServers:
    """Requests to a busy server are retried."""

    def busy(self, bucket: Bucket, times: int, headers: dict[str, str]) -> None:
        left = times

        def answer(request: Handler) -> bool:
            nonlocal left
            left -= 1
            if left < 0:
                return False
            request.reply(503, b"<Error><Code>SlowDown</Code></Error>", headers)
            return True

        bucket.answer = answer

    def options(self, bucket: Bucket, **more: str) -> dict[str, str]:
        options = {
            name: text for name, text in bucket.options.items() if not name.startswith(("max_", "retry_"))
        }
        return {**options, **more}

    def test_burst_of_refusals_is_retried(self, bucket: Bucket) -> None:
        """More refusals than the client's own retries, which last a second or two."""
        store = open_store(URL, self.options(bucket))
        file = store.open()
        self.busy(bucket, 14, {"Retry-After": "0"})
        assert len(file.read(0, 10)) == 10
        assert file.read(0, 10) == bucket.objects["t/a.orc"][:10]

    def test_retry_after_is_respected(self, bucket: Bucket) -> None:
        self.busy(bucket, 1, {"Retry-After": "1"})
        started = time.monotonic()
        assert open_store(URL, self.options(bucket, max_retries="1")).stat() is not None
        assert time.monotonic() - started >= 1

    def test_retry_timeout_is_respected(self, bucket: Bucket) -> None:
        self.busy(bucket, 1_000_000, {"Retry-After": "100"})
        started = time.monotonic()
        with pytest.raises(OSError, match=r"503|SlowDown"):
            open_store(URL, self.options(bucket, retry_timeout="1")).open()
        assert 1 <= time.monotonic() - started < 20


@pytest.mark.parametrize(("status", "kind"), [(405, OSError), (403, PermissionError), (401, PermissionError)])
@pytest.mark.parametrize("is_web", [True, False])
def test_a_status_without_a_reason_is_reported(
    bucket: Bucket, status: int, kind: type[Exception], is_web: bool
) -> None:
    def answer(request: Handler) -> bool:
        request.reply(status, b"")
        return True

    bucket.answer = answer
    url = f"http://127.0.0.1:{bucket.server_port}/data/t/a.orc" if is_web else URL
    with pytest.raises(kind) as caught:
        cf.open(url, storage_options=bucket.options if not is_web else {"max_retries": 0})
    assert not isinstance(caught.value, cf.NotFoundError)
    if not is_web and status in (401, 403):
        with pytest.raises(kind):
            list(open_store("s3://data/t", bucket.options).list())


def test_signatures_and_passwords_are_not_shown(bucket: Bucket) -> None:
    place = f"127.0.0.1:{bucket.server_port}/data/t"
    file = cf.open(f"http://user:hush@{place}/a.orc?X-Signature=hush")
    assert file.num_rows == 1000
    split = file.splits()[0]
    assert "hush" not in repr(file) + repr(split) + repr(open_store(f"http://{place}?sig=hush"))
    for url in (
        f"http://user:hush@{place}/none?sig=hush",
        "nope://user:hush@host/x",
        "s3://k:hush@data/t/a*",
    ):
        with pytest.raises((OSError, cf.ColdframeError, ValueError)) as caught:
            cf.scan(url, storage_options={"max_retries": 0} if url.startswith("http") else None).to_table()
        assert "hush" not in str(caught.value), url


def test_options_that_cannot_be_read_are_not_shown() -> None:
    for text in ('{"secret": "hush"', '"hush"'):
        with pytest.raises(cf.SchemaError) as caught:
            load_options({"path": "/x", "storage_options": text})
        assert "hush" not in str(caught.value)
        assert caught.value.__cause__ is None
