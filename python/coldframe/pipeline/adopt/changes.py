"""How the files of a source differ from those that an adopted table has.

new        decoded, and added
kept       known, and unchanged: nothing is done
replaced   known, and changed since, or to be detached or proved by Spark: decoded again, and its entry in the
           table replaced
gone       no longer there: `on_vanished` says what happens
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coldframe.byte_size import size_text
from coldframe.errors import SchemaError
from coldframe.pipeline.adopt.records import FoundFile, FoundTable, TableOutcome, Verdict
from coldframe.pipeline.options import Options
from coldframe.pipeline.report.verdict import Reason
from coldframe.pipeline.sink.live import LiveFile
from coldframe.pipeline.source.defined import matching
from coldframe.pipeline.source.identity import identity_of, is_same_source


@dataclass
class Changes:
    """The difference between a source and the table of an earlier run."""

    new: list[FoundFile] = field(default_factory=list)
    """Those to decode: new ones, and changed ones."""
    kept: list[Verdict] = field(default_factory=list)
    replaced: list[Verdict] = field(default_factory=list)
    """What was known of the files that changed or are detached."""
    gone: list[Verdict] = field(default_factory=list)

    @property
    def out(self) -> list[Verdict]:
        """Those whose entries leave the table."""
        return [*self.replaced, *self.gone]


def changes_of(table: FoundTable, known: Sequence[Verdict], again: Collection[str] = ()) -> Changes:
    """Compares the files of a table with those of an earlier run. `again`: entries of the table whose files
    are decoded again even if they did not change.
    """
    changes = Changes()
    waiting = {(verdict.path, verdict.folder): verdict for verdict in known}
    for file in table.files:
        before = waiting.pop((file.path, file.folder), None)
        same = None if before is None else _still(file, before)
        if same is not None and same.entry not in again:
            changes.kept.append(same)
            continue
        changes.new.append(file)
        if before is not None:
            changes.replaced.append(before)
    changes.gone = list(waiting.values())
    return changes


def identity_now(file: FoundFile) -> str:
    """Size and times of a file, or of the files below a directory."""
    return file.identity or identity_of(file.path, file.storage_options)


def _still(file: FoundFile, before: Verdict) -> Verdict | None:
    """The verdict on a file if it is the one that was decoded; None if it may be another one."""
    now = identity_now(file)
    if (file.bytes, file.own) != (before.bytes, before.own) or not is_same_source(
        file.path, now, before.identity, before.digest, file.storage_options
    ):
        return None
    return replace(before, identity=now)


def settle_gone(changes: Changes, options: Options, outcome: TableOutcome) -> bool:
    """Decides on sources that are gone. Returns whether the table may be changed; raises if what was asked
    for cannot be right.
    """
    gone = changes.gone
    if not gone:
        return True
    outcome.vanished, outcome.on_vanished = [verdict.path for verdict in gone], options.on_vanished
    if options.on_vanished == "fail":
        return False
    if options.on_vanished == "keep":
        lost = next((verdict for verdict in gone if not verdict.reason), None)
        if lost is not None:
            raise SchemaError(
                f"{lost.path} is gone, and its rows were in no other file: they cannot be kept. Restore it, "
                "or take it out of the table (on_vanished remove)"
            )
        changes.kept += gone
        changes.gone = []
        return True
    gone_bytes = sum(verdict.bytes for verdict in gone)
    known = gone_bytes + sum(verdict.bytes for verdict in (*changes.kept, *changes.replaced))
    named = matching(outcome.name, options.dropped)
    if gone_bytes > options.most_vanished * known and not named:
        raise SchemaError(
            f"{len(gone):,} of its files are gone ({size_text(gone_bytes)} of {size_text(known)}), such as "
            f"{gone[0].path}: more than may be removed in one run (most_vanished). Is its disk mounted?"
        )
    return True


def by_others(
    known: Sequence[Verdict], present: Mapping[str, LiveFile], foreign: str
) -> tuple[list[Reason], bool]:
    """What others have changed in the table, and whether a run may change it all the same."""
    ours = {verdict.entry: verdict.rows for verdict in known if verdict.entry}
    allowed = foreign == "append"
    added = len(present.keys() - ours.keys())
    out = len(ours.keys() - present.keys())
    hidden = [present[path] for path in ours.keys() & present.keys() if present[path].rows != ours[path]]
    reasons = [
        Reason(kind, count, detail)
        for kind, count, detail in (
            ("known_foreign" if allowed else "foreign", added, ""),
            ("known_elsewhere" if allowed else "rows_elsewhere", out, ""),
            (
                "known_gone" if allowed else "rows_gone",
                sum(file.hidden for file in hidden) or len(hidden),
                f"in {len(hidden):,} file(s)",
            ),
        )
        if count
    ]
    return reasons, allowed or not reasons


def check_whole(out: Sequence[Verdict], present: Mapping[str, LiveFile]) -> None:
    """Raises if rows of files that leave the table can no longer be identified."""
    for verdict in out:
        if not verdict.entry:
            continue
        file = present.get(verdict.entry)
        if file is None:
            raise SchemaError(
                f"{verdict.path} was changed or is gone, and others have rewritten its rows into other files "
                "of the table: which they are cannot be told. Adopt into a new directory"
            )
        if file.rows != verdict.rows:
            raise SchemaError(
                f"others have deleted rows of {verdict.path} in the table. It was changed, is gone or is to "
                "be detached, so its entry would be replaced, and these rows would come back. Let an engine "
                "rewrite the data files of the table first, or adopt into a new directory"
            )
