"""Passwords and signatures of URLs are in nothing that people see: a small web server has the file."""

from __future__ import annotations

import http.server
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate

import coldframe as cf
from coldframe._coldframe import Store, shown, shown_in
from coldframe.layout.page import page

SECRETS = ("hunter", "SECRETSIG", "ZZTOP", "TOK1", "FRAGMENT")
QUERY = "?sig=SECRETSIG&X-Amz-Signature=ZZTOP&token=TOK1#FRAGMENT"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    content = b""

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        body, status, headers = self.content, 200, {"ETag": '"x"'}
        if "missing" in self.path:
            body, status = b"no", 404
        elif wanted := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")):
            start = int(wanted[1]) if wanted[1] else max(0, len(body) - int(wanted[2]))
            last = min(len(body), int(wanted[2]) + 1) if wanted[1] and wanted[2] else len(body)
            headers["Content-Range"] = f"bytes {start}-{last - 1}/{len(body)}"
            body, status = body[start:last], 206
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    cf.write(pa.table({"a": [1, 2]}), tmp_path / "h.orc")
    content = (tmp_path / "h.orc").read_bytes()
    handler = type("Serving", (Handler,), {"content": content})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def hides(text: object) -> bool:
    return not any(secret in str(text) for secret in SECRETS)


@pytest.mark.parametrize("scheme", ["http", "HTTP"])
def test_nothing_that_python_shows(host: str, scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "coldframe")
    url = f"{scheme}://user:hunter2@{host}/x.orc{QUERY}"
    file, table = cf.open(url), cf.scan(url)
    assert file.read().num_rows == table.count() == 2
    for what in (file, table, file.splits()[0], page(file), page(file, verify=True), page(table)):
        assert hides(what if isinstance(what, str) else repr(what))
    assert hides(file._repr_html_())
    assert hides(table._repr_html_())
    file.close()
    with pytest.raises(ValueError, match="closed") as closed:
        file.read()
    assert hides(closed.value)
    assert hides(repr(file))
    assert hides(caplog.text)


@pytest.mark.parametrize("scheme", ["http", "HTTP"])
def test_no_error(host: str, scheme: str) -> None:
    url = f"{scheme}://user:hunter2@{host}/missing.orc{QUERY}"
    calls: list[Any] = [cf.open, cf.detect, lambda url: cf.scan(url).count(), cf.read_table]
    calls += [lambda url: cf.write(pa.table({"a": [1]}), url), lambda url: cf.open(url, format="rcfile")]
    calls += [lambda url: cf.write(pa.table({"a": [1]}), url, format="orc"), cf.iceberg_table]
    for call in calls:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - of any class
            call(url)
        assert hides(caught.value), caught.value
        assert hides(getattr(caught.value, "path", ""))


COMMANDS = [
    "verify",
    "detect",
    "splits",
    "tables",
    "schema",
    "meta",
    "stats",
    "head",
    "count",
    "sizes",
    "index",
]


@pytest.mark.parametrize("name", ["x.orc", "missing.orc"])
def test_no_command(host: str, name: str) -> None:
    for given in (f"http://user:hunter2@{host}/{name}{QUERY}", f"HTTP://user:hunter2@{host}/{name}?TOK1"):
        for command in (*COMMANDS, "inspect", "dictionary"):
            for more in ([], ["--json"]):
                run = [sys.executable, "-m", "coldframe", "-v", command, given, *more]
                done = subprocess.run(run, capture_output=True, text=True, check=False)
                assert hides(done.stdout + done.stderr), (command, done.stdout, done.stderr)


def test_two_urls_keep_both_results(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    from coldframe.cli import main

    assert (
        main(["verify", "--json", f"http://{host}/x.orc?sig=SECRETSIG", f"http://{host}/x.orc?sig=TOK1"]) == 0
    )
    assert list(json.loads(capsys.readouterr().out)) == [f"http://{host}/x.orc", f"http://{host}/x.orc (2)"]


def test_a_migration_refuses_them(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    estate.orc("t/a", {"a": [1]})
    for source, target in (
        ("sftp://user:hunter2@host/warehouse", estate.target),
        (estate.source, "s3://key:hunter2@bucket/lake"),
        (estate.source, "abfss://c@account/lake?sig=SECRETSIG"),
    ):
        with pytest.raises(ValueError, match="storage options") as caught:
            cf.pipeline.migrate(cf.pipeline.InProcess(), source, target)  # type: ignore[attr-defined]
        assert hides(caught.value)


def test_the_one_function() -> None:
    assert shown("https://u:hunter2@h/x?sig=SECRETSIG") == "https://h/x"
    assert shown("/data/a?b=c") == "/data/a?b=c"
    assert shown("/data/\udcff") == "/data/\udcff"
    assert hides(shown_in("failed: GET https://u:hunter2@h/x?sig=SECRETSIG and s3://k:hunter/3@b/x"))
    assert hides(repr(Store.of(object(), "sftp://u:hunter2@h/x", "x")))
