"""The migration report in a browser: display, accessibility, keyboard; also with 10,000 files."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from browsing import WIDTHS, Browser

from coldframe.pipeline.report.model import FileReport, LeftOut, Report, TableReport
from coldframe.pipeline.report.pages import page
from coldframe.pipeline.report.table_page import shared_page, table_page

FOLDER = "warehouse/a_long_name_of_a_database/and_of_a_table/dt=2014-01-01/region=europe"
DAMAGE = {"length": 900, "rows_lost": 50, "reason": "zlib: invalid data, or its checksum differs"}


def table(number: int, files: int, bad: int) -> TableReport:
    reports = [
        FileReport(f"{FOLDER}/{at:06d}_0", "converted", (at + 1) << 12, 1000 + at, 1 << 10, ["x"], True)
        for at in range(files)
    ]
    for report in reports[:bad]:
        report.status = "salvaged"
        report.damage = [
            {**DAMAGE, "offset": at * 1000, "structure": f"row group {at}: column 1"} for at in range(50)
        ]
    if bad > 2:
        reports[1].status, reports[1].error, reports[1].damage = "failed", "disk: no space left on device", []
        reports[2].status, reports[2].rows = "quarantined", 0
    return TableReport(f"sales.table_{number:03d}", f"t{number}", "rcfile", reports)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("report")
    tables = [table(number, 40, 4 if number in (36, 38) else 0) for number in range(99)]
    tables.append(table(99, 10_000, 100))
    run = {
        "started": 1.7e9,
        "seconds": 192.4,
        "files": 9000,
        "problems": 3,
        "rows": 1_000_000,
        "rows_lost": "250",
        "safe_to_delete": 8990,
        "verdict": "Failed: 1 file failed",
        "colour": "bad",
    }
    report = Report(
        "/mnt/old/warehouse",
        "/mnt/lake",
        "parquet",
        "skip",
        tables,
        hidden=3,
        hidden_names=["_SUCCESS"],
        left_out=[LeftOut("hbase", "snapshot", name="before_the_split")],
        timeline={"step_seconds": 1.0, "bytes": [1 << 20, 3 << 20, 2 << 20], "rows": [1, 2, 3]},
        runs=[run, {**run, "started": 1.71e9, "verdict": "Verified", "colour": "good"}],
        seconds=4000,
        started=1.71e9,
    )
    (folder / "report").mkdir()
    texts = {
        "first": (folder / "report.html", page(report)),
        "damaged": (folder / "report" / "37.html", table_page(report, tables[36])),
        "shared": (
            folder / "report" / "tables-1.html",
            shared_page(report, [(f"t{at + 1}", tables[at]) for at in range(3)]),
        ),
        "large": (folder / "report" / "100.html", table_page(report, tables[99])),
    }
    for path, text in texts.values():
        path.write_text(text)
    return {name: path for name, (path, _) in texts.items()}


@pytest.mark.parametrize("name", ["first", "damaged", "shared"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_accessibility(browser: Browser, pages: dict[str, Path], name: str, dark: bool, width: int) -> None:
    browser.open(pages[name], width, dark=dark)
    assert browser.problems() == []
    assert browser.overflow() == []
    assert browser.violations() == []
    sizes = browser.evaluate(
        "[...document.querySelectorAll('main *')].filter((element) => element.children.length === 0 && "
        "element.textContent.trim()).map((element) => parseFloat(getComputedStyle(element).fontSize))"
    )
    assert 11 <= min(sizes) <= max(sizes) <= 26  # at both widths


def test_ten_thousand_files_load_within_a_second(browser: Browser, pages: dict[str, Path]) -> None:
    assert pages["large"].stat().st_size < 3_000_000
    assert min(browser.open(pages["large"], 1400) for _ in range(5)) < 1000
    assert browser.evaluate("document.querySelector('.filter [role=status]').textContent") == (
        "500 of 10,000 shown"
    )


def shown(browser: Browser, column: int) -> list[str]:
    cells = f"(row) => row.cells[{column}].textContent"
    rows = "[...document.querySelector('table.sorted').tBodies[0].rows]"
    texts: list[str] = browser.evaluate(f"{rows}.map({cells})")
    return texts


def test_problems_come_first_and_lead_to_their_table(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["first"], 1400)
    names = browser.evaluate("[...document.querySelectorAll('.wrong li > a')].map((a) => a.textContent)")
    assert names == ["sales.table_036", "sales.table_038", "sales.table_099"]
    assert shown(browser, 0)[:4] == [*names, "sales.table_000"]
    browser.evaluate("document.querySelector('.wrong li > a').focus()")
    browser.press("Enter")
    for _ in range(200):  # the page is still loading
        with contextlib.suppress(AssertionError):
            if browser.evaluate("document.querySelector('h1')?.textContent") == "sales.table_036":
                break
        time.sleep(0.05)
    assert browser.evaluate("document.querySelector('h1').textContent") == "sales.table_036"


def test_a_link_to_a_shared_page_shows_one_table(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["shared"], 1400)
    count = (
        "[...document.querySelectorAll('.one')].filter((one) => one.offsetHeight > 0).map((one) => one.id)"
    )
    assert browser.evaluate(count) == ["t1", "t2", "t3"]
    browser.evaluate("location.hash = 't2'")
    assert browser.evaluate(count) == ["t2"]


def test_tables_are_sorted_and_filtered_by_keys_alone(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["first"], 1400)
    browser.evaluate("document.querySelector('.filter input[type=search]').focus()")
    browser.type("table_03")
    assert shown(browser, 0) == ["sales.table_036", "sales.table_038"] + [
        f"sales.table_{at:03d}" for at in (30, 31, 32, 33, 34, 35, 37, 39)
    ]
    browser.press("Tab", "Space")  # show only tables with problems
    assert shown(browser, 0) == ["sales.table_036", "sales.table_038"]
    browser.press("Space")
    browser.evaluate("document.querySelectorAll('th button')[0].focus()")
    browser.press("Enter")
    assert shown(browser, 0) == [f"sales.table_{at:03d}" for at in range(30, 40)]
    browser.press("Enter")
    assert shown(browser, 0)[0] == "sales.table_039"
    assert browser.evaluate("document.querySelector('th[aria-sort]').ariaSort") == "descending"


def test_files_are_sorted_by_numbers(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"], 1400)
    browser.evaluate("document.querySelectorAll('table.files th button')[3].focus()")
    browser.press("Enter", "Enter")
    assert shown(browser, 3)[:2] == ["39.1 MiB", "39.1 MiB"]
    assert shown(browser, 0)[0].endswith("009999_0")


def test_similar_damage_is_grouped(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["damaged"], 400)
    rows = browser.evaluate("document.querySelectorAll('[aria-label=\"Kinds of damage\"] tbody tr').length")
    assert rows == 1
    assert len(browser.evaluate("document.body.innerText")) < 8000


def test_report_is_complete_without_scripts(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["first"], 400, scripts=False)
    text = pages["first"].read_text()
    assert text.count("<tr") > 100
    assert "hbase: snapshot before_the_split" in text
