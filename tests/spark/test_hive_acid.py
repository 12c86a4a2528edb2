"""Transactional tables of a Hive 3 metastore through the connector: rows equal the rows of Hive's own
reader.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from older_spark import PYTHON
from spark_data import comparable

import coldframe as cf
import coldframe.spark

sys.path.append(str(Path(__file__).parents[1] / "python"))

from hive_estate import ORC, TEXT, HiveEstate, hive_client
from servers import HiveMetastore

DATA = Path(__file__).parents[1] / "data/hive/files"
ENTRIES = json.loads((DATA / "MANIFEST.json").read_text())
KINDS = {pa.int32(): "int", pa.int64(): "bigint", pa.string(): "string", pa.float64(): "double"}
PARTITIONS = {"1": "changes", "2": "major", "__HIVE_DEFAULT_PARTITION__": "minor"}
TRUTH = {"changes": "changes.6", "major": "major.1", "minor": "minor.0"}
"""The expected rows of each partition after seven writes; the fifth was aborted."""


def rows_of(truth: str, *, more: tuple[Any, ...] = ()) -> list[str]:
    """The rows that Hive read, with further columns."""
    rows = pq.read_table(DATA / f"{truth}.truth.parquet").to_pylist()
    return sorted(comparable((*row.values(), *more) for row in rows))


def columns_of(table: str) -> list[tuple[str, str]]:
    return [(column.name, KINDS[column.type]) for column in cf.open(DATA / table).schema]


class Writes:
    """Transactions that write to tables."""

    def __init__(self, estate: HiveEstate) -> None:
        self._estate, self._types = estate, estate.records.types

    def of(self, table: str, highest: int, open: set[int], aborted: set[int]) -> None:
        """Gives a table a number of writes, some aborted or open."""
        types, client = self._types, self._estate.client
        if not highest:
            return
        begun = client.open_txns(types.OpenTxnRequest(num_txns=highest, user="u", hostname="h")).txn_ids
        client.allocate_table_write_ids(
            types.AllocateTableWriteIdsRequest(dbName="cold", tableName=table, txnIds=begun)
        )
        for number, transaction in enumerate(begun, 1):
            if number in aborted:
                client.abort_txn(types.AbortTxnRequest(transaction))
            elif number not in open:
                client.commit_txn(types.CommitTxnRequest(transaction))


def numbers(text: str) -> set[int]:
    return {int(number) for number in text.split(",") if number}


def registered(estate: HiveEstate) -> None:
    """A table for each list of writes, and a partitioned table."""
    writes = Writes(estate)
    for at, entry in enumerate(ENTRIES):
        shutil.copytree(DATA / entry["file"], estate.root / f"t{at}")
        storage = estate.storage(columns_of(entry["file"]), ORC, f"t{at}")
        estate.table(f"t{at}", storage, kind="MANAGED_TABLE", transactional="true")
        _, highest, _, open, aborted = entry["open"]["acid_valid_write_ids"].split(":")
        writes.of(f"t{at}", int(highest), numbers(open), numbers(aborted))
    columns = columns_of("changes")
    storage = estate.storage([*columns, ("later", "string")], ORC, "parts")
    estate.table("parts", storage, [("p", "int")], kind="MANAGED_TABLE", transactional="true")
    for value, name in PARTITIONS.items():
        shutil.copytree(DATA / name, estate.root / f"parts/{name}")
        estate.partition("parts", [value], estate.storage(columns, ORC, f"parts/{name}"))
    writes.of("parts", 7, set(), {5})
    originals(estate, columns)
    writes.of("old", 7, set(), {5})
    estate.table("mixed", storage, [("p", "int")], kind="MANAGED_TABLE", transactional="true")
    for value, classes in (("1", TEXT), ("3", ORC)):
        estate.partition("mixed", [value], estate.storage(columns, classes, "parts/changes"))
    writes.of("mixed", 7, set(), {5})
    (estate.root / "empty").mkdir()
    storage = estate.storage([("v", "int")], ORC, "empty")
    estate.table("empty", storage, kind="MANAGED_TABLE", transactional="true")
    (estate.root / "texts").mkdir()
    storage = estate.storage([("v", "int")], TEXT, "texts")
    properties = {"transactional": "true", "transactional_properties": "insert_only"}
    estate.table("texts", storage, kind="MANAGED_TABLE", **properties)


def originals(estate: HiveEstate, columns: list[tuple[str, str]]) -> None:
    """A transactional table with a partition written before that: plain files with the columns `_col0`,
    `_col1` ..
    """
    shutil.copytree(DATA / "changes", estate.root / "old/now")
    (estate.root / "old/before").mkdir()
    rows = pq.read_table(DATA / f"{TRUTH['major']}.truth.parquet")
    nameless = rows.rename_columns([f"_col{at}" for at in range(rows.num_columns)])
    po.write_table(nameless, estate.root / "old/before/000000_0")
    storage = estate.storage(columns, ORC, "old")
    estate.table("old", storage, [("p", "int")], kind="MANAGED_TABLE", transactional="true")
    for value, name in (("1", "now"), ("2", "before")):
        estate.partition("old", [value], estate.storage(columns, ORC, f"old/{name}"))


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    hive = pytest.importorskip("hive_metastore.ThriftHiveMetastore")
    folder = tmp_path_factory.mktemp("hive")
    server = HiveMetastore(folder / "metastore", version="3.1.3")
    with hive_client(hive, server.port) as client:
        registered(HiveEstate(client, folder / "wh"))
    yield server
    server.stop()


LIST = "spark.coldframe.hive.validWriteIds"
EACH = [f"t{at}" for at in range(len(ENTRIES))]
QUERIES: dict[str, dict[str, Any]] = {
    "each": {"sql": " union all ".join(f"select *, '{name}' from cold.{name}" for name in EACH)},
    "parts": {"sql": "select * from cold.parts"},
    "some": {"sql": "select id, p, later from cold.parts where p = 2 and id < 20"},
    "no partition": {"sql": "select id from cold.parts where p = 9"},
    "count": {"sql": "select count(*), max(id), count(later) from cold.parts where p is null"},
    "joined": {
        "sql": "select count(*) from cold.parts a join cold.parts b on a.id = b.id where a.p = 1 and b.p = 2"
    },
    "as of": {
        "sql": "select * from cold.t6",
        "settings": {LIST: "cold.t5:9:9:9:$cold.t6:1:9223372036854775807::"},
    },
    "by hive": {"sql": "select * from cold.t6", "settings": {"spark.sql.hive.convertMetastoreOrc": "false"}},
    "mixed": {"sql": "select * from cold.mixed where p = 1"},
    "other partition": {"sql": "select id from cold.mixed where p = 3"},
    "old": {"sql": "select * from cold.old"},
    "some old": {"sql": "select id from cold.old where p = 2 and id < 20"},
    "empty": {"sql": "select * from cold.empty"},
    "names": {"sql": "select input_file_name() from cold.t6"},
    "texts": {"sql": "select * from cold.texts"},
    "insert": {"sql": "insert into cold.t6 select * from cold.t6"},
    "inserts": {"sql": "from cold.t6 insert into cold.t6 select * insert into cold.t6 select *"},
    "truncate": {"sql": "truncate table cold.t6"},
    "off": {"sql": "select * from cold.t6", "settings": {"spark.coldframe.hive": "off"}},
}
REFUSED = {
    "names": "the transactional table cold.t6: the query asks for the names of files",
    "mixed": "the transactional table cold.mixed: files of org.apache.hadoop.mapred.TextInputFormat",
    # The metastore's own message.
    "texts": "Your client does not appear to support insert-only tables",
    "insert": "writing to a transactional table",
    "inserts": "writing to a transactional table",
    "truncate": "removing its files",
}


@pytest.fixture(scope="module", params=["newest", "3.5"])
def answers(
    request: pytest.FixtureRequest, metastore: HiveMetastore, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """The answers of Spark with the extension."""
    try:
        coldframe.spark.jar()
    except cf.UnsupportedError:
        pytest.skip("no jar of the connector here (make jar)")
    is_newest = request.param == "newest"
    if not is_newest and PYTHON is None:
        pytest.skip("no PySpark 3.5 here: not tried on it")
    work = tmp_path_factory.mktemp("job")
    (work / "queries.json").write_text(json.dumps(QUERIES))
    environment = {**os.environ, "PYTHONPATH": str(Path(cf.__file__).parents[1])}
    if not is_newest:
        environment.pop("SPARK_HOME", None)
    job = Path(__file__).with_name("hive_acid_job.py")
    done = subprocess.run(
        [sys.executable if is_newest else str(PYTHON), str(job), metastore.url, str(work / "queries.json")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=work,
        timeout=800,
    )
    if "Spark without Java" in done.stderr:
        pytest.skip(f"Spark 3.5 runs on Java 8 to 17: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr[-3000:]
    results: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return results


def test_each_list_of_writes_has_the_rows_of_hive(answers: dict[str, dict[str, Any]]) -> None:
    truths = [entry["truth"].removesuffix(".truth.parquet") for entry in ENTRIES]
    every = [row for name, truth in zip(EACH, truths, strict=True) for row in rows_of(truth, more=(name,))]
    assert answers["each"]["rows"] == sorted(every)
    assert answers["each"]["taken"] == len(EACH)


def test_added_partitions_and_columns_are_read(answers: dict[str, dict[str, Any]]) -> None:
    ways = {"1": 1, "2": 2, "__HIVE_DEFAULT_PARTITION__": None}
    every = [
        row for value, name in PARTITIONS.items() for row in rows_of(TRUTH[name], more=(None, ways[value]))
    ]
    assert answers["parts"]["rows"] == sorted(every)
    ids = {name: pq.read_table(DATA / f"{TRUTH[name]}.truth.parquet")["id"].to_pylist() for name in TRUTH}
    assert answers["some"]["rows"] == sorted(comparable((row, 2, None) for row in ids["major"] if row < 20))
    assert "id < 20" in answers["some"]["plan"].partition("pushed filters:")[2], answers["some"]["plan"]
    assert answers["no partition"]["rows"] == []
    assert answers["other partition"]["rows"] == sorted(comparable((number,) for number in ids["changes"]))
    assert answers["count"]["rows"] == comparable([(len(ids["minor"]), max(ids["minor"]), 0)])
    both = sum(ids["major"].count(number) for number in ids["changes"])
    assert answers["joined"]["rows"] == comparable([(both,)])
    assert answers["joined"]["taken"] >= 2  # a runtime filter is a third scan


def test_files_from_before_a_table_was_transactional_are_read_by_position(
    answers: dict[str, dict[str, Any]],
) -> None:
    every = rows_of(TRUTH["changes"], more=(1,)) + rows_of(TRUTH["major"], more=(2,))
    assert answers["old"]["rows"] == sorted(every), answers["old"]
    ids = pq.read_table(DATA / f"{TRUTH['major']}.truth.parquet")["id"].to_pylist()
    assert answers["some old"]["rows"] == sorted(comparable((number,) for number in ids if number < 20))


def test_an_option_may_list_the_valid_writes(answers: dict[str, dict[str, Any]]) -> None:
    assert answers["as of"]["rows"] == rows_of("changes.0")


def test_hives_reader_is_replaced_as_well(answers: dict[str, dict[str, Any]]) -> None:
    assert (answers["by hive"]["rows"], answers["by hive"]["taken"]) == (rows_of("changes.6"), 1)
    assert (answers["empty"]["rows"], answers["empty"]["taken"]) == ([], 1)


def test_unsupported_reads_are_refused(answers: dict[str, dict[str, Any]]) -> None:
    for name, reason in REFUSED.items():
        assert reason in answers[name]["error"], answers[name]


def test_spark_alone_finds_no_row(answers: dict[str, dict[str, Any]]) -> None:
    """The reason why the extension never leaves such a table to Spark."""
    assert (answers["off"]["rows"], answers["off"]["taken"]) == ([], 0)
