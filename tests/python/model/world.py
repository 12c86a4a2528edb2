"""A source, a target, and the steps that change them. To replay a failure:

    with World("delta") as world:
        world.add("t", 3)
        world.run(on_vanished="remove")

Steps take numbers and strings; the file that a number means depends on the earlier steps. Each step ends by
checking the laws (`laws.py`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from model import engines, foreign, laws
from model.engines import HOME, Read, Seen
from model.hooks import Killed, deleting_until, striking
from model.laws import Broken, Claims
from model.tree import TYPES, Tree, Version

from coldframe.errors import ColdframeError
from coldframe.pipeline import audit, delete, migrate
from coldframe.pipeline.scheduling import InProcess

PLACES = (
    "t",
    "u/p=0",
    "u/p=1",
    "u/p=2",
    "x/a=0/b=0",
    "x/a=0/b=1",
    "x/a=1/b=0",
    "red",
    "text/p=0",
    "text/p=1",
    "binary",
    # With the places from here on, Spark could not read the plain directories of the target.
    "t/p=0",
    "t/below",
    "u",
    "u/below",
    "u/p=0/q=0",
    "u/P=1",
    "x/b=0/a=0",
)
PLAIN_PLACES = PLACES.index("t/p=0")
NAMES = ("f0", "f1", "f2", "f3")
KINDS = {"red": "redfile", "text": "rctext", "binary": "rcbinary"}
FIXED = frozenset(("text", "binary"))
"""Tables of formats without types: tables.toml gives their columns."""
ENTRY = """
[tables.{name}]
schema = "id bigint, tag string, v int"
serde = "{name}"
"""
INCLUDES: tuple[tuple[str, ...], ...] = ((), ("u",), ("p=0",), ("u/p=1", "t"), ("f0",), ("f0", "f1"))
EXCLUDES: tuple[tuple[str, ...], ...] = ((), ("f1",), ("u/p=1",), ("p=0", "b=1"))


def matches(pattern: str, path: str) -> bool:
    """Whether a path matches one of the patterns above, by the rules of the manual."""
    if "/" in pattern:
        return path == pattern or path.startswith(f"{pattern}/")
    return pattern in path.split("/")


def is_selected(path: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    selected = not include or any(matches(pattern, path) for pattern in include)
    return selected and not any(matches(pattern, path) for pattern in exclude)


class World:
    """The source, the target and the steps: see the module."""

    def __init__(self, to: str = "parquet") -> None:
        # In memory if possible: a step waits for the disk about ten times.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._folder = tempfile.TemporaryDirectory(prefix="model-", dir=memory)
        root = Path(self._folder.name)
        self.to = to
        self.source, self.target = root / "src", root / "dst"
        self.source.mkdir()
        self.tree = Tree(self.source)
        self.steps: list[str] = []
        """The steps taken, as text."""
        self.calls: list[str] = []
        """The steps taken, as calls that repeat them."""
        self.count = 0
        self.seen = Read()
        """The tables of the target at the last read."""
        self.after_run: Read | None = None
        """The tables after the last run, if it was complete; None if that run was killed or refused."""
        self.foreign: Counter[Seen] = Counter()
        """Rows that others added to the target."""
        self.deleted: Counter[tuple[int, str]] = Counter()
        """Rows that others deleted."""
        self.touched: set[str] = set()
        """Tables that others changed."""
        self.rewrote: set[str] = set()
        """The changed tables whose older files others rewrote: a run cannot replace these files."""
        self.messy = False
        """Files of the target or the migration's state were damaged: runs may report that, nothing else."""
        self.strings: set[str] = set()
        self.odd: set[str] = set()
        """Tables with conflicting column types or misplaced files: runs may refuse them."""
        self.loose: set[str] = set()
        """Tables whose rows may be duplicated, because the options allowed it."""
        self.kept = False
        self.died = False
        self.done: set[str] = set()
        """Sources that runs converted, and that no run has removed since."""
        self.maybe: set[str] = set()
        """Sources that killed runs may have converted."""
        self.unverified = False
        self.relied: dict[str, Version] = {}
        """Versions, by tag, that were deleted after they were listed: only the target has their rows."""
        self.archived: set[str] = set()
        """Tags of versions that `coldframe delete` has deleted."""
        self.trash: list[Version] = []
        """Versions that it has moved to the trash."""
        self.restored = False
        """Whether an older journal was restored."""
        self.read_back: set[str] = set()
        """Tags of the versions that verifying runs could read."""
        self.confirmed = False
        """Whether the last audit confirmed each line of the list."""
        self.last: dict[str, Any] | None = None
        self.fine = False
        """Whether the last run succeeded completely and nothing changed since."""
        self.listed: dict[str, Version] = {}
        """The sources of safe-to-delete.txt, in the versions listed."""

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._folder.cleanup()

    # The source.

    def add(
        self, place: int | str, rows: int = 3, name: int = 0, type: str = "int32", wide: bool = False
    ) -> None:
        """Adds a file, or replaces the file of this name."""
        where = place if isinstance(place, str) else PLACES[place % len(PLACES)]
        table = where.split("/")[0]
        if PLACES.index(where) >= PLAIN_PLACES:
            self.odd.add(table)
        self._put(f"{where}/{NAMES[name % len(NAMES)]}", rows, type, wide)

    def _put(self, path: str, count: int, type: str, wide: bool) -> None:
        table = path.split("/")[0]
        if table in FIXED:
            type, wide = "int32", False
        if type in ("int8", "int16") and table == "red":
            type = "int32"
        if type == "string":
            self.odd.add(table)
            self.strings.add(table)
        rows = self.tree.new_rows(count, type, wide)
        self._log(f"source {path}: {count} rows, {type}{', w' if wide else ''}")
        self.tree.put(path, rows, KINDS.get(table, "orc"), type, wide)
        self._source_changed()

    def change(self, which: int, how: str = "values", type: str = "int32") -> None:
        """Writes another version of a file."""
        before = self._pick(which)
        if before is None:
            return
        rows = before.rows
        if how == "grow":
            rows += self.tree.new_rows(2, before.type, before.wide)
        elif how == "shrink":
            rows = rows[: len(rows) // 2]
        elif how == "same":
            if before.health != "good":
                return
            same = self.tree.same_size(before.path)
            self._log(f"source {before.path}: other rows, same time{', same size' if same else ''}")
            self._source_changed()
            return
        if how == "type":
            self._put(before.path, len(rows), type, before.wide)
            return
        self._log(f"source {before.path}: {how}, {len(rows)} rows")
        self.tree.put(before.path, rows, before.kind, before.type, before.wide)
        self._source_changed()

    def compact(self, which: int, how: str = "new") -> None:
        """Rewrites the files of a partition as Hive does. `new`: CONCATENATE into a new file; `first`: into
        an existing one; `overwrite`: INSERT OVERWRITE of the same rows with new file names; `refill`: with
        some old file names.
        """
        picked = self._pick(which)
        if picked is None:
            return
        folder = picked.path.rpartition("/")[0]
        mates = sorted(path for path in self.tree.now if path.rpartition("/")[0] == folder)
        versions = [self.tree.now[path] for path in mates]
        if any(version.health != "good" for version in versions):
            return
        # Rewritten files may share ids.
        rows = tuple({row.id: row for version in versions for row in version.rows}.values())
        type = max((version.type for version in versions), key=TYPES.index)
        wide = any(version.wide for version in versions)
        if type == "string" and any(version.type != "string" for version in versions):
            return
        if type == "string":
            type = "string"
        self._log(f"source {folder}: {', '.join(mates)} rewritten ({how}), {len(rows)} rows")
        free = [f"{folder}/g{number}" for number in range(100) if f"{folder}/g{number}" not in self.tree.now]
        half = len(rows) // 2
        pieces = {
            "new": {free[0]: rows},
            "first": {mates[0]: rows},
            "overwrite": {free[0]: rows[:half], free[1]: rows[half:]},
            "refill": {mates[-1]: rows[:half], free[0]: rows[half:]},
        }[how]
        for path in mates:
            if path not in pieces:
                self.tree.remove(path)
        for path, some in pieces.items():
            self.tree.put(path, some, picked.kind, type, wide)
        self._source_changed()

    def remove(self, which: int) -> None:
        picked = self._pick(which)
        if picked is not None:
            self._log(f"source {picked.path}: removed")
            self.tree.remove(picked.path)
            self._source_changed()

    def move(self, which: int, place: int) -> None:
        """Moves a file to another partition of its table, as re-partitioning does."""
        picked = self._pick(which)
        if picked is None or picked.health != "good":
            return
        top = picked.path.split("/")[0]
        there = [where for where in PLACES if where.split("/")[0] == top]
        where = there[place % len(there)]
        path = f"{where}/{picked.path.rpartition('/')[2]}"
        if path in self.tree.now:
            return
        if PLACES.index(where) >= PLAIN_PLACES:
            self.odd.add(top)
        self._log(f"source {picked.path}: moved to {path}")
        self.tree.remove(picked.path)
        self.tree.put(path, picked.rows, picked.kind, picked.type, picked.wide)
        self._source_changed()

    def spoil(self, which: int, how: str = "cut") -> None:
        picked = self._pick(which)
        if picked is not None and picked.health == "good":
            self._log(f"source {picked.path}: spoilt ({how})")
            self.tree.spoil(picked.path, how)
            self._source_changed()

    def delete_what_is_listed(self) -> None:
        """Audits the list of safe sources, then deletes them."""
        self.audit(listed=True)
        if not self.confirmed:
            return
        for path, version in self.listed.items():
            if self.tree.now.get(path) == version:
                self._log(f"source {path}: deleted, as listed")
                self.tree.remove(path)
                self.relied[version.tag] = version
        self._source_changed()

    def delete_by_verb(self, move: bool = False, at: int = 0) -> None:
        """Deletes by `coldframe delete`; with `at`, it is killed after so many sources."""
        place = self.target / HOME / "safe-to-delete.txt"
        if not place.exists():
            return
        self._log(f"coldframe delete{' --to' if move else ''}{f', killed at {at}' if at else ''}")
        trash, text = self.source.parent / "trash", place.read_text()
        result = None
        with deleting_until(at):
            try:
                result = delete(place, to=trash if move else None)
            except Killed:
                pass
            except ColdframeError as error:
                laws.after_refused_audit(self, error)
                return
        gone = {path: version for path, version in self.tree.now.items() if not (self.source / path).exists()}
        # A killed run may have been completed.
        self.read_target()
        laws.after_deletion(self, laws.listed_paths(text, self.source), gone, result)
        for path, version in gone.items():
            del self.tree.now[path]
            self.relied[version.tag] = version
            self.archived.add(version.tag)
            self.trash += [version] if move else []
            self.listed.pop(path, None)
        self.done -= gone.keys()
        self.maybe -= gone.keys()
        self._source_changed()

    def bring_back(self, which: int) -> None:
        """Moves a source from the trash to its old place."""
        if not self.trash:
            return
        version = self.trash.pop(which % len(self.trash))
        if version.path in self.tree.now:
            return
        self._log(f"source {version.path}: back from the trash")
        (self.source / version.path).parent.mkdir(parents=True, exist_ok=True)
        os.rename(self.source.parent / "trash" / version.path, self.source / version.path)
        self.tree.now[version.path] = version
        self.relied.pop(version.tag, None)
        self._source_changed()

    def back_up_journal(self) -> None:
        state, backup = self.target / HOME / "state", self.source.parent / "backup"
        if state.exists():
            self._log("journal: backed up")
            shutil.rmtree(backup, ignore_errors=True)
            shutil.copytree(state, backup)

    def restore_journal(self) -> None:
        state, backup = self.target / HOME / "state", self.source.parent / "backup"
        if state.exists() and backup.exists():
            self._log("journal: restored")
            shutil.rmtree(state)
            shutil.copytree(backup, state)
            self.restored = True
            self.maybe |= self.done
            self._source_changed()

    # Runs.

    def run(
        self,
        on_error: str = "raise",
        on_vanished: str = "fail",
        on_foreign_changes: str = "refuse",
        file_bytes: int = 128 << 20,
        split_bytes: int = 128 << 20,
        codec: str = "zstd",
        include: int = 0,
        exclude: int = 0,
        verify: bool = True,
        fresh: bool = False,
        dropped: bool = True,
        archived: str = "drop",
    ) -> None:
        given = dict(locals())
        del given["self"]
        self._run(given)

    def again(self) -> None:
        """Repeats the last run."""
        if self.last is not None:
            self._run({**self.last, "fresh": False})

    def killed_run(self, at: int, **given: Any) -> None:
        """A run that is killed at operation `at`, if it gets that far."""

        def strike() -> None:
            raise Killed

        given = self._defaults(given)
        self._run(given, at=at, strike=strike)

    def raced_run(self, at: int, which: int, how: str = "values", **given: Any) -> None:
        """A run during which a source changes or others write to the target."""
        listed = self._list_written()

        def strike() -> None:
            self.struck_late = self._list_written() != listed
            if how == "remove":
                self.remove(which)
            elif how == "others":
                self.others_append(which)
            else:
                self.change(which, how)

        self._run(self._defaults(given), at=at, strike=strike)

    def _defaults(self, given: dict[str, Any]) -> dict[str, Any]:
        names = World.run.__kwdefaults__ or {}
        code = World.run.__code__.co_varnames[1 : World.run.__code__.co_argcount]
        return {**dict(zip(code, World.run.__defaults__ or (), strict=True)), **names, **given}

    def _run(self, given: dict[str, Any], at: int | None = None, strike: Any = None) -> None:
        include, exclude = INCLUDES[given["include"]], EXCLUDES[given["exclude"]]
        changed = {name: value for name, value in given.items() if value != self._defaults({})[name]}
        self._log(f"run {changed}" + (f" struck at {at}" if at is not None else ""))
        before = self.seen
        self.struck_late = False
        sources = dict(self.tree.now)
        self._declare()
        report, died, refused = None, False, None
        with contextlib.ExitStack() as stack:
            if at is not None:
                stack.enter_context(striking(at, strike))
            try:
                report = migrate(
                    InProcess(),
                    self.source,
                    self.target,
                    to=self.to,
                    on_error=given["on_error"],
                    on_vanished=given["on_vanished"],
                    archived_rows=given["archived"],
                    on_foreign_changes=given["on_foreign_changes"],
                    target_file_bytes=given["file_bytes"],
                    split_bytes=given["split_bytes"],
                    codec=given["codec"],
                    include=include,
                    exclude=exclude,
                    verify=given["verify"],
                    fresh=given["fresh"],
                    dropped=("*",) if given["dropped"] else (),
                )
            except Killed:
                died = True
            except ColdframeError as error:
                refused = error
        claims = Claims(
            before=before,
            sources=sources,
            done=frozenset(self.done),
            maybe=frozenset(self.maybe),
            given=given,
            include=include,
            exclude=exclude,
            report=report,
            refused=refused,
            raced=at is not None,
        )
        self.last = given
        self._remember(claims, died)
        self._list(died or refused is not None, sources)
        self.seen = engines.read(self.target, self.to)
        self.after_run = None if died or refused else self.seen
        laws.after_run(self, claims, died)
        self.died = died or (self.died and refused is not None)
        self.fine = claims.fine
        if self.fine:
            self.loose = set()

    def _declare(self) -> None:
        """Writes the entries of tables.toml that match files: a run refuses entries without a file."""
        place = self.source / "tables.toml"
        tables = sorted(FIXED & {path.split("/")[0] for path in self.tree.now})
        place.unlink(missing_ok=True)
        if tables:
            place.write_text("".join(ENTRY.format(name=name) for name in tables))

    def _remember(self, claims: Claims, died: bool) -> None:
        if claims.given["archived"] == "drop":
            # The user has named these rows: those of sources that are gone, and those that are replaced.
            named = self.relied if claims.given["on_vanished"] == "remove" else {}
            replaced = {
                t for t, v in self.relied.items() if v.path in claims.sources and t not in self.archived
            }
            self.relied = {t: v for t, v in self.relied.items() if t not in named and t not in replaced}
        if died:
            self.maybe |= claims.sources.keys()
        elif claims.report is not None:
            if claims.given["on_vanished"] == "remove" and not (claims.keeps or claims.report.exit_code):
                gone = {path for path in self.done | self.maybe if path not in claims.sources}
                gone = {path for path in gone if claims.selects(path)}
                self.done, self.maybe = self.done - gone, self.maybe - gone
            for table in claims.report.tables:
                if any(reason.kind == "removed" for reason in table.verdict.reasons):
                    # A vanished source is no longer converted, even if the run fails for another reason.
                    self.done -= set(table.vanished)
                for file in table.files:
                    if file.status in ("converted", "salvaged", "held"):
                        self.done.add(file.source)
                    elif claims.keeps:
                        # The lost rows of this file may be in a new file.
                        self.loose.add(file.source.split("/")[0])
        if claims.given["verify"]:
            self.read_back |= {version.tag for version in self.tree.now.values()}
        self.unverified = self.unverified or not claims.given["verify"]
        self._loosen(claims)

    def _loosen(self, claims: Claims) -> None:
        """Notes the tables whose rows may be duplicated from now on, because vanished sources stay: by
        `on_vanished="keep"`, or outside the selection of the run.
        """
        gone = {
            self.tree.versions[row.tag].table
            for row in claims.before.rows
            if row.tag in self.tree.versions and self.tree.versions[row.tag].path not in self.tree.now
        }
        # The last read of the target may not have shown rows of all these sources.
        gone |= {path for path in self.done | self.maybe if path not in self.tree.now}
        if claims.keeps:
            self.kept = True
            if self.restored:
                self.loose |= {version.path.split("/")[0] for version in self.tree.versions.values()}
        if claims.keeps or claims.include or claims.exclude:
            self.loose |= {table.split("/")[0] for table in gone}
            if claims.include or claims.exclude:
                # The run sees only a part of rewritten files.
                self.loose |= {version.table.split("/")[0] for version in self.tree.now.values()}

    def _list_written(self) -> int:
        place = self.target / HOME / "safe-to-delete.txt"
        return place.stat().st_ino if place.exists() else 0

    def _list(self, died: bool, sources: dict[str, Version]) -> None:
        place = self.target / HOME / "safe-to-delete.txt"
        text = place.read_text() if place.exists() else ""
        listed = laws.listed_paths(text, self.source)
        now = {path: self.tree.now[path] for path in listed if path in self.tree.now}
        if self.struck_late:
            now = {path: version for path, version in now.items() if sources.get(path) == version}
        if died:
            # The list may be the old list, this run's list, or missing.
            now = {path: version for path, version in now.items() if self.listed.get(path) == version}
        self.listed = now

    # Changes by others in the target.

    def others_append(self, which: int) -> None:
        foreign.append(self, which)

    def others_delete(self, which: int, all_of_it: bool = False) -> None:
        foreign.delete(self, which, all_of_it)

    def others_compact(self, which: int) -> None:
        foreign.compact(self, which)

    def others_vacuum(self, which: int) -> None:
        foreign.vacuum(self, which)

    def damage_target(self, which: int, how: str = "delete") -> None:
        foreign.damage(self, which, how)

    def audit(self, deep: bool = False, listed: bool = False) -> None:
        """Audits the target, and with `listed` the list of safe sources."""
        self.confirmed = False
        if not (self.target / HOME).exists():
            return
        place = self.target / HOME / "safe-to-delete.txt"
        if listed and not place.exists():
            return
        self._log(f"audit{' --deep' if deep else ''}{' --before-delete' if listed else ''}")
        try:
            result = audit(self.target, deep=deep, before_delete=place if listed else None)
        except ColdframeError as error:
            laws.after_refused_audit(self, error)
            return
        laws.after_audit(self, result)
        if listed:
            self.confirmed = result.exit_code == 0
            paths = laws.listed_paths(place.read_text(), self.source)
            laws.after_check(self, result, [path for path in paths if path in self.tree.now])

    # Helpers.

    def pick_table(self, which: int) -> str | None:
        """A table of the target with rows."""
        tables = sorted(path for path, rows in self.seen.tables.items() if rows)
        return tables[which % len(tables)] if tables else None

    def read_target(self) -> None:
        """Reads the target after others changed it."""
        self.seen = engines.read(self.target, self.to)

    def _pick(self, which: int) -> Version | None:
        there = sorted(self.tree.now)
        return self.tree.now[there[which % len(there)]] if there else None

    def _source_changed(self) -> None:
        self.fine = False

    def _log(self, what: str) -> None:
        self.steps.append(what)
        self.count += 1


def failure_text(world: World, error: Broken) -> str:
    """The text of a failure: the law, the steps that led to it, and the calls that repeat them."""
    calls = [f"with World({world.to!r}) as world:", *(f"    {call}" for call in world.calls)]
    return "\n".join([str(error), *(f"  {step}" for step in world.steps), *calls])
