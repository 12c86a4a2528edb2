"""Adopts tables that Spark with Iceberg reads as well, and prints the report.

python adoption_proof_job.py SOURCE TARGET PACKAGES [ICEBERG_JAR]

PACKAGES: a directory with PyIceberg, for the driver only.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

FOR_PYICEBERG = ("quotes", "early fractions", "nanoseconds")
"""Rules for files that PyIceberg reads right: without them, the proof by Spark has to find these files."""


def session(jar: str | None) -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "768m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Instants must not depend on it.
        "spark.sql.session.timeZone": "America/New_York",
    }
    if jar is not None:
        settings["spark.jars"] = jar
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    return spark


def main(source: str, target: str, packages: str, jar: str | None = None) -> None:
    # Behind this environment's own packages, of which PySpark is one.
    sys.path.append(packages)
    from coldframe.errors import ColdframeError
    from coldframe.pipeline import adopt_in_place
    from coldframe.pipeline.adopt import rules
    from coldframe.pipeline.options import Options

    rules.RULES = tuple(rule for rule in rules.RULES if rule.name not in FOR_PYICEBERG)
    spark = session(jar)
    options = Options(to="iceberg", adopt=True, prove="spark")
    answers: list[Any] = []
    for _ in range(2):
        try:
            answers.append(adopt_in_place(source, target, options, spark=spark).to_json())
        except ColdframeError as error:
            answers.append(str(error))
    print(json.dumps(answers, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
