"""The model-based test of the migration: random sequences of changes to sources and targets, and runs.

    pytest tests/python/pipeline/test_migration_model.py    a fixed set of sequences, in about a minute
    COLDFRAME_MODEL_MINUTES=30 pytest -s ...                random sequences, for that long; `make model`
    python tests/python/model/soak.py MINUTES               goes on after failures, and records them

A failure prints the steps that led to it, as few as hypothesis finds. `model/world.py` has the
steps, and `model/laws.py` has the laws that must hold after each step.
"""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from model.machine import STEPS, machine
from model.world import World

MINUTES = float(os.environ.get("COLDFRAME_MODEL_MINUTES", "0"))
EXAMPLES = {"parquet": 60, "orc": 20, "delta": 30, "iceberg": 10}


@pytest.mark.parametrize("to", list(EXAMPLES))
def test_no_row_is_ever_missing(to: str) -> None:
    if to in ("delta", "iceberg"):
        pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[to])
    common: dict[str, Any] = {
        "deadline": None,
        "stateful_step_count": 25,
        "suppress_health_check": list(HealthCheck),
        "print_blob": False,
        "report_multiple_bugs": False,
    }
    STEPS.clear()
    if not MINUTES:
        quick = settings(
            **common,
            max_examples=EXAMPLES[to],
            derandomize=True,
            database=None,
            phases=(Phase.generate, Phase.shrink),
        )
        run_state_machine_as_test(machine(to), settings=quick)
    until = time.monotonic() + MINUTES * 60 / len(EXAMPLES)
    number = int(os.environ.get("COLDFRAME_SEED", "1"))
    while time.monotonic() < until:
        run_state_machine_as_test(seed(number)(machine(to)), settings=settings(**common, max_examples=25))
        number += 1
    print(f"{to}: {sum(STEPS.values())} steps: {dict(STEPS)}")


@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_removing_all_rows_of_a_table_survives_a_kill(to: str) -> None:
    """Killed between the journal's entry and the table's own log, the next run finishes it."""
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[to])
    for at in range(28, 48):
        with World(to) as world:
            world.add("u/p=2", 5)
            world.run()
            world.remove(0)
            world.killed_run(at=at, on_vanished="remove")
            world.run(on_vanished="fail" if at % 2 else "remove")
