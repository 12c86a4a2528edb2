"""Random queries in Spark's ORC reader and in the connector, side by side.

    python tests/spark_harness/run.py --queries 1500 --seed 1       the tables of the seeds 1, 2, ..
    python tests/spark_harness/run.py --seed 17 --query 4           one query again
    python tests/spark_harness/run.py --hive --queries 500      the Hive rule on and off
    python tests/spark_harness/run.py --damaged 200 --seed 1        damaged files in one session

It prints each difference, and exits with 1 if one is not a known fault of Spark (known.py).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from damaged import read_damaged
from hive import HiveSession
from session import started

from beside import Session


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--queries", type=int, default=25)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--query", type=int)
    arguments.add_argument("--damaged", type=int, default=0)
    arguments.add_argument("--hive", action="store_true")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        spark = started(Path(folder) if given.hive else None)
        if given.damaged:
            wrong = read_damaged(spark, Path(folder), given.seed, given.damaged)
            print(*wrong, sep="\n")
            return 1 if wrong else 0
        ran, ours, seed = 0, 0, given.seed
        while ran < given.queries:
            session = (HiveSession if given.hive else Session)(spark, Path(folder), seed)
            count, differences = session.run(given.query)
            ran, seed = ran + count, seed + 1
            for difference in differences:
                ours += difference.why is None
                print(difference, f"\n  known: {difference.why}" if difference.why else "", flush=True)
            taken = f", {session.taken} read by the connector" if isinstance(session, HiveSession) else ""
            print(f"{ran} queries, {ours} differences of ours{taken}", file=sys.stderr, flush=True)
            if given.query is not None:
                break
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main())
