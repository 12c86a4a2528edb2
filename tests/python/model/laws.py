"""The laws that hold after each step. Each law is a function; `Broken` names the law that does not hold.

claims      never "verified", "safe" or exit code 0 where a row is missing, duplicated or changed
state       unless the target was damaged: each row comes from a version of a source, no source has rows of
            two versions, and rows of others are untouched
progress    where nothing is wrong, a run reports success and has converted everything
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from model.engines import Read, Seen
from model.tree import Version

from coldframe.pipeline.plan.exchange import LEFT_OUT

if TYPE_CHECKING:
    from model.world import World


class Broken(AssertionError):
    """A law that does not hold."""

    def __init__(self, law: str, what: str) -> None:
        super().__init__(what)
        self.law = law


def check(law: str, holds: bool, what: str) -> None:
    if not holds:
        raise Broken(law, f"[{law}] {what}")


@dataclass
class Claims:
    """A run: its options, the state before it, its report."""

    before: Read
    sources: dict[str, Version]
    """The sources when the run starts."""
    done: frozenset[str]
    """Sources that earlier runs converted."""
    maybe: frozenset[str]
    """Sources that killed runs may have converted."""
    given: dict[str, Any]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    report: Any
    refused: Exception | None
    raced: bool
    fine: bool = False

    @property
    def keeps(self) -> bool:
        """Whether rows of vanished sources stay, though a new file may have them, as requested."""
        how, archived = self.given["on_vanished"], self.given["archived"]
        return how == "keep" or (how == "remove" and archived == "keep")

    def selects(self, path: str) -> bool:
        from model.world import is_selected

        return is_selected(path, self.include, self.exclude)


def listed_paths(text: str, source: Path) -> list[str]:
    """The sources of safe-to-delete.txt, relative to the source's root."""
    paths = []
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        place = next(part for part in line.split("\t") if part.startswith("/"))
        paths.append(str(Path(place).relative_to(source)))
    return paths


def after_run(world: World, claims: Claims, died: bool) -> None:
    """Checks all laws."""
    _opens(world, claims)
    _rows_are_ours(world, claims, died)
    _safe(world, claims)
    if died:
        return
    if claims.refused is not None:
        _same(world, claims)
        _refusals(world, claims)
        return
    _verified(world, claims)
    _exit_code(world, claims)
    _nothing_twice(world, claims)
    _others_stay(world, claims)
    _statuses(world, claims)
    _progress(world, claims)


def _opens(world: World, claims: Claims) -> None:
    if not world.messy:
        check("opens", not world.seen.broken, f"{world.seen.broken}")


def expected(version: Version, row_keys: bool = True) -> Counter[Seen]:
    """The rows of a version, as an engine must read them."""
    keys = tuple(sorted(version.keys))
    return Counter(Seen(row.id, version.tag, row.v, row.w, keys) for row in version.rows)


def tables_of(world: World) -> Iterable[tuple[str, list[Seen]]]:
    return world.seen.tables.items()


def _rows_are_ours(world: World, claims: Claims, died: bool) -> None:
    """State: each row comes from a version of a source; each source has one version, complete."""
    if world.messy:
        return
    versions = world.tree.versions
    of_source: dict[str, dict[str, Counter[Seen]]] = defaultdict(lambda: defaultdict(Counter))
    homes: dict[str, set[str]] = defaultdict(set)
    for table, rows in tables_of(world):
        for row in rows:
            if row in world.foreign:
                continue
            version = versions.get(row.tag)
            check("rows", version is not None, f"{table}: {row} has an unknown tag")
            assert version is not None
            check("rows", row in expected(version), f"{table}: {row} is not a row of {version}")
            of_source[version.path][row.tag][row] += 1
            homes[version.path].add(table)
    plain = world.to in ("parquet", "orc")
    for path, by_tag in of_source.items():
        check("one table", len(homes[path]) == 1 or (died and plain), f"{path} is in tables {homes[path]}")
        if died and plain:
            # Readers of plain directories may briefly see the old and the new file.
            continue
        side_by_side = by_tag.keys() - world.archived
        is_single = len(side_by_side) <= 1 or world.restored
        check("one version", is_single, f"{path}: rows of {sorted(side_by_side)} side by side")
        for tag, rows in by_tag.items():
            check("twice", max(rows.values()) == 1, f"{path}: {rows.most_common(1)} is duplicated")
            missing = _missing(world, versions[tag], rows)
            check("whole", not missing, f"{path}: rows of {tag} are missing: {missing[:3]}")
    if died and plain:
        _never_less(world, claims, of_source)


