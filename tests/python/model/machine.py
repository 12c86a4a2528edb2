"""The steps of `World` as rules of hypothesis."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from model.laws import Broken
from model.tree import TYPES
from model.world import PLACES, World, failure_text

STEPS: Counter[str] = Counter()

SMALL = st.integers(0, 7)
AT = st.integers(1, 120)
VANISHED = st.sampled_from(["fail", "remove", "keep", "remove"])
FOREIGN = st.sampled_from(["refuse", "append"])
ARCHIVED = st.sampled_from(["drop", "ask", "keep"])
ON_ERROR = st.sampled_from(["raise", "skip", "quarantine"])
FILE_BYTES = st.sampled_from([128 << 20, 0, 700])
SPLIT_BYTES = st.sampled_from([128 << 20, 1])
HOW = st.sampled_from(["values", "grow", "shrink", "type", "same"])


def machine(to: str) -> Any:
    """The rules for a kind of target."""

    class Migration(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.world = World(to)

        def do(self, name: str, *given: Any, **named: Any) -> None:
            STEPS[name] += 1
            arguments = [*map(repr, given), *(f"{key}={value!r}" for key, value in named.items())]
            self.world.calls.append(f"world.{name}({', '.join(arguments)})")
            try:
                getattr(self.world, name)(*given, **named)
            except Broken as error:
                raise AssertionError(failure_text(self.world, error)) from None

        @initialize(places=st.lists(st.integers(0, 8), max_size=4), ran=st.booleans())
        def begin(self, places: list[int], ran: bool) -> None:
            for number, place in enumerate(places):
                self.do("add", place, number + 1, number)
            if ran:
                self.do("run")

        @rule(place=st.integers(0, len(PLACES) - 1), rows=st.integers(1, 9), name=SMALL)
        def add(self, place: int, rows: int, name: int) -> None:
            self.do("add", place, rows, name)

        @rule(
            place=st.integers(0, 4),
            rows=st.integers(0, 9),
            name=SMALL,
            type=st.sampled_from(TYPES),
            wide=st.booleans(),
        )
        def add_typed(self, place: int, rows: int, name: int, type: str, wide: bool) -> None:
            self.do("add", place, rows, name, type, wide)

        @rule(which=SMALL, how=HOW, type=st.sampled_from(TYPES))
        def change(self, which: int, how: str, type: str) -> None:
            self.do("change", which, how, type)

        @rule(which=SMALL, how=st.sampled_from(["new", "first", "overwrite", "refill"]))
        def compact(self, which: int, how: str) -> None:
            self.do("compact", which, how)

        @rule(which=SMALL)
        def remove(self, which: int) -> None:
            self.do("remove", which)

        @rule(which=SMALL, place=SMALL)
        def move(self, which: int, place: int) -> None:
            self.do("move", which, place)

        @rule(which=SMALL, how=st.sampled_from(["cut", "garbage", "empty", "stripe"]))
        def spoil(self, which: int, how: str) -> None:
            self.do("spoil", which, how)

        @rule()
        def delete_what_is_listed(self) -> None:
            self.do("delete_what_is_listed")

        @rule(move=st.booleans(), at=st.sampled_from([0, 0, 0, 1, 2]))
        def delete_by_verb(self, move: bool, at: int) -> None:
            self.do("delete_by_verb", move, at)

        @rule(which=SMALL)
        def bring_back(self, which: int) -> None:
            self.do("bring_back", which)

        @rule()
        def back_up_journal(self) -> None:
            self.do("back_up_journal")

        @rule()
        def restore_journal(self) -> None:
            self.do("restore_journal")

        @rule(on_vanished=VANISHED, archived=ARCHIVED)
        def plain_run(self, on_vanished: str, archived: str) -> None:
            self.do("run", on_vanished=on_vanished, archived=archived)

        @rule(
            on_error=ON_ERROR,
            on_vanished=VANISHED,
            on_foreign_changes=FOREIGN,
            file_bytes=FILE_BYTES,
            split_bytes=SPLIT_BYTES,
            codec=st.sampled_from(["zstd", "snappy"]),
            include=st.integers(0, 5),
            exclude=st.integers(0, 3),
            verify=st.sampled_from([True, True, True, False]),
            fresh=st.sampled_from([False, False, False, True]),
            dropped=st.sampled_from([True, True, False]),
            archived=ARCHIVED,
        )
        def run(self, **given: Any) -> None:
            self.do("run", **given)

        @rule()
        def again(self) -> None:
            self.do("again")

        @rule(
            at=AT,
            on_vanished=VANISHED,
            on_foreign_changes=FOREIGN,
            file_bytes=FILE_BYTES,
            split_bytes=SPLIT_BYTES,
            fresh=st.sampled_from([False, False, False, True]),
            archived=ARCHIVED,
        )
        def killed_run(self, **given: Any) -> None:
            self.do("killed_run", **given)

        @rule(
            at=AT,
            which=SMALL,
            how=st.sampled_from(["values", "grow", "shrink", "remove", "same", "others"]),
            on_vanished=VANISHED,
            on_foreign_changes=FOREIGN,
            file_bytes=FILE_BYTES,
        )
        def raced_run(self, **given: Any) -> None:
            self.do("raced_run", **given)

        @rule(deep=st.booleans(), listed=st.booleans())
        def audit(self, deep: bool, listed: bool) -> None:
            self.do("audit", deep, listed)

        @rule(which=SMALL)
        def others_append(self, which: int) -> None:
            self.do("others_append", which)

        @rule(which=SMALL, all_of_it=st.booleans())
        def others_delete(self, which: int, all_of_it: bool) -> None:
            self.do("others_delete", which, all_of_it)

        @rule(which=SMALL)
        def others_compact(self, which: int) -> None:
            self.do("others_compact", which)

        @rule(which=SMALL)
        def others_vacuum(self, which: int) -> None:
            self.do("others_vacuum", which)

        @rule(which=SMALL, how=st.sampled_from(["delete", "cut", "flip", "log", "catalog", "journal"]))
        def damage_target(self, which: int, how: str) -> None:
            self.do("damage_target", which, how)

        def teardown(self) -> None:
            self.world.close()

    return Migration
