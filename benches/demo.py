"""`make demo`: migrates a small estate of all five formats, with one damaged file, to verified Parquet.

    python benches/demo.py OUT        OUT/estate is the source, OUT/lake the target; both are created anew

The files are from `tests/data`. They were written by Hive, HBase, Kudu, ORC and Redfile's reference
implementation.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from coldframe.cli import main

DATA = Path(__file__).parents[1] / "tests" / "data"
DAMAGED = "warehouse/payments/000000_0"


def make_estate(root: Path) -> None:
    """Copies the files to the places that a cluster uses."""
    rcfile = DATA / "rcfile"
    for table in ("sales", "events"):
        shutil.copytree(rcfile / "warehouse" / table, root / "warehouse" / table)
    damaged = json.loads((rcfile / "damaged" / "MANIFEST.json").read_text())[0]
    for source, place in (
        (rcfile / "damaged" / damaged["file"], DAMAGED),
        (rcfile / "files" / "binary_groups_zlib.rc", "warehouse/payments/000001_0"),
        (DATA / "orc/files/types_zlib.orc", "warehouse/measures/dt=2016-03-01/000000_0"),
        (DATA / "orc/files/types_zstd.orc", "warehouse/measures/dt=2016-03-02/000000_0"),
        (DATA / "orc/files/nested_zlib.orc", "warehouse/profiles/000000_0"),
        (DATA / "hfile/files/cells_fast_diff_lz4.hfile", "hbase/users/3f2a9c"),
        (DATA / "redfile/files/documents_c.redfile", "archive/documents/part-00000"),
    ):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / place)
    shutil.copytree(DATA / "kudu_wal/files/lz4", root / "kudu")
    declared = (rcfile / "warehouse" / "tables.toml").read_text()
    for table in ("sales", "events"):
        declared = declared.replace(f"[tables.{table}]", f'[tables.{table}]\npath = "warehouse/{table}"')
    opened = damaged["open"]
    declared += f'\n[tables.payments]\npath = "warehouse/payments"\nschema = "{opened["schema"]}"\n'
    (root / "tables.toml").write_text(declared + f'serde = "{opened["serde"]}"\n')


def demo(out: Path) -> int:
    """Creates the estate, migrates it, and lists what to look at."""
    shutil.rmtree(out, ignore_errors=True)
    estate, lake = out / "estate", out / "lake"
    make_estate(estate)
    code = main(["migrate", str(estate), str(lake), "--on-error", "quarantine"])
    home = lake / "_coldframe"
    looks = {
        f"{home}/report.html": f"what was found, converted, verified; a map of {DAMAGED}, which is damaged",
        f"{home}/quarantine/": "a copy of it, with its damage records",
        f"{home}/manifest.jsonl": "every written file: source, rows, fingerprint, SHA-256",
        f"{home}/safe-to-delete.txt": "the sources all of whose rows are in the lake",
        f"coldframe audit {lake} --deep": "checks that the lake is unchanged since verification",
        f"coldframe migrate {estate} {lake} --dry-run": "what a second run would do",
    }
    width = max(map(len, looks))
    print("\nWhat to look at:")
    for where, what in looks.items():
        print(f"  {where:{width}}  {what}")
    return code


if __name__ == "__main__":
    sys.exit(demo(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-out")))
