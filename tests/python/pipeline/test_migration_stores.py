"""Migrations from and to real servers keep the guarantees of local directories."""

from __future__ import annotations

import functools
import io
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from servers import S3

import coldframe as cf
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage
from coldframe.pipeline import audit, delete, migrate
from coldframe.pipeline.adopt.tables import present_in
from coldframe.pipeline.records import dumps, loads
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.scheduling import InProcess
from coldframe.pipeline.sink.destination import StoreDestination, open_destination
from coldframe.pipeline.sink.iceberg_catalog import catalog_of
from coldframe.pipeline.source import store_listing
from coldframe.pipeline.source.registered import collect
from coldframe.pipeline.source.removal import Removal
from coldframe.pipeline.source.selection import Selection
from coldframe.pipeline.source.store_listing import LookTask, take_listed
from coldframe.sources import open_store


class Place:
    """A root, with the options of its store."""

    def __init__(self, url: str, options: dict[str, str] | None) -> None:
        self.url = url
        self.options = options
        self.store = open_store(url, options)

    def orc(self, name: str, rows: dict[str, Any]) -> None:
        url = f"{self.url}/{name}"
        if "://" not in url:
            Path(url).parent.mkdir(parents=True, exist_ok=True)
        cf.write(pa.table(rows), url, format="orc", storage_options=self.options)

    def names(self, folder: str = "") -> list[str]:
        """The files below a folder, without the migration's own files."""
        paths = [file.path for some in self.store.list(folder, recursive=True) for file in some]
        return sorted(name for name in paths if "_coldframe/" not in name)

    def values(self, table: str = "t", column: str = "a") -> list[Any]:
        """The sorted values of a table's Parquet files, without hidden files."""
        cells: list[Any] = []
        for name in self.names(table):
            if name.endswith(".parquet"):
                cells += pq.read_table(io.BytesIO(self.store.read(name)))[column].to_pylist()
        return sorted(cells)


WAYS = ["local-s3", "s3-local", "hdfs-hdfs", "hdfs-s3"]


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], tuple[Place, Place]]:
    def place(kind: str, end: str) -> Place:
        name = f"{tmp_path.name}/{end}"
        if kind == "local":
            (tmp_path / end).mkdir()
            return Place(str(tmp_path / end), None)
        server = request.getfixturevalue(kind)
        return Place(f"{'s3://data' if kind == 's3' else server.url}/{name}", server.options)

    def both(way: str) -> tuple[Place, Place]:
        source, target = way.split("-")
        return place(source, "src"), place(target, "dst")

    return both


def run(source: Place, target: Place, **options: Any) -> Report:
    # Sources that an earlier run listed as safe to delete change here.
    options.setdefault("archived_rows", "drop")
    return migrate(
        InProcess(),
        source.url,
        target.url,
        source_storage_options=source.options,
        target_storage_options=target.options,
        **options,
    )


def fill(source: Place) -> list[int]:
    for number in range(3):
        source.orc(
            f"t/p=a%2F{number}/000000_0", {"a": range(number * 100, number * 100 + 100), "s": ["x"] * 100}
        )
    source.orc("_staging/t/x", {"a": [1]})
    source.orc("t/p=a%2F0/.hidden", {"a": [1]})
    return list(range(300))


