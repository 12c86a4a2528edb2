"""Changes that others make to a target: by its engine, or by hand."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from model import engines, laws
from model.engines import HOME, Seen

from coldframe.pipeline import audit

if TYPE_CHECKING:
    from model.world import World

_FOREIGN = 10_000_000
"""The first id of rows that no source ever had."""


def append(world: World, which: int) -> None:
    """Appends two rows to a table."""
    table = world.pick_table(which)
    if table is None:
        return
    like = world.seen.tables[table][0]
    if world.to in ("parquet", "orc"):
        _put_beside(world, table)
        return
    made = _rows_like(world, table, like)
    world._log(f"others append to {table}")
    if world.to == "delta":
        from deltalake import write_deltalake

        write_deltalake(str(world.target / table), made, mode="append")
    else:
        engines.iceberg_tables(world.target)[table].append(made)
    _mark_touched(world, table)
    new = Counter(world.seen.tables[table]) - world.foreign
    world.foreign.update(row for row in new.elements() if row.id >= _FOREIGN)


def _rows_like(world: World, table: str, like: Seen) -> pa.Table:
    """Rows with the columns of the table."""
    if world.to == "delta":
        schema = pa.schema(engines.delta_table(world.target / table).schema().to_arrow())
    else:
        schema = engines.iceberg_tables(world.target)[table].schema().as_arrow()
    first = _FOREIGN + len(world.steps) * 10
    values: dict[str, Any] = {"id": [first, first + 1], "tag": ["others"] * 2, "v": [1, 2], "w": ["x", "y"]}
    keys = dict(like.keys)
    columns = []
    for field in schema:
        given = values.get(field.name, [keys.get(field.name)] * 2)
        columns.append(pa.array([None if value is None else str(value) for value in given]).cast(field.type))
    return pa.table(columns, schema=schema)


def _put_beside(world: World, table: str) -> None:
    """Puts a foreign file into a plain directory."""
    visible = engines.visible(world.target, world.to)
    some = next(
        (path for path in visible if str(path.relative_to(world.target)).startswith(f"{table}/")), None
    )
    if some is None:
        return
    world._log(f"others copy {some.relative_to(world.target)} beside it")
    shutil.copy(some, some.with_name(f"copy{len(world.steps)}{some.suffix}"))
    world.messy = True
    _mark_touched(world, table)


def delete(world: World, which: int, all_of_it: bool) -> None:
    """Deletes some rows, or all, by the table's engine."""
    table = world.pick_table(which)
    if table is None or world.to not in ("delta", "iceberg"):
        return
    rows = world.seen.tables[table]
    some = rows if all_of_it else [row for row in rows if row.id % 3 == which % 3]
    if not some:
        return
    world._log(f"others delete {len(some)} of {len(rows)} rows of {table}")
    ids = sorted({row.id for row in some})
    before = Counter(rows)
    if world.to == "delta":
        where = None if all_of_it else f"id in ({', '.join(map(str, ids))})"
        engines.delta_table(world.target / table).delete(where)
    else:
        from pyiceberg.expressions import AlwaysTrue, In

        loaded = engines.iceberg_tables(world.target)[table]
        loaded.delete(AlwaysTrue() if all_of_it else In("id", ids))
    _mark_touched(world, table)
    world.rewrote.add(table)
    gone = before - Counter(world.seen.tables.get(table, []))
    for row in gone.elements():
        if row in world.foreign:
            world.foreign[row] -= 1
        else:
            world.deleted[row.id, row.tag] += 1
    world.foreign += Counter()


def compact(world: World, which: int) -> None:
    """OPTIMIZE: rewrites the rows into fewer files."""
    table = world.pick_table(which)
    if table is None or world.to != "delta":
        return
    world._log(f"others compact {table}")
    before = Counter(world.seen.tables[table])
    done = engines.delta_table(world.target / table).optimize.compact()
    if not done["numFilesRemoved"]:
        return
    _mark_touched(world, table)
    world.rewrote.add(table)
    laws.check("others", Counter(world.seen.tables[table]) == before, f"{table}: compaction changed rows")


def vacuum(world: World, which: int) -> None:
    """VACUUM: deletes the files that only older versions list."""
    table = world.pick_table(which)
    if table is None or world.to != "delta":
        return
    world._log(f"others vacuum {table}")
    before = {path: Counter(rows) for path, rows in world.seen.tables.items()}
    loaded = engines.delta_table(world.target / table)
    loaded.vacuum(0, enforce_retention_duration=False, dry_run=False)
    _mark_touched(world, table)
    for path, rows in before.items():
        laws.check(
            "vacuum",
            Counter(world.seen.tables.get(path, [])) == rows,
            f"{path}: a vacuum of {table} took rows",
        )


def damage(world: World, which: int, how: str) -> None:
    """Deletes or damages a file of the target or of the migration's state."""
    world_files = [
        path for path in engines.visible(world.target, world.to) if path.suffix in (".parquet", ".orc")
    ]
    logs = sorted(log for log in world.target.rglob("_delta_log") if log.is_dir())
    place: Path
    if how == "flip":
        _flip(world, which)
        return
    if how in ("delete", "cut") and world_files:
        place = world_files[which % len(world_files)]
    elif how == "log" and logs:
        place = logs[which % len(logs)]
    elif how == "catalog" and (world.target / HOME / "iceberg.db").exists():
        place = world.target / HOME / "iceberg.db"
    elif how == "journal" and (world.target / HOME / "state").exists():
        place = world.target / HOME / "state"
    else:
        return
    world._log(f"target {place.relative_to(world.target)}: {how}")
    if place.is_dir():
        shutil.rmtree(place)
    elif how in ("delete", "catalog"):
        place.unlink()
    else:
        content = place.read_bytes()
        place.write_bytes(content[: len(content) // 2])
    world.messy = True
    _mark_stale(world)


def _flip(world: World, which: int) -> None:
    """Flips a bit of a file, which only a read can notice, audits, and restores the file."""
    files = engines.visible(world.target, world.to)
    if world.messy or world.died or world.to not in ("parquet", "orc") or not files:
        return
    place = files[which % len(files)]
    content = place.read_bytes()
    at = len(content) // 3
    place.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
    result = audit(world.target)
    place.write_bytes(content)
    world._log(f"target {place.relative_to(world.target)}: a bit flipped, audited, and back")
    laws.check("audit", result.exit_code == 1, f"{place}: a bit was flipped, but the audit found nothing")


def _mark_touched(world: World, table: str) -> None:
    world.touched.add(table)
    _mark_stale(world)


def _mark_stale(world: World) -> None:
    """Invalidates the report of the last run."""
    world.fine = False
    world.listed, world.relied = {}, {}
    world.read_target()