def _missing(world: World, version: Version, in_target: Counter[Seen]) -> list[Seen]:
    """Expected rows that are not in the target, except damaged rows and rows that others deleted."""
    if version.tag in world.tree.damaged:
        return []
    return [row for row in expected(version) if not in_target[row] and not world.deleted[row.id, row.tag]]


def _never_less(world: World, claims: Claims, now: dict[str, dict[str, Counter[Seen]]]) -> None:
    """Kills: each source that had rows still has its old or its new rows."""
    had: dict[str, dict[str, Counter[Seen]]] = defaultdict(lambda: defaultdict(Counter))
    for row in claims.before.rows:
        version = world.tree.versions.get(row.tag)
        if version is not None:
            had[version.path][row.tag][row] += 1
    for path in had:
        if path not in world.tree.now or world.tree.now[path].health != "good":
            continue
        whole = [
            tag for tag, rows in now[path].items() if not _missing(world, world.tree.versions[tag], rows)
        ]
        empty = not world.tree.now[path].rows
        check("kill", bool(whole) or empty, f"{path}: neither its old rows nor its new ones are complete")


def _safe(world: World, claims: Claims) -> None:
    """Claims: every row of a source in safe-to-delete.txt is in the target."""
    in_target = Counter(world.seen.rows)
    for path, version in world.listed.items():
        # Damage that changes no row is invisible.
        whole = version.health in ("good", "damaged")
        check("safe", whole, f"{path} is listed as safe, but it is {version.health}")
        lost = expected(version) - in_target
        check("safe", not lost, f"{path} is listed as safe, but not in the target: {list(lost)[:3]}")
    _relied(world)
    if not claims.given["verify"] and claims.report is not None:
        # Sources that an earlier run read back need no second check.
        unread = sorted(path for path, version in world.listed.items() if version.tag not in world.read_back)
        check("safe", not unread, f"listed as safe without verification: {unread[:3]}")


def _relied(world: World) -> None:
    """Claims: rows of sources that were deleted as listed stay, unless the user names them."""
    if world.messy:
        return
    in_target = Counter(world.seen.rows)
    for version in world.relied.values():
        lost = expected(version) - in_target
        lost = Counter(row for row in lost if not world.deleted[row.id, row.tag])
        where = f"{version.path} was deleted as listed, but is not in the target"
        check("relied", not lost, f"{where}: {list(lost)[:3]}")


def after_deletion(world: World, listed: list[str], gone: dict[str, Version], result: Any) -> None:
    """Claims: `coldframe delete` deletes what is listed, all or nothing, and the target has its rows."""
    in_target = Counter(world.seen.rows)
    for path, version in gone.items():
        check("delete", path in listed, f"{path} was deleted, but is not listed")
        lost = expected(version) - in_target
        check("delete", not lost, f"{path} was deleted, but is not in the target: {list(lost)[:3]}")
    if result is None:
        return
    if result.exit_code:
        check("delete", not gone, f"it failed ({result.verdict.text}), but {sorted(gone)} are deleted")
        check("delete", not world.fine, f"nothing is wrong, but {result.to_json()}")
    else:
        # Another file may lie under the name of a source that was deleted before.
        earlier = {item.line.path for item in result.items if item.earlier}
        there = (path for path in listed if path in world.tree.now and path not in gone)
        stay = sorted(path for path in there if str(world.source / path) not in earlier)
        check("delete", not stay, f"it succeeded, but {stay[:3]} are still there")


def _reports(claims: Claims) -> Iterable[tuple[Any, Any]]:
    for table in claims.report.tables:
        for file in table.files:
            yield table, file


