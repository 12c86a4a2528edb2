"""Every function on real servers: it works as on a local directory, or the error gives the reason."""

from __future__ import annotations

import http.server
import os
import pickle
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from servers import S3, Hdfs
from truth import same

import coldframe as cf
from coldframe.pipeline import migrate
from coldframe.pipeline.scheduling import InProcess
from coldframe.sources import open_store

ROWS = 200_000
NUMBERS = random.Random(7)
TABLE = pa.table(
    {
        "n": range(ROWS),
        "s": [f"text {i % 1000}" for i in range(ROWS)],
        "r": [NUMBERS.random() for _ in range(ROWS)],  # incompressible
    }
)
SMALL = pa.table({"n": pa.array(range(10), pa.int64())})


class Place:
    """A destination and its options."""

    def __init__(self, url: str, options: dict[str, str], server: Any) -> None:
        self.url = url
        self.options = options
        self.server = server


@pytest.fixture(params=["local", "s3", "hdfs", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    name = request.node.originalname
    if request.param == "local":
        return Place(str(tmp_path / name), {}, None)
    if request.param == "memory":
        return Place(f"memory://{tmp_path.name}/{name}", {}, None)
    server = request.getfixturevalue(request.param)
    base = "s3://data" if request.param == "s3" else server.url
    return Place(f"{base}/{tmp_path.name}/{name}", server.options, server)


def make(place: Place, name: str, table: pa.Table = SMALL, format: str = "orc") -> str:
    """Writes a file to a destination."""
    url = f"{place.url}/{name}"
    if "://" not in url:
        Path(url).parent.mkdir(parents=True, exist_ok=True)
    cf.write(table, url, format=format, storage_options=place.options)
    return url


def test_written_files_are_read(place: Place) -> None:
    url = make(place, "a.orc", TABLE)
    assert cf.detect(url, storage_options=place.options) == "orc"
    file = cf.open(url, storage_options=place.options)
    assert same(file.read(), TABLE)
    assert same(file.read(["n"], filter="n < 5"), TABLE.select(["n"]).slice(0, 5))
    # Overwriting leaves no temporary file.
    make(place, "a.orc", SMALL)
    assert cf.open(url, storage_options=place.options).read().num_rows == 10
    store = open_store(place.url, place.options)
    assert [entry.path for page in store.list() for entry in page] == ["a.orc"]


def test_a_tree_is_scanned_by_its_names(place: Place) -> None:
    """Hive escapes characters in names: `%2F` in the name is a slash in the value."""
    for region in ("asia%2Fpacific", "eu", "__HIVE_DEFAULT_PARTITION__"):
        make(place, f"t/region={region}/000000_0.orc")
    make(place, "t/_staging/x.orc")
    make(place, "t/.hidden.orc")
    dataset = cf.scan(f"{place.url}/t", storage_options=place.options)
    assert dataset.count() == 30
    assert set(dataset.to_table()["region"].to_pylist()) == {"asia/pacific", "eu", None}
    assert all(path.startswith(place.url) for path in dataset.files)
    some = cf.scan(f"{place.url}/t/region=[ae]*/*.orc", storage_options=place.options)
    assert some.count() == 20
    deep = cf.scan(f"{place.url}/t/**/*.orc", storage_options=place.options)
    assert deep.count() == 30
    splits = [pickle.loads(pickle.dumps(split)) for split in dataset.splits()]
    assert sum(batch.num_rows for split in splits for batch in split.to_batches()) == 30
    with pytest.raises(cf.NotFoundError, match="nothing"):
        cf.scan(f"{place.url}/nothing", storage_options=place.options)


def test_reading_a_file_that_was_changed_since_it_was_planned_is_an_error(place: Place) -> None:
    url = make(place, "a.orc", TABLE)
    (split,) = cf.open(url, storage_options=place.options).splits()
    dataset = cf.scan(url, storage_options=place.options)
    make(place, "a.orc", SMALL)
    for read in (lambda: split.to_batches().read_all(), dataset.to_table):
        with pytest.raises(OSError, match=r"a\.orc.*was changed"):
            read()


def test_one_of_many_creators_wins(place: Place) -> None:
    if place.url.startswith("memory"):
        pytest.skip("fsspec has no such promise")
    store = open_store(place.url, place.options)
    store.check_exclusive("probe")

    def attempt(number: int) -> bool:
        try:
            store.put("lock", str(number).encode())
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(attempt, range(16)))
    assert won.count(True) == 1
    assert store.read("lock") == str(won.index(True)).encode()

    store.put("staged", b"s")
    with pytest.raises(FileExistsError):
        store.publish("staged", "lock")
    store.publish("staged", "done/by/name")
    assert store.read("done/by/name") == b"s"
    assert store.stat("staged") is None
    entry = store.put("lock", b"again", mode="over")
    assert entry.size == 5
    if place.url.startswith("s3"):
        with pytest.raises(OSError, match="changed"):
            store.put("lock", b"x", mode="over", etag='"nonsense"')
        store.put("lock", b"mine", mode="over", etag=entry.etag)
        assert store.read("lock", 1, 3) == b"in"
    store.delete("lock")
    with pytest.raises(cf.NotFoundError):
        store.delete("lock") if not place.url.startswith("s3") else store.read("lock")
    store.delete("done", recursive=True)
    assert [entry.path for page in store.list(recursive=True) for entry in page] == []


def test_large_file_is_uploaded_in_parts(place: Place) -> None:
    """40 MB: several parts of an upload, several blocks of HDFS."""
    store = open_store(place.url, place.options)
    data = os.urandom(1 << 20) * 40
    upload = store.create("large.bin", mode="new")
    for at in range(0, len(data), 3 << 20):
        upload.write(data[at : at + (3 << 20)])
    assert upload.finish().size == len(data)
    assert store.read("large.bin") == data
    assert store.read("large.bin", 33_000_000, 33_000_010) == data[33_000_000:33_000_010]
    dropped = store.create("dropped.bin", mode="new")
    dropped.write(data[: 20 << 20])
    dropped.abandon()
    assert [entry.path for page in store.list() for entry in page] == ["large.bin"]


def test_the_command_line_reads_from_a_store(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    from coldframe.cli import main

    if place.url.startswith("memory"):
        pytest.skip("nobody else has this process's memory")
    make(place, "t/k=1/a.orc")
    options = [f"--storage-option={name}={value}" for name, value in place.options.items()]
    assert main(["count", f"{place.url}/t", *options]) == 0
    assert capfd.readouterr().out.strip() == "10"
    assert main(["convert", f"{place.url}/t/k=1/a.orc", f"{place.url}/b.parquet", *options]) == 0
    assert main(["convert", f"{place.url}/t/k=1/a.orc", f"{place.url}/b.rc", *options]) == 0
    assert main(["count", f"{place.url}/b.rc", *options]) == 0
    store = open_store(place.url, place.options)
    import io

    import pyarrow.parquet as pq

    assert pq.read_table(io.BytesIO(store.read("b.parquet"))).num_rows == 10


def test_forked_process_opens_new_connections(place: Place) -> None:
    if not hasattr(os, "fork") or place.url.startswith("memory"):
        pytest.skip("no fork, or nothing to share")
    url = make(place, "a.orc", TABLE)
    program = (
        "import os, sys, coldframe as cf\n"
        f"file = cf.open({url!r}, storage_options={place.options!r})\n"
        "assert file.read(['n']).num_rows == 200000\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    rows = file.read(['s']).num_rows\n"
        "    os._exit(0 if rows == 200000 else 3)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


class TestS3:
    """Errors of S3."""

    def test_options_have_several_names(self, s3: S3) -> None:
        open_store("s3://data/names", s3.options).put("x", b"1", mode="over")
        for names in (
            {"aws_access_key_id": s3.KEY, "aws_secret_access_key": s3.SECRET, "aws_endpoint": s3.endpoint},
            {"access_key": s3.KEY, "secret_key": s3.SECRET, "endpoint_override": s3.endpoint},
            {"key": s3.KEY, "secret": s3.SECRET, "client_kwargs": {"endpoint_url": s3.endpoint}},
            {
                "fs.s3a.access.key": s3.KEY,
                "fs.s3a.secret.key": s3.SECRET,
                "fs.s3a.endpoint": f"127.0.0.1:{s3.port}",
                "fs.s3a.connection.ssl.enabled": "false",
                "fs.s3a.path.style.access": "true",
            },
        ):
            for scheme in ("s3", "s3a", "s3n"):
                assert open_store(f"{scheme}://data/names", names).read("x") == b"1"

    def test_the_environment_gives_options(
        self, s3: S3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        open_store("s3://data/env", s3.options).put("x", b"1", mode="over")
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
        with monkeypatch.context() as given:
            given.setenv("AWS_ACCESS_KEY_ID", s3.KEY)
            given.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
            assert open_store("s3://data/env").read("x") == b"1"
        credentials = tmp_path / "credentials"
        credentials.write_text(f"[cold]\naws_access_key_id = {s3.KEY}\naws_secret_access_key = {s3.SECRET}\n")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
        monkeypatch.setenv("AWS_PROFILE", "cold")
        assert open_store("s3://data/env").read("x") == b"1"
        with pytest.raises(ValueError, match="nobody"):
            open_store("s3://data/env", {"profile": "nobody"})

    def test_wrong_credentials_are_reported(self, s3: S3) -> None:
        wrong = {**s3.options, "secret_access_key": "not-the-secret"}
        for ask in (
            lambda: cf.open("s3://data/x.orc", storage_options=wrong),
            lambda: cf.scan("s3://data/x", storage_options=wrong),
            lambda: cf.write(SMALL, "s3://data/x.orc", format="orc", storage_options=wrong),
        ):
            with pytest.raises(PermissionError, match=r"s3://data/x.*: the store refuses this") as caught:
                ask()
            assert "not-the-secret" not in str(caught.value)

    def test_a_missing_bucket_is_reported(self, s3: S3) -> None:
        with pytest.raises(cf.NotFoundError, match="s3://nobodys/x"):
            cf.open("s3://nobodys/x", storage_options=s3.options)
        with pytest.raises((cf.NotFoundError, OSError), match="s3://nobodys/x"):
            cf.write(SMALL, "s3://nobodys/x.orc", format="orc", storage_options=s3.options)

    def test_misspelt_options_are_refused(self, s3: S3) -> None:
        with pytest.raises(ValueError, match="acess_key_id"):
            cf.open("s3://data/x", storage_options={**s3.options, "acess_key_id": "x"})

    def test_secrets_are_not_shown(self, s3: S3) -> None:
        url = "s3://data/secret.orc"
        cf.write(SMALL, url, format="orc", storage_options=s3.options)
        file = cf.open(url, storage_options=s3.options)
        texts = [repr(file), repr(file.splits()), repr(cf.scan(url, storage_options=s3.options))]
        texts += [repr(file._arguments), repr(open_store(url, s3.options))]
        assert all(s3.SECRET not in text for text in texts)

    def test_folder_markers_are_no_files(self, s3: S3) -> None:
        store = open_store("s3://data/marked", s3.options)
        store.put("t/k=1/a.orc", b"x")
        store.put("t/k=1_$folder$", b"")
        store.put("empty", b"")
        assert sorted(entry.path for page in store.list(recursive=True) for entry in page) == [
            "empty",
            "t/k=1/a.orc",
        ]
        assert sorted(entry.path for page in store.list("t") for entry in page) == ["t/k=1"]

    def test_a_server_that_dies_in_the_middle_is_reported_in_time(self, tmp_path: Path) -> None:
        server = S3(tmp_path)
        options = {**server.options, "max_retries": "1", "retry_timeout": "2", "connect_timeout": "1"}
        cf.write(TABLE, "s3://data/a.orc", format="orc", storage_options=options)
        file = cf.open("s3://data/a.orc", storage_options=options)
        server.stop()
        started = time.monotonic()
        with pytest.raises(OSError, match=r"s3://data/a\.orc"):
            file.read()
        assert time.monotonic() - started < 20


class TestHdfs:
    """Settings and failures of HDFS."""

    def test_settings_come_from_the_environment(self, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HADOOP_CONF_DIR", hdfs.conf)
        store = open_store("hdfs:///settings")
        store.put("x", b"1")
        assert open_store(hdfs.url + "/settings").read("x") == b"1"
        assert store.url == "hdfs:///settings"

    def test_a_missing_permission_is_reported(self, hdfs: Hdfs) -> None:
        store = open_store(hdfs.url + "/closed", hdfs.options)
        store.put("x.orc", b"1")
        hdfs.send("forbid /closed")
        other = {**hdfs.options, "user": "stranger"}
        with pytest.raises(PermissionError, match=r"closed/x\.orc.*AccessControlException|denied"):
            cf.open(f"{hdfs.url}/closed/x.orc", storage_options=other)
        for verb in (cf.scan, cf.detect):
            with pytest.raises(PermissionError, match=f"{hdfs.url}/closed"):
                verb(f"{hdfs.url}/closed", storage_options=other)

    @pytest.mark.parametrize("size", [1000, 1 << 20, (1 << 20) + 1000, 3 << 20])
    def test_a_file_that_is_being_written_is_refused(self, hdfs: Hdfs, tmp_path: Path, size: int) -> None:
        """Listings omit its last block: a read would silently lose it."""
        (tmp_path / "bytes").write_bytes(bytes(range(256)) * (size // 256 + 1))
        hdfs.send(f"write /open/{size} {tmp_path}/bytes {size}")
        store = open_store(f"{hdfs.url}/open", hdfs.options)
        with pytest.raises(cf.UnsupportedError, match=rf"{hdfs.url}/open/{size}.*is being written"):
            store.open(str(size))
        visible = open_store(
            f"{hdfs.url}/open", {**hdfs.options, "webhdfs": f"http://127.0.0.1:9,{hdfs.web}"}
        )
        (listed,) = [entry for page in visible.list() for entry in page if entry.path == str(size)]
        for known in (None, listed.identity):
            content = (tmp_path / "bytes").read_bytes()[:size]
            file = visible.open(str(size), known)
            assert file.identity[0] == size
            assert file.read(0, size) == content
            assert file.read(size - 700, size - 400) == content[size - 700 : size - 400]
        # The same in another process, which got the listed identity.
        assert visible.open(str(size), file.identity).read(0, 10) == content[:10]
        with pytest.raises(OSError, match="was changed"):
            visible.open(str(size), (size + 1, *file.identity[1:]))
        hdfs.send("close")
        assert file.read(size - 700, size - 400) == content[size - 700 : size - 400]
        assert store.open(str(size)).read(0, size) == content

    def test_a_table_that_is_being_written_is_refused(self, hdfs: Hdfs, tmp_path: Path) -> None:
        """Flushed rows are read on request; a migration refuses the table."""
        cf.write(TABLE, tmp_path / "x.rc", format="rcfile")
        hdfs.send(f"write /growing/t/x.rc {tmp_path}/x.rc {(tmp_path / 'x.rc').stat().st_size}")
        url = f"{hdfs.url}/growing"
        with pytest.raises(cf.UnsupportedError, match="being written"):
            cf.scan(f"{url}/t", storage_options=hdfs.options).count()
        options = {**hdfs.options, "webhdfs": hdfs.web}
        assert cf.scan(f"{url}/t", storage_options=options).count() == TABLE.num_rows
        assert cf.open(f"{url}/t/x.rc", storage_options=options).count() == TABLE.num_rows
        stranger = {**options, "user": "stranger"}
        hdfs.send("forbid /growing")
        with pytest.raises(PermissionError, match="growing"):
            cf.open(f"{url}/t/x.rc", storage_options=stranger)
        with pytest.raises(ValueError, match="webhdfs"):
            migrate(InProcess(), url, tmp_path / "to", source_storage_options=options)
        hdfs.send("close")

    def test_a_log_of_hbase_that_was_not_closed_is_read(self, hdfs: Hdfs) -> None:
        """A listing omits its last block, so that it often looks empty."""
        root = Path(__file__).parents[1] / "data/hbase/files/orders"
        (log,) = [entry for entry in root.glob("WALs/*/*") if entry.is_file()]
        store = open_store(f"{hdfs.url}/hbase", hdfs.options)
        for path in (entry for entry in root.rglob("*") if entry.is_file() and entry != log):
            store.put(str(path.relative_to(root)), path.read_bytes())
        hdfs.send(f"write /hbase/{log.relative_to(root)} {log} {log.stat().st_size}")
        with pytest.raises(cf.UnsupportedError, match="being written"):
            cf.scan(f"{hdfs.url}/hbase", storage_options=hdfs.options).to_table()
        options = {**hdfs.options, "webhdfs": hdfs.web}
        rows = cf.scan(f"{hdfs.url}/hbase", storage_options=options).to_table()
        assert rows.num_rows > cf.scan(root, wal=False).count()
        assert rows.equals(cf.scan(root).to_table())
        hdfs.send("close")

    def test_a_file_of_the_same_length_and_another_time_is_another_file(self, hdfs: Hdfs) -> None:
        store = open_store(f"{hdfs.url}/replaced", hdfs.options)
        store.put("x", b"a" * 300_000)
        (listed,) = [entry for page in store.list() for entry in page]
        assert store.open("x", listed.identity).identity == listed.identity
        time.sleep(0.01)
        store.put("x", b"b" * 300_000, mode="over")
        with pytest.raises(OSError, match="was changed"):
            store.open("x", listed.identity)

    def test_a_pattern_may_be_in_the_first_folder(self, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HADOOP_CONF_DIR", hdfs.conf)
        cf.write(TABLE, f"{hdfs.url}/pattern1/x.orc", format="orc", storage_options=hdfs.options)
        assert cf.scan("hdfs:///patt*/*.orc").count() == TABLE.num_rows
        assert cf.scan(f"{hdfs.url}/patt*/*.orc", storage_options=hdfs.options).count() == TABLE.num_rows

    def test_loser_of_a_race_deletes_nothing(self, hdfs: Hdfs) -> None:
        place: Any = {"dest": f"{hdfs.url}/race", "storage_options": hdfs.options}
        rows = pa.table({"n": range(4), "k": [1, 1, 2, 2]})

        def batches() -> Iterator[Any]:
            yield from rows.to_batches()
            cf.write(rows, **place, format="orc", partitioning=["k"])

        late = pa.RecordBatchReader.from_batches(rows.schema, batches())
        with pytest.raises(FileExistsError):
            cf.write(late, **place, format="orc", partitioning=["k"])
        assert cf.scan(place["dest"], storage_options=hdfs.options).count() == 4
        above = open_store(f"{hdfs.url}/", hdfs.options)
        assert not [entry.path for page in above.list() for entry in page if ".coldframe-" in entry.path]

    def test_a_datanode_that_stops_in_the_middle_is_replaced(self, hdfs: Hdfs) -> None:
        place = Place(f"{hdfs.url}/stopping", hdfs.options, hdfs)
        url = make(place, "a.orc", TABLE)
        file = cf.open(url, storage_options=hdfs.options)
        reader = file.to_batches(batch_size=1000)
        first = reader.read_next_batch()
        hdfs.send("stop")
        try:
            assert first.num_rows + reader.read_all().num_rows == ROWS
            assert same(file.read(), TABLE)
            hdfs.send("stop")
            with pytest.raises(OSError, match=r"a\.orc"):
                cf.open(url, storage_options={**hdfs.options, "timeout": "10"}).read()
        finally:
            hdfs.send("start")
            hdfs.send("start")
        assert same(file.read(), TABLE)

    @pytest.mark.parametrize("megabytes", [0.1, 3.5])
    def test_a_write_continues_after_a_datanode_dies(self, hdfs: Hdfs, megabytes: float) -> None:
        """The NameNode offers the dead node for new blocks for some minutes; a block is 1 MiB here."""
        store = open_store(f"{hdfs.url}/beside-{megabytes}", hdfs.options)
        content = random.Random(21).randbytes(int(megabytes * (1 << 20)))
        begun = store.create("begun")
        begun.write(content)
        hdfs.send("stop")
        try:
            begun.write(content)
            begun.finish()
            store.put("x", content)
            assert [store.read(name) for name in ("begun", "x")] == [2 * content, content]
        finally:
            hdfs.send("start")
        assert sorted(entry.path for page in store.list() for entry in page) == ["begun", "x"]

    def test_a_missing_server_is_reported_in_time(self) -> None:
        started = time.monotonic()
        with pytest.raises(OSError, match=r"hdfs://127\.0\.0\.1:9/x"):
            cf.open("hdfs://127.0.0.1:9/x", storage_options={"timeout": "10"})
        assert time.monotonic() - started < 30

    def test_the_active_namenode_of_two_is_used(self, tmp_path: Path) -> None:
        cluster = Hdfs(tmp_path, "ha")
        try:
            place = Place(f"{cluster.url}/ha", cluster.options, cluster)
            url = make(place, "a.orc", TABLE)
            assert url.startswith("hdfs://cold/")
            file = cf.open(url, storage_options=cluster.options)
            cluster.send("failover")
            assert same(file.read(), TABLE)
            assert cf.scan(f"{cluster.url}/ha", storage_options=cluster.options).count() == ROWS
        finally:
            cluster.stop()


class Silent(http.server.BaseHTTPRequestHandler):
    """Accepts requests and never answers."""

    def do_GET(self) -> None:
        time.sleep(30)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


def test_silent_server_times_out() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/a.orc"
        started = time.monotonic()
        with pytest.raises(TimeoutError, match=r"http://127.*a\.orc"):
            cf.open(url, storage_options={"timeout": "1", "max_retries": "1"})
        assert time.monotonic() - started < 10
        server.shutdown()
