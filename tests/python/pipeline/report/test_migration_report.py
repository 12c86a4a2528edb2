"""What users see of a migration: progress, and a report that stays small."""

from __future__ import annotations

import html.parser
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from estates import Estate

from coldframe.pipeline.report import figures, pages, progress
from coldframe.pipeline.report.figures import duration_text, rows_lost_text
from coldframe.pipeline.report.files import report_json
from coldframe.pipeline.report.model import FileReport, Report, TableReport
from coldframe.pipeline.report.pages import page
from coldframe.pipeline.report.progress import MAX_BUCKETS, Lines, Pace, Timeline, progress_for
from coldframe.pipeline.report.summary import summary
from coldframe.pipeline.report.table_page import table_page

DATA = Path(__file__).parents[3] / "data"
DAMAGE = {"offset": 10, "length": 20, "rows_lost": 5, "structure": "stripe 0", "reason": "torn"}


class Links(html.parser.HTMLParser):
    """Collects links, and asserts that tags are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A self-closing tag needs no end tag."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def links(text: str) -> list[str]:
    parser = Links()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser.links


def report_of_many(tables: int, files: int) -> Report:
    name = "warehouse/a_long_name_of_a_database/and_of_a_table/dt=2014-01-01/region=europe/000000_0"
    good = FileReport(name, "converted", 1 << 20, 1000, 1 << 19, [name], True)
    bad = FileReport(name, "salvaged", 1 << 20, 1000, 1 << 19, [name], True, [DAMAGE] * 12)
    summaries = [
        TableReport(f"database.table{at}", f"t{at}", "orc", [good] * (files // 2) + [bad] * (files // 2))
        for at in range(tables)
    ]
    return Report("/src", "/dst", "parquet", "skip", summaries)


@pytest.mark.parametrize(("tables", "files"), [(1, 10_001), (10_001, 2), (100, 100)])
def test_the_pages_of_a_million_files_stay_small(
    tables: int, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists end at 10,000 files, and at a number of tables: beyond that, only numbers change."""
    monkeypatch.setattr(pages, "MAX_ROWS", 10_000)
    sizes: list[list[int]] = []
    for more in (0, 1):
        given = (count + 5000 * more if count > 10_000 else count for count in (tables, files))
        report = report_of_many(*given)
        first, table = page(report), table_page(report, report.tables[0])
        assert "report/1.html" in links(first)
        sizes.append([len(first), len(table), len(json.dumps(report.tables[0].to_json()))])
        assert max(sizes[-1][:2]) < 5 << 20
        assert sizes[-1][2] < 20 << 20
    assert all(abs(size - larger) <= size / 100 for size, larger in zip(*sizes, strict=True)), sizes


def test_a_table_has_a_page_of_its_own(estate: Estate) -> None:
    for number in range(50):
        estate.orc(f"t{number:02d}/1", {"a": [number]})
    (estate.source / "t49/2").write_bytes(b"no format of ours")
    estate.migrate()
    home = estate.target / "_coldframe"
    targets = links((home / "report.html").read_text())
    assert len(set(targets)) == 50
    # Tables with problems come first.
    assert "t49" in (home / targets[0]).read_text()
    for link in targets:
        assert links((home / link).read_text()) == ["../report.html"]
    assert "Problems in 1 of 50 tables" in (home / "report.html").read_text()
    lines = [json.loads(line) for line in (home / "files.jsonl").read_text().splitlines()]
    assert len(lines) == 51
    assert {line["status"] for line in lines} == {"converted", "failed"}
    assert "at most" in (home / "report.html").read_text()  # the throughput
    for number in range(10, 50):
        estate.orc(f"t{number:02d}/1", {"a": [number]}).unlink()
    (estate.source / "t49/2").unlink()
    estate.migrate(on_vanished="remove", dropped=["*"])
    estate.migrate()
    assert len(list((home / "report").iterdir())) == 10
    runs = [json.loads(line) for line in (home / "runs.jsonl").read_text().splitlines()]
    assert [run["files"] for run in runs] == [51, 10, 10]
    text = (home / "report.html").read_text()
    assert text.count(" UTC</td>") == 3  # the trend
    assert links(text)[:1] == ["report/1.html"]


