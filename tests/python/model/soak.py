"""Runs the model and goes on after failures: `python tests/python/model/soak.py MINUTES [FOLDER [KINDS]]`.

It writes each distinct failure to FOLDER with the steps that led to it, and counts steps and seconds.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from model.machine import STEPS, machine

KINDS = ("parquet", "delta", "parquet", "iceberg", "delta", "orc")


def main(minutes: float, folder: Path, kinds: tuple[str, ...]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    until, number = time.monotonic() + minutes * 60, int(time.time())
    counts: dict[str, float] = {"steps": 0, "seconds": 0.0, "failures": 0}
    mine = folder / f"counts-{number}.json"
    while time.monotonic() < until:
        to = kinds[number % len(kinds)]
        number += 1
        try:
            run_state_machine_as_test(
                seed(number)(machine(to)),
                settings=settings(
                    max_examples=40,
                    stateful_step_count=30,
                    deadline=None,
                    database=None,
                    suppress_health_check=list(HealthCheck),
                    report_multiple_bugs=False,
                    phases=(Phase.generate, Phase.shrink),
                ),
            )
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            counts["failures"] += 1
            text = f"{to}: {type(error).__name__}: {error}"
            name = re.sub(
                r"[^a-z]+", "-", re.sub(r"\d+|'[^']*'|\{.*|Seen\(.*", "", text.split("\n")[0]).lower()
            )
            place = folder / f"{name[:90].strip('-')}.txt"
            if not place.exists() or len(text) < len(place.read_text()):
                place.write_text(text)
        counts["steps"], counts["seconds"] = sum(STEPS.values()), time.process_time()
        mine.write_text(json.dumps({**counts, "by": dict(STEPS)}))


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        float(given[0]),
        Path(given[1] if len(given) > 1 else "model-failures"),
        tuple(given[2].split(",")) if len(given) > 2 else KINDS,
    )
