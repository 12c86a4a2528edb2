"""Redirects: credentials stay with their host, and other hosts are asked only if the user names them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from buckets import Bucket, Handler

import coldframe as cf
from coldframe.sources import open_store

SECRETS = ("TOKENTOKEN", "AKIAX", "SEKRIT", "c2Vrcml0", "hunter2")


@contextmanager
def serving() -> Iterator[Bucket]:
    with Bucket() as bucket:
        thread = threading.Thread(target=bucket.serve_forever)
        thread.start()
        yield bucket
        bucket.shutdown()
        thread.join()


@pytest.fixture
def inner(tmp_path: Path) -> Iterator[Bucket]:
    """Another host, which has the file."""
    cf.write(pa.table({"a": [1, 2]}), tmp_path / "h.orc")
    with serving() as bucket:
        bucket.objects["/x.orc"] = (tmp_path / "h.orc").read_bytes()
        bucket.headers = []  # type: ignore[attr-defined]

        def note(request: Handler) -> bool:
            bucket.headers.append(dict(request.headers))  # type: ignore[attr-defined]
            return False

        bucket.answer = note
        yield bucket


@pytest.fixture
def outer(inner: Bucket) -> Iterator[Bucket]:
    """The store, which redirects to the other host."""
    with serving() as bucket:

        def redirect(request: Handler) -> bool:
            where = f"http://localhost:{inner.server_port}/x.orc"
            request.reply(302, b"", {"Location": where})
            return True

        bucket.answer = redirect
        yield bucket


def stores(port: int) -> dict[str, tuple[str, dict[str, str]]]:
    """A URL and options with credentials, for each kind of store at the port."""
    endpoint = f"http://127.0.0.1:{port}"
    keys = {"access_key_id": "AKIAX", "secret_access_key": "SEKRIT", "session_token": "TOKENTOKEN"}
    return {
        "s3": ("s3://b/x.orc", {"endpoint": endpoint, **keys, "region": "us-east-1"}),
        "gs": ("gs://b/x.orc", {"base_url": endpoint, "bearer_token": "TOKENTOKEN"}),
        "azure": (
            "az://box/x.orc",
            {"account_name": "AKIAX", "account_key": "c2Vrcml0", "endpoint": endpoint, "allow_http": "true"},
        ),
        "http": (f"http://user:hunter2@127.0.0.1:{port}/x.orc?sig=TOKENTOKEN", {}),
    }


@pytest.mark.parametrize("kind", ["s3", "gs", "azure", "http"])
def test_another_host_is_not_asked(inner: Bucket, outer: Bucket, kind: str) -> None:
    url, options = stores(outer.server_port)[kind]
    for call in (cf.open, cf.detect, lambda url, **how: cf.scan(url, **how).count()):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - its class depends on the call
            call(url, storage_options=options)
        text = str(caught.value)
        assert f"redirects to http://localhost:{inner.server_port}," in text, text
        assert "redirect_hosts" in text
        assert not any(secret in text for secret in SECRETS), text
    assert outer.asked
    assert not inner.asked


@pytest.mark.parametrize("kind", ["s3", "gs", "azure", "http"])
@pytest.mark.parametrize("hosts", ["*", "cdn.example, LOCALHOST"])
def test_a_named_host_gets_no_credentials(inner: Bucket, outer: Bucket, kind: str, hosts: str) -> None:
    url, options = stores(outer.server_port)[kind]
    assert cf.open(url, storage_options={**options, "redirect_hosts": hosts}).read().num_rows == 2
    assert inner.asked
    assert any("range" in map(str.lower, headers) for headers in inner.headers)
    for headers in inner.headers:  # type: ignore[attr-defined]
        assert not any(secret in f"{name}: {value}" for name, value in headers.items() for secret in SECRETS)
        names = {name.lower() for name in headers}
        assert names <= {"range", "accept", "host", "user-agent", "if-match"}, names


def test_redirects_on_the_host_are_followed(inner: Bucket) -> None:
    def redirect(request: Handler) -> bool:
        if request.path.startswith("/old"):
            request.reply(307, b"", {"Location": "/x.orc?moved=1"})
            return True
        return False

    inner.answer = redirect
    assert cf.open(f"http://127.0.0.1:{inner.server_port}/old.orc").read().num_rows == 2


def test_redirects_end(inner: Bucket) -> None:
    def circle(request: Handler) -> bool:
        request.reply(302, b"", {"Location": request.path})
        return True

    inner.answer = circle
    with pytest.raises(OSError, match="redirects more than 10 times"):
        cf.open(f"http://127.0.0.1:{inner.server_port}/x.orc")


def test_writes_are_not_redirected(inner: Bucket, outer: Bucket) -> None:
    def redirect(request: Handler) -> bool:
        request.rfile.read(int(request.headers.get("Content-Length") or 0))
        request.reply(307, b"", {"Location": f"http://localhost:{inner.server_port}/x"})
        return True

    outer.answer = redirect
    _, options = stores(outer.server_port)["s3"]
    calls: list[Any] = [
        lambda store: store.put("y", b"x"),
        lambda store: store.delete("y"),
        lambda store: list(store.list()),
    ]
    for call in calls:
        with pytest.raises(OSError, match="redirects to"):
            call(open_store("s3://b/t", options))
    assert not inner.asked
