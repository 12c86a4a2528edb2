"""The tier of each test: which command runs it.

    tier      what it may use                                                    run by
    unit      no server, no JVM, no browser, no long sleep                        make check, make test
    engine    Spark, metastores, object stores, HDFS, browsers, the reference     make test
              readers and writers, laws over all fixtures: what takes long
    soak      kills at random moments, the model of the migration, versions       make soak
              of engines: more rounds find more

A test without a row here is *unit*. A row is a file or a test of it (`FILE::TEST`). Tests with a fixture of
`ENGINE_FIXTURES` are *engine* without a row.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

TIERS = ("unit", "engine", "soak")
ENGINE_FIXTURES = frozenset({"spark", "s3", "hdfs", "hive_server", "hive_spark", "hive_estate", "browser"})
ENGINE = frozenset(
    {
        # Laws over all fixtures: they need no server, but take minutes.
        "test_cli_shell",
        "test_filter_law",
        "test_fixtures",
        "test_halves",
        "test_hbase_corpus",
        "test_hfile_lookups",
        "test_lying_indexes::test_lying_indexes_give_no_wrong_row_over_all_fixtures",
        "test_robustness",
        "test_salvage_law",
        "test_hive_dumps::test_ten_thousand_partitions_of_fifty_columns",
        "test_migration_state::test_killed_before_and_after_every_operation",
        # Engines.
        "test_adopting_switched",
        "spark",  # the folder tests/spark
        "test_api_usage",
        "test_hive_derby",
        "test_hive_dst",
        "test_iceberg_catalogs",
        "test_iceberg_stores",
        "test_layout::test_a_browser_draws_it",
        "test_layout_in_a_browser",
        "test_metastore",
        "test_metastore_failures",
        "test_metastore_kerberos",
        "test_migration_by_spark",
        "test_migration_defined",
        "test_migration_defined_parts",
        "test_migration_defined_stores",
        "test_migration_positions",
        "test_migration_storage_handlers",
        "test_migration_stores",
        "test_object_folders",
        "test_object_store",
        "test_orc_reference",
        "test_reference",
        "test_reference_delta",
        "test_reference_hfile",
        "test_redirects",
        "test_report_in_a_browser",
        "test_secrets",
        "test_store_failures",
        "test_store_law",
        "test_stores",
        "test_switching",
    }
)
SOAK = frozenset(
    {
        "test_hudi_histories",
        "test_metastore_versions",
        "test_migration_directories",
        "test_migration_kills",
        "test_migration_model",
        "test_older_spark",
        "test_spark_harness",
        "test_spark_kills",
        "test_streams::test_kills_lose_nothing_and_repeat_nothing",
    }
)
FORBIDDEN = frozenset({"java", "mvn", "spark-submit", "chromium", "chromium-browser"})
"""Programs that a unit test may not start."""


def tier_of(item: pytest.Item) -> str:
    stem = item.path.stem
    names = {stem, f"{stem}::{getattr(item, 'originalname', None) or item.name}"}
    if names & SOAK:
        return "soak"
    if names & ENGINE or item.path.parent.name in ENGINE:
        return "engine"
    return "engine" if ENGINE_FIXTURES & set(getattr(item, "fixturenames", ())) else "unit"


def mark(items: list[pytest.Item]) -> None:
    """Gives each test the mark of its tier."""
    for item in items:
        if not any(item.get_closest_marker(tier) for tier in TIERS):
            item.add_marker(getattr(pytest.mark, tier_of(item)))


@pytest.fixture(autouse=True)
def stays_in_its_tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails a unit test that starts an engine: its row in this table is missing."""
    if request.node.get_closest_marker("unit"):
        start = subprocess.Popen.__init__

        def guarded(process: Any, command: Any, *rest: Any, **options: Any) -> None:
            program = Path(command.split()[0] if isinstance(command, str) else str(command[0])).name
            assert program not in FORBIDDEN, f"a unit test starts {program}: tests/tiers.py has no row for it"
            start(process, command, *rest, **options)

        monkeypatch.setattr(subprocess.Popen, "__init__", guarded)
