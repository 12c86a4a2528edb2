"""The proof by Spark, with a reader that plays Spark: what becomes of files that it reads otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from adoptions import OPTIONS, Estate, ids

from coldframe.pipeline import InProcess, adopt_in_place
from coldframe.pipeline.adopt import Adoption, adopt, ledger, spark_stage
from coldframe.pipeline.adopt.rules import UNPROVED_BY_SPARK, UNREAD_BY_SPARK
from coldframe.pipeline.adopt.spark_proof import FOLDER, TABLE, Printed, SparkReader, _summed
from coldframe.pipeline.adopt.summary import adoption_text
from coldframe.pipeline.options import Options


@dataclass
class Reader(SparkReader):
    """Reads a staged table by PyIceberg, but not the files that it is to fail on or to read otherwise."""

    fails: Iterable[str] = ()
    differs: Iterable[str] = ()
    reads: list[list[str]] = field(default_factory=list)

    @property
    def spark(self) -> Any:
        return None

    @property
    def label(self) -> str:
        return "Spark 9"

    def rows_of(self, folder: str, shown: pa.Schema) -> dict[str, Printed]:
        from pyiceberg.table import StaticTable

        from coldframe.pipeline.adopt.proof import TableReader, checksum_of

        place = Path(folder.removeprefix("file://")) / FOLDER / TABLE / "metadata"
        assert (place / "version-hint.text").read_text() == "1"
        table = StaticTable.from_metadata(str(place / "v1.metadata.json"))
        files = [task.file for task in table.scan().plan_files()]
        names = sorted(file.file_path.rpartition("/")[2] for file in files)
        self.reads.append(names)
        if bad := [name for name in names if name in self.fails]:
            raise RuntimeError(
                f"An error occurred\nCaused by: IOException: {bad[0]} is past its page\n\tat x"
            )
        prints = {}
        for file in files:
            seen = TableReader(table.metadata, table.io, table.schema()).rows_of(file)
            wrong = file.file_path.rpartition("/")[2] in self.differs
            prints[file.file_path] = (seen.rows, "0" * 32 if wrong else checksum_of(seen))
        return prints


@pytest.fixture(autouse=True)
def living(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_stage, "is_alive", lambda spark: True)


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    made = Estate(tmp_path)
    made.table("t", "id bigint", {name: pa.table({"id": ids(at)}) for at, name in enumerate("abcdefgh")})
    return made


def run(estate: Estate, options: Options = OPTIONS, **reader: Any) -> tuple[Adoption, Reader]:
    spark = Reader(lambda: None, **reader)
    return adopt(estate.source, estate.target, options, spark=spark), spark


def reasons(adoption: Adoption) -> dict[str, str]:
    (table,) = adoption.adopted
    assert not table.refused, table.refused
    return {Path(verdict.path).name: verdict.reason for verdict in table.verdicts if verdict.reason}


def left(estate: Estate) -> list[str]:
    """What a proof could have left behind."""
    staged = [path.name for path in (estate.target / ledger.ADOPTED).rglob("*") if ".proof" in str(path)]
    return staged + [
        path.name for path in (estate.target / "a/t/metadata").iterdir() if path.suffix == ".avro"
    ]


def test_files_that_spark_reads_otherwise_are_converted(estate: Estate) -> None:
    adoption, spark = run(estate, differs=["c"])
    assert adoption.verified, adoption.verdict.text
    assert reasons(adoption) == {"c": UNPROVED_BY_SPARK}
    # The new file is read as well.
    assert [len(names) for names in spark.reads] == [8, 1]
    assert adoption.adopted[0].metadata["read by"] == "Spark 9"
    assert "verified, by Spark as well" in adoption_text(adoption)
    assert sorted(estate.loaded("t").scan().to_arrow()["id"].to_pylist()) == list(range(8))
    assert len(left(estate)) == 2  # the manifest and the list of the table itself


def test_a_file_that_spark_cannot_read_is_the_only_one_converted(estate: Estate) -> None:
    adoption, _ = run(estate, fails=["f"])
    assert adoption.verified, adoption.verdict.text
    assert reasons(adoption) == {"f": f"{UNREAD_BY_SPARK}: IOException: f is past its page"}
    assert len(left(estate)) == 2


def test_a_reader_that_reads_nothing_is_no_reason_to_convert(estate: Estate) -> None:
    adoption, spark = run(estate, fails="abcdefgh")
    (table,) = adoption.adopted
    assert table.refused.startswith("Spark 9 reads none of its files: ")
    assert "a is past its page" in table.refused
    assert len(spark.reads) == 1 + spark_stage._PROBES
    assert left(estate) == []


def test_a_dead_jvm_is_no_reason_to_convert(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_stage, "is_alive", lambda spark: False)
    adoption, _ = run(estate, fails=["f"])
    assert "the JVM of Spark 9 has died" in adoption.adopted[0].refused


def test_what_spark_has_not_read_is_read_in_a_later_run(estate: Estate) -> None:
    assert not adopt(estate.source, estate.target, OPTIONS).adopted[0].by_spark
    adoption, spark = run(estate)
    assert adoption.adopted[0].by_spark
    assert spark.reads == [list("abcdefgh")]
    estate.table("t", "id bigint", {"i": pa.table({"id": ids(8)})})
    estate.statements.pop()
    adoption, spark = run(estate)
    # Only what is new is read again.
    assert spark.reads == [["i"]]
    assert adoption.adopted[0].by_spark
    assert run(estate)[1].reads == []
    # A run without Spark adds what Spark has not read.
    estate.table("t", "id bigint", {"j": pa.table({"id": ids(9)})})
    estate.statements.pop()
    assert not adopt(estate.source, estate.target, OPTIONS).adopted[0].by_spark


def test_fingerprints_of_parts_of_a_file_add_up() -> None:
    @dataclass
    class Part:
        file: str
        rows: int
        print: str

    top = "f" * 16
    parts = [Part("a", 1, top + "0" * 15 + "1"), Part("b", 5, "0" * 32), Part("a", 2, "0" * 15 + "2" + top)]
    assert _summed(parts) == {"a": (3, "0" * 15 + "1" + "0" * 16), "b": (5, "0" * 32)}


def test_the_option_needs_a_session(estate: Estate) -> None:
    with pytest.raises(ValueError, match="give a session"):
        adopt_in_place(estate.source, estate.target, replace(OPTIONS, prove="spark"), spark=InProcess())
    with pytest.raises(ValueError, match="only for adopted tables"):
        Options(prove="spark")