@pytest.mark.parametrize("way", WAYS)
def test_rows_arrive_once(places: Callable[[str], tuple[Place, Place]], way: str) -> None:
    source, target = places(way)
    rows = fill(source)
    before = source.names()
    report = run(source, target)
    assert report.exit_code == 0, report.failures
    assert report.verified
    assert target.values() == rows
    assert {name.split("/")[1] for name in target.names("t")} == {f"p=a%2F{number}" for number in range(3)}
    assert source.names() == before
    # No temporary file is left.
    left = [file.path for some in target.store.list("_coldframe", recursive=True) for file in some]
    assert not [name for name in left if "staging" in name or ".new" in name or ".coldframe-" in name], left

    files = target.names("t")
    again = run(source, target)
    assert again.exit_code == 0
    assert target.names("t") == files
    assert all(file.earlier for table in again.tables for file in table.files)

    # Changed files are replaced, new files are added.
    source.orc("t/p=a%2F0/000000_0", {"a": [-1], "s": ["y"]})
    source.orc("t/p=b/000000_0", {"a": [7777], "s": ["y"]})
    third = run(source, target)
    assert third.exit_code == 0, third.failures
    assert target.values() == [-1, *rows[100:], 7777]
    result = audit(target.url, deep=True, storage_options=target.options)
    assert (result.exit_code, result.files, result.rows) == (0, 4, 202), result.faults
    listed = safe_list.read(f"{target.url}/_coldframe/safe-to-delete.txt", target.options)
    assert sorted(line.path for line in listed.lines) == sorted(
        f"{source.url}/{name}" for name in source.names("t") if ".hidden" not in name
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("to", ["", "trash", "local"])
def test_sources_are_deleted_or_moved(
    places: Callable[[str], tuple[Place, Place]], way: str, to: str, tmp_path: Path
) -> None:
    source, target = places(way)
    rows = fill(source)
    assert run(source, target, target_file_bytes=0).safe_to_delete == 3
    whole = {name: source.store.read(name) for name in source.names("t")}
    trash = {"": None, "local": str(tmp_path / "local"), "trash": source.url.replace("/src", "/trash")}[to]
    given = {"to": trash, "storage_options": target.options, "source_storage_options": source.options}
    listed = f"{target.url}/_coldframe/safe-to-delete.txt"
    result = delete(listed, **given)
    assert (result.exit_code, len(result.items)) == (0, 3), result.to_json()
    assert [name for name in source.names("t") if ".hidden" not in name] == []
    for item in result.items if trash is not None else ():
        name = item.to.removeprefix(f"{trash}/")
        assert open_store(item.to, source.options if to == "trash" else None).read("") == whole[name]
    assert [item.earlier for item in delete(listed, **given).items] == [True] * 3
    source.orc("t/p=a%2F0/000000_0", {"a": [-1], "s": ["y"]})
    report = run(source, target, on_vanished="remove", archived_rows="ask")
    assert (report.exit_code, target.values()) == (0, sorted([-1, *rows]))


KUDU = Path(__file__).resolve().parents[2] / "data" / "kudu" / "files" / "file_blocks"


@pytest.mark.parametrize("way", ["s3-local", "hdfs-hdfs"])
def test_a_directory_on_a_store_is_deleted_after_a_kill(
    places: Callable[[str], tuple[Place, Place]], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = places(way)
    for path in (path for path in KUDU.rglob("*") if path.is_file()):
        source.store.put(f"kudu/{path.relative_to(KUDU)}", path.read_bytes())
    source.store.put("tables.toml", b'[tables.all]\npath = "kudu"\nwal = false\n')
    assert run(source, target, leave_behind=["unflushed-edits"]).safe_to_delete == 1
    rows = audit(target.url, storage_options=target.options).rows
    given = {"storage_options": target.options, "source_storage_options": source.options}
    listed = f"{target.url}/_coldframe/safe-to-delete.txt"

    class Killed(BaseException):
        pass

    def killed(removal: Removal) -> str:
        # The deepest files go first.
        names = sorted(source.names("kudu"), key=lambda name: -name.count("/"))
        for name in names[: len(names) // 2]:
            source.store.delete(name)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Removal, "run", killed)
        with pytest.raises(Killed):
            delete(listed, **given)
    result = delete(listed, **given)
    assert (result.exit_code, result.items[0].fate) == (0, "deleted")
    assert source.names() == ["tables.toml"]
    assert run(source, target, on_vanished="remove", archived_rows="ask").exit_code == 0
    assert audit(target.url, storage_options=target.options).rows == rows


class Serialising(InProcess):
    """Serialises tasks and outcomes as on the way to executors and back."""

    def __init__(self) -> None:
        self.looked: list[int] = []

    def run(self, works: Iterator[Any]) -> Iterator[Any]:
        for work in works:
            if isinstance(work, LookTask):
                self.looked.append(len(work.files))
            yield loads(dumps(pickle.loads(pickle.dumps(work)).run()))


@pytest.mark.parametrize("way", ["s3-local", "hdfs-hdfs"])
def test_workers_read_the_footers_of_many_files(
    places: Callable[[str], tuple[Place, Place]], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = places(way)
    rows = fill(source)
    source.store.put("t/p=a%2F1/empty", b"")
    source.store.put("t/p=a%2F1/text", b"of no format")
    look = functools.partial(take_listed, source.url, [], Selection(), source.options)
    in_process, scheduler = look(), Serialising()
    monkeypatch.setattr(store_listing, "DRIVER_FILES", 3)
    monkeypatch.setattr(store_listing, "FILES_A_TASK", 2)
    there = look(scheduler=scheduler)
    assert scheduler.looked == [2, 2, 1]
    for kind in ("files", "empty", "unknown"):
        assert list(getattr(there, kind)) == list(getattr(in_process, kind)) != [], kind
    report = migrate(
        scheduler, source.url, target.url, source_storage_options=source.options, exclude=["**/text"]
    )
    assert (report.exit_code, target.values()) == (0, rows), report.failures


class Killed(BaseException):
    """A kill, raised inside the process."""


@pytest.mark.parametrize("way", ["local-s3", "hdfs-hdfs"])
def test_killed_before_and_after_each_operation(
    places: Callable[[str], tuple[Place, Place]], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = places(way)
    left = 0

    def mortal(name: str) -> Any:
        operation = getattr(StoreDestination, name)

        def call(self: StoreDestination, *given: Any) -> Any:
            tick()
            answer = operation(self, *given)
            tick()
            return answer

        return call

    def tick() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    for name in ("create", "write", "publish", "delete", "lock", "sweep", "prune"):
        monkeypatch.setattr(StoreDestination, name, mortal(name))
    kills = 0
    for step in range(2, 40, 3):
        goal = Place(f"{target.url}/{step}", target.options)
        origin = Place(f"{source.url}/{step}", source.options)
        for number in range(3):
            origin.orc(f"t/{number}", {"a": [number]})
        left = 1 << 30
        assert run(origin, goal).exit_code == 0
        origin.orc("t/0", {"a": [100]})
        left = step
        try:
            run(origin, goal)
        except Killed:
            kills += 1
        left = 1 << 30
        assert run(origin, goal).exit_code == 0
        assert goal.values() == [1, 2, 100], step
        names = [file.path for some in goal.store.list("_coldframe", recursive=True) for file in some]
        assert not [name for name in names if "staging" in name or ".new" in name], names
    assert kills >= 8


def test_a_publication_continues_after_a_kill_between_copy_and_deletion(s3: S3, tmp_path: Path) -> None:
    place = Place(f"s3://data/{tmp_path.name}", s3.options)
    destination = StoreDestination(place.url, s3.options)
    destination.write("staged", b"rows")
    destination.write("final", b"rows")
    destination.publish("staged", "final")
    assert place.names() == ["final"]
    destination.write("staged", b"ROWS")
    with pytest.raises(FileExistsError):
        destination.publish("staged", "final")
    assert place.names() == ["final", "staged"]
    with pytest.raises(FileNotFoundError):
        destination.publish("nothing", "other")


def test_the_later_of_two_drivers_continues(s3: S3, tmp_path: Path) -> None:
    from coldframe.pipeline.state.events import KnownTable
    from coldframe.pipeline.state.journal import Journal

    root = f"s3://data/{tmp_path.name}"
    first = Journal(StoreDestination(root, s3.options))
    first.__enter__()
    with Journal(StoreDestination(root, s3.options)) as second:
        second.keep_table(KnownTable("t", "t", "parquet", "us", "t", "orc"))
        with pytest.raises(cf.ColdframeError, match="another driver"):
            first.end()
        second.end()


def test_a_store_that_overwrites_is_refused(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Place(str(tmp_path / "src"), None)
    source.orc("t/0", {"a": [1]})
    with pytest.raises(cf.UnsupportedError, match=r"memory://.*no conditional put"):
        migrate(InProcess(), source.url, f"memory://{tmp_path.name}")
    with pytest.raises(cf.UnsupportedError, match="no conditional put"):
        migrate(InProcess(), source.url, "https://127.0.0.1:1/x")


def test_roots_that_contain_each_other_are_refused() -> None:
    for source, target in (
        ("s3://b/x", "s3a://b/x/y"),
        ("s3://b/x/", "s3n://b/x"),
        ("hdfs://n/a/b", "hdfs://n/a"),
    ):
        with pytest.raises(cf.SchemaError, match="must not contain"):
            migrate(InProcess(), source, target)


def test_a_tables_toml_in_a_store_is_read(s3: S3, tmp_path: Path) -> None:
    source = Place(f"s3://data/{tmp_path.name}/src", s3.options)
    cf.write(
        pa.table({"a": range(5)}),
        f"{source.url}/t/0",
        format="rcfile",
        serde="binary",
        storage_options=s3.options,
    )
    target = Place(f"s3://data/{tmp_path.name}/dst", s3.options)
    with pytest.raises(cf.SchemaError, match=r"\[tables\.t\]"):
        run(source, target)
    source.store.put("tables.toml", b'[tables.t]\nschema = "a bigint"\nserde = "binary"\n')
    assert run(source, target).exit_code == 0
    assert target.values() == list(range(5))


def test_damage_is_quarantined(s3: S3, tmp_path: Path) -> None:
    source = Place(f"s3://data/{tmp_path.name}/src", s3.options)
    source.orc("t/0", {"a": range(10)})
    whole = source.store.read("t/0")
    source.store.put("t/1", whole[:-30] + b"\xff" * 30)
    target = Place(str(tmp_path / "dst"), None)
    report = run(source, target, on_error="quarantine")
    assert {file.source: file.status for table in report.tables for file in table.files} == {
        "t/0": "converted",
        "t/1": "quarantined",
    }
    assert target.store.read("_coldframe/quarantine/t/1") == source.store.read("t/1")
    assert target.values() == list(range(10))


def test_a_source_that_is_replaced_while_it_is_read_is_not_converted(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coldframe.pipeline.work import convert

    source = Place(f"s3://data/{tmp_path.name}/src", s3.options)
    source.orc("t/0", {"a": range(10)})
    target = Place(f"s3://data/{tmp_path.name}/dst", s3.options)
    original = convert._convert

    def meddled(*given: Any) -> Any:
        outcome = original(*given)
        source.orc("t/0", {"a": range(10, 20)})
        return outcome

    with monkeypatch.context() as patch:
        patch.setattr(convert, "_convert", meddled)
        report = run(source, target)
    assert [file.status for table in report.tables for file in table.files] == ["changed"]
    assert target.values() == []
    assert run(source, target).exit_code == 0
    assert target.values() == list(range(10, 20))


def test_no_secret_is_written(s3: S3, tmp_path: Path) -> None:
    source = Place(f"s3://data/{tmp_path.name}/src", s3.options)
    fill(source)
    source.store.put("t/p=a%2F0/bad", b"ORC" + bytes(100))
    target = Place(f"s3://data/{tmp_path.name}/dst", s3.options)
    report = run(source, target, on_error="quarantine")
    texts = [repr(report), json.dumps(report.to_json(), default=str)]
    texts += [
        target.store.read(file.path).decode(errors="replace")
        for some in target.store.list(recursive=True)
        for file in some
    ]
    assert len(texts) > 10
    assert not [text for text in texts if s3.SECRET in text]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("way", ["local-s3", "hdfs-hdfs"])
def test_tables_on_a_store_get_new_versions(
    places: Callable[[str], tuple[Place, Place]], way: str, kind: str
) -> None:
    pytest.importorskip("deltalake" if kind == "delta" else "pyiceberg")
    source, target = places(way)
    for number in range(2):
        source.orc(f"t/p={number}/0", {"a": [number, number + 10]})
    report = run(source, target, to=kind)
    assert report.exit_code == 0, [table.error for table in report.tables] + report.failures
    source.orc("t/p=0/0", {"a": [5]})
    report = run(source, target, to=kind)
    assert report.exit_code == 0, [table.error for table in report.tables] + report.failures
    (table,) = report.tables
    if kind == "delta":
        assert table.metadata["delta version"] == 1
        assert any(name.startswith("t/_delta_log/") for name in target.names())
    else:
        assert table.metadata["metadata"].startswith(target.url)
    assert run(source, target, to=kind).exit_code == 0
    assert audit(target.url, storage_options=target.options).exit_code == 0


@pytest.mark.parametrize("way", ["s3-local", "hdfs-s3"])
def test_a_metastore_knows_the_source_by_another_url(
    places: Callable[[str], tuple[Place, Place]], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = places(way)
    fill(source)
    known = source.url.replace("s3://", "s3a://") if way.startswith("s3") else source.url
    if way.startswith("hdfs"):
        source.orc("t/p=empty/_hidden", {"a": [1]})
        host = source.url.removeprefix("hdfs://").partition("/")[0]
        known = source.url.replace(host, host.partition(":")[0])
    orc = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
    table = Definition("d", "t", storage=Storage((), f"{known}/t", orc), keys=(Column("p", "string"),))
    numbers = {"a%2F0": "100", "a%2F1": "99", "a%2F2": "0", "empty": "0", "gone": "0"}
    partitions = [
        PartitionDefinition(
            (value,),
            Storage((), f"{known}/t/p={value}", orc),
            {"numRows": rows, "COLUMN_STATS_ACCURATE": "true"},
        )
        for value, rows in numbers.items()
    ]
    monkeypatch.setattr(
        "coldframe.pipeline.read_registered",
        lambda uris, root, _: collect(uris, root, [table], lambda _: partitions),
    )
    report = run(source, target, metastore="thrift://h:1")
    assert report.exit_code == 1
    assert report.metastore is not None
    assert (report.metastore.compared, report.metastore.agreed) == (2, 1)
    (finding,) = report.tables[0].metastore
    assert (finding.location, finding.stated, finding.migrated) == ("t/p=a%2F1", 99, 100)
    # An object store has no directories, so no directory can be missing.
    gone = "empty" if way.startswith("s3") else "missing"
    assert [(finding.kind, finding.partition) for finding in report.metastore.findings] == [
        ("empty", "p=empty"),
        (gone, "p=gone"),
    ]


@pytest.mark.parametrize("way", ["s3-local", "hdfs-hdfs", "hdfs-s3"])
def test_files_on_a_store_are_adopted_by_their_urls(
    places: Callable[[str], tuple[Place, Place]], tmp_path: Path, way: str
) -> None:
    source, target = places(way)
    source.orc("t/p=1/000000_0", {"a": [1, 2]})
    source.orc("t/p=1/000001_0", {"_col0": [3]})
    statements = tmp_path / "tables.hql"
    statements.write_text(
        f"CREATE TABLE d.t (a bigint) PARTITIONED BY (p int) STORED AS ORC LOCATION '{source.url}/t';\n"
        f"ALTER TABLE d.t ADD PARTITION (p='1') LOCATION '{source.url}/t/p=1';\n"
    )

    def adopt(of: str) -> Report:
        return migrate(
            InProcess(),
            of,
            target.url,
            to="iceberg",
            adopt=True,
            source_storage_options=source.options,
            target_storage_options=target.options,
        )

    def entries() -> set[str]:
        destination = open_destination(target.url, target.options)
        with catalog_of(destination, None) as handle:
            return set(present_in(handle.open().load_table(("d", "t"))))

    before = source.names()
    report = adopt(str(statements))
    assert report.verified, report.verdict.text
    assert report.rows == 3
    assert len(entries()) == 2
    assert f"{source.url}/t/p=1/000000_0" in entries()
    source.orc("t/p=1/000002_0", {"a": [4]})
    report = adopt(str(statements))
    assert report.verified, report.verdict.text
    assert report.rows == 4
    assert len(entries()) == 3
    assert source.names() == [*before, "t/p=1/000002_0"]
