"""The code in the documentation pages about Spark runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).parents[1] / "python"))

from pages import PAGES, needs_spark, run_page


@pytest.mark.parametrize("page", [page for page in PAGES if needs_spark(page)], ids=lambda page: page.name)
def test_code_of_a_page(page: Path, tmp_path: Path, spark: SparkSession) -> None:
    assert run_page(page, tmp_path, spark=spark) > 1
