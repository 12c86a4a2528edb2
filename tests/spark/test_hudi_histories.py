"""Random histories of Hudi's own writer: views have the rows of Hudi's reader, and filters hold on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from older_spark import PYTHON, ROOT

import coldframe as cf
from coldframe.spark.java import find_java

sys.path.append(str(Path(__file__).parents[1] / "python"))
from test_hudi_tables import filters_hold

pytestmark = pytest.mark.skipif(PYTHON is None, reason="no PySpark 3.5 here, for which Hudi has a bundle")

VERSION = "1.1.1"
BUNDLE = f"hudi-spark3.5-bundle_2.12-{VERSION}.jar"
SEED = os.environ.get("COLDFRAME_SEED", "1")
FILTERS = int(os.environ.get("COLDFRAME_FILTERS", "12"))
TABLES = os.environ.get("COLDFRAME_HUDI_TABLES", "2")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    artifact = f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{VERSION}"
    # Maven's offline mode would refuse a jar that it has not fetched yet.
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return folder / BUNDLE


def test_random_histories_are_read_as_hudi_reads_them(bundle: Path, tmp_path: Path) -> None:
    program = ROOT / "tests/reference/hudi/histories.py"
    command = [str(PYTHON), str(program), str(bundle), str(tmp_path), SEED, TABLES]
    environment = {**os.environ, "PYSPARK_PYTHON": str(PYTHON), "JAVA_HOME": str(find_java())}
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-4000:]
    lines = (tmp_path / "views.jsonl").read_text().splitlines()
    assert len(lines) >= 2 * int(TABLES)
    for line in lines:
        view = json.loads(line)
        file = cf.open(view["table"], hudi_reader="1.x", **view["options"])
        theirs = pq.read_table(view["truth"])
        # Of tables without the columns of Hudi's own, ours are null.
        names = [n for n in file.schema.names if n in theirs.schema.names or not n.startswith("_hoodie_")]
        ours, theirs = file.read(names), theirs.select(names)
        at = ours.schema.get_field_index("at")
        # Spark writes times without a zone.
        theirs = theirs.set_column(at, ours.schema.field(at), theirs["at"].cast(ours.schema.field(at).type))
        assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, theirs.to_pylist())), view
        if ours.num_rows:
            filters_hold(file, FILTERS, int(SEED))