def test_many_tables_without_problems_share_pages(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "OWN_PAGES", 5)
    monkeypatch.setattr(pages, "SHARED", 2)
    monkeypatch.setattr(pages, "SHARED_FILES", 1)
    monkeypatch.setattr(figures, "DRAWN_ROWS", 3)
    for number in range(6):
        estate.orc(f"t{number}/1", {"a": [number]})
    estate.orc("t1/2", {"a": [1]})
    (estate.source / "t3/2").write_bytes(b"no format of ours")
    estate.migrate()
    home = estate.target / "_coldframe"
    text = (home / "report.html").read_text()
    drawn = links(text)
    # The table with a problem is first, in the list of problems and in that of tables.
    assert drawn == ["report/4.html"] * 2 + ["report/tables-1.html#t1", "report/2.html"]
    data = json.loads(text.split('<script type="application/json">')[1].split("</script>")[0])
    others = ["report/tables-1.html#t3", "report/tables-2.html#t5", "report/tables-2.html#t6"]
    assert [row[1][1] for row in data] == others
    assert [row[0] for row in data] == [0, 0, 0]
    names = {"2.html", "4.html", "tables-1.html", "tables-2.html"}
    assert {path.name for path in (home / "report").iterdir()} == names
    shared = (home / "report/tables-1.html").read_text()
    assert links(shared) == ["../report.html"]
    assert '<section class="one" id="t1"><h2>t0</h2>' in shared
    assert '<section class="one" id="t3"><h2>t2</h2>' in shared
    estate.orc("t3/2", {"a": [3]})
    for number in range(2):
        (estate.source / f"t{number}").rename(estate.source / f"_t{number}")
    estate.migrate(on_vanished="remove", dropped=["*"])
    estate.migrate()
    # Few tables have pages of their own again.
    assert {path.name for path in (home / "report").iterdir()} == {f"{at}.html" for at in range(1, 5)}


def test_a_table_among_many_has_a_line_only_if_there_is_something_to_say() -> None:
    good = FileReport("f", "converted", 1 << 20, 1000, 1 << 19, ["f"], True, digest="1")
    tables = [TableReport(f"t{at}", f"t{at}", "orc", [good]) for at in range(150)]
    few = Report("/src", "/dst", "parquet", "skip", tables[:100])
    assert sum(" (orc): 1 found, 1 converted" in line for line in summary(few).splitlines()) == 100
    tables[7].missing.append("t7/part")
    many = Report("/src", "/dst", "parquet", "skip", tables)
    many.judge()
    lines = summary(many).splitlines()
    assert lines[0] == "149 tables without problems: 149 files, 149,000 rows, verified"
    assert lines[1].startswith("t7 (orc): 1 found, 1 converted; 1,000 rows")
    assert lines[2] == "  missing: t7/part"
    assert len(lines) == 5


def test_report_json_has_a_line_for_each_table() -> None:
    report = report_of_many(3, 4)
    text = "".join(report_json(report))
    assert json.loads(text) == json.loads(json.dumps(report.to_json(), default=str))
    assert [line[:21] for line in text.splitlines()[-5:]] == [*['  {"name": "database.'] * 3, " ]", "}"]
    assert json.loads("".join(report_json(report_of_many(0, 0))))["tables"] == []


def test_a_reason_after_the_judgement_changes_the_verdict() -> None:
    report = Report("/src", "/dst", "parquet", "skip", [])
    report.judge()
    assert report.exit_code == 0
    report.add_reason("unmatched")
    assert report.exit_code == 1


