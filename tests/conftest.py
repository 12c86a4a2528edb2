"""How the tests share a machine: `pytest -n 6` (pytest-xdist) gives each of six workers whole files.

Each worker has session fixtures of its own. Files that use the same server or Spark session stay together, so
that it starts once. Long files start first, so that the workers end at about the same time.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import tiers
from tiers import stays_in_its_tier as stays_in_its_tier

SHARED = {"hive": r"\bhive_(server|spark|estate: HiveEstate)\b", "spark": r"\bspark: SparkSession\b"}
"""Groups of test files: a file whose text matches the pattern belongs to the group."""
LONG = (
    *("hive", "spark", "test_older_spark", "test_cluster", "test_spark_kills", "test_orc_reference"),
    *("test_reference", "test_migration_stores", "test_estate", "test_connect", "test_hive_derby"),
    *("test_hive_rule", "test_migration_model", "test_migration_state", "test_metastore_kerberos"),
    "test_deletion",
    *("test_metastore_versions", "test_migration_report", "test_iceberg_stores"),
    *("test_iceberg_catalogs", "test_jars", "test_demo", "test_api_usage", "test_stubs"),
    *("test_cli_shell", "test_reference_hfile", "test_filter_law", "test_store_law", "test_stores"),
)
"""The slow test files, in the order of their start.

The other files follow, beginning with files of many tests.
"""

CLASSES = Path(sys.prefix) / "spark-classes"
"""Spark's classes, as a JVM can map them (`make` calls tests/spark/archive_classes.py)."""

# Dozens of programs in Java run for seconds: the optimising compiler and the threads of G1 would cost more
# processor time than what is tested.
JAVA = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
if CLASSES.exists():
    # A JVM with other jars ignores the archive; its warning would be in the output of programs.
    JAVA += [f'"-XX:SharedArchiveFile={CLASSES}"', "-Xlog:cds*=off"]
os.environ.setdefault("JDK_JAVA_OPTIONS", " ".join(JAVA))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tiers.mark(items)


def group(path: Path) -> str:
    """The name of a file's group: the file's own name, if it shares nothing."""
    text = path.read_text(encoding="utf-8")
    return next((name for name, pattern in SHARED.items() if re.search(pattern, text)), path.stem)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives groups to workers."""
    from xdist.scheduler import LoadScopeScheduling

    groups: dict[str, str] = {}

    class Groups(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            if path not in groups:
                groups[path] = group(config.rootpath / path)
            return groups[path]

        def _assign_work_unit(self, node: Any) -> None:
            self.workqueue.move_to_end(min(self.workqueue, key=self._turn), last=False)
            super()._assign_work_unit(node)

        def _turn(self, name: str) -> int:
            if name == "spark" and self.numnodes == 1:
                return len(LONG) + 1
            return LONG.index(name) if name in LONG else len(LONG)

        def _reschedule(self, node: Any) -> None:
            # The session of the fixture `spark` lives as long as its worker: later files in the worker would
            # see it.
            if "spark" in self.assigned_work[node]:
                node.shutdown()
            else:
                super()._reschedule(node)

    return Groups(config, log)