def _verified(world: World, claims: Claims) -> None:
    """Claims: sources that a report calls verified are in the target, as its engine reads it now."""
    if claims.report.verified:
        for table in claims.report.tables:
            if table.totals.written:
                check("verified", table.verified, f"the report is verified, but {table.name} is not")
    in_target = Counter(world.seen.rows)
    for table in claims.report.tables:
        if not table.verified:
            continue
        check("verified", claims.given["verify"] or _earlier(table), f"{table.name} was not read back")
        path = table.path
        check("verified", path not in world.seen.broken, f"{path}: {world.seen.broken.get(path)}")
        check("shape", path not in world.seen.odd, f"{path} is verified, but: {world.seen.odd.get(path)}")
        for file in table.files:
            version = world.tree.now.get(file.source)
            if file.status == "converted" and version is not None and not claims.raced:
                lost = expected(version) - in_target
                check("verified", not lost, f"{file.source}: verified, but missing: {list(lost)[:3]}")


def _earlier(table: Any) -> bool:
    # Only sources that were read back can be deleted.
    return any(file.earlier for file in table.files) or bool(table.archived)


def _exit_code(world: World, claims: Claims) -> None:
    """Claims: exit code 0 only if no requested source is missing, wrong or unexplained."""
    if claims.report.exit_code:
        return
    in_target = Counter(world.seen.rows)
    statuses = {file.source: file.status for _, file in _reports(claims)}
    for path, version in claims.sources.items():
        if not claims.selects(path) or (claims.raced and world.tree.now.get(path) != version):
            continue
        status = statuses.get(path)
        if status is None and version.health == "empty":
            continue
        if status is None and version.health == "lost" and path not in claims.done:
            # A file of an unknown format outside every table is reported and left alone.
            status = "failed" if path in claims.report.unknown else None
        check("exit code", status is not None, f"exit code 0, but {path} is not in the report")
        if version.health == "empty":
            continue
        if version.health != "good" and not (version.health == "damaged" and status == "converted"):
            reported = status in ("salvaged", "quarantined", "failed")
            check("exit code", reported, f"exit code 0, but {path} is {version.health}, reported {status}")
            continue
        lost = expected(version) - in_target
        if claims.given["on_foreign_changes"] == "append":
            # Rows that others deleted stay deleted with "append"; the verdict is then PARTIAL.
            lost = Counter(row for row in lost if not world.deleted[row.id, row.tag])
        check("exit code", not lost, f"exit code 0, but {path} ({status}) is missing: {list(lost)[:3]}")
    # Tables without requested sources are not checked.
    for table in claims.report.tables:
        for wrong in (world.seen.broken, world.seen.odd):
            check("shape", table.path not in wrong, f"exit code 0, but {table.path}: {wrong.get(table.path)}")


def _nothing_twice(world: World, claims: Claims) -> None:
    """State: no row is duplicated, not even by two source files."""
    if world.messy:
        return
    for table, rows in tables_of(world):
        if table.split("/")[0] in world.loose:
            continue
        rows = [row for row in rows if row.tag not in world.archived]
        ids = Counter(row.id for row in rows)
        twice = [row for row in rows if ids[row.id] > 1]
        check("doubled", not twice, f"{table}: {twice[:4]}")


def _others_stay(world: World, claims: Claims) -> None:
    """State: rows that others wrote are unchanged."""
    if world.messy or world.restored:
        return
    in_target = Counter(world.seen.rows)
    lost = world.foreign - in_target
    check("others", not lost, f"rows of others are gone: {list(lost)[:3]}")
    back = [row for row in world.seen.rows if world.deleted[row.id, row.tag] and not claims.given["fresh"]]
    before = {(row.id, row.tag) for row in claims.before.rows}
    back = [row for row in back if (row.id, row.tag) not in before]
    check("others", not back, f"rows that others deleted are back: {back[:3]}")


def _same(world: World, claims: Claims) -> None:
    """A refused run changed no table."""
    same = Counter(world.seen.rows) == Counter(claims.before.rows)
    check(
        "refused",
        same or world.died or claims.raced,
        f"refused ({claims.refused}), but the tables changed",
    )


def _refusals(world: World, claims: Claims) -> None:
    """Progress: a run is refused only for a reason that the model knows."""
    if world.messy or claims.raced or world.restored:
        return
    check("refused", bool(world.odd), f"refused: {claims.refused}")


