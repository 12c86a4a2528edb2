"""The law of stores: with any faults of network and servers, and with files replaced between two requests, a
read gives the rows of one version or an error, and a write is atomic.
"""

from __future__ import annotations

import io
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from buckets import Bucket, Handler

import coldframe as cf

ROUNDS = 60
ERRORS = (OSError, cf.ColdframeError)
CONTENTS = [
    pa.table({"n": pa.array([i * 2 + content for i in range(30_000)], pa.int64())}) for content in range(4)
]
PARTED = [pa.table({"n": range(k * 100, k * 100 + 40), "p": [i // 10 for i in range(40)]}) for k in range(3)]


class Faults:
    """Answers some requests badly, and may replace files between two requests."""

    def __init__(self, seed: int, bucket: Bucket, contents: list[bytes], key: str | None) -> None:
        self.random = random.Random(seed)
        self.share = self.random.choice([0.05, 0.2, 0.5])
        self.bucket, self.contents, self.key = bucket, contents, key
        self.lock = threading.Lock()
        self.served = 0

    def __call__(self, request: Handler) -> bool:
        with self.lock:
            is_faulty = self.random.random() < self.share
            fault = self.random.choice(["cut", "half", "delay", "503", "500", "replace", "after"])
            if fault == "replace" and self.key is not None and is_faulty:
                self.bucket.objects[self.key] = self.random.choice(self.contents)
            self.served += is_faulty
        if not is_faulty or fault == "replace":
            return False
        if fault == "delay":
            time.sleep(0.02)
            return False
        request.close_connection = True
        if fault in ("503", "500"):
            request.fail(int(fault), "SlowDown", "Please reduce your request rate.")
        elif fault == "after":
            self.answered(request)  # carried out, but the answer is lost
        elif fault == "half":
            whole = self.answered(request)
            request.wfile.write(whole[: len(whole) * 2 // 3])
        return True

    def answered(self, request: Handler) -> bytes:
        """Carries out a request. Returns the answer without sending it."""
        out, request.wfile = request.wfile, io.BytesIO()  # type: ignore[assignment]
        try:
            request.answered()
            whole: bytes = request.wfile.getvalue()  # type: ignore[attr-defined]
        finally:
            request.wfile = out
        return whole


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with Bucket() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def quick(bucket: Bucket) -> dict[str, str]:
    return {**bucket.options, "max_retries": "2", "retry_timeout": "1", "timeout": "1"}


@pytest.mark.parametrize("kind", ["s3", "http with etags", "http without"])
def test_a_read_gives_one_content_or_an_error(bucket: Bucket, tmp_path: Path, kind: str) -> None:
    contents = []
    for at, table in enumerate(CONTENTS):
        cf.write(table, tmp_path / f"{at}.orc", format="orc", codec="none", stripe_rows=5_000)
        contents.append((tmp_path / f"{at}.orc").read_bytes())
    assert len({len(content) for content in contents}) == 1, (
        "the same length, so that only times and etags differ"
    )
    bucket.etags = kind != "http without"
    bucket.dated = True
    whole = faults = 0
    for seed in range(ROUNDS):
        bucket.answer = lambda request: False
        bucket.objects["t/a.orc"] = contents[0]
        bucket.answer = served = Faults(seed, bucket, contents, "t/a.orc")
        try:
            if kind == "s3":
                rows = cf.scan("s3://data/t", storage_options=quick(bucket)).to_table()
            else:
                options = {"max_retries": "2", "retry_timeout": "1", "timeout": "1"}
                url = f"http://127.0.0.1:{bucket.server_port}/data/t/a.orc"
                rows = cf.read_table(url, storage_options=options)
        except ERRORS as error:
            assert not isinstance(error, cf.CorruptFileError), f"{seed}: {error}"
            continue
        finally:
            faults += served.served
        assert any(rows.equals(content) for content in CONTENTS), f"seed {seed}: a mixture"
        whole += 1
    # The number of complete reads depends on retries and on the machine: it is not zero.
    assert whole > 5
    assert faults > ROUNDS // 2


def test_a_write_ends_whole_or_not_at_all(bucket: Bucket) -> None:
    """Several writers to one folder, with faults; the next write completes an interrupted write."""
    whole = 0
    for seed in range(ROUNDS // 4):
        dest = f"s3://data/w{seed}"
        bucket.answer = Faults(seed, bucket, [], None)
        ended: list[int] = []

        def write(number: int, dest: str = dest, ended: list[int] = ended) -> None:
            try:
                cf.write(
                    PARTED[number], dest, format="orc", partitioning=["p"], storage_options=quick(bucket)
                )
                ended.append(number)
            except ERRORS:
                pass

        threads = [threading.Thread(target=write, args=(number,)) for number in range(len(PARTED))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bucket.answer = lambda request: False
        assert len(ended) <= 1, f"seed {seed}"
        if not ended:
            settle(bucket, dest)
        rows = sorted(rows_of(bucket, dest))
        expected = [sorted(table["n"].to_pylist()) for table in PARTED]
        assert rows in ([expected[ended[0]]] if ended else [[], *expected]), (
            f"seed {seed}: a partial or mixed write"
        )
        whole += bool(ended)
    assert whole


def settle(bucket: Bucket, dest: str) -> None:
    """The next write completes a failed write that was recorded; any other failed write stays invisible."""
    key = dest.removeprefix("s3://data/") + "/_coldframe-written.json"
    if key in bucket.objects:
        with pytest.raises(FileExistsError):
            cf.write(PARTED[0], dest, format="orc", partitioning=["p"], storage_options=bucket.options)


def rows_of(bucket: Bucket, dest: str) -> list[Any]:
    try:
        rows: list[Any] = cf.scan(dest, storage_options=bucket.options).to_table()["n"].to_pylist()
    except cf.NotFoundError:
        return []
    return rows
