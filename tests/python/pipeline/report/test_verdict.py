"""The verdict of tables and runs: text, colour, exit code, and which sources may be listed."""

from __future__ import annotations

import itertools

import pytest

from coldframe.pipeline.report.verdict import (
    KINDS,
    Failed,
    NotVerified,
    Partial,
    Reason,
    RunSummary,
    SourceSummary,
    TableSummary,
    Verified,
    judge_run,
    judge_table,
    may_be_listed,
)

FINE = SourceSummary("converted", verified=True, digested=True)


def table(**changes: object) -> TableSummary:
    return TableSummary(**{"written": 2, "unverified": 0, "statuses": {"converted": 2}, **changes})  # type: ignore[arg-type]


def test_a_table_with_nothing_wrong_is_verified() -> None:
    verdict = judge_table(table())
    assert isinstance(verdict, Verified)
    assert (verdict.exit_code, verdict.text, verdict.colour) == (0, "verified", "good")
    assert may_be_listed(verdict, FINE)
    assert not may_be_listed(verdict, SourceSummary("converted", verified=True, digested=False))
    assert not may_be_listed(verdict, SourceSummary("converted", verified=False, digested=True))
    assert not may_be_listed(verdict, SourceSummary("salvaged", verified=True, digested=True))


@pytest.mark.parametrize(
    ("changes", "kind", "exit_code", "listed"),
    [
        ({"statuses": {"converted": 1, "failed": 1}}, Failed, 1, False),
        ({"statuses": {"converted": 1, "changed": 1}}, Failed, 1, False),
        ({"statuses": {"converted": 1, "withheld": 1}}, Failed, 1, False),
        ({"statuses": {"converted": 1, "held": 1}}, Partial, 0, False),
        ({"statuses": {"converted": 1, "salvaged": 1}}, Partial, 0, True),
        ({"statuses": {"converted": 1, "quarantined": 1}}, Partial, 0, True),
        ({"missing": 1}, Failed, 1, False),
        ({"foreign": 1}, Failed, 1, False),
        ({"partial": 1}, Failed, 1, False),
        ({"metastore": 1}, Failed, 1, False),
        ({"error": True}, Failed, 1, False),
        ({"unverified": 1}, NotVerified, 0, False),
        ({"vanished": 1}, Failed, 1, False),
        ({"vanished": 1, "on_vanished": "keep"}, Verified, 0, True),
        ({"vanished": 1, "on_vanished": "remove"}, Verified, 0, True),
        ({"written": 0, "statuses": {"empty": 1}}, NotVerified, 0, True),
        ({"reasons": (Reason("rows_gone", 7),)}, Failed, 1, False),
        ({"losses": {"malformed-text": 3}}, Partial, 0, True),
    ],
)
def test_each_count_changes_the_verdict(
    changes: dict[str, object], kind: type, exit_code: int, listed: bool
) -> None:
    verdict = judge_table(table(**changes))
    assert (type(verdict), verdict.exit_code, may_be_listed(verdict, FINE)) == (kind, exit_code, listed)
    # Only a verified table is called verified, and is green.
    assert ("verified" in verdict.text.split(":")[0].split()) == (kind is Verified)
    assert (verdict.colour == "good") == (kind is Verified)


def test_an_allowed_loss_is_a_note() -> None:
    cut = SourceSummary("converted", verified=True, digested=True, losses={"malformed-text": 3})
    allowed = frozenset({"malformed-text"})
    verdict = judge_table(table(losses={"malformed-text": 3}), allowed)
    assert isinstance(verdict, Verified)
    assert [note.text for note in verdict.notes] == [
        "3 values were changed, as allowed: text that is not UTF-8 has U+FFFD"
    ]
    assert may_be_listed(verdict, cut, allowed)
    assert not may_be_listed(verdict, cut)


def test_a_run_is_as_bad_as_its_worst_table() -> None:
    cases = {
        Verified: table(),
        Partial: table(statuses={"salvaged": 1}),
        NotVerified: table(unverified=1),
        Failed: table(missing=1),
    }
    ranks = list(cases)
    for left, right in itertools.product(ranks, ranks):
        verdict = judge_run([judge_table(cases[left]), judge_table(cases[right])])
        assert type(verdict) is max(left, right, key=ranks.index)
    assert isinstance(judge_run([]), NotVerified)
    assert judge_run([judge_table(table())], RunSummary(unread=1)).exit_code == 1
    assert judge_run([judge_table(table())], RunSummary(stray=1, excluded=1, hidden=1)).exit_code == 0
    # A table without rows does not lower the verdict of the other tables.
    empty = judge_table(table(written=0, statuses={"empty": 1}))
    assert isinstance(judge_run([judge_table(table()), empty]), Verified)
    assert isinstance(judge_run([empty, empty]), NotVerified)


def test_every_kind_has_a_text_and_a_grade() -> None:
    for kind, about in KINDS.items():
        assert Reason(kind).text == f"1 {about.singular}"
        assert Reason(kind, 2000).text == f"2,000 {about.plural}"
        # A reason for exit code 1 keeps sources off the list, except a reason without a table.
        assert about.blocks or about.grade != "failed" or "tables.toml" in about.singular