def _statuses(world: World, claims: Claims) -> None:
    """An intact file is not reported as damaged."""
    for _, file in _reports(claims):
        version = claims.sources.get(file.source)
        if version is None or version.health != "good" or claims.raced:
            continue
        fine = file.status not in ("quarantined", "salvaged") and not (
            version.rows and file.status == "empty"
        )
        check("status", fine, f"{file.source} is intact, reported {file.status}: {file.error} {file.damage}")


def _is_a_portion(claims: Claims) -> bool:
    """Whether the run leaves out a source whose rows may share a target file with other sources."""
    return any(path in claims.sources and not claims.selects(path) for path in claims.done | claims.maybe)


def _progress(world: World, claims: Claims) -> None:
    """Where nothing is wrong, a run reports success, and the target equals the source."""
    if world.messy or claims.raced or world.touched or world.kept or world.archived or world.restored:
        return
    if claims.given["archived"] != "drop":
        return
    meant = {path: version for path, version in claims.sources.items() if claims.selects(path)}
    if any(version.health != "good" for version in meant.values()):
        return
    if any(version.path.split("/")[0] in world.odd for version in meant.values()):
        return
    done = claims.done | claims.maybe
    if any(path.split("/")[0] in world.odd for path in done):
        return
    asked = claims.given["on_vanished"] == "remove" and claims.given["dropped"]
    if any(path not in claims.sources for path in done) and not (
        asked and not claims.include and not claims.exclude
    ):
        return
    report = claims.report
    why = [(file.source, file.status, file.error) for _, file in _reports(claims) if file.error is not None]
    why += [(table.name, "table", table.error) for table in report.tables if table.error is not None]
    if any(LEFT_OUT in str(error) for _, _, error in why) and _is_a_portion(claims):
        return
    about = [
        (table.name, table.missing, table.foreign, table.vanished, table.partial) for table in report.tables
    ]
    check("progress", report.exit_code == 0, f"nothing is wrong, but {report.verdict.text}: {why} {about}")
    if claims.given["verify"] and any(version.rows for version in meant.values()):
        check("progress", report.verified or world.unverified, f"not verified: {about}")
        lacking = sorted(path for path in meant if path not in world.listed)
        check("progress", not lacking or world.unverified, f"not listed as safe: {lacking[:3]}")
    if not (claims.include or claims.exclude):
        wanted: Counter[Seen] = Counter()
        for version in meant.values():
            wanted += expected(version)
        # A table without rows equals a missing table.
        now = Counter(world.seen.rows)
        check("progress", now == wanted, f"lacks {list(wanted - now)[:3]}, has {list(now - wanted)[:3]}")
        claims.fine = claims.given["verify"]


def after_audit(world: World, result: Any) -> None:
    """Exit code 0 if nobody touched the target, and only if all rows that the last run left are in it."""
    if result.exit_code == 0 and world.after_run is not None:
        # Compared without counts: others may have copied our file within a plain directory and removed the
        # copy again.
        ours = {row for row in world.after_run.rows if not _is_given_up(world, row)}
        gone = ours - set(world.seen.rows)
        check("audit", not gone, f"exit code 0, but these rows are gone: {list(gone)[:3]}")
        check("audit", not world.seen.broken, f"exit code 0, but {world.seen.broken}")
    if world.fine:
        check("audit", result.exit_code == 0, f"faults in an untouched target: {result.faults}")


def _is_given_up(world: World, row: Seen) -> bool:
    """Rows that others wrote, and rows of vanished sources that a run should have removed."""
    version = world.tree.versions.get(row.tag)
    asked = world.last is not None and world.last["on_vanished"] == "remove"
    return version is None or (asked and version.path not in world.tree.now)


def after_check(world: World, result: Any, paths: list[str]) -> None:
    """Claims: sources of safe-to-delete.txt that an audit confirms may be deleted now. Progress: after an
    undisturbed run the audit confirms every line.
    """
    if result.exit_code:
        faults = [fault for fault in result.faults if fault.kind == "line"]
        check("list", not (world.fine and faults), f"faults in an untouched list: {faults[:3]}")
        return
    in_target = Counter(world.seen.rows)
    for path in paths:
        lost = expected(world.tree.now[path]) - in_target
        check("list", not lost, f"{path} is confirmed, but not in the target: {list(lost)[:3]}")


def after_refused_audit(world: World, error: Exception) -> None:
    check("audit", world.messy or world.died or world.restored, f"refused: {error}")