def test_equal_damage_shares_a_line() -> None:
    many = [{**DAMAGE, "offset": at * 100, "structure": f"stripe {at}", "reason": "torn"} for at in range(50)]
    other = {**DAMAGE, "rows_lost": None, "structure": "footer", "reason": "gone at 0x1f"}
    file = FileReport("t/1", "salvaged", 10_000, 100, 500, ["t/1"], True, [*many, other])
    text = table_page(report_of(TableReport("t", "t", "orc", [file])), TableReport("t", "t", "orc", [file]))
    assert "<li>50 places, 250 rows lost: stripe \u2026: torn</li>" in text
    assert "footer: gone at 0x1f" in text
    assert text.count("<tr>") < 10


def report_of(*tables: TableReport) -> Report:
    return Report("/src", "/dst", "parquet", "skip", list(tables), seconds=192.4)


def test_times_and_sizes_are_readable() -> None:
    seconds = [0.04, 9.9, 42, 192.4, 3600, 7500, 273_600]
    assert [duration_text(value) for value in seconds] == [
        *("0.0 s", "9.9 s", "42 s", "3 min 12 s", "1 h", "2 h 5 min", "3 d 4 h"),
    ]
    assert "3 min 12 s" in page(report_of())
    assert [rows_lost_text(damage) for damage in ([1, 2], [1, None], [None], [])] == [
        "3",
        "\u2265 1",
        "unknown",
        "0",
    ]


def test_a_directory_of_several_tables_counts_its_bytes_once(tmp_path: Path) -> None:
    shutil.copytree(DATA / "kudu" / "files" / "file_blocks", tmp_path / "src" / "tserver")
    estate = Estate(tmp_path)
    size = sum(path.stat().st_size for path in (tmp_path / "src").rglob("*") if path.is_file())
    report = estate.migrate(tables=None)
    assert len(report.tables) > 1
    assert size - len(report.tables) <= report.bytes_in <= size


def test_a_timeline_keeps_few_steps() -> None:
    timeline = Timeline()
    for second in range(10_000):
        timeline.add(10, 1, at=second / 2)
    assert sum(timeline.bytes) == 100_000
    assert sum(timeline.rows) == 10_000
    assert 100 < len(timeline.bytes) <= MAX_BUCKETS
    assert timeline.step * len(timeline.bytes) >= 4999.5


def test_a_log_gets_a_progress_line_at_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    out = io.StringIO()
    lines = Lines(out)
    lines.start(1, 10, 100 << 20)
    for _ in range(10):
        now += 10
        lines.advance("sales", 10 << 20, 1000)
    printed = out.getvalue().splitlines()
    rate = "30.0 %: 30.0 of 100.0 MiB, 3,000 rows, 1.0 MiB/s"
    assert printed[0] == f"{rate}, 0:00:30 to 0:01:50 left, at sales"
    assert len(printed) == 3


def test_no_time_is_estimated_before_three_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    pace = Pace(1000)
    now += 3600  # a session starts
    pace.add(10)
    now += 1
    pace.add(10)
    assert pace.left() == ""
    now += 1
    pace.add(10)
    assert pace.left() == "0:00:41 to 0:02:33 left"
    now += 48
    for _ in range(97):
        pace.add(10)
    assert pace.left() == "0:00:00 left"


def test_a_terminal_gets_a_progress_bar() -> None:
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    with progress_for(out) as bar:
        bar.start(1, 2, 100)
        bar.advance("sales", 100, 12_345)
    with progress_for(io.StringIO()) as plain:
        assert isinstance(plain, Lines)


def test_every_task_reports_progress(estate: Estate) -> None:
    estate.orc("t/1", {"a": range(1000)})
    estate.orc("u/1", {"a": range(10)})
    calls: list[Any] = []

    class Listener:
        def start(self, tables: int, files: int, size: int) -> None:
            calls.append((tables, files))

        def advance(self, table: str, size: int, rows: int) -> None:
            calls.append((table, rows))

    estate.migrate(progress=Listener())
    assert calls == [(2, 2), ("t", 1000), ("u", 10)]


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)
